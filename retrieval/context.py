"""Contexts: the best entries that fit a budget of tokens, each naming its source.

Owns the choice of entries and how they are written out. Pure: the same entries, budget and
tokenizer give the same bytes. What is counted is the text as written, so the budget is exact.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from .tokens import Tokenizer, tokenizer

ENTRY_TOKENS_MAX: Final = 600
"""Most tokens of one entry, its source among them, unless the caller says otherwise."""

_TOKEN_SIZE_MAX: Final = 128
"""Characters of the longest token of the encoding, a run of spaces."""

_SEEN_SIZE: Final = 16
"""Characters for each token that are looked at around a span: text has about four."""

_ELLIPSIS = "…"
_GAP = "\n\n"
_SEAM_TOKENS: Final = 8
"""More than two texts can save by standing together: a gap joins the last word of one at most."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to show: a frame's text, and where it comes from.

    A chunk of a document also has ``document``, and in ``start`` the place of its text there:
    neighbours that are both shown become one.
    """

    id: int
    source: str
    text: str
    document: int | None = None
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.text)


Form: TypeAlias = Literal["text", "markdown"]
"""How a context is written: each entry below its source in brackets, or quoted below a heading."""

_MARKS: Final = re.compile(r"[\\`*_\[\]<]")

_HEADS: Final[Mapping[Form, Callable[[str], str]]] = {
    "text": lambda source: f"[{source}]\n",
    # A name such as __init__.py must not come out bold.
    "markdown": lambda source: f"### {_MARKS.sub(_escaped, source)}\n\n",
}


def _marked(text: str) -> str:
    """Return a text with a backslash before each line that looks like a source."""
    if "[#" not in text:
        return text
    lines = text.splitlines(keepends=True)
    return "".join(f"\\{line}" if line.lstrip().startswith("[#") else line for line in lines)


_BODIES: Final[Mapping[Form, Callable[[str], str]]] = {
    # Nothing that was remembered may pass for a source, or swallow those that follow.
    "text": _marked,
    "markdown": lambda text: "\n".join(f"> {line}".rstrip() for line in text.splitlines()),
}


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


SpanOf: TypeAlias = Callable[[str], tuple[int, int]]
"""Gives the best span of a text: characters [start, end)."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Something shown: the frame, its source, the text of it, ``clipped`` if not whole.

    ``joined`` are the ids of neighbouring chunks whose text it also has.
    """

    id: int
    source: str
    text: str
    clipped: bool
    joined: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "source": self.source,
            "text": self.text,
            "clipped": self.clipped,
            "joined": list(self.joined),
        }


@dataclass(frozen=True, slots=True)
class Filled:
    """What fits: the items, the text that they are written as, and its tokens."""

    items: tuple[ContextItem, ...]
    text: str
    tokens: int
    tokenizer: str


def check_budget(tokens: object) -> None:
    """Raise `InvalidInput` unless a budget is a positive number."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens <= 0:
        raise InvalidInput(f"A budget of {tokens!r} tokens", remedy="Give 1 or more.")


def fill(
    entries: Sequence[Entry],
    max_tokens: int,
    span_of: SpanOf,
    *,
    entry_tokens: int = ENTRY_TOKENS_MAX,
    counter: Tokenizer | None = None,
    form: Form = "text",
) -> Filled:
    """Choose entries in order while they fit; each at most ``entry_tokens`` around its best span.

    An entry that is too long is clipped to that; one that does not fit what is left is passed
    over, but the best is clipped to fit whatever the budget is. A source that would take more than
    half of an entry's room is its id alone. A neighbour of one that is shown,
    in the same document, joins it while both fit. ``span_of`` is asked only where an entry is
    clipped. Cost: a count of the text for each entry.

    Raises:
        InvalidInput: a budget is not positive, or the form is not known.
    """
    if form not in _HEADS:
        raise InvalidInput(f"form is {form!r}", remedy="Write 'text' or 'markdown'.")
    check_budget(max_tokens)
    check_budget(entry_tokens)
    counter = counter or tokenizer()
    shown: list[_Shown] = []
    written = ""
    most, taken = min(entry_tokens, max_tokens), 0
    for entry in entries:
        tried = _with(shown, _Writing(entry, form, most, counter), span_of)
        if shown and len(tried) > len(shown):
            # Counting all of it again is dear, and most of what is tried does not fit by far.
            least = taken + counter.count(tried[-1].written) - _SEAM_TOKENS
            if least > max_tokens:
                continue
        text = _GAP.join(one.written for one in tried)
        tokens = counter.count(text)
        if tokens <= max_tokens:
            shown, written, taken = tried, text, tokens
        elif not shown:
            shown = tried
            written = text[: counter.cut(text, max_tokens)]
            taken = max_tokens
    items = tuple(one.item for one in shown)
    return Filled(items, written, counter.count(written), counter.name)


class _Writing:
    """How one entry is written: the line that names its source, its text, and what they take."""

    def __init__(self, entry: Entry, form: Form, most: int, counter: Tokenizer) -> None:
        self.entry = entry
        self.most = most
        self.counter = counter
        self._body = _BODIES[form]
        self.head = _HEADS[form](entry.source)
        if 2 * counter.count(self.head) > most:
            self.head = _HEADS[form](f"#{entry.id}")

    def written(self, text: str) -> str:
        return self.head + self._body(text)

    def size(self, text: str) -> int:
        """Return the tokens that it takes with this text."""
        return self.counter.count(self.written(text))


@dataclass(frozen=True, slots=True)
class _Shown:
    """An entry with what joined it, and how it is written."""

    entry: Entry
    item: ContextItem
    writing: _Writing

    @property
    def written(self) -> str:
        return self.writing.written(self.item.text)


def _with(shown: list[_Shown], writing: _Writing, span_of: SpanOf) -> list[_Shown]:
    """Return what is shown with one entry more: joined to a neighbour if that fits, or added."""
    entry = writing.entry
    for at, other in enumerate(shown):
        if other.item.clipped or not _are_neighbours(other.entry, entry):
            continue
        joined = _joined(other, entry)
        if joined.writing.size(joined.item.text) <= writing.most:
            return [*shown[:at], joined, *shown[at + 1 :]]
    return [*shown, _alone(writing, span_of)]


def _are_neighbours(one: Entry, other: Entry) -> bool:
    return (
        one.document is not None
        and one.document == other.document
        and one.start <= other.end
        and other.start <= one.end
    )


def _joined(shown: _Shown, entry: Entry) -> _Shown:
    """Return two neighbours as one, what overlaps once; its source is that of the better one."""
    best = shown.entry
    first, second = (best, entry) if best.start <= entry.start else (entry, best)
    text = first.text + second.text[max(0, first.end - second.start) :]
    both = Entry(best.id, best.source, text, best.document, first.start)
    joined = (*shown.item.joined, entry.id)
    item = ContextItem(best.id, best.source, text.strip(), clipped=False, joined=joined)
    return _Shown(both, item, shown.writing)


def _alone(writing: _Writing, span_of: SpanOf) -> _Shown:
    entry, text = writing.entry, writing.entry.text.strip()
    # What is longer than the longest tokens could make it need not be counted.
    is_whole = len(text) <= writing.most * _TOKEN_SIZE_MAX and writing.size(text) <= writing.most
    if not is_whole:
        text = _clip(writing, span_of)
    item = ContextItem(entry.id, entry.source, text, clipped=not is_whole)
    return _Shown(entry, item, writing)


def _clip(writing: _Writing, span_of: SpanOf) -> str:
    """Return an entry's text around its best span so that it fits with its source line."""
    text, most, counter = writing.entry.text, writing.most, writing.counter
    room = most - counter.count(writing.head)
    if room <= 0:
        return ""
    start, end = span_of(text)
    spare = max(0, room - counter.count(text[start:end])) // 2
    # From the end backwards there is no cut: the beginning is sought by halves.
    low, high = max(0, start - most * _SEEN_SIZE), start
    while low < high:
        middle = (low + high) // 2
        if counter.count(text[middle:start]) <= spare:
            high = middle
        else:
            low = middle + 1
    lead = _ELLIPSIS if low else ""
    piece = lead + text[low : start + most * _SEEN_SIZE].strip()
    clipped, size = piece, counter.cut(piece, room)
    over = writing.size(piece) - most
    while over > 0:
        if size <= 0:
            return ""
        # The marks and what stands at the seams take tokens more; each has a character at least.
        clipped = piece[:size].rstrip() + _ELLIPSIS
        over = writing.size(clipped) - most
        size -= max(over, 1)
    return clipped
