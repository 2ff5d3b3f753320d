"""Late interaction: the lane "late", and the order of the best hits by their tokens.

Owns the token vectors of frames in a snapshot. Leaves out their comparison
(`cerata.projections.vectors.maxsim`).
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final, cast

import numpy as np

from cerata.projections.columnar.columns import Mask
from cerata.projections.vectors.columns import Key, matrix_of
from cerata.projections.vectors.maxsim import Tokens, maxsim, nearest_by_tokens, token_scores
from cerata.projections.vectors.nearest import Nearest
from cerata.projections.vectors.reader import Space
from cerata.replay.token_vector_store import StoredTokens

from ..snapshot.snapshot import Snapshot
from ..values.token_vectors import token_matrix
from ..values.vectors import Vectors
from .space_lane import SpaceLane, key_for, key_of_frame, pending_vectors

RERANKED: Final = "late (rerank)"
"""The name among a result's lanes if token vectors ordered the best hits."""


class LateLane(SpaceLane):
    """A question's token vectors and their space in a snapshot.

    Scores are MaxSim over 127²: for vectors of length 1 the sum of the best cosines. Cost of a
    search: the signs of all frames, and the token vectors of at most 16,384 frames.
    """

    name: ClassVar[str] = "late"

    def __init__(self, snapshot: Snapshot, tokens: Vectors, space: str | None) -> None:
        """``space`` may be None if a single space fits.

        Raises:
            InvalidInput: the token vectors are not valid, or not exactly one space fits them.
            NotFound: the space does not exist at the snapshot's basis.
        """
        self.tokens = token_matrix(tokens)
        super().__init__(snapshot, key_for(snapshot, self.tokens.shape[1], space, tokens=True))

    def _stored_space(self, space: Space) -> StoredTokens:
        return self._snapshot.stored_tokens(space)

    def _nearest(self, space: Space, allowed: Mask, k: int) -> Nearest:
        return nearest_by_tokens(
            space, allowed, self.tokens, k, partial(self._stored_space(space).rows, space)
        )

    def _scores(self, data: Sequence[bytes]) -> list[float]:
        return self._scored([_tokens_in(matrix, self.key) for matrix in data])

    def _scored(self, frames: Sequence[Tokens]) -> list[float]:
        scores: list[float] = token_scores(maxsim(frames, self.tokens)).tolist()
        return scores

    def scores_of(self, frames: Sequence[int]) -> dict[int, float]:
        """Return the scores of the frames that have token vectors in the space.

        Raises:
            Corrupt: the token vectors of a frame are damaged.
        """
        tokens = tokens_at(self._snapshot, self.key, frames)
        return dict(zip(tokens, self._scored([*tokens.values()]), strict=True))


def tokens_of(snapshot: Snapshot, frame: int, space: str | None) -> Tokens | None:
    """Return a frame's token vectors in a space, or None; ``space`` names it among several.

    Raises:
        InvalidInput: the frame has token vectors in several spaces, and ``space`` names no space.
    """
    key = key_of_frame(snapshot, frame, space, tokens=True)
    return None if key is None else tokens_at(snapshot, key, [frame]).get(frame)


def tokens_at(snapshot: Snapshot, key: Key, frames: Sequence[int]) -> dict[int, Tokens]:
    """Return the token vectors in a space of the frames that have any. Raises `Corrupt`."""
    pending = pending_vectors(snapshot, key)
    drafts = {frame: _tokens_in(pending[frame], key) for frame in frames if frame in pending}
    space = snapshot.vectors.find(key, snapshot.basis)
    if space is None:
        return drafts
    rows = {frame: space.row_of(frame, snapshot.basis) for frame in frames if frame not in drafts}
    embedded = {frame: row for frame, row in rows.items() if row is not None}
    stored = snapshot.stored_tokens(space).rows(space, np.array([*embedded.values()], np.int64))
    return {**drafts, **dict(zip(embedded, stored, strict=True))}


def _tokens_in(data: bytes, key: Key) -> Tokens:
    return cast("Tokens", matrix_of(data, key))
