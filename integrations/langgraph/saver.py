# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""`CerataSaver`: the checkpoints of LangGraph's threads as events of a memory.

Owns LangGraph's saver interface, with its async twins. Leaves out the rows and events (`threads`)
and the serializer's checks (`values`). A checkpoint, the writes of a task and a deletion are an
event each, so `basis` names the state of the memory at a checkpoint.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, Final, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from cerata.engine.errors import Corrupt, InvalidInput, NotFound
from cerata.engine.events import EventBody
from cerata.engine.unreadable import UNREADABLE, leave_out
from cerata.memory.batch.writer import acting
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.store import Store, open_store

from ..threads import finished
from .compression import compressed, decompressed
from .events import (
    DropCheckpoints,
    DroppedCheckpoints,
    PutCheckpoint,
    PutWrites,
    TaskWrite,
)
from .pack import ROLE
from .threads import (
    PendingWrite,
    Place,
    Saved,
    ThreadsAt,
    config_of,
    ns_of,
    place_in,
    text_of,
    thread_of,
)
from .values import check_serializer, decoded, decoded_map, encoded

_STRATEGIES: Final = ("keep_latest", "delete")
_COUNTERS: Final = "counters_since_delta_snapshot"
_FETCHED_AT_ONCE: Final = 64
"""Checkpoints that `CerataSaver.alist` reads in a visit of its thread."""

Pending = tuple[str, str, Any]


class CerataSaver(BaseCheckpointSaver[Any]):
    """Keeps the checkpoints of threads in a memory; any thread or task may use it.

    - Reads and writes exactly the scope of its store: other scopes have other threads.
    - Every write is durable on return, and whole or absent after a crash.
    - Deleted checkpoints stay in the log, and in earlier views.
    """

    def __init__(self, store: Store, *, serde: SerializerProtocol | None = None) -> None:
        """Keep the checkpoints in a store.

        Args:
            store: An open store; a `scoped` store for the threads of a tenant or user.
            serde: The serializer of values; by default LangGraph's, which restores LangGraph's and
                LangChain's types, and no others.

        Raises:
            InvalidInput: ``store`` is no store, or the serializer pickles.
        """
        if not isinstance(store, Store):
            raise InvalidInput(
                f"store must be a cerata.Store, not {store!r:.60}",
                remedy="Pass the store that cerata.open returned.",
            )
        if serde is None:
            serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        check_serializer(serde)
        super().__init__(serde=serde)
        self._store = store
        self._writes = acting(store, ROLE)

    @classmethod
    @contextmanager
    def from_conn_string(cls, path: str) -> Iterator["CerataSaver"]:
        """Open a file for the block, and return a saver over it.

        Args:
            path: The file; created if it does not exist.
        """
        with open_store(path) as store:
            yield cls(store)

    @property
    def store(self) -> Store:
        """The memory that keeps the checkpoints."""
        return self._store

    def basis(self, config: RunnableConfig) -> int:
        """Return the seq of a checkpoint: ``store.at(saver.basis(config))`` is the memory then.

        Args:
            config: Names the thread and a checkpoint, by default the newest of the thread.

        Raises:
            NotFound: there is no such checkpoint.
        """
        saved = self._found(self._threads(), config)
        if saved is None:
            raise NotFound(
                f"The thread {thread_of(config)!r} has no such checkpoint",
                remedy="Pass the config of a tuple that get_tuple or list returned.",
            )
        return saved.seq

    # --- reading ---------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint with its writes, or None. Cost: O(log n) and these events.

        Args:
            config: Names the thread and a checkpoint, by default the one with the greatest id.
        """
        threads = self._threads()
        saved = self._found(threads, config)
        return None if saved is None else self._tuple(threads, saved)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the greatest id first, as of the call's first step.

        One that cannot be read is left out, and named by a warning `cerata.UnreadableItem`.

        Args:
            config: The thread, and optionally the namespace and the checkpoint; None means all.
            filter: Names and values that the metadata must have.
            before: Yield ids below that of this config only.
            limit: Most checkpoints to yield; None means all.
        """
        if filter is not None and not isinstance(filter, Mapping):
            raise InvalidInput(
                f"filter must be a dict, not {filter!r:.60}",
                remedy="Pass names and values of the metadata.",
            )
        return islice(self._listed(config, filter or {}, before), limit and max(limit, 0))

    def _listed(
        self,
        config: RunnableConfig | None,
        filters: Mapping[str, Any],
        before: RunnableConfig | None,
    ) -> Iterator[CheckpointTuple]:
        threads = self._threads()
        only = None if config is None else get_checkpoint_id(config)
        end = None if before is None else get_checkpoint_id(before)
        thread = None if config is None else thread_of(config)
        ns = None if config is None else ns_of(config, None)
        for saved in threads.checkpoints(thread, ns):
            checkpoint_id = saved.place.checkpoint_id
            if (only and checkpoint_id != only) or (end and checkpoint_id >= end):
                continue
            try:
                read = self._passing(threads, saved, filters)
            except UNREADABLE as error:
                leave_out(f"Checkpoint {checkpoint_id!r} of thread {saved.place.thread!r}", error)
                continue
            if read is not None:
                yield read

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes to channels since each channel's last stored value, and that value.

        Walks the ancestors of a checkpoint, each once, also if their parents form a circle.

        Args:
            config: Names the checkpoint.
            channels: Names of channels.
        """
        threads = self._threads()
        target = self._found(threads, config)
        collected: dict[str, list[Pending]] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        for saved, body in () if target is None else self._ancestors(threads, target):
            remaining = collected.keys() - seeds.keys()
            if not remaining:
                break
            for pending in reversed(threads.writes(saved.place)):
                if pending.write.channel in remaining:
                    collected[pending.write.channel].append(self._write(pending))
            values = self._checkpoint(saved, body)["channel_values"]
            seeds |= {channel: values[channel] for channel in remaining if channel in values}
        history: dict[str, DeltaChannelHistory] = {}
        for channel, writes in collected.items():
            history[channel] = {"writes": writes[::-1]}
            if channel in seeds:
                history[channel]["seed"] = seeds[channel]
        return history

    # --- writing ---------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; one with the same id is replaced. Durable on return.

        Args:
            config: Names the thread, the namespace and the parent.
            checkpoint: The checkpoint.
            metadata: Its metadata.
            new_versions: Not needed: a checkpoint is stored whole.
        """
        place = Place(thread_of(config), ns_of(config, ""), text_of(checkpoint["id"], "id"))
        # A copy's metadata may name its run by another type than str.
        full = cast("dict[str, Any]", get_checkpoint_metadata(config, metadata))
        encoding, data = encoded(self.serde, checkpoint)
        metadata_encoding, metadata_data = encoded(self.serde, full)
        data, is_compressed = compressed(data)
        run_id = full.get("run_id")
        self._writes.append(
            PutCheckpoint(
                thread=place.thread,
                ns=place.ns,
                checkpoint_id=place.checkpoint_id,
                parent_id=get_checkpoint_id(config),
                run_id=None if run_id is None else str(run_id),
                encoding=encoding,
                checkpoint=data,
                metadata_encoding=metadata_encoding,
                metadata=metadata_data,
                zstd=is_compressed,
            )
        )
        return config_of(place)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task, also before their checkpoint. Durable on return.

        Args:
            config: Names the checkpoint.
            writes: Channels and values.
            task_id: The task.
            task_path: The path of the task, by which writes are ordered.
        """
        place = place_in(config)
        typed = tuple(
            TaskWrite(WRITES_IDX_MAP.get(channel, index), channel, *encoded(self.serde, value))
            for index, (channel, value) in enumerate(writes)
        )
        if typed:
            self._writes.append(
                PutWrites(
                    thread=place.thread,
                    ns=place.ns,
                    checkpoint_id=place.checkpoint_id,
                    task_id=text_of(task_id, "task_id"),
                    task_path=text_of(task_path, "task_path"),
                    writes=typed,
                )
            )

    def delete_thread(self, thread_id: str) -> None:
        """Hide the checkpoints and writes of a thread. The log keeps them.

        Args:
            thread_id: The thread; an unknown thread is no error.
        """
        self._drop_threads([thread_id])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of runs, with their writes. The log keeps them.

        Args:
            run_ids: The runs; unknown runs are no error. Cost: the rows of all checkpoints.
        """
        runs = {text_of(run_id, "run_id") for run_id in _listed(run_ids, "run_ids")}
        self._drop([each for each in self._threads().checkpoints() if each.run_id in runs])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy the checkpoints and writes of a thread in one batch: all or none.

        Args:
            source_thread_id: The thread to copy; an unknown thread copies nothing.
            target_thread_id: The thread to copy to.
        """
        source = text_of(source_thread_id, "source_thread_id")
        target = text_of(target_thread_id, "target_thread_id")
        if source == target:
            return
        copies: dict[int, EventBody] = {}
        threads = self._threads()
        for saved in threads.checkpoints(source):
            body = threads.event(saved)
            if body is not None:
                copies[saved.seq] = _copy_to(target, body)
        for seq, writes in threads.all_write_events(source):
            copies[seq] = _copy_to(target, writes)
        if copies:
            self._writes.append(*[body for _, body in sorted(copies.items())])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Hide checkpoints of threads. The log keeps them.

        Args:
            thread_ids: The threads; unknown threads are no error.
            strategy: "delete" hides all checkpoints. "keep_latest" keeps the newest of each
                namespace, and the ancestors from which its delta channels are rebuilt.

        Raises:
            InvalidInput: no such strategy exists.
        """
        if strategy not in _STRATEGIES:
            raise InvalidInput(
                f"There is no strategy {strategy!r:.60}",
                remedy=f"Pass {' or '.join(map(repr, _STRATEGIES))}.",
            )
        if strategy == "delete":
            self._drop_threads(thread_ids)
            return
        threads = self._threads()
        dropped: list[Saved] = []
        for thread_id in _listed(thread_ids, "thread_ids"):
            by_ns: dict[str, list[Saved]] = {}
            for saved in threads.checkpoints(text_of(thread_id, "thread_id")):
                by_ns.setdefault(saved.place.ns, []).append(saved)
            for newest, *earlier in by_ns.values():
                try:
                    kept = self._needed(threads, newest)
                except UNREADABLE as error:
                    # Its ancestors may be needed, so this namespace keeps them.
                    leave_out(f"Checkpoint {newest.place.checkpoint_id!r}", error)
                    continue
                dropped += [saved for saved in earlier if saved.place not in kept]
        self._drop(dropped)

    def get_next_version(self, current: Any, channel: None = None) -> Any:
        """Return the version after another: numbers count, and SqliteSaver's texts go on.

        Args:
            current: The version, or None for the first.
            channel: Not used.
        """
        if isinstance(current, str):
            number = int(current.partition(".")[0]) + 1
            # The digits after the point tell branches apart that store a channel by its version.
            return f"{number:032}.{0:016}"
        return 1 if current is None else current + 1

    # --- async -----------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await finished(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        tuples = self.list(config, filter=filter, before=before, limit=limit)
        while part := await finished(_next_of, tuples, _FETCHED_AT_ONCE):
            for each in part:
                yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await finished(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await finished(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await finished(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await finished(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await finished(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await finished(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        call = partial(self.get_delta_channel_history, config=config, channels=channels)
        return await finished(call)

    async def abasis(self, config: RunnableConfig) -> int:
        """Return `basis`, awaited."""
        return await finished(self.basis, config)

    # --- below -----------------------------------------------------------------------------------

    def _threads(self) -> ThreadsAt:
        snapshot = snapshot_of(self._store)
        return ThreadsAt(snapshot, self._store.scope)

    def _found(self, threads: ThreadsAt, config: RunnableConfig) -> Saved | None:
        thread, ns = thread_of(config), ns_of(config, "")
        checkpoint_id = get_checkpoint_id(config)
        if checkpoint_id:
            return threads.find(Place(thread, ns, text_of(checkpoint_id, "checkpoint_id")))
        return threads.newest(thread, ns)

    def _passing(
        self, threads: ThreadsAt, saved: Saved, filters: Mapping[str, Any]
    ) -> CheckpointTuple | None:
        """Return a checkpoint whose metadata pass filters, else None."""
        body = threads.event(saved)
        if body is None:
            return None
        metadata = self._metadata(saved, body)
        if any(metadata.get(name) != value for name, value in filters.items()):
            return None
        return self._tuple_of(threads, saved, body, metadata)

    def _tuple(self, threads: ThreadsAt, saved: Saved) -> CheckpointTuple | None:
        body = threads.event(saved)
        if body is None:
            return None
        return self._tuple_of(threads, saved, body, self._metadata(saved, body))

    def _tuple_of(
        self, threads: ThreadsAt, saved: Saved, body: PutCheckpoint, metadata: Mapping[str, Any]
    ) -> CheckpointTuple:
        place = saved.place
        parent = None if not body.parent_id else place._replace(checkpoint_id=body.parent_id)
        return CheckpointTuple(
            config=config_of(place),
            checkpoint=self._checkpoint(saved, body),
            metadata=cast("CheckpointMetadata", metadata),
            parent_config=None if parent is None else config_of(parent),
            pending_writes=[self._write(pending) for pending in threads.writes(place)],
        )

    def _checkpoint(self, saved: Saved, body: PutCheckpoint) -> Checkpoint:
        where = f"event {saved.seq:,}"
        data = decompressed(body.checkpoint, where) if body.zstd else body.checkpoint
        value = decoded_map(self.serde, body.encoding, data, where)
        if not isinstance(value.get("channel_values"), dict):
            raise Corrupt(
                "A checkpoint has no channel_values", where=where, remedy="Delete the checkpoint."
            )
        return cast("Checkpoint", value)

    def _metadata(self, saved: Saved, body: PutCheckpoint) -> dict[str, Any]:
        where = f"event {saved.seq:,}"
        value = decoded_map(self.serde, body.metadata_encoding, body.metadata, where)
        return cast("dict[str, Any]", value)

    def _write(self, pending: PendingWrite) -> Pending:
        write = pending.write
        value = decoded(self.serde, write.encoding, write.value, f"event {pending.seq:,}")
        return pending.task_id, write.channel, value

    def _ancestors(self, threads: ThreadsAt, saved: Saved) -> Iterator[tuple[Saved, PutCheckpoint]]:
        """Yield the ancestors of a checkpoint, the nearest first, each once."""
        seen = {saved.place}
        body = threads.event(saved)
        while body is not None and body.parent_id:
            place = saved.place._replace(checkpoint_id=body.parent_id)
            parent = threads.find(place)
            body = None if parent is None or place in seen else threads.event(parent)
            if parent is not None and body is not None:
                seen.add(place)
                saved = parent
                yield parent, body

    def _needed(self, threads: ThreadsAt, newest: Saved) -> set[Place]:
        """Return the ancestors from which the delta channels of a checkpoint are rebuilt."""
        body = threads.event(newest)
        if body is None:
            return set()
        values = self._checkpoint(newest, body)["channel_values"]
        counters = self._metadata(newest, body).get(_COUNTERS) or {}
        remaining = {channel for channel in counters if channel not in values}
        needed: set[Place] = set()
        for saved, ancestor in self._ancestors(threads, newest) if remaining else ():
            needed.add(saved.place)
            remaining -= self._checkpoint(saved, ancestor)["channel_values"].keys()
            if not remaining:
                break
        return needed

    def _drop_threads(self, thread_ids: Sequence[str]) -> None:
        threads = self._threads()
        names = [text_of(each, "thread_id") for each in _listed(thread_ids, "thread_ids")]
        dropped = tuple(
            DroppedCheckpoints(name, None, None) for name in names if threads.has_any(name)
        )
        if dropped:
            self._writes.append(DropCheckpoints(dropped=dropped))

    def _drop(self, saved: Iterable[Saved]) -> None:
        dropped = tuple(DroppedCheckpoints(*each.place) for each in saved)
        if dropped:
            self._writes.append(DropCheckpoints(dropped=dropped))


def _copy_to(thread: str, body: PutCheckpoint | PutWrites) -> EventBody:
    return msgspec.structs.replace(body, thread=thread)


def _next_of(tuples: Iterator[CheckpointTuple], count: int) -> Sequence[CheckpointTuple]:
    return list(islice(tuples, count))


def _listed(values: object, name: str) -> Sequence[object]:
    """Refuse a text in place of a list of texts, which would be read letter by letter."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{name} must be a list of texts, not {values!r:.60}", remedy=f"Pass {name}=[…]."
        )
    return [*cast("Iterable[object]", values)]
