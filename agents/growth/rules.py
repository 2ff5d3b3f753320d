"""Rules of verdicts: a judged proposal is current, with the content that the person saw.

Owns the checks of a verdict before an append, and under the lock. Leaves out the existence of the
proposal (`cerata.memory.batch.reference_rules`) and the gates (`gates`): an approval without its
gates counts for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import Draft, Event
from cerata.memory.batch.reference_rules import check_not_closed
from cerata.memory.batch.rule import Rule, State, drafts_of
from cerata.projections.columnar.scopes import is_same

from .events import Judge
from .proposal_values import content_of

if TYPE_CHECKING:
    from cerata.memory.batch.rule import Validate


class JudgeRules(Rule):
    """The verdicts among the drafts of a batch."""

    kinds = (Judge,)

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._new = [
            (draft, draft.body)
            for draft in drafts_of(drafts[first - 1 :], (Judge,))
            if isinstance(draft.body, Judge)
        ]
        for _, body in self._new:
            body.check()
            if isinstance(body.proposal, int) and body.proposal < 0:
                raise InvalidInput(
                    f"A verdict names event {body.proposal} of its batch, which no person has seen",
                    remedy="Judge the proposal after it is written.",
                )
        return bool(self._new)

    def check(self, state: State) -> Validate:
        for draft, body in self._new:
            _check_content(state, draft, body)
        judged = {body.proposal for _, body in self._new}
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(_check_current, state, judged)


def _check_content(state: State, draft: Draft, body: Judge) -> None:
    event = state.log.event(body.proposal)
    content = content_of(event.body, event.salt)
    if content is None:
        raise InvalidInput(
            f"Frame {body.proposal:,} is no proposal",
            remedy="Judge a proposal that Agent.proposals() lists.",
        )
    if not is_same(event.scope, draft.scope):
        raise InvalidInput(
            f"The proposal {body.proposal:,} has the scope {dict(event.scope or ())!r}, and the "
            f"verdict {dict(draft.scope)!r}",
            remedy="Append the verdict with the scope of its proposal, as judge() does.",
        )
    if content != body.content:
        raise Conflict(
            f"The content of the proposal {body.proposal:,} differs from the content that was "
            "judged",
            remedy="Read the proposal again, and judge what it says now.",
        )


def _check_current(state: State, judged: set[int], _: Sequence[Event]) -> None:
    """Refuse a verdict on a proposal that is closed; `ReferenceRules` checks later events.

    Raises:
        Conflict: with the event that closed the proposal.
    """
    frames = state.frames()
    for proposal in sorted(judged):
        check_not_closed(proposal, frames, state.n)
