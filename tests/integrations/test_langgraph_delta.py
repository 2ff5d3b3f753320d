# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The contract of delta channels: nine tests as upstream's, for async and for sync methods.

The cases are those of langgraph's ``test_delta_channel_history``, which the released suite lacks.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.base", reason="needs the extra langgraph")

from langgraph.checkpoint.serde.types import _DeltaSnapshot

from cerata.integrations.langgraph import CerataSaver

from .savers import SyncSaver, chain, saver_in_memory

pytestmark = pytest.mark.langgraph


@pytest.fixture(params=[CerataSaver, SyncSaver])
def saver(request: pytest.FixtureRequest) -> Iterator[CerataSaver]:
    with saver_in_memory(request.param) as made:
        yield made


def made(saver: CerataSaver, snapshots: Mapping[int, Mapping[str, Any]], count: int) -> list[Any]:
    """Return a chain with stored values at some steps, and a write of each step to "ch"."""
    configs = chain(saver, "t", [snapshots.get(step, {}) for step in range(count)])
    for step, config in enumerate(configs):
        if step not in snapshots:
            saver.put_writes(config, [("ch", step)], f"task-{step}")
    return configs


def history(saver: CerataSaver, config: Any, *channels: str) -> Mapping[str, Any]:
    call = saver.aget_delta_channel_history(config=config, channels=channels)
    return asyncio.run(call)


def values(entry: Mapping[str, Any]) -> Sequence[Any]:
    return [value for _, _, value in entry["writes"]]


def test_history_returns_writes_oldest_first(saver: CerataSaver) -> None:
    """A reducer applies them in this order."""
    configs = made(saver, {0: {"ch": _DeltaSnapshot(0)}}, 5)
    assert values(history(saver, configs[-1], "ch")["ch"]) == [1, 2, 3]


def test_history_seed_is_nearest_snapshot(saver: CerataSaver) -> None:
    """Writes before the nearest stored value are in it already."""
    snapshots = {0: {"ch": _DeltaSnapshot(0)}, 3: {"ch": _DeltaSnapshot(3)}}
    entry = history(saver, made(saver, snapshots, 6)[-1], "ch")["ch"]
    assert (entry["seed"].value, values(entry)) == (3, [4])


def test_history_excludes_target_pending_writes(saver: CerataSaver) -> None:
    """They belong to the next step."""
    configs = made(saver, {0: {"ch": _DeltaSnapshot(0)}}, 3)
    saver.put_writes(configs[-1], [("ch", "extra")], "task")
    assert values(history(saver, configs[-1], "ch")["ch"]) == [1]


def test_history_multi_channel(saver: CerataSaver) -> None:
    """Each channel ends at its own stored value, with the writes beside that value."""
    snapshots = [{}, {"a": _DeltaSnapshot("a")}, {}, {"b": _DeltaSnapshot("b")}, {}]
    configs = chain(saver, "t", snapshots)
    for step, config in enumerate(configs):
        saver.put_writes(config, [("a", step), ("b", step)], f"task-{step}")
    entries = history(saver, configs[-1], "a", "b")
    assert [values(entries[name]) for name in "ab"] == [[1, 2, 3], [3]]
    assert [entries[name]["seed"].value for name in "ab"] == ["a", "b"]


def test_history_empty_channels_returns_empty(saver: CerataSaver) -> None:
    """No channel, no entry."""
    assert history(saver, made(saver, {0: {"ch": _DeltaSnapshot(0)}}, 3)[-1]) == {}


def test_history_walk_to_root_no_seed(saver: CerataSaver) -> None:
    """Without a stored value a channel starts empty."""
    entry = history(saver, made(saver, {}, 4)[-1], "ch")["ch"]
    assert "seed" not in entry
    assert values(entry) == [0, 1, 2]


def test_history_migration_plain_value_as_seed(saver: CerataSaver) -> None:
    """A thread from before its channel became a delta channel has a plain value."""
    entry = history(saver, made(saver, {1: {"ch": [10, 20]}}, 4)[-1], "ch")["ch"]
    assert (entry["seed"], values(entry)) == ([10, 20], [2])


def test_history_orders_parallel_writes_by_task_path(saver: CerataSaver) -> None:
    """A task's id is a hash of its path, so the two orders disagree."""
    configs = made(saver, {0: {"ch": _DeltaSnapshot(0)}}, 3)
    saver.put_writes(configs[1], [("ch", "second")], "a", "~pull, 02")
    saver.put_writes(configs[1], [("ch", "first")], "z", "~pull, 01")
    assert values(history(saver, configs[-1], "ch")["ch"]) == [1, "first", "second"]


def test_history_orders_pathless_writes_first(saver: CerataSaver) -> None:
    """Input has no path, and a run applies it first."""
    configs = made(saver, {0: {"ch": _DeltaSnapshot(0)}}, 3)
    saver.put_writes(configs[1], [("ch", "node")], "a", "~pull, a")
    saver.put_writes(configs[1], [("ch", "input")], "z")
    assert values(history(saver, configs[-1], "ch")["ch"]) == [1, "input", "node"]


def test_parents_in_a_circle_end_the_walk(saver: CerataSaver) -> None:
    """A checkpoint that is put again below its descendant is its own ancestor."""
    configs = made(saver, {}, 3)
    first = configs[0]["configurable"]["checkpoint_id"]
    tuple_of_first = saver.get_tuple(configs[0])
    assert tuple_of_first is not None
    assert tuple_of_first.checkpoint["id"] == first
    saver.put(configs[-1], tuple_of_first.checkpoint, tuple_of_first.metadata, {})
    assert values(history(saver, configs[-1], "ch")["ch"]) == [0, 1]
