"""Blocks: the placed entries of a context, those of one session below shared headings.

Owns the order of placed entries in a text, the headings between them, and the count of their
tokens. Pure. Leaves out which entries are placed (`packing`) and how each is written (`entries`).

A context takes the sum over its pieces, since no token spans two of them: a piece ends with a line
end or is the last, and the next begins with a bracket, a digit, a number sign or a quotation mark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from cerata.engine.plain_value import PlainValue

from ..tokenizer import Tokenizer
from .entries import Entry, Written
from .policies import Tier

GAP: Final = "\n\n"
"""Between two headings."""

_PENDING_AGE: Final = 1 << 62
"""Above every id of the log: ids of an open transaction sort from here on."""


@dataclass(frozen=True, slots=True)
class ContextItem(PlainValue):
    """An entry of a context: the frame, its source, its text; ``clipped`` if that is not whole.

    ``joined`` are the ids of neighbouring chunks whose text is included. ``tier`` is its length:
    the text ("full"), some of its sentences ("gist"), or the best of them ("line"). ``speaker`` is
    the name before the text; None without one. ``span`` is the place of the text in the text of the
    context, characters [start, end), marks and signs of quotation included. ``rank`` is the place
    among the results, 1 the best: turns are in the order of their conversation.
    """

    id: int
    source: str
    text: str
    clipped: bool
    joined: tuple[int, ...] = ()
    tier: Tier = "full"
    speaker: str | None = None
    span: tuple[int, int] = (0, 0)
    rank: int = 0


@dataclass(frozen=True)
class PlacedEntry:
    """An entry with the neighbours that joined it; ``place`` orders the blocks of a context."""

    rank: int
    place: tuple[int, ...]
    entry: Entry
    item: ContextItem
    written: Written
    counter: Tokenizer
    _counts: dict[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)

    def tokens(self, end: str) -> int:
        """Return the tokens of the lines with an end after them, counted once for each end."""
        if end not in self._counts:
            self._counts[end] = self.counter.count(self.written.lines + end)
        return self._counts[end]

    @cached_property
    def heading_tokens(self) -> int:
        """The tokens of the heading."""
        heading = self.written.heading
        return self.counter.count(heading) if heading else 0


@dataclass(frozen=True)
class Block:
    """An entry, or the entries of a session in the order of the conversation; never empty."""

    entries: tuple[PlacedEntry, ...]

    @cached_property
    def place(self) -> tuple[int, ...]:
        """The place of the first of its entries."""
        return min(entry.place for entry in self.entries)

    @property
    def session(self) -> object:
        """The session that the entries are of; None for an entry alone."""
        return self.entries[0].written.session

    def pieces(self) -> Iterator[tuple[bool, PlacedEntry, str]]:
        """Yield each entry with whether its heading is shown, and what comes after it."""
        entries = self.entries
        is_shown = True
        for entry, following in zip(entries, (*entries[1:], None), strict=True):
            is_next_shown = following is None or following.written.heading != entry.written.heading
            gap = "" if following is None else GAP if is_next_shown else entry.written.gap
            yield is_shown, entry, gap
            is_shown = is_next_shown

    @cached_property
    def _before_last(self) -> int:
        """The tokens up to the lines of the last entry."""
        headings = sum(entry.heading_tokens for is_shown, entry, _ in self.pieces() if is_shown)
        return headings + sum(entry.tokens(gap) for _, entry, gap in self.pieces() if gap)

    @cached_property
    def followed(self) -> int:
        """The tokens of the block with another after it."""
        return self._before_last + self.entries[-1].tokens(GAP)

    @cached_property
    def alone(self) -> int:
        """The tokens of the block at the end."""
        return self._before_last + self.entries[-1].tokens("")


def tokens_of(blocks: Sequence[Block]) -> int:
    """Return the tokens of some blocks as one text; 0 without any."""
    return sum(block.followed for block in blocks[:-1]) + blocks[-1].alone if blocks else 0


def entries_of(blocks: Sequence[Block]) -> list[PlacedEntry]:
    """Return the placed entries in the order of the text."""
    return [entry for block in blocks for entry in block.entries]


def added(blocks: Sequence[Block], entry: PlacedEntry) -> list[Block]:
    """Return the blocks with an entry, in its session's block if there is one."""
    session = entry.written.session
    entries = [entry]
    rest: list[Block] = []
    for block in blocks:
        if session is not None and block.session == session:
            entries += block.entries
        else:
            rest.append(block)
    entries.sort(key=lambda placed: placed.entry.turn)
    rest.append(Block(tuple(entries)))
    # Nearly sorted, which is a pass.
    rest.sort(key=lambda block: block.place)
    return rest


def without(blocks: Sequence[Block], entry: PlacedEntry) -> list[Block]:
    """Return the blocks without a placed entry."""
    rest: list[Block] = []
    for block in blocks:
        if entry not in block.entries:
            rest.append(block)
        elif len(block.entries) > 1:
            rest.append(Block(tuple(placed for placed in block.entries if placed is not entry)))
    rest.sort(key=lambda block: block.place)
    return rest


def age_of(number: int) -> int:
    """Return the sort key of an id, oldest first: ids of an open transaction are −1, −2, …."""
    return number if number > 0 else _PENDING_AGE - number


def text_of(lead: str, blocks: Sequence[Block]) -> tuple[str, tuple[ContextItem, ...]]:
    """Return the text of some blocks behind a lead, and their items with the spans in it."""
    pieces = [lead + GAP] if lead and blocks else [lead]
    size = len(pieces[0])
    items: list[ContextItem] = []
    for block in blocks:
        for is_shown, entry, gap in block.pieces():
            written = entry.written
            heading = written.heading if is_shown else ""
            end = gap or (GAP if block is not blocks[-1] else "")
            start = size + len(heading) + written.start
            size += len(heading) + len(written.lines)
            items.append(_with_span(entry.item, (start, size)))
            size += len(end)
            pieces += heading, written.lines, end
    return "".join(pieces), tuple(items)


def _with_span(item: ContextItem, span: tuple[int, int]) -> ContextItem:
    return ContextItem(
        item.id,
        item.source,
        item.text,
        item.clipped,
        item.joined,
        item.tier,
        item.speaker,
        span,
        item.rank,
    )
