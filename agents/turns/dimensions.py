"""The dimensions of standing: the change that each pattern of a user's message makes.

Owns the assignment of patterns to dimensions and the confidences, which are ours; the changes are
those of the source. Leaves out the scores (`cerata.agents.continuity.standing`). An unvalidated
heuristic.
"""

from collections.abc import Mapping
from typing import Final

from .lexicon import PATTERNS

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

CONFIDENCES: Final[Mapping[float, float]] = {0.2: 0.8, 0.1: 0.5}
"""The confidence of a change, by its size."""

_HUNDREDTHS: Final = {
    PATTERNS.index(pattern): round(100 * change * CONFIDENCES[abs(change)])
    for changes in DIMENSIONS.values()
    for pattern, change in changes.items()
}


def change_of(patterns: int) -> int:
    """Return the change of all scores by a message, in hundredths.

    Args:
        patterns: The bits of its patterns.
    """
    return sum(change for bit, change in _HUNDREDTHS.items() if patterns >> bit & 1)
