"""The token vectors of a snapshot's frames, by the row of the ranking.

Owns the join of the log's token vectors with those of the drafts of a transaction. Leaves out the
scores (`late_lane`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from cerata.projections.vectors.columns import Key, matrix_of
from cerata.projections.vectors.maxsim import Tokens, token_candidates
from cerata.replay.vector_store import NO_VECTOR

from .space_lane import pending_vectors

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import I32, I64

    from ..snapshot.snapshot import Snapshot


class TokenRows:
    """The token vectors in a space; rows are those of the snapshot's layers, end to end."""

    def __init__(self, snapshot: Snapshot, key: Key) -> None:
        layers = snapshot.layers
        base = layers.base
        pending = pending_vectors(snapshot, key)
        self._drafts: Final[dict[int, Tokens]] = {
            row: cast("Tokens", matrix_of(data, key))
            for frame, data in pending.items()
            if (row := layers.rank_row(frame)) is not None
        }
        self._space = snapshot.vectors.find(key, snapshot.basis)
        self._by_row = np.full(base.rows, NO_VECTOR)
        if self._space is not None:
            self._stored = snapshot.stored_tokens(self._space)
            self._by_row = self._stored.by_frame_row(self._space, base.frames, base.rows, base.n)
        self._is_draft = np.zeros(sum(layer.rows for layer in layers.all), np.bool_)
        self._is_draft[[*self._drafts]] = True
        has = self._is_draft.copy()
        has[: base.rows] |= self._by_row != NO_VECTOR
        self.has: Final = has
        """The rows with token vectors."""

    def read(self, rows: I64) -> Iterator[Tokens]:
        """Return the token vectors of rows that have them, in order. Raises `Corrupt`."""
        drafts = self._drafts
        if not drafts:
            return self._stored_rows(rows)
        stored = self._stored_rows(rows[~self._is_draft[rows]])
        return (drafts[row] if row in drafts else next(stored) for row in rows.tolist())

    def _stored_rows(self, rows: I64) -> Iterator[Tokens]:
        if self._space is None or not len(rows):
            return iter(())
        return self._stored.rows(self._space, self._by_row[rows])

    def candidates(self, rows: I64, pooled: I32, k: int) -> I64:
        """Return the rows to compare, ascending: by their signs, and those of drafts in any case.

        Args:
            rows: Rows with token vectors, ascending; (n,).
            pooled: The sum of the question's token vectors; (dimension,).
            k: The number of results.
        """
        space = self._space
        if space is None:
            return rows
        is_stored = ~self._is_draft[rows]
        stored = rows[is_stored]
        of_space = self._by_row[stored]
        # A mask, since a sort of many rows takes longer than their comparison.
        is_asked = np.zeros(len(space.seqs), np.bool_)
        is_asked[of_space] = True
        chosen = token_candidates(space, np.flatnonzero(is_asked), pooled, k)
        is_chosen = np.zeros(len(space.seqs), np.bool_)
        is_chosen[chosen] = True
        is_kept = ~is_stored
        is_kept[is_stored] = is_chosen[of_space]
        return rows[is_kept]
