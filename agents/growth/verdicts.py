"""The fold of verdicts: how people judged each proposal of an agent.

Every verdict keeps its row, so the rows with a seq up to n are the state as of n. Which verdicts
count follows from the proposal and its gates (`gates`); this fold reads no frames.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cerata.engine.events import Scope
from cerata.projections.columnar.scopes import by_name, read_scope, scope_text
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.rows.row_projection import RowProjection

from .events import Judge

JudgedRow = tuple[str, bytes, int, str]
"""The verdict, the hash of the content, the time in microseconds, and the text of the scope."""


class Verdict(NamedTuple):
    """A verdict on a proposal; ``seq`` is −k for the k-th draft of a transaction."""

    seq: int
    verdict: str
    content: bytes
    recorded: int
    scope: Scope


class Verdicts(RowProjection[tuple[int, int], JudgedRow]):
    """Rows of (proposal, seq) and `JudgedRow`."""

    name = "verdicts"
    handles = (Judge,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, Judge) and event.scope is not None:
                scope = scope_text(by_name(event.scope))
                row = body.verdict, body.content, event.recorded, scope
                self.rows[body.proposal, event.seq] = row

    def of(self, proposal: int, through: int) -> list[Verdict]:
        """Return the verdicts on a proposal, in order; drafts come last.

        Args:
            proposal: The id of the proposal.
            through: The last event of the log that counts.
        """
        verdicts = [
            Verdict(seq, verdict, content, recorded, read_scope(scope))
            for (_, seq), (verdict, content, recorded, scope) in self.rows.range(prefix=(proposal,))
            if seq <= through
        ]
        return sorted(verdicts, key=lambda each: (each.seq < 0, abs(each.seq)))
