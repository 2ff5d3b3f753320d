"""The protocol of embedders, what is believed of their answers, and any callable as one.

Owns the check of what comes back, in batches. Leaves out models and endpoints, which have files
of their own.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cerata.engine.errors import EmbedderFailed, InvalidInput, Unsupported
from cerata.engine.limits import TOKEN_VECTORS_MAX

from .identity import EmbedderIdentity, Metric, VectorType

Matrix: TypeAlias = npt.NDArray[np.float32]
"""Vectors of texts, (n, dimension) float32, row i of text i."""

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many texts are done, and of how many."""

BATCH_DEFAULT: Final = 32
"""Texts given to a model at a time: enough for a processor, few enough for any service."""


class Embedder(Protocol):
    """What makes vectors of texts: a model on this machine, or one behind an interface.

    ``identity`` is known before any model is loaded: a store asks for it when it opens, and loads
    nothing until the first text.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """Which one it is; it names the space of its vectors."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """How many of its own tokens of a text it looks at; None where that is not known."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32."""
        ...


class TokenEmbedder(Embedder, Protocol):
    """An embedder that makes a vector for each token of a text, too (late interaction)."""

    @property
    def token_identity(self) -> EmbedderIdentity:
        """Which one it is: it names the space of the token vectors, so its metric is "maxsim"."""
        ...

    def embed_tokens(self, texts: Sequence[str]) -> Sequence[Matrix]:
        """Return for each text (tokens, dimension) float32, at least one token.

        Only the directions count: each vector is stored as int8 of one length.
        """
        ...


class CallableEmbedder:
    """Any function from a list of texts to one vector each, as an embedder.

    ``name`` and ``revision`` say which model it is, for good: give another revision whenever the
    same text would get another vector. ``dtype="i1"`` stores a byte for each number.

    >>> def sizes(texts: list[str]) -> list[list[float]]:
    ...     return [[len(text), 1.0] for text in texts]
    >>> embedder = CallableEmbedder(sizes, name="sizes", revision="1", dimension=2)
    >>> embedder.identity.space
    'sizes@1/2/cosine'
    >>> embedder.embed(["wax", "tablet"]).tolist()
    [[3.0, 1.0], [6.0, 1.0]]

    Raises:
        InvalidInput: what is no function, an identity that cannot be, or a batch below 1.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        revision: str,
        dimension: int,
        metric: Metric = "cosine",
        dtype: VectorType = "f4",
        batch: int = BATCH_DEFAULT,
        max_tokens: int | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidInput(
                f"{function!r:.60} cannot be called",
                remedy="Pass a function from a list of texts to their vectors.",
            )
        check_batch(batch)
        self.identity: Final = EmbedderIdentity(name, revision, dimension, metric, dtype)
        self.max_tokens: Final = max_tokens
        self._function = function
        self._batch = batch

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32, ``batch`` at a time."""
        rows = np.empty((len(texts), self.identity.dimension), np.float32)
        for first in range(0, len(texts), self._batch):
            some = list(texts[first : first + self._batch])
            rows[first : first + len(some)] = checked_vectors(
                self.identity, len(some), self._function(some)
            )
        return rows


def check_batch(batch: object) -> None:
    """Refuse what is no number of texts from 1 on: `InvalidInput`."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InvalidInput(f"batch is {batch!r:.60}", remedy="Give a number of texts from 1 on.")


def check_embedder(embedder: object) -> None:
    """Refuse what is no embedder: `InvalidInput`; it is not asked for any vector."""
    identity = getattr(embedder, "identity", None)
    if not isinstance(identity, EmbedderIdentity) or not callable(getattr(embedder, "embed", None)):
        raise InvalidInput(
            f"A {type(embedder).__name__} is no embedder",
            remedy="Wrap a function in cerata.CallableEmbedder.",
        )
    if identity.metric == "maxsim":
        raise InvalidInput(
            f"{identity.space!r} is a space of token vectors, and embed makes one a text",
            remedy="Let it be the token_identity of one that has embed_tokens.",
        )
    by_token: object = getattr(embedder, "token_identity", None)
    if by_token is not None and not (
        isinstance(by_token, EmbedderIdentity)
        and by_token.metric == "maxsim"
        and callable(getattr(embedder, "embed_tokens", None))
    ):
        raise InvalidInput(
            f"The token_identity of a {type(embedder).__name__} is {by_token!r:.60}",
            remedy="It has the metric 'maxsim', and goes with embed_tokens.",
        )


def token_embedder(embedder: Embedder) -> TokenEmbedder | None:
    """Return an embedder as one of token vectors, if it makes them."""
    is_one = getattr(embedder, "token_identity", None) is not None
    return cast("TokenEmbedder", embedder) if is_one else None


def checked_vectors(identity: EmbedderIdentity, count: int, given: object) -> Matrix:
    """Return what an embedder gave for ``count`` texts as float32, if it is that many vectors.

    Raises:
        EmbedderFailed: another shape, no numbers, or one that is not finite as float32.
    """
    matrix = _numbers(identity, given)
    wanted = (count, identity.dimension)
    if matrix.shape != wanted:
        raise _failed(identity, f"gave vectors of the shape {matrix.shape}, not {wanted}")
    return matrix


def _numbers(identity: EmbedderIdentity, given: object) -> Matrix:
    """Return what an embedder gave as float32, of any shape. Raises `EmbedderFailed`."""
    try:
        matrix = np.asarray(given)
    except MemoryError:
        raise
    except Exception as error:
        # What was given converts itself, and raises what it likes: a tensor on a graphics card.
        raise _failed(identity, f"gave what are no vectors: {error}") from error
    if matrix.dtype.kind not in "fiu":
        raise _failed(identity, f"gave {matrix.dtype}, and no numbers")
    # What is too large becomes infinite, which is refused.
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    if not np.isfinite(matrix).all():
        raise _failed(identity, "gave a number that is not finite")
    return matrix


def embed_token_texts(embedder: TokenEmbedder, texts: Sequence[str]) -> list[Matrix]:
    """Return for each text a vector for each token, (tokens, dimension) float32; checked.

    Raises:
        EmbedderFailed: the embedder raised, or gave what are no vectors of its identity.
    """
    identity = embedder.token_identity
    given = _asked(identity, embedder.embed_tokens, texts)
    if not isinstance(given, list | tuple) or len(cast("Sequence[object]", given)) != len(texts):
        raise _failed(identity, f"gave no list of {len(texts):,} arrays")
    matrices = [_numbers(identity, one) for one in cast("Sequence[object]", given)]
    for one in matrices:
        is_right = one.ndim == 2 and one.shape[1] == identity.dimension
        if not (is_right and 0 < len(one) <= TOKEN_VECTORS_MAX):
            raise _failed(
                identity,
                f"gave token vectors of the shape {one.shape}; wanted are 1 to "
                f"{TOKEN_VECTORS_MAX:,} of {identity.dimension}",
            )
    return matrices


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return a vector for each text, (len(texts), dimension) float32; the answer is checked.

    Raises:
        EmbedderFailed: the embedder raised, or gave what are no vectors of its identity.
    """
    identity = embedder.identity
    return checked_vectors(identity, len(texts), _asked(identity, embedder.embed, texts))


def _asked(
    identity: EmbedderIdentity, embed: Callable[[Sequence[str]], object], texts: Sequence[str]
) -> object:
    """Return what an embedder gives, whatever it is.

    Raises:
        EmbedderFailed: it raised.
    """
    try:
        # A list of its own: one that changes it must not change which text a vector is of.
        return embed(list(texts))
    except (EmbedderFailed, Unsupported):
        # The second where a part of it is not installed, and says how to.
        raise
    except MemoryError:
        raise
    except Exception as error:
        raise _failed(identity, f"raised {type(error).__name__}: {error}") from error


def _failed(identity: EmbedderIdentity, said: str) -> EmbedderFailed:
    return EmbedderFailed(
        f"The embedder of {identity.space!r} {said}",
        remedy="Mend it and call again.",
        embedder=identity.space,
    )
