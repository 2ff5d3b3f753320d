"""The fusion of a question: its lanes and signals as one score of each candidate.

Owns the sum for the lanes of a snapshot. Leaves out the formula
(`cerata.retrieval.ranking.fusion`), the lanes (`lanes`), the signals (`signals`) and the order of a
search (`search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cerata.retrieval.ranking.fusion import (
    OF_FACTS,
    Fused,
    LaneRanking,
    Shares,
    candidates_of,
    fuse,
)

if TYPE_CHECKING:
    from ..snapshot.basis_columns import BasisColumns
    from .lanes import RunningLanes
    from .rankings import RankedLanes
    from .request import SearchRequest
    from .signals import Signals


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
