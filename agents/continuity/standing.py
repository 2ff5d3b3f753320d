"""Standing: four scores of how a user talks, with their evidence. An unvalidated heuristic.

Owns the sum of the patterns' changes (`cerata.agents.turns.measures`). A model's
assessment sets the base of the scores; the messages after it change them. The base is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ..turns.lexicon import PATTERNS
from ..turns.measures import CONFIDENCES, DIMENSIONS
from .exchanges import Talk

BASE: Final = 5.0
EVIDENCE: Final = 5
"""Newest matches that are shown."""

_SCORE_MAX: Final = 10.0


@dataclass(frozen=True, slots=True)
class Match(PlainValue):
    """A message with a pattern; no text of the message."""

    pattern: str
    day: date
    message: int


@dataclass(frozen=True, slots=True)
class Score(PlainValue):
    """The score of a dimension, from 0 to 10, and its newest matches."""

    dimension: str
    score: float
    evidence: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Assessment:
    """A model's scores of the dimensions, which hold for the messages up to an event."""

    event: int
    scores: Mapping[str, float]


def standing_of(talk: Talk, assessed: Assessment | None = None) -> list[Score]:
    """Return the scores of an agent's user, by dimension.

    Args:
        talk: All messages of the agent.
        assessed: The newest assessment; default none.
    """
    columns = talk.messages.columns
    rows = talk.rows
    seqs = columns.seq.view()[rows]
    bits = columns.patterns.view()[rows]
    since = 0 if assessed is None else assessed.event
    return [
        _score(talk, name, changes, bits, seqs > since, assessed)
        for name, changes in DIMENSIONS.items()
    ]


def _score(
    talk: Talk,
    dimension: str,
    changes: Mapping[str, float],
    bits: np.ndarray[tuple[int], np.dtype[np.uint32]],
    is_later: np.ndarray[tuple[int], np.dtype[np.bool_]],
    assessed: Assessment | None,
) -> Score:
    score = BASE if assessed is None else assessed.scores.get(dimension, BASE)
    matches: list[tuple[int, str]] = []
    for pattern, change in changes.items():
        has = (bits >> np.uint32(PATTERNS.index(pattern))) & np.uint32(1) == 1
        score += change * CONFIDENCES[abs(change)] * int(np.count_nonzero(has & is_later))
        places = np.flatnonzero(has)[-EVIDENCE:]
        matches += [(place, pattern) for place in places.tolist()]
    newest = sorted(matches, reverse=True)[:EVIDENCE]
    columns = talk.messages.columns
    evidence = tuple(
        Match(
            pattern,
            to_datetime(columns.created.item(int(talk.rows[place]))).date(),
            columns.seq.item(int(talk.rows[place])),
        )
        for place, pattern in newest
    )
    return Score(dimension, round(min(max(score, 0.0), _SCORE_MAX), 2), evidence)


# --- Wellbeing: how long a user has talked without a pause. An unvalidated heuristic --------------
#
# The constants are ours.


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
