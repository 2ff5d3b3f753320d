"""Blocks: the placed entries of a context, those of one session below shared headings.

Owns the order of placed entries in a text, the headings between them, and the count of their
tokens. Pure. Leaves out which entries are placed (`packing`) and how each is written (`entries`).

A context takes the sum over its pieces, since no token spans two of them: a piece ends with a line
end or is the last, and the next begins with a bracket, a digit, a number sign or a quotation mark.
So a further entry changes the sums beside it alone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

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


class PlacedEntry(msgspec.Struct, frozen=True, eq=False):
    """An entry with its text in the context, and the neighbours that joined it.

    ``place`` orders the blocks of a context; ``rank`` is from 0. ``counts`` has the tokens of the
    lines by the gap after them.
    """

    rank: int
    place: tuple[int, ...]
    entry: Entry
    text: str
    written: Written
    counter: Tokenizer
    clipped: bool = False
    tier: Tier = "full"
    joined: tuple[int, ...] = ()
    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])

    def tokens(self, gap: str) -> int:
        """Return the tokens of the lines with a gap after them, counted once for each gap."""
        count = self.counts.get(gap)
        if count is None:
            count = self.counts[gap] = self.counter.count(self.written.lines + gap)
        return count


_turn: Final = attrgetter("entry.turn")
_place: Final = attrgetter("place")


class Block(NamedTuple):
    """An entry, or the entries of a session in the order of the conversation; never empty.

    ``place`` is that of the first entry, ``before_last`` are the tokens up to the lines of the last
    entry in the block. An entry alone has no ``session``.
    """

    entries: tuple[PlacedEntry, ...]
    place: tuple[int, ...]
    before_last: int
    session: Hashable | None

    def with_entry(self, entry: PlacedEntry) -> "Block":
        """Return the block with a further entry of its session."""
        entries = self.entries
        at = bisect_left(entries, entry.entry.turn, key=_turn)
        tokens = self.before_last
        earlier = entries[at - 1] if at else None
        later = entries[at] if at < len(entries) else None
        heading = entry.written.heading
        if earlier is not None:
            if later is not None:
                tokens -= earlier.tokens(_gap(earlier, later))
            tokens += earlier.tokens(_gap(earlier, entry))
        if later is not None:
            if earlier is None or earlier.written.heading != later.written.heading:
                tokens -= later.written.heading_tokens
            if heading != later.written.heading:
                tokens += later.written.heading_tokens
            tokens += entry.tokens(_gap(entry, later))
        if earlier is None or earlier.written.heading != heading:
            tokens += entry.written.heading_tokens
        entries = (*entries[:at], entry, *entries[at:])
        return Block(entries, min(self.place, entry.place), tokens, self.session)

    def followed(self) -> int:
        """Return the tokens of the block with another after it."""
        return self.before_last + self.entries[-1].tokens(GAP)

    def alone(self) -> int:
        """Return the tokens of the block at the end."""
        return self.before_last + self.entries[-1].written.tokens


def _gap(entry: PlacedEntry, later: PlacedEntry) -> str:
    """Return what comes between two neighbours of a block."""
    written = entry.written
    return written.gap if written.heading == later.written.heading else GAP


class Blocks(NamedTuple):
    """Blocks in the order of a context.

    ``tokens`` are those of their text, ``before_last`` those before the last block; 0 without any.
    """

    blocks: tuple[Block, ...] = ()
    before_last: int = 0
    tokens: int = 0

    def followed(self) -> int:
        """Return the tokens of the blocks with another after them."""
        return self.before_last + self.blocks[-1].followed() if self.blocks else 0

    def entries(self) -> list[PlacedEntry]:
        """Return the placed entries in the order of the text."""
        return [entry for block in self.blocks for entry in block.entries]

    def added(self, entry: PlacedEntry) -> "Blocks":
        """Return the blocks with an entry, in its session's block if there is one."""
        written = entry.written
        session = written.session
        if session is not None:
            for at, block in enumerate(self.blocks):
                if block.session == session:
                    return self._without(at)._with(block.with_entry(entry))
        return self._with(Block((entry,), entry.place, written.heading_tokens, session))

    def without(self, entry: PlacedEntry) -> "Blocks":
        """Return the blocks without a placed entry."""
        for at, block in enumerate(self.blocks):
            if entry in block.entries:
                blocks = self._without(at)
                for placed in block.entries:
                    if placed is not entry:
                        blocks = blocks.added(placed)
                return blocks
        return self

    def _with(self, block: Block) -> "Blocks":
        blocks = self.blocks
        if blocks and block.place < blocks[-1].place:
            at = bisect_right(blocks, block.place, key=_place)
            size = block.followed()
            blocks = (*blocks[:at], block, *blocks[at:])
            return Blocks(blocks, self.before_last + size, self.tokens + size)
        before_last = 0
        if blocks:
            last = blocks[-1]
            before_last = self.before_last + last.before_last + last.entries[-1].tokens(GAP)
        tokens = before_last + block.before_last + block.entries[-1].written.tokens
        return Blocks((*blocks, block), before_last, tokens)

    def _without(self, at: int) -> "Blocks":
        """Return the blocks without the block at a place."""
        blocks = self.blocks
        rest = (*blocks[:at], *blocks[at + 1 :])
        if not rest:
            return Blocks()
        if at < len(rest):
            size = blocks[at].followed()
            return Blocks(rest, self.before_last - size, self.tokens - size)
        before_last = self.before_last - rest[-1].followed()
        return Blocks(rest, before_last, before_last + rest[-1].alone())


def age_of(number: int) -> int:
    """Return the sort key of an id, oldest first: ids of an open transaction are −1, −2, …."""
    return number if number > 0 else _PENDING_AGE - number


def text_of(lead: str, blocks: tuple[Block, ...]) -> tuple[str, tuple[ContextItem, ...]]:
    """Return the text of some blocks behind a lead, and their items with the spans in it."""
    pieces = [lead + GAP] if lead and blocks else [lead]
    size = len(pieces[0])
    items: list[ContextItem] = []
    for block in blocks:
        earlier: Written | None = None
        for placed in block.entries:
            entry, written = placed.entry, placed.written
            before = (GAP if items else "") + written.heading
            if earlier is not None and earlier.heading == written.heading:
                before = earlier.gap
            start = size + len(before) + written.start
            size += len(before) + len(written.lines)
            pieces += before, written.lines
            items.append(
                ContextItem(
                    entry.id,
                    entry.source,
                    placed.text,
                    placed.clipped,
                    placed.joined,
                    placed.tier,
                    entry.speaker or None,
                    (start, size),
                    placed.rank + 1,
                )
            )
            earlier = written
    return "".join(pieces), tuple(items)
