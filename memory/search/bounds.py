"""The bounds of a search: the least score and the least cosine of its hits.

Owns the cosines of hits, the hits within the bounds, and whether deeper rankings can have any.
Leaves out the order of the hits (`search`) and its blocks (`pages`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cerata.retrieval.ranking.fusion import RANK_CONSTANT, Fused, LaneRanking

from .request import SearchRequest
from .vector_lane import VectorLane


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a request, for the lanes that ran with their weights.

    ``vectors`` is the lane that has the cosines; None if it did not run, so that no hit has one.
    """

    request: SearchRequest
    weights: Mapping[str, float]
    vectors: VectorLane | None

    def cosines_of(
        self, hits: Sequence[Fused], rankings: Sequence[LaneRanking]
    ) -> dict[int, float]:
        """Return the cosines of the hits that have one; see `VectorLane.cosines_of`."""
        if self.vectors is None:
            return {}
        return self.vectors.cosines_of([hit.id for hit in hits], rankings)

    def within(self, hits: Sequence[Fused], rankings: Sequence[LaneRanking]) -> Sequence[Fused]:
        """Return the hits that reach the least score and the least cosine."""
        least_score, least_cosine = self.request.min_score, self.request.min_cosine
        if least_score is not None:
            hits = [hit for hit in hits if hit.score >= least_score]
        if least_cosine is not None:
            cosines = self.cosines_of(hits, rankings)
            hits = [hit for hit in hits if hit.id in cosines and cosines[hit.id] >= least_cosine]
        return hits

    def may_follow(self, rankings: Sequence[LaneRanking], depth: int) -> bool:
        """Return False if certainly no hit below rankings of a depth reaches the bounds.

        That saves ranking the whole memory for a page that stays short.
        """
        deeper = [ranking for ranking in rankings if len(ranking.ids) >= depth]
        least_score, least_cosine = self.request.min_score, self.request.min_cosine
        if least_cosine is not None:
            if self.vectors is None:
                return False
            if self.vectors.is_cosine and not any(
                ranking.name == self.vectors.name and ranking.scores[-1] >= least_cosine
                for ranking in deeper
            ):
                return False
        if least_score is None or not deeper:
            return bool(deeper)
        return self._best_below(rankings, deeper) >= least_score

    def _best_below(self, rankings: Sequence[LaneRanking], deeper: Sequence[LaneRanking]) -> float:
        """Return a score that no hit below the rankings exceeds."""
        profile = self.request.profile
        most = float("inf")
        if len(rankings) == 1:
            most = float(deeper[0].scores[-1])
        elif profile.method == "rrf":
            most = sum(
                self.weights[ranking.name] / (RANK_CONSTANT + 1 + len(ranking.ids))
                for ranking in deeper
            )
        return most * (1 + profile.importance) if most > 0 else most
