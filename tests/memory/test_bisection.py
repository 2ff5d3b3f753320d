"""Bisection finds the event that a scan of every point finds, in a logarithmic number of tests."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import BisectFailed, Bisection, InvalidInput, NotFound, Probe, Store, View
from cerata.memory.bisection import SKIPS_MAX, verdicts_in


def batches(store: Store, sizes: list[int]) -> None:
    """Append batches of frames with these sizes."""
    for size in sizes:
        store.put_frames([f"note {number}" for number in range(size)])


@pytest.fixture
def forty() -> Iterator[Store]:
    """A memory of 40 events in 10 batches."""
    with cerata.open(":memory:") as store:
        batches(store, [4] * 10)
        yield store


def before(seq: int) -> Callable[[View], bool]:
    """Return a test that is false from an event on."""

    def test(view: View) -> bool:
        return view.basis < seq

    return test


def swinging(view: View) -> bool:
    """Change more than once: at 5, 11 and 30."""
    return view.basis < 5 or 10 < view.basis < 30


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    data=st.data(),
    unit=st.sampled_from(("event", "batch")),
)
def test_it_finds_what_a_scan_finds(sizes: list[int], data: st.DataObject, unit: Any) -> None:
    """Also if some points are skipped; a skipped point beside the answer leaves two events."""
    ends = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    points = ends if unit == "batch" else list(range(ends[-1] + 1))
    place = data.draw(st.integers(1, len(points) - 1))
    skipped = data.draw(st.sets(st.sampled_from(points)))
    kept = [point for point in points if point not in skipped | {points[0], points[-1]}]
    low = max([point for point in [points[0], *kept] if point < points[place]])
    high = min([point for point in [*kept, points[-1]] if point >= points[place]])
    inner = [point for point in points if low < point < high]
    with cerata.open(":memory:") as store:
        batches(store, sizes)

        def test(view: View) -> bool | None:
            if view.basis in skipped and 0 < view.basis < ends[-1]:
                return None
            return view.basis < points[place]

        if inner:
            with pytest.raises(BisectFailed, match=f"one of {low + 1} to {high}"):
                store.history.bisect(test, by=unit)
            return
        found = store.history.bisect(test, by=unit)
        assert (found.good, found.seq) == (low, high)
        assert found.first <= found.seq <= found.last
        assert found.event is not None
        assert found.event.seq == high
        if not skipped:
            halvings = math.floor(math.log2(ends[-1]))
            assert len(found.probes) <= halvings + (2 if unit == "event" else 4)


def test_a_test_of_the_past_sees_the_past() -> None:
    """The event, its writer and its reason."""
    with cerata.open(":memory:", actor="anna") as store:
        index = store.put_frame("The index is Annoy.")
        batches(store, [9])
        change = store.supersede(index, "The index is HNSW.", actor="ben", reason="fast")
        batches(store, [9])
        found = store.history.bisect(
            lambda view: [hit.text for hit in view.search("index")] == ["The index is Annoy."],
            good=index,
            by="batch",
        )
        assert found.event is not None
        assert (found.event.actor, found.event.reason) == ("ben", "fast")
        assert (found.first, found.last) == change.seqs
        assert store.diff(found.first - 1, found.last).replaced == ((index.id, change.id),)
        assert found.to_dict()["event"] == found.event.to_dict()


def test_a_search_goes_on_from_its_printed_log(forty: Store) -> None:
    """No point is tested again, and the verdicts of both are there."""
    seen: list[Probe] = []
    whole = forty.history.bisect(before(23), progress=seen.append)
    assert tuple(seen) == whole.probes
    half = "\n".join(str(whole).splitlines()[:4])
    tested: list[int] = []

    def test(view: View) -> bool:
        tested.append(view.basis)
        return view.basis < 23

    again = forty.history.bisect(test, known=f"cerata time bisect …\n{half}")
    assert again.seq == whole.seq == 23
    assert {probe.basis for probe in whole.probes[:4]}.isdisjoint(tested)
    assert {(probe.basis, probe.verdict) for probe in again.probes} >= {
        (probe.basis, probe.verdict) for probe in whole.probes[:4]
    }
    tested.clear()
    assert forty.history.bisect(test, known=whole.probes).seq == 23
    assert tested == []


def test_answers_that_change_twice_are_reported(forty: Store) -> None:
    """By verdicts that contradict each other, and by further checks."""
    with pytest.raises(BisectFailed, match="change more than once"):
        forty.history.bisect(before(23), known="good #30\nbad #10")
    assert forty.history.bisect(swinging).seq == 30
    with pytest.raises(BisectFailed, match="bad at 7, although the test is good at 29") as caught:
        forty.history.bisect(swinging, checks=3)
    assert caught.value.probes
    assert forty.history.bisect(before(23), checks=3).seq == 23


def test_a_long_run_of_skips_ends_the_search() -> None:
    """Not every event of a large range is tested."""
    tested: list[int] = []

    def test(view: View) -> bool | None:
        tested.append(view.basis)
        return {0: True, 500: False}.get(view.basis)

    with cerata.open(":memory:") as store:
        batches(store, [500])
        with pytest.raises(BisectFailed, match="one of 1 to 500"):
            store.history.bisect(test)
    assert len(tested) == SKIPS_MAX + 1


def test_the_earlier_end_is_tested_only_if_no_point_was_good(forty: Store) -> None:
    """A million events take 21 tests: the later end, and 20 halvings or 19 and the earlier end."""
    assert [probe.basis for probe in forty.history.bisect(before(23)).probes].count(0) == 0
    assert [probe.basis for probe in forty.history.bisect(before(1)).probes][-1] == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (True, "true at 0 and at 40"),
        (False, "false at 0 and at 40"),
    ],
)
def test_one_answer_at_both_ends_is_refused(forty: Store, answer: bool, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        forty.history.bisect(lambda _: answer)


def test_reverse_answers_are_refused(forty: Store) -> None:
    with pytest.raises(InvalidInput, match="Negate the test"):
        forty.history.bisect(lambda view: view.basis > 20)


def test_a_test_that_fails_is_reported_with_its_place(forty: Store) -> None:
    """What the user's code raised is the cause; an error of a call of Cerata passes through."""
    with pytest.raises(BisectFailed, match=r"ZeroDivisionError.*at event 40") as caught:
        forty.history.bisect(lambda view: view.basis // 0 > 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(BisectFailed, match="returned 'yes'"):
        forty.history.bisect(lambda _: "yes")  # type: ignore[arg-type, return-value]
    with pytest.raises(BisectFailed, match="no answer at 0 and at 40"):
        forty.history.bisect(lambda _: None)
    with pytest.raises(InvalidInput, match="k must be"):
        forty.history.bisect(lambda view: bool(view.search("note", k=-1)))


def test_a_thing_that_a_point_lacks_is_named_with_the_way_out(forty: Store) -> None:
    """A frame that came later is the usual case; the verdicts so far were lost."""
    with pytest.raises(BisectFailed, match=r"no frame 30 .*at event 20.*Return None") as caught:
        forty.history.bisect(lambda view: view.basis < 40 and view.frame(30).active)
    assert isinstance(caught.value.__cause__, NotFound)
    assert [str(probe) for probe in caught.value.probes] == ["bad  #40"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"good": 40}, "good is at event 40, not before bad at 40"),
        ({"good": 9, "bad": 3}, "good is at event 9, not before bad at 3"),
        ({"by": "day"}, "by must be 'event' or 'batch'"),
        ({"checks": -1}, "checks must be a whole number"),
        ({"known": [3]}, "known must be probes"),
    ],
)
def test_bad_arguments_are_refused(forty: Store, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        forty.history.bisect(before(3), **arguments)
    with pytest.raises(InvalidInput, match="test must be a function"):
        forty.history.bisect(3)  # type: ignore[arg-type]


def test_an_end_inside_a_transaction_is_refused(forty: Store) -> None:
    with forty.transaction():
        forty.put_frame("pending")
        with pytest.raises(InvalidInput, match="drafts of a transaction"):
            forty.history.bisect(before(3), bad=forty.history.view())


def test_an_event_of_another_scope_stays_hidden() -> None:
    """A scoped search tests scoped views, and shows no foreign event."""
    with cerata.open(":memory:") as store:
        anna = store.scoped({"user_id": "anna"})
        anna.put_frame("one")
        for text in ("two", "three"):
            store.scoped({"user_id": "ben"}).put_frame(text)
        found = anna.history.bisect(before(3), good=1)
        assert (found.seq, found.event) == (3, None)
        own = anna.history.bisect(lambda view: not len(view))
        assert own.event is not None
        assert own.seq == 1


def test_a_bisection_reads_back_from_its_text(forty: Store) -> None:
    found = forty.history.bisect(before(23))
    assert isinstance(found, Bisection)
    assert verdicts_in(str(found)) == {probe.basis: probe.verdict for probe in found.probes}
