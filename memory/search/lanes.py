"""Lanes: the ways in which a search ranks the frames of a snapshot for a question.

Owns the protocol, and the lanes "text" and "facts". Leaves out the lanes of vectors (`vector_lane`,
`late_lane`), ranking by words (`cerata.projections.fulltext.bm25`) and the choice of facts
(`facts.search`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cerata.projections.columnar.columns import Mask
from cerata.projections.fulltext.query import Query
from cerata.retrieval.ranking.fusion import LaneRanking

from ..facts.search import FactHit, scored_frames
from ..snapshot.snapshot import Snapshot


class Lane(Protocol):
    """A question to one index of a snapshot.

    Masks are over the rows of the snapshot's layers, end to end.
    """

    @property
    def name(self) -> str:
        """The name in profiles and results."""
        ...

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames among the rows of a mask, by default the current rows."""
        ...

    def candidates(self) -> Mask:
        """Return the rows that the lane chooses from, also of closed frames, without a filter."""
        ...


@dataclass(frozen=True, slots=True)
class TextLane:
    """The frames that match a query, by their words."""

    snapshot: Snapshot
    query: Query
    name: str = "text"

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames."""
        layers = self.snapshot.layers
        ranked = layers.ranking.search(self.query, k=k, among=among, filters=layers.mask_of)
        return LaneRanking(self.name, layers.ids_at(ranked.rows), ranked.scores)

    def candidates(self) -> Mask:
        """Return the rows that match the query."""
        layers = self.snapshot.layers
        return layers.ranking.found(self.query, layers.mask_of)


@dataclass(frozen=True, slots=True)
class FactsLane:
    """The frames in which facts of the entities that a question names were read."""

    snapshot: Snapshot
    facts: Sequence[FactHit]
    name: str = "facts"

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return all frames; the facts are few."""
        layers = self.snapshot.layers
        scores = scored_frames(self.facts)
        if scores:
            admitted = layers.among([*scores], layers.sought if among is None else among)
            scores = {frame: scores[frame] for frame in admitted}
        return LaneRanking(self.name, [*scores], [*scores.values()])

    def candidates(self) -> Mask:
        """Return the rows of the frames."""
        return self.snapshot.layers.rank_mask(scored_frames(self.facts))
