"""Lanes: what one question finds in one view, list by list.

Owns `Search`: which lanes run for a question, by its kind and a profile, and what each finds.
Leaves out ranking (`cerata.projections.ranking`, `fact_search`), and how lanes become one list
(`cerata.retrieval.fusion`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.errors import Unsupported
from cerata.projections.columns import Mask
from cerata.projections.filters import Filter
from cerata.projections.query import AnyWord, Query, plain
from cerata.projections.ranking import SCORE_DECIMALS
from cerata.retrieval.classifier import Classified, classify
from cerata.retrieval.fusion import Fused, Lane, Method, boosted, fuse, worth
from cerata.retrieval.profiles import Profile
from cerata.retrieval.reranking import RERANK_HITS, reranked
from cerata.retrieval.strength import Use

from .access import access_of, uses_among
from .explanation import Boost, Explanation, LaneShare, Reranked
from .fact_search import FactHit, scored_frames, search_named
from .layers import both, end_to_end
from .space_search import Mode, SpaceQuery
from .token_search import LANE as LATE
from .token_search import RERANKED, TokenQuery
from .values import Hit
from .vector_search import APPROXIMATE, VectorQuery
from .vector_search import LANE as VECTORS

if TYPE_CHECKING:
    from .view import View

LANE_HITS: Final = 128
"""Hits of a lane that are fused with those of another, so that up to so many begin with fewer.

A context asks for a hundred. Deeper ones hardly decide: by rank the last adds a third of the first.
"""


@dataclass(frozen=True)
class Search:
    """One question to one view. Immutable: what its lanes found is worked out once."""

    view: "View"
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
    """Whether the best are put in order by their tokens; None leaves it to the profile."""

    @cached_property
    def kind(self) -> Classified:
        """The kind of the question; the full language says which words, so it is factual."""
        query = self.query
        return Classified("factual", "") if isinstance(query, Query) else classify(query)

    @cached_property
    def _quoted(self) -> Query | None:
        """The query of a question in plain language that has words in quotes, else None."""
        tree = self.query if isinstance(self.query, Query) else plain(self.query)
        return None if tree is self.query or isinstance(tree, AnyWord) else tree

    @property
    def _able(self) -> tuple[str, ...]:
        """The lanes that can run: facts are of whom plain language names, without quotes."""
        is_plain = not isinstance(self.query, Query) and self._quoted is None
        words = ("text", "facts") if is_plain else ("text",)
        asked = {VECTORS: self.vector, LATE: self.tokens}
        vectors = tuple(lane for lane, query in asked.items() if query is not None)
        return {"text": words, "vector": vectors}.get(self.mode, (*words, *vectors))

    @cached_property
    def weights(self) -> dict[str, float]:
        """The lanes that run: those that the profile has for such a question, and their weights.

        Raises:
            Unsupported: none of them can run.
        """
        wanted, able = self.profile.weights_for(self.kind.kind), self._able
        found = {lane: weight for lane, weight in wanted.items() if lane in able}
        if not found:
            raise Unsupported(
                f"None of the lanes {', '.join(wanted)} can run for this question",
                where=f"profile {self.profile.label}",
                remedy=f"Here can run: {', '.join(able)}.",
            )
        return found

    @cached_property
    def named(self) -> list[FactHit]:
        """The facts of whom the question names."""
        query = self.query
        if "facts" not in self.weights or not isinstance(query, str):
            return []
        return search_named(self.view, query)

    @cached_property
    def among(self) -> Mask | None:
        """The rows that may be returned; None for those that are current, without a filter."""
        if self.where is None and not (self.include_superseded or self.include_deleted):
            return None
        layers = self.view.layers
        admitted = layers.admitted(
            self.where,
            include_superseded=self.include_superseded,
            include_deleted=self.include_deleted,
        )
        return end_to_end(both(admitted, layers.searched))

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """What each lane found; one that found nothing is left out, but for the text."""
        every = (
            self._facts(),
            self._nearest(VECTORS, self.vector),
            self._nearest(LATE, self.tokens),
        )
        others = [lane for lane in every if len(lane.ids)]
        if "text" not in self.weights:
            return tuple(others)
        return self._text(max(self._depth, LANE_HITS) if others else self._depth), *others

    @property
    def _depth(self) -> int:
        """How many are fused: more than are asked for, where these are chosen by another order."""
        reranked = RERANK_HITS if self.is_reranked else 0
        return max(self.k, reranked, LANE_HITS if self.profile.importance else 0)

    @property
    def is_reranked(self) -> bool:
        """Whether the best are put in order by their tokens."""
        wanted = self.mode != "text" and self.profile.rerank if self.rerank is None else self.rerank
        return wanted and self.tokens is not None

    @cached_property
    def _summed(self) -> list[Fused]:
        """The best of all lanes; of one lane alone, by that lane's own scores."""
        return fuse(self.lanes, self._depth, method=self.profile.method, weights=self.weights)

    @cached_property
    def _uses(self) -> dict[int, Use]:
        """The uses by which scores are boosted, where the profile says so."""
        if not self.profile.importance:
            return {}
        return uses_among(self.view, [one.id for one in self._summed])

    @cached_property
    def _fused(self) -> list[Fused]:
        """The best of all lanes, those that were used boosted."""
        weight = self.profile.importance
        return boosted(self._summed, {one: use.boost(weight) for one, use in self._uses.items()})

    @cached_property
    def _late_scores(self) -> dict[int, float]:
        """The scores by which the best are put in order, where they have token vectors."""
        if self.tokens is None or not self.is_reranked:
            return {}
        return self.tokens.scores_of([one.id for one in self._fused[:RERANK_HITS]])

    @cached_property
    def _order(self) -> list[int]:
        """The ids of what was fused, in the order in which they are shown."""
        return reranked([one.id for one in self._fused], self._late_scores)

    @cached_property
    def hits(self) -> list[Hit]:
        """The best ``k`` frames."""
        found = {one.id: one for one in self._fused}
        shown = [found[frame] for frame in self._order[: self.k]]
        return [Hit(one.id, one.score, self._named_as(one.lanes), self) for one in shown]

    @property
    def ran(self) -> tuple[str, ...]:
        """What was asked: the lanes that ran, and what put their best in order."""
        lanes = self._named_as(self.weights)
        return (*lanes, RERANKED) if self.is_reranked else lanes

    def _named_as(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of lanes as a result has them, which says of one if it approximates."""
        is_approximate = self.vector is not None and self.vector.approximate
        return tuple(APPROXIMATE if one == VECTORS and is_approximate else one for one in names)

    def explain(self, hit: Hit) -> Explanation:
        """Return why a hit of this search has its score.

        Cost: that of the search, and a pass over the postings of its words.
        """
        method = self.profile.method if len(self.lanes) > 1 else None
        found = {lane.name: lane for lane in self.lanes}
        shares = [
            self._share(found.get(name) or Lane(name, (), ()), weight, hit.id, method)
            for name, weight in self.weights.items()
        ]
        layers = self.view.layers
        row = layers.rank_row(hit.id) if "text" in hit.lanes else None
        return Explanation(
            id=hit.id,
            score=hit.score,
            question=self.kind,
            profile=self.profile,
            method=method,
            lanes=tuple(shares),
            words=() if row is None else tuple(layers.ranking.words(self.query, row)),
            facts=tuple(one.fact.id for one in self.named if hit.id in scored_frames([one])),
            reranked=self._reranked(hit.id),
            boost=self._boost(hit.id),
        )

    def _boost(self, frame: int) -> Boost | None:
        """Return what a frame's score was multiplied by; None where it was not used."""
        use = self._uses.get(frame)
        counts = access_of(self.view, frame)
        if use is None or counts.last_used is None:
            return None
        return Boost(use.boost(self.profile.importance), counts.used, counts.last_used)

    def _reranked(self, frame: int) -> Reranked | None:
        """Return what the tokens of a frame changed; None where its place was not in question."""
        if frame not in self._late_scores:
            return None
        before = [one.id for one in self._fused].index(frame) + 1
        return Reranked(before, self._order.index(frame) + 1, self._late_scores[frame])

    def _share(self, lane: Lane, weight: float, frame: int, method: Method | None) -> LaneShare:
        """Return what a lane added to a frame; of one lane alone, its own score."""
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
            left_out=self.view.layers.left_out(
                self._candidates(lane.name),
                self.where,
                include_superseded=self.include_superseded,
                include_deleted=self.include_deleted,
            ),
        )

    def _candidates(self, lane: str) -> Mask:
        """Return the rows that a lane chooses from, current or not, whatever the filter."""
        layers = self.view.layers
        if lane == VECTORS and self.vector is not None:
            return self.vector.candidates
        if lane == LATE and self.tokens is not None:
            return self.tokens.candidates
        if lane == "facts":
            return layers.rank_mask(scored_frames(self.named))
        return layers.ranking.found(self.query, layers.mask_of)

    def _text(self, k: int) -> Lane:
        """Return the best frames by their words."""
        layers = self.view.layers
        ranked = layers.ranking.search(self.query, k=k, among=self.among, filters=layers.mask_of)
        return Lane("text", layers.ids_at(ranked.rows), ranked.scores)

    def _nearest(self, name: str, query: SpaceQuery | None) -> Lane:
        """Return the frames that are nearest to the question's vector, or to its tokens'."""
        if query is None or name not in self.weights:
            return Lane(name, [], [])
        # Of one lane alone no more are shown.
        k = self._depth if len(self.weights) == 1 else max(self._depth, LANE_HITS)
        return query.lane(k, self._meant)

    @cached_property
    def _meant(self) -> Mask | None:
        """The rows that the query lets be found by other things than words.

        Of the full language those that its filters and NOTs let pass; of plain language with words
        in quotes, those that have these.
        """
        layers, among, query = self.view.layers, self.among, self.query
        if isinstance(query, Query):
            passing = end_to_end(layers.let_in(query))
        else:
            quoted = self._quoted
            found = None if quoted is None else layers.ranking.passing(quoted, layers.mask_of)
            if found is None:
                return among
            passing = found
        if among is None:
            among = layers.sought
        return passing & among

    def _facts(self) -> Lane:
        """Return the frames that facts of whom the question names were read in."""
        layers, found, among = self.view.layers, scored_frames(self.named), self.among
        if found and among is None:
            among = layers.sought
        ids = [] if among is None else layers.among(list(found), among)
        return Lane("facts", ids, [found[one] for one in ids])
