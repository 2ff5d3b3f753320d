"""The dimensions of standing: the change that each pattern of a user's message makes.

Owns the assignment of patterns to dimensions and the confidences, which are ours; the changes are
those of the source. Leaves out the scores (`cerata.agents.continuity.standing`). An unvalidated
heuristic.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from cerata.projections.columnar.columns import I64, Mask

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


# --- The parts of an exchange's entropy, in whole hundredths. An unvalidated heuristic ------------


META_EXCHANGES: Final = 6
"""Exchanges whose counts of own thinking are summed: this one and the 5 before."""

CALMED: Final = 60
"""Hundredths of an exchange after which a calm answer counts."""

CALM: Final = 15
CALM_US: Final = 6 * 3_600_000_000
"""Time after such an exchange in which a calm answer counts."""

_SHORT_WORDS: Final = 15
_META: Final = ((16, 45), (14, 30), (10, 15))
"""Counts of own thinking in 6 exchanges, and the addition beyond each."""

SignCounts = Callable[[str], I64]
"""Returns the counts of a sign; (exchanges,)."""


def entropy_parts(
    question: SignCounts,
    reply: SignCounts,
    question_words: I64,
    has_question: Mask,
    metas: I64,
    new_topics: I64,
) -> dict[str, I64]:
    """Return the parts of exchanges' entropies but the calm answer; (exchanges,) each.

    Args:
        question: The counts of signs in the users' messages.
        reply: The counts of signs in the replies.
        question_words: Words of the users' messages; (exchanges,).
        has_question: True for an exchange with a user's message; (exchanges,).
        metas: Counts of own thinking in each exchange and the 5 before; (exchanges,).
        new_topics: Topics of each exchange that are new to the thread; (exchanges,).
    """
    is_short = question_words < _SHORT_WORDS
    ends = has_question & (is_short | (question("conclusion") > 0))
    own_thinking = np.zeros(len(metas), np.int64)
    for count, added in reversed(_META):
        own_thinking[metas > count] = added
    return {
        "correction": 40 * (question("correction") > 0),
        "new topics": np.minimum(15 * new_topics, 30),
        "emotion": 30 * (question("emotion") + reply("emotion") > 0),
        "paradox": 20 * (reply("paradox") > 0),
        "meta": 20 * (reply("meta") > 0),
        "plan as if done": 30 * ((question("plan") > 0) & (reply("done") > 0)),
        "intimacy": 20 * (ends & (reply("intimacy") > 0)),
        "own thinking": own_thinking,
    }
