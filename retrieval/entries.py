"""Entries: what a context can show, and how one of them is written.

Owns the two forms of a context, the marks by which nothing that was remembered passes for a source,
and the three tiers of a text: whole, by its gist, in one line. Pure: what is counted is the text as
written. Leaves out which entries are chosen (`context`) and which sentences (`extracts`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .extracts import Marks, Span, by_worth, sentences
from .imitation import marked
from .policies import Tier
from .span import best_span
from .tokens import Tokenizer

_TOKEN_SIZE_MAX: Final = 128
"""Characters of the longest token of the encoding, a run of spaces."""

_SEEN_SIZE: Final = 16
"""Characters for each token that are looked at around a span: text has about four."""

ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to show: a frame's text, and where it comes from.

    A chunk of a document also has ``document``, and in ``start`` the place of its text there:
    neighbours that are both shown become one. ``time`` is when it was said, in microseconds since
    1970 UTC; ``tier`` is the longest way in which it is told. What ``stands_for`` something that is
    no text, as bytes, is no duplicate of what reads alike.
    """

    id: int
    source: str
    text: str
    document: int | None = None
    start: int = 0
    time: int = 0
    tier: Tier = "full"
    stands_for: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


Form: TypeAlias = Literal["text", "markdown"]
"""How a context is written: each entry below its source in brackets, or quoted below a heading."""

MarksOf: TypeAlias = Callable[[str], Marks]
"""Returns where a text says what is asked; it is called only where one is cut."""

_MARKS: Final = re.compile(r"[\\`*_\[\]<]")


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


_HEADS: Final[Mapping[Form, Callable[[str], str]]] = {
    "text": lambda source: f"[{source}]\n",
    # A name such as __init__.py must not come out bold.
    "markdown": lambda source: f"### {_MARKS.sub(_escaped, source)}\n\n",
}

FORMS: Final = tuple(_HEADS)


_BODIES: Final[Mapping[Form, Callable[[str], str]]] = {
    # Nothing that was remembered may swallow the entries that follow.
    "text": lambda text: text,
    "markdown": lambda text: "\n".join(f"> {line}".rstrip() for line in text.splitlines()),
}


class Writing:
    """How one entry is written in at most so many tokens: the line of its source, and its text.

    A source that would take more than half of them is its id alone.
    """

    def __init__(self, entry: Entry, form: Form, most: int, counter: Tokenizer) -> None:
        self.entry = entry
        self.most = most
        self._counter = counter
        self._form: Form = form
        self.head = _HEADS[form](entry.source)
        # No token is shorter than a byte: what is short is not counted.
        if 2 * len(self.head.encode()) > most and 2 * counter.count(self.head) > most:
            self.head = _HEADS[form](f"#{entry.id}")

    def written(self, text: str) -> str:
        """Return the entry with this text, as it stands in a context."""
        # Before the form is applied, so that no form can leave it out.
        plain = marked(text, headings=self._form == "markdown")
        return self.head + _BODIES[self._form](plain)

    def fits(self, text: str) -> bool:
        """Tell whether the entry has room for this text."""
        # What is longer than the longest tokens could make it need not be counted.
        return len(text) <= self.most * _TOKEN_SIZE_MAX and self._size(text) <= self.most

    def _size(self, text: str) -> int:
        return self._counter.count(self.written(text))

    def gist(self, marks: Marks) -> str:
        """Return the sentences that say most, in their order, with marks where some are left out.

        They are taken by their worth, up to the first for which there is no room.
        """
        text = self.entry.text.strip()
        chosen: list[Span] = []
        told = ""
        for one in by_worth(text, _near(text, marks), marks):
            tried = sorted([*chosen, one])
            piece = _pieced(text, tried)
            if not self.fits(piece):
                break
            chosen, told = tried, piece
        return told or self.line(marks)

    def line(self, marks: Marks) -> str:
        """Return the sentence that says most, cut around what is asked for if it must be."""
        text = self.entry.text.strip()
        start, end = next(by_worth(text, _near(text, marks), marks), (0, 0))
        piece = _pieced(text, [(start, end)])
        if self.fits(piece):
            return piece
        lead = piece.index(text[start:end]) - start
        within = [(a + lead, b + lead) for a, b in marks if start <= a and b <= end]
        return self._cut(piece, best_span(piece, within))

    def clipped(self, marks: Marks) -> str:
        """Return the text around its best span, as much of it as there is room for."""
        text = self.entry.text.strip()
        return self._cut(text, best_span(text, marks))

    def _cut(self, text: str, span: Span) -> str:
        """Return what of a text fits around a span."""
        most, counter = self.most, self._counter
        room = most - counter.count(self.head)
        if room <= 0:
            return ""
        start, end = span
        spare = max(0, room - counter.count(text[start:end])) // 2
        # From the end backwards there is no cut: the beginning is sought by halves.
        low, high = max(0, start - most * _SEEN_SIZE), start
        while low < high:
            middle = (low + high) // 2
            if counter.count(text[middle:start]) <= spare:
                high = middle
            else:
                low = middle + 1
        lead = ELLIPSIS if low else ""
        stop = start + most * _SEEN_SIZE
        piece = lead + text[low:stop].strip()
        clipped, size = piece + (ELLIPSIS if text[stop:].strip() else ""), counter.cut(piece, room)
        over = self._size(clipped) - most
        while over > 0:
            if size <= 0:
                return ""
            # Marks and what stands at the seams take tokens more; each has a character at least.
            clipped = piece[:size].rstrip() + ELLIPSIS
            over = self._size(clipped) - most
            size -= max(over, 1)
        return clipped


def _near(text: str, marks: Marks) -> list[Span]:
    """Return the sentences around what is asked for."""
    return sentences(text, best_span(text, marks)[0])


def _pieced(text: str, spans: Sequence[Span]) -> str:
    """Return pieces of a text as one, an ellipsis for what is left out between and around."""
    told, at = "", 0
    for start, end in spans:
        between = text[at:start]
        if between.strip():
            told += f" {ELLIPSIS} "
        elif told:
            told += "\n" if "\n" in between else " "
        told, at = told + text[start:end], end
    return (told + (f" {ELLIPSIS}" if text[at:].strip() else "")).strip()
