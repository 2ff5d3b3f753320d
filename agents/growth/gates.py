"""Gates: the rule by which a proposal holds, as of any basis.

A proposal with the target "identity" is a trait while one approval meets three gates, and no later
verdict rejects or revokes it:

1. settled: the approval came 30 days or more after the candidate's event, and without a candidate
   after the proposal;
2. aligned: at the approval, a current assessment named a line of SOUL;
3. approved: the approval has the hash of the proposal's content.

A proposal with the target "scaffold/…" needs the third gate alone. An approval without its gates
counts for nothing, so a program that appends one changes nothing. No gate reads a clock: the
recorded times of events decide. An unvalidated heuristic: the 30 days.

Owns the rule. Leaves out the write of a verdict (`commands`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from cerata.engine.arguments import is_integer
from cerata.engine.errors import NotFound
from cerata.engine.events import PutFrame
from cerata.engine.unreadable import frame_place, readable
from cerata.projections.columnar.scopes import Reach, admits, is_same, tenant_in
from cerata.projections.frames.filters import Filter

from .proposal_values import ALIGN, ASSESSMENT, PROPOSAL, SCAFFOLD, content_of, target_and_text
from .verdicts import Verdict, Verdicts

if TYPE_CHECKING:
    from cerata.engine.events import Event, Scope
    from cerata.memory.snapshot.layers import Layers
    from cerata.memory.snapshot.pending import PendingEvent
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.projections.frames.reader import Closing

SETTLING_DAYS: Final = 30
SETTLING_US: Final = SETTLING_DAYS * 24 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Alignment:
    """An assessment that names the line of SOUL with which a proposal agrees.

    ``frame`` is its id, ``moment`` its place in the log, ``end`` that of the event that closed it.
    """

    frame: int
    moment: int
    end: int | None
    line: int


_ScopedAlignment: TypeAlias = "tuple[Alignment, Scope]"


@dataclass(frozen=True, slots=True)
class GatedProposal:
    """A proposal with all that decides whether it holds.

    - ``settles_us`` is the first time at which an approval passes the first gate.
    - ``verdicts`` are those of the proposal's scope, in order.
    - ``content`` is the hash that an approval must have.
    """

    id: int
    target: str
    text: str
    content: bytes
    scope: Scope
    recorded: int
    track: str | None
    candidate: int | None
    settles_us: int
    alignments: tuple[Alignment, ...]
    verdicts: tuple[Verdict, ...]
    closing: Closing | None
    basis: int

    @property
    def is_scaffold(self) -> bool:
        return self.target.startswith(SCAFFOLD)

    @property
    def in_force(self) -> Verdict | None:
        """The last verdict that counts; an approval without its gates does not."""
        last = None
        for verdict in self.verdicts:
            if verdict.verdict in ("reject", "revoke") or self._meets_gates(verdict):
                last = verdict
        return last

    @property
    def holds(self) -> bool:
        """True while an approval is in force and the proposal is current."""
        last = self.in_force
        return self.closing is None and last is not None and last.verdict == "approve"

    def alignment_at(self, moment: int) -> Alignment | None:
        """Return the newest alignment that is current at a place of the log."""
        current = [
            each
            for each in self.alignments
            if each.moment < moment and (each.end is None or each.end > moment)
        ]
        return max(current, key=lambda each: each.moment, default=None)

    def moment_of(self, verdict: Verdict) -> int:
        """Return the place of a verdict in the log; drafts come after the basis."""
        return verdict.seq if verdict.seq > 0 else self.basis - verdict.seq

    def _meets_gates(self, verdict: Verdict) -> bool:
        if verdict.verdict != "approve" or verdict.content != self.content:
            return False
        return self.is_scaffold or (
            verdict.recorded >= self.settles_us
            and self.alignment_at(self.moment_of(verdict)) is not None
        )


def gated_proposal(snapshot: Snapshot, number: int) -> GatedProposal:
    """Return a proposal, current or closed, with its gates. Cost: a mask over all frames.

    Raises:
        NotFound: no proposal with this id exists at the basis within the scope.
    """
    layers = snapshot.layers
    gated = None
    if layers.has(number):
        aligned = _alignments(layers, {"task": ALIGN, "proposal": number}).get(number, ())
        gated = _gated(snapshot, number, layers.event(number), aligned)
    if gated is None:
        raise NotFound(
            f"There is no proposal {number:,}",
            where=f"basis {snapshot.basis:,}",
            remedy="Find proposals with Agent.proposals().",
        )
    return gated


def current_proposals(snapshot: Snapshot, track: str | None = None) -> list[GatedProposal]:
    """Return the current proposals within the scope, oldest first.

    Cost: two masks over all frames, and a read of each proposal and assessment.

    Args:
        snapshot: The state.
        track: The agent whose proposals are returned; None for all.
    """
    layers = snapshot.layers
    where = Filter(kind=PROPOSAL) if track is None else Filter(kind=PROPOSAL, track=track)
    masks = tuple(
        found & is_open for found, is_open in zip(layers.passing(where), layers.open, strict=True)
    )
    numbers: Sequence[int] = sorted(layers.newest(masks), key=layers.moment)
    if not numbers:
        return []
    aligned = _alignments(layers, {"task": ALIGN})

    def read(number: int) -> GatedProposal | None:
        return _gated(snapshot, number, layers.event(number), aligned.get(number, ()))

    proposals = readable(numbers, read, lambda number: f"Proposal {number:,}")
    return [gated for gated in proposals if gated is not None]


def _gated(
    snapshot: Snapshot,
    number: int,
    event: Event | PendingEvent,
    aligned: Sequence[_ScopedAlignment],
) -> GatedProposal | None:
    """Return the proposal of a frame; None if it has no target and text of a proposal."""
    body, scope = event.body, event.scope
    content = target_and_text(body)
    judged = content_of(body, event.salt)
    if content is None or judged is None or scope is None or not isinstance(body, PutFrame):
        return None
    layers = snapshot.layers
    candidate = _candidate(layers, body.metadata.get("candidate"), number, scope)
    begins = event.recorded if candidate is None else min(event.recorded, candidate[1])
    # Every reader of the proposal has these, also one whose scope hides some assessments.
    reach = Reach(scope)
    return GatedProposal(
        number,
        *content,
        judged,
        scope,
        event.recorded,
        body.track,
        None if candidate is None else candidate[0],
        begins + SETTLING_US,
        tuple(alignment for alignment, own in aligned if admits(own, reach)),
        tuple(
            verdict
            for verdict in snapshot.state(Verdicts).of(number, snapshot.basis)
            if is_same(verdict.scope, scope)
        ),
        layers.closing_of(number),
        snapshot.basis,
    )


def _candidate(
    layers: Layers, value: object, proposal: int, scope: Scope
) -> tuple[int, int] | None:
    """Return the seq and the time of a proposal's candidate, an earlier event of its tenant."""
    if not is_integer(value) or not 1 <= value < layers.moment(proposal) or value > layers.base.n:
        return None
    event = layers.log.event(value)
    # The time of an erased event stays, and so does a trait that rests on it.
    if event.scope is not None and tenant_in(event.scope) != tenant_in(scope):
        return None
    return value, event.recorded


def _alignments(
    layers: Layers, metadata: Mapping[str, str | int]
) -> dict[int, list[_ScopedAlignment]]:
    """Return the alignments of each proposal, in order, with their scopes.

    Args:
        layers: The frames, of all scopes.
        metadata: The values that an assessment must have.
    """
    alignments: dict[int, list[_ScopedAlignment]] = {}
    masks = layers.passing(Filter(kind=ASSESSMENT, metadata=metadata))

    def read(frame: int) -> tuple[int, tuple[int, int] | None, Scope | None]:
        event = _event(layers, frame)
        return frame, _aligned(event), event.scope

    # An assessment that cannot be read meets no gate.
    frames = sorted(layers.newest(masks), key=layers.moment)
    for frame, aligned, scope in readable(frames, read, frame_place):
        if aligned is not None and scope is not None:
            proposal, line = aligned
            closing = layers.closing_of(frame)
            end = None if closing is None else closing.seq
            alignment = Alignment(frame, layers.moment(frame), end, line)
            alignments.setdefault(proposal, []).append((alignment, scope))
    return alignments


def _event(layers: Layers, frame: int) -> Event | PendingEvent:
    if frame < 0 and layers.pending is not None:
        return layers.pending.event(frame)
    return layers.log.event(frame)


def _aligned(event: Event | PendingEvent) -> tuple[int, int] | None:
    """Return the proposal and the line of SOUL that an assessment names, or None."""
    body = event.body
    if not isinstance(body, PutFrame) or body.kind != ASSESSMENT:
        return None
    values = body.metadata
    proposal, line = values.get("proposal"), values.get("line")
    if values.get("task") != ALIGN or values.get("aligned") is not True:
        return None
    if not is_integer(proposal) or not is_integer(line) or line < 1:
        return None
    return proposal, line
