"""Entries: the parts of a context, and the form of each.

Owns the two forms of a context, the marks that keep remembered text from passing for a source, and
the three tiers of a text: whole, by its gist, in one line. Pure: the written text is counted.
Leaves out the choice of entries (`packing`) and of sentences (`sentences`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..tokenizer import Tokenizer
from .best_span import best_span
from .imitation import marked
from .policies import Tier
from .sentences import Marks, Span, by_worth, sentences

_TOKEN_SIZE_MAX: Final = 128
"""Characters of the longest token of the encoding, a run of spaces."""

_SEEN_SIZE: Final = 16
"""Characters that are read for each token around a span: text has about four."""

ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class Entry:
    """A frame's text and its source.

    A chunk of a document also has ``document``, and in ``start`` the place of its text there:
    neighbours in one context are joined. ``time`` is the time of the content, in microseconds since
    1970 UTC; ``tier`` is the longest tier that the policy allows. An entry that ``stands_for``
    something other than text, such as bytes, is no duplicate of an equal text.
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
"""Returns the matches in a text; it is called only for a text that is cut."""

_MARKS: Final = re.compile(r"[\\`*_\[\]<]")


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]


_HEADS: Final[Mapping[Form, Callable[[str], str]]] = {
    "text": lambda source: f"[{source}]\n",
    # A name such as __init__.py must not come out bold.
    "markdown": lambda source: f"### {_MARKS.sub(_escaped, source)}\n\n",
}

FORMS: Final = tuple(_HEADS)


_BODIES: Final[Mapping[Form, Callable[[str], str]]] = {
    # Remembered text must not swallow the entries after it.
    "text": lambda text: text,
    "markdown": lambda text: "\n".join(f"> {line}".rstrip() for line in text.splitlines()),
}


class Writing:
    """One entry in at most ``most`` tokens: the line of its source, and its text.

    A source that would take more than half of them is replaced by the id.
    """

    def __init__(self, entry: Entry, form: Form, most: int, counter: Tokenizer) -> None:
        self.entry = entry
        self.most = most
        self._counter = counter
        self._form: Form = form
        self.head = _HEADS[form](entry.source)
        # No token is shorter than a byte, so a short head need not be counted.
        if 2 * len(self.head.encode()) > most and 2 * counter.count(self.head) > most:
            self.head = _HEADS[form](f"#{entry.id}")

    def written(self, text: str) -> str:
        """Return the entry with this text, as a context has it."""
        # Before the form is applied, so that no form can skip the marks.
        plain = marked(text, headings=self._form == "markdown")
        return self.head + _BODIES[self._form](plain)

    def fits(self, text: str) -> bool:
        """Return whether the entry has room for this text."""
        # A text longer than that many of the longest tokens need not be counted.
        return len(text) <= self.most * _TOKEN_SIZE_MAX and self._size(text) <= self.most

    def _size(self, text: str) -> int:
        return self._counter.count(self.written(text))

    def gist(self, marks: Marks) -> str:
        """Return the best sentences in their order, with ellipses for those between.

        Sentences are added by worth, up to the first without room.
        """
        text = self.entry.text.strip()
        chosen: list[Span] = []
        gist = ""
        for sentence in by_worth(text, _near(text, marks), marks):
            tried = sorted([*chosen, sentence])
            piece = _pieced(text, tried)
            if not self.fits(piece):
                break
            chosen = tried
            gist = piece
        return gist or self.line(marks)

    def line(self, marks: Marks) -> str:
        """Return the best sentence, cut around the match if necessary."""
        text = self.entry.text.strip()
        start, end = next(by_worth(text, _near(text, marks), marks), (0, 0))
        piece = _pieced(text, [(start, end)])
        if self.fits(piece):
            return piece
        lead = piece.index(text[start:end]) - start
        within = [(a + lead, b + lead) for a, b in marks if start <= a and b <= end]
        return self._cut(piece, best_span(piece, within))

    def clipped(self, marks: Marks) -> str:
        """Return the text around its best span, as much as fits."""
        text = self.entry.text.strip()
        return self._cut(text, best_span(text, marks))

    def _cut(self, text: str, span: Span) -> str:
        most = self.most
        counter = self._counter
        room = most - counter.count(self.head)
        if room <= 0:
            return ""
        start, end = span
        spare = max(0, room - counter.count(text[start:end])) // 2
        # The tokenizer cannot cut backwards from an end: bisect for the beginning.
        low = max(0, start - most * _SEEN_SIZE)
        high = start
        while low < high:
            middle = (low + high) // 2
            if counter.count(text[middle:start]) <= spare:
                high = middle
            else:
                low = middle + 1
        lead = ELLIPSIS if low else ""
        stop = start + most * _SEEN_SIZE
        piece = lead + text[low:stop].strip()
        clipped = piece + (ELLIPSIS if text[stop:].strip() else "")
        size = counter.cut(piece, room)
        over = self._size(clipped) - most
        while over > 0:
            if size <= 0:
                return ""
            # Marks and seams take further tokens, each of at least a character.
            clipped = piece[:size].rstrip() + ELLIPSIS
            over = self._size(clipped) - most
            size -= max(over, 1)
        return clipped


def _near(text: str, marks: Marks) -> list[Span]:
    return sentences(text, best_span(text, marks)[0])


def _pieced(text: str, spans: Sequence[Span]) -> str:
    """Return pieces of a text as one, with an ellipsis for each omitted part."""
    pieced = ""
    at = 0
    for start, end in spans:
        between = text[at:start]
        if between.strip():
            pieced += f" {ELLIPSIS} "
        elif pieced:
            pieced += "\n" if "\n" in between else " "
        pieced = pieced + text[start:end]
        at = end
    return (pieced + (f" {ELLIPSIS}" if text[at:].strip() else "")).strip()
