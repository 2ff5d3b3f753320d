"""The difference between two states: it leads from one to the other, and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata

from ..acts import ACTS, Act, perform


def current(view: cerata.View) -> set[int]:
    return {frame.id for frame in view.frames()}


def parts(view: cerata.View) -> dict[int, list[int]]:
    """The chunks of each current frame."""
    return {frame: list(view.files.chunks(frame).values()) for frame in current(view)}


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
        before, after = parts(store.at(a)), parts(store.at(b))
        assert bool(found) == (before != after)
        both = before.keys() & after.keys()
        assert set(found.changed) == {one for one in both if before[one] != after[one]}
        assert back.changed == found.changed
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
            "-We meet on -{Tuesday}.\n"
            "+We meet on +{Friday}.\n"
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
        store.put_frame("x", options=cerata.PutOptions(scope={"tenant": "a"}))
        own = store.history.view().within((("tenant", "b"),))
        with pytest.raises(cerata.InvalidInput, match="different scopes"):
            store.diff(own)
        assert len(store.diff(0)) == 1
    with cerata.open(":memory:", scope={"tenant": "b"}) as store:
        store.put_frame("x")
        store.put_frame("y")
        assert store.diff(1).added == (2,)


def document(store: cerata.Store) -> cerata.Receipt:
    """A document of several parts."""
    words = (" ".join(f"word{n}x{m}" for m in range(200)) for n in range(3))
    return store.remember("\n\n".join(f"## Part\n{part}" for part in words))


def test_a_document_that_lost_a_part_is_changed() -> None:
    """The difference was empty, and falsy, though the document's text had another middle."""
    with cerata.open(":memory:") as store:
        receipt = document(store)
        part = store.files.chunks(receipt)[1]
        gone = store.delete(part)
        found = store.diff(receipt)
        assert found
        assert (found.added, found.removed, found.replaced) == ((), (), ())
        assert found.changed == (receipt.id,)
        (change,) = found
        assert (change.seq, change.kind) == (gone.id, "changed")
        assert change.old is not None
        assert change.new is not None
        # What it shares with its neighbours is still there.
        lost = store.frame(part).text[200:-200]
        assert lost in change.old.text
        assert lost not in change.new.text
        assert str(change).startswith(f"changed #{receipt.id}\n")
        assert found.summary.endswith("0 added, 0 removed, 0 replaced, 1 changed")
        # Cut off in the middle of an ingest, the first state has the document and no part yet.
        assert store.diff(receipt.id, receipt).changed == (receipt.id,)
        # A document that is not in both states is told once.
        assert store.diff(0, receipt).changed == ()


def test_what_a_transaction_has_gathered_is_told() -> None:
    """`at` dropped it, so the difference to what the block sees was empty."""
    with cerata.open(":memory:") as store:
        old = store.put_frame("the harbour opens in April")
        split = document(store)
        with store.transaction():
            first = store.history.view()
            store.supersede(old, "the harbour opens in May")
            halfway = store.history.view()
            store.put_frame("a ferry")
            store.delete(store.files.chunks(split)[0])
            inside = store.diff("HEAD", store.history.view())
            assert inside.replaced == ((old.id, -1),)
            assert inside.added == (-3,)
            assert inside.changed == (split.id,)
            assert str(inside).startswith("replaced #1 → #-1\n-the harbour opens in -{April}\n+the")
            assert store.diff(halfway, store.history.view()).added == (-3,)
            assert store.diff(store.history.view(), halfway).removed == (-3,)
            assert not store.diff(first, "HEAD")
            assert not store.diff(store.history.view(), store.stream.replay(store.history.view()))
        after = store.diff(split)
        assert (len(after), after.a, after.b) == (len(inside), inside.a, inside.b)
        assert [change.seq for change in after] == [change.seq for change in inside]


def test_states_beside_each_other_differ_on_both_sides(tmp_path: Path) -> None:
    """A block lacks what others wrote since, and has drafts that the log lacks."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        store.put_frame("there before")
        with store.transaction():
            store.put_frame("gathered")
            view = store.history.view()
            other.put_frames(["meanwhile", "and again"])
            found = store.diff("HEAD", view)
            assert (found.added, found.removed) == ((-1,), (2, 3))
            found = store.diff(view, 2)
            assert (found.added, found.removed) == ((2,), (-1,))
            assert store.diff(view.basis, view).added == (-1,)
        with store.transaction():
            store.put_frame("of another block")
            found = store.diff(view, store.history.view())
            assert (found.added, found.removed) == ((2, 3, 4, -1), (-1,))
