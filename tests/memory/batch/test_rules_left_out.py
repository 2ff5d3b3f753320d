"""A call is checked only by the rules about its drafts; counts, since times differ by the load.

Twelve rules looked through each text of a block, which took a third of the time of its write.
"""

from collections.abc import Sequence
from typing import Final

import pytest

from cerata import Store
from cerata.agents.activities.events import EndActivity, RecordCall, StartActivity
from cerata.agents.growth.events import Judge
from cerata.engine.errors import Conflict, NotFound
from cerata.engine.events import (
    AccessFrames,
    AssertFact,
    DeleteFrame,
    Draft,
    EventBody,
    LinkFacts,
    MergeEntities,
    PutEntity,
    PutFrame,
    PutPredicate,
    PutTag,
    RetractFact,
    SplitEntity,
    SupersedeFrame,
    UnmergeEntities,
    UnsplitEntity,
    UseEmbedder,
)
from cerata.engine.packs import packs, target
from cerata.memory.batch.conditional_draft import conditional
from cerata.memory.batch.frame_rules import ExpiryRules
from cerata.memory.batch.owner_rules import SharedRules
from cerata.memory.batch.reference_rules import ReferenceRules
from cerata.memory.batch.rule import Rule
from cerata.memory.batch.validation import BatchChecks, TagRules, all_rules
from cerata.memory.batch.vector_rules import SpaceRules
from cerata.memory.batch.writer import session_of

BODIES: Final[Sequence[EventBody]] = (
    PutFrame(text="Anna met Ben", uri="uri:a", expires=1),
    DeleteFrame(frame=1),
    SupersedeFrame(old=1, new=2),
    AccessFrames(frames=(1,)),
    AssertFact(subject="Anna", predicate="likes", object_kind="entity", object="Ben"),
    RetractFact(fact=3),
    LinkFacts(fact=7, kind="supersedes", target=5),
    PutEntity(entity="Anna", kind="person"),
    PutPredicate(predicate="lives in", functional=True),
    MergeEntities(entity="Ann", into="Anna"),
    UnmergeEntities(merge=14),
    SplitEntity(entity="Anna", into="Anna B", facts=(2,)),
    UnsplitEntity(split=16),
    PutTag(tag="t", at=1),
    UseEmbedder(identity="e@1", space="s"),
    StartActivity(kind="session", name="s", agent="a", agent_version="1"),
    RecordCall(activity=20, kind="tool", name="t", arguments="{}", digest=b"d" * 32),
    EndActivity(activity=20, status="done"),
    Judge(proposal=1, verdict="approve", content=b"c" * 32),
)
DRAFTS: Final = (
    *map(Draft, BODIES),
    conditional(Draft(BODIES[0]), only_of_uri=True, sources=(1,), embedder=("s", None)),
)


@pytest.fixture
def taking(monkeypatch: pytest.MonkeyPatch) -> list[type[Rule]]:
    """The rules that took drafts, in the order of their calls."""
    rules: list[type[Rule]] = []

    def record(kind: type[Rule]) -> None:
        take = kind.take

        def recording(rule: Rule, drafts: Sequence[Draft], first: int) -> bool:
            rules.append(kind)
            return take(rule, drafts, first)

        monkeypatch.setattr(kind, "take", recording)

    for kind in Rule.__subclasses__():
        record(kind)
    return rules


def test_a_text_is_given_to_the_rules_of_frames_only(
    store: Store, taking: list[type[Rule]]
) -> None:
    with store.transaction():
        store.put_frame("a")
        assert taking == [ReferenceRules, SharedRules, ExpiryRules, SpaceRules]


def after(rule: Rule, drafts: Sequence[Draft]) -> tuple[bool, dict[str, object]]:
    """Return whether a check of a call is due, and the state of the rule after the call."""
    is_due = rule.take(drafts, 1)
    rule.keep()
    return is_due, {name: value for name, value in vars(rule).items() if name != "_drafts"}


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: type(draft.body).__name__)
def test_a_rule_that_is_left_out_would_take_nothing(
    store: Store, taking: list[type[Rule]], draft: Draft
) -> None:
    """Its check of the call, and of all later calls of the block, would be the same."""
    session = session_of(store)
    fold, reach, uses = session.fold, session.reach, session.uses
    BatchChecks(session.log, fold, reach, {}, uses).gather([draft])
    about = {*taking}
    assert len(about) < len(Rule.__subclasses__())
    of_packs = [target(name) for pack in packs() for name in pack.rules]
    pairs = zip(
        *([*all_rules(reach, fold, {}, uses), *(make() for make in of_packs)] for _ in range(2)),
        strict=True,
    )
    for rule, unasked in pairs:
        if type(rule) not in about:
            assert after(rule, [draft]) == after(unasked, [])


def test_a_body_of_a_derived_type_is_given_to_the_rules_of_its_base(
    store: Store, taking: list[type[Rule]]
) -> None:
    class Mark(PutTag, frozen=True, kw_only=True):
        """A tag of an application."""

    with store.transaction(), pytest.raises(NotFound, match="no event 9 to tag"):
        store.append(Mark(tag="t", at=9))
    assert TagRules in taking


def test_a_refused_call_leaves_nothing_to_the_next(store: Store) -> None:
    """A rule that the next call leaves out must not count refused drafts."""
    first, second = (store.assert_fact("Anna", "likes", name).id for name in ("Ben", "Carl"))
    store.retract_fact(second)
    with store.transaction():
        with pytest.raises(Conflict, match="is retracted already"):
            session_of(store).write([Draft(RetractFact(fact=fact)) for fact in (first, second)])
        store.put_frame("text")
        store.retract_fact(first)
    assert store.facts() == []
