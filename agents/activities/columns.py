"""The columns of activities: first starts, further starts, ends, calls, used frames, and handoffs.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
that index them. The fold in `projection` decides the rows to append; `reader` reads.
"""

from collections.abc import Iterable
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import Scope
from cerata.projections.columnar.columns import (
    I64,
    U8,
    U32,
    AnyColumn,
    AppendOnly,
    Columns,
    Mask,
    place_of,
    require,
)
from cerata.projections.columnar.hash_index import HashIndex
from cerata.projections.columnar.names import Names
from cerata.projections.columnar.scopes import ScopeNames
from cerata.projections.columnar.tables import LoadedRows, Table, check_codes


class ActivityKind(IntEnum):
    """The kind of an activity. On disk: never renumber."""

    SESSION = 1
    RUN = 2


class Status(IntEnum):
    """How an activity ended. On disk: never renumber."""

    DONE = 1
    FAILED = 2
    LEFT = 3


class CallKind(IntEnum):
    """The kind of a call. On disk: never renumber."""

    TOOL = 1
    INPUT = 2
    MODEL = 3
    FUNCTION = 4
    CLOCK = 5
    RANDOM = 6


class ActivityAnomaly(IntEnum):
    """A reason why the fold skips an event. On disk: never renumber."""

    ERASED = 1
    """The payload was erased, so its content is unknown."""
    UNKNOWN_REFERENCE = 2
    """The event names no earlier first start."""
    ENDED = 3
    """The event ends an ended activity, or resumes an ended run."""
    UNKNOWN_WORD = 4
    """The event has an unknown kind or status."""
    OTHER_SCOPE = 5
    """The event has another scope than its activity."""


ACTIVITY_KINDS: Final = {kind.name.lower(): kind for kind in ActivityKind}
STATUSES: Final = {status.name.lower(): status for status in Status}
CALL_KINDS: Final = {kind.name.lower(): kind for kind in CallKind}

TURN_MAX: Final = 2**32 - 1
"""A larger turn is stored as this."""


class Birth(NamedTuple):
    """A first start: a row of `ActivityColumns.births`."""

    seq: int
    recorded: int
    scope: int
    kind: int
    name: int
    agent: int
    parent: int
    """Seq of the session's first start, or 0."""
    frame: int
    """Seq of the run's frame, or 0."""

    @property
    def identity(self) -> tuple[int, ...]:
        """Scope, kind, name and agent; two open activities with equal identities are the same."""
        return self[2:6]


class Call(NamedTuple):
    """A call: a row of `ActivityColumns.calls`."""

    seq: int
    activity: int
    """The row of the activity."""
    kind: int
    name: int
    digest: int
    """64 bits of the digest."""
    turn: int
    result: int
    """Seq of the first result's frame, or 0."""
    failed: int


class ActivityColumns:
    """Every column of the activities fold, appended by a single thread.

    - Row r of all birth columns is an activity; ``seq`` ascends with r.
    - A further start of an ended session has ``reopens`` 1. An activity is open if it has as many
      of these as ends.
    """

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        self.names = Names("names")
        self.births = Table("activities", strict=True)
        self.seq = self.births.seq
        self.births.column("recorded", np.int64)
        self.scope = self.births.column("scope", np.uint32)
        self.kind = self.births.column("kind", np.uint8)
        self.name = self.births.column("name", np.uint32)
        self.agent = self.births.column("agent", np.uint32)
        self.parent = self.births.column("parent", np.uint64)
        self.births.column("frame", np.uint64)
        self.starts = Table("starts", strict=True)
        self.start_row = self.starts.column("row", np.uint32)
        self.reopens = self.starts.column("reopens", np.uint8)
        self.replays = self.starts.column("replays", np.uint8)
        self.endings = Table("endings", strict=True)
        self.endings.column("recorded", np.int64)
        self.ending_row = self.endings.column("row", np.uint32)
        self.status = self.endings.column("status", np.uint8)
        self.calls = Table("calls", strict=True)
        self.call_row = self.calls.column("activity", np.uint32)
        self.calls.column("kind", np.uint8)
        self.call_name = self.calls.column("name", np.uint32)
        self.digest = self.calls.column("digest", np.uint64)
        self.turn = self.calls.column("turn", np.uint32)
        self.result = self.calls.column("result", np.uint64)
        self.calls.column("failed", np.uint8)
        self.uses = Table("uses")
        self.used_frame = self.uses.column("frame", np.uint64)
        self.handoffs = Table("handoffs", strict=True)
        self.handoff_row = self.handoffs.column("row", np.uint32)
        self.anomalies = Table("oddities", strict=True)
        self.anomalies.column("what", np.uint8)
        # Derived.
        self.by_name = HashIndex()
        self.starts_of = HashIndex()
        self.endings_of = HashIndex()
        self.calls_of = HashIndex()
        self.by_result = HashIndex()
        self.by_used = HashIndex()
        self._ended: set[int] = set()

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope; the order of its names does not matter."""
        return self.scopes.scope_code(scope, seq)

    def mark(self, ended: Iterable[int], reopened: Iterable[int]) -> None:
        """Note the rows that the last step left ended, and those that it left open again."""
        self._ended.difference_update(reopened)
        self._ended.update(ended)

    def share(self, columns: "ActivityColumns", through: int) -> None:
        """Become the activities of other columns up to event ``through``, which stay as are."""
        for table, shared in zip(self._tables, columns._tables, strict=True):
            table.share(shared, through)
        self.scopes.share(columns.scopes, through)
        self.names.share(columns.names, through)
        rows = len(self.births)
        self.by_name.share(columns.by_name, rows)
        self.starts_of.share(columns.starts_of, len(self.starts))
        self.endings_of.share(columns.endings_of, len(self.endings))
        self.calls_of.share(columns.calls_of, len(self.calls))
        self.by_result.share(columns.by_result, len(self.calls))
        self.by_used.share(columns.by_used, len(self.uses))
        self._ended = self._computed_ended()

    def _computed_ended(self) -> set[int]:
        rows = len(self.births)
        return set(
            np.flatnonzero(
                ended_mask(rows, self.ending_row.view(), self.start_row.view(), self.reopens.view())
            ).tolist()
        )

    # --- reading ---------------------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the activity with a first start, or None."""
        return place_of(self.seq.view(), seq)

    def is_ended(self, row: int) -> bool:
        """Return whether a row is ended after the last folded event."""
        return row in self._ended

    def birth(self, row: int) -> Birth:
        return Birth(*self.births.row(row))

    def rows_alike(self, identity: tuple[int, ...]) -> list[int]:
        """Return the rows with an identity, ascending."""
        rows = self.by_name.find(self.name.view(), identity[2])
        return [row for row in rows if self.births.row(row)[2:6] == identity]

    # --- effects ---------------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> tuple[Table, ...]:
        calls = self.calls, self.uses, self.handoffs
        return self.births, self.starts, self.endings, *calls, self.anomalies

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects = self.scopes.effects(after, through)
        effects.update(self.names.effects(after, through))
        for table in self._tables:
            effects.update(table.effects(after, through))
        return effects

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to, without derived columns."""
        return self._effect_columns

    @cached_property
    def _effect_columns(self) -> list[AppendOnly]:
        parts: tuple[Table | Names, ...] = (self.scopes, self.names, *self._tables)
        return [column for part in parts for column in part.effect_columns()]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: `load` computes the derived columns again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` and then leaves the state unchanged."""
        tables = [table.read(columns, after, through) for table in self._tables]
        scopes = self.scopes.read(columns, after, through)
        names = self.names.read(columns, after, through)
        births, starts, endings, calls, uses, handoffs, _ = tables
        check_codes(births["scope"], 1, len(self.scopes) + len(scopes.texts))
        named = len(self.names) + len(names.texts)
        for codes in (births["name"], births["agent"], calls["name"]):
            check_codes(codes, 1, named)
        check_codes(births["kind"], 1, max(ActivityKind))
        check_codes(starts["reopens"], 0, 1)
        check_codes(starts["replays"], 0, 1)
        check_codes(endings["status"], 1, max(Status))
        check_codes(calls["kind"], 1, max(CallKind))
        check_codes(calls["failed"], 0, 1)
        rows = len(self.births) + len(births["seq"])
        for column in (starts["row"], endings["row"], calls["activity"], handoffs["row"]):
            check_codes(column, 0, rows - 1)
        require(bool(np.isin(uses["seq"], calls["seq"]).all()), "a use belongs to no call")
        self._check_ends(rows, starts, endings)
        self.scopes.load(scopes)
        self.names.load(names)
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self._ended = self._computed_ended()

    def _check_ends(self, rows: int, starts: LoadedRows, endings: LoadedRows) -> None:
        """Raise `Corrupt` unless each activity of a chunk ends and reopens in turn."""
        ended = np.zeros(rows, np.bool_)
        ended[list(self._ended)] = True
        changes = [(int(seq), int(row), True) for seq, row in _pairs(endings, endings["seq"])]
        reopened = starts["reopens"] == 1
        pairs = zip(starts["seq"][reopened], starts["row"][reopened], strict=True)
        changes += [(int(seq), int(row), False) for seq, row in pairs]
        for _, row, ends in sorted(changes):
            require(bool(ended[row]) is not ends, "an activity ends or starts again twice")
            ended[row] = ends

    @property
    def size_bytes(self) -> int:
        """Memory of columns and indexes, without names."""
        indexes = (
            self.by_name,
            self.starts_of,
            self.endings_of,
            self.calls_of,
            self.by_result,
            self.by_used,
        )
        size = sum(table.size_bytes for table in self._tables)
        return size + sum(index.size_bytes for index in indexes)


def _pairs(rows: LoadedRows, seqs: AnyColumn) -> Iterable[tuple[int, int]]:
    return zip(seqs.tolist(), rows["row"].tolist(), strict=True)


def ended_mask(rows: int, endings: U32, starts: U32, reopens: U8) -> Mask:
    """Return a mask of the activities that ended once more than they were reopened."""
    ended: I64 = np.bincount(endings, minlength=rows)
    return ended > np.bincount(starts[reopens == 1], minlength=rows)
