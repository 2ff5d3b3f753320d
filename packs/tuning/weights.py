"""Weights of a profile as a vector, and the profile of learned weights.

Owns the order of the features, their unit (see `cerata.retrieval.ranking.fusion`), and the
rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cerata.projections.columnar.columns import F64
from cerata.retrieval.ranking.fusion import OF_FACTS, OF_VECTORS
from cerata.retrieval.ranking.profile import LANES, SIGNAL_WEIGHT_MAX, Profile
from cerata.retrieval.ranking.signals import SIGNALS

from .learning import JudgedList, fitted

DECIMALS: Final = 3
"""Digits of a learned weight: more change no order that a person would notice, and with fewer the
last bit of a sum, which machines compute differently, could show."""

_OF_CONTENT: Final = [place for place, lane in enumerate(LANES) if lane not in OF_FACTS]
"""The lanes whose weights sum up to the same as before."""

_OF_VECTORS: Final = [place for place, lane in enumerate(LANES) if lane in OF_VECTORS]
"""The lanes whose weights are in the unit of all other weights (`step_of`)."""


@dataclass(frozen=True, slots=True)
class Learner:
    """Learns weights that start from those of a profile.

    Args:
        profile: the profile in use
        name: the name of learned profiles
    """

    profile: Profile
    name: str

    def learned(self, lists: Sequence[JudgedList]) -> Profile:
        """Return the profile of the weights that fit questions best.

        Lanes and signals that no candidate has keep their weights.
        """
        has_any = np.any([judged.features.any(axis=0) for judged in lists], axis=0)
        active = [place for place in _OF_CONTENT if has_any[place]]
        earlier = self._vector()
        # If none of the lanes that found frames had a weight, they start equal.
        if not earlier[active].any():
            earlier[active] = 1.0
        is_lane = np.arange(len(earlier)) < len(LANES)
        weights = fitted(lists, earlier, is_lane)
        total = float(weights[active].sum())
        if total <= 0:
            # The lanes rank the relevant frames last: nothing to learn from lanes.
            return self._profile(earlier)
        weights *= float(earlier[active].sum()) / total
        weights = np.where(has_any, weights, earlier)
        # The features are in steps of the profile in use; those of the learned one differ.
        of_steps = np.ones(len(weights), np.bool_)
        of_steps[_OF_CONTENT] = False
        weights[of_steps] *= _unit(earlier[_OF_VECTORS]) / _unit(weights[_OF_VECTORS])
        return self._profile(weights)

    def _vector(self) -> F64:
        """Return the weights of the profile, lanes then signals."""
        lanes = [float(self.profile.weights.get(lane, 0.0)) for lane in LANES]
        signals = [float(self.profile.signals.get(signal, 0.0)) for signal in SIGNALS]
        return np.array([*lanes, *signals])

    def _profile(self, weights: F64) -> Profile:
        """Return the profile of weights, lanes then signals."""
        lanes = weights[: len(LANES)]
        signals = np.clip(weights[len(LANES) :], -SIGNAL_WEIGHT_MAX, SIGNAL_WEIGHT_MAX)
        return Profile(
            self.name, 1, weights=_rounded(LANES, lanes), signals=_rounded(SIGNALS, signals)
        )


def _unit(of_vectors: F64) -> float:
    """Return the worth of a signal for the weights of vectors, of that without vectors."""
    return 1.0 + float(of_vectors.sum())


def _rounded(names: Sequence[str], weights: F64) -> dict[str, float]:
    rounded = {
        name: round(float(weight), DECIMALS) for name, weight in zip(names, weights, strict=True)
    }
    return {name: weight for name, weight in rounded.items() if weight}
