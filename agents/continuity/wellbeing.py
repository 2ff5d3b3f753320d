"""Wellbeing: how long a user has talked without a pause. An unvalidated heuristic.

Owns the stretch of messages, and the notes on it. The constants are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.times import to_datetime, to_microseconds

from .exchanges import Talk

PAUSE_US: Final = 45 * 60_000_000
"""A longer gap between messages ends a stretch."""

_NOTES: Final = (
    (3 * 3_600_000_000, "They have talked for 3 hours without a pause; suggest to stop."),
    (2 * 3_600_000_000, "They have talked for 2 hours without a pause; suggest a break."),
)


@dataclass(frozen=True, slots=True)
class Wellbeing(PlainValue):
    """The stretch of messages that the newest message belongs to.

    ``minutes`` is its length; a stretch under 2 hours, or an ended one, has no ``note``.
    """

    since: datetime
    minutes: int
    messages: int
    note: str | None


def wellbeing_of(talk: Talk) -> Wellbeing | None:
    """Return the stretch of an agent's newest message, or None without messages."""
    if not len(talk):
        return None
    created = talk.messages.columns.created.view()[talk.rows]
    # Late imports may be older than the messages before them.
    created = np.sort(created)
    gaps = np.flatnonzero(np.diff(created) > PAUSE_US)
    first = int(gaps[-1]) + 1 if len(gaps) else 0
    length = int(created[-1] - created[first])
    is_over = to_microseconds(talk.snapshot.now) - int(created[-1]) > PAUSE_US
    note = next((note for least, note in _NOTES if length >= least), None)
    return Wellbeing(
        since=to_datetime(int(created[first])),
        minutes=length // 60_000_000,
        messages=len(created) - first,
        note=None if is_over else note,
    )
