"""The bounds of a search: the least score and the least cosine of its hits.

Owns the cosines of hits, the hits within the bounds, and whether deeper rankings can have any. A
frame below the rankings has at most the share of the last of each lane, or of a frame without a
vector, and all signals. Leaves out the order of the hits (`search`) and its blocks (`pages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.retrieval.ranking.fusion import Fused, LaneRanking, boost_of

from .space_lane import SpaceLane

if TYPE_CHECKING:
    from .rankings import Fusion
    from .request import SearchRequest


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a request."""

    request: SearchRequest
    fusion: Fusion

    def cosines_of(self, hits: Sequence[Fused]) -> dict[int, float]:
        """Return the cosines of the hits that have one; see `VectorLane.cosines_of`."""
        lane = self.fusion.running.compared
        return {} if lane is None else lane.cosines_of([*map(itemgetter(0), hits)])

    def within(self, hits: Sequence[Fused]) -> Sequence[Fused]:
        """Return the hits that reach the least score and the least cosine."""
        least_score, least_cosine = self.request.floor, self.request.min_cosine
        if least_score is not None:
            hits = [hit for hit in hits if hit.score >= least_score]
        if least_cosine is not None:
            cosines = self.cosines_of(hits)
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
        least = self.request.floor
        return least is None or self._best_below(rankings, depth) >= least

    def _may_be_near(self, deeper: Sequence[LaneRanking], *, is_near_left: bool | None) -> bool:
        least = self.request.min_cosine
        if least is None:
            return True
        lane = self.fusion.running.compared
        if lane is None or is_near_left is not None:
            return bool(is_near_left)
        return not lane.is_cosine or any(
            ranking.name == lane.name and ranking.scores[-1] >= least for ranking in deeper
        )

    def _best_below(self, rankings: Sequence[LaneRanking], depth: int) -> float:
        """Return a score that no hit below the rankings exceeds."""
        signals = self.fusion.signals
        most = 0.0 if signals is None else self.fusion.running.step * signals.most
        lasts = {ranking.name: ranking for ranking in rankings if len(ranking.ids) >= depth}
        for lane in self.fusion.running.lanes:
            share = 0.0
            if lane.name in lasts:
                last = np.asarray(lasts[lane.name].ids[-1:], np.int64)
                rows = self.fusion.columns.rows_of(last)
                share = float(lane.shares(last, rows).shares[0])
            if isinstance(lane, SpaceLane) and lasts.keys() - {lane.name}:
                # A frame that another lane finds may have no vector.
                share = max(share, lane.least)
            most += self.fusion.weights[lane.name] * share
        most = round(most, SCORE_DECIMALS)
        return most * boost_of(most, 1 + self.request.profile.importance)
