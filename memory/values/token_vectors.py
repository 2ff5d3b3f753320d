"""Token vectors of texts and questions: a matrix for each text, as events store it.

Owns the accepted arrays, and their conversion to int8. Leaves out searching by token vectors
(`search.late_lane`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.arguments import exact_string, wrong_type
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import TOKENS_SUFFIX, Attachment, Embedding, is_token_space
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import TOKEN_DIMENSION_MAX, TOKEN_VECTORS_MAX
from cerata.retrieval.embedders.identity import parse_space
from cerata.retrieval.embedders.quantization import quantised_tokens

from .vectors import Vector, Vectors, numbers_of

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64
    from cerata.projections.vectors.maxsim import Tokens

_REMEDY: Final = "Give each text an array of shape (tokens, dimension), of finite numbers or int8."

_WEIGHTS_REMEDY: Final = "Pass a weight of 0 or more for each vector of cerata.Vectors(tokens=…)."

TOKEN_WEIGHT_MAX: Final = 1e6
"""Largest weight of a token, as of a lane."""


def token_matrix(values: Vectors) -> Tokens:
    """Return the token vectors of a text as stored: int8 stays, other dtypes are quantised.

    Quantising scales each vector to length 127 and rounds; zeros stay.

    Raises:
        InvalidInput: another shape, no token, too many or too large vectors, or a number that is
            not finite.
    """
    matrix = numbers_of(values)
    if matrix.ndim != 2:
        raise InvalidInput(
            f"Token vectors of a text must not have the shape {matrix.shape}", remedy=_REMEDY
        )
    count, dimension = matrix.shape
    if not (0 < count <= TOKEN_VECTORS_MAX and 0 < dimension <= TOKEN_DIMENSION_MAX):
        raise InvalidInput(
            f"A text has {count:,} token vectors of {dimension:,} dimensions; "
            f"1 to {TOKEN_VECTORS_MAX:,} of 1 to {TOKEN_DIMENSION_MAX:,} can be stored",
            remedy="Split the text.",
        )
    if matrix.dtype == np.int8:
        return np.ascontiguousarray(matrix)
    if not np.isfinite(matrix).all():
        raise InvalidInput("A token vector has a number that is not finite", remedy=_REMEDY)
    return quantised_tokens(matrix)


def checked_weights(values: Vector, count: int) -> F64:
    """Return the weights of a question's ``count`` token vectors, (count,) float64.

    Raises:
        InvalidInput: another shape, or a weight that is not a number from 0 to 1,000,000.
    """
    try:
        weights = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise wrong_type("token_weights", "numbers", values, _WEIGHTS_REMEDY) from error
    if weights.shape != (count,):
        raise InvalidInput(
            f"token_weights must be {count:,} numbers, not an array of shape {weights.shape}",
            remedy=_WEIGHTS_REMEDY,
        )
    if not bool(((weights >= 0) & (weights <= TOKEN_WEIGHT_MAX)).all()):
        raise InvalidInput(
            f"A token's weight must be 0 to {TOKEN_WEIGHT_MAX:,.0f}", remedy=_WEIGHTS_REMEDY
        )
    return weights


def stored_matrices(
    values: Sequence[Vectors] | None, count: int, space: str | None
) -> Sequence[tuple[Embedding, bytes] | None]:
    """Return the token vectors of ``count`` texts, if any, as events store them.

    Raises:
        InvalidInput: a space without token vectors or the reverse, another number of texts, a
            space that is not of token vectors, or as `token_matrix`.
    """
    if values is None and space is None:
        return [None] * count
    if values is None or not isinstance(space, str) or not is_token_space(space):
        raise InvalidInput(
            f"Token vectors came with the space {value_text(space)}"
            if values is not None
            else f"The space {value_text(space)} came without token vectors",
            remedy="Name the space after its embedder: "
            "cerata.Vectors(tokens=…, tokens_space='colbertv2@1/128/maxsim/i1'); "
            f"it ends with {TOKENS_SUFFIX}.",
        )
    try:
        matrices = list(values)
    except TypeError as error:
        raise wrong_type("Token vectors", "a list of arrays", values, _REMEDY) from error
    if len(matrices) != count:
        raise InvalidInput(
            f"{count:,} texts came with {len(matrices):,} arrays of token vectors",
            remedy="Pass an array of token vectors for each text.",
        )
    space = exact_string(space)
    return [_embedding(token_matrix(matrix), space) for matrix in matrices]


def _embedding(tokens: Tokens, space: str) -> tuple[Embedding, bytes]:
    dimension, maker = tokens.shape[1], parse_space(space)
    if maker is not None and maker.dimension != dimension:
        raise InvalidInput(
            f"The space {space!r} has token vectors of {maker.dimension:,} dimensions, "
            f"and these have {dimension:,}",
            remedy=_REMEDY,
        )
    return stored_tokens(tokens, space)


def stored_tokens(tokens: Tokens, space: str) -> tuple[Embedding, bytes]:
    """Return the embedding that an event stores for token vectors, and the attachment's bytes."""
    data = tokens.tobytes()
    attachment = Attachment(hash_bytes(data), len(data))
    return Embedding(space, "i1", tokens.shape[1], attachment), data
