"""Differences of texts: the lines that differ, and in changed lines the words that differ.

Owns the comparison, the excerpt of a long line around its changes, and the marks of plain output.
Leaves out colours and pages, which the command line owns.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Final, Literal, NamedTuple

from cerata.engine.plain_value import PlainValue

Span = tuple[int, int]

_WORD: Final = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")

_WORDS_MAX: Final = 2_000
"""Words of a side that are compared."""

_STEPS_MAX: Final = 300_000
"""Most steps of `SequenceMatcher`, whose worst case is a pass over all equal pairs for each item:
300 distinct items, or 65 equal ones. Above, only items that are unique in both texts are matched,
with the equal items around them."""

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
    """Return the lines that differ, with a common line on each side of a change.

    Cost: grows with the texts.
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[DiffLine] = []
    opcodes = [*_opcodes(before, after)]
    for place, (tag, start, end, new_start, new_end) in enumerate(opcodes):
        if tag != "equal":
            lines += _changed(before[start:end], after[new_start:new_end])
            continue
        around = {start} if place else set[int]()
        around |= {end - 1} if place < len(opcodes) - 1 else set()
        lines += [DiffLine(" ", before[at]) for at in sorted(around)]
    return tuple(lines)


_Opcode = tuple[str, int, int, int, int]
"""A tag of difflib; lines or words [start, end) of the old text, and [start, end) of the new."""


def _opcodes(before: Sequence[str], after: Sequence[str]) -> Iterator[_Opcode]:
    """Yield the opcodes of the lines or words of two texts, in order."""
    of_old, of_new = Counter(before), Counter(after)
    pairs = sum(count * of_new[item] for item, count in of_old.items())
    if (len(before) + pairs) * min(len(before), len(after)) <= _STEPS_MAX:
        yield from SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return
    at, new_at = 0, 0
    for stop, new_stop in (*_anchors(before, of_old, after, of_new), (len(before), len(after))):
        end, new_end = at, new_at
        while end < stop and new_end < new_stop and before[end] == after[new_end]:
            end, new_end = end + 1, new_end + 1
        if (end, new_end) == (stop, new_stop):
            continue
        if at < end:
            yield "equal", at, end, new_at, new_end
        at, new_at = stop, new_stop
        while at > end and new_at > new_end and before[at - 1] == after[new_at - 1]:
            at, new_at = at - 1, new_at - 1
        yield "replace", end, at, new_end, new_at
    if at < len(before):
        yield "equal", at, len(before), new_at, len(after)


def _anchors(
    before: Sequence[str], of_old: Counter[str], after: Sequence[str], of_new: Counter[str]
) -> list[tuple[int, int]]:
    """Return places of items that are unique in both texts, the most that are in one order.

    The rule of the patience diff (B. Cohen); the longest ascending part by patience sorting.
    """
    places = {item: place for place, item in enumerate(after)}
    tops: list[int] = []
    last: list[int] = []
    cards: list[tuple[int, int, int]] = []
    for old_place, item in enumerate(before):
        if of_old[item] == 1 == of_new[item]:
            place = places[item]
            pile = bisect_left(tops, place)
            tops[pile : pile + 1] = [place]
            last[pile : pile + 1] = [len(cards)]
            cards.append((old_place, place, last[pile - 1] if pile else -1))
    anchors: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        old_place, place, at = cards[at]
        anchors.append((old_place, place))
    return anchors[::-1]


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """Yield the lines of a replaced block, with the words that differ."""
    old_spans, new_spans = _changed_words("\n".join(old), "\n".join(new))
    yield from _lines("-", old, old_spans)
    yield from _lines("+", new, new_spans)


def _lines(sign: Literal["-", "+"], texts: Sequence[str], spans: list[Span]) -> Iterator[DiffLine]:
    """Yield lines with the spans of their joined text, each cut to its lines."""
    offset = first = 0
    for text in texts:
        end = offset + len(text)
        while first < len(spans) and spans[first][1] <= offset:
            first += 1
        inside: list[Span] = []
        for start, stop in islice(spans, first, None):
            if start >= end:
                break
            if max(start, offset) < min(stop, end):
                inside.append((max(start, offset) - offset, min(stop, end) - offset))
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
    opcodes = [*_opcodes(*words)]
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
