"""Differences of texts: the lines that differ, and in changed lines the words that differ.

Owns the comparison, the excerpt of a long line around its changes, and the marks of plain output.
Leaves out colours and pages, which the command line owns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

from cerata.engine.plain_value import PlainValue

Span = tuple[int, int]

_WORD: Final = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")

_WORDS_MAX: Final = 2_000
"""Words of a side that are compared: the time grows with the square."""

_SHARE_MIN: Final = 0.3
"""Least share of common characters, so that unlike texts are not marked word by word."""

_AROUND: Final = 20
"""Characters kept on each side of a change in a long line."""


@dataclass(frozen=True, slots=True)
class DiffLine(PlainValue):
    """A line of a difference: removed ("-"), added ("+"), or the same in both (" ").

    ``spans`` are the characters [start, end) of changed words, ascending; empty if the whole line
    is new, gone or too unlike.
    """

    sign: Literal["-", "+", " "]
    text: str
    spans: tuple[Span, ...] = ()

    @property
    def marked(self) -> str:
        """The line with its sign, and marks around changed words: ``-{old}`` or ``+{new}``."""
        parts = [
            f"{self.sign}{{{text}}}" if is_changed else text for text, is_changed in self.parts()
        ]
        return self.sign + "".join(parts)

    def parts(self) -> Iterator[tuple[str, bool]]:
        """Yield the text in parts, each with whether its words changed."""
        at = 0
        for start, end in self.spans:
            if start > at:
                yield self.text[at:start], False
            yield self.text[start:end], True
            at = end
        if at < len(self.text):
            yield self.text[at:], False

    def shortened(self, width: int) -> "DiffLine":
        """Return the line with at most ``width`` characters, cut around its changes if it can be.

        Long stretches without a change become "…".
        """
        width = max(width, 2 * _AROUND)
        if len(self.text) <= width:
            return self
        text, spans = "", list[Span]()
        parts = list(self.parts())
        for place, (part, is_changed) in enumerate(parts):
            if is_changed:
                spans.append((len(text), len(text) + len(part)))
                text += part
            else:
                before = _AROUND if place else 0
                after = _AROUND if place < len(parts) - 1 else 0
                text += _elided(part, before, after) if spans or after else part
        if len(text) > width:
            text = f"{text[: width - 1]}…"
            spans = [(start, min(end, width - 1)) for start, end in spans if start < width - 1]
        return DiffLine(self.sign, text, tuple(spans))


def _elided(text: str, before: int, after: int) -> str:
    """Return the first and last characters of a stretch, with "…" for the rest."""
    if len(text) <= before + after + 1:
        return text
    return f"{text[:before]}…{text[len(text) - after :]}"


def text_diff(old: str, new: str) -> tuple[DiffLine, ...]:
    """Return the lines that differ, with a common line on each side of a change."""
    before, after = old.splitlines(), new.splitlines()
    lines: list[DiffLine] = []
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(1):
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += [DiffLine(" ", text) for text in before[start:end]]
            else:
                lines += _changed(before[start:end], after[new_start:new_end])
    return tuple(lines)


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """Yield the lines of a replaced block, with the words that differ."""
    old_spans, new_spans = _changed_words("\n".join(old), "\n".join(new))
    yield from _lines("-", old, old_spans)
    yield from _lines("+", new, new_spans)


def _lines(sign: Literal["-", "+"], texts: Sequence[str], spans: list[Span]) -> Iterator[DiffLine]:
    """Yield lines with the spans of their joined text, each cut to its lines."""
    offset = 0
    for text in texts:
        end = offset + len(text)
        inside = [
            (max(start, offset) - offset, min(stop, end) - offset)
            for start, stop in spans
            if max(start, offset) < min(stop, end)
        ]
        yield DiffLine(sign, text, tuple(inside))
        offset = end + 1


class _Word(NamedTuple):
    text: str
    start: int


def _changed_words(old: str, new: str) -> tuple[list[Span], list[Span]]:
    """Return the spans of the words that differ; none if the texts are long or unlike."""
    before, after = _words(old), _words(new)
    if not before or not after or max(len(before), len(after)) > _WORDS_MAX:
        return [], []
    words = [word.text for word in before], [word.text for word in after]
    opcodes = SequenceMatcher(None, *words, autojunk=False).get_opcodes()
    common = sum(
        len(word)
        for tag, start, end, _, _ in opcodes
        if tag == "equal"
        for word in words[0][start:end]
    )
    total = sum(map(len, words[0])) + sum(map(len, words[1]))
    if 2 * common < _SHARE_MIN * total:
        return [], []
    changes = [opcode for opcode in opcodes if opcode[0] != "equal"]
    return (
        [_span(before[start:end]) for _, start, end, _, _ in changes if start < end],
        [_span(after[start:end]) for _, _, _, start, end in changes if start < end],
    )


def _words(text: str) -> list[_Word]:
    """Return words and signs without the spaces around them."""
    matches = ((match[0].strip(), match.start()) for match in _WORD.finditer(text))
    return [_Word(word, start) for word, start in matches if word]


def _span(words: Sequence[_Word]) -> Span:
    return words[0].start, words[-1].start + len(words[-1].text)
