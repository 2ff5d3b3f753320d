"""The bounds of a search: the least score and the least cosine of its hits.

Owns the cosines of hits, the hits within the bounds, and whether deeper rankings can have any.
Leaves out the order of the hits (`search`) and its blocks (`pages`).

A frame below a ranking has at most the last score of the ranking, and by rank at most the share of
the next rank. Shares by `minmax` and `zscore` have no such bound, because a deeper ranking has
another least score and another deviation: so with these a least score ranks to a limited depth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.retrieval.ranking.fusion import (
    RANK_CONSTANT,
    Fused,
    LaneRanking,
    boost_of,
    shared_weights,
)

if TYPE_CHECKING:
    from cerata.retrieval.ranking.fusion import TurnWeights

    from .request import SearchRequest
    from .signals import Signals
    from .vector_lane import VectorLane


SCORED_DEPTH: Final = 2_048
"""With a least score of shares by score, the depth after which no ranking is made: as many vectors
are compared in any case. A page that ends deeper is filled as far as it ends."""


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a request, for the lanes that ran with their weights.

    - ``vectors`` is the lane that has the cosines; None if it did not run, so that no hit has one.
    - ``has_cosines`` is True if the scores of the ranking by vectors are cosines of the question:
      its vector was not moved, and no turn beside a frame counts.
    """

    request: SearchRequest
    weights: Mapping[str, float]
    turns: TurnWeights | None
    vectors: VectorLane | None
    signals: Signals | None
    has_cosines: bool

    def cosines_of(
        self, hits: Sequence[Fused], rankings: Sequence[LaneRanking]
    ) -> dict[int, float]:
        """Return the cosines of the hits that have one; see `VectorLane.cosines_of`."""
        if self.vectors is None:
            return {}
        return self.vectors.cosines_of(
            [hit.id for hit in hits], rankings if self.has_cosines else ()
        )

    def within(self, hits: Sequence[Fused], rankings: Sequence[LaneRanking]) -> Sequence[Fused]:
        """Return the hits that reach the least score and the least cosine."""
        least_score, least_cosine = self.request.min_score, self.request.min_cosine
        if least_score is not None:
            hits = [hit for hit in hits if hit.score >= least_score]
        if least_cosine is not None:
            cosines = self.cosines_of(hits, rankings)
            hits = [hit for hit in hits if hit.id in cosines and cosines[hit.id] >= least_cosine]
        return hits

    def may_follow(
        self, rankings: Sequence[LaneRanking], depth: int, *, is_near_left: bool | None
    ) -> bool:
        """Return False if no hit below rankings of a depth reaches the bounds, or counts.

        That saves ranking the whole memory for a page that stays short.

        Args:
            rankings: The rankings.
            depth: Their depth.
            is_near_left: True if a frame with the least cosine is in no block yet; None if the
                ranking by vectors decides.
        """
        deeper = [ranking for ranking in rankings if len(ranking.ids) >= depth]
        if not deeper or not self._may_be_near(deeper, is_near_left=is_near_left):
            return False
        least = self.request.min_score
        if least is None:
            return True
        most = self._best_below(rankings, deeper)
        if most is None:
            return depth < max(SCORED_DEPTH, self.request.offset + self.request.k)
        return most >= least

    def _may_be_near(self, deeper: Sequence[LaneRanking], *, is_near_left: bool | None) -> bool:
        least = self.request.min_cosine
        if least is None:
            return True
        if self.vectors is None or is_near_left is not None:
            return bool(is_near_left)
        return not self.vectors.is_cosine or any(
            ranking.name == self.vectors.name and ranking.scores[-1] >= least for ranking in deeper
        )

    def _best_below(
        self, rankings: Sequence[LaneRanking], deeper: Sequence[LaneRanking]
    ) -> float | None:
        """Return a score that no hit below the rankings exceeds; None if none is known."""
        profile = self.request.profile
        most = float(deeper[0].scores[-1]) if len(rankings) == 1 else 0.0
        if len(rankings) > 1 or self.signals is not None:
            if profile.method != "rrf":
                return None
            # A lone lane keeps its scores if no hit has a signal, so the larger bound holds.
            added = 0.0 if self.signals is None else self.signals.most
            for of_kind in (self.weights, *(() if self.turns is None else (self.turns.weights,))):
                weights = of_kind if self.signals is None else shared_weights(rankings, of_kind)
                shares = [
                    weights[ranking.name] / (RANK_CONSTANT + 1 + len(ranking.ids))
                    for ranking in deeper
                ]
                most = max(most, sum(shares) + added)
        most = round(most, SCORE_DECIMALS)
        return most * boost_of(most, 1 + profile.importance)
