# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""CerataStore: the cases of upstream's store tests, isolation, and hostile input.

Each group names the upstream tests that it covers (langgraph-checkpoint 4.3.2 ``test_store.py``,
langgraph-checkpoint-sqlite 3.1.2 ``test_store.py``, ``test_async_store.py``, ``test_ttl.py``).
Left out, since they test no store or another store's inside:

- ``AsyncBatchedBaseStore``: test_async_batch_store*, test_dedupe_ops*, test_no_running_loop,
  test_large_batches_async, test_invalid_namespace_only_fails_its_own_call,
  test_sync_methods_reject_invalid_namespace_labels (of AsyncSqliteStore's batching).
- Functions of the base package: test_get_text_at_path*, test_validate_op_namespace*.
- SQL: test_nonnull_migrations, test_escape_glob_literal, test_namespace_match_pattern,
  test_list_namespaces_prefix_uses_indexable_condition.
"""

import asyncio
import math
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("langgraph.store.base", reason="needs the extra langgraph")

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.integrations.langgraph import CerataStore

from ..clocks import StandingClock

pytestmark = pytest.mark.langgraph

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def embed(texts: Any) -> list[list[float]]:
    """Counts of letters: texts of the same letters are near."""
    return [[float(text.count(letter)) for letter in LETTERS] for text in texts]


async def embed_later(texts: Any) -> list[list[float]]:
    return embed(texts)


INDEX: dict[str, Any] = {"dims": len(LETTERS), "embed": embed, "fields": ["text"]}
MINUTE = 60_000_000


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(1_760_000_000_000_000)


@pytest.fixture
def memory(clock: StandingClock) -> Iterator[cerata.Store]:
    with cerata.open(
        ":memory:", environment=Environment(storage=MemoryStorage(), clock=clock)
    ) as store:
        yield store
        assert store.verify().ok


@pytest.fixture
def store(memory: cerata.Store) -> CerataStore:
    return CerataStore(memory, index=INDEX)


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


# --- operations: test_batch_*, test_abatch_order, test_basic_store_*, test_search*, test_non_ascii


@pytest.mark.parametrize("is_async", [False, True])
def test_a_batch_reads_before_it_writes_and_the_last_put_counts(
    store: CerataStore, is_async: bool
) -> None:
    """Results come in the order of the operations; all puts are one batch."""
    store.put(("n",), "old", {"v": 1})
    ops = [
        PutOp(("n",), "new", {"v": 1}),
        GetOp(("n",), "old"),
        GetOp(("n",), "new"),
        PutOp(("n",), "new", {"v": 2}),
        PutOp(("n",), "old", None),
        SearchOp(("n",)),
        ListNamespacesOp(),
    ]
    results = asyncio.run(store.abatch(ops)) if is_async else store.batch(ops)
    assert results[0] is results[2] is results[3] is results[4] is None
    assert isinstance(results[1], object)
    assert keys([results[1]]) == ["old"]
    assert keys(results[5]) == ["old"]
    assert results[6] == [("n",)]
    assert store.get(("n",), "old") is None
    found = store.get(("n",), "new")
    assert found is not None
    assert found.value == {"v": 2}
    assert len({event.header.last_seq for event in list(store.store.log())[-2:]}) == 1


def test_an_item_keeps_its_creation_and_moves_its_update(
    store: CerataStore, clock: StandingClock
) -> None:
    """Search returns the newest update first."""
    store.put(("n",), "first", {"v": 1})
    clock.time_us += MINUTE
    store.put(("n",), "second", {"v": 1})
    clock.time_us += MINUTE
    store.put(("n",), "first", {"v": 2})
    found = store.get(("n",), "first")
    assert found is not None
    assert found.updated_at - found.created_at == timedelta(minutes=2)
    assert keys(store.search(("n",))) == ["first", "second"]
    assert keys(store.search(("n",), limit=1, offset=1)) == ["second"]
    assert keys(store.search(("n",), limit=0)) == []
    store.delete(("n",), "first")
    store.delete(("n",), "none")
    assert keys(store.search(())) == ["second"]


def test_text_of_any_language_is_found(store: CerataStore) -> None:
    """Keys, labels and values are Unicode."""
    value = {"text": "这是中文 🚀 é", "none": None, "list": [1, "b", {"c": 0.5}]}
    store.put(("文", "é/#?"), "клю ч#1//", value)
    found = store.get(("文", "é/#?"), "клю ч#1//")
    assert found is not None
    assert (found.namespace, found.key, found.value) == (("文", "é/#?"), "клю ч#1//", value)


# --- namespaces: test_list_namespaces*, *_segment_boundary, *wildcard*, *case*, *newline* ---------


def test_namespaces_are_listed_by_prefix_suffix_and_wildcard(
    memory: cerata.Store, store: CerataStore
) -> None:
    """A star is exactly one label."""
    for labels in (("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z",)):
        store.put(labels, "k", {"v": 1})
        store.put(labels, "k2", {"v": 1})
    assert store.list_namespaces() == [("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z",)]
    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(suffix=("*", "d")) == [("a", "b", "d")]
    assert store.list_namespaces(prefix=("*", "*")) == store.list_namespaces(prefix=("a",))
    assert store.list_namespaces(prefix=("a",), suffix=("d",)) == [("a", "b", "d")]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("z",)]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b", "d"), ("a", "x", "c")]
    store.delete(("z",), "k")
    store.delete(("z",), "k2")
    assert ("z",) not in store.list_namespaces()
    assert CerataStore(memory.scoped({"tenant": "none"})).list_namespaces() == []


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("us", "u"),
        ("users", "user"),
        ("a_c", "abc"),
        ("a%", "ab"),
        ("A", "a"),
        ("a\n", "a"),
        ("a*", "a"),
    ],
)
def test_a_prefix_ends_at_a_label_and_letters_are_literal(
    store: CerataStore, stored: str, asked: str
) -> None:
    """A prefix as text reached the neighbour's items in CVE-2026-71433."""
    store.put((stored,), "k", {"v": 1})
    store.put((stored, "below"), "k", {"v": 1})
    assert store.search((asked,)) == []
    assert store.list_namespaces(prefix=(asked,)) == []
    assert len(store.search((stored,))) == 2
    assert store.get((asked,), "k") is None


REFUSED_NAMESPACES: list[tuple[Any, ...]] = [("a.b",), ("",), ("a", 1), ("a\0",)]


@pytest.mark.parametrize("namespace", REFUSED_NAMESPACES)
def test_an_invalid_namespace_is_refused_in_every_operation(
    store: CerataStore, namespace: Any
) -> None:
    """Operations that bypass `put` are checked, too; an empty prefix and a star are valid."""
    ops = [
        GetOp(namespace, "k"),
        PutOp(namespace, "k", {"v": 1}),
        SearchOp(namespace),
        ListNamespacesOp((MatchCondition("prefix", namespace),)),
    ]
    for op in ops:
        for run in (store.batch, lambda each: asyncio.run(store.abatch(each))):
            with pytest.raises(InvalidNamespaceError):
                run([PutOp(("valid",), "k", {"v": 1}), op])
    assert store.store.head.seq == 0
    assert store.batch([SearchOp(()), ListNamespacesOp((MatchCondition("prefix", ("*",)),))]) == [
        [],
        [],
    ]
    for wrong in ((), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(wrong, "k", {"v": 1})


labels = st.lists(
    st.text(st.sampled_from("ab%_/*#?:\n "), min_size=1, max_size=3), min_size=1, max_size=3
)
places = st.tuples(
    st.sampled_from(["t", "t2", "%"]),
    labels.map(tuple),
    st.text(st.sampled_from("a/#%.*\0"), max_size=3),
)


@given(st.lists(places, min_size=1, max_size=5, unique=True))
def test_no_read_sees_another_scope_namespace_or_key(
    drawn: list[tuple[str, tuple[str, ...], str]],
) -> None:
    """By every read, with and without vectors; narrower and wider scopes have no items."""
    with cerata.open(":memory:") as memory:
        stores = {
            tenant: CerataStore(memory.scoped({"tenant": tenant, "user": "u"}), index=INDEX)
            for tenant, _, _ in drawn
        }
        for tenant, namespace, key in drawn:
            stores[tenant].put(namespace, key, {"text": "tea", "place": [tenant, *namespace, key]})
        for tenant, namespace, key in drawn:
            mine = [place[1:] for place in drawn if place[0] == tenant]
            for prefix in {(), namespace, namespace[:1], ("a",)}:
                expected = {place for place in mine if place[0][: len(prefix)] == prefix}
                for query in (None, "tea"):
                    found = stores[tenant].search(prefix, query=query, limit=100)
                    assert {(item.namespace, item.key) for item in found} == expected
                    assert len(found) == len(expected)
                    assert all(
                        item.value["place"] == [tenant, *item.namespace, item.key] for item in found
                    )
            item = stores[tenant].get(namespace, key)
            assert item is not None
            assert item.value["place"] == [tenant, *namespace, key]
            assert stores[tenant].list_namespaces() == sorted({place[0] for place in mine})
        tenant = drawn[0][0]
        for scope in ({"tenant": tenant}, {"tenant": tenant, "user": "v"}, {"tenant": "else"}):
            foreign = CerataStore(memory.scoped(scope), index=INDEX)
            assert foreign.search((), query="tea") == foreign.search(()) == []
            assert foreign.list_namespaces() == []
            assert foreign.get(*drawn[0][1:]) is None


# --- filters: test_*_filter*, test_sql_injection*, test_numeric_filter_safety ---------------------


def test_filters_compare_exactly(store: CerataStore) -> None:
    """Beyond 64 bits, with infinities and NaN; True is not 1; a path leads into maps."""
    for number in (10, 20, 30):
        store.put(
            ("n",), f"{number}", {"price": number, "flag": number == 10, "a": {"b-c": number}}
        )
    store.put(("n",), "none", {"list": [1, 2], "name": "O'Brien"})
    every = ["none", "30", "20", "10"]
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"price": 20}, ["20"]),
        ({"price": {"$eq": 20.0}}, ["20"]),
        ({"price": {"$ne": 20}}, ["none", "30", "10"]),
        ({"price": {"$gt": 10, "$lt": 30}}, ["20"]),
        ({"price": {"$gte": -math.inf}}, ["30", "20", "10"]),
        ({"price": {"$lte": math.inf}}, ["30", "20", "10"]),
        ({"price": {"$lt": 10**100}}, ["30", "20", "10"]),
        ({"price": {"$eq": math.nan}}, []),
        ({"price": {"$gt": math.nan}}, []),
        ({"price": {"$gt": "1"}}, []),
        ({"price": None}, ["none"]),
        ({"price": {"$ne": None}}, ["30", "20", "10"]),
        ({"flag": True}, ["10"]),
        ({"flag": 1}, []),
        ({"flag": np.True_}, ["10"]),
        ({"price": np.int64(20)}, ["20"]),
        ({"price": {"$gt": np.float32(20)}}, ["30"]),
        ({"flag": {"$ne": np.True_}}, ["none", "30", "20"]),
        ({"flag": False}, ["30", "20"]),
        ({"a.b-c": 30}, ["30"]),
        ({"a": {"b-c": {"$gte": 20}}}, ["30", "20"]),
        ({"a": {"b-c": 20}}, ["20"]),
        ({"list": [1, 2]}, ["none"]),
        ({"list": [1]}, []),
        ({"name": "O'Brien"}, ["none"]),
        ({"name": "x' OR '1'='1"}, []),
        ({}, every),
    ]
    for filters, expected in cases:
        assert keys(store.search(("n",), filter=filters)) == expected, filters


@pytest.mark.parametrize("key", ["access') = 'public' OR '1'='1", "", "a b", "$eq", "a\0", "é"])
def test_an_invalid_filter_key_is_refused(store: CerataStore, key: str) -> None:
    """The message is upstream's."""
    with pytest.raises(ValueError, match="Invalid filter key"):
        store.search(("n",), filter={key: 1})


# --- vectors: test_vector_*, test_embed_with_path*, test_scores, test_async_batched_* -------------


def test_items_come_by_cosine_each_once_and_unindexed_items_last(store: CerataStore) -> None:
    """The best of an item's vectors counts."""
    store.put(("n",), "both", {"text": "aaa", "more": ["bbb", "ccc"]}, index=["text", "more[*]"])
    store.put(("n",), "near", {"text": "bbba"})
    store.put(("n",), "without", {"text": "bbb"}, index=False)
    found = store.search(("n",), query="bbb")
    assert keys(found) == ["both", "near", "without"]
    assert found[0].score == pytest.approx(1.0)
    assert found[1].score == pytest.approx(3 / math.sqrt(10), abs=1e-6)
    assert found[2].score is None
    assert keys(store.search(("n",), query="bbb", limit=1, offset=1)) == ["near"]
    assert keys(store.search(("n",), query="ccc", limit=1)) == ["both"]
    assert keys(store.search(("n",), query="bbb", filter={"text": "bbba"})) == ["near"]
    store.put(("n",), "both", {"text": "zzz"})
    assert keys(store.search(("n",), query="bbb", limit=1)) == ["near"]
    store.delete(("n",), "near")
    assert [frame.kind for frame in store.store.frames()].count("langgraph.path") == 0
    for query in ("", None, "test!@#$%^&*()", "long " * 100):
        assert len(store.search(("n",), query=query)) == 2


def test_an_async_embedder_serves_async_batches(memory: cerata.Store) -> None:
    """It cannot run in a sync call."""
    store = CerataStore(memory, index={**INDEX, "embed": embed_later})

    async def run() -> list[str]:
        await asyncio.gather(*[store.aput(("n",), f"{n}", {"text": LETTERS[n]}) for n in range(5)])
        return keys(await store.asearch(("n",), query=LETTERS[3], limit=1))

    assert asyncio.run(run()) == ["3"]


def test_an_embedder_of_another_dimension_is_refused(memory: cerata.Store) -> None:
    """Nothing of the batch is written."""
    store = CerataStore(memory, index={**INDEX, "dims": 3})
    with pytest.raises(cerata.InvalidInput, match="dims"):
        store.batch([PutOp(("n",), "a", {"v": 1}), PutOp(("n",), "b", {"text": "x"})])
    assert memory.head.seq == 0


# --- lifetimes: test_ttl_*, test_*search_*ttl -----------------------------------------------------


def test_an_item_expires_and_a_read_past_half_its_life_renews_it(
    memory: cerata.Store, clock: StandingClock
) -> None:
    """A refresh is a write, so a read in the first half writes nothing."""
    store = CerataStore(memory, index=INDEX, ttl={"default_ttl": 10})
    store.put(("n",), "k", {"text": "abc"})
    store.put(("n",), "short", {"text": "abc"}, ttl=1)
    store.put(("n",), "for ever", {"text": "abc"}, ttl=None)
    created = store.get(("n",), "k", refresh_ttl=False)
    assert created is not None
    clock.time_us += 4 * MINUTE
    head = memory.head.seq
    assert keys(store.search(("n",), query="abc")) == ["k", "for ever"]
    assert memory.head.seq == head
    clock.time_us += 2 * MINUTE
    assert store.get(("n",), "k", refresh_ttl=False) is not None
    assert memory.head.seq == head
    renewed = store.get(("n",), "k")
    assert renewed == created
    assert memory.head.seq > head
    clock.time_us += 9 * MINUTE
    found = store.get(("n",), "k", refresh_ttl=False)
    assert found == created
    assert store.sweep_ttl() == 1
    clock.time_us += 2 * MINUTE
    assert store.get(("n",), "k") is None
    assert keys(store.search(())) == ["for ever"]
    assert store.list_namespaces() == [("n",)]
    assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)


def test_the_sweeper_runs_and_stops(memory: cerata.Store) -> None:
    """Its thread ends with the store."""
    assert CerataStore(memory).start_ttl_sweeper().done()
    store = CerataStore(memory, ttl={"default_ttl": 1})
    swept = threading.Event()
    store.sweep_ttl = lambda: swept.set() or 0  # type: ignore[method-assign, func-returns-value]
    future = store.start_ttl_sweeper(0.0001)
    assert not store.start_ttl_sweeper().done()
    assert swept.wait(10)
    assert store.stop_ttl_sweeper(10)
    assert store.stop_ttl_sweeper()
    assert future.result(10) is None


# --- hostile input and other writers --------------------------------------------------------------

REFUSED: list[Any] = [
    PutOp(("n",), "k", ["v"]),  # type: ignore[arg-type]
    PutOp(("n",), "k", {"v": math.nan}),
    PutOp(("n",), "k", {"v": object()}),
    PutOp(("n",), 1, {"v": 1}),  # type: ignore[arg-type]
    PutOp(("n",), "k", {"v": 1}, None, -1.0),
    GetOp(("n",), None),  # type: ignore[arg-type]
    GetOp(("n",), "\ud800"),
    PutOp(("\ud800",), "k", {"v": 1}),
    PutOp(("n",), "k", {"v": "\ud800"}),
    SearchOp(("\ud800",)),
    SearchOp(("n",), ["a"]),  # type: ignore[arg-type]
    SearchOp(("n",), {"a": {"$in": [1]}}),
    SearchOp(("n",), None, -1),
    SearchOp(("n",), None, 1, -1),
    ListNamespacesOp(None, None, -1),
    ListNamespacesOp((MatchCondition("infix", ("a",)),)),  # type: ignore[arg-type]
    "put",
]


@pytest.mark.parametrize("op", REFUSED)
def test_bad_operations_are_refused_and_nothing_is_written(store: CerataStore, op: Any) -> None:
    """A batch is checked whole before its first read."""
    with pytest.raises(cerata.InvalidInput):
        store.batch([PutOp(("n",), "valid", {"v": 1}), op])
    assert store.store.head.seq == 0


def test_writers_of_one_key_leave_one_item(tmp_path: Any) -> None:
    """Each put replaces, decided under the writer lock."""
    with CerataStore.from_conn_string(str(tmp_path / "a.cera"), index=INDEX) as store:

        def puts(writer: int) -> None:
            for number in range(10):
                store.put(("n",), "k", {"text": "ab", "by": [writer, number]}, index=["text", "by"])

        threads = [threading.Thread(target=puts, args=(writer,)) for writer in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.search(())) == 1
        assert len(list(store.store.frames())) <= 2
