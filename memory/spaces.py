"""Embeddings that are about to be put: vectors as events hold them, and spaces that do not mix.

A space is what one embedder makes: vectors of one kind of number and one dimension. Whether a
batch keeps to that is checked before the lock against what is folded, and under it against what
others appended since. Searching by vectors is no business of this file.
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
from cerata.projections.frame_table import Frames
from cerata.retrieval.embedders.identity import parse_space

from .drafting import realm

Vector: TypeAlias = Sequence[float] | npt.NDArray[Any]
Vectors: TypeAlias = Sequence[Vector] | npt.NDArray[Any]
Shape: TypeAlias = tuple[str, int]
"""What all vectors of a space have: dtype and dimension."""
SpaceName: TypeAlias = tuple[str, str]
"""A space: the realm of its frames, and the name. Two tenants may use one name as they like."""

_REMEDY: Final = "Give each text one vector of finite numbers, as its embedder returns them."


def vectors(
    given: Vectors | None, count: int, space: str | None
) -> Sequence[tuple[Embedding, bytes] | None]:
    """Return the embeddings of ``count`` texts, if any: int8 stays, all else becomes float32.

    Raises:
        InvalidInput: one of the two without the other, another number of vectors, of unequal or
            too many dimensions, or a number that is not finite.
    """
    if given is None and space is None:
        return [None] * count
    if given is None or not isinstance(space, str) or not space:
        raise InvalidInput(
            f"The space {space!r} came {'without' if given is None else 'with'} an embedding",
            remedy="Name the space after its embedder: embedding=vector, space='all-MiniLM-L6-v2'.",
        )
    if is_token_space(space):
        raise InvalidInput(
            f"{space!r} is a space of token vectors",
            remedy="Give them as token_embedding=, with tokens_space=.",
        )
    matrix = numbers_of(given)
    if matrix.ndim != 2 or len(matrix) != count:
        raise InvalidInput(
            f"Embeddings have the shape {matrix.shape}; {count:,} vectors are wanted",
            remedy=_REMEDY,
        )
    if not 0 < matrix.shape[1] <= EMBEDDING_DIMENSION_MAX:
        raise InvalidInput(
            f"An embedding of {matrix.shape[1]:,} dimensions; "
            f"1 to {EMBEDDING_DIMENSION_MAX:,} can be stored",
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


def numbers_of(given: Vectors | Vector) -> npt.NDArray[Any]:
    """Return vectors as int8 or float32; the shape is not looked at, nor whether all is finite.

    Raises:
        InvalidInput: they are masked, or no numbers.
    """
    parts = given if isinstance(given, list | tuple) else ()
    if any(isinstance(part, np.ma.MaskedArray) for part in (given, *parts)):
        # Whose masked values have some number underneath, which is nobody's.
        raise InvalidInput("Embeddings are a masked array", remedy=_REMEDY)
    try:
        matrix = np.asarray(given)
    except ValueError as error:
        raise InvalidInput("Embeddings have unequal dimensions", remedy=_REMEDY) from error
    except UserWarning as error:
        # Where warnings are errors; else it becomes NaN, which is refused.
        raise InvalidInput(f"Embeddings are no numbers: {error}", remedy=_REMEDY) from error
    if matrix.dtype == np.int8:
        return matrix
    if matrix.dtype.kind not in "fiu":
        raise InvalidInput(f"Embeddings are of {matrix.dtype}", remedy=_REMEDY)
    # What is too large becomes infinite, which is refused.
    with np.errstate(over="ignore"):
        return matrix.astype("<f4")


class Spaces:
    """The embeddings that one batch puts, through a store of the scope ``within``.

    ``shapes`` has the spaces of what it had before.
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
        """Refuse vectors that are unlike the first one of their space by event ``n``.

        Raises:
            InvalidInput: with the space, and both shapes.
        """
        for place, space in list(self.shapes):
            seq = frames.first_embedding(space, partial(self._is_in, place))
            if seq is not None and seq <= n:
                self._check(log.event(seq).body, place)

    def check_delta(self, delta: Sequence[Event]) -> None:
        """Refuse vectors that are unlike those of events after the folded ones."""
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
        other = self.shapes.setdefault((place, embedding.space), shape)
        if other != shape:
            raise InvalidInput(
                f"The space {embedding.space!r} has vectors of {shape[1]:,} dimensions "
                f"({shape[0]}) and of {other[1]:,} ({other[0]})",
                remedy="Another embedder needs a space of another name.",
            )
