"""Searching: the steps from a request to its hits.

Owns the order of the steps, and the sum of the lanes and signals. Leaves out
the lanes (`lanes`, `vector_lane`, `late_lane`) and the rows that they rank (`rankings`), the fusion
of their rankings (`cerata.retrieval.ranking.fusion`), and the blocks (`pages`) and bounds
(`bounds`) of the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import once
from cerata.engine.late import late
from cerata.engine.unreadable import UnreadableVectors, leave_out
from cerata.projections.columnar.scopes import sees_same
from cerata.retrieval.ranking.fusion import (
    Fused,
    LaneRanking,
    boosted,
    reranked,
)

from ..values.frames import Hit
from .bounds import Bounds
from .lanes import running_lanes
from .pages import LANE_HITS, Block, blocks_of, groups_of
from .rankings import Fusion, RankedLanes
from .reranking import reranking_of
from .result import SearchResult
from .signals import signals_of

if TYPE_CHECKING:
    from cerata.retrieval.base_level_activation import Use

    from ..frames import access as accesses
    from ..snapshot.snapshot import Snapshot
    from .request import SearchRequest
    from .reranking import Reranking
else:
    accesses = late("cerata.memory.frames.access")


def run_search(snapshot: Snapshot, request: SearchRequest) -> SearchResult:
    """Return the result of a question: a pure function of the snapshot and the request.

    A vector that cannot be read is left out and named; its frame is found by its words.

    Raises:
        InvalidInput: the filter is no `Filter`, or a vector is not valid, or missing and needed.
        NotFound: no space is named, and there are no vectors.
        EmbedderFailed: the embedder could not embed the question.
        Unsupported: none of the profile's lanes can run.
    """
    while True:
        try:
            return _searched(snapshot, request)
        except UnreadableVectors as error:
            for seq in error.seqs:
                leave_out(f"The vector of event {seq:,}", error)
            snapshot = snapshot.without_vectors(error)


def _searched(snapshot: Snapshot, request: SearchRequest) -> SearchResult:
    running = running_lanes(snapshot, request)
    ranked = RankedLanes(snapshot, request)
    signals = signals_of(snapshot, request)
    fusion = Fusion(request, snapshot.layers.columns, running, signals, ranked)
    reranking = reranking_of(snapshot, request, running.late)
    return _result(snapshot, fusion, reranking, is_grouped=request.group_by == "document")


def _result(
    snapshot: Snapshot,
    fusion: Fusion,
    reranking: Reranking | None,
    rerank_scores: Mapping[int, float] | None = None,
    *,
    is_grouped: bool,
) -> SearchResult:
    """Return the result of which each place has a hit or, if it is grouped, a group of hits.

    ``rerank_scores`` are those of an earlier result.
    """
    request = fusion.request
    rerank_hits = 0 if reranking is None else reranking.hits

    # One order: that of the fused ranks, then of the uses, then of the reranking.
    bounds = Bounds(request, fusion)
    builder = _BlockBuilder(snapshot, fusion, bounds, rerank_hits, is_grouped=is_grouped)
    blocks = builder.blocks()
    fused = [*chain.from_iterable(map(itemgetter(1), blocks))]
    if rerank_scores is None:
        ids = [*map(itemgetter(0), fused[:rerank_hits])]
        rerank_scores = {} if reranking is None else reranking.scores_of(ids)
    order: Sequence[Fused] = reranked(fused, rerank_scores) if rerank_scores else fused
    if request.is_bounded:
        order = bounds.within(order)

    end = request.offset + request.k
    regrouped: _Regrouped | None = None
    if request.group_by == "content" and not is_grouped:
        # Hits to the page's end with different texts are the best of their groups. The further
        # hits of these, which few callers read, take another order, of at least 128 hits.
        regrouped = _Regrouped(snapshot, fusion, reranking, rerank_scores)
        if snapshot.layers.equal_contents([*map(itemgetter(0), order[:end])]):
            return regrouped()
    grouped: dict[int, Sequence[Fused]] = {}
    compared = best = order[request.offset : end]
    if is_grouped:
        groups = builder.groups(order)[request.offset : end]
        best = [hits[0] for hits in groups]
        grouped = {hits[0].id: hits[1:] for hits in groups}
        compared = [*chain(*groups)]
    return SearchResult(
        snapshot=snapshot,
        request=request,
        fusion=fusion,
        blocks=blocks,
        uses=builder.uses,
        fused=fused,
        reranking=reranking,
        rerank_scores=rerank_scores,
        order=order,
        best=best,
        grouped=grouped,
        regrouped=regrouped,
        cosines=bounds.cosines_of(compared) if "vectors" in fusion.running.weights else {},
    )


class _Regrouped(msgspec.Struct, frozen=True, dict=True):
    """The result of a search of which each place has a group of hits, made at the first call."""

    snapshot: Snapshot
    fusion: Fusion
    reranking: Reranking | None
    rerank_scores: Mapping[int, float]

    def __call__(self) -> SearchResult:
        return self._grouped

    @once
    def _grouped(self) -> SearchResult:
        # The model of a reranking would read the texts again.
        scores = self.rerank_scores
        return _result(self.snapshot, self.fusion, self.reranking, scores, is_grouped=True)


class _BlockBuilder:
    """Builds the blocks of a question's order until the requested page is full.

    - ``uses`` has the uses of the hits of all blocks, if the profile boosts used frames.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        fusion: Fusion,
        bounds: Bounds,
        rerank_hits: int,
        *,
        is_grouped: bool,
    ) -> None:
        self.uses: dict[int, Use] = {}
        self._seen: set[int] = set()
        self._snapshot = snapshot
        self._request = request = fusion.request
        self._fusion = fusion
        self._bounds = bounds
        self._need = request.offset + request.k
        self._is_grouped = is_grouped
        lanes = fusion.running.lanes
        # A single lane has one order at any depth, unless a later step chooses among its hits.
        selects = request.profile.importance or is_grouped or request.is_bounded
        self._is_stable = not (selects or fusion.signals is not None)
        shown = max(self._need, rerank_hits)
        # No later step selects among further hits of the first block.
        self._first_shown = None if selects else shown
        self._first_depth = LANE_HITS
        if self._is_stable and (self._need < LANE_HITS or len(lanes) == 1):
            self._first_depth = shown

    def blocks(self) -> list[Block]:
        """Return the blocks, in order."""
        return blocks_of(
            self._block,
            self._is_enough,
            self._may_follow,
            first_depth=self._first_depth,
            single_depth=self._need if self._is_stable else None,
        )

    def _block(self, depth: int) -> Block:
        profile = self._request.profile
        rankings = self._fusion.rankings(depth)
        count = 0
        for ranking in rankings:
            count += len(ranking.ids)
        if depth == self._first_depth and self._first_shown is not None:
            count = min(count, self._first_shown)
        fused = self._fusion.fused(rankings, count)
        if profile.importance:
            uses = accesses.uses_among(self._snapshot, [hit.id for hit in fused])
            self.uses.update(uses)
            factors = {frame: use.boost(profile.importance) for frame, use in uses.items()}
            fused = boosted(fused, factors)
        self._seen.update(map(itemgetter(0), fused))
        return Block(rankings, fused)

    def _may_follow(self, rankings: Sequence[LaneRanking], depth: int) -> bool:
        is_near_left = None if self._near is None else not self._near <= self._seen
        return self._bounds.may_follow(rankings, depth, is_near_left=is_near_left)

    @cached_property
    def _near(self) -> set[int] | None:
        """The frames with the least cosine, if the ranking by vectors has no cosines.

        None without a least cosine, and if the ranking has the cosines, or no lane has them.
        """
        least = self._request.min_cosine
        lane = self._fusion.running.compared
        if least is None or lane is None or not lane.is_cosine or lane.has_cosines:
            return None
        alone = lane.alone()
        depth = LANE_HITS
        while True:
            rankings = self._fusion.ranked.rankings([alone], depth)
            if not rankings:
                return set()
            ranking = rankings[-1]
            if len(ranking.ids) < depth or ranking.scores[-1] < least:
                near = np.asarray(ranking.scores) >= least
                return {*np.asarray(ranking.ids)[near].tolist()}
            depth *= 4

    def _is_enough(self, order: Sequence[Fused]) -> bool:
        hits = self._bounds.within(order) if self._request.is_bounded else order
        if len(hits) < self._need or not self._is_grouped:
            return len(hits) >= self._need
        return len(self.groups(hits)) >= self._need

    def groups(self, hits: Sequence[Fused]) -> list[list[Fused]]:
        """Return the groups of hits, in order of the best of each."""
        return groups_of(self._snapshot, hits, self._request.group_by)


def continued(
    snapshot: Snapshot, request: SearchRequest, after: Hit
) -> tuple[Snapshot, SearchRequest]:
    """Return the snapshot and the request of the page after a hit, with its scores.

    Raises:
        InvalidInput: the hit is of another memory, scope or question, or is a copy.
    """
    expect_type("after", after, Hit, "a Hit", "Pass the last hit of the page before.")
    result = after.made_by
    if (
        not isinstance(result, SearchResult)
        or request.offset
        or result.identity != snapshot.identity
        or not _may_continue(result.snapshot, snapshot)
        or not result.request.is_same_question(request)
    ):
        raise InvalidInput(
            "after is a hit of another question, scope, state or memory, or came with an offset",
            remedy="Repeat the search that found the hit, on the same store or view, except k.",
        )
    return result.snapshot, replace(
        request, offset=result.place_after(after), scores_before=result.rerank_scores
    )


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
