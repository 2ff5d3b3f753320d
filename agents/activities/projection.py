"""The fold of activities: sessions and runs of agents, and their calls.

Owns the handled events and their effects. Leaves out the content of arguments and results, which
readers take from the events.

Rules of the fold, which never fails:

- An event of an activity has the scope of the activity; another scope is an anomaly.
- A start without ``resumes`` that equals an open activity, in scope, kind, agent and name, is a
  further start of that activity.
- A further start reopens an ended session, never an ended run.
- The end of an ended activity is an anomaly; a call of one counts.
- An event with an unknown kind or status, or a reference to no first start, is an anomaly.
- A recall belongs to an activity only if it names one. It shows the handoff of the session's thread
  if its blocks list that.
"""

from typing import ClassVar, Final

from cerata.engine.events import Erased, EventBody, RecallContext
from cerata.projections.core.column_fold import ForkableFold
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.core.projection import FoldedEvent

from .columns import (
    ACTIVITY_KINDS,
    CALL_KINDS,
    STATUSES,
    TURN_MAX,
    ActivityAnomaly,
    ActivityColumns,
    ActivityKind,
    Birth,
    Call,
)
from .events import EndActivity, RecordCall, StartActivity
from .reader import Activities

_KINDS: Final[tuple[type[EventBody], ...]] = (
    *(StartActivity, EndActivity, RecordCall),
    RecallContext,
)
HANDOFF_BLOCK: Final = "handoff"
"""The block of a context that shows the handoff of a thread."""

_DIGEST_SIZE: Final = 8


class ActivitiesProjection(ForkableFold[ActivityColumns]):
    """Folds activities and their calls into columns."""

    name: ClassVar[str] = "activities"
    version: ClassVar[int] = 2
    drafted: ClassVar[frozenset[str]] = frozenset(kind.wire_name for kind in _KINDS)

    def __init__(self) -> None:
        super().__init__(ActivityColumns())
        self._activities: Activities | None = None

    def snapshot(self) -> Activities:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._activities is None or self._activities.seq != self.seq:
            self._activities = Activities(self._columns, self.seq)
        return self._activities

    def _fold(self, events: EventBatch) -> None:
        handled = events.of_types(self.drafted)
        if not handled:
            return
        batch = _Batch(self._columns)
        for event in handled:
            body = event.body
            if event.type == RecallContext.wire_name:
                # Most recalls, and perhaps an erased one, belong to no activity.
                if isinstance(body, RecallContext) and body.activity is not None:
                    batch.show(event, body, self._scope_code(event.scope, event.seq))
                continue
            if isinstance(body, Erased):
                batch.skip(event, ActivityAnomaly.ERASED)
                continue
            scope = self._scope_code(event.scope, event.seq)
            if isinstance(body, StartActivity):
                batch.start(event, body, scope)
            elif isinstance(body, EndActivity):
                batch.end(event, body, scope)
            elif isinstance(body, RecordCall):
                batch.call(event, body, scope)
        batch.keep()


class _Batch:
    """The effects of a step, before they are appended to the columns."""

    def __init__(self, columns: ActivityColumns) -> None:
        self._columns = columns
        self._first_row = len(columns.births)
        self._births: list[Birth] = []
        self._starts: list[tuple[int, int, int, int]] = []
        self._endings: list[tuple[int, int, int, int]] = []
        self._calls: list[Call] = []
        self._uses: list[tuple[int, int]] = []
        self._handoffs: list[tuple[int, int]] = []
        self._anomalies: list[tuple[int, int]] = []
        self._rows: dict[int, int] = {}
        """The rows of this step's activities, by seq."""
        self._alike: dict[tuple[int, ...], int] = {}
        """The last row of this step with each identity."""
        self._ended: dict[int, bool] = {}
        """The state after this step of the rows that it ended or reopened: True if ended."""

    def skip(self, event: FoldedEvent, anomaly: ActivityAnomaly) -> None:
        self._anomalies.append((event.seq, anomaly))

    def start(self, event: FoldedEvent, body: StartActivity, scope: int) -> None:
        kind = ACTIVITY_KINDS.get(body.kind)
        if kind is None:
            self.skip(event, ActivityAnomaly.UNKNOWN_WORD)
        elif body.resumes is not None:
            row = self._named(event, body.resumes, scope)
            if row is not None:
                self._resume(event, row, replays=body.replays)
        else:
            names, seq = self._columns.names, event.seq
            parent, frame = _earlier(body.parent, seq), _earlier(body.frame, seq)
            agent, name = names.code(body.agent, seq), names.code(body.name, seq)
            birth = Birth(seq, event.recorded, scope, kind, name, agent, parent, frame)
            row = self._open_alike(birth)
            if row is not None:
                self._resume(event, row, replays=body.replays)
                return
            row = self._first_row + len(self._births)
            self._births.append(birth)
            self._rows[seq] = self._alike[birth.identity] = row

    def _resume(self, event: FoldedEvent, row: int, *, replays: bool) -> None:
        reopens = self._is_ended(row)
        if reopens and self._kind(row) == ActivityKind.RUN:
            self.skip(event, ActivityAnomaly.ENDED)
            return
        self._starts.append((event.seq, row, int(reopens), int(replays)))
        if reopens:
            self._ended[row] = False

    def end(self, event: FoldedEvent, body: EndActivity, scope: int) -> None:
        status = STATUSES.get(body.status)
        if status is None:
            self.skip(event, ActivityAnomaly.UNKNOWN_WORD)
            return
        row = self._named(event, body.activity, scope)
        if row is None:
            return
        if self._is_ended(row):
            self.skip(event, ActivityAnomaly.ENDED)
            return
        self._endings.append((event.seq, event.recorded, row, status))
        self._ended[row] = True

    def call(self, event: FoldedEvent, body: RecordCall, scope: int) -> None:
        kind = CALL_KINDS.get(body.kind)
        if kind is None:
            self.skip(event, ActivityAnomaly.UNKNOWN_WORD)
            return
        row = self._named(event, body.activity, scope)
        if row is None:
            return
        seq = event.seq
        digest = int.from_bytes(body.digest[:_DIGEST_SIZE], "little")
        self._calls.append(
            Call(
                seq,
                row,
                kind,
                self._columns.names.code(body.name, seq),
                digest,
                min(max(body.turn, 0), TURN_MAX),
                _earlier(body.results[0], seq) if body.results else 0,
                int(body.error is not None),
            )
        )
        frames = {frame for frame in body.used if 0 < frame < seq}
        self._uses += [(seq, frame) for frame in sorted(frames)]

    def show(self, event: FoldedEvent, body: RecallContext, scope: int) -> None:
        assert body.activity is not None
        row = self._named(event, body.activity, scope)
        if row is not None and HANDOFF_BLOCK in body.blocks:
            self._handoffs.append((event.seq, row))

    def _named(self, event: FoldedEvent, activity: int, scope: int) -> int | None:
        """Return the row of the activity that an event names, or None after an anomaly."""
        row = self._rows.get(activity)
        if row is None and 0 < activity < event.seq:
            row = self._columns.row_of(activity)
        if row is None:
            self.skip(event, ActivityAnomaly.UNKNOWN_REFERENCE)
            return None
        if self._birth(row).scope != scope:
            self.skip(event, ActivityAnomaly.OTHER_SCOPE)
            return None
        return row

    def _open_alike(self, birth: Birth) -> int | None:
        rows = self._columns.rows_alike(birth.identity)
        rows += [self._alike[birth.identity]] if birth.identity in self._alike else []
        return next((row for row in reversed(rows) if not self._is_ended(row)), None)

    def _birth(self, row: int) -> Birth:
        place = row - self._first_row
        return self._births[place] if place >= 0 else self._columns.birth(row)

    def _kind(self, row: int) -> int:
        return self._birth(row).kind

    def _is_ended(self, row: int) -> bool:
        ended = self._ended.get(row)
        return self._columns.is_ended(row) if ended is None else ended

    def keep(self) -> None:
        """Append the effects to the columns."""
        columns = self._columns
        columns.births.append(self._births)
        columns.starts.append(self._starts)
        columns.endings.append(self._endings)
        columns.calls.append(self._calls)
        columns.uses.append(self._uses)
        columns.handoffs.append(self._handoffs)
        columns.anomalies.append(self._anomalies)
        columns.mark(
            [row for row, ended in self._ended.items() if ended],
            [row for row, ended in self._ended.items() if not ended],
        )


def _earlier(seq: int | None, before: int) -> int:
    """Return a reference to an event before ``before``, or 0."""
    return seq if seq is not None and 0 < seq < before else 0
