"""Rankings: the lanes of a question over the rows that may be returned, each ranked once a depth.

Owns these rows, and the depth to which each lane is ranked. Leaves out the lanes (`lanes`) and the
fusion of their rankings (`search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cerata.projections.fulltext.query import loosened
from cerata.retrieval.ranking.fusion import (
    OF_FACTS,
    Fused,
    LaneRanking,
    Shares,
    candidates_of,
    fuse,
)

from ..snapshot.layers import both, end_to_end
from .pages import LANE_HITS

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask

    from ..snapshot.basis_columns import BasisColumns
    from ..snapshot.snapshot import Snapshot
    from .lanes import Lane, RunningLanes
    from .request import SearchRequest
    from .signals import Signals


class RankedLanes:
    """The rankings of a question; a lane that is ranked again at a depth costs nothing."""

    def __init__(self, snapshot: Snapshot, request: SearchRequest) -> None:
        self._snapshot = snapshot
        self._request = request
        self._kept: dict[tuple[int, int], LaneRanking] = {}
        # Keep the lanes: the id of a collected lane may be that of another.
        self._lanes: list[Lane] = []

    def rankings(self, lanes: Sequence[Lane], depth: int) -> list[LaneRanking]:
        """Return the rankings of the lanes that found frames, and that of the text in any case."""
        text: Lane | None = None
        rankings: list[LaneRanking] = []
        # Hits of a single lane are not fused, so more hits than the result's are not needed.
        fused_depth = depth if len(lanes) == 1 else max(depth, LANE_HITS)
        for lane in lanes:
            if lane.name == "text":
                text = lane
                continue
            ranking = self._rank(lane, fused_depth, self._passing)
            if len(ranking.ids):
                rankings.append(ranking)
        if text is None:
            return rankings
        if rankings:
            depth = max(depth, LANE_HITS)
        return [self._rank(text, depth, self._admitted), *rankings]

    def _rank(self, lane: Lane, depth: int, among: Mask | None) -> LaneRanking:
        key = id(lane), depth
        if key not in self._kept:
            self._lanes.append(lane)
            self._kept[key] = lane.rank(depth, among)
        return self._kept[key]

    @cached_property
    def _admitted(self) -> Mask | None:
        """The rows that may be returned; None if all that the ranking counts may be."""
        request = self._request
        layers = self._snapshot.layers
        closed = request.include_superseded or request.include_deleted
        usual = request.where is None and not closed
        usual = usual and (request.is_plain or not request.seeks_all_kinds)
        if usual and layers.expired is None:
            return None
        admitted = layers.admitted(
            request.where,
            include_superseded=request.include_superseded,
            include_deleted=request.include_deleted,
        )
        return end_to_end(both(admitted, request.searched_in(layers)))

    @cached_property
    def _passing(self) -> Mask | None:
        """The admitted rows that the query admits in lanes that do not search words.

        A query of the full language admits rows by its filters and NOTs; a question admits all.
        """
        request = self._request
        admitted = self._admitted
        if request.is_plain:
            return admitted
        layers = self._snapshot.layers
        passing = layers.ranking.passing(loosened(request.tree), layers.mask_of)
        if passing is None:
            return admitted
        return passing & (layers.sought if admitted is None else admitted)


# --- The fusion of a question: its lanes and signals as one score of each candidate ---------------


@dataclass(frozen=True)
class Fusion:
    """The sum of the lanes and the signals of a question (`cerata.retrieval.ranking.fusion`)."""

    request: SearchRequest
    columns: BasisColumns
    running: RunningLanes
    signals: Signals | None
    ranked: RankedLanes

    def rankings(self, depth: int) -> list[LaneRanking]:
        """Return the rankings of the lanes that found frames, and that of the text in any case."""
        return self.ranked.rankings(self.running.lanes, depth)

    def fused(self, rankings: Sequence[LaneRanking], count: int) -> list[Fused]:
        """Return the best candidates of rankings by the sum of their parts."""
        ids = candidates_of(rankings)
        rows = self.columns.rows_of(ids)
        shares: dict[str, Shares] = {}
        for lane in self.running.lanes:
            shares[lane.name] = lane.shares(ids, rows)
        added = np.zeros(len(ids))
        if self.signals is not None:
            added = self.running.step * self.signals.sums(ids, rows)
        return fuse(ids, shares, self.weights, added, count)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The part of a score that each lane adds for a share of 1."""
        weights = dict(self.running.weights)
        for name in OF_FACTS.intersection(weights):
            weights[name] *= self.running.step
        return weights
