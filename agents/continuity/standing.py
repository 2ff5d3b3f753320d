"""Standing: four scores of how a user talks, with their evidence. An unvalidated heuristic.

Owns the patterns' changes and the sum. A model's assessment sets the base of the scores; the
messages after it change them. The assignment of patterns to dimensions, the confidences and the
base are ours, the changes are those of the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.times import to_datetime
from cerata.projections.messages.lexicon import PATTERNS

from .exchanges import Talk

DIMENSIONS: Final[Mapping[str, Mapping[str, float]]] = {
    "courage-self": {
        "names-feeling": 0.1,
        "corrects-self": 0.2,
        "admits-not-knowing": 0.1,
        "avoids": -0.1,
        "deflects-with-humour": -0.1,
        "performs-insight": -0.1,
        "names-fear": 0.2,
        "tells-hard-story": 0.2,
        "sees-own-pattern": 0.2,
        "asks-for-help": 0.1,
    },
    "courage-ground": {"concrete": 0.1, "sweeping-judgement": -0.1},
    "word": {
        "owns-mistake": 0.2,
        "honest-question": 0.1,
        "treats-agent-as-tool": -0.1,
        "empty-agreement": -0.1,
        "kept-promise": 0.2,
    },
    "brand": {
        "follows-through": 0.2,
        "excuse": -0.1,
        "stuck": -0.1,
        "small-action": 0.1,
        "own-agency": 0.1,
    },
}
"""The change of each pattern, by dimension."""

BASE: Final = 5.0
EVIDENCE: Final = 5
"""Newest matches that are shown."""

_SCORE_MAX: Final = 10.0
_CONFIDENCES: Final = {0.2: 0.8, 0.1: 0.5}


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
        score += change * _CONFIDENCES[abs(change)] * int(np.count_nonzero(has & is_later))
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
