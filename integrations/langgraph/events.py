"""The events of LangGraph: checkpoints of threads, the writes of their tasks, and deletions.

Owns the bodies. Leaves out their fold (`rows`) and the saver that writes them (`saver`). Values are
bytes of the saver's serializer, with the name of their encoding, and no reader of the log decodes
them.
"""

import msgspec

from cerata.engine.events import EventBody, event
from cerata.engine.words import bytes_text


@event("langgraph.putCheckpoint")
class PutCheckpoint(EventBody, frozen=True, kw_only=True):
    """A checkpoint of a thread, in a namespace; one with the same id takes its place.

    ``parent_id`` is the checkpoint that the thread continued, ``run_id`` the run that made it.
    ``encoding`` is that of ``checkpoint``, ``metadata_encoding`` that of ``metadata``. With
    ``zstd`` the bytes of ``checkpoint`` are compressed.
    """

    thread: str
    ns: str = ""
    checkpoint_id: str
    parent_id: str | None = None
    run_id: str | None = None
    encoding: str
    checkpoint: bytes
    metadata_encoding: str
    metadata: bytes
    zstd: bool = False

    def describe(self) -> str:
        """Return the place of the checkpoint, and its size."""
        place = _place(self.thread, self.ns, self.checkpoint_id)
        return f"{place}, {bytes_text(len(self.checkpoint))}"


class TaskWrite(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A value that a task writes to a channel.

    ``index`` is the place among the writes of the task; that of a special write is negative.
    """

    index: int
    channel: str
    encoding: str
    value: bytes


@event("langgraph.putWrites")
class PutWrites(EventBody, frozen=True, kw_only=True):
    """Writes of a task for the step after a checkpoint, which may follow or never be stored.

    Of two writes of a task with one index, the first counts if the index is not negative, else the
    last.
    """

    thread: str
    ns: str = ""
    checkpoint_id: str
    task_id: str
    task_path: str = ""
    writes: tuple[TaskWrite, ...]

    def describe(self) -> str:
        """Return the place of the writes, and their channels."""
        place = _place(self.thread, self.ns, self.checkpoint_id)
        return f"{place}: {', '.join(write.channel for write in self.writes)}"


class DroppedCheckpoints(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The checkpoints of a thread, and their writes; None stands for all namespaces or ids."""

    thread: str
    ns: str | None
    checkpoint_id: str | None


@event("langgraph.dropCheckpoints")
class DropCheckpoints(EventBody, frozen=True, kw_only=True):
    """Checkpoints are hidden from now on; earlier states keep them."""

    dropped: tuple[DroppedCheckpoints, ...]

    def describe(self) -> str:
        """Return the places of the hidden checkpoints."""
        return ", ".join(_place(each.thread, each.ns, each.checkpoint_id) for each in self.dropped)


def _place(*names: str | None) -> str:
    return "/".join(filter(None, names))
