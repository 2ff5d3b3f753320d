"""A read of the past costs as much as the same read of the present.

Counts of calls, since times differ with the load of the machine.
"""

import gc
import weakref
from collections.abc import Callable

import pytest

from cerata import PutOptions, Store
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.frames.reader import Frames
from cerata.projections.fulltext.bm25 import Fulltext


def masks_computed(work: Callable[[], object]) -> int:
    """Return how often masks and statistics over all rows are computed."""
    count = 0
    computed = (Frames.alive, Fulltext.view)

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **options: object) -> object:
            nonlocal count
            count += 1
            return function(*arguments, **options)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((Frames, "alive"), (Fulltext, "view")):
            patch.setattr(owner, name, counting(computed[owner is Fulltext]))
        work()
    return count


def test_a_point_of_the_past_computes_its_masks_once(store: Store) -> None:
    """Each at() computed them again: a search of the past took 3.6 times one of the present."""
    store.put_frames([f"wax {number}" for number in range(300)])
    store.delete(5)

    def search_past() -> object:
        return [store.at(n).search("wax", k=3) for n in (100, 200, 100, 200, 100)]

    assert masks_computed(search_past) == 4
    assert masks_computed(search_past) == 0


def test_a_write_frees_the_masks_of_the_past(store: Store) -> None:
    """They hold the buffers of their time, which the fold may have replaced since."""
    store.put_frames([f"wax {number}" for number in range(300)])
    store.at(100).search("wax", k=3)
    store.put_frame("wax")
    assert masks_computed(lambda: store.at(100).search("wax", k=3)) == 2


def test_few_points_of_the_past_are_in_memory(store: Store) -> None:
    """Four: a walk through the past does not fill the memory."""
    store.put_frames([f"wax {number}" for number in range(300)])
    for n in range(1, 200):
        store.at(n).search("wax", k=1)
    assert len(session_of(store)._past._layers) == 4


def test_a_past_of_a_scope_has_masks_of_its_own(store: Store) -> None:
    """Masks of one reach are never those of another."""
    store.put_frames(["wax"] * 3)
    store.put_frames(["wax"] * 2, options=PutOptions(scope={"user": "ada"}))
    ada = store.scoped({"user": "ada"})
    assert len(list(store.at(5).frames())) == 5
    assert len(list(ada.at(5).frames())) == 2


def test_a_later_question_frees_the_arrays_of_the_last(store: Store) -> None:
    """A cycle kept 7 MB of 100,000 turns until a collection of garbage."""
    gc.disable()
    try:
        rankings: list[weakref.ref[object]] = []
        for place in range(5):
            store.put_frame(f"harbour {place}", role="mina", metadata={"session": 1})
            assert store.search("harbour")
            rankings.append(weakref.ref(snapshot_of(store).base.ranking))
        assert [ranking() is None for ranking in rankings] == [True] * 4 + [False]
    finally:
        gc.enable()
