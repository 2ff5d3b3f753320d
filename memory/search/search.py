"""Searching: the steps from a request to its hits.

Owns the order of the steps, and the rows that may be returned. Leaves out the lanes (`lanes`,
`vector_lane`, `late_lane`), the fusion of their rankings (`cerata.retrieval.ranking.fusion`), and
the blocks (`pages`) and bounds (`bounds`) of the order.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.columns import Mask
from cerata.projections.columnar.scopes import sees_same
from cerata.projections.fulltext.query import Query, loosened
from cerata.retrieval.base_level_activation import Use
from cerata.retrieval.ranking.fusion import (
    RERANK_HITS,
    Fused,
    LaneRanking,
    boosted,
    fuse,
    reranked,
)

from ..frames.access import uses_among
from ..snapshot.layers import both, end_to_end
from ..snapshot.snapshot import Snapshot
from ..values.frames import Hit
from .bounds import Bounds
from .lanes import Lane, RunningLanes, running_lanes
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
    running = running_lanes(snapshot, request)
    late = running.late
    by_profile = request.profile.rerank and request.mode != "text"
    is_reranked = late is not None and (by_profile if request.rerank is None else request.rerank)

    # One order: that of the fused ranks, then of the uses, then of the tokens.
    bounds = Bounds(request, running.weights, running.compared)
    builder = _BlockBuilder(snapshot, request, running, bounds, is_reranked=is_reranked)
    blocks = builder.blocks()
    fused = [hit for block in blocks for hit in block.hits]
    late_scores: dict[int, float] = {}
    if late is not None and is_reranked:
        late_scores = late.scores_of([hit.id for hit in fused[:RERANK_HITS]])
    rankings = blocks[-1].rankings
    order = bounds.within(reranked(fused, late_scores), rankings)

    best, grouped = _page(snapshot, request, order)
    return SearchResult(
        snapshot=snapshot,
        request=request,
        kind=running.kind,
        weights=running.weights,
        facts=running.facts,
        vectors=running.vectors,
        late=late,
        lanes=running.lanes,
        blocks=blocks,
        uses=builder.uses,
        fused=fused,
        is_reranked=is_reranked,
        late_scores=late_scores,
        order=order,
        best=best,
        grouped=grouped,
        cosines=bounds.cosines_of([*best, *chain(*grouped.values())], rankings),
    )


class _BlockBuilder:
    """Builds the blocks of a question's order until the requested page is full.

    - ``uses`` has the uses of the hits of all blocks, if the profile boosts used frames.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        running: RunningLanes,
        bounds: Bounds,
        *,
        is_reranked: bool,
    ) -> None:
        self.uses: dict[int, Use] = {}
        self._snapshot = snapshot
        self._request = request
        self._running = running
        self._bounds = bounds
        self._admitted = _admitted(snapshot, request)
        self._need = request.offset + request.k
        # A single lane has one order at any depth, unless a later step chooses among its hits.
        self._is_stable = not (request.profile.importance or request.group_by or request.is_bounded)
        self._first_count: int | None = None
        if self._is_stable and (self._need < LANE_HITS or len(running.lanes) == 1):
            self._first_count = max(self._need, RERANK_HITS if is_reranked else 0)

    def blocks(self) -> list[Block]:
        """Return the blocks, in order."""
        return blocks_of(
            self._block,
            self._is_enough,
            self._bounds.may_follow,
            first_depth=self._first_count or LANE_HITS,
            single_depth=self._need if self._is_stable else None,
        )

    def _block(self, depth: int) -> Block:
        profile = self._request.profile
        weights = self._running.weights
        rankings = _rankings(
            self._snapshot, self._request, self._running.lanes, self._admitted, depth
        )
        count = sum(len(ranking.ids) for ranking in rankings)
        if depth == self._first_count:
            # No later step selects among further hits of the first block.
            count = min(count, depth)
        fused = fuse(rankings, count, method=profile.method, weights=weights)
        if profile.importance:
            uses = uses_among(self._snapshot, [hit.id for hit in fused])
            self.uses.update(uses)
            factors = {frame: use.boost(profile.importance) for frame, use in uses.items()}
            fused = boosted(fused, factors)
        return Block(rankings, fused)

    def _is_enough(self, order: Sequence[Fused], rankings: Sequence[LaneRanking]) -> bool:
        hits = self._bounds.within(order, rankings)
        if len(hits) < self._need or self._request.group_by is None:
            return len(hits) >= self._need
        return len(documents_of(self._snapshot, hits)) >= self._need


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
