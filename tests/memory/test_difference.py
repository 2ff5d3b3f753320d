"""The difference between two states: it leads from one to the other, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata

from .acts import ACTS, Act, perform


def current(view: cerata.View) -> set[int]:
    return {frame.id for frame in view.frames()}


def applied(ids: set[int], found: cerata.Diff) -> set[int]:
    """Take a difference's own word for what becomes of the frames of its first state."""
    gone = {*found.removed, *(old for old, _ in found.replaced)}
    assert gone <= ids
    return (ids - gone) | set(found.added) | {new for _, new in found.replaced}


@given(acts=st.lists(ACTS, max_size=12), data=st.data())
def test_a_difference_leads_from_one_state_to_the_other(
    acts: list[Act], data: st.DataObject
) -> None:
    """Between any two points, in both directions; each change is told once, and where it was."""
    with cerata.open(":memory:") as store:
        for act in acts:
            perform(store, act)
        a, b = (data.draw(st.integers(0, store.head.seq)) for _ in "ab")
        found, back = store.diff(a, b), store.diff(b, a)
        assert applied(current(store.at(a)), found) == current(store.at(b))
        assert bool(found) == (current(store.at(a)) != current(store.at(b)))
        assert back.added == found.removed
        assert back.removed == found.added
        assert {(new, old) for old, new in back.replaced} == set(found.replaced)
        assert {change.seq for change in found} == {change.seq for change in back}
        for change in found:
            assert min(a, b) < change.seq <= max(a, b)
            assert change.kind in str(change)
        assert len(found) == len(found.to_dict()["changes"])  # type: ignore[arg-type]
        moved = [change.seq for change in found]
        assert moved == sorted(moved, reverse=a > b)


def test_a_correction_is_told_as_one_change() -> None:
    """What took a frame's place is shown beside it, also where that was replaced in turn."""
    with cerata.open(":memory:") as store:
        first = store.put_frame("We meet on Tuesday.\nBring tea.", title="Meeting")
        store.supersede(first, "We meet on Thursday.\nBring tea.")
        store.supersede(2, "We meet on Friday.\nBring tea.")
        found = store.diff(first)
        assert (found.added, found.removed, found.replaced) == ((), (), ((1, 4),))
        assert str(found) == (
            "replaced #1 → #4 · Meeting\n"
            "-We meet on Tuesday.\n"
            "+We meet on Friday.\n"
            " Bring tea.\n"
            "\n"
            "1 → 5: 0 added, 0 removed, 1 replaced"
        )
        assert store.diff(first, first) == store.diff(first, first)
        assert str(store.diff("HEAD")) == "5 → 5: 0 added, 0 removed, 0 replaced"


def test_a_long_change_prints_its_beginning() -> None:
    """A difference is for reading: what does not fit is counted, and whole in ``to_dict``."""
    with cerata.open(":memory:") as store:
        store.put_frame("\n".join(["x" * 100, *(str(number) for number in range(30))]))
        (change,) = store.diff(0)
        lines = str(change).splitlines()
        assert len(lines) == 14
        assert lines[1] == "+" + "x" * 76 + "…"
        assert lines[-1] == "  … and 19 lines more"
        assert change.to_dict()["kind"] == "added"


def test_states_of_different_scopes_have_no_difference() -> None:
    """Else all frames of the wider one would seem to be added."""
    with cerata.open(":memory:") as store:
        store.put_frame("x", scope={"tenant": "a"})
        own = store.view().within((("tenant", "b"),))
        with pytest.raises(cerata.InvalidInput, match="different scopes"):
            store.diff(own)
        assert len(store.diff(0)) == 1
    with cerata.open(":memory:", scope={"tenant": "b"}) as store:
        store.put_frame("x")
        store.put_frame("y")
        assert store.diff(1).added == (2,)
