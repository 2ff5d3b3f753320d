"""The vectors lane: the frames whose vectors are nearest to a question's.

Owns the checks of a question's vector. Leaves out the search for the nearest vectors
(`cerata.projections.vectors.nearest`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.projections.vectors.columns import Matrix, matrix_of
from cerata.projections.vectors.nearest import (
    ALL_ROWS_MAX,
    Metric,
    Nearest,
    Propose,
    QueryVector,
    exact_scores,
    lengths_of,
    nearest,
)
from cerata.projections.vectors.vector_window import around, means
from cerata.retrieval.embedders.identity import metric_of
from cerata.retrieval.ranking.feedback import moved
from cerata.retrieval.ranking.fusion import LaneRanking

from ..values.vectors import Vector, numbers_of
from .space_lane import SpaceLane, key_for, key_of_frame, pending_vectors
from .vector_rows import VectorRows

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64, I64, Mask
    from cerata.projections.columnar.turn_order import TurnOrder
    from cerata.projections.vectors.reader import Space
    from cerata.replay.vector_store import StoredVectors

    from ..snapshot.snapshot import Snapshot

APPROXIMATE: Final = "vectors (hnsw)"
"""The name of the lane in a result if a graph proposed the compared vectors."""


BEST_ALONE: Final = 128
"""Among many vectors, turns beside so many of the best (or of more results) are scored, too."""


class VectorLane(SpaceLane):
    """A question's vector and its space in a snapshot.

    Scores are cosines, or inner products if the space's metric is that. Cost of a search: the
    signs of all vectors, and the numbers of at most 2,048 vectors.

    With a window, the score of a turn is the mean of its score and those of the turns beside it
    (`cerata.projections.vectors.vector_window`).

    - ``feedback`` are the frames toward which the question's vector was moved (`toward`).
    """

    name: ClassVar[str] = "vectors"

    def __init__(
        self,
        snapshot: Snapshot,
        vector: Vector,
        space: str | None,
        *,
        approximate: bool = False,
        in_window: bool = False,
    ) -> None:
        """``vector`` has numbers of any dtype; ``space`` may be None if a single space fits.

        With ``approximate`` a graph proposes the vectors to compare. With ``in_window`` the vectors
        of neighbouring turns count for a turn.

        Raises:
            InvalidInput: the vector is not valid, no space has its dimension, or several have.
            NotFound: no space is named, and there are no vectors at the snapshot's basis.
        """
        self.query = _checked(vector)
        self.feedback: tuple[int, ...] = ()
        super().__init__(snapshot, key_for(snapshot, len(self.query), space, tokens=False))
        self.approximate = approximate
        # The rows that a ranking with a window compared, ascending, and their scores.
        self._compared: tuple[I64, F64] = np.empty(0, np.int64), np.empty(0)
        self._in_window = in_window
        self._metric: Metric = metric_of(self.key[0])

    @property
    def is_cosine(self) -> bool:
        """True if the lane orders by cosines."""
        return self._metric == "cosine"

    @property
    def has_cosines(self) -> bool:
        """True if the scores are cosines of the question itself."""
        return self.is_cosine and not self.feedback and self._order is None

    @property
    def _order(self) -> TurnOrder | None:
        return self._snapshot.layers.turns if self._in_window else None

    def alone(self) -> VectorLane:
        """Return the lane of the question in which each frame has its cosine."""
        return VectorLane(self._snapshot, self.query, self.key[0], approximate=self.approximate)

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames; as `SpaceLane.rank`."""
        order = self._order
        if order is None:
            return super().rank(k, among)
        layers = self._snapshot.layers
        among = layers.sought if among is None else among
        vectors = VectorRows(self._snapshot, self.key)
        targets = np.flatnonzero(among & vectors.has)
        if len(targets) > max(ALL_ROWS_MAX, k):
            # Among many, the turns beside the best are the only further candidates.
            best = super().rank(max(k, BEST_ALONE), among)
            near = around(order, np.sort(layers.rows_at(np.asarray(best.ids, np.int64))))
            targets = np.flatnonzero(near & among & vectors.has)
        sources = np.flatnonzero(around(order, targets) & vectors.has)
        if not len(targets):
            return LaneRanking(self.name, np.empty(0, np.int64), np.empty(0))
        alone = self._scores_of(*vectors.read(sources))
        self._compared = sources, alone
        scores = means(targets, sources, alone, order)
        # Rows are in order of age, which decides ties.
        first = np.argsort(-scores, kind="stable")[:k]
        return LaneRanking(self.name, layers.ids_at(targets[first]), scores[first])

    def beside(self, frame: int) -> tuple[int, ...]:
        """Return the turns beside a frame whose vectors count for it, in order of age."""
        order = self._order
        layers = self._snapshot.layers
        row = layers.rank_row(frame)
        if order is None or row is None:
            return ()
        near = around(order, np.array([row])) & VectorRows(self._snapshot, self.key).has
        near[row] = False
        return tuple(layers.ids_at(np.flatnonzero(near)).tolist())

    def _scores_of(self, vectors: Matrix, lengths: F64) -> F64:
        return exact_scores(vectors, lengths, self.query, self._metric)

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

        The scores that this lane computed are not computed again. Rounded to 9 digits.

        Raises:
            Corrupt: the vector of a frame is damaged.
        """
        cosines: dict[int, float] = {}
        for ranking in rankings:
            if ranking.name == self.name and self.has_cosines:
                ids = np.asarray(ranking.ids, np.int64).tolist()
                wanted = set(frames)
                cosines = {
                    frame: float(score)
                    for frame, score in zip(ids, ranking.scores, strict=True)
                    if frame in wanted
                }
        cosines |= self._compared_cosines([frame for frame in frames if frame not in cosines])
        cosines |= self._cosines([frame for frame in frames if frame not in cosines])
        return {frame: round(cosine, SCORE_DECIMALS) for frame, cosine in cosines.items()}

    def _compared_cosines(self, frames: Sequence[int]) -> dict[int, float]:
        """Return the cosines of frames that a ranking with a window compared."""
        compared, scores = self._compared
        if not (self.is_cosine and len(compared) and frames):
            return {}
        rows = self._snapshot.layers.rows_at(np.array(frames, np.int64))
        at = np.minimum(compared.searchsorted(rows), len(compared) - 1)
        are_there = (compared[at] == rows).tolist()
        return {
            frame: score
            for frame, score, is_there in zip(frames, scores[at].tolist(), are_there, strict=True)
            if is_there
        }

    def _cosines(self, frames: Sequence[int]) -> dict[int, float]:
        cosines: dict[int, float] = {}
        for part, vectors, lengths in self._vectors(frames):
            scores = exact_scores(vectors, lengths, self.query, "cosine").tolist()
            cosines |= zip(part, scores, strict=True)
        return cosines

    def _vectors(self, frames: Sequence[int]) -> Iterator[tuple[list[int], Matrix, F64]]:
        """Yield the frames with a vector in the space, their vectors and the `lengths_of` these."""
        snapshot = self._snapshot
        pending = pending_vectors(snapshot, self.key)
        drafts = [frame for frame in frames if frame in pending]
        if drafts:
            matrix = matrix_of(b"".join(pending[frame] for frame in drafts), self.key)
            yield drafts, matrix, lengths_of(matrix)
        space = snapshot.vectors.find(self.key, snapshot.basis)
        if space is None:
            return
        rows = {
            row: frame
            for frame in frames
            if frame not in pending and (row := space.row_of(frame, snapshot.basis)) is not None
        }
        if rows:
            ascending = sorted(rows)
            stored = self._stored_space(space).rows(space, np.array(ascending, np.int64))
            yield [rows[row] for row in ascending], *stored

    def toward(self, frames: Sequence[int]) -> VectorLane:
        """Return the lane of the question moved toward the vectors of frames.

        The lane itself if none of the frames has a vector in the space.

        Raises:
            Corrupt: the vector of a frame is damaged.
        """
        vectors: dict[int, Matrix] = {}
        for part, matrix, _ in self._vectors(frames):
            vectors |= zip(part, matrix, strict=True)
        feedback = tuple(frame for frame in frames if frame in vectors)
        query = moved(self.query, [vectors[frame] for frame in feedback])
        if query is None:
            return self
        lane = VectorLane(
            self._snapshot,
            query,
            self.key[0],
            approximate=self.approximate,
            in_window=self._in_window,
        )
        lane.feedback = feedback
        return lane

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
