"""The columns of frames: births, closings and oddities, and what is derived from them.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived links
(parent to children, row to closing), which are rebuilt from the effects at load and are in
neither. The fold in `frames` decides what to append; `frame_table` answers questions.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import Final

import numpy as np

from .columns import (
    I64,
    NO_ROW,
    AnyColumn,
    AnyGrowing,
    Column,
    Columns,
    concatenate,
    require,
    rows_up_to,
)
from .hash_index import HashIndex
from .names import Names, check_seqs

NO_TIME: Final = -(1 << 63)
"""In a column of times: none given. On disk: never renumber."""

NO_INDEX: Final = -1
"""In a column of chunk indices and counts: none given. On disk: never renumber."""


class ClosingKind(IntEnum):
    """How a frame stopped being current. On disk: never renumber."""

    DELETE = 1
    SUPERSEDE = 2
    WITH_DELETED = 3
    """A frame above it was deleted."""
    WITH_SUPERSEDED = 4
    """A frame above it was superseded."""


class Oddity(IntEnum):
    """What the fold met and passed over. On disk: never renumber."""

    ERASED = 1
    """The payload is gone, so what it said is unknown."""
    UNKNOWN_REFERENCE = 2
    """It names something that is not an earlier frame."""
    ALREADY_CLOSED = 3
    """It closes what was closed before, or supersedes a frame by itself."""


# Bits of the flags column, plain numbers because `|` on an IntFlag takes 1 us. On disk: never
# renumber.
FLAG_ERASED: Final = 1
FLAG_TEXT: Final = 2
FLAG_BLOB: Final = 4
FLAG_EMBEDDING: Final = 8
FLAG_CONTENT_HASH: Final = 16
FLAG_URI: Final = 32

BirthRow = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int, int]
"""One birth: the items of `FrameColumns.births` in order."""


class FrameColumns:
    """Every column of the frames fold, appended by one thread.

    - Row r of all birth columns is one putFrame; ``seq`` ascends with r.
    - Closings are in order of seq; a row is closed at most once, after its birth.
    - Derived columns have a row each; an item is written once, and what is written names a later
      row or closing, which a reader of an earlier state passes over.
    """

    def __init__(self) -> None:
        self.kinds, self.roles, self.scopes = Names(), Names(), Names()
        self.seq, self.recorded, self.created = (Column(np.int64) for _ in range(3))
        self.kind, self.role, self.scope = (Column(np.uint32) for _ in range(3))
        self.parent = Column(np.int64)
        self.chunk_index, self.chunk_count = Column(np.int32), Column(np.int32)
        self.content, self.content_low = Column(np.uint64), Column(np.uint64)
        self.uri, self.uri_low = Column(np.uint64), Column(np.uint64)
        self.flags = Column(np.uint8)
        self.births: tuple[tuple[str, AnyGrowing], ...] = (
            ("births.seq", self.seq),
            ("births.recorded", self.recorded),
            ("births.created", self.created),
            ("births.kind", self.kind),
            ("births.role", self.role),
            ("births.scope", self.scope),
            ("births.parent", self.parent),
            ("births.chunk_index", self.chunk_index),
            ("births.chunk_count", self.chunk_count),
            ("births.content", self.content),
            ("births.content_low", self.content_low),
            ("births.uri", self.uri),
            ("births.uri_low", self.uri_low),
            ("births.flags", self.flags),
        )
        self.closing_seq, self.closing_by = Column(np.int64), Column(np.int64)
        self.closing_row, self.closing_kind = Column(np.uint32), Column(np.uint8)
        self.closings: tuple[tuple[str, AnyGrowing], ...] = (
            ("closings.seq", self.closing_seq),
            ("closings.row", self.closing_row),
            ("closings.kind", self.closing_kind),
            ("closings.by", self.closing_by),
        )
        self.oddity_seq, self.oddity_kind = Column(np.int64), Column(np.uint8)
        self.oddities: tuple[tuple[str, AnyGrowing], ...] = (
            ("oddities.seq", self.oddity_seq),
            ("oddities.kind", self.oddity_kind),
        )
        self._notes: list[tuple[int, Oddity]] = []
        # Derived.
        self.first_child, self.next_sibling = Column(np.uint32), Column(np.uint32)
        self._last_child = Column(np.uint32)
        self.closed_at = Column(np.uint32)
        self.content_index, self.uri_index = HashIndex(), HashIndex()

    # --- appending -------------------------------------------------------------------------------

    def bear(self, rows: Sequence[BirthRow]) -> None:
        """Append births, and link them to their parents."""
        for (_, column), items in zip(self.births, zip(*rows, strict=True), strict=True):
            column.extend(items)
        for seq in self._link(len(rows)):
            self.note(seq, Oddity.UNKNOWN_REFERENCE)

    def note(self, seq: int, oddity: Oddity) -> None:
        """Remember an oddity of event ``seq`` until `keep_notes`."""
        self._notes.append((seq, oddity))

    def keep_notes(self) -> None:
        """Append the oddities of a batch in order of seq: births were folded before closings."""
        if self._notes:
            # Stable: an event's own oddities stay in their order.
            self._notes.sort(key=itemgetter(0))
            self.oddity_seq.extend([seq for seq, _ in self._notes])
            self.oddity_kind.extend([oddity for _, oddity in self._notes])
            self._notes.clear()

    def close(self, row: int, seq: int, kind: ClosingKind, by: int) -> None:
        """Append a closing of an open row; ``by`` is the frame in its place, or 0."""
        self.closed_at.set_once(row, len(self.closing_seq))
        self.closing_seq.extend([seq])
        self.closing_row.extend([row])
        self.closing_kind.extend([kind])
        self.closing_by.extend([by])

    def _link(self, count: int) -> list[int]:
        """Link the last ``count`` rows to their parents; return the seqs whose parent is none."""
        seqs = self.seq.view()
        start = len(seqs) - count
        for column in (self.first_child, self.next_sibling, self._last_child, self.closed_at):
            column.extend(np.full(count, NO_ROW, np.uint32))
        parents = self.parent.view()[start:]
        children = np.flatnonzero(parents)
        if not len(children):
            return []
        wanted = parents[children]
        rows = np.searchsorted(seqs, wanted)
        known = rows < children + start
        known[known] = seqs[rows[known]] == wanted[known]
        self._chain((children + start)[known], rows[known])
        unknown: list[int] = seqs[start:][children[~known]].tolist()
        return unknown

    def _chain(self, children: I64, parents: I64) -> None:
        """Append each child (ascending rows) to the chain of its parent."""
        if not len(children):
            return
        order = np.argsort(parents, kind="stable")
        children, parents = children[order], parents[order]
        same = parents[1:] == parents[:-1]
        self.next_sibling.set_once(children[:-1][same], children[1:][same])
        heads = concatenate([np.ones(1, np.bool_), ~same], np.bool_)
        tails = concatenate([~same, np.ones(1, np.bool_)], np.bool_)
        last = self._last_child.view()[parents[heads]]
        fresh = last == NO_ROW
        self.first_child.set_once(parents[heads][fresh], children[heads][fresh])
        self.next_sibling.set_once(last[~fresh], children[heads][~fresh])
        self._last_child.set_once(parents[tails], children[tails])

    # --- what the fold asks ----------------------------------------------------------------------

    def row_of(self, frame: int, before: int) -> int | None:
        """Return the row of a frame that was put before event ``before``, or None."""
        seqs = self.seq.view()
        row = int(np.searchsorted(seqs, frame))
        if frame < before and row < len(seqs) and seqs[row] == frame:
            return row
        return None

    def is_closed(self, row: int) -> bool:
        return bool(self.closed_at.view()[row] != NO_ROW)

    def below(self, row: int, before: int, *, but: int | None) -> Iterator[int]:
        """Yield the rows below one that were put before event ``before``, parents first.

        Row ``but`` and what is below it are left out.
        """
        first, following = self.first_child.view(), self.next_sibling.view()
        limit = int(np.searchsorted(self.seq.view(), before))
        pending = [row]
        while pending:
            child = int(first[pending.pop()])
            while child < limit:
                if child != but:
                    yield child
                    pending.append(child)
                child = int(following[child])

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects: dict[str, AnyColumn] = {}
        for group in (self.births, self.closings, self.oddities):
            seqs = group[0][1].view().astype(np.int64, copy=False)
            start, end = rows_up_to(seqs, after), rows_up_to(seqs, through)
            effects.update({name: column.view()[start:end] for name, column in group})
        for prefix, names in self._names():
            effects.update(names.effects(prefix, after, through))
        return effects

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        groups = [
            [columns.like(name, column.view()) for name, column in group]
            for group in (self.births, self.closings, self.oddities)
        ]
        for group, strict in zip(groups, (True, False, False), strict=True):
            check_seqs(
                group[0].astype(np.int64, copy=False), after, through, "a seq column", strict=strict
            )
            require(len({len(column) for column in group}) == 1, "its columns differ in length")
        loaded = [names.read(columns, prefix, after, through) for prefix, names in self._names()]
        for (prefix, names), new, codes in zip(self._names(), loaded, groups[0][3:6], strict=True):
            limit = len(names) + len(new.texts)
            require(not len(codes) or int(codes.max()) <= limit, f"{prefix} has no such code")
        self._check_closings(groups[0][0], groups[1])
        for (_, names), new in zip(self._names(), loaded, strict=True):
            names.load(new)
        for kept, group in zip((self.births, self.closings, self.oddities), groups, strict=True):
            for (_, column), items in zip(kept, group, strict=True):
                column.extend(items)
        # The parents that are unknown are among the oddities loaded above.
        self._link(len(groups[0][0]))
        rows = groups[1][1].astype(np.int64)
        first = len(self.closing_seq) - len(rows)
        self.closed_at.set_once(rows, np.arange(first, first + len(rows), dtype=np.uint32))

    def _check_closings(self, seqs: AnyColumn, closings: Sequence[AnyColumn]) -> None:
        """Raise `Corrupt` unless each closing closes an open row after its birth."""
        when, rows, kinds = closings[0], closings[1], closings[2]
        if not len(rows):
            return
        born = concatenate([self.seq.view(), seqs.astype(np.int64)], np.int64)
        require(int(rows.max()) < len(born), "a closing names a row that is not there")
        require(bool((born[rows] < when).all()), "a closing comes before its birth")
        before = rows[rows < len(self.closed_at)]
        open_before = self.closed_at.view()[before] == NO_ROW
        once = len(np.unique(rows)) == len(rows)
        require(once and bool(open_before.all()), "a row is closed twice")
        require(int(kinds.min()) >= 1 and int(kinds.max()) <= 4, "a closing has no such kind")

    def _names(self) -> tuple[tuple[str, Names], ...]:
        return (("kinds", self.kinds), ("roles", self.roles), ("scopes", self.scopes))

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns and indexes, names left out."""
        groups = (*self.births, *self.closings, *self.oddities)
        derived = (self.first_child, self.next_sibling, self._last_child, self.closed_at)
        held = sum(c.size_bytes for _, c in groups) + sum(c.size_bytes for c in derived)
        return held + self.content_index.size_bytes + self.uri_index.size_bytes
