"""The cost of merges: each one costs the same, however many there were."""

import time
from typing import Any

import pytest

import cerata
from cerata import Store

pytestmark = pytest.mark.unwatched("it measures")


def merge(store: Store, first: int, end: int) -> float:
    """Merge entities into one, and return the processor time of each."""
    started = time.process_time()
    for number in range(first, end):
        store.graph.merge(f"e{number}", "hub")
    return (time.process_time() - started) / (end - first)


def named(store: Store, count: int) -> None:
    store.graph.assert_many([("hub", "is", "x"), *((f"e{n}", "is", "x") for n in range(count))])


def test_a_merge_after_many_costs_what_the_first_ones_cost() -> None:
    """Each replayed all before it, twice, and passed over all names: n cost about n³."""
    with cerata.open(":memory:") as store:
        named(store, 600)
        store.graph.resolve("hub")
        early = min(merge(store, at, at + 25) for at in (0, 25, 50, 75))
        merge(store, 100, 500)
        late = min(merge(store, at, at + 25) for at in (500, 525, 550, 575))
        assert len(store.graph.entity("hub").names) == 601
    assert late < early * 4


def test_merges_of_one_transaction_fold_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from cerata.replay.fold import Fold

    with cerata.open(":memory:") as store:
        named(store, 50)
        forks: list[int] = []
        fork = Fold.fork

        def counted(fold: Fold, kind: type[Any], seq: int) -> Any:
            forks.append(seq)
            return fork(fold, kind, seq)

        monkeypatch.setattr(Fold, "fork", counted)
        with store.transaction():
            for number in range(50):
                store.graph.merge(f"e{number}", "hub")
            store.graph.name("new")
            store.graph.merge("new", "e3")
            store.assert_fact("other", "knows", cerata.Entity("object"))
            store.graph.merge("object", "other")
        assert len(store.graph.entity("hub").names) == 52
        assert store.graph.entity("object").name == "other"
    assert len(forks) == 1, "the first look-up forks the facts, and later merges fold onto it"


def test_a_transaction_names_only_what_it_made_and_what_is_there(store: Store) -> None:
    named(store, 2)
    merged = store.graph.merge("e0", "e1")
    with store.transaction(), pytest.raises(cerata.NotFound, match="nothing here"):
        store.graph.merge("nothing here", "hub")
    store.graph.name("a", scope={"tenant": "t"})
    with store.transaction():
        store.graph.name("b", scope={"tenant": "t"})
        with pytest.raises(cerata.NotFound):
            store.graph.merge("b", "hub")
        store.graph.merge("b", "a", scope={"tenant": "t"})
        store.graph.unmerge(merged)
        store.graph.merge("e1", "e0")
    assert store.graph.entity("e1").name == "e0"
