"""The vectors of a snapshot's frames, by the row of the ranking.

Owns the join of the log's vectors with those of the drafts of a transaction. Leaves out the scores
(`vector_lane`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.projections.vectors.columns import Key, Matrix, matrix_of
from cerata.projections.vectors.nearest import lengths_of
from cerata.replay.vector_store import NO_VECTOR

from .space_lane import pending_vectors

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64, I64, Mask

    from ..snapshot.snapshot import Snapshot


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
