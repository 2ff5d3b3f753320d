"""Views that are composed of a point, speculative events, an instant of facts, and a scope."""

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cerata
from cerata import Draft, View
from cerata.engine.events import JsonValue, PutFrame, PutTag, RetractFact, SupersedeFrame
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of

from ...inside import state_of
from ..acts import ACTS, Act, everything, perform, renamed

DAYS = ("2020-01-01", "2021-01-01", "2022-01-01")
FACT_KINDS = ("assert", "assert", "assert", "retract", "correct", "merge", "link")
FACT_ACTS: st.SearchStrategy[Act] = st.tuples(
    st.sampled_from(FACT_KINDS), st.integers(0, 60), st.integers(0, 60)
)
Step: TypeAlias = Callable[[View], View]


class Abandoned(Exception):
    """Ends a block without a write."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts


def perform_on_facts(store: cerata.Store, act: Act) -> None:
    """Do one act on facts, as far as there is something to do it to."""
    kind, i, j = act
    facts = [fact.id for fact in store.facts()]
    if kind == "retract" and facts:
        store.retract_fact(facts[i % len(facts)])
    elif kind == "correct" and facts:
        store.correct_fact(facts[i % len(facts)], object=f"corrected {j % 3}")
    elif kind == "merge" and {"ann", "eve"} <= {entity.name for entity in store.graph.entities()}:
        store.graph.merge("ann", "eve")
    elif kind == "link" and len(facts) > 1:
        old, new = facts[i % len(facts)], facts[j % len(facts)]
        if old != new:
            store.graph.link(old, "supports", new)
    else:
        frames = [frame.id for frame in store.frames()]
        store.assert_fact(
            ("ann", "bob", "eve")[i % 3],
            ("likes", "lives in")[j % 2],
            ("tea", "Bern")[i // 3 % 2],
            valid_from=DAYS[j % 3],
            options=cerata.FactOptions(
                because=frames[j % len(frames)] if frames and i % 4 == 0 else None
            ),
        )


def perform_any(store: cerata.Store, act: Act) -> None:
    if act[0] in FACT_KINDS:
        perform_on_facts(store, act)
    else:
        perform(store, act)


def said(view: View) -> JsonValue:
    """Every read of frames and words, and the facts; times of recording are left out."""
    facts: list[JsonValue] = [
        {name: value for name, value in fact.to_dict().items() if name != "known"}
        for fact in view.facts(include_retracted=True, include_invalid=True)
    ]
    found: list[JsonValue] = [
        [hit.fact.id, hit.score] for hit in view.graph.search("who likes tea", k=5)
    ]
    return {**everything(view), "facts": facts, "found": found}


def store_attachments(store: cerata.Store, seq: int) -> tuple[bytes, ...]:
    log = session_of(store).log
    return state_of(log).reader.attachments(log.snapshot, seq)  # pyright: ignore[reportPrivateUsage]


def copy_of(store: cerata.Store, n: int) -> cerata.Store:
    """Return a store built event by event from the first ``n`` events of a store."""
    copy = cerata.open(":memory:")
    for event in store.log(1, n):
        assert not isinstance(event.body, cerata.events.Erased)
        copy.append(
            Draft(
                event.body,
                event.scope or (),
                event.actor,
                causation=event.causation,
                attachments=store_attachments(store, event.seq),
                reason=event.reason,
            )
        )
    return copy


def drafts_of(store: cerata.Store, acts: Sequence[Act]) -> Sequence[Draft]:
    """Return the events that acts would append, in one batch; nothing is written."""
    try:
        with store.transaction():
            for act in acts:
                perform_any(store, act)
            raise Abandoned(snapshot_of(store.history.view()).unsalted_drafts)
    except Abandoned as abandoned:
        return abandoned.drafts


@settings(max_examples=25, deadline=None, phases=[Phase.generate], report_multiple_bugs=False)
@given(
    before=st.lists(st.one_of(ACTS, FACT_ACTS), max_size=8),
    inside=st.lists(st.one_of(ACTS, FACT_ACTS), min_size=1, max_size=6),
    data=st.data(),
)
def test_a_composed_view_is_that_of_a_store_built_event_by_event(
    before: list[Act], inside: list[Act], data: st.DataObject
) -> None:
    """A point, speculative events in one or two calls and an instant, in any order."""
    with cerata.open(":memory:") as store:
        for act in before:
            perform_any(store, act)
        n = data.draw(st.integers(0, store.head.seq), label="n")
        instant = data.draw(st.sampled_from((None, *DAYS)), label="instant")
        with copy_of(store, n) as built:
            alone = said(built.history.view().true_at(instant))
            drafts = drafts_of(built, inside)
            cut = data.draw(st.integers(0, len(drafts)), label="cut")
            steps: list[Step] = [
                lambda view: view.at(n),
                lambda view: view.upkeep.speculate(*drafts[:cut]),
                lambda view: view.upkeep.speculate(*drafts[cut:]),
            ]
            place = data.draw(st.integers(0, len(steps)), label="place of the instant")
            steps.insert(place, lambda view: view.true_at(instant))
            view = store.history.view()
            for step in steps:
                view = step(view)
            through = data.draw(st.integers(0, len(drafts)), label="drafts kept")
            kept = view.at(n + through)
            if through:
                built.append(*drafts[:through])
            ids = {-place: n + place for place in range(1, through + 1)}
            expected = renamed(said(built.history.view().true_at(instant)), {})
            assert renamed(said(kept), ids) == expected
            assert said(view.at(n)) == said(store.at(n).true_at(instant))
            assert renamed(said(view.at(n)), {}) == renamed(alone, {})
            for seq in range(n):
                assert view.at(seq).count() == store.at(seq).count()
            assert said(store.stream.replay(view)) == said(view)
            if drafts and not through:
                built.append(*drafts)
                whole = {-place: n + place for place in range(1, len(drafts) + 1)}
                expected = renamed(said(built.history.view().true_at(instant)), {})
                assert renamed(said(view), whole) == expected


def test_speculation_leaves_every_byte_of_the_file(tmp_path: Path) -> None:
    """Every read of a composed view, by a writer and by a reader."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames(["the harbour opens in May", "tea"])
        store.assert_fact("ann", "likes", "tea")
        store.checkpoint()
        before = path.read_bytes()
        view = store.at(1).upkeep.speculate(PutFrame(text="a ferry"), SupersedeFrame(old=1, new=-1))
        assert [hit.text for hit in view.search("ferry harbour")] == ["a ferry"]
        said(store.upkeep.speculate(RetractFact(fact=3)).true_at("2026-01-01"))
        assert path.read_bytes() == before
        assert store.head.seq == 3
    before = path.read_bytes()
    with cerata.open(path, mode="r") as store:
        said(store.upkeep.speculate(PutFrame(text="a ferry")))
    assert path.read_bytes() == before


def test_points_of_a_view_with_drafts() -> None:
    """Every form of a basis; all drafts are the newest batch."""
    with cerata.open(":memory:") as store:
        first = store.put_frame("one")
        store.history.tag("early")
        store.put_frames(["two", "three"])
        view = (
            store.history.view()
            .upkeep.speculate(PutFrame(text="four"))
            .upkeep.speculate(PutFrame(text="five"))
        )
        assert repr(view) == "<cerata.View at event 4 and 2 drafts>"
        texts = {basis: len(view.at(basis)) for basis in ("HEAD", "HEAD~1", "HEAD~2", "early", "4")}
        assert texts == {"HEAD": 5, "HEAD~1": 3, "HEAD~2": 1, "early": 1, "4": 3}
        assert [len(view.at(n)) for n in range(7)] == [0, 1, 1, 2, 3, 4, 5]
        assert len(view.at(first)) == len(view.at(store.at(first))) == 1
        assert len(view.at(view)) == 3
        assert len(view.at(5).upkeep.speculate(PutFrame(text="other"))) == 5
        for basis in (7, "HEAD~5"):
            with pytest.raises(cerata.NotFound):
                view.at(basis)
        with pytest.raises(cerata.NotFound, match="There is no event 4"):
            store.at(3).at(4)
        with pytest.raises(cerata.NotFound, match="no tag"):
            store.at(1).at("early")
        with cerata.open(":memory:") as other, pytest.raises(cerata.InvalidInput, match="another"):
            view.at(other.head)


def test_a_point_of_a_view_keeps_its_scope_and_its_instant() -> None:
    """`at` narrows in time alone, so a view never shows more than before."""
    with cerata.open(":memory:") as store:
        store.put_frame("a", options=cerata.PutOptions(scope={"tenant": "a"}))
        store.put_frame("b", options=cerata.PutOptions(scope={"tenant": "b"}))
        store.assert_fact(
            "ann",
            "likes",
            "tea",
            valid_from="2024-01-01",
            options=cerata.FactOptions(scope={"tenant": "b"}),
        )
        view = store.history.view().within({"tenant": "b"}).true_at("2023-01-01")
        assert view.at(2).scope == (("tenant", "b"),)
        assert [frame.text for frame in view.at(2).frames()] == ["b"]
        assert view.at(3).facts() == []
        added = view.upkeep.speculate(PutFrame(text="c"))
        assert [frame.text for frame in added.frames()] == ["c", "b"]
        assert added.frame(-1).scope == {"tenant": "b"}
        with pytest.raises(cerata.InvalidInput, match="outside"):
            view.upkeep.speculate(Draft(PutFrame(text="c"), (("tenant", "a"),)))
        with pytest.raises(cerata.NotFound):
            view.upkeep.speculate(SupersedeFrame(old=1, new=2))


@pytest.mark.parametrize(
    ("event", "kind", "message"),
    [
        (PutTag(tag="early", at=1), cerata.Conflict, "early"),
        (SupersedeFrame(old=1, new=9), cerata.NotFound, "9"),
        (Draft(PutFrame(text="x"), salt=b"0" * 16), cerata.InvalidInput, "salt"),
        ("text", cerata.InvalidInput, "event bodies or drafts"),
        (PutFrame(text="x", created="May"), cerata.InvalidInput, "created"),  # type: ignore[arg-type]
    ],
)
def test_an_event_that_an_append_refuses_is_refused(
    event: object, kind: type[cerata.CerataError], message: str
) -> None:
    """By the same rules, as of the view's basis."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        store.history.tag("early")
        with pytest.raises(kind, match=message):
            store.upkeep.speculate(event)  # type: ignore[arg-type]
        assert store.at(1).upkeep.speculate(PutTag(tag="early", at=1)).history.tags() == {
            "early": 1
        }
        assert len(store.upkeep.speculate()) == 1


def test_ids_of_speculative_events_stay_with_their_view() -> None:
    """In a store, and in another view, such an id would name another thing."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        view = store.upkeep.speculate(PutFrame(text="two"))
        [frame] = [frame for frame in view.frames() if frame.id < 0]
        assert view.history.of(frame) == [frame]
        for reader in (store, store.upkeep.speculate(PutFrame(text="three"))):
            with pytest.raises(cerata.NotFound, match="speculative events"):
                reader.history.of(frame)
        with pytest.raises(cerata.NotFound, match="speculative events"):
            store.delete(frame)
        with pytest.raises(cerata.NotFound, match="speculative events"):
            store.history.of(pickle.loads(pickle.dumps(frame)))


def test_speculation_inside_a_transaction_follows_its_drafts() -> None:
    """What would the block look like with one more event; the block stays as it is."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        with store.transaction() as block:
            store.put_frame("two")
            view = store.upkeep.speculate(PutFrame(text="three"))
            assert [frame.id for frame in view.frames()] == [-2, -1, 1]
            assert len(store) == 2
            store.put_frame("four")
        assert block.receipt.seqs == (2, 3)
        assert [frame.text for frame in view.frames()] == ["three", "two", "one"]


def test_many_speculations_are_seeded_walks() -> None:
    """A tree of views: each is its path, whatever its siblings are."""
    draws = Random(20)
    with cerata.open(":memory:") as store:
        store.put_frames(["root one", "root two"])
        leaves: list[tuple[View, tuple[str, ...]]] = [(store.history.view(), ())]
        for number in range(30):
            view, path = draws.choice(leaves)
            leaves.append(
                (view.upkeep.speculate(PutFrame(text=f"t{number}")), (*path, f"t{number}"))
            )
        for view, path in leaves:
            texts = [frame.text for frame in view.frames()][::-1]
            assert texts == ["root one", "root two", *path]
        assert all(first[0] is not second[0] for first, second in pairwise(leaves))
