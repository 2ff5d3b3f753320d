"""A call in a transaction costs as much at the end of a long block as at its beginning.

Counts of calls, since times differ with the load of the machine.
"""

import copy
import gc
import pickle
import sys
from collections.abc import Callable
from dataclasses import asdict

from cerata import Filter, PutOptions, Store

COUNT = 50


def _calls(work: Callable[[int], object], first: int) -> int:
    """Return the count of function calls, also of built-in functions, of some calls of work."""
    count = 0

    def enter(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    # A collection would call the finalizers of objects of earlier tests.
    gc.collect()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        for number in range(first, first + COUNT):
            work(number)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def test_an_upsert_costs_the_same_later_in_a_block(store: Store) -> None:
    """Each call gathered all closings of the block again: 2,000 took four times as long as 1,000.

    The counts differ by the look-up of a sorted index; before, the last was 1.7 times the first.
    """

    def upsert(number: int) -> None:
        store.put_frame(f"text {number}", uri=f"uri:{number}", options=PutOptions(replace=True))

    for number in range(8 * COUNT):
        upsert(number)
    with store.transaction():
        early = _calls(upsert, 0)
        for number in range(COUNT, 7 * COUNT):
            upsert(number)
        assert _calls(upsert, 7 * COUNT) < 1.05 * early


def test_a_closed_frame_of_a_block_is_read_without_the_drafts_before(store: Store) -> None:
    """Each read scanned the drafts up to the closing: 1,500 deleted frames took 1.8 s."""
    frames = store.put_frames([str(number) for number in range(8 * COUNT)]).ids
    with store.transaction():
        for frame in frames:
            store.delete(frame)

        def read(number: int) -> None:
            assert store.frame(frames[number]).closed is not None

        read(0)
        assert _calls(read, 7 * COUNT) == _calls(read, 0)


def test_a_closed_frame_outlives_its_store(store: Store) -> None:
    """A frame is a value: it has its closing, and is printed, copied and compared, by itself."""
    frame = store.put_frame("text")
    closing = store.delete(frame, reason="old").seqs[0]
    [closed] = list(store.frames(where=Filter(include_deleted=True)))
    store.close()
    copies = [copy.deepcopy(closed), pickle.loads(pickle.dumps(closed))]
    for each in (closed, *copies):
        assert each == closed
        assert each.closed is not None
        assert (each.closed.seq, each.closed.reason) == (closing, "old")
        assert each.to_dict()["closed"] == each.closed.to_dict()
        assert asdict(each)["closed"]["seq"] == closing
