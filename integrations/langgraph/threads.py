"""The threads of one scope at one snapshot: where their checkpoints are, and their events.

Owns look-ups in the rows of `GraphThreads`. Leaves out LangGraph's types (`saver`).
"""

# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from cerata.engine.errors import InvalidInput
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


# --- Configurations of LangGraph: the place of a checkpoint in a config, and back -----------------


_Default = TypeVar("_Default", str, None)

_REMEDY = "Pass {'configurable': {'thread_id': 'name', …}}."


def _configurable(config: RunnableConfig) -> Mapping[str, Any]:
    values: object = config.get("configurable") if isinstance(config, Mapping) else None
    if not isinstance(values, Mapping):
        raise InvalidInput(f"A config has no 'configurable': {config!r:.60}", remedy=_REMEDY)
    return cast("Mapping[str, Any]", values)


def text_of(value: object, name: str) -> str:
    """Return an id as text; LangGraph accepts whole numbers. Raises `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"{name} must be a text, not {value!r:.60}", remedy="Pass a str.")
    try:
        return str(value).encode().decode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} is not valid Unicode: {error.reason}",
            remedy="Decode it with errors='replace'.",
        ) from error


def thread_of(config: RunnableConfig) -> str:
    """Return the thread of a config. Raises `InvalidInput`."""
    values = _configurable(config)
    if values.get("thread_id") is None:
        raise InvalidInput("A config has no thread_id", remedy=_REMEDY)
    return text_of(values["thread_id"], "thread_id")


def ns_of(config: RunnableConfig, default: _Default) -> str | _Default:
    """Return the namespace of a config, or the default. Raises `InvalidInput`."""
    ns = _configurable(config).get("checkpoint_ns")
    return default if ns is None else text_of(ns, "checkpoint_ns")


def place_in(config: RunnableConfig) -> Place:
    """Return the checkpoint that a config names. Raises `InvalidInput`."""
    checkpoint_id = _configurable(config).get("checkpoint_id")
    if checkpoint_id is None:
        raise InvalidInput(
            "A config has no checkpoint_id", remedy="Pass the config that put returned."
        )
    return Place(thread_of(config), ns_of(config, ""), text_of(checkpoint_id, "checkpoint_id"))


def config_of(place: Place) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": place.thread,
            "checkpoint_ns": place.ns,
            "checkpoint_id": place.checkpoint_id,
        }
    }
