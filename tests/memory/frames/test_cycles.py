"""No write makes a frame take its own place, by whatever detour, or closes what it just closed."""

import pytest

import cerata
from cerata.engine.events import DeleteFrame, EventBody, PutFrame, SupersedeFrame


def three(store: cerata.Store) -> tuple[int, int, int]:
    a, b, c = (store.put_frame(text).id for text in "abc")
    return a, b, c


def test_a_frame_cannot_be_superseded_by_what_it_replaced() -> None:
    with cerata.open(":memory:") as store:
        a, b, c = three(store)
        store.supersede(a, b)
        store.supersede(b, c)
        for old, new in ((c, a), (c, b), (c, c)):
            with pytest.raises(cerata.Conflict):
                store.supersede(old, new)
        assert store.frame(c).active


def test_nor_within_one_batch() -> None:
    """Each step alone is fine; only the batch as a whole comes back to where it was."""
    with cerata.open(":memory:") as store:
        a, b, c = three(store)
        for pairs in (((a, b), (b, a)), ((a, b), (b, c), (c, a))):
            with pytest.raises(cerata.Conflict, match="closed in the same batch"):
                store.append(*(SupersedeFrame(old=old, new=new) for old, new in pairs))
        assert len(store) == 3
        store.append(SupersedeFrame(old=a, new=b), SupersedeFrame(old=b, new=c))
        assert store.frame(a).superseded_by == b
        assert store.frame(b).superseded_by == c


def test_what_goes_with_a_deleted_parent_cannot_be_named_after_it() -> None:
    """The second closing was passed over in silence, though its receipt said that it was done."""
    with cerata.open(":memory:") as store:
        parent = store.put_frame("a").id
        child = store.put_frame("b", options=cerata.PutOptions(parent=parent)).id
        other = store.put_frame("c").id
        batches: tuple[tuple[EventBody, ...], ...] = (
            (DeleteFrame(frame=parent), SupersedeFrame(old=other, new=child)),
            (DeleteFrame(frame=parent), DeleteFrame(frame=child)),
            (
                PutFrame(text="d"),
                PutFrame(text="e", parent=-1),
                DeleteFrame(frame=-1),
                DeleteFrame(frame=-2),
            ),
        )
        for batch in batches:
            with pytest.raises(cerata.Conflict, match="closed in the same batch"):
                store.append(*batch)
        assert len(store) == 3
        # What takes the parent's place stays, so it may be deleted too.
        store.append(SupersedeFrame(old=parent, new=child), DeleteFrame(frame=child))
        assert len(store) == 1
        # What is put below a closed frame does not go with it.
        store.append(
            DeleteFrame(frame=other), PutFrame(text="f", parent=other), DeleteFrame(frame=-2)
        )
        assert len(store) == 0
