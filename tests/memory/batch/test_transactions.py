"""Inside a transaction: reads see what it has gathered, as it will be once it is appended."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine import codec
from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    Draft,
    JsonValue,
    LinkFacts,
    PutEmbedding,
    PutFrame,
    SupersedeFrame,
)
from cerata.memory.batch.reference_rules import ReferenceRules
from cerata.memory.batch.rule import State
from cerata.memory.batch.transaction import block_of
from cerata.memory.batch.validation import BatchChecks
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.vectors import vectors
from cerata.projections.core.projection import FoldedEvent

from ...inside import fold_of
from ..acts import ACTS, Act, everything, perform, renamed
from ..facts.world import environment


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
        seqs = transaction.receipt.seqs
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
            view = store.history.view()
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
        with store.transaction():
            store.history.tag("before", at=first)
            made = store.put_frame("a plan", kind="plan")
            store.put_frame("a step", kind="step", options=cerata.PutOptions(parent=made))
            view = store.history.view()
            store.delete(made)
            assert [event.seq for event in store.log()] == [1, -1, -2, -3, -4]
            assert [event.type for event in view.log()] == ["putFrame", "putTag", *["putFrame"] * 2]
            assert [event.seq for event in store.log(last=1)] == [1]
            assert [event.header.count for event in view.log()] == [1, 3, 3, 3]
            assert store.history.tags() == view.history.tags() == {"before": 1}
            assert store.at("HEAD").history.tags() == {}
            rows = dict(store.stream.projection(Newest).rows)
            assert rows == {"plan": -2, "step": -3, "step below": -2, "text": 1}
            assert dict(store.at("HEAD").stream.projection(Newest).rows) == {"text": 1}
        assert [event.seq for event in store.log()] == [1, 2, 3, 4, 5]
        rows = dict(store.stream.projection(Newest).rows)
        assert rows == {"plan": 3, "step": 4, "step below": 3, "text": 1}


def test_a_scope_narrows_the_log_inside_too() -> None:
    with cerata.open(":memory:") as store, store.transaction():
        store.put_frame("mine", options=cerata.PutOptions(scope={"user_id": "u1"}))
        store.put_frame("yours", options=cerata.PutOptions(scope={"user_id": "u2"}))
        scope = (("tenant", "default"), ("user_id", "u2"))
        assert [event.seq for event in store.history.view().within(scope).log()] == [-2]


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
                store.stream.projection(Failing)
            assert dict(store.at(1).stream.projection(Failing).rows) == {"text": 1}


@pytest.mark.parametrize("stored", [True, False])
def test_a_part_that_takes_the_place_of_the_whole_stays(stored: bool) -> None:
    """Closing the whole closes its parts, but not the one in its place and what is below that."""
    with cerata.open(":memory:") as store:

        def build() -> list[int]:
            whole = store.put_frame("whole").id
            part = store.put_frame("part", options=cerata.PutOptions(parent=whole)).id
            other = store.put_frame("other", options=cerata.PutOptions(parent=whole)).id
            below = store.put_frame("below", options=cerata.PutOptions(parent=part)).id
            return [whole, part, other, below]

        made = build() if stored else []
        with store.transaction():
            whole, part, other, below = made or build()
            store.supersede(whole, part)
            inside = [store.frame(number).active for number in (whole, part, other, below)]
            assert inside == [False, True, False, True]
        after = [
            frame.active for frame in store.frames(where=cerata.Filter(include_superseded=True))
        ]
        assert after[::-1] == inside


def test_the_same_text_twice_in_one_transaction_is_stored_once() -> None:
    """It was stored twice, since nobody looked at what the block had gathered."""
    with cerata.open(":memory:") as store:
        with store.transaction() as transaction:
            first = store.remember("The port is 5433.")
            second = store.remember("The port is 5433.")
            assert (first.id, second.id, second.added, second.durable) == (-1, -1, False, False)
        assert transaction.receipt.seqs == (1,)


def test_versions_of_one_uri_in_one_transaction_follow_each_other() -> None:
    """The end of the block was a conflict: two versions had closed the same frame, or none."""
    with cerata.open(":memory:") as store:
        store.remember("version 0", uri="port.md")
        with store.transaction():
            for number in range(1, 4):
                store.remember(f"version {number}", uri="port.md")
        assert [frame.text for frame in store.frames()] == ["version 3"]
        chain = [
            frame.superseded_by
            for frame in store.frames(where=cerata.Filter(include_superseded=True))
        ]
        assert chain == [None, 6, 4, 2]


def test_a_transaction_that_only_writes_folds_nothing() -> None:
    """Looking at the memory is paid for by those who look."""
    with cerata.open(":memory:") as store:
        with store.transaction():
            store.put_frame("a")
            store.put_frames(["b", "c"])
        assert fold_of(store).frames(0).seq == 0


def test_the_state_of_the_log_is_shared_and_not_copied() -> None:
    """A copy would make the first read of every transaction as slow as opening the file."""
    with cerata.open(":memory:") as store:
        store.put_frames([f"harbour {number}" for number in range(1_000)])
        below = snapshot_of(store)
        assert store.search("harbour")
        with store.transaction():
            store.put_frame("harbour bridge")
            over = snapshot_of(store)
            assert store.search("bridge")
            assert over.base.frames.ids.base is below.base.frames.ids.base
            assert over._pending is not None
            under = over.base.folds.fulltext(over.base.n)
            joint = over._pending.folds.fulltext()
            assert [id(piece) for piece in joint.pieces[:-1]] == [id(p) for p in under.pieces]
            assert joint.pieces[-1].end_row - joint.pieces[-1].first_row == 1


# --- views of a block, and what is refused in it ---------------------------------------------


def test_a_view_of_the_block_keeps_what_it_has() -> None:
    """`at` and `replay` gave the log below it alone."""
    with cerata.open(":memory:") as store:
        old = store.put_frame(
            "the harbour opens in April", options=cerata.PutOptions(scope={"user_id": "u1"})
        )
        store.put_frame("another harbour", options=cerata.PutOptions(scope={"user_id": "u2"}))
        with store.transaction():
            store.supersede(old, "the harbour opens in May")
            view = store.history.view()
            seen = everything(view)
            store.delete(2)
            assert everything(store.at(view)) == seen
            assert everything(store.stream.replay(view)) == seen
            assert everything(store.at(store.stream.replay(view))) == seen
            own = view.within((("tenant", "default"), ("user_id", "u1")))
            assert [frame.id for frame in store.at(own).frames()] == [-1]
            assert [hit.id for hit in store.stream.replay(own).search("harbour")] == [-1]
            with pytest.raises(cerata.InvalidInput, match="not in the log"):
                store.history.tag("here", at=view)
        assert everything(store.at(view)) == seen
        assert everything(store.stream.replay(view)) == seen


@settings(max_examples=20)
@given(st.lists(ACTS, max_size=5), st.lists(ACTS, min_size=1, max_size=6))
def test_a_replay_of_the_block_is_what_the_block_sees(before: list[Act], inside: list[Act]) -> None:
    with cerata.open(":memory:") as store:
        for act in before:
            perform(store, act)
        with store.transaction():
            for act in inside:
                perform(store, act)
            assert everything(store.stream.replay(store.history.view())) == everything(store)


def test_a_view_of_a_block_is_read_by_another_handle(tmp_path: Path) -> None:
    """It is folded anew over that one's log."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        store.put_frame("the harbour")
        with store.transaction():
            store.put_frame("the bridge of the harbour")
            view = store.history.view()
            assert everything(other.at(view)) == everything(view)


def test_an_embedding_that_is_appended_inside_is_seen_inside() -> None:
    """`files.stored` said that the frame lacked it, so a block embedded everything again."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("wax").id
        [(embedding, data)] = [one for one in vectors([[1.0]], 1, "small") if one]
        wanted = cerata.content_hash("wax")

        def unembedded() -> list[tuple[int, ...]]:
            return [one.unembedded for one in store.files.stored(wanted, space="small")]

        with store.transaction():
            new = store.put_frame("wax").id
            before = store.history.view()
            assert unembedded() == [(frame,), (new,)]
            for number in (frame, new):
                body = PutEmbedding(frame=number, embedding=embedding)
                store.append(cerata.Draft(body, attachments=(data,)))
                before = store.history.view()
            assert unembedded() == [(), ()]
            other = PutEmbedding(frame=frame, embedding=vectors([[1.0]], 1, "other")[0][0])  # type: ignore[index]
            store.append(cerata.Draft(other, attachments=(data,)))
            found = before.files.stored(wanted, space="other")
            assert [one.unembedded for one in found] == [(frame,), (new,)]
        assert unembedded() == [(), ()]


REFUSED: list[tuple[str, Callable[[cerata.Store], object], type[cerata.CerataError]]] = [
    ("no such frame", lambda store: store.delete(99), cerata.NotFound),
    (
        "no such parent",
        lambda store: store.put_frame("x", options=cerata.PutOptions(parent=99)),
        cerata.NotFound,
    ),
    ("not put yet", lambda store: store.delete(-2), cerata.NotFound),
    ("closed before the block", lambda store: store.delete(2), cerata.Conflict),
    ("closed in the block", lambda store: store.delete(3), cerata.Conflict),
    ("itself", lambda store: store.supersede(1, 1), cerata.Conflict),
    ("a tag's name", lambda store: store.history.tag("1st"), cerata.InvalidInput),
    ("a tag's place", lambda store: store.history.tag("inside", at=3), cerata.InvalidInput),
    ("a tag that is there", lambda store: store.history.tag("there"), cerata.Conflict),
    ("a tag of the block", lambda store: store.history.tag("gathered"), cerata.Conflict),
    (
        "another dimension",
        lambda store: store.put_frame("x", vectors=cerata.Vectors(dense=[1.0, 2.0], space="small")),
        cerata.InvalidInput,
    ),
    (
        "no JSON",
        lambda store: store.put_frame("x", metadata={"n": float("nan")}),
        cerata.InvalidInput,
    ),
    (
        "no cause",
        lambda store: store.append(cerata.Draft(PutFrame(text="x"), causation=99)),
        cerata.NotFound,
    ),
    (
        "one of several",
        lambda store: store.append(PutFrame(text="x"), PutFrame(text="x", parent=99)),
        cerata.NotFound,
    ),
]


@pytest.mark.parametrize(
    ("act", "error"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_cannot_be_appended_is_refused_when_it_is_asked_for(
    act: Callable[[cerata.Store], object], error: type[cerata.CerataError]
) -> None:
    """It was refused at the end, with all the rest; now the call leaves no trace in the block."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        store.put_frame("two")
        store.put_frames(["three", "four"])
        store.delete(2)
        store.history.tag("there")
        with store.transaction() as transaction:
            store.put_frame("five", vectors=cerata.Vectors(dense=[1.0], space="small"))
            store.delete(3)
            store.history.tag("gathered", at=1)
            with pytest.raises(error):
                act(store)
            assert len(list(store.log())) == 6 + 3
            store.delete(-1)
            store.delete(1)
        assert len(transaction.receipt.seqs) == 5
        assert store.verify().ok


def test_a_memory_that_is_only_read_gathers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    cerata.open(path).close()
    with cerata.open(path, mode="r") as store, store.transaction():
        assert len(store) == 0
        with pytest.raises(cerata.ReadOnly):
            store.put_frame("x")


def test_a_call_is_checked_without_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a block of n calls would cost n² looks; at the end the batch is checked once."""
    looked: list[int] = []
    check = ReferenceRules.check

    def counted(rules: ReferenceRules, state: State) -> object:
        looked.append(len(rules._named))
        return check(rules, state)

    monkeypatch.setattr(ReferenceRules, "check", counted)
    with cerata.open(":memory:") as store:
        store.put_frames([f"frame {number}" for number in range(50)])
        with store.transaction():
            for number in range(1, 51):
                store.delete(number)
            assert looked == [1] * 50
        assert looked[50:] == [50]


def test_a_refused_call_leaves_nothing_of_a_long_document() -> None:
    """Half of its chunks once stayed gathered, and were appended as a whole document."""
    long = "\n\n".join(f"Paragraph {number} " + "word " * 150 for number in range(600))
    with cerata.open(":memory:") as store:
        store.remember("old text", uri="doc")
        with store.transaction() as tx:
            store.put_frames([f"t{number}" for number in range(9_705)])
            with pytest.raises(cerata.InvalidInput, match="would pass"):
                store.remember(long, uri="doc")
            assert len(block_of(tx).drafts) == 9_705
        assert [frame.text for frame in store.frames() if frame.uri == "doc"] == ["old text"]
        with store.transaction():
            store.remember(long, uri="doc")
        [document] = [frame for frame in store.frames() if frame.uri == "doc"]
        assert (document.text, document.active) == (long, True)
        assert document.chunk_count == len(store.files.chunks(document.id)) > 256


def test_what_was_gathered_is_nobody_elses_to_change() -> None:
    """Neither through the mapping that was given nor through the frame that was read."""
    given_metadata: dict[str, JsonValue] = {"list": [1], "map": {"a": (1, 2)}}
    with cerata.open(":memory:") as store:
        with store.transaction() as tx:
            receipt = store.put_frame("a", metadata=given_metadata)
            read = store.frame(receipt.id).metadata
            assert isinstance(read, dict)
            read["hacked"] = 1
            for one in (given_metadata, read):
                value = one["list"]
                assert isinstance(value, list)
                value.append(2)
        assert store.frame(tx.receipt.id).metadata == {"list": [1], "map": {"a": [1, 2]}}


def test_what_is_gathered_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was when it was checked and again at the end: a ninth of what corrections cost."""
    encoded: list[Draft] = []
    encode = codec._encode_payload

    def counted(draft: Draft, key: str | None, arguments: bytes | None) -> bytes:
        encoded.append(draft)
        return encode(draft, key, arguments)

    monkeypatch.setattr(codec, "_encode_payload", counted)
    with cerata.open(":memory:") as store:
        with store.transaction():
            store.put_frames(["a", "b"])
            store.put_frame("c")
        assert len(encoded) == 3
        # The first event holds the key, which counts for the calls of the whole block.
        with store.transaction(key="k"):
            store.put_frames(["d", "e"])
        assert len(encoded) == 6
        assert sorted(frame.text for frame in store.frames()) == ["a", "b", "c", "d", "e"]
        assert session_of(store).first_use("k", "default") is not None


def test_what_was_interrupted_while_it_was_checked_is_not_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only what is refused was taken back: a block that caught the interrupt appended it."""

    def interrupted(*_: object) -> list[bytes]:
        raise KeyboardInterrupt

    with cerata.open(":memory:") as store:
        with store.transaction():
            store.put_frame("a")
            with monkeypatch.context() as patch:
                patch.setattr(BatchChecks, "take", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    store.put_frame("b")
            store.put_frame("c")
        assert sorted(frame.text for frame in store.frames()) == ["a", "c"]


def test_a_block_whose_generator_dies_is_closed() -> None:
    """A recursion that is too deep ends a generator into which an error is thrown at once."""

    def strike(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "_steps":
            raise KeyboardInterrupt

    with cerata.open(":memory:") as store:
        block = store.transaction()
        block.__enter__()
        store.put_frame("lost with the block")
        before = sys.gettrace()
        sys.settrace(strike)
        try:
            with pytest.raises(KeyboardInterrupt) as caught:
                block.__exit__(ValueError, ValueError("of the block"), None)
        finally:
            sys.settrace(before)
        assert caught.traceback
        assert store.put_frame("written at once").id == 1
        with store.transaction():
            store.put_frame("written by a block")
        assert [frame.id for frame in store.frames()] == [2, 1]


def test_a_block_has_the_time_of_its_append_when_the_clock_stands() -> None:
    """The drafts had the clock's time, before the last event: a new value ended before the old."""
    world, clock = environment()
    with cerata.open(":memory:", environment=world) as store:
        store.graph.declare("lives in", functional=True)
        store.assert_fact("ann", "lives in", "Rome")
        clock.time_us -= 60_000_000
        with store.transaction():
            store.assert_fact("ann", "lives in", "Oslo")
            inside = [fact.object for fact in store.facts("ann", valid_at="now")]
            spans = [(fact.object, str(fact.valid)) for fact in store.graph.versions("ann")]
        assert inside == [fact.object for fact in store.facts("ann", valid_at="now")] == ["Oslo"]
        assert spans == [(fact.object, str(fact.valid)) for fact in store.graph.versions("ann")]


def test_a_repeated_block_sees_its_facts_now() -> None:
    """Its "now" was before its own drafts, so a correct retry was refused."""
    world, clock = environment()

    def block(store: cerata.Store) -> cerata.Receipt | None:
        with store.transaction(key="k") as transaction:
            store.assert_fact("ann", "likes", "tea")
            if store.facts("ann", valid_at="now"):
                store.put_frame("ann likes tea")
        return transaction.receipt

    with cerata.open(":memory:", environment=world) as store:
        store.put_frame("before")
        clock.time_us += 5_000_000
        first, again = block(store), block(store)
        assert first is not None
        assert again is not None
        assert again.seqs == first.seqs
        assert not again.added


def test_a_call_in_a_block_is_refused_for_the_reason_of_an_append() -> None:
    """The checks of later events ran between those of the rules."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("a").id
        fact = store.assert_fact("ann", "likes", "tea").id
        drafts = (
            Draft(SupersedeFrame(old=frame, new=frame)),
            Draft(LinkFacts(fact=fact, kind="supports", target=fact)),
        )
        with pytest.raises(InvalidInput) as alone:
            store.append(*drafts)
        with store.transaction(), pytest.raises(InvalidInput) as inside:
            store.append(*drafts)
        assert str(inside.value) == str(alone.value)


def test_a_transaction_decorates_a_function() -> None:
    """The second call had the generator of the first."""
    with cerata.open(":memory:") as store:
        together: Any = store.transaction()
        put = together(store.put_frame)
        put("a")
        put("b")
        assert len(store) == 2
