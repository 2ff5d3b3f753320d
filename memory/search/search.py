"""Lanes: the ranked lists of one question in one view.

Owns `Search`: the lanes that run for a question, by its kind and a profile, and the result of each.
Leaves out ranking (`cerata.projections.fulltext.bm25`, `facts.search`), and the fusion of lanes
(`cerata.retrieval.ranking.fusion`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from cerata.engine.errors import Unsupported
from cerata.projections.columnar.columns import Mask
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.projections.fulltext.query import AnyWord, Query, plain
from cerata.retrieval.base_level_activation import Use
from cerata.retrieval.query_classifier import Classified, classify
from cerata.retrieval.ranking.fusion import Fused, Lane, Method, boosted, fuse, worth
from cerata.retrieval.ranking.profiles import Profile
from cerata.retrieval.ranking.reranking import RERANK_HITS, reranked

from ..facts.search import FactHit, scored_frames, search_named
from ..frames.access import access_of, uses_among
from ..snapshot.layers import both, end_to_end
from ..snapshot.snapshot import Snapshot
from ..values.explanation import Boost, Explanation, LaneShare, Reranked
from ..values.frames import Frame, Hit
from .late_lane import LANE as LATE
from .late_lane import RERANKED, TokenQuery
from .space_query import Mode, SpaceQuery
from .vector_lane import APPROXIMATE, VectorQuery
from .vector_lane import LANE as VECTORS

LANE_HITS: Final = 128
"""Hits of each lane that are fused, so that the first hits do not depend on how many are requested.

A context requests a hundred. Deeper hits hardly matter: by rank the last adds a third of the first.
"""


@dataclass(frozen=True)
class Search:
    """One question to one view. Immutable; each lane runs once, on first use."""

    snapshot: Snapshot
    query: str | Query
    k: int
    profile: Profile
    where: Filter | None = None
    include_superseded: bool = False
    include_deleted: bool = False
    mode: Mode = "hybrid"
    vector: VectorQuery | None = None
    tokens: TokenQuery | None = None
    rerank: bool | None = None
    """True to order the best hits by their tokens; None leaves the choice to the profile."""

    @cached_property
    def kind(self) -> Classified:
        """The kind of the question; "factual" for a query of the full language."""
        query = self.query
        return Classified("factual", "") if isinstance(query, Query) else classify(query)

    @cached_property
    def _quoted(self) -> Query | None:
        """The query of a plain question that has words in quotes, else None."""
        tree = self.query if isinstance(self.query, Query) else plain(self.query)
        return None if tree is self.query or isinstance(tree, AnyWord) else tree

    @property
    def _able(self) -> tuple[str, ...]:
        """The lanes that can run; facts only for a plain question without quotes."""
        is_plain = not isinstance(self.query, Query) and self._quoted is None
        words = ("text", "facts") if is_plain else ("text",)
        queries = {VECTORS: self.vector, LATE: self.tokens}
        vectors = tuple(lane for lane, query in queries.items() if query is not None)
        return {"text": words, "vector": vectors}.get(self.mode, (*words, *vectors))

    @cached_property
    def weights(self) -> dict[str, float]:
        """The lanes of the profile that run for this question, with their weights.

        Raises:
            Unsupported: no lane of the profile can run.
        """
        of_profile, able = self.profile.weights_for(self.kind.kind), self._able
        weights = {lane: weight for lane, weight in of_profile.items() if lane in able}
        if not weights:
            raise Unsupported(
                f"None of the lanes {', '.join(of_profile)} can run for this question",
                where=f"profile {self.profile.label}",
                remedy=f"Pass a profile with a lane that can run: {', '.join(able)}.",
            )
        return weights

    @cached_property
    def named(self) -> list[FactHit]:
        """The facts of the entities that the question names."""
        query = self.query
        if "facts" not in self.weights or not isinstance(query, str):
            return []
        return search_named(self.snapshot, query)

    @cached_property
    def among(self) -> Mask | None:
        """The rows that may be returned; None without a filter: all current rows."""
        if self.where is None and not (self.include_superseded or self.include_deleted):
            return None
        layers = self.snapshot.layers
        admitted = layers.admitted(
            self.where,
            include_superseded=self.include_superseded,
            include_deleted=self.include_deleted,
        )
        return end_to_end(both(admitted, layers.searched))

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """The results of the lanes; an empty lane is left out, except the text."""
        candidates = (
            self._facts(),
            self._nearest(VECTORS, self.vector),
            self._nearest(LATE, self.tokens),
        )
        lanes = [lane for lane in candidates if len(lane.ids)]
        if "text" not in self.weights:
            return tuple(lanes)
        return self._text(max(self._depth, LANE_HITS) if lanes else self._depth), *lanes

    @property
    def _depth(self) -> int:
        """The count of fused hits: more than ``k`` if another order chooses from these."""
        reranked = RERANK_HITS if self.is_reranked else 0
        return max(self.k, reranked, LANE_HITS if self.profile.importance else 0)

    @property
    def is_reranked(self) -> bool:
        """True if the best hits are ordered by their tokens."""
        reranks = (
            self.mode != "text" and self.profile.rerank if self.rerank is None else self.rerank
        )
        return reranks and self.tokens is not None

    @cached_property
    def _summed(self) -> list[Fused]:
        """The best of all lanes; a single lane keeps its scores."""
        return fuse(self.lanes, self._depth, method=self.profile.method, weights=self.weights)

    @cached_property
    def _uses(self) -> dict[int, Use]:
        """The uses by which scores are boosted, if the profile has an importance."""
        if not self.profile.importance:
            return {}
        return uses_among(self.snapshot, [fused.id for fused in self._summed])

    @cached_property
    def _fused(self) -> list[Fused]:
        """The best of all lanes; frames that were used have boosted scores."""
        weight = self.profile.importance
        return boosted(
            self._summed, {frame: use.boost(weight) for frame, use in self._uses.items()}
        )

    @cached_property
    def _late_scores(self) -> dict[int, float]:
        """The scores that order the best hits, for frames that have token vectors."""
        if self.tokens is None or not self.is_reranked:
            return {}
        return self.tokens.scores_of([fused.id for fused in self._fused[:RERANK_HITS]])

    @cached_property
    def _order(self) -> list[int]:
        """The ids of the fused hits, in their final order."""
        return reranked([fused.id for fused in self._fused], self._late_scores)

    @cached_property
    def hits(self) -> list[Hit]:
        """The best ``k`` frames."""
        by_id = {fused.id: fused for fused in self._fused}
        best = [by_id[frame] for frame in self._order[: self.k]]
        return [Hit(fused.id, fused.score, self._named_as(fused.lanes), self) for fused in best]

    @property
    def ran(self) -> tuple[str, ...]:
        """The names of the lanes that ran, with the reranking if any."""
        lanes = self._named_as(self.weights)
        return (*lanes, RERANKED) if self.is_reranked else lanes

    def _named_as(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of lanes in a result, with the name of an approximate vectors lane."""
        is_approximate = self.vector is not None and self.vector.approximate
        return tuple(APPROXIMATE if name == VECTORS and is_approximate else name for name in names)

    @property
    def log_id(self) -> bytes:
        """The id of the searched log."""
        return self.snapshot.log_id

    def frame_at(self, number: int) -> Frame:
        """Return a frame as the search sees it."""
        return self.snapshot.frame_at(number)

    def highlights(self, text: str) -> list[tuple[int, int]]:
        """Return the characters [start, end) of a text that match the question, ascending."""
        return self.snapshot.layers.highlights(text, self.query)

    def explain(self, hit: Hit) -> Explanation:
        """Return why a hit of this search has its score.

        Cost: that of the search, and a pass over the postings of its words.
        """
        method = self.profile.method if len(self.lanes) > 1 else None
        by_name = {lane.name: lane for lane in self.lanes}
        shares = [
            self._share(by_name.get(name) or Lane(name, (), ()), weight, hit.id, method)
            for name, weight in self.weights.items()
        ]
        layers = self.snapshot.layers
        row = layers.rank_row(hit.id) if "text" in hit.lanes else None
        return Explanation(
            id=hit.id,
            score=hit.score,
            question=self.kind,
            profile=self.profile,
            method=method,
            lanes=tuple(shares),
            words=() if row is None else tuple(layers.ranking.words(self.query, row)),
            facts=tuple(named.fact.id for named in self.named if hit.id in scored_frames([named])),
            reranked=self._reranked(hit.id),
            boost=self._boost(hit.id),
        )

    def _boost(self, frame: int) -> Boost | None:
        """Return the factor of a frame's score; None if the frame was never used."""
        use = self._uses.get(frame)
        counts = access_of(self.snapshot, frame)
        if use is None or counts.last_used is None:
            return None
        return Boost(use.boost(self.profile.importance), counts.used, counts.last_used)

    def _reranked(self, frame: int) -> Reranked | None:
        """Return how reranking moved a frame; None if the frame was not reranked."""
        if frame not in self._late_scores:
            return None
        before = [fused.id for fused in self._fused].index(frame) + 1
        return Reranked(before, self._order.index(frame) + 1, self._late_scores[frame])

    def _share(self, lane: Lane, weight: float, frame: int, method: Method | None) -> LaneShare:
        """Return the share of a lane in a frame's score; a single lane adds its whole score."""
        places = np.flatnonzero(np.asarray(lane.ids, np.int64) == frame)
        at = int(places[0]) if len(places) else None
        score = None if at is None else round(float(lane.scores[at]), SCORE_DECIMALS)
        added = 0.0
        if at is not None:
            added = float(lane.scores[at]) if method is None else weight * worth(lane, method)[at]
        return LaneShare(
            lane=lane.name,
            weight=weight,
            rank=None if at is None else at + 1,
            score=score,
            added=float(added),
            found=len(lane.ids),
            left_out=self.snapshot.layers.left_out(
                self._candidates(lane.name),
                self.where,
                include_superseded=self.include_superseded,
                include_deleted=self.include_deleted,
            ),
        )

    def _candidates(self, lane: str) -> Mask:
        """Return the rows that a lane chooses from, also of closed frames, without the filter."""
        layers = self.snapshot.layers
        if lane == VECTORS and self.vector is not None:
            return self.vector.candidates
        if lane == LATE and self.tokens is not None:
            return self.tokens.candidates
        if lane == "facts":
            return layers.rank_mask(scored_frames(self.named))
        return layers.ranking.found(self.query, layers.mask_of)

    def _text(self, k: int) -> Lane:
        """Return the best frames by their words."""
        layers = self.snapshot.layers
        ranked = layers.ranking.search(self.query, k=k, among=self.among, filters=layers.mask_of)
        return Lane("text", layers.ids_at(ranked.rows), ranked.scores)

    def _nearest(self, name: str, query: SpaceQuery | None) -> Lane:
        """Return the frames that are nearest to the question's vector or token vectors."""
        if query is None or name not in self.weights:
            return Lane(name, [], [])
        # A single lane is not fused, so more hits than the result's are not needed.
        k = self._depth if len(self.weights) == 1 else max(self._depth, LANE_HITS)
        return query.lane(k, self._meant)

    @cached_property
    def _meant(self) -> Mask | None:
        """The rows that the query admits in lanes that do not search words.

        A query of the full language admits rows by its filters and NOTs; a plain question with
        quotes, the rows that have the quoted words.
        """
        layers, among, query = self.snapshot.layers, self.among, self.query
        if isinstance(query, Query):
            passing = end_to_end(layers.let_in(query))
        else:
            quoted = self._quoted
            matching = None if quoted is None else layers.ranking.passing(quoted, layers.mask_of)
            if matching is None:
                return among
            passing = matching
        if among is None:
            among = layers.sought
        return passing & among

    def _facts(self) -> Lane:
        """Return the frames that are evidence of facts of the named entities."""
        layers, scores, among = self.snapshot.layers, scored_frames(self.named), self.among
        if scores and among is None:
            among = layers.sought
        ids = [] if among is None else layers.among(list(scores), among)
        return Lane("facts", ids, [scores[frame] for frame in ids])
