"""A lane over one space of a snapshot: the parts that vectors and token vectors share.

Owns the spaces of a snapshot, and the merge of pending vectors over the vectors of the log. Leaves
out the comparison of vectors (`vector_lane`, `late_lane`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Embedding, PutEmbedding, PutFrame, chosen, is_token_space
from cerata.projections.vectors.projection import key_of
from cerata.retrieval.ranking.fusion import LaneRanking

from .pages import LANE_HITS

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask
    from cerata.projections.vectors.columns import Key

    from ..snapshot.snapshot import Snapshot


class SpaceLane(ABC):
    """A question to one space of a snapshot."""

    name: ClassVar[str]
    """The name in profiles and results."""

    def __init__(self, snapshot: Snapshot, key: Key) -> None:
        self._snapshot = snapshot
        self.key = key

    def rank(self, k: int, among: Mask | None) -> LaneRanking:
        """Return the best ``k`` frames; as `Lane.rank`."""
        return self._best if among is None and k == LANE_HITS else self._ranked(k, among)

    @abstractmethod
    def _ranked(self, k: int, among: Mask | None) -> LaneRanking: ...

    @cached_property
    def _best(self) -> LaneRanking:
        """The best current frames; no filter changes them, and so none changes a score."""
        return self._ranked(LANE_HITS, None)

    @property
    def finds_any(self) -> bool:
        """True if the lane finds a current frame."""
        return len(self._best.ids) > 0

    @property
    def least(self) -> float:
        """The score of the last of the best current frames, at least 0.

        A frame without vectors, such as one that is not embedded yet, counts as the least near one
        of a list, so that its words decide.
        """
        return max(float(self._best.scores[-1]), 0.0) if self.finds_any else 0.0

    def candidates(self) -> Mask:
        """Return the rows that have a vector in the space, also of closed frames."""
        layers = self._snapshot.layers
        mask = layers.rank_mask(pending_vectors(self._snapshot, self.key))
        mask[: layers.base.rows] |= _rows_with(self._snapshot, self.key)
        return mask


def key_for(snapshot: Snapshot, dimension: int, space: str | None, *, tokens: bool) -> Key:
    """Return the space of a question's vectors; its name may be None if a single space fits.

    A named space without vectors at the basis has any dimension: the lane is then empty.

    Raises:
        InvalidInput: no space has the dimension, or several have.
        NotFound: no space is named, and there are no vectors.
    """
    noun = "token vectors" if tokens else "vectors"
    keys = keys_of(snapshot, tokens=tokens)
    named = [key for key in keys if space is None or key[0] == space]
    if not named:
        if space is not None:
            # The dtype matters to no vector, since the space has none.
            return space, "f4", dimension
        raise NotFound(
            f"There are no {noun}",
            where=f"basis {snapshot.basis:,}",
            remedy="Store frames with an embedding, or open the store with an embedder.",
        )
    fitting = [key for key in named if key[2] == dimension]
    if not fitting:
        has = ", ".join(f"{key[0]!r} {key[2]:,}" for key in named)
        raise InvalidInput(
            f"The question has {noun} of {dimension:,} dimensions; the spaces have {has}",
            remedy="Embed the question with the embedder of the space.",
        )
    several = dict.fromkeys(key[0] for key in fitting)
    if len(several) > 1:
        names = ", ".join(map(repr, several))
        raise InvalidInput(
            f"{len(several)} spaces have {noun} of {dimension:,} dimensions",
            remedy=f"Pass a name in cerata.Vectors({'tokens_' if tokens else ''}space=…): {names}.",
        )
    return fitting[0]


def key_of_frame(snapshot: Snapshot, frame: int, space: str | None, *, tokens: bool) -> Key | None:
    """Return the space in which a frame has vectors, or None; ``space`` names it among several.

    Raises:
        InvalidInput: the frame has vectors in several spaces, and ``space`` names no space.
    """
    keys = [
        key
        for key in keys_of(snapshot, tokens=tokens)
        if space in (None, key[0]) and _has_vector(snapshot, key, frame)
    ]
    several = dict.fromkeys(key[0] for key in keys)
    if len(several) > 1:
        names = ", ".join(map(repr, several))
        raise InvalidInput(
            f"Frame {frame:,} has vectors in {len(several)} spaces",
            remedy=f"Pass the name of a space: {names}.",
        )
    return next(iter(keys), None)


def _has_vector(snapshot: Snapshot, key: Key, frame: int) -> bool:
    if frame in pending_vectors(snapshot, key):
        return True
    space = snapshot.vectors.find(key, snapshot.basis)
    return space is not None and space.row_of(frame, snapshot.basis) is not None


def keys_of(snapshot: Snapshot, *, tokens: bool) -> list[Key]:
    """Return the spaces of vectors, or of token vectors, in a view: the log's, then the pending.

    Spaces of two tenants may have the same name and different shapes.
    """
    keys: dict[Key, None] = {}
    for space in snapshot.vectors.spaces(snapshot.basis):
        if is_token_space(space.key[0]) is tokens and _is_within(snapshot, space.key):
            keys[space.key] = None
    for _, embedding, _ in _pending_embeddings(snapshot) if snapshot.layers.drafts else ():
        if is_token_space(embedding.space) is tokens:
            keys[key_of(embedding)] = None
    return [*keys]


def _is_within(snapshot: Snapshot, key: Key) -> bool:
    """Return whether a frame within the view's scope has a vector in a space."""
    return snapshot.scope is None or bool(
        (_rows_with(snapshot, key) & snapshot.layers.base.visible).any()
    )


def _rows_with(snapshot: Snapshot, key: Key) -> Mask:
    """Return the rows of the log's layer that have a vector in a space."""
    base = snapshot.layers.base
    embedded = base.frames.embedded(base.n, key[0])
    space = snapshot.vectors.find(key, snapshot.basis)
    if space is None:
        return np.zeros_like(embedded)
    if sum(named.key[0] == key[0] for named in snapshot.vectors.spaces(snapshot.basis)) > 1:
        # Frames have the name alone, which two tenants may use for vectors of two shapes.
        embedded &= np.isin(base.frames.ids[: base.rows], space.frames.astype(np.int64))
    return embedded


def pending_vectors(snapshot: Snapshot, key: Key) -> dict[int, bytes]:
    """Return the last vector that is pending in a space, by frame."""
    if not snapshot.layers.drafts:
        return {}
    return {
        frame: data
        for frame, embedding, data in _pending_embeddings(snapshot)
        if key_of(embedding) == key
    }


def _pending_embeddings(snapshot: Snapshot) -> Iterator[tuple[int, Embedding, bytes]]:
    for place, draft in enumerate(snapshot.layers.drafts, start=1):
        body = draft.body
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            frame = body.frame if isinstance(body, PutEmbedding) else -place
            if snapshot.scope is not None and not snapshot.layers.has(frame):
                continue
            yield frame, embedding, chosen(draft.attachments, embedding.data, -place)
