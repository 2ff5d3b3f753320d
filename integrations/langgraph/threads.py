# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The threads of one scope at one snapshot: where their checkpoints are, and their events.

Owns look-ups in the rows of `GraphThreads`. Leaves out LangGraph's types (`saver`).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from cerata.engine.events import DEFAULT_SCOPE, Scope
from cerata.memory.snapshot.snapshot import Snapshot

from .events import PutCheckpoint, PutWrites, TaskWrite
from .rows import CHECKPOINT, WRITES, GraphThreads, realm_of


class Place(NamedTuple):
    """The place of a checkpoint."""

    thread: str
    ns: str
    checkpoint_id: str


class Saved(NamedTuple):
    """A checkpoint: its place, the seq of its event, and the id of its run."""

    place: Place
    seq: int
    run_id: str | None


class PendingWrite(NamedTuple):
    """A write in the order in which a run applies the writes of a step."""

    task_path: str
    task_id: str
    position: int
    write: TaskWrite
    seq: int


class ThreadsAt:
    """The threads of exactly one scope; immutable, for any thread."""

    def __init__(self, snapshot: Snapshot, scope: Scope | None) -> None:
        """Read the threads of ``scope``; None is that of the default tenant."""
        self._snapshot = snapshot
        self._realm = realm_of(scope or DEFAULT_SCOPE)
        self._rows = snapshot.state(GraphThreads).rows

    def find(self, place: Place) -> Saved | None:
        row = self._rows.get((*self._realm, CHECKPOINT, *place))
        return None if row is None else Saved(place, *row)

    def newest(self, thread: str, ns: str) -> Saved | None:
        """Return the checkpoint with the greatest id. Cost: O(log n)."""
        return next(self.checkpoints(thread, ns), None)

    def checkpoints(self, thread: str | None = None, ns: str | None = None) -> Iterator[Saved]:
        """Yield the checkpoints of a thread and namespace, or of all; the greatest id first.

        Cost: of a thread and namespace as many rows as are taken, else all rows.
        """
        place = () if thread is None else (thread,) if ns is None else (thread, ns)
        rows = self._rows.range(prefix=(*self._realm, CHECKPOINT, *place), reverse=True)
        saved = (
            Saved(Place(*cast("tuple[str, str, str]", key[3:])), *row)
            for key, row in rows
            if row is not None
        )
        if ns is not None:
            return saved
        return iter(sorted(saved, key=lambda each: each.place.checkpoint_id, reverse=True))

    def event(self, saved: Saved) -> PutCheckpoint | None:
        """Return the event of a checkpoint, or None if its content was erased."""
        event = self._snapshot.event_of(saved.seq)
        return event.body if event is not None and isinstance(event.body, PutCheckpoint) else None

    def write_events(self, place: Place) -> list[tuple[int, PutWrites]]:
        """Return the events of writes for a checkpoint, with their seqs, oldest first."""
        return list(self._write_events(place))

    def all_write_events(self, thread: str) -> Iterator[tuple[int, PutWrites]]:
        """Yield the events of writes of a thread, with their seqs."""
        return self._write_events((thread,))

    def _write_events(self, place: tuple[str, ...]) -> Iterator[tuple[int, PutWrites]]:
        for key, _ in self._rows.range(prefix=(*self._realm, WRITES, *place)):
            event = self._snapshot.event_of(cast("int", key[6]))
            if event is not None and isinstance(event.body, PutWrites):
                yield event.seq, event.body

    def writes(self, place: Place) -> Sequence[PendingWrite]:
        """Return the writes for a checkpoint that count, in the order of a run."""
        counting: dict[tuple[str, int], PendingWrite] = {}
        for seq, body in self.write_events(place):
            for write in body.writes:
                key = body.task_id, write.index
                if write.index < 0 or key not in counting:
                    counting[key] = PendingWrite(
                        body.task_path, body.task_id, write.index, write, seq
                    )
        return sorted(counting.values(), key=lambda pending: pending[:3])

    def has_any(self, thread: str, ns: str | None = None) -> bool:
        """Return whether a thread has a checkpoint or a write."""
        place = (thread,) if ns is None else (thread, ns)
        return any(
            next(self._rows.range(prefix=(*self._realm, kind, *place)), None) is not None
            for kind in (CHECKPOINT, WRITES)
        )
