"""The vectors lane: the frames whose vectors are nearest to a question's.

Owns the checks of a question's vector. Leaves out the search for the nearest vectors
(`cerata.projections.vectors.nearest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.projections.vectors.columns import Key, Matrix, matrix_of
from cerata.projections.vectors.nearest import (
    ALL_ROWS_MAX,
    Metric,
    Nearest,
    Propose,
    QueryVector,
    around,
    exact_scores,
    lengths_of,
    means,
    nearest,
)
from cerata.replay.vector_store import NO_VECTOR
from cerata.retrieval.embedders.identity import metric_of
from cerata.retrieval.ranking.fusion import LaneRanking, Shares

from ..values.vectors import Vector, numbers_of
from .space_lane import SpaceLane, key_for, key_of_frame, pending_vectors

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64, I64, Mask
    from cerata.projections.columnar.turn_order import TurnOrder
    from cerata.projections.vectors.reader import Space

    from ..snapshot.snapshot import Snapshot


APPROXIMATE: Final = "vectors (hnsw)"
"""The name of the lane in a result if a graph proposed the compared vectors."""


BEST_ALONE: Final = 128
"""Among many vectors, turns beside so many of the best (or of more results) are scored, too."""


class VectorLane(SpaceLane):
    """A question's vector and its space in a snapshot.

    Scores are cosines, of a turn the mean of its cosine and those of the turns beside it
    (`cerata.projections.vectors.nearest`). With ``is_alone``, for a search by vectors alone,
    a score is the frame's own, and inner products if the space's metric is that. Cost of a search:
    the signs of all vectors, and the numbers of at most 2,048 vectors.
    """

    name: ClassVar[str] = "vectors"

    def __init__(
        self,
        snapshot: Snapshot,
        vector: Vector,
        space: str | None,
        *,
        approximate: bool = False,
        is_alone: bool = False,
    ) -> None:
        """``vector`` has numbers of any dtype; ``space`` may be None if a single space fits.

        With ``approximate`` a graph proposes the vectors to compare.

        Raises:
            InvalidInput: the vector is not valid, no space has its dimension, or several have.
            NotFound: no space is named, and there are no vectors at the snapshot's basis.
        """
        self.query = _checked(vector)
        super().__init__(snapshot, key_for(snapshot, len(self.query), space, tokens=False))
        self.approximate = approximate
        self._is_alone = is_alone
        # The rows that were compared, ascending, and their scores.
        self._compared: tuple[I64, F64] = np.empty(0, np.int64), np.empty(0)
        self._metric: Metric = metric_of(self.key[0]) if is_alone else "cosine"

    @property
    def is_cosine(self) -> bool:
        """True if the lane orders by cosines."""
        return self._metric == "cosine"

    @property
    def has_cosines(self) -> bool:
        """True if the scores are cosines of the question itself."""
        return self.is_cosine and self._order is None

    @property
    def _order(self) -> TurnOrder | None:
        return None if self._is_alone else self._snapshot.layers.turns

    @cached_property
    def _rows(self) -> VectorRows:
        return vector_rows(self._snapshot, self.key)

    @property
    def finds_any(self) -> bool:
        # Each current frame with a vector is found: no ranking is needed.
        return self._rows.has_any(self._snapshot.layers.sought)

    def alone(self) -> VectorLane:
        """Return the lane of the question in which each frame has its own score."""
        return VectorLane(
            self._snapshot,
            self.query,
            self.key[0],
            approximate=self.approximate,
            is_alone=True,
        )

    def _ranked(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames among the rows of a mask; ties go to the older frame.

        Raises:
            Corrupt: a vector is damaged.
        """
        order = self._order
        if order is None:
            return self._ranked_alone(k, among)
        layers = self._snapshot.layers
        among = layers.sought if among is None else among
        targets = np.flatnonzero(among & self._rows.has)
        if len(targets) > max(ALL_ROWS_MAX, k):
            # Among many, the turns beside the best are the only further candidates.
            best = self._ranked_alone(max(k, BEST_ALONE), among)
            near = around(order, np.sort(layers.rows_at(np.asarray(best.ids, np.int64))))
            targets = np.flatnonzero(near & among & self._rows.has)
        scores = self._scores_at(targets)
        # Rows are in order of age, which decides ties.
        first = np.argsort(-scores, kind="stable")[:k]
        return LaneRanking(self.name, layers.ids_at(targets[first]), scores[first])

    def _ranked_alone(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames by their own scores; ties go to the older frame."""
        layers = self._snapshot.layers
        if among is None:
            among = layers.sought
        pending = pending_vectors(self._snapshot, self.key)
        logged = among if len(layers.all) == 1 else among[: layers.base.rows]
        best = self._stored(k, logged, [*pending])
        if pending:
            frames = layers.among([*pending], among)
            hits = [*zip(frames, self._scores([pending[frame] for frame in frames]), strict=True)]
            stored = np.asarray(best.ids).tolist(), np.asarray(best.scores).tolist()
            hits += zip(*stored, strict=True)
            hits.sort(key=lambda item: (-item[1], layers.moment(item[0])))
            del hits[k:]
            best = LaneRanking(self.name, [hit[0] for hit in hits], [hit[1] for hit in hits])
        # The shares of these frames are asked for next.
        self._keep(layers.rows_at(np.asarray(best.ids, np.int64)), np.asarray(best.scores))
        return best

    def _stored(self, k: int, mask: Mask, replaced: Sequence[int]) -> LaneRanking:
        """Return the best of the log, without frames whose vectors are ``replaced`` by drafts."""
        snapshot = self._snapshot
        space = self._rows.space
        if space is None:
            return LaneRanking(self.name, np.empty(0, np.int64), np.empty(0))
        base = snapshot.layers.base
        rows = [row for frame in replaced if frame > 0 and (row := base.row_of(frame)) is not None]
        if rows:
            mask = mask.copy()
            mask[rows] = False
        allowed = self._rows.stored.of_frames(space, base.frames, mask, snapshot.basis)
        best = self._nearest(space, allowed, k)
        return LaneRanking(self.name, space.frames[best.rows].astype(np.int64), best.scores)

    def scores(self, rows: I64) -> F64:
        """Return the score of the frame of each row, (frames,); NaN for one without a vector."""
        scores = np.full(len(rows), np.nan)
        at = np.flatnonzero(self._rows.has[rows])
        scores[at] = self._scores_at(rows[at])
        return scores

    def shares(self, ids: I64, rows: I64) -> Shares:
        """Return the share of each frame; that of the least near one of a list without a vector."""
        scores = self.scores(rows)
        lack = np.isnan(scores)
        if lack.any():
            scores[lack] = self.least
        return Shares(scores if self._is_alone else np.maximum(scores, 0.0), ~lack)

    def score_of(self, frame: int) -> float | None:
        """Return the score of a frame, or None without a vector."""
        rows = self._snapshot.layers.columns.rows_of(np.array([frame]))
        score = float(self.scores(rows)[0])
        return None if np.isnan(score) else score

    def _scores_at(self, rows: I64) -> F64:
        """Return the scores of rows with a vector, (n,)."""
        order = self._order
        if not len(rows):
            return np.empty(0)
        if order is None:
            sources = np.sort(rows)
            return self._own_scores(sources)[sources.searchsorted(rows)]
        sources = np.flatnonzero(around(order, rows) & self._rows.has)
        parts = self._snapshot.layers.ranking.turn_parts
        return means(rows, sources, self._own_scores(sources), order, parts)

    def _own_scores(self, rows: I64) -> F64:
        """Return the scores of rows without the turns beside them; rows ascend."""
        new = rows[self._are_new(rows)]
        if len(new):
            self._keep(new, exact_scores(*self._rows.read(new), self.query, self._metric))
        known, scores = self._compared
        return scores[known.searchsorted(rows)]

    def _are_new(self, rows: I64) -> Mask:
        known, _ = self._compared
        if not len(known):
            return np.ones(len(rows), np.bool_)
        are_new: Mask = known[np.minimum(known.searchsorted(rows), len(known) - 1)] != rows
        return are_new

    def _keep(self, rows: I64, scores: F64) -> None:
        """Keep the scores of rows, in any order; those of a row are equal each time."""
        are_new = self._are_new(rows)
        all_rows = np.concatenate([self._compared[0], rows[are_new]])
        order = np.argsort(all_rows)
        all_scores = np.concatenate([self._compared[1], scores[are_new]])
        self._compared = all_rows[order], all_scores[order]

    def beside(self, frame: int) -> tuple[int, ...]:
        """Return the turns beside a frame whose vectors count for it, in order of age."""
        order = self._order
        layers = self._snapshot.layers
        row = layers.rank_row(frame)
        if order is None or row is None:
            return ()
        near = around(order, np.array([row])) & self._rows.has
        near[row] = False
        return tuple(layers.ids_at(np.flatnonzero(near)).tolist())

    def _nearest(self, space: Space, allowed: Mask, k: int) -> Nearest:
        stored = self._rows.stored
        metric = self._metric
        fetch = partial(stored.rows, space)
        propose: Propose | None = None
        if self.approximate:
            propose = partial(stored.graph(metric).proposed, space, lambda rows: fetch(rows)[0])
        return nearest(space, allowed, self.query, k, metric, fetch, propose)

    def cosines_of(self, frames: Sequence[int]) -> dict[int, float]:
        """Return the cosines of the question and the frames that have a vector in the space.

        Rounded to 9 digits.

        Raises:
            Corrupt: the vector of a frame is damaged.
        """
        if not frames:
            return {}
        rows = self._snapshot.layers.rows_at(np.array(frames, np.int64))
        embedded = self._rows.has[rows]
        ascending = np.unique(rows[embedded])
        if self.is_cosine:
            scores = self._own_scores(ascending)
        else:
            scores = exact_scores(*self._rows.read(ascending), self.query, "cosine")
        cosines = scores[ascending.searchsorted(rows[embedded])].round(SCORE_DECIMALS).tolist()
        return dict(zip(compress(frames, embedded.tolist()), cosines, strict=True))

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


# --- The vectors of a snapshot's frames, by the row of the ranking --------------------------------


def vector_rows(snapshot: Snapshot, key: Key) -> VectorRows:
    """Return the vectors in a space, which all questions to a state share."""
    prepared = snapshot.layers.columns.prepared
    # A state that lacks vectors is that of one search; an open transaction has a basis of its own.
    rows: VectorRows | None = prepared.get(key) if snapshot.has_all_vectors else None
    if rows is None:
        rows = VectorRows(snapshot, key)
        if snapshot.has_all_vectors:
            prepared[key] = rows
    elif rows.space is not None:
        # The store of the numbers has a cache of its own, which may have been dropped.
        rows.stored = snapshot.stored_vectors(rows.space)
    return rows


class VectorRows:
    """The vectors in a space; rows are those of the snapshot's layers, end to end."""

    def __init__(self, snapshot: Snapshot, key: Key) -> None:
        layers = snapshot.layers
        base = layers.base
        self._key = key
        self._drafts: Final[dict[int, bytes]] = {
            row: data
            for frame, data in pending_vectors(snapshot, key).items()
            if (row := layers.rank_row(frame)) is not None
        }
        self.space: Final = snapshot.vectors.find(key, snapshot.basis)
        """The vectors of the log; None without any."""
        by_row = np.full(base.rows, NO_VECTOR)
        if self.space is not None:
            self.stored = snapshot.stored_vectors(self.space)
            """The numbers of the log's vectors, if there are any."""
            by_row = self.stored.by_frame_row(self.space, base.frames, base.rows, base.n)
        lacking = [np.full(layer.rows, NO_VECTOR) for layer in layers.all[1:]]
        self._by_row = np.concatenate([by_row, *lacking]) if lacking else by_row
        has = self._by_row != NO_VECTOR
        has[[*self._drafts]] = True
        self.has: Final = has
        """The rows with a vector."""
        self._last_mask: tuple[Mask | None, bool] = None, False

    def has_any(self, mask: Mask) -> bool:
        """Return whether a row of a read-only mask has a vector; the last answer is kept."""
        last, has_any = self._last_mask
        if last is not mask:
            has_any = bool((self.has & mask).any())
            self._last_mask = mask, has_any
        return has_any

    def read(self, rows: I64) -> tuple[Matrix, F64]:
        """Return the vectors of rows that have them, (n, dimension), and their lengths, (n,).

        Raises:
            Corrupt: a vector is damaged.
        """
        if not self._drafts:
            return self._of_log(rows)
        matrix = np.empty((len(rows), self._key[2]), matrix_of(b"", self._key).dtype)
        lengths = np.empty(len(rows))
        is_draft = np.isin(rows, [*self._drafts])
        stored = np.flatnonzero(~is_draft)
        matrix[stored], lengths[stored] = self._of_log(rows[stored])
        for place in np.flatnonzero(is_draft).tolist():
            vector = matrix_of(self._drafts[int(rows[place])], self._key)
            matrix[place], lengths[place] = vector[0], lengths_of(vector)[0]
        return matrix, lengths

    def _of_log(self, rows: I64) -> tuple[Matrix, F64]:
        """Return the same of rows that have their vectors in the log; read-only if not copied."""
        if self.space is None:
            return matrix_of(b"", self._key), np.empty(0)
        of_space = self._by_row[rows]
        if bool((of_space[1:] > of_space[:-1]).all()):
            return self.stored.rows(self.space, of_space)
        # The store reads rows that ascend: a later event may have embedded an older frame.
        order = np.argsort(of_space)
        vectors, lengths = self.stored.rows(self.space, of_space[order])
        places = np.argsort(order)
        return vectors[places], lengths[places]
