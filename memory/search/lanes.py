"""Lanes: the ways in which a search ranks the frames of a snapshot for a question.

Owns the protocol, the lanes "text", "facts" and "graph", the choice of the lanes that run, and when
a question has vectors or the embedder computes them. Leaves out the lanes of vectors
(`vector_lane`, `late_lane`), ranking by words (`cerata.projections.fulltext.bm25`), the choice of
facts (`facts.search`) and the hops (`facts.near_frames`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec
import numpy as np

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.late import late
from cerata.projections.fulltext.scoring import SCORE_DECIMALS
from cerata.retrieval.ranking.fusion import OF_VECTORS, LaneRanking, Shares, step_of
from cerata.retrieval.ranking.relevance import BY_WORDS

from ..values.vector_trust import VectorTrust

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import I64, Mask
    from cerata.projections.fulltext.asked import Asked
    from cerata.projections.fulltext.query import Query
    from cerata.retrieval import speaker_names
    from cerata.retrieval import token_weights as question_weights
    from cerata.retrieval.embedders import built_in
    from cerata.retrieval.embedders import embedder as embedders
    from cerata.retrieval.embedders import trust as trusting
    from cerata.retrieval.embedders.embedder import TokenEmbedder

    from ..facts import near_frames
    from ..facts import search as fact_search
    from ..facts.search import FactHit
    from ..snapshot.snapshot import Snapshot
    from . import late_lane as late_lanes
    from . import space_lane as space_lanes
    from . import vector_lane as search_vector_lanes
    from .late_lane import LateLane
    from .request import SearchRequest
    from .vector_lane import VectorLane
else:
    embedders = late("cerata.retrieval.embedders.embedder")
    built_in = late("cerata.retrieval.embedders.built_in")
    trusting = late("cerata.retrieval.embedders.trust")
    speaker_names = late("cerata.retrieval.speaker_names")
    question_weights = late("cerata.retrieval.token_weights")
    fact_search = late("cerata.memory.facts.search")
    near_frames = late("cerata.memory.facts.near_frames")
    late_lanes = late("cerata.memory.search.late_lane")
    search_vector_lanes = late("cerata.memory.search.vector_lane")
    space_lanes = late("cerata.memory.search.space_lane")


class Lane(Protocol):
    """A question to one index of a snapshot.

    Masks are over the rows of the snapshot's layers, end to end.
    """

    name: ClassVar[str]
    """The name in profiles and results."""

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames among the rows of a mask, by default the current rows."""
        ...

    def shares(self, ids: I64, rows: I64) -> Shares:
        """Return how far each frame fits the question, (frames,) from 0, about 1 for a whole fit.

        ``rows`` are those of the frames in the ranking.

        Shares are exact for any frame, ranked or not.
        """
        ...

    def score_of(self, frame: int) -> float | None:
        """Return the score of a frame in the lane's own unit; None if the lane cannot find it."""
        ...

    def candidates(self) -> Mask:
        """Return the rows that the lane chooses from, also of closed frames, without a filter."""
        ...


class TextLane:
    """The frames that match a query, by their words."""

    name: ClassVar[str] = "text"

    def __init__(self, snapshot: Snapshot, query: Query) -> None:
        self._layers = snapshot.layers
        self._query = query

    @cached_property
    def asked(self) -> Asked:
        """The query, put to the words of the snapshot."""
        return self._layers.ranking.asked(self._query, self._layers.mask_of)

    @cached_property
    def best_share(self) -> float:
        """The share of the best current frame, 0 if no word of the query occurs."""
        scores = self.asked.best(1).scores
        return float(scores[0]) / (self.asked.most or 1.0) if len(scores) else 0.0

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames; scores are BM25."""
        ranked = self.asked.best(k, among)
        return LaneRanking(self.name, self._layers.columns.ids[ranked.rows], ranked.scores)

    def shares(self, ids: I64, rows: I64) -> Shares:
        """Return BM25 over that of a frame full of the words, about."""
        scores = self.asked.at(rows)
        return Shares(scores / (self.asked.most or 1.0), self.asked.finds(rows, scores))

    def score_of(self, frame: int) -> float | None:
        """Return the BM25 of a frame, or None if the query does not find it."""
        rows = self._layers.columns.rows_of(np.array([frame]))
        scores = self.asked.at(rows)
        return float(scores[0]) if self.asked.finds(rows, scores)[0] else None

    def candidates(self) -> Mask:
        """Return the rows that match the query."""
        return self._layers.ranking.found(self._query, self._layers.mask_of)


class FactsLane(msgspec.Struct, frozen=True):
    """The frames in which the facts for a question were read."""

    name: ClassVar[str] = "facts"

    snapshot: Snapshot
    facts: Sequence[FactHit]

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return all frames; the facts are few."""
        layers = self.snapshot.layers
        scores = fact_search.scored_frames(self.facts) if self.facts else {}
        if scores:
            admitted = layers.among([*scores], layers.sought if among is None else among)
            scores = {frame: scores[frame] for frame in admitted}
        return LaneRanking(self.name, [*scores], [*scores.values()])

    def shares(self, ids: I64, rows: I64) -> Shares:
        """Return 1 for each frame in which a fact was read."""
        if not self.facts:
            return Shares(np.zeros(len(ids)), np.zeros(len(ids), np.bool_))
        read = fact_search.scored_frames(self.facts)
        # Few frames: `numpy.isin` loads a module of 10 ms.
        are_read = np.array([frame in read for frame in ids.tolist()], np.bool_)
        return Shares(are_read.astype(np.float64), are_read)

    def score_of(self, frame: int) -> float | None:
        """Return the score of the best fact that was read in a frame."""
        return fact_search.scored_frames(self.facts).get(frame)

    def candidates(self) -> Mask:
        """Return the rows of the frames."""
        return self.snapshot.layers.rank_mask(fact_search.scored_frames(self.facts))


class GraphLane(msgspec.Struct, frozen=True):
    """The frames in which facts near the entities of a question were read, nearest first."""

    name: ClassVar[str] = "graph"

    snapshot: Snapshot
    hops: Mapping[int, int]
    """The hops to each frame, nearest first."""

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return all frames, with the inverse of the number of hops."""
        layers = self.snapshot.layers
        frames = [*self.hops]
        if frames:
            frames = layers.among(frames, layers.sought if among is None else among)
        return LaneRanking(self.name, frames, [1.0 / self.hops[frame] for frame in frames])

    def shares(self, ids: I64, rows: I64) -> Shares:
        """Return the inverse of the hops to each frame, 0 for a frame out of reach."""
        shares = np.zeros(len(ids))
        for place, frame in enumerate(ids.tolist() if self.hops else ()):
            if frame in self.hops:
                shares[place] = 1.0 / self.hops[frame]
        return Shares(shares, shares > 0)

    def score_of(self, frame: int) -> float | None:
        """Return the inverse of the hops to a frame."""
        return 1.0 / self.hops[frame] if frame in self.hops else None

    def candidates(self) -> Mask:
        """Return the rows of the frames."""
        return self.snapshot.layers.rank_mask([*self.hops])


@dataclass(frozen=True)
class RunningLanes:
    """The lanes that run for a question.

    - ``weights`` are by lane, in the order of their sum: those of the profile, with the trust in
      the embedder; those of "facts" and "graph" are in steps. ``lanes`` are these lanes.
    - ``vectors`` and ``late`` have the question's vectors, whether or not their lanes run.
    """

    weights: Mapping[str, float]
    facts: list[FactHit]
    vectors: VectorLane | None
    late: LateLane | None
    lanes: Sequence[Lane]
    trust: VectorTrust | None

    @cached_property
    def step(self) -> float:
        """The worth of a signal of weight 1 in a score."""
        found: list[str] = []
        for lane, name in ((self.vectors, "vectors"), (self.late, "late")):
            if lane is not None and self.weights.get(name) and lane.finds_any:
                found.append(name)
        return step_of(self.weights, found)

    @property
    def compared(self) -> VectorLane | None:
        """The lane of vectors if it runs, so that hits have cosines."""
        return self.vectors if "vectors" in self.weights else None


def running_lanes(snapshot: Snapshot, request: SearchRequest) -> RunningLanes:
    """Return the lanes of the profile that can run, with their weights.

    Raises:
        Unsupported: none can run. Further errors are those of `vector_lane_of` and `late_lane_of`.
    """
    text = TextLane(snapshot, request.tree)
    vectors, late, trust = vector_lanes_of(snapshot, request, text)
    weights = _weights(request, vectors, late)
    facts: list[FactHit] = []
    has_facts = not snapshot.facts_at.is_empty
    if "facts" in weights and has_facts:
        facts = fact_search.relevant_facts(snapshot, request.text, where=request.where)
    hops: Mapping[int, int] = {}
    if "graph" in weights and has_facts:
        hops = near_frames.hops_to_frames(snapshot, request.text, request.where)
    able = (text, FactsLane(snapshot, facts), vectors, late, GraphLane(snapshot, hops))
    lanes: list[Lane] = []
    for lane in able:
        if lane is not None and lane.name in weights:
            lanes.append(lane)
    if trust is not None:
        for name in OF_VECTORS.intersection(weights):
            weights[name] *= trust.factor_of(name)
    return RunningLanes(weights, facts, vectors, late, lanes, trust)


def vector_lanes_of(
    snapshot: Snapshot, request: SearchRequest, text: TextLane
) -> tuple[VectorLane | None, LateLane | None, VectorTrust | None]:
    """Return the lanes of a question's vectors, and how far they count beside words.

    An embedder without trust in the question is not asked, unless hits need a cosine.

    Raises:
        InvalidInput, NotFound, EmbedderFailed: as `vector_lane_of` and `late_lane_of` do.
    """
    passed = None if request.embedding is None else vector_lane_of(snapshot, request)
    trust = None
    if request.mode == "hybrid" and not OF_VECTORS.isdisjoint(request.profile.running):
        space = request.space if passed is None else passed.key[0]
        trust = _vector_trust_of(snapshot, request, text, space)
        if not trust.trust and passed is None and request.min_cosine is None:
            return None, late_lane_of(snapshot, replace(request, mode="text")), trust
    vectors = vector_lane_of(snapshot, request) if passed is None else passed
    late = late_lane_of(snapshot, request)
    return vectors, late, None if vectors is None and late is None else trust


def _vector_trust_of(
    snapshot: Snapshot, request: SearchRequest, text: TextLane, space: str | None
) -> VectorTrust:
    """Return how far the vectors of a question count.

    They count wholly if the embedder is not known. If few words of the question occur in the
    memory, meaning is most of what there is, and they count more.
    """
    if request.trust is not None:
        return request.trust
    embedder = snapshot.embedder
    if embedder is None or not request.text or space not in (None, embedder.identity.space):
        return VectorTrust()
    trust = trusting.trust_of(embedder, request.text)
    weight = built_in.vector_weight_of(embedder)
    if trust.trust < trust.alone:
        missing = max(0.0, 1.0 - 2.0 * text.best_share / BY_WORDS.clear)
        least = round(trust.alone * missing, SCORE_DECIMALS)
        if least > trust.trust:
            return VectorTrust(least, weight, trust.notice_without_words)
    return VectorTrust(trust.trust, weight, trust.notice)


def _weights(request: SearchRequest, *vector_lanes: Lane | None) -> dict[str, float]:
    """Return the lanes of the profile that run for a question, with their weights."""
    able: list[str] = []
    if request.mode != "vector":
        able += ["text", "facts", "graph"] if request.is_plain else ["text"]
    if request.mode != "text":
        for vector_lane in vector_lanes:
            if vector_lane is not None:
                able.append(vector_lane.name)
    of_profile = request.profile.running
    weights = {lane: weight for lane, weight in of_profile.items() if lane in able}
    if not weights:
        raise Unsupported(
            f"None of the lanes {', '.join(of_profile)} can run for this question",
            where=f"profile {request.profile.label}",
            remedy=f"Pass a profile with a lane that can run: {', '.join(able)}.",
        )
    return weights


def vector_lane_of(snapshot: Snapshot, request: SearchRequest) -> VectorLane | None:
    """Return the lane of a question's vector, if the question has one.

    Without an embedding the store's embedder computes the vector of a plain question, if the
    snapshot has vectors of this embedder, or the mode needs a vector.

    Raises:
        InvalidInput: a vector is needed and missing, or is not valid.
        NotFound: no space is named, and there are no vectors.
        EmbedderFailed: the embedder could not embed the question.
    """
    space = request.space
    is_text_only = request.mode == "text"
    # The scores of a search by vectors alone are cosines.
    is_alone = request.mode == "vector"
    if request.embedding is not None:
        if is_text_only:
            return None
        return search_vector_lanes.VectorLane(
            snapshot,
            request.embedding,
            space,
            approximate=request.approximate,
            is_alone=is_alone,
        )
    is_needed = request.mode == "vector" and request.token_embedding is None
    embedder = snapshot.embedder
    if embedder is not None and request.text and space in (None, embedder.identity.space):
        name = embedder.identity.space
        is_there = name in (key[0] for key in space_lanes.keys_of(snapshot, tokens=False))
        if is_text_only or not (is_needed or is_there):
            return None
        vector = embedders.embed_question(embedder, embedded_text(snapshot, request))
        return search_vector_lanes.VectorLane(
            snapshot, vector, name, approximate=request.approximate, is_alone=is_alone
        )
    if is_needed or space is not None:
        raise InvalidInput(
            "There is no vector to search by",
            remedy="Pass vectors=cerata.Vectors(dense=…), or open the store with an embedder.",
        )
    return None


def late_lane_of(snapshot: Snapshot, request: SearchRequest) -> LateLane | None:
    """Return the lane of a question's token vectors, if there are any to search or rerank by.

    Without token vectors the store's embedder computes those of a plain question, if the snapshot
    has token vectors of this embedder, and the profile or the request needs them.

    Raises:
        InvalidInput: the token vectors are not valid, or missing although the request names their
            space or reranks by them.
        NotFound: no space is named, and there are no vectors.
        EmbedderFailed: the embedder could not embed the question, or its spans do not align.
    """
    space = request.tokens_space
    is_text_only = request.mode == "text"
    if request.token_embedding is not None:
        if is_text_only and request.rerank is not True:
            return None
        return late_lanes.LateLane(
            snapshot,
            request.token_embedding,
            space,
            weights=request.token_weights,
        )
    is_needed = request.rerank is True or space is not None
    embedder = None if snapshot.embedder is None else embedders.token_embedder(snapshot.embedder)
    if not is_needed and (
        embedder is None or is_text_only or "late" not in request.profile.running
    ):
        return None
    if embedder is not None and request.text:
        name = embedder.token_identity.space
        keys = space_lanes.keys_of(snapshot, tokens=True) if space in (None, name) else []
        if name in (key[0] for key in keys):
            return _embedded_late_lane(snapshot, request, embedder)
    if is_needed:
        raise InvalidInput(
            f"There are no token vectors to {'rerank' if request.rerank is True else 'search'} by",
            remedy="Pass vectors=cerata.Vectors(tokens=…), or open the store with the embedder of "
            "the frames.",
        )
    return None


def _embedded_late_lane(
    snapshot: Snapshot, request: SearchRequest, embedder: TokenEmbedder
) -> LateLane:
    text = embedded_text(snapshot, request)
    tokens = embedders.embed_token_texts(embedder, [text])[0]
    spans = embedders.spans_of_tokens(embedder, text, len(tokens))
    return late_lanes.LateLane(
        snapshot,
        tokens,
        embedder.token_identity.space,
        weights=None if spans is None else weights_of_tokens(snapshot, text, spans),
        text=None if spans is None else [text[slice(*span)] if span else "" for span in spans],
    )


def embedded_text(snapshot: Snapshot, request: SearchRequest) -> str:
    """Return the text of a question that the embedder reads."""
    return speaker_names.without_names(request.text, snapshot.layers.speakers)


def weights_of_tokens(
    snapshot: Snapshot, text: str, spans: Sequence[tuple[int, int] | None]
) -> list[float]:
    """Return the weights of a question's tokens, by the words of the current frames."""
    return question_weights.token_weights(text, spans, snapshot.layers.ranking.idf)
