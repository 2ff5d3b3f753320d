# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Savers of the tests: chains of checkpoints, and a saver whose async methods are the sync ones."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langgraph.checkpoint.base.id import uuid6

import cerata
from cerata.integrations.langgraph import CerataSaver


class SyncSaver(CerataSaver):
    """Runs a suite for async savers over the sync methods."""

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def alist(self, config: Any, **named: Any) -> AsyncIterator[Any]:
        for found in self.list(config, **named):
            yield found

    async def aput(self, *arguments: Any) -> Any:
        return self.put(*arguments)

    async def aput_writes(self, *arguments: Any, **named: Any) -> None:
        self.put_writes(*arguments, **named)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)

    async def aget_delta_channel_history(self, **named: Any) -> Any:
        return self.get_delta_channel_history(**named)


@contextmanager
def saver_in_memory(kind: type[CerataSaver] = CerataSaver) -> Iterator[CerataSaver]:
    """Return a saver over an empty memory, which must verify at the end."""
    with cerata.open(":memory:") as store:
        yield kind(store)
        assert store.verify().ok


def config_of(thread: str, ns: str = "", checkpoint_id: str | None = None) -> Any:
    config: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint_id is not None:
        config["checkpoint_id"] = checkpoint_id
    return {"configurable": config}


def checkpoint_of(values: Mapping[str, Any] | None = None, checkpoint_id: str = "") -> Any:
    values = dict(values or {})
    return {
        "v": 1,
        "id": checkpoint_id or str(uuid6(clock_seq=-1)),
        "ts": "2026-11-26T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1),
        "versions_seen": {},
        "updated_channels": None,
    }


def chain(
    saver: CerataSaver, thread: str, steps: Sequence[Mapping[str, Any]], **metadata: Any
) -> list[Any]:
    """Put a checkpoint for each step, each the parent of the next; return their configs."""
    configs: list[Any] = []
    config = config_of(thread)
    for step, values in enumerate(steps):
        config = saver.put(
            config, checkpoint_of(values), {"source": "loop", "step": step, **metadata}, {}
        )
        configs.append(config)
    return configs
