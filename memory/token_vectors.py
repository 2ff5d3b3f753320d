"""Token vectors that are about to be put or asked by: a matrix for each text, as events hold it.

Owns what is taken for one, and that it is int8 from here on, whatever it was. Searching by them is
`token_search`'s.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.engine.events import TOKENS_SUFFIX, Attachment, Embedding, is_token_space
from cerata.engine.integrity import hash_bytes
from cerata.engine.limits import TOKEN_DIMENSION_MAX, TOKEN_VECTORS_MAX
from cerata.projections.maxsim import Tokens
from cerata.retrieval.embedders.identity import parse_space
from cerata.retrieval.embedders.quantising import quantised_tokens

from .spaces import Vectors, numbers_of

_REMEDY: Final = "Give each text an array of shape (tokens, dimension), of finite numbers or int8."


def token_matrix(given: Vectors) -> Tokens:
    """Return the token vectors of one text as they are stored: int8 stays, all else is quantised.

    Each becomes one of length 127, rounded; zeros stay.

    Raises:
        InvalidInput: another shape, no token, too many or too large ones, or no finite numbers.
    """
    matrix = numbers_of(given)
    if matrix.ndim != 2:
        raise InvalidInput(
            f"Token vectors of a text cannot have the shape {matrix.shape}", remedy=_REMEDY
        )
    count, dimension = matrix.shape
    if not (0 < count <= TOKEN_VECTORS_MAX and 0 < dimension <= TOKEN_DIMENSION_MAX):
        raise InvalidInput(
            f"{count:,} token vectors of {dimension:,} dimensions; 1 to {TOKEN_VECTORS_MAX:,} "
            f"of 1 to {TOKEN_DIMENSION_MAX:,} can be stored",
            remedy="Split the text.",
        )
    if matrix.dtype == np.int8:
        return np.ascontiguousarray(matrix)
    if not np.isfinite(matrix).all():
        raise InvalidInput("A token vector has a number that is not finite", remedy=_REMEDY)
    return quantised_tokens(matrix)


def stored_matrices(
    given: Sequence[Vectors] | None, count: int, space: str | None
) -> Sequence[tuple[Embedding, bytes] | None]:
    """Return the token vectors of ``count`` texts, if any, as events hold them.

    Raises:
        InvalidInput: one of the two without the other, another number of texts, a space that is
            none of token vectors, or as `token_matrix`.
    """
    if given is None and space is None:
        return [None] * count
    if given is None or not isinstance(space, str) or not is_token_space(space):
        raise InvalidInput(
            f"Token vectors came with the space {space!r}"
            if given is not None
            else f"The space {space!r} came without token vectors",
            remedy="Name the space after its embedder: tokens_space='colbertv2@1/128/maxsim/i1'; "
            f"it ends with {TOKENS_SUFFIX}.",
        )
    try:
        matrices = list(given)
    except TypeError as error:
        raise InvalidInput(
            f"Token vectors cannot be a {type(given).__name__}", remedy=_REMEDY
        ) from error
    if len(matrices) != count:
        raise InvalidInput(
            f"{count:,} texts came with token vectors of {len(matrices):,}",
            remedy="Pass an array of token vectors for each text.",
        )
    return [_embedding(token_matrix(one), space) for one in matrices]


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
    """Return token vectors as an event names them, and their bytes, which stand beside it."""
    data = tokens.tobytes()
    attachment = Attachment(hash_bytes(data), len(data))
    return Embedding(space, "i1", tokens.shape[1], attachment), data
