"""The vectors lane: the frames whose vectors are nearest to a question's.

Owns the checks of a question's vector. Leaves out the search for the nearest vectors
(`cerata.projections.vectors.nearest`).
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.columns import Mask
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.projections.vectors.columns import Matrix, matrix_of
from cerata.projections.vectors.nearest import (
    Metric,
    Nearest,
    Propose,
    QueryVector,
    exact_scores,
    lengths_of,
    nearest,
)
from cerata.projections.vectors.reader import Space
from cerata.replay.vector_store import StoredVectors
from cerata.retrieval.embedders.identity import metric_of
from cerata.retrieval.ranking.fusion import LaneRanking

from ..snapshot.snapshot import Snapshot
from ..values.vectors import Vector, numbers_of
from .space_lane import SpaceLane, key_for, key_of_frame, pending_vectors

APPROXIMATE: Final = "vectors (hnsw)"
"""The name of the lane in a result if a graph proposed the compared vectors."""


class VectorLane(SpaceLane):
    """A question's vector and its space in a snapshot.

    Scores are cosines, or inner products if the space's metric is that. Cost of a search: the
    signs of all vectors, and the numbers of at most 8,192 vectors.
    """

    name: ClassVar[str] = "vectors"

    def __init__(
        self, snapshot: Snapshot, vector: Vector, space: str | None, *, approximate: bool = False
    ) -> None:
        """``vector`` has numbers of any dtype; ``space`` may be None if a single space fits.

        With ``approximate`` a graph proposes the vectors to compare.

        Raises:
            InvalidInput: the vector is not valid, no space has its dimension, or several have.
            NotFound: the space does not exist at the snapshot's basis.
        """
        self.query = _checked(vector)
        super().__init__(snapshot, key_for(snapshot, len(self.query), space, tokens=False))
        self.approximate = approximate
        self._metric: Metric = metric_of(self.key[0])

    @property
    def is_cosine(self) -> bool:
        """True if the lane orders by cosines."""
        return self._metric == "cosine"

    def _stored_space(self, space: Space) -> StoredVectors:
        return self._snapshot.stored_vectors(space)

    def _nearest(self, space: Space, allowed: Mask, k: int) -> Nearest:
        stored = self._stored_space(space)
        metric = self._metric
        fetch = partial(stored.rows, space)
        propose: Propose | None = None
        if self.approximate:
            propose = partial(stored.graph(metric).proposed, space, lambda rows: fetch(rows)[0])
        return nearest(space, allowed, self.query, k, metric, fetch, propose)

    def cosines_of(
        self, frames: Sequence[int], rankings: Sequence[LaneRanking]
    ) -> dict[int, float]:
        """Return the cosines of the question and the frames that have a vector in the space.

        The scores of this lane's ranking are not computed again. Rounded to 9 digits.

        Raises:
            Corrupt: the vector of a frame is damaged.
        """
        cosines: dict[int, float] = {}
        for ranking in rankings:
            if ranking.name == self.name and self.is_cosine:
                ids = np.asarray(ranking.ids, np.int64).tolist()
                wanted = set(frames)
                cosines = {
                    frame: float(score)
                    for frame, score in zip(ids, ranking.scores, strict=True)
                    if frame in wanted
                }
        cosines |= self._cosines([frame for frame in frames if frame not in cosines])
        return {frame: round(cosine, SCORE_DECIMALS) for frame, cosine in cosines.items()}

    def _cosines(self, frames: Sequence[int]) -> dict[int, float]:
        snapshot = self._snapshot
        pending = pending_vectors(snapshot, self.key)
        drafts = [frame for frame in frames if frame in pending]
        found: dict[int, float] = {}
        if drafts:
            matrix = matrix_of(b"".join(pending[frame] for frame in drafts), self.key)
            scores = exact_scores(matrix, lengths_of(matrix), self.query, "cosine").tolist()
            found = dict(zip(drafts, scores, strict=True))
        space = snapshot.vectors.find(self.key, snapshot.basis)
        if space is None:
            return found
        rows = {
            row: frame
            for frame in frames
            if frame not in found and (row := space.row_of(frame, snapshot.basis)) is not None
        }
        if rows:
            ascending = sorted(rows)
            stored = self._stored_space(space).rows(space, np.array(ascending, np.int64))
            scores = exact_scores(*stored, self.query, "cosine").tolist()
            found |= zip([rows[row] for row in ascending], scores, strict=True)
        return found

    def _scores(self, data: Sequence[bytes]) -> list[float]:
        matrix = matrix_of(b"".join(data), self.key)
        scores: list[float] = exact_scores(
            matrix, lengths_of(matrix), self.query, self._metric
        ).tolist()
        return scores


def vector_of(snapshot: Snapshot, frame: int, space: str | None) -> Matrix | None:
    """Return a frame's vector in a space, or None; ``space`` names the space among several.

    Raises:
        InvalidInput: the frame has vectors in several spaces, and ``space`` names no space.
    """
    key = key_of_frame(snapshot, frame, space, tokens=False)
    if key is None:
        return None
    data = pending_vectors(snapshot, key).get(frame)
    if data is not None:
        vector: Matrix = matrix_of(data, key)[0]
        return vector
    space_of_key = snapshot.vectors.find(key, snapshot.basis)
    row = None if space_of_key is None else space_of_key.row_of(frame, snapshot.basis)
    if space_of_key is None or row is None:
        return None
    return snapshot.stored_vectors(space_of_key).vector(space_of_key, row)


def _checked(vector: Vector) -> QueryVector:
    """Return a query as float32. Raises `InvalidInput`."""
    numbers = numbers_of(vector).astype(np.float32)
    if numbers.ndim != 1 or not len(numbers):
        raise InvalidInput(f"A vector cannot have the shape {numbers.shape}", remedy=_REMEDY)
    if not np.isfinite(numbers).all():
        raise InvalidInput("The vector has a number that is not finite", remedy=_REMEDY)
    return numbers


_REMEDY = "Give the query's embedding: finite numbers, one for each dimension."
