"""Lanes: the ways in which a search ranks the frames of a snapshot for a question.

Owns the protocol, the lanes "text", "facts" and "graph", the choice of the lanes that run, and when
a question has vectors or the embedder computes them. Leaves out the lanes of vectors
(`vector_lane`, `late_lane`), ranking by words (`cerata.projections.fulltext.bm25`), the choice of
facts (`facts.search`) and the hops (`facts.near_frames`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.late import late
from cerata.projections.columnar.turn_order import NO_ROW
from cerata.retrieval.ranking.fusion import LaneRanking, TurnWeights

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import I64, Mask
    from cerata.projections.fulltext.bm25 import FulltextView
    from cerata.projections.fulltext.query import Query
    from cerata.retrieval import speaker_names
    from cerata.retrieval import token_weights as question_weights
    from cerata.retrieval.embedders import embedder as embedders
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

    def candidates(self) -> Mask:
        """Return the rows that the lane chooses from, also of closed frames, without a filter."""
        ...


class TextLane(msgspec.Struct, frozen=True):
    """The frames that match a query, by their words."""

    name: ClassVar[str] = "text"

    snapshot: Snapshot
    query: Query
    in_context: bool
    """True if the words of neighbouring turns count."""

    @property
    def ranking(self) -> FulltextView:
        """The ranking by words."""
        return self.snapshot.layers.ranking_of(in_context=self.in_context)

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames."""
        layers = self.snapshot.layers
        ranked = self.ranking.search(self.query, k=k, among=among, filters=layers.mask_of)
        return LaneRanking(self.name, layers.ids_at(ranked.rows), ranked.scores)

    def candidates(self) -> Mask:
        """Return the rows that match the query."""
        layers = self.snapshot.layers
        return self.ranking.found(self.query, layers.mask_of)


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

    def candidates(self) -> Mask:
        """Return the rows of the frames."""
        return self.snapshot.layers.rank_mask(fact_search.scored_frames(self.facts))


class GraphLane(msgspec.Struct, frozen=True):
    """The frames in which facts near the entities of a question were read, ranked by hops."""

    name: ClassVar[str] = "graph"

    snapshot: Snapshot
    hops: Mapping[int, int]
    """The hops to each frame, nearest first."""

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return all frames; their rank is the number of hops."""
        layers = self.snapshot.layers
        frames = [*self.hops]
        if frames:
            frames = layers.among(frames, layers.sought if among is None else among)
        ranks = [self.hops[frame] for frame in frames]
        return LaneRanking(self.name, frames, [1.0 / rank for rank in ranks], ranks)

    def candidates(self) -> Mask:
        """Return the rows of the frames."""
        return self.snapshot.layers.rank_mask([*self.hops])


class RunningLanes(msgspec.Struct, frozen=True):
    """The lanes that run for a question.

    - ``weights`` are by lane, in the order of their sum; ``lanes`` are these lanes.
    - ``turns`` has other weights for turns; None if the profile or the state has none.
    - ``vectors`` and ``late`` have the question's vectors, whether or not their lanes run.
    - ``vectors`` stays the lane of the question itself after `moved`.
    """

    weights: Mapping[str, float]
    turns: TurnWeights | None
    facts: list[FactHit]
    vectors: VectorLane | None
    late: LateLane | None
    lanes: Sequence[Lane]

    @property
    def compared(self) -> VectorLane | None:
        """The lane of vectors if it runs, so that hits have cosines."""
        return self.vectors if "vectors" in self.weights else None

    @property
    def feedback(self) -> tuple[int, ...]:
        """The frames toward which the question's vector was moved."""
        lane = self._vector_lane
        return () if lane is None else lane.feedback

    @property
    def has_cosines(self) -> bool:
        """True if the lane of vectors runs with cosines of the question as scores."""
        lane = self._vector_lane
        return lane is not None and lane.has_cosines

    def moved(self, frames: Sequence[int]) -> RunningLanes:
        """Return the lanes, that of the vectors moved toward frames (`VectorLane.toward`)."""
        moved = self._vector_lane
        lanes = [
            moved.toward(frames) if moved is not None and lane is moved else lane
            for lane in self.lanes
        ]
        return msgspec.structs.replace(self, lanes=lanes)

    @property
    def _vector_lane(self) -> VectorLane | None:
        """The running lane of vectors."""
        if self.vectors is None:
            # The module of the lane, which most commands do not need, stays unloaded.
            return None
        lanes = (lane for lane in self.lanes if isinstance(lane, search_vector_lanes.VectorLane))
        return next(lanes, None)


def running_lanes(snapshot: Snapshot, request: SearchRequest) -> RunningLanes:
    """Return the lanes of the profile that can run, weighted by the kind of the question.

    Raises:
        Unsupported: none can run. Further errors are those of `vector_lane_of` and `late_lane_of`.
    """
    profile = request.profile
    vectors = vector_lane_of(snapshot, request)
    late = late_lane_of(snapshot, request)
    weights = _weights(request, vectors, late)
    facts: list[FactHit] = []
    if "facts" in weights and not snapshot.facts_at.is_empty:
        # Earlier versions of a profile leave facts out of a context with a filter.
        where = request.where if profile.fact_words else None
        facts = fact_search.relevant_facts(
            snapshot, request.text, by_words=profile.fact_words, where=where
        )
    hops: Mapping[int, int] = {}
    if "graph" in weights and not snapshot.facts_at.is_empty:
        hops = near_frames.hops_to_frames(snapshot, request.text, request.where)
    able = (
        TextLane(snapshot, request.tree, request.profile.in_context),
        FactsLane(snapshot, facts),
        vectors,
        late,
        GraphLane(snapshot, hops),
    )
    lanes = [lane for lane in able if lane is not None and lane.name in weights]
    turns = turn_weights_of(snapshot, request, weights)
    return RunningLanes(weights, turns, facts, vectors, late, lanes)


def _weights(request: SearchRequest, *vector_lanes: Lane | None) -> dict[str, float]:
    """Return the lanes of the profile that run for a question, with their weights."""
    able: list[str] = []
    if request.mode != "vector":
        able += ["text", "facts", "graph"] if request.is_plain else ["text"]
    if request.mode != "text":
        able += [lane.name for lane in vector_lanes if lane is not None]
    of_profile = request.lane_weights
    weights = {lane: weight for lane, weight in of_profile.items() if lane in able}
    if not weights:
        raise Unsupported(
            f"None of the lanes {', '.join(of_profile)} can run for this question",
            where=f"profile {request.profile.label}",
            remedy=f"Pass a profile with a lane that can run: {', '.join(able)}.",
        )
    return weights


def turn_weights_of(
    snapshot: Snapshot, request: SearchRequest, lanes: Iterable[str]
) -> TurnWeights | None:
    """Return the weights of lanes for turns; None if all frames have the same."""
    layers = snapshot.layers
    turns = layers.turns
    if turns is None or not request.profile.turn_weights:
        return None
    of_profile = request.turn_weights
    places = turns.places

    def are_turns(ids: I64) -> Mask:
        mask: Mask = places[layers.rows_at(ids)] != NO_ROW
        return mask

    return TurnWeights({lane: of_profile[lane] for lane in lanes}, are_turns)


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
    in_window = request.profile.vector_window and request.mode != "vector"
    if request.embedding is not None:
        if is_text_only:
            return None
        return search_vector_lanes.VectorLane(
            snapshot,
            request.embedding,
            space,
            approximate=request.approximate,
            in_window=in_window,
        )
    is_needed = request.mode == "vector" and request.token_embedding is None
    embedder = snapshot.embedder
    if embedder is not None and request.text and space in (None, embedder.identity.space):
        name = embedder.identity.space
        is_there = name in (key[0] for key in space_lanes.keys_of(snapshot, tokens=False))
        if is_text_only or not (is_needed or is_there):
            return None
        vector = embedders.embed_texts(embedder, [embedded_text(snapshot, request)])[0]
        return search_vector_lanes.VectorLane(
            snapshot, vector, name, approximate=request.approximate, in_window=in_window
        )
    if is_needed or space is not None:
        raise InvalidInput(
            "There is no vector to search by",
            remedy="Pass the question's vector as embedding=, or open with its embedder.",
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
            in_window=request.profile.token_window,
        )
    is_needed = request.rerank is True or space is not None
    embedder = None if snapshot.embedder is None else embedders.token_embedder(snapshot.embedder)
    if not is_needed and (embedder is None or is_text_only or not request.profile.is_late):
        return None
    if embedder is not None and request.text:
        name = embedder.token_identity.space
        keys = space_lanes.keys_of(snapshot, tokens=True) if space in (None, name) else []
        if name in (key[0] for key in keys):
            return _embedded_late_lane(snapshot, request, embedder)
    if is_needed:
        raise InvalidInput(
            f"There are no token vectors to {'rerank' if request.rerank is True else 'search'} by",
            remedy="Pass token_embedding=, or open the store with the embedder of the frames.",
        )
    return None


def _embedded_late_lane(
    snapshot: Snapshot, request: SearchRequest, embedder: TokenEmbedder
) -> LateLane:
    profile = request.profile
    text = embedded_text(snapshot, request)
    tokens = embedders.embed_token_texts(embedder, [text])[0]
    spans = (
        embedders.spans_of_tokens(embedder, text, len(tokens)) if profile.token_weights else None
    )
    return late_lanes.LateLane(
        snapshot,
        tokens,
        embedder.token_identity.space,
        weights=None if spans is None else weights_of_tokens(snapshot, request, text, spans),
        in_window=profile.token_window,
        text=None if spans is None else [text[slice(*span)] if span else "" for span in spans],
    )


def embedded_text(snapshot: Snapshot, request: SearchRequest) -> str:
    """Return the text of a question that the embedder reads."""
    if not request.profile.names_out:
        return request.text
    return speaker_names.without_names(request.text, snapshot.layers.speakers)


def weights_of_tokens(
    snapshot: Snapshot,
    request: SearchRequest,
    text: str,
    spans: Sequence[tuple[int, int] | None],
) -> list[float]:
    """Return the weights of a question's tokens, by the words of the current frames."""
    ranking = snapshot.layers.ranking_of(in_context=request.profile.in_context)
    return question_weights.token_weights(text, spans, ranking.idf)
