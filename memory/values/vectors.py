"""Vectors of a caller, as events store them.

Leaves out the check that a space has vectors of one shape (`batch.vector_rules`), and searching by
vectors (`search.vector_lane`).
"""

import sys
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cerata.engine.arguments import exact_string
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import Attachment, Embedding, is_token_space
from cerata.engine.integrity import hashes_of
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX
from cerata.retrieval.embedders.identity import parse_space

Vector: TypeAlias = Sequence[float] | npt.NDArray[Any]
Vectors: TypeAlias = Sequence[Vector] | npt.NDArray[Any]
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
            f"The space {value_text(space)} came "
            f"{'without' if values is None else 'with'} an embedding",
            remedy="Name the space after its embedder: "
            "vectors=cerata.Vectors(dense=vector, space='all-MiniLM-L6-v2').",
        )
    if is_token_space(space):
        raise InvalidInput(
            f"{space!r} is a space of token vectors",
            remedy="Pass token vectors as cerata.Vectors(tokens=…, tokens_space=…).",
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
    dtype = "i1" if matrix.dtype == np.int8 else "f4"
    # The bytes are checked, not the array, which another thread of the caller may change.
    data = matrix.tobytes()
    if dtype == "f4" and not np.isfinite(np.frombuffer(data, "<f4")).all():
        raise InvalidInput("An embedding has a number that is not finite", remedy=_REMEDY)
    maker = parse_space(space)
    if maker is not None and (maker.dtype, maker.dimension) != (dtype, matrix.shape[1]):
        raise InvalidInput(
            f"The space {space!r} has vectors of {maker.dimension:,} dimensions ({maker.dtype}), "
            f"and these have {matrix.shape[1]:,} ({dtype})",
            remedy=_REMEDY,
        )
    space = exact_string(space)
    dimension = matrix.shape[1]
    size = matrix.itemsize * dimension
    rows = [data[start : start + size] for start in range(0, len(data), size)]
    return [
        (Embedding(space, dtype, dimension, Attachment(hashed, size)), row)
        for hashed, row in zip(hashes_of(rows), rows, strict=True)
    ]


def numbers_of(values: Vectors | Vector) -> npt.NDArray[Any]:
    """Return vectors as int8 or float32, without a check of shape and finite numbers.

    An array of float32 is returned as it is.

    Raises:
        InvalidInput: the array is masked, ragged, or not of numbers.
    """
    parts = values if isinstance(values, list | tuple) else ()
    # Without its module there is no masked array; asking numpy for the module would import it.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and any(
        isinstance(part, masked.MaskedArray) for part in (values, *parts)
    ):
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
        return matrix.astype("<f4", copy=False)
