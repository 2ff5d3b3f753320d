"""Searching: the steps from a request to its hits.

Owns the order of the steps, the lanes that run, and the rows that may be returned. Leaves out the
lanes (`lanes`, `vector_lane`, `late_lane`) and the fusion of their rankings
(`cerata.retrieval.ranking.fusion`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.projections.columnar.columns import Mask
from cerata.projections.columnar.scopes import sees_same
from cerata.projections.fulltext.query import Query, loosened
from cerata.retrieval.base_level_activation import Use
from cerata.retrieval.query_classifier import Classified, QuestionKind, classify
from cerata.retrieval.ranking.fusion import (
    RERANK_HITS,
    Fused,
    LaneRanking,
    boosted,
    fuse,
    reranked,
)

from ..facts.search import FactHit, relevant_facts
from ..frames.access import uses_among
from ..snapshot.layers import both, end_to_end
from ..snapshot.snapshot import Snapshot
from ..values.frames import Hit
from .bounds import Bounds
from .lanes import FactsLane, Lane, TextLane, late_lane_of, vector_lane_of
from .pages import LANE_HITS, Block, blocks_of, documents_of
from .request import SearchRequest
from .result import SearchResult


def run_search(snapshot: Snapshot, request: SearchRequest) -> SearchResult:
    """Return the result of a question: a pure function of the snapshot and the request.

    Raises:
        InvalidInput: the filter is no `Filter`, or a vector is not valid, or missing and needed.
        NotFound: no such space exists.
        EmbedderFailed: the embedder could not embed the question.
        Unsupported: none of the profile's lanes can run.
    """
    query = request.query
    profile = request.profile

    # The lanes that can run, weighted by the kind of the question.
    vectors = vector_lane_of(snapshot, request)
    late = late_lane_of(snapshot, request)
    kind = classify(query) if isinstance(query, str) else Classified("factual", "")
    weights = _weights(request, kind.kind, vectors, late)
    facts: list[FactHit] = []
    if "facts" in weights:
        # Earlier versions of a profile leave facts out of a context with a filter.
        where = request.where if profile.fact_words else None
        facts = relevant_facts(snapshot, request.text, by_words=profile.fact_words, where=where)
    able = (TextLane(snapshot, request.tree), FactsLane(snapshot, facts), vectors, late)
    lanes = [lane for lane in able if lane is not None and lane.name in weights]

    # The rows that may be returned, ranked by each lane as deep as the later steps need.
    admitted = _admitted(snapshot, request)
    by_profile = profile.rerank and request.mode != "text"
    rerank = by_profile if request.rerank is None else request.rerank
    is_reranked = rerank and late is not None
    need = request.offset + request.k
    bounds = Bounds(request, weights, vectors if "vectors" in weights else None)
    # A single lane has one order at any depth, unless its hits are boosted.
    is_stable = not (profile.importance or request.group_by or request.is_bounded)
    wanted = max(need, RERANK_HITS if is_reranked else 0)
    is_shallow = is_stable and (need < LANE_HITS or len(lanes) == 1)
    first_depth = wanted if is_shallow else LANE_HITS

    # One order: that of the fused ranks, then of the uses, then of the tokens.
    uses: dict[int, Use] = {}

    def build(depth: int) -> Block:
        rankings = _rankings(snapshot, request, lanes, admitted, depth)
        count = sum(len(ranking.ids) for ranking in rankings)
        if is_shallow and depth == first_depth:
            # No later step selects among further hits of the first block.
            count = min(count, wanted)
        fused = fuse(rankings, count, method=profile.method, weights=weights)
        if profile.importance:
            used = uses_among(snapshot, [hit.id for hit in fused])
            uses.update(used)
            fused = boosted(
                fused, {id_: use.boost(profile.importance) for id_, use in used.items()}
            )
        return Block(rankings, fused)

    def is_enough(order: Sequence[Fused], rankings: Sequence[LaneRanking]) -> bool:
        order = bounds.within(order, rankings)
        if len(order) < need:
            return False
        return request.group_by is None or len(documents_of(snapshot, order)) >= need

    single_depth = need if is_stable else None
    blocks = blocks_of(build, is_enough, bounds.may_follow, first_depth, single_depth)
    fused = [hit for block in blocks for hit in block.hits]
    order: Sequence[Fused] = fused
    late_scores: dict[int, float] = {}
    if late is not None and is_reranked:
        late_scores = late.scores_of([hit.id for hit in fused[:RERANK_HITS]])
        order = reranked(fused, late_scores)
    rankings = blocks[-1].rankings
    order = bounds.within(order, rankings)
    best, grouped = _page(snapshot, request, order)
    return SearchResult(
        snapshot=snapshot,
        request=request,
        kind=kind,
        weights=weights,
        facts=facts,
        vectors=vectors,
        late=late,
        lanes=lanes,
        blocks=blocks,
        uses=uses,
        fused=fused,
        is_reranked=is_reranked,
        late_scores=late_scores,
        order=order,
        best=best,
        grouped=grouped,
        cosines=bounds.cosines_of([*best, *chain(*grouped.values())], rankings),
    )


def _page(
    snapshot: Snapshot, request: SearchRequest, order: Sequence[Fused]
) -> tuple[Sequence[Fused], dict[int, Sequence[Fused]]]:
    """Return the requested part of the order, and further hits of its documents by best hit."""
    page = slice(request.offset, request.offset + request.k)
    if request.group_by is None:
        return order[page], {}
    documents = [*documents_of(snapshot, order).values()][page]
    return [hits[0] for hits in documents], {hits[0].id: hits[1:] for hits in documents}


def continued(
    snapshot: Snapshot, request: SearchRequest, after: Hit
) -> tuple[Snapshot, SearchRequest]:
    """Return the snapshot and the request of the page after a hit.

    Raises:
        InvalidInput: the hit is of another memory, scope or question, or is a copy.
    """
    expect_type("after", after, Hit, "a Hit", "Pass the last hit of the page before.")
    result = after.made_by
    if (
        not isinstance(result, SearchResult)
        or request.offset
        or result.log_id != snapshot.log_id
        or not _may_continue(result.snapshot, snapshot)
        or not result.request.is_same_question(request)
    ):
        raise InvalidInput(
            "after is a hit of another question, scope, state or memory, or came with an offset",
            remedy="Repeat the search that found the hit, on the same store or view, except k.",
        )
    return result.snapshot, replace(request, offset=result.place_after(after))


def _may_continue(earlier: Snapshot, reader: Snapshot) -> bool:
    """Return whether a reader may see the earlier snapshot: no other scope, later or pending event.

    A store is newer than its hits, and a view is as old.
    """
    return (
        sees_same(earlier.reach, reader.reach)
        and earlier.basis <= reader.basis
        and earlier.valid_at_us == reader.valid_at_us
        and (earlier.ids is None or earlier.ids == reader.ids)
    )


def _weights(
    request: SearchRequest, kind: QuestionKind, *vector_lanes: Lane | None
) -> dict[str, float]:
    """Return the lanes of the profile that run for a question, with their weights."""
    able: list[str] = []
    if request.mode != "vector":
        able += ["text", "facts"] if request.is_plain else ["text"]
    if request.mode != "text":
        able += [lane.name for lane in vector_lanes if lane is not None]
    of_profile = request.profile.weights_for(kind)
    weights = {lane: weight for lane, weight in of_profile.items() if lane in able}
    if not weights:
        raise Unsupported(
            f"None of the lanes {', '.join(of_profile)} can run for this question",
            where=f"profile {request.profile.label}",
            remedy=f"Pass a profile with a lane that can run: {', '.join(able)}.",
        )
    return weights


def _admitted(snapshot: Snapshot, request: SearchRequest) -> Mask | None:
    """Return the rows that may be returned; None if all that the ranking counts may be."""
    layers = snapshot.layers
    closed = request.include_superseded or request.include_deleted
    if request.where is None and not closed and layers.expired is None:
        return None
    admitted = layers.admitted(
        request.where,
        include_superseded=request.include_superseded,
        include_deleted=request.include_deleted,
    )
    return end_to_end(both(admitted, layers.searched))


def _rankings(
    snapshot: Snapshot,
    request: SearchRequest,
    lanes: Sequence[Lane],
    admitted: Mask | None,
    depth: int,
) -> list[LaneRanking]:
    """Return the rankings of the lanes that found frames, and that of the text in any case."""
    by_text = [lane for lane in lanes if lane.name == "text"]
    others = lanes[len(by_text) :]
    rankings: list[LaneRanking] = []
    if others:
        # Hits of a single lane are not fused, so more hits than the result's are not needed.
        fused_depth = depth if len(lanes) == 1 else max(depth, LANE_HITS)
        passing = _passing(snapshot, request, admitted)
        rankings = [lane.rank(fused_depth, passing) for lane in others]
        rankings = [ranking for ranking in rankings if len(ranking.ids)]
    if rankings:
        depth = max(depth, LANE_HITS)
    return [*(lane.rank(depth, admitted) for lane in by_text), *rankings]


def _passing(snapshot: Snapshot, request: SearchRequest, admitted: Mask | None) -> Mask | None:
    """Return the admitted rows that the query admits in lanes that do not search words.

    A query of the full language admits rows by its filters and NOTs; a plain question with quotes,
    the rows that have the quoted words.
    """
    if request.is_plain:
        return admitted
    layers = snapshot.layers
    tree = loosened(request.query) if isinstance(request.query, Query) else request.tree
    passing = layers.ranking.passing(tree, layers.mask_of)
    if passing is None:
        return admitted
    return passing & (layers.sought if admitted is None else admitted)
