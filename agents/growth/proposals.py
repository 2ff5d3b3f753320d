"""Proposals: the changes that an agent asks for, with the gates of a person's approval.

Owns the values, the readings and the draft of a proposal. Leaves out the rule of the gates
(`gates`), verdicts (`commands`) and the model's task that assesses a
proposal. That task meets gate 2 with a frame of the kind "assessment" and the metadata of
`aligned_metadata`; a frame of another form meets no gate.

Unvalidated heuristics: the 30 days, 500 characters, and 5 open proposals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from cerata.engine.arguments import expect_one_of, expect_text, is_integer
from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import Draft, JsonValue, PutFrame, Scope
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import readable
from cerata.memory.batch.attempts import attempted
from cerata.memory.frames.drafts import frame_draft, frame_fields
from cerata.memory.values.arguments import listed
from cerata.projections.columnar.times import to_datetime, to_microseconds
from cerata.retrieval.context.imitation import on_one_line

from .gates import GatedProposal, current_proposals
from .proposal_values import ALIGN, PROPOSAL, TARGETS

if TYPE_CHECKING:
    from cerata.memory.batch.session import WriteSession
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.memory.values.frames import FrameId, Receipt

TEXT_LENGTH_MAX: Final = 500
"""Characters of a proposal: a person reads all of it."""

OPEN_MAX: Final = 5
"""Open proposals of an agent: a person judges few, and the agent waits."""

BECAUSE_MAX: Final = 100

Status: TypeAlias = Literal["open", "approved", "rejected", "revoked"]

_STATUS: Final[dict[str, Status]] = {
    "approve": "approved",
    "reject": "rejected",
    "revoke": "revoked",
}


@dataclass(frozen=True, slots=True)
class Gate(PlainValue):
    """A gate of a proposal, met or not, and the reason.

    ``date`` is the time from which a proposal is settled, and the time of the verdict in force.
    """

    is_met: bool
    reason: str
    date: datetime | None = None

    def __str__(self) -> str:
        return "yes" if self.is_met else "no"


@dataclass(frozen=True, slots=True)
class Gates(PlainValue):
    """The gates of a proposal."""

    settled: Gate
    aligned: Gate
    approved: Gate

    def __str__(self) -> str:
        return f"settled: {self.settled}, aligned: {self.aligned}, approved: {self.approved}"


@dataclass(frozen=True, slots=True)
class Proposal(PlainValue):
    """A change that an agent proposes, as of a basis.

    - ``target`` is "identity", or "scaffold/" and a part; ``candidate`` is the seq of the event
      that the thirty days count from, and ``because`` the frames that led to the proposal.
    - ``content`` is the hash of target and text that a verdict on this value has.
    - ``status`` is "open" without a verdict that counts, else that of the last such verdict.
    """

    id: int
    agent: str | None
    target: str
    text: str
    candidate: int | None
    because: tuple[int, ...]
    proposed: datetime
    content: bytes
    gates: Gates
    status: Status

    @property
    def holds(self) -> bool:
        """True if the proposal is a trait of the agent, or a part of its scaffold."""
        return self.status == "approved"

    def __str__(self) -> str:
        gates = self.gates
        reasons = (
            ("settled", gates.settled),
            ("aligned", gates.aligned),
            ("approved", gates.approved),
        )
        lines = [f"#{self.id} {self.target}, {self.status}: {on_one_line(self.text)}"]
        lines += [f"  {name}: {gate}, {on_one_line(gate.reason)}" for name, gate in reasons]
        return "\n".join(lines)


def aligned_metadata(proposal: int, line: int | None) -> dict[str, JsonValue]:
    """Return the metadata of an assessment that compares a proposal with SOUL.

    Args:
        proposal: The id of the proposal.
        line: The line of SOUL that it agrees with, by its number among the lines that are not
            empty, from 1; None if it agrees with none.
    """
    metadata: dict[str, JsonValue] = {"task": ALIGN, "proposal": proposal}
    return {**metadata, "aligned": line is not None, "line": line}


def proposals_of(snapshot: Snapshot, agent: str | None) -> list[Proposal]:
    """Return the current proposals of an agent, or of all, oldest first. Cost: a read of each."""
    gated = current_proposals(snapshot, agent)
    return [*readable(gated, partial(proposal_of, snapshot), lambda each: f"Proposal {each.id:,}")]


def proposal_of(snapshot: Snapshot, gated: GatedProposal) -> Proposal:
    """Return the value of a proposal with its gates."""
    last = gated.in_force
    return Proposal(
        id=gated.id,
        agent=gated.track,
        target=gated.target,
        text=gated.text,
        candidate=gated.candidate,
        because=_because(snapshot, gated.id),
        proposed=to_datetime(gated.recorded),
        content=gated.content,
        gates=_gates(snapshot, gated),
        status="open" if last is None else _STATUS[last.verdict],
    )


def _because(snapshot: Snapshot, proposal: int) -> tuple[int, ...]:
    """Return the frames that led to a proposal: its cause, if a reflection, and those named."""
    event = snapshot.layers.event(proposal)
    value = event.body.metadata.get("because") if isinstance(event.body, PutFrame) else None
    named = cast("list[object]", value) if isinstance(value, list) else []
    cause = snapshot.cause_of(proposal)
    causes = [cause] if cause is not None and snapshot.layers.has(cause) else []
    frames = (frame for frame in named if is_integer(frame) and frame > 0)
    return tuple(dict.fromkeys([*causes, *frames]))


def _gates(snapshot: Snapshot, gated: GatedProposal) -> Gates:
    """Return the gates: those of the approval in force, else those of an approval now."""
    last = gated.in_force
    if last is None:
        approved = Gate(is_met=False, reason="no verdict")
    else:
        event = snapshot.event_of(last.seq)
        by = "an unknown person" if event is None or event.actor is None else event.actor
        reason = f"{_STATUS[last.verdict]} by {by} (event {last.seq})"
        approved = Gate(last.verdict == "approve", reason, to_datetime(last.recorded))
    if gated.is_scaffold:
        needless = Gate(is_met=True, reason=f"not needed for {gated.target}")
        return Gates(needless, needless, approved)
    moment, now_us = gated.basis + len(snapshot.drafts) + 1, to_microseconds(snapshot.now)
    if last is not None and approved.is_met:
        moment, now_us = gated.moment_of(last), last.recorded
    date = to_datetime(gated.settles_us)
    is_settled = now_us >= gated.settles_us
    settled = Gate(is_settled, f"{'since' if is_settled else 'on'} {date.isoformat()}", date)
    alignment = gated.alignment_at(moment)
    if alignment is None:
        return Gates(settled, Gate(is_met=False, reason="no line of SOUL is named"), approved)
    reason = f"with line {alignment.line} of SOUL (#{alignment.frame})"
    return Gates(settled, Gate(is_met=True, reason=reason), approved)


def propose(
    writer: WriteSession,
    scope: Scope,
    agent: str,
    text: str,
    *,
    target: str,
    because: Sequence[FrameId],
) -> Receipt:
    """Put a proposal, unless an equal one is open; see `Agent.propose`."""
    check_proposal(text, target)
    frames = listed("because", because)
    if len(frames) > BECAUSE_MAX:
        raise InvalidInput(
            f"because has {len(frames)} frames; the limit is {BECAUSE_MAX}",
            remedy="Pass the frames that matter most.",
        )

    def attempt(snapshot: Snapshot) -> Receipt:
        reasons = tuple(dict.fromkeys(snapshot.id_of(frame) for frame in frames))
        opened = open_proposals(snapshot, agent)
        for each in opened:
            if (each.target, each.text) == (target, text):
                return writer.unchanged(snapshot, each.id, (each.id,))
        if len(opened) >= OPEN_MAX:
            raise Conflict(
                f"The agent {agent!r} has {len(opened)} open proposals; the limit is {OPEN_MAX}",
                where=", ".join(f"#{each.id}" for each in opened),
                remedy="Approve or reject one with cerata.agents.judge().",
            )
        draft = proposal_draft(text, scope, agent, target=target, because=reasons)
        return writer.write([draft], expect=snapshot.basis)

    return attempted(writer, attempt, where=f"agent {agent!r}", in_line=True)


def check_proposal(text: str, target: str) -> None:
    """Refuse the text or the target of a proposal: `InvalidInput`."""
    expect_text("text", text)
    if not text.strip() or len(text) > TEXT_LENGTH_MAX:
        raise InvalidInput(
            f"text has {len(text):,} characters, expected 1 to {TEXT_LENGTH_MAX}",
            remedy="Propose one change in a few sentences.",
        )
    expect_one_of("target", target, TARGETS, f"Pass one of {', '.join(TARGETS)}.")


def open_proposals(snapshot: Snapshot, agent: str) -> list[GatedProposal]:
    """Return the current proposals of an agent on which no verdict counts, oldest first."""
    return [each for each in current_proposals(snapshot, agent) if each.in_force is None]


def proposal_draft(
    text: str,
    scope: Scope,
    agent: str,
    *,
    target: str = "identity",
    because: Sequence[int] = (),
    candidate: int | None = None,
) -> Draft:
    """Return the event that puts a proposal.

    Args:
        text: The checked text.
        scope: The scope of the agent.
        agent: The name of the agent, which is the frame's track.
        target: The checked target; default "identity".
        because: The ids of the frames that led to it; default none.
        candidate: The seq of the event that the thirty days count from; default the proposal's.
    """
    metadata: dict[str, JsonValue] = {"target": target}
    if because:
        metadata["because"] = list(because)
    if candidate is not None:
        metadata["candidate"] = candidate
    fields = frame_fields(kind=PROPOSAL, track=agent, metadata=metadata)
    return frame_draft(text, fields, scope)
