"""Inside a transaction: reads see what it has gathered, as it will be once it is appended."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.events import PutFrame
from cerata.projections.projection import FoldedEvent

from .acts import ACTS, Act, everything, perform, renamed


@settings(max_examples=40)
@given(before=st.lists(ACTS, max_size=8), inside=st.lists(ACTS, min_size=1, max_size=8))
def test_what_is_read_inside_is_what_is_there_afterwards(
    before: list[Act], inside: list[Act]
) -> None:
    """Every read, with the ids that the batch got: frames, links, searches and their scores."""
    with cerata.open(":memory:") as store:
        for act in before:
            perform(store, act)
        with store.transaction() as transaction:
            for act in inside:
                perform(store, act)
            seen = everything(store)
        seqs = () if transaction.receipt is None else transaction.receipt.seqs
        ids = {-place: seq for place, seq in enumerate(seqs, start=1)}
        assert renamed(seen, ids) == renamed(everything(store), {})
        assert store.verify().ok


@settings(max_examples=20)
@given(st.lists(ACTS, max_size=4), st.lists(ACTS, min_size=2, max_size=6))
def test_a_view_taken_inside_stands_still(before: list[Act], inside: list[Act]) -> None:
    """What comes after it in the block, the end of the block, and later writes do not reach it."""
    with cerata.open(":memory:") as store:
        for act in before:
            perform(store, act)
        with store.transaction():
            perform(store, inside[0])
            view = store.view()
            seen = everything(view)
            for act in inside[1:]:
                perform(store, act)
            assert everything(view) == seen
        perform(store, inside[0])
        assert everything(view) == seen


def test_reads_see_the_block_and_others_do_not(tmp_path: Path) -> None:
    """Until the block ends it is nobody else's business."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        old = store.put_frame("the harbour opens in April")
        with store.transaction():
            new = store.supersede(old, "the harbour opens in May")
            assert [hit.id for hit in store.search("harbour opens")] == [new.id] == [-1]
            assert store.frame(new).text.endswith("May")
            assert store.frame(new).supersedes == (old.id,)
            assert store.frame(old).superseded_by == -1
            assert "May" in store.recall("harbour").text
            assert [frame.id for frame in store.frames()] == [-1]
            assert len(store) == 1
            assert [hit.id for hit in store.at("HEAD").search("harbour")] == [old.id]
            assert [hit.id for hit in other.search("harbour")] == [old.id]
        assert [hit.id for hit in other.search("harbour")] == [2]


class Newest(cerata.RowProjection[str, int]):
    """The newest frame of each kind, and below which frame it stands."""

    name = "newest"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            assert isinstance(body, PutFrame)
            self.rows[body.kind] = event.seq
            if body.parent is not None:
                self.rows[f"{body.kind} below"] = body.parent


def test_the_log_tags_and_projections_show_what_is_gathered() -> None:
    """They showed the log alone, and every other read showed more."""
    with cerata.open(":memory:", projections=[Newest]) as store:
        first = store.put_frame("a note")
        with store.transaction() as transaction:
            store.tag("before", at=first)
            made = store.put_frame("a plan", kind="plan")
            store.put_frame("a step", kind="step", parent=made)
            view = store.view()
            store.delete(made)
            assert [event.seq for event in store.log()] == [1, -1, -2, -3, -4]
            assert [event.type for event in view.log()] == ["putFrame", "putTag", *["putFrame"] * 2]
            assert [event.seq for event in store.log(last=1)] == [1]
            assert [event.header.count for event in view.log()] == [1, 3, 3, 3]
            assert store.tags() == view.tags() == {"before": 1}
            assert store.at("HEAD").tags() == {}
            rows = dict(store.projection(Newest).rows)
            assert rows == {"plan": -2, "step": -3, "step below": -2, "text": 1}
            assert dict(store.at("HEAD").projection(Newest).rows) == {"text": 1}
        assert transaction.receipt is not None
        assert [event.seq for event in store.log()] == [1, 2, 3, 4, 5]
        rows = dict(store.projection(Newest).rows)
        assert rows == {"plan": 3, "step": 4, "step below": 3, "text": 1}


def test_a_scope_narrows_the_log_inside_too() -> None:
    with cerata.open(":memory:") as store, store.transaction():
        store.put_frame("mine", scope={"user_id": "u1"})
        store.put_frame("yours", scope={"user_id": "u2"})
        scope = (("tenant", "default"), ("user_id", "u2"))
        assert [event.seq for event in store.view().within(scope).log()] == [-2]


def test_a_projection_that_fails_on_a_draft_says_so() -> None:
    """What is in the log stays readable, and the block can end."""

    class Failing(Newest):
        def apply(self, events: Sequence[FoldedEvent]) -> None:
            super().apply(events)
            if "bad" in self.rows:
                raise ValueError("no bad frames")

    with cerata.open(":memory:", projections=[Failing]) as store:
        store.put_frame("a note")
        with store.transaction():
            store.put_frame("a bad one", kind="bad")
            with pytest.raises(cerata.ProjectionFailed, match=r"event -1 .*no bad frames"):
                store.projection(Failing)
            assert dict(store.at(1).projection(Failing).rows) == {"text": 1}


@pytest.mark.parametrize("stored", [True, False])
def test_a_part_that_takes_the_place_of_the_whole_stays(stored: bool) -> None:
    """Closing the whole closes its parts, but not the one in its place and what is below that."""
    with cerata.open(":memory:") as store:

        def build() -> list[int]:
            whole = store.put_frame("whole").id
            part = store.put_frame("part", parent=whole).id
            other = store.put_frame("other", parent=whole).id
            below = store.put_frame("below", parent=part).id
            return [whole, part, other, below]

        made = build() if stored else []
        with store.transaction():
            whole, part, other, below = made or build()
            store.supersede(whole, part)
            inside = [store.frame(number).active for number in (whole, part, other, below)]
            assert inside == [False, True, False, True]
        after = [frame.active for frame in store.frames(include_superseded=True)]
        assert after[::-1] == inside


def test_the_same_text_twice_in_one_transaction_is_stored_once() -> None:
    """It was stored twice, since nobody looked at what the block had gathered."""
    with cerata.open(":memory:") as store:
        with store.transaction() as transaction:
            first = store.remember("The port is 5433.")
            second = store.remember("The port is 5433.")
            assert (first.id, second.id, second.added, second.durable) == (-1, -1, False, False)
        assert transaction.receipt is not None
        assert transaction.receipt.seqs == (1,)


def test_versions_of_one_uri_in_one_transaction_follow_each_other() -> None:
    """The end of the block was a conflict: two versions had closed the same frame, or none."""
    with cerata.open(":memory:") as store:
        store.remember("version 0", uri="port.md")
        with store.transaction():
            for number in range(1, 4):
                store.remember(f"version {number}", uri="port.md")
        assert [frame.text for frame in store.frames()] == ["version 3"]
        chain = [frame.superseded_by for frame in store.frames(include_superseded=True)]
        assert chain == [None, 6, 4, 2]


def test_a_transaction_that_only_writes_folds_nothing() -> None:
    """Looking at the memory is paid for by those who look."""
    with cerata.open(":memory:") as store:
        with store.transaction():
            store.put_frame("a")
            store.put_frames(["b", "c"])
        assert store._fold.frames(0).seq == 0


def test_the_state_of_the_log_is_shared_and_not_copied() -> None:
    """A copy would make the first read of every transaction as slow as opening the file."""
    with cerata.open(":memory:") as store:
        store.put_frames([f"harbour {number}" for number in range(1_000)])
        below = store.view()
        assert below.search("harbour")
        with store.transaction():
            store.put_frame("harbour bridge")
            over = store.view()
            assert over.search("bridge")
            assert over.base.frames.ids.base is below.base.frames.ids.base
            assert over._gathered is not None
            under = over.base.fulltext
            joint = over._gathered.folds.fulltext_over(under, over.base.rows)
            assert [id(piece) for piece in joint.pieces[:-1]] == [id(p) for p in under.pieces]
            assert joint.pieces[-1].end_row - joint.pieces[-1].first_row == 1
