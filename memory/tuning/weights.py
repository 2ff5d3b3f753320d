"""Weights of a profile as a vector, and the profile of learned weights.

Owns the order of the features, the part that the lanes share (see
`cerata.retrieval.ranking.fusion`), and the rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

import numpy as np

from cerata.projections.columnar.columns import F64
from cerata.retrieval.query_classifier import KINDS
from cerata.retrieval.ranking.fusion import OF_FACTS
from cerata.retrieval.ranking.learning import JudgedList, fitted
from cerata.retrieval.ranking.profile import LANES, SIGNAL_WEIGHT_MAX, Profile
from cerata.retrieval.ranking.signals import SIGNALS

DECIMALS: Final = 3
"""Digits of a learned weight: more change no order that a person would notice, and with fewer the
last bit of a sum, which machines compute differently, could show."""

_SHARING: Final = [place for place, lane in enumerate(LANES) if lane not in OF_FACTS]
"""The lanes whose weights are shares of 1."""


@dataclass(frozen=True, slots=True)
class Learner:
    """Learns weights that start from those of a profile.

    Args:
        profile: the profile in use; its switches stay
        name: the name of learned profiles
    """

    profile: Profile
    name: str

    def learned(self, lists: Sequence[JudgedList]) -> Profile:
        """Return the profile of the weights that fit questions best.

        Lanes and signals that no candidate has keep their weights.
        """
        has_any = np.any([judged.features.any(axis=0) for judged in lists], axis=0)
        active = [place for place in _SHARING if has_any[place]]
        earlier = self._vector()
        share = float(earlier[active].sum())
        # If none of the lanes that found frames had a weight, they start equal.
        if not share:
            earlier[active] = 1.0 / len(active)
            share = 1.0
        earlier[_SHARING] /= share
        is_lane = np.arange(len(earlier)) < len(LANES)
        weights = fitted(lists, earlier, is_lane)
        total = float(weights[active].sum())
        if total <= 0:
            # The relevant frames are those that the lanes rank last: nothing to learn from lanes.
            return self._profile(earlier, share)
        return self._profile(np.where(has_any, weights / total, earlier), share)

    def _vector(self) -> F64:
        """Return the weights of the profile, lanes then signals, the mean over all questions."""
        by_kind = [self.profile.weights_for(kind) for kind in KINDS]
        lanes = [fmean(weights.get(lane, 0.0) for weights in by_kind) for lane in LANES]
        signals = [float(self.profile.signals.get(signal, 0.0)) for signal in SIGNALS]
        return np.array([*lanes, *signals])

    def _profile(self, weights: F64, share: float) -> Profile:
        """Return the profile of weights, whose lanes that found frames together get a share."""
        lanes = weights[: len(LANES)].copy()
        lanes[_SHARING] *= share
        signals = np.clip(weights[len(LANES) :], -SIGNAL_WEIGHT_MAX, SIGNAL_WEIGHT_MAX)
        return replace(
            self.profile,
            name=self.name,
            version=1,
            weights=_rounded(LANES, lanes),
            turn_weights={},
            method="zscore",
            rerank=False,
            importance=0.0,
            signals=_rounded(SIGNALS, signals),
        )


def _rounded(names: Sequence[str], weights: F64) -> dict[str, float]:
    rounded = {
        name: round(float(weight), DECIMALS) for name, weight in zip(names, weights, strict=True)
    }
    return {name: weight for name, weight in rounded.items() if weight}
