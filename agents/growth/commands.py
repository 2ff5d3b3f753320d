"""Judging: the call by which a person approves, rejects or revokes a proposal.

Owns the checks of the call. Leaves out the rule of the gates (`gates`), and the check of the batch
under the lock (`rules`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from cerata.engine.arguments import expect_integer, expect_one_of
from cerata.engine.draft_validation import check_note, check_person
from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import Draft
from cerata.engine.late import late
from cerata.engine.limits import ACTOR_SIZE_MAX
from cerata.memory.batch.writer import Writer, session_of
from cerata.memory.snapshot.reader import store_call
from cerata.memory.values.arguments import full_scope
from cerata.projections.columnar.times import to_datetime

from .events import VERDICTS, Judge

if TYPE_CHECKING:
    from cerata.memory.batch import attempts as batch_attempts
    from cerata.memory.batch import owner_rules
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.memory.values.frames import Receipt

    from . import gates
    from .gates import GatedProposal
    from .proposal_values import Judged, VerdictName
else:
    batch_attempts = late("cerata.memory.batch.attempts")
    owner_rules = late("cerata.memory.batch.owner_rules")
    gates = late("cerata.agents.growth.gates")

_REMEDY: Final = "Pass a Proposal of Agent.proposals(), which has the content that you saw."


@store_call
def judge(store: Writer, proposal: Judged, verdict: VerdictName, *, actor: str) -> Receipt:
    """Record the verdict of a person on a proposal of an agent. Durable on return.

    An approval makes a proposal of the target "identity" a trait, and one of a scaffold part of
    the scaffold; "reject" and "revoke" end that. A verdict equal to the verdict in force is not
    written again: the receipt has its id, with ``added`` False. The id of the receipt is the
    seq of the verdict.

    Args:
        store: The memory.
        proposal: The proposal as the person saw it: a value with ``id`` and ``content``.
        verdict: "approve", "reject" or "revoke".
        actor: The person; a name with a visible character.

    Raises:
        InvalidInput: the verdict is unknown, the actor has no visible character, or the
            proposal is no such value.
        NotFound: no such proposal exists within the scope.
        ReadOnly: the store only reads, or the proposal is shared.
        Conflict: the proposal is no longer current, its content differs from the content that
            the person saw, or an approval came before the first two gates.
    """
    expect_one_of("verdict", verdict, VERDICTS, f"Pass one of {', '.join(VERDICTS)}.")
    check_note(cast("object", actor), "actor", ACTOR_SIZE_MAX)
    check_person(actor, Judge)
    number = expect_integer(
        "proposal.id", getattr(proposal, "id", None), "the id of a proposal", _REMEDY
    )
    content = cast("object", getattr(proposal, "content", None))
    if not isinstance(content, bytes):
        raise InvalidInput("proposal has no content", remedy=_REMEDY)
    session = session_of(store).by(actor)
    session.check_writable()
    scope = full_scope(None, session.scope)
    session.record_call(scope, "judge", number, verdict, content)

    def attempt(snapshot: Snapshot) -> Receipt:
        judged = gates.gated_proposal(snapshot, number)
        owner_rules.check_own(f"The proposal {number:,}", judged.scope, snapshot.reach)
        _check_seen(judged, content)
        last = judged.in_force
        if last is not None and last.verdict == verdict:
            return session.unchanged(snapshot, last.seq)
        if verdict == "approve":
            now_us = max(session.log.environment.now_us(), snapshot.head.recorded)
            check_gates(judged, now_us)
        draft = Draft(Judge(proposal=number, verdict=verdict, content=content), judged.scope)
        # Another writer may judge, or close an assessment: then the attempt is repeated.
        expect = None if session.in_transaction else snapshot.basis
        return session.write([draft], expect=expect)

    return batch_attempts.attempted(session, attempt, where=f"proposal {number:,}", in_line=True)


def _check_seen(judged: GatedProposal, content: bytes) -> None:
    """Refuse a verdict on a proposal that is closed, or has other content.

    Raises:
        Conflict: with the event that closed the proposal.
    """
    closing = judged.closing
    if closing is not None:
        new = closing.superseded_by
        ending = "was deleted" if new is None else f"was superseded by frame {new:,}"
        raise Conflict(
            f"The proposal {judged.id:,} {ending}",
            where=f"event {closing.seq:,}",
            remedy="Read the proposals again, and judge a current one.",
        )
    if content != judged.content:
        raise Conflict(
            f"The content of the proposal {judged.id:,} differs from the content that was judged",
            where=f"frame {judged.id:,}",
            remedy="Read the proposal again, and judge what it says now.",
        )


def check_gates(judged: GatedProposal, now_us: int) -> None:
    """Refuse an approval before the first two gates.

    Args:
        judged: The proposal.
        now_us: The time of the approval, in microseconds since 1970 UTC.

    Raises:
        Conflict: with the date, or the missing gate.
    """
    if judged.is_scaffold:
        return
    if now_us < judged.settles_us:
        date = to_datetime(judged.settles_us).isoformat()
        raise Conflict(
            f"The proposal {judged.id:,} settles on {date}, and cannot be approved before",
            where="gate 1, settled",
            remedy="Approve it then; it can be rejected now.",
        )
    if judged.alignment_at(judged.basis + 1) is None:
        raise Conflict(
            f"No assessment names a line of SOUL with which the proposal {judged.id:,} agrees",
            where="gate 2, aligned",
            remedy="Call Agent.reflect() with a SOUL in the memory, or reject the proposal.",
        )
