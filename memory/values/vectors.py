"""Embeddings of a batch: vectors as events store them, and spaces that do not mix.

A space has the vectors of one embedder: a single dtype and dimension. Owns the checks of a batch:
before the lock against the folded events, and under the lock against the events that other writers
appended since. Leaves out searching by vectors (`search.vector_lane`).
"""

from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    Attachment,
    Draft,
    Embedding,
    Erased,
    Event,
    EventBody,
    PutEmbedding,
    PutFrame,
    Scope,
    is_token_space,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX
from cerata.engine.log import Log
from cerata.projections.frames.reader import Frames
from cerata.retrieval.embedders.identity import parse_space

from .arguments import realm

Vector: TypeAlias = Sequence[float] | npt.NDArray[Any]
Vectors: TypeAlias = Sequence[Vector] | npt.NDArray[Any]
Shape: TypeAlias = tuple[str, int]
"""The dtype and dimension of all vectors of a space."""
SpaceName: TypeAlias = tuple[str, str]
"""A space: the realm of its frames, and its name; two tenants may use the same name."""

_REMEDY: Final = "Give each text one vector of finite numbers, as its embedder returns them."


def vectors(
    values: Vectors | None, count: int, space: str | None
) -> Sequence[tuple[Embedding, bytes] | None]:
    """Return the embeddings of ``count`` texts, if any: int8 stays, other dtypes become float32.

    Raises:
        InvalidInput: a space without vectors or the reverse, another number of vectors, unequal or
            too many dimensions, or a number that is not finite.
    """
    if values is None and space is None:
        return [None] * count
    if values is None or not isinstance(space, str) or not space:
        raise InvalidInput(
            f"The space {space!r} came {'without' if values is None else 'with'} an embedding",
            remedy="Name the space after its embedder: embedding=vector, space='all-MiniLM-L6-v2'.",
        )
    if is_token_space(space):
        raise InvalidInput(
            f"{space!r} is a space of token vectors",
            remedy="Pass token vectors as token_embedding=, with tokens_space=.",
        )
    matrix = numbers_of(values)
    if matrix.ndim != 2 or len(matrix) != count:
        raise InvalidInput(
            f"Embeddings must be {count:,} vectors, not an array of shape {matrix.shape}",
            remedy=_REMEDY,
        )
    if not 0 < matrix.shape[1] <= EMBEDDING_DIMENSION_MAX:
        raise InvalidInput(
            f"An embedding must have 1 to {EMBEDDING_DIMENSION_MAX:,} dimensions, "
            f"not {matrix.shape[1]:,} dimensions",
            remedy="Reduce the dimension of the vectors.",
        )
    if not np.isfinite(matrix).all():
        raise InvalidInput("An embedding has a number that is not finite", remedy=_REMEDY)
    dtype = "i1" if matrix.dtype == np.int8 else "f4"
    maker = parse_space(space)
    if maker is not None and (maker.dtype, maker.dimension) != (dtype, matrix.shape[1]):
        raise InvalidInput(
            f"The space {space!r} has vectors of {maker.dimension:,} dimensions ({maker.dtype}), "
            f"and these have {matrix.shape[1]:,} ({dtype})",
            remedy=_REMEDY,
        )
    rows = [row.tobytes() for row in matrix]
    return [
        (Embedding(space, dtype, matrix.shape[1], Attachment(hash_bytes(row), len(row))), row)
        for row in rows
    ]


def numbers_of(values: Vectors | Vector) -> npt.NDArray[Any]:
    """Return vectors as int8 or float32, without a check of shape and finite numbers.

    Raises:
        InvalidInput: the array is masked, ragged, or not of numbers.
    """
    parts = values if isinstance(values, list | tuple) else ()
    if any(isinstance(part, np.ma.MaskedArray) for part in (values, *parts)):
        # A masked array holds arbitrary numbers under its mask; refuse it.
        raise InvalidInput("Embeddings must not be a masked array", remedy=_REMEDY)
    try:
        matrix = np.asarray(values)
    except ValueError as error:
        raise InvalidInput("Embeddings have unequal dimensions", remedy=_REMEDY) from error
    except UserWarning as error:
        # Raised for a masked item if warnings are errors; else it becomes NaN, which is refused.
        raise InvalidInput(f"Embeddings are no numbers: {error}", remedy=_REMEDY) from error
    if matrix.dtype == np.int8:
        return matrix
    if matrix.dtype.kind not in "fiu":
        raise InvalidInput(f"Embeddings are of {matrix.dtype}, not of numbers", remedy=_REMEDY)
    # A number too large for float32 becomes infinite, which the callers refuse.
    with np.errstate(over="ignore"):
        return matrix.astype("<f4")


class Spaces:
    """The embeddings of a batch, put through a store of the scope ``within``.

    ``shapes`` has the spaces of earlier drafts; those of the batch are added.
    """

    def __init__(
        self,
        drafts: Sequence[Draft],
        within: Scope | None,
        shapes: MutableMapping[SpaceName, Shape] | None = None,
    ) -> None:
        self._within = within
        self.shapes: MutableMapping[SpaceName, Shape] = {} if shapes is None else shapes
        for draft in drafts:
            self._check(draft.body, realm(draft.scope, within))

    def __bool__(self) -> bool:
        return bool(self.shapes)

    def check(self, log: Log, frames: Frames, n: int) -> None:
        """Refuse vectors of another shape than the first vector of their space by event ``n``.

        Raises:
            InvalidInput: with the space and both shapes.
        """
        for place, space in list(self.shapes):
            seq = frames.first_embedding(space, partial(self._is_in, place))
            if seq is not None and seq <= n:
                self._check(log.event(seq).body, place)

    def check_delta(self, delta: Sequence[Event]) -> None:
        """Refuse vectors of another shape than those of events after the folded events."""
        for event in delta:
            if event.scope is not None:
                self._check(event.body, realm(event.scope, self._within))

    def _is_in(self, place: str, scope: Scope) -> bool:
        return realm(scope, self._within) == place

    def _check(self, body: EventBody | Erased, place: str | None) -> None:
        if place is None:
            return
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            self._check_shape(embedding, place)

    def _check_shape(self, embedding: object, place: str) -> None:
        if not isinstance(embedding, Embedding):
            return
        shape = embedding.dtype, embedding.dimension
        of_space = self.shapes.setdefault((place, embedding.space), shape)
        if of_space != shape:
            raise InvalidInput(
                f"The space {embedding.space!r} has vectors of {shape[1]:,} dimensions "
                f"({shape[0]}) and of {of_space[1]:,} ({of_space[0]})",
                remedy="Pass another name in space= for vectors of another embedder.",
            )
