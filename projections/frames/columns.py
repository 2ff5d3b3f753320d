"""The columns of frames: births, attributes, embeddings, closings, anomalies, and derived columns.

Owns the effect columns in order of seq, and the derived columns (row to closing, and the children
of a frame), which are in no digest and no chunk, and are rebuilt from the effects at load. Leaves
out the choice of effects (`projection`) and queries (`reader`).
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import Final

import numpy as np
import numpy.typing as npt

from cerata.engine.events import Scope

from ..columnar.columns import (
    I64,
    NO_ROW,
    AnyColumn,
    Column,
    Columns,
    concatenate,
    place_of,
    require,
    rows_up_to,
    run_starts,
)
from ..columnar.hash_index import HashIndex
from ..columnar.names import Names
from ..columnar.scopes import AdmittedCodes, check_texts, scope_text
from ..columnar.tables import ClosableColumns, Table
from .attributes import Attributes, ScopeParts
from .conversations import ConversationIndex
from .timeline import TimelineIndex

NO_INDEX: Final = -1
"""In a column of chunk indices and counts: absent. On disk: never renumber."""


class ClosingKind(IntEnum):
    """How a frame was closed. On disk: never renumber."""

    DELETE = 1
    SUPERSEDE = 2
    WITH_DELETED = 3
    """An ancestor was deleted."""
    WITH_SUPERSEDED = 4
    """An ancestor was superseded."""


class FrameAnomaly(IntEnum):
    """An anomaly that the fold counted and skipped. On disk: never renumber."""

    ERASED = 1
    """The payload was erased."""
    UNKNOWN_REFERENCE = 2
    """The event names an id that is no earlier frame."""
    ALREADY_CLOSED = 3
    """The event closes a closed frame."""
    CYCLE = 4
    """The event supersedes a frame by itself, or by a frame that this frame replaced."""
    OUT_OF_RANGE = 5
    """A number is beyond the range of its column, and counts as absent."""
    UNREAD = 6
    """The body has a later version, or cannot be decoded; a putFrame then counts as erased."""


# Bits of the flags column; plain integers, because `|` on an IntFlag takes 1 us. On disk: never
# renumber.
FLAG_ERASED: Final = 1
FLAG_TEXT: Final = 2
FLAG_BLOB: Final = 4
FLAG_SEARCH_TEXT: Final = 8
FLAG_CONTENT_HASH: Final = 16


class FrameColumns(ClosableColumns):
    """Every column of the frames fold, appended by one thread.

    - Row r of all birth columns is one putFrame; ``seq`` ascends with r.
    - The chain of replacements has no cycle.
    - Derived columns have an item per row, written once. The value names a later row or closing,
      which a reader of an earlier state ignores.
    """

    def __init__(self) -> None:
        self.kinds = Names("kinds")
        self.roles = Names("roles")
        self.scopes = Names("scopes")
        births = Table("births", strict=True)
        self.seq = births.seq
        self.recorded = births.column("recorded", np.int64)
        self.created = births.column("created", np.int64)
        self.kind = births.column("kind", np.uint32, (0, self.kinds))
        self.role = births.column("role", np.uint32, (0, self.roles))
        self.scope = births.column("scope", np.uint32, (0, self.scopes))
        self.parent = births.column("parent", np.int64)
        self.chunk_index = births.column("chunk_index", np.int32)
        self.chunk_count = births.column("chunk_count", np.int32)
        self.content = births.column("content", np.uint64)
        self.content_low = births.column("content_low", np.uint64)
        self.flags = births.column("flags", np.uint8)
        self.attributes = Attributes()
        # Derived: the names and values of each scope; a row is its code.
        self.scope_parts = ScopeParts(self.scopes)
        self.admitted_scopes = AdmittedCodes(self.scopes)
        # A row for each embedding that an event gave to a frame, in a space.
        self.spaces = Names("spaces")
        self.embeddings = Table("embeddings")
        self.embedding_row = self.embeddings.column("row", np.uint32, (0, births))
        self.embedding_space = self.embeddings.column("space", np.uint32, (1, self.spaces))
        closings = Table("closings")
        self.closing_row = closings.column("row", np.uint32, (0, births))
        self.closing_kind = closings.column("kind", np.uint8, (1, max(ClosingKind)))
        self.closing_by = closings.column("by", np.int64)
        self.anomalies = Table("oddities")
        self.anomaly_kind = self.anomalies.column("kind", np.uint8, (1, max(FrameAnomaly)))
        tables = (births, self.embeddings, closings, self.anomalies)
        names = (self.kinds, self.roles, self.scopes, self.spaces)
        super().__init__(births, closings, *tables, *names)
        self._effect_columns += self.attributes.effect_columns()
        # Collected during the fold of a batch; `keep_batch` appends them in order of seq.
        self._notes: list[tuple[int, FrameAnomaly]] = []
        self._embedded: list[tuple[int, int, str]] = []
        self._alike: tuple[int, Sequence[int], str] | None = None
        # Derived.
        self.links = ChildLinks()
        self.content_index = HashIndex()
        self.replaced_index = HashIndex()
        self.timeline = TimelineIndex()
        self.conversations = ConversationIndex()

    # --- appending -------------------------------------------------------------------------------

    def bear(self, *births: npt.ArrayLike) -> None:
        """Append births, the columns of `births` in order, and link them to their parents."""
        count_before = len(self.seq)
        self.births.extend(*births)
        self.attributes.settle()
        self.closed_at.open(len(self.seq) - count_before)
        for seq in self._link(len(self.seq) - count_before):
            self.note(seq, FrameAnomaly.UNKNOWN_REFERENCE)

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope."""
        return self.scopes.code(scope_text(scope), seq)

    def embed(self, row: int, seq: int, space: str) -> None:
        """Collect, for `keep_batch`, the embedding in a space that event ``seq`` gave a row."""
        self._embedded.append((seq, row, space))

    def embed_births(self, first_row: int, seqs: Sequence[int], space: str) -> None:
        """Collect an embedding in one space for each of the rows from ``first_row`` on."""
        self._alike = first_row, seqs, space

    def note(self, seq: int, anomaly: FrameAnomaly) -> None:
        """Collect an anomaly of event ``seq`` for `keep_batch`."""
        self._notes.append((seq, anomaly))

    def keep_batch(self) -> None:
        """Append anomalies and embeddings in order of seq; the fold takes births first."""
        # The sort is stable: the anomalies of an event stay in order.
        if self._notes:
            self._notes.sort(key=itemgetter(0))
            self.anomalies.append(self._notes)
            self._notes.clear()
        alike, self._alike = self._alike, None
        if alike is not None:
            first_row, seqs, space = alike
            rows = range(first_row, first_row + len(seqs))
            if not self._embedded:
                codes = np.full(len(rows), self.spaces.code(space, seqs[0]), np.uint32)
                self.embeddings.extend(seqs, rows, codes)
                return
            self._embedded += [(seq, row, space) for seq, row in zip(seqs, rows, strict=True)]
        if self._embedded:
            self._embedded.sort(key=itemgetter(0))
            # After the sort, because spaces are numbered in order of first use.
            code = self.spaces.code
            self.embeddings.append([(s, row, code(space, s)) for s, row, space in self._embedded])
            self._embedded.clear()

    def close(self, row: int, seq: int, kind: ClosingKind, by: int) -> None:
        """Append a closing of an open row; ``by`` is the replacement frame, or 0."""
        self.closed_at.set_once(row, len(self.closings))
        self.closings.append([(seq, row, kind, by)])

    def _link(self, count: int) -> list[int]:
        """Extend the derived columns by ``count`` rows; return the seqs with an unknown parent."""
        seqs = self.seq.view()
        return self.links.extend(seqs, self.parent.view()[len(seqs) - count :])

    # --- lookups ---------------------------------------------------------------------------------

    def row_of(self, frame: int, before: int) -> int | None:
        """Return the row of a frame that was put before event ``before``, or None."""
        return place_of(self.seq.view(), frame) if 0 < frame < before else None

    def rows_before(self, seq: int) -> int:
        """Return the count of frames put before event ``seq``."""
        return rows_up_to(self.seq.view(), seq - 1)

    def is_closed(self, row: int) -> bool:
        return self.closed_at.is_closed(row)

    def closed_by(self, row: int) -> int | None:
        """Return the frame that replaced a closed row, 0 for none; None for an open row."""
        closing = self.closed_at.item(row)
        return None if closing == NO_ROW else self.closing_by.item(closing)

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        seqs = self.seq.view()
        rows = rows_up_to(seqs, after), rows_up_to(seqs, through)
        parts = super().effects(after, through)
        return {**parts, **self.attributes.effects(rows, after, through)}

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the hashes of the strings of these events."""
        return self.attributes.strings.hashes(after, through)

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` before any change."""
        chunk = self.read(columns, after, through)
        seqs, embeddings = chunk.rows[self.births]["seq"], chunk.rows[self.embeddings]
        born = concatenate([self.seq.view(), seqs.astype(np.int64)], np.int64)
        is_late = (born[embeddings["row"]] <= embeddings["seq"]).all()
        require(bool(is_late), "an embedding comes before its frame")
        rows = len(self.seq), len(born)
        attributes = self.attributes.read(columns, rows, after, through)
        check_texts(chunk.names[self.scopes].texts)
        self.take(chunk)
        self.attributes.load(attributes)
        # The anomalies of the chunk include the unknown parents.
        self._link(len(seqs))

    @property
    def size_bytes(self) -> int:
        """Memory used by the columns and indexes, without names."""
        indexes = (self.content_index, self.replaced_index, self.timeline)
        derived = (self.links, self.attributes, *indexes)
        return self.tables_size_bytes + sum(part.size_bytes for part in derived)


# --- Links from a frame to its children, derived from their parents -------------------------------
#
# Loading a chunk rebuilds the columns; no digest contains them.


class ChildLinks:
    """Linked lists of children.

    - An item is written once, and names a later row, which a reader of an earlier state ignores.
    """

    def __init__(self) -> None:
        self.first_child = Column(np.uint32)
        self.next_sibling = Column(np.uint32)
        self._last_child = Column(np.uint32)

    def extend(self, seqs: I64, parents: I64) -> list[int]:
        """Link the newest rows to their parents; return the seqs with an unknown parent.

        ``seqs`` has an item per row, ``parents`` an item per new row: the parent's seq, or 0.
        """
        start = len(seqs) - len(parents)
        for column in (self.first_child, self.next_sibling, self._last_child):
            column.extend(np.full(len(parents), NO_ROW, np.uint32))
        children = np.flatnonzero(parents)
        if not len(children):
            return []
        targets = parents[children]
        rows = np.searchsorted(seqs, targets)
        exists = rows < children + start
        exists[exists] = seqs[rows[exists]] == targets[exists]
        self._chain((children + start)[exists], rows[exists])
        unknown: list[int] = seqs[start:][children[~exists]].tolist()
        return unknown

    def _chain(self, children: I64, parents: I64) -> None:
        if not len(children):
            return
        order = np.argsort(parents, kind="stable")
        children = children[order]
        parents = parents[order]
        heads = run_starts(parents)
        tails = np.append(heads[1:], True)
        self.next_sibling.set_once(children[:-1][~tails[:-1]], children[1:][~heads[1:]])
        last = self._last_child.view()[parents[heads]]
        fresh = last == NO_ROW
        self.first_child.set_once(parents[heads][fresh], children[heads][fresh])
        self.next_sibling.set_once(last[~fresh], children[heads][~fresh])
        self._last_child.set_once(parents[tails], children[tails])

    def children(self, row: int, row_count: int) -> Iterator[int]:
        """Yield the children of a row among the first ``row_count`` rows, in order."""
        child = self.first_child.item(row)
        while child < row_count:
            yield child
            child = self.next_sibling.item(child)

    @property
    def size_bytes(self) -> int:
        """Memory used by the columns."""
        return sum(c.size_bytes for c in (self.first_child, self.next_sibling, self._last_child))
