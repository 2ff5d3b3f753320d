"""Verdicts: which are written, which are refused, and which count."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

import cerata
import cerata.aio
from cerata import Conflict, InvalidInput, NotFound, ReadOnly
from cerata.agents import judge
from cerata.agents.growth.events import Judge
from cerata.agents.growth.gates import current_proposals
from cerata.engine.draft_validation import check_person
from cerata.engine.events import Draft, JsonValue
from cerata.engine.salted_hashes import judged_hash
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of

from .proposal_words import World, world


@pytest.fixture
def place() -> Iterator[World]:
    with world() as opened:
        yield opened


def ready(place: World) -> int:
    """Return a proposal that meets the first two gates."""
    proposal = place.propose()
    place.assess(proposal)
    place.wait(30)
    return proposal


def appended(place: World, *drafts: Draft) -> None:
    """Append past every rule, as another program would."""
    session_of(place.store).log.append(list(drafts))


def test_a_trait_holds_after_three_gates(place: World) -> None:
    """The receipt names the verdict, and the log the person."""
    proposal = ready(place)
    receipt = place.judge(proposal)
    assert place.holds(proposal)
    [event] = [event for event in place.store.log() if event.type == "judge"]
    assert (event.seq, event.actor) == (receipt.id, "anna")
    assert isinstance(event.body, Judge)
    salt = next(each for each in place.store.log() if each.seq == proposal).salt
    assert salt is not None
    assert event.body.content == judged_hash(salt, "identity", "I keep my word.")


@pytest.mark.parametrize(
    ("days", "is_assessed", "gate"),
    [(29.999, True, "settled"), (30, False, "aligned"), (0, False, "settled")],
)
def test_an_approval_before_its_gates_is_refused(
    place: World, days: float, is_assessed: bool, gate: str
) -> None:
    """The error names the date or the gate, and nothing is written."""
    proposal = place.propose()
    if is_assessed:
        place.assess(proposal)
    place.wait(days)
    before = place.store.head.seq
    with pytest.raises(Conflict, match=gate) as error:
        place.judge(proposal)
    if gate == "settled":
        assert "2025-11-08" in error.value.what
    assert place.store.head.seq == before
    place.judge(proposal, "reject")
    assert not place.holds(proposal)


def test_a_candidate_begins_the_thirty_days(place: World) -> None:
    """Of an event of another tenant, of no event and of a later one they do not begin."""
    first = place.store.put_frame("I always answer in Italian.").id
    place.wait(29)
    proposal = place.propose(candidate=first)
    later = place.propose(candidate=99)
    place.assess(proposal)
    place.wait(1)
    place.judge(proposal)
    assert place.holds(proposal)
    assert place.read(later).candidate is None


def test_a_candidate_of_another_tenant_does_not_count(place: World) -> None:
    """Its time is no business of this tenant."""
    other = place.store.put_frame("hello", options=cerata.PutOptions(scope={"tenant": "beta"})).id
    place.wait(40)
    assert place.read(place.propose(candidate=other)).candidate is None


@pytest.mark.parametrize(
    "values",
    [
        {"aligned": 1},
        {"aligned": False},
        {"line": 0},
        {"line": True},
        {"line": None},
        {"line": "1"},
    ],
)
def test_only_a_whole_assessment_aligns(place: World, values: dict[str, JsonValue]) -> None:
    """An answer that names no line is none."""
    proposal = place.propose()
    place.assess(proposal, **values)
    place.wait(31)
    with pytest.raises(Conflict, match="aligned"):
        place.judge(proposal)


def test_an_assessment_counts_as_long_as_it_is_current(place: World) -> None:
    """Closed before the approval it is withdrawn; closed later it revokes nothing."""
    proposal = ready(place)
    [alignment] = place.read(proposal).alignments
    place.judge(proposal)
    place.store.delete(alignment.frame)
    assert place.holds(proposal)
    place.judge(proposal, "revoke")
    with pytest.raises(Conflict, match="aligned"):
        place.judge(proposal)


def test_an_assessment_of_a_wider_scope_does_not_count(place: World) -> None:
    """Every reader of the proposal must see it."""
    tenant = {"tenant": "acme"}
    with place.store.scoped({**tenant, "user": "ann"}) as ann:
        proposal = World(ann, place.clock).propose()
    World(place.store.scoped(tenant), place.clock).assess(proposal)
    place.wait(31)
    with pytest.raises(Conflict, match="aligned"):
        place.judge(proposal)
    World(place.store.scoped({**tenant, "user": "ann", "mode": "chat"}), place.clock).assess(
        proposal
    )
    place.judge(proposal)
    assert place.holds(proposal)


def test_a_scaffold_holds_from_the_approval_alone(place: World) -> None:
    """It has no line of SOUL, and waits for nothing."""
    proposal = place.propose("Use ripgrep.", "scaffold/tools")
    place.judge(proposal)
    assert place.holds(proposal)


@pytest.mark.parametrize("ending", ["reject", "revoke"])
def test_a_later_approval_restores_a_trait(place: World, ending: str) -> None:
    """The verdict in force is the last that counts."""
    proposal = ready(place)
    for verdict in ("approve", ending, "approve"):
        assert place.judge(proposal, verdict).added
        assert place.in_force(proposal) == verdict
        assert place.holds(proposal) is (verdict == "approve")


@pytest.mark.parametrize("verdict", ["approve", "reject", "revoke"])
def test_an_equal_verdict_in_force_is_not_written_again(place: World, verdict: str) -> None:
    """Another person changes nothing by it."""
    proposal = ready(place)
    first = place.judge(proposal, verdict)
    second = place.judge(proposal, verdict, actor="bob")
    assert (second.id, second.added, second.seqs) == (first.id, False, ())
    assert place.store.head.seq == first.id


def test_a_verdict_on_a_closed_proposal_is_refused(place: World) -> None:
    """A superseding text is a new proposal without verdicts."""
    proposal = ready(place)
    seen = place.read(proposal)
    place.judge(proposal)
    new = place.store.supersede(proposal, "I keep every word.").id
    with pytest.raises(Conflict, match=f"superseded by frame {new}"):
        judge(place.store, seen, "revoke", actor="anna")
    assert not place.holds(proposal)
    assert place.in_force(new) is None
    place.store.delete(new)
    with pytest.raises(Conflict, match="deleted"):
        place.judge(new, "reject")


def test_a_verdict_on_other_content_is_refused(place: World) -> None:
    """The person judged what the person saw."""
    proposal = ready(place)
    seen = replace(place.read(proposal), content=b"x" * 32)
    with pytest.raises(Conflict, match="differs"):
        judge(place.store, seen, "approve", actor="anna")


def test_a_proposal_of_another_tenant_is_not_there(place: World) -> None:
    """Nor is one that no frame of that kind is."""
    proposal = ready(place)
    seen = place.read(proposal)
    with pytest.raises(NotFound):
        judge(place.store.scoped({"tenant": "beta"}), seen, "reject", actor="anna")
    note = place.store.put_frame("no proposal").id
    for id_ in (note, 99, 0, -1):
        with pytest.raises(NotFound):
            judge(place.store, replace(seen, id=id_), "reject", actor="anna")


def test_a_narrower_store_cannot_judge_a_shared_proposal(place: World) -> None:
    """It would change the agent for all."""
    proposal = ready(place)
    seen = place.read(proposal)
    shared = place.store.scoped({"tenant": "default", "user": "ann"}, shared=True)
    with pytest.raises(ReadOnly):
        judge(shared, seen, "approve", actor="ann")


@pytest.mark.parametrize(
    ("kind", "verdict", "actor"),
    [
        ("seen", "yes", "anna"),
        ("seen", None, "anna"),
        ("seen", "approve", ""),
        ("seen", "approve", None),
        ("seen", "approve", " "),
        ("seen", "approve", "\t\n\u00a0\u3000"),
        ("seen", "approve", "\u200b\u200d\u2060\ufeff"),
        ("seen", "approve", "\u3164\u115f\uffa0\u2800"),
        ("seen", "approve", "\u202e\u00ad\U000e0041\ufe0f"),
        ("number", "approve", "anna"),
        ("no content", "approve", "anna"),
        ("text", "approve", "anna"),
    ],
)
def test_bad_input_is_refused(place: World, kind: str, verdict: Any, actor: Any) -> None:
    """Nothing is written."""
    seen = place.read(ready(place))
    judged: dict[str, Any] = {
        "seen": seen,
        "number": seen.id,
        "no content": SimpleNamespace(id=1),
        "text": SimpleNamespace(id="1", content=b"x" * 32),
    }
    before = place.store.head.seq
    with pytest.raises(InvalidInput):
        judge(place.store, judged[kind], verdict, actor=actor)
    assert place.store.head.seq == before


def test_the_rules_of_an_append_check_a_verdict(place: World) -> None:
    """Also of an event that a program appends itself."""
    proposal = ready(place)
    note = place.store.put_frame("no proposal").id
    content = place.read(proposal).content

    def refused(error: type[Exception], match: str, **values: object) -> None:
        fields = {"proposal": proposal, "verdict": "approve", "content": content, **values}
        with pytest.raises(error, match=match):
            place.store.append(Judge(**fields), actor="anna")  # type: ignore[arg-type]

    refused(InvalidInput, "expected one of", verdict="yes")
    refused(InvalidInput, "32 bytes", content=b"x")
    refused(InvalidInput, "no proposal", proposal=note)
    refused(NotFound, "no frame", proposal=99)
    refused(InvalidInput, "of its batch", proposal=-1)
    refused(Conflict, "differs", content=b"x" * 32)
    for blank in (" ", "\u200b", "\u3164\ufe0f"):
        with (
            place.store.scoped({"tenant": "default"}, actor=blank) as of_blank,
            pytest.raises(InvalidInput, match="no visible character"),
        ):
            of_blank.append(Judge(proposal=proposal, verdict="approve", content=content))
    for person in ("anna", "安娜", "7", "☺ \u200b"):
        check_person(person, Judge)
    with pytest.raises(InvalidInput, match="actor"):
        place.store.append(Judge(proposal=proposal, verdict="approve", content=content))
    verdict = Judge(proposal=proposal, verdict="approve", content=content)
    scope = (("tenant", "default"), ("user", "ann"))
    with pytest.raises(InvalidInput, match="scope"):
        place.store.append(Draft(verdict, scope, actor="anna"))
    place.store.delete(proposal)
    refused(Conflict, "was deleted")


def test_approvals_of_another_program_count_only_with_their_gates(place: World) -> None:
    """The reading ignores what no rule has checked."""
    proposal = place.propose()
    content = place.read(proposal).content
    verdict = Judge(proposal=proposal, verdict="approve", content=content)
    appended(place, Draft(verdict, actor="eve"))
    place.wait(31)
    appended(place, Draft(verdict, actor="eve"))
    place.assess(proposal)
    assert place.in_force(proposal) is None
    appended(place, Draft(replace_content(verdict, b"y" * 32), actor="eve"))
    appended(place, Draft(verdict, (("tenant", "beta"),), actor="eve"))
    appended(place, Draft(verdict, (("tenant", "default"), ("user", "eve")), actor="eve"))
    assert place.in_force(proposal) is None
    appended(place, Draft(verdict, actor="eve"))
    assert place.in_force(proposal) == "approve"


def replace_content(verdict: Judge, content: bytes) -> Judge:
    return Judge(proposal=verdict.proposal, verdict=verdict.verdict, content=content)


def test_a_transaction_sees_its_verdict(place: World) -> None:
    """And writes it with the rest of the batch, once."""
    proposal = ready(place)
    with place.store.transaction(key="k") as transaction:
        assert place.judge(proposal).added
        assert place.holds(proposal)
        assert not place.judge(proposal).added
        assert place.judge(proposal, "revoke").added
        assert not place.holds(proposal)
    assert place.in_force(proposal) == "revoke"
    assert len(transaction.receipt.seqs) == 2


def test_the_past_has_the_verdicts_of_its_time(place: World) -> None:
    """A view reads the newest rows up to its basis."""
    proposal = ready(place)
    states: dict[int, bool] = {}
    for verdict in ("approve", "revoke", "approve"):
        states[place.judge(proposal, verdict).id] = verdict == "approve"
    views = [World(place.store.at(seq), place.clock) for seq in states]  # type: ignore[arg-type]
    assert [view.holds(proposal) for view in views] == list(states.values())


def test_an_import_leaves_verdicts_out_and_moves_ids(place: World) -> None:
    """There the salts and times are others, and an old id could name another proposal."""
    candidate = place.store.put_frame("an exchange").id
    place.wait(40)
    proposal = place.propose(candidate=candidate)
    stray = place.propose("Another.", candidate=candidate)
    place.assess(proposal)
    place.judge(proposal)
    place.judge(stray, "reject")
    lines = BytesIO()
    place.store.interchange.export_events(lines)
    with world() as other:
        for number in range(3):
            other.store.put_frame(f"note {number}")
        lines.seek(0)
        imported = other.store.interchange.import_events(lines)
        assert imported.skipped == {"judge": 2}
        proposals = current_proposals(snapshot_of(other.store))
        assert [each.text for each in proposals] == ["I keep my word.", "Another."]
        first, second = proposals
        assert first.id not in (proposal, stray)
        assert first.candidate == second.candidate == first.id - 2
        assert [each.line for each in first.alignments] == [1]
        assert second.alignments == ()
        assert first.in_force is None
        with pytest.raises(Conflict, match="settled"):
            other.judge(first.id)


def test_a_fork_takes_back_verdicts_on_proposals_of_both(place: World) -> None:
    """A proposal of the fork gets another salt, under which no person has judged it."""
    proposal = place.propose("Use ripgrep.", "scaffold/tools")
    with place.store.upkeep.fork() as store:
        fork = World(store, place.clock)
        fork.judge(proposal)
        later = fork.propose("Use sed.", "scaffold/tools")
        fork.assess(later)
        fork.judge(later)
        drafts = store.upkeep.drafts_after(place.store)
        assert [draft.body.wire_name for draft in drafts] == ["judge", "putFrame", "putFrame"]
        assert "proposal" not in drafts[2].body.metadata  # type: ignore[attr-defined]
        place.store.upkeep.apply(store)
    assert place.in_force(proposal) == "approve"
    [_, copied] = current_proposals(snapshot_of(place.store))
    assert copied.in_force is None


def test_a_read_only_store_does_not_judge(tmp_path: object) -> None:
    """It raises before it looks."""
    path = f"{tmp_path}/a.cera"
    with world(path) as place:
        proposal = ready(place)
        seen = place.read(proposal)
    with cerata.open(path, mode="r") as store, pytest.raises(ReadOnly):
        judge(store, seen, "reject", actor="anna")


def test_a_verdict_with_asyncio_joins_the_transaction() -> None:
    """An asynchronous store has no method for it: its threads run the call."""

    async def run() -> None:
        async with cerata.aio.open(":memory:", actor="anna") as store:
            agent = cerata.Agent(store.sync, "wyatt")
            await store.run(agent.propose, "Use ripgrep.", target="scaffold/tools")
            [proposal] = await store.run(agent.proposals)
            async with store.transaction() as transaction:
                note = await store.put_frame("a note")
                verdict = await store.run(judge, store.sync, proposal, "approve", actor="anna")
            assert (note.id, verdict.id) == (-1, -2)
            assert transaction.receipt.seqs == (2, 3)
            [proposal] = await store.run(agent.proposals)
            assert proposal.status == "approved"

    asyncio.run(run())
