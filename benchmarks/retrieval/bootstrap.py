"""The difference of two runs, metric by metric, by a paired bootstrap.

Leaves out the bootstrap (`cerata.packs.tuning.learning`).
"""

from collections.abc import Mapping

from cerata import InvalidInput
from cerata.packs.tuning.learning import RESAMPLES, Difference, difference

__all__ = ["Difference", "Scores", "differences"]

Scores = Mapping[str, Mapping[str, float]]
"""The metrics of each question."""


def differences(
    first: Scores, second: Scores, *, resamples: int = RESAMPLES
) -> dict[str, Difference]:
    """Return the difference of each metric that both runs have: the first less the second.

    Raises:
        InvalidInput: the runs have other questions.
    """
    if first.keys() != second.keys():
        lone = sorted(first.keys() ^ second.keys())
        raise InvalidInput(
            f"The runs have different questions: {len(lone):,} are in one alone, such as "
            f"{lone[0]!r:.60}",
            remedy="Compare runs of the same set.",
        )
    names = dict.fromkeys(name for scores in first.values() for name in scores)
    return {
        name: difference(pairs, resamples=resamples)
        for name in names
        if len(pairs := _pairs(first, second, name))
    }


def _pairs(first: Scores, second: Scores, name: str) -> list[tuple[float, float]]:
    return [
        (scores[name], second[question][name])
        for question, scores in first.items()
        if name in scores and name in second[question]
    ]
