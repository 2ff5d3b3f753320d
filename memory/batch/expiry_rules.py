"""Rules of expiry: a frame expires after it is written.

Owns the check of `PutFrame.expires` against the clock of the write. Leaves out reads, which leave
expired frames out (`cerata.memory.snapshot.layers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, Event, PutFrame
from cerata.projections.columnar.times import to_datetime

from .rule import Rule, State

if TYPE_CHECKING:
    from cerata.engine.log import Validate


class ExpiryRules(Rule):
    """The frames among the drafts of a batch that expire."""

    kinds = (PutFrame,)

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._earliest: int | None = None
        for draft in drafts[first - 1 :]:
            time = draft.body.expires if isinstance(draft.body, PutFrame) else None
            # A value of another type is refused when the draft is encoded.
            if isinstance(time, int) and (self._earliest is None or time < self._earliest):
                self._earliest = time
        return self._earliest is not None

    def check(self, state: State) -> Validate:
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(self._check_future, _time_of_write(state))

    def _check_future(self, now: int, _: Sequence[Event]) -> None:
        """Refuse a frame that has expired already.

        Raises:
            InvalidInput: with both times.
        """
        if self._earliest is not None and self._earliest <= now:
            raise InvalidInput(
                f"expires is {to_datetime(self._earliest).isoformat()}, which is not after "
                f"{to_datetime(now).isoformat()}, the time of the write",
                remedy="Pass a later time, or leave out expires.",
            )


def _time_of_write(state: State) -> int:
    """Return the time of a batch after event ``n``: the clock, or in a repeated block the first."""
    log, n = state.log, state.n
    if n < log.head.seq:
        return log.event(n + 1).recorded
    return max(log.environment.now_us(), log.head.recorded)
