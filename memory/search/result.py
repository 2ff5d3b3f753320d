"""The result of a search: its hits, and why each has its score.

Owns `SearchResult`, and the numbers of an `Explanation`. Leaves out the steps of a search
(`search`) and the printed form of an explanation (`values.explanation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import shown_id
from cerata.engine.late import late
from cerata.retrieval.ranking.fusion import (
    Fused,
    LaneRanking,
    boost_of,
)

from ..values.frames import Frame, Hit
from .lanes import Lane, embedded_text
from .reranking import ByTokens, Reranking

if TYPE_CHECKING:
    from cerata.engine.log_file.lineage import Identity
    from cerata.projections.columnar.scopes import Reach
    from cerata.projections.fulltext import bm25
    from cerata.projections.fulltext.bm25 import WordScore
    from cerata.retrieval.base_level_activation import Use

    from ..facts import search as fact_search
    from ..facts.search import FactHit
    from ..frames import access as accesses
    from ..snapshot.snapshot import Snapshot
    from ..values import explanation as explanations
    from ..values.explanation import Boost, Explanation, LaneShare, Reranked
    from ..values.vector_trust import VectorTrust
    from . import left_out as left_out_frames
    from . import vector_lane
    from .late_lane import LateLane
    from .pages import Block
    from .rankings import Fusion
    from .request import SearchRequest
    from .signals import Signals
    from .vector_lane import VectorLane
else:
    fact_search = late("cerata.memory.facts.search")
    accesses = late("cerata.memory.frames.access")
    explanations = late("cerata.memory.values.explanation")
    left_out_frames = late("cerata.memory.search.left_out")
    vector_lane = late("cerata.memory.search.vector_lane")
    bm25 = late("cerata.projections.fulltext.bm25")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The result of each step of a search; `cerata.memory.search.search` has the steps.

    - ``rankings`` has the lanes that ran, their weights, and the signals.
    - ``fused`` has boosted scores, before reranking; ``order`` follows it, best first.
    - ``best`` is the requested page of ``order``, or of the best hits of each group; ``grouped``
      has the further hits of these groups, by the id of the best. If ``regrouped`` is not None, it
      returns the result that has them.
    """

    snapshot: Snapshot
    request: SearchRequest
    fusion: Fusion
    blocks: Sequence[Block]
    uses: Mapping[int, Use]
    fused: Sequence[Fused]
    reranking: Reranking | None
    rerank_scores: Mapping[int, float]
    order: Sequence[Fused]
    best: Sequence[Fused]
    grouped: Mapping[int, Sequence[Fused]]
    regrouped: Callable[[], SearchResult] | None
    cosines: Mapping[int, float]
    """The cosine of the question and each hit, if the lane of vectors ran and the hit has one."""

    @property
    def facts(self) -> list[FactHit]:
        """The facts for the question, if their lane ran."""
        return self.fusion.running.facts

    @property
    def weights(self) -> Mapping[str, float]:
        """The lanes that ran, in the order of their sum, with what each adds for a share of 1."""
        return self.fusion.weights

    @property
    def vectors(self) -> VectorLane | None:
        """The lane of the question's vector, whether or not it ran."""
        return self.fusion.running.vectors

    @property
    def late(self) -> LateLane | None:
        """The lane of the question's token vectors, whether or not it ran."""
        return self.fusion.running.late

    @property
    def signals(self) -> Signals | None:
        """The signals that count for the question."""
        return self.fusion.signals

    @property
    def trust(self) -> VectorTrust | None:
        """How far the vectors count; None if their lanes did not run, or alone."""
        return self.fusion.running.trust

    def hits(self) -> list[Hit]:
        """Return the best frames."""
        return self._hits(self.best)

    def grouped_with(self, hit: Hit) -> tuple[Hit, ...]:
        """Return the further hits of the group of a hit; () for a further hit."""
        result = self if self.regrouped is None else self.regrouped()
        return tuple(result._hits(result.grouped.get(hit.id, ())))

    def _hits(self, items: Sequence[Fused]) -> list[Hit]:
        vectors = self.vectors
        is_approximate = vectors is not None and vectors.approximate
        hits: list[Hit] = []
        for number, score, lanes in items:
            labels = self._labels(lanes) if is_approximate else lanes
            shown = number if number >= 0 else shown_id(number)
            hits.append(Hit(shown, score, labels, self.cosines.get(number), self))
        return hits

    def place_after(self, hit: Hit) -> int:
        """Return the offset of the page that begins after a hit of this page.

        Raises:
            InvalidInput: the hit is a further hit of a group.
        """
        for place, item in enumerate(self.best):
            if item.id == hit.id:
                return self.request.offset + place + 1
        raise InvalidInput(
            "after is a further hit of a group, which has no page after it",
            remedy="Pass the last hit of the page.",
        )

    def _rankings_of(self, frame: int) -> Sequence[LaneRanking]:
        """Return the rankings from which a frame has its score: those of its block."""
        for block in self.blocks:
            if any(hit.id == frame for hit in block.hits):
                return block.rankings
        return self.blocks[-1].rankings

    @property
    def notices(self) -> tuple[str, ...]:
        """A line if vectors could not be searched, and one if so no hit has the least cosine."""
        request = self.request
        trust = self.fusion.running.trust
        notices: list[str] = []
        # An embedder without trust in the question was not asked, and has a line of its trust.
        is_searched = self.fusion.running.vectors is not None or trust is not None
        is_searched = is_searched or request.mode == "text" or not request.text
        if not is_searched:
            obstacle = self.snapshot.embedder_obstacle
            if obstacle and "vectors" in request.profile.running:
                notices.append(f"searched by words only: {obstacle}")
        if request.min_cosine is not None and "vectors" not in self.weights:
            reason = (
                "no vectors were compared; pass cerata.Vectors(dense=…), "
                "or open with the frames' embedder"
            )
            if "vectors" not in request.profile.running:
                reason = f"profile {request.profile.label} has no lane of vectors"
            notices.append(f"no hit reaches min_cosine: {reason}")
        if trust is not None and trust.notice is not None:
            notices.append(trust.notice)
        return tuple(notices)

    def share_of_words(self, *frames: int) -> float:
        """Return the share of the question's words that frames together have, weighted by idf."""
        of_frames = [self._words_of(frame) for frame in frames]
        # Each list has all words, in the order of their parts of the frame's score.
        contained = {word.word for words in of_frames for word in words if word.count}
        total = math.fsum(word.idf for word in of_frames[0])
        share = math.fsum(word.idf for word in of_frames[0] if word.word in contained)
        return share / total if total else 0.0

    def _words_of(self, frame: int) -> list[WordScore]:
        """Return the contributions of the question's words to the score of a frame by words."""
        layers = self.snapshot.layers
        row = layers.rank_row(frame)
        return [] if row is None else layers.ranking.words(self.request.tree, row)

    def ran(self) -> tuple[str, ...]:
        """Return the names of the lanes that ran, with the reranking if any."""
        lanes = self._labels(self.weights)
        return lanes if self.reranking is None else (*lanes, f"{self.reranking.name} (rerank)")

    def _labels(self, lanes: Iterable[str]) -> tuple[str, ...]:
        """Return the names of lanes in a result, with the name of an approximate vectors lane."""
        if self.vectors is None or not self.vectors.approximate:
            return tuple(lanes)
        return tuple(
            vector_lane.APPROXIMATE if lane == self.vectors.name else lane for lane in lanes
        )

    # --- the reads of a hit ----------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """The identity of the searched log."""
        return self.snapshot.identity

    @property
    def reach(self) -> Reach | None:
        """The filter of the search."""
        return self.snapshot.reach

    def frame_at(self, number: int) -> Frame:
        """Return a frame as the search sees it."""
        return self.snapshot.frame_at(number)

    def highlights(self, text: str) -> list[tuple[int, int]]:
        """Return the characters [start, end) of a text that match the question, ascending."""
        return self.snapshot.layers.highlights(text, self.request.tree)

    def explain(self, hit: Hit) -> Explanation:
        """Return why a hit of this search has its score.

        Cost: a pass over the postings of the question's words.
        """
        by_tokens = isinstance(self.reranking, ByTokens) and hit.id in self.rerank_scores
        is_late = "late" in hit.lanes or by_tokens
        running = self.fusion.running
        return explanations.Explanation(
            id=hit.id,
            score=hit.score,
            profile=self.request.profile,
            lanes=tuple(self._share(lane, hit.id) for lane in running.lanes),
            words=tuple(self._words_of(hit.id)) if "text" in hit.lanes else (),
            facts=tuple(
                named.fact.id
                for named in self.facts
                if hit.id in fact_search.scored_frames([named])
            ),
            reranked=self._reranked(hit.id),
            boost=self._boost(hit),
            tokens=tuple(self.late.token_shares(hit.id))
            if self.late is not None and is_late
            else (),
            embedded=self._embedded(),
            signals=() if self.signals is None else self.signals.shares(hit.id, running.step),
            trust=running.trust,
            beside=self.vectors.beside(hit.id) if self.vectors is not None else (),
            ignored=() if self.signals is None else self.signals.question.ignored,
        )

    def _embedded(self) -> str | None:
        """Return the text that the embedder read, if it is not the question."""
        request = self.request
        by_vector = self.vectors is not None and request.embedding is None
        by_tokens = self.late is not None and request.token_embedding is None
        text = embedded_text(self.snapshot, request) if by_vector or by_tokens else request.text
        return None if text == request.text else text

    def _share(self, lane: Lane, frame: int) -> LaneShare:
        """Return the share of a lane in a frame's score."""
        rankings = {ranking.name: ranking for ranking in self._rankings_of(frame)}
        ids = rankings[lane.name].ids if lane.name in rankings else ()
        places = np.flatnonzero(np.asarray(ids, np.int64) == frame).tolist()
        score = lane.score_of(frame)
        id_alone = np.array([frame], np.int64)
        rows = self.fusion.columns.rows_of(id_alone)
        share = float(lane.shares(id_alone, rows).shares[0])
        weight = self.weights[lane.name]
        return explanations.LaneShare(
            lane=lane.name,
            weight=weight,
            rank=places[0] + 1 if places else None,
            score=None if score is None else round(score, bm25.SCORE_DECIMALS),
            share=share,
            added=weight * share,
            found=len(ids),
            left_out=left_out_frames.left_out(
                self.snapshot.layers, lane.candidates(), self.request
            ),
        )

    def _reranked(self, frame: int) -> Reranked | None:
        """Return how reranking moved a frame; None if the frame was not reranked."""
        if self.reranking is None or frame not in self.rerank_scores:
            return None
        before = [hit.id for hit in self.fused].index(frame) + 1
        after = [hit.id for hit in self.order].index(frame) + 1
        return explanations.Reranked(before, after, self.rerank_scores[frame], self.reranking.name)

    def _boost(self, hit: Hit) -> Boost | None:
        """Return the factor of a hit's score; None if the frame was never used."""
        use = self.uses.get(hit.id)
        counts = accesses.access_of(self.snapshot, hit.id)
        if use is None or counts.last_used is None:
            return None
        factor = boost_of(hit.score, use.boost(self.request.profile.importance))
        return explanations.Boost(factor, counts.used, counts.last_used)
