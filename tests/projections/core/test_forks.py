"""Forks: a transaction folds its drafts over a fork, which must equal a fold and leak nothing."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.agents.activities.projection import ActivitiesProjection
from cerata.engine.events import (
    AssertFact,
    EventBody,
    Evidence,
    LinkFacts,
    MergeEntities,
    PutEntity,
    PutFrame,
    PutPredicate,
    RetractFact,
    SplitEntity,
    UnlinkFacts,
    UnmergeEntities,
)
from cerata.projections.columnar.columns import Column
from cerata.projections.core.projection import BLOCK_SEQS, Forkable
from cerata.projections.facts.projection import FactsProjection
from cerata.projections.facts.text_projection import FactTextProjection
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.links.projection import LinksProjection

from ..histories import Folded, events_of, histories, long_history

KINDS: tuple[type[Forkable], ...] = (
    FactsProjection,
    FactTextProjection,
    LinksProjection,
    FulltextProjection,
    ActivitiesProjection,
)


def fact(subject: str, value: str, predicate: str = "likes") -> AssertFact:
    """Return an assertion with evidence and an assumption."""
    return AssertFact(
        subject=subject,
        predicate=predicate,
        object_kind="entity",
        object=value,
        evidence=(Evidence(frame=1),),
        assumptions=("as told",),
    )


BODIES: Sequence[EventBody] = (
    PutFrame(text="Anna and Ben met"),
    fact("Anna", "Ben"),
    fact("Ben", "Carl"),
    PutPredicate(predicate="lives in", functional=True),
    fact("Anna", "Oslo", "lives in"),
    fact("Anna", "Ben"),
    fact("Anna", "Rome", "lives in"),
    LinkFacts(fact=7, kind="supersedes", target=5),
    PutEntity(entity="Anna", kind="person", aliases=("Ann", "Annie")),
    MergeEntities(entity="Ann", into="Anna"),
    RetractFact(fact=3),
    LinkFacts(fact=2, kind="supports", frame=1),
    UnlinkFacts(link=8),
    MergeEntities(entity="Carl", into="Ben"),
    UnmergeEntities(merge=14),
    SplitEntity(entity="Anna", into="Anna B", facts=(2,)),
    RetractFact(fact=3),
    LinkFacts(fact=7, kind="supersedes", target=5),
    fact("Ann", "Paris", "lives in"),
    StartActivity(kind="session", name="s", agent="a", agent_version="1"),
    RecordCall(activity=20, kind="tool", name="t", arguments="{}", digest=b"d" * 32, used=(1,)),
    EndActivity(activity=20, status="done"),
    StartActivity(kind="session", name="s", agent="a", agent_version="1", resumes=20),
)


def check_fork(kind: type[Forkable], events: Sequence[Folded], cut: int, end: int) -> None:
    """Fork a fold of the first ``end`` events at ``cut``; fold on in both, and compare."""
    straight, shared = kind(), kind()
    straight.apply(events)
    shared.apply(events[:end])
    before = shared.digest()
    fork = shared.fork(cut)
    fork.apply(events[cut:])
    fork.check()
    assert shared.digest() == before
    shared.check()
    shared.apply(events[end:])
    for state in (fork, shared):
        assert state.digest() == straight.digest()
        assert state.digest_at(cut) == straight.digest_at(cut)
        assert not events or state.chunk(0) == straight.chunk(0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_at_any_event_equals_a_fold_and_leaks_nothing(kind: type[Forkable]) -> None:
    """The closings, merges and names after the cut belong to the shared state alone."""
    events = events_of(BODIES)
    for end in range(len(events) + 1):
        for cut in range(end + 1):
            check_fork(kind, events, cut, end)


@given(histories, st.integers(0, 40), st.integers(0, 40))
def test_the_words_of_a_fork_are_those_of_a_fold(events: list[Folded], cut: int, end: int) -> None:
    # An earlier cut divides pieces of postings, and the words that occur later.
    end = min(end, len(events))
    check_fork(FulltextProjection, events, min(cut, end), end)


def test_a_fork_within_a_later_block_has_the_digests_of_the_blocks_before() -> None:
    # Small histories complete no block.
    events = long_history(2 * BLOCK_SEQS + 500)
    check_fork(FulltextProjection, events, BLOCK_SEQS + 7, 2 * BLOCK_SEQS + 100)
    bodies = [fact(f"name {seq % 900}", f"value {seq}") for seq in range(BLOCK_SEQS + 300)]
    check_fork(FactsProjection, events_of(bodies), BLOCK_SEQS - 1, BLOCK_SEQS + 200)


def test_two_forks_of_one_state_are_independent() -> None:
    """Two transactions of one process may be open at once."""
    events = events_of(BODIES)
    branch = events_of([fact("Zoe", f"value {place}") for place in range(len(BODIES))])
    shared = FactsProjection()
    shared.apply(events[:9])
    forks = shared.fork(9), shared.fork(9)
    forks[0].apply(events[9:])
    forks[1].apply(branch[9:])
    for fork, later in zip(forks, (events, branch), strict=True):
        straight = FactsProjection()
        straight.apply([*events[:9], *later[9:]])
        assert fork.digest() == straight.digest()


def test_a_shared_column_cannot_be_overwritten() -> None:
    """An overwritten item would change the state that the fork shares."""
    column = Column(np.uint32)
    column.extend([1, 2, 3])
    fork = Column(np.uint32)
    fork.share(column, 2)
    with pytest.raises(ValueError, match="read-only"):
        fork.set_once(0, 9)
    fork.extend([7])
    fork.set_once(0, 9)
    column.extend([4])
    assert (column.view().tolist(), fork.view().tolist()) == ([1, 2, 3, 4], [9, 2, 7])
