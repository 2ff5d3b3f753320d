"""Metrics of a ranked list against graded documents, of turns and of sessions.

Recall and nDCG as in LoCoMo's evaluation; see `cerata.packs.tuning.learning`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from cerata.packs.tuning.learning import gain, recall

__all__ = ["evidence_name", "gain", "mean", "recall", "session_scores", "turn_scores"]

RECALL_DEPTHS: Final = (5, 10, 20)
GAIN_DEPTH: Final = 10
ANY_DEPTH: Final = 5

TURN_METRICS: Final = (*(f"R@{depth}" for depth in RECALL_DEPTHS), f"nDCG@{GAIN_DEPTH}")
SESSION_METRICS: Final = (f"session R@{GAIN_DEPTH}", f"session any@{ANY_DEPTH}")


def turn_scores(ranked: Sequence[str], relevant: Mapping[str, float]) -> dict[str, float]:
    """Return `TURN_METRICS` of a ranking of documents, each at most once."""
    scores = {f"R@{depth}": recall(ranked, relevant, depth) for depth in RECALL_DEPTHS}
    return {**scores, f"nDCG@{GAIN_DEPTH}": gain(ranked, relevant, GAIN_DEPTH)}


def session_scores(
    ranked: Sequence[str], relevant: Mapping[str, float], sessions: Mapping[str, str]
) -> dict[str, float]:
    """Return `SESSION_METRICS`: a session ranks at its first turn, and its turns make it relevant.

    Args:
        ranked: ids of turns, best first
        relevant: the grades of turns
        sessions: the session of each turn
    """
    ranking = list(dict.fromkeys(sessions[name] for name in ranked if name in sessions))
    gold = {sessions[name]: 1.0 for name in relevant if name in sessions}
    if not gold:
        return {}
    is_any = any(session in gold for session in ranking[:ANY_DEPTH])
    return dict(
        zip(SESSION_METRICS, (recall(ranking, gold, GAIN_DEPTH), float(is_any)), strict=True)
    )


def evidence_name(tokens: int) -> str:
    """Return the name of the share of evidence inside a context of so many tokens."""
    return f"in {tokens:,} tokens"


def mean(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric, over the questions that have the metric."""
    names = dict.fromkeys(name for entry in scores for name in entry)
    columns = {name: [entry[name] for entry in scores if name in entry] for name in names}
    return {name: math.fsum(column) / len(column) for name, column in columns.items()}
