# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""CerataSaver beyond the suite: scopes, deletions, versions, hostile input, and cancellation."""

import asyncio
import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("langgraph.checkpoint.base", reason="needs the extra langgraph")

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

import cerata
from cerata.integrations.langgraph import CerataSaver
from cerata.integrations.langgraph.events import PutCheckpoint, PutWrites

from .savers import chain, checkpoint_of, config_of, saver_in_memory

pytestmark = pytest.mark.langgraph


@pytest.fixture
def saver() -> Iterator[CerataSaver]:
    with saver_in_memory() as made:
        yield made


def ids(saver: CerataSaver, config: Any = None, **named: Any) -> list[str]:
    return [found.checkpoint["id"] for found in saver.list(config, **named)]


# --- the memory at a checkpoint ------------------------------------------------------------------


def test_basis_is_the_memory_at_the_checkpoint(saver: CerataSaver) -> None:
    """What an agent remembered later was not there."""
    saver.store.put_frame("before")
    first, second = chain(saver, "t", [{}, {}])
    saver.store.put_frame("after")
    view = saver.store.at(saver.basis(second))
    assert [frame.text for frame in view.frames()] == ["before"]
    assert saver.basis(config_of("t")) == saver.basis(second) == saver.basis(first) + 1
    assert asyncio.run(saver.abasis(first)) == saver.basis(first)
    with pytest.raises(cerata.NotFound, match="no such checkpoint"):
        saver.basis(config_of("unknown"))


def test_a_file_has_the_thread_after_it_is_opened_again(tmp_path: Any) -> None:
    """The rows come from a checkpoint of the projection, or from a replay."""
    path = str(tmp_path / "a.cera")
    with CerataSaver.from_conn_string(path) as saver:
        configs = chain(saver, "t", [{"n": n} for n in range(700)])
        saver.put_writes(configs[-1], [("c", 1)], "task")
    with CerataSaver.from_conn_string(path) as saver:
        found = saver.get_tuple(config_of("t"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"n": 699}
        assert found.pending_writes == [("task", "c", 1)]
        assert saver.store.verify().ok
        saver.store.upkeep.rebuild()
        assert ids(saver, config_of("t"))[0] == found.checkpoint["id"]


# --- deletions -----------------------------------------------------------------------------------


def test_a_deleted_thread_stays_in_the_past(saver: CerataSaver) -> None:
    """Deletion hides; only erasure removes."""
    chain(saver, "t", [{}])
    basis = saver.store.head.seq
    saver.delete_thread("t")
    assert saver.get_tuple(config_of("t")) is None
    rows = saver.store.at(basis).stream.projection("langgraph").rows
    assert len(rows) == 1
    head = saver.store.head.seq
    saver.delete_thread("t")
    saver.delete_for_runs(["unknown"])
    saver.prune(["unknown"])
    saver.prune(["unknown"], strategy="delete")
    saver.copy_thread("unknown", "t")
    assert saver.store.head.seq == head


def test_writes_before_their_checkpoint_count(saver: CerataSaver) -> None:
    """A run may store them first, as in langgraph issue 8039; the first of a place wins."""
    later = checkpoint_of()
    config = config_of("t", checkpoint_id=later["id"])
    saver.put_writes(config, [("a", 1), ("__error__", "first")], "task")
    saver.put_writes(config, [("a", 2), ("__error__", "last")], "task")
    saver.put(config_of("t"), later, {}, {})
    found = saver.get_tuple(config_of("t"))
    assert found is not None
    assert found.pending_writes == [("task", "__error__", "last"), ("task", "a", 1)]


def test_prune_keeps_the_ancestors_of_delta_channels(saver: CerataSaver) -> None:
    """Without them the channel would be rebuilt as empty, and no error would show it."""
    steps = [{}, {"ch": _DeltaSnapshot(1)}, {}, {}]
    configs = chain(saver, "t", steps, counters_since_delta_snapshot={"ch": (2, 2)})
    for step, config in enumerate(configs):
        saver.put_writes(config, [("ch", step)], f"task-{step}")
    before = saver.get_delta_channel_history(config=configs[-1], channels=["ch"])
    saver.prune(["t"])
    assert len(ids(saver, config_of("t"))) == 3
    assert saver.get_delta_channel_history(config=configs[-1], channels=["ch"]) == before


def test_a_copy_is_one_batch(saver: CerataSaver) -> None:
    """A crash leaves the whole copy or none."""
    config = chain(saver, "t", [{"text": "x" * 20_000}, {}])[-1]
    saver.put_writes(config, [("c", 1)], "task")
    saver.copy_thread("t", "u")
    events = list(saver.store.log())[-3:]
    assert len({event.header.last_seq for event in events}) == 1
    copy = [
        (found.checkpoint, found.metadata, found.pending_writes)
        for found in saver.list(config_of("u"))
    ]
    assert copy == [
        (found.checkpoint, found.metadata, found.pending_writes)
        for found in saver.list(config_of("t"))
    ]


# --- scopes --------------------------------------------------------------------------------------

labels = st.text(st.sampled_from("ab%_/.*\0:"), max_size=3)


@given(st.lists(st.tuples(labels, labels, labels), min_size=1, max_size=6, unique=True))
def test_no_read_sees_another_scope_thread_or_namespace(
    places: list[tuple[str, str, str]],
) -> None:
    """Separators and wildcards in names are letters like others."""
    with cerata.open(":memory:") as store:
        savers = {
            tenant: CerataSaver(store.scoped({"tenant": tenant, "user": "u"}))
            for tenant, _, _ in places
        }
        for tenant, thread, ns in places:
            values = {"place": [tenant, thread, ns]}
            config = savers[tenant].put(config_of(thread, ns), checkpoint_of(values), {}, {})
            savers[tenant].put_writes(config, [("place", [tenant, thread, ns])], "task")
        for tenant, thread, ns in places:
            (found,) = savers[tenant].list(config_of(thread, ns))
            assert found.checkpoint["channel_values"]["place"] == [tenant, thread, ns]
            assert found.pending_writes == [("task", "place", [tenant, thread, ns])]
            mine = {place[1:] for place in places if place[0] == tenant}
            assert len(list(savers[tenant].list(None))) == len(mine)
        assert list(CerataSaver(store).list(None)) == []
        for outer in ({"tenant": places[0][0]}, {"tenant": places[0][0], "user": "v"}):
            assert list(CerataSaver(store.scoped(outer)).list(None)) == []
        tenant, thread, _ = places[0]
        savers[tenant].delete_thread(thread)
        left = {place for place in places if place[:2] != (tenant, thread)}
        assert sum(len(list(each.list(None))) for each in savers.values()) == len(left)


# --- versions ------------------------------------------------------------------------------------


def test_versions_of_sqlite_saver_go_on(saver: CerataSaver) -> None:
    """Imported threads have texts, which sort as their numbers."""
    assert saver.get_next_version(None) == 1
    assert saver.get_next_version(4) == 5
    text = f"{9:032}.0.1234567890123456"
    later = saver.get_next_version(text)
    assert later > text
    assert saver.get_next_version(later) > later
    assert later.startswith(f"{10:032}.")


# --- hostile input -------------------------------------------------------------------------------


@dataclass
class UserType:
    number: int


class Pickles:
    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return "pickle", pickle.dumps(value)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return pickle.loads(data[1])


class Wrapped:
    def __init__(self, serde: Any) -> None:
        self.serde = serde

    dumps_typed = Pickles.dumps_typed
    loads_typed = Pickles.loads_typed


@pytest.mark.parametrize(
    "serde", [JsonPlusSerializer(pickle_fallback=True), pickle, Wrapped(pickle)]
)
def test_a_serializer_that_pickles_is_refused(saver: CerataSaver, serde: Any) -> None:
    """A pickle runs code of its writer when it is read."""
    with pytest.raises(cerata.InvalidInput, match="pickle"):
        CerataSaver(saver.store, serde=serde)


def test_a_pickle_is_neither_written_nor_read(saver: CerataSaver) -> None:
    """A serializer that hides its habit is caught by the name of its encoding."""
    with pytest.raises(cerata.InvalidInput, match="'pickle'"):
        CerataSaver(saver.store, serde=Pickles()).put(config_of("t"), checkpoint_of(), {}, {})
    assert saver.store.head.seq == 0
    for encoding in ("pickle", "pickle+aes"):
        saver.store.append(
            PutCheckpoint(
                thread="t",
                checkpoint_id=encoding,
                encoding=encoding,
                checkpoint=pickle.dumps({}),
                metadata_encoding="msgpack",
                metadata=b"\x80",
            )
        )
        with pytest.raises(cerata.Unsupported, match="pickle"):
            saver.get_tuple(config_of("t"))


def test_a_damaged_zstd_frame_is_corrupt(saver: CerataSaver) -> None:
    """Another program may write the event."""
    saver.store.append(
        PutCheckpoint(
            thread="t",
            checkpoint_id="a",
            encoding="msgpack",
            checkpoint=b"no frame",
            metadata_encoding="msgpack",
            metadata=b"\x80",
            zstd=True,
        )
    )
    with pytest.raises(cerata.Corrupt, match="decompressed"):
        saver.get_tuple(config_of("t"))


REFUSED: list[tuple[str, tuple[Any, ...]]] = [
    ("get_tuple", ({},)),
    ("get_tuple", (None,)),
    ("get_tuple", ({"configurable": {}},)),
    ("get_tuple", (config_of("\ud800"),)),
    ("get_tuple", (config_of(["t"]),)),  # type: ignore[arg-type]
    ("put", (config_of(True), checkpoint_of(), {}, {})),  # type: ignore[arg-type]
    ("put", (config_of("t", 1.5), checkpoint_of(), {}, {})),  # type: ignore[arg-type]
    ("put_writes", (config_of("t"), [("c", 1)], "task")),
    ("put_writes", (config_of("t", checkpoint_id="a"), [("c", 1)], None)),
    ("delete_thread", (None,)),
    ("delete_for_runs", ("run",)),
    ("copy_thread", ("t", b"u")),
    ("prune", ("t",)),
]


@pytest.mark.parametrize(("method", "arguments"), REFUSED)
def test_bad_input_is_refused_and_nothing_is_written(
    saver: CerataSaver, method: str, arguments: tuple[Any, ...]
) -> None:
    """A text in place of a list would name a thread for each letter."""
    chain(saver, "t", [{}])
    head = saver.store.head.seq
    with pytest.raises(cerata.InvalidInput):
        getattr(saver, method)(*arguments)
    with pytest.raises(cerata.InvalidInput):
        saver.prune(["t"], strategy="some")
    with pytest.raises(cerata.InvalidInput):
        saver.list(config_of("t"), filter=["a"])  # type: ignore[arg-type]
    assert saver.store.head.seq == head


def test_another_object_is_no_store() -> None:
    """The async store has other methods; the saver has its own twins."""
    for wrong in (None, "a.cera", object()):
        with pytest.raises(cerata.InvalidInput, match="store must be"):
            CerataSaver(wrong)  # type: ignore[arg-type]


def test_types_of_users_are_restored_only_if_listed(saver: CerataSaver) -> None:
    """A class that the log names is not imported: its data comes back instead."""
    chain(saver, "t", [{"held": UserType(3)}])
    found = saver.get_tuple(config_of("t"))
    assert found is not None
    assert not isinstance(found.checkpoint["channel_values"]["held"], UserType)
    listed = JsonPlusSerializer(allowed_msgpack_modules=[(UserType.__module__, "UserType")])
    found = CerataSaver(saver.store, serde=listed).get_tuple(config_of("t"))
    assert found is not None
    assert found.checkpoint["channel_values"]["held"] == UserType(3)


# --- cancellation --------------------------------------------------------------------------------


def test_a_cancelled_write_ends_before_its_caller(saver: CerataSaver) -> None:
    """Else it would go on behind the next call, as in openai-agents issue 1658."""
    begun, go_on = threading.Event(), threading.Event()
    put = saver.put

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(10)
        return put(*arguments)

    saver.put = slow  # type: ignore[method-assign, assignment]

    async def cancelled() -> None:
        task = asyncio.create_task(saver.aput(config_of("t"), checkpoint_of(), {}, {}))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert saver.store.head.seq == 1

    asyncio.run(cancelled())


def test_log_lists_the_events_by_type(saver: CerataSaver) -> None:
    """Other readers need no LangGraph."""
    config = chain(saver, "t", [{}])[0]
    saver.put_writes(config, [("c", 1)], "task")
    bodies = [event.body for event in saver.store.log()]
    assert [type(body) for body in bodies] == [PutCheckpoint, PutWrites]
