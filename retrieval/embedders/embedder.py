"""The protocol of embedders, and calls of an embedder whose answers are checked.

Leaves out the check of an embedder at open (`built_in`), and models and endpoints (other files of
this folder).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from cerata.engine.arguments import is_integer
from cerata.engine.errors import EmbedderFailed, InvalidInput, Unsupported
from cerata.engine.limits import TOKEN_VECTORS_MAX

from .identity import EmbedderIdentity, Metric, VectorType

Matrix: TypeAlias = npt.NDArray[np.float32]
"""Vectors of texts, (n, dimension) float32, row i of text i."""

Vector: TypeAlias = npt.NDArray[np.float32]
"""The vector of a text, (dimension,) float32."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of embedded texts, and that of all texts."""

Item = TypeVar("Item")


class Embedder(Protocol):
    """A maker of vectors of texts: a model on this machine, or behind an interface.

    ``identity`` must be available before a model is loaded: a store reads it at open, and loads
    nothing until the first text.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """The embedder's identity; it names the space of the vectors."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """The tokens of a text that the embedder reads; None if unknown."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32.

        Args:
            texts: the texts, in order
        """
        ...


class QuestionEmbedder(Embedder, Protocol):
    """The optional members of an embedder that concern questions; a class may have any of them.

    - Without `embed_question` a question is embedded like a text.
    - Without `knows` the vectors of every question count in full.
    - Without ``vector_weight`` the weight is 1.
    """

    @property
    def vector_weight(self) -> float:
        """V: the weight of the vectors in a score beside that of the words, 1; from 0 to 10."""
        ...

    def embed_question(self, text: str) -> Vector:
        """Return the vector of a question, (dimension,) float32, for a model with a prefix.

        Args:
            text: the question
        """
        ...

    def knows(self, text: str) -> float:
        """Return the share of a question's words that the model knows, from 0 to 1.

        Args:
            text: the question
        """
        ...


class TokenEmbedder(Embedder, Protocol):
    """An embedder that also returns a vector for each token of a text (late interaction)."""

    @property
    def token_identity(self) -> EmbedderIdentity:
        """The identity of the token vectors, with the metric "maxsim"; it names their space."""
        ...

    def embed_tokens(self, texts: Sequence[str]) -> Sequence[Matrix]:
        """Return for each text (tokens, dimension) float32, at least one token.

        Only directions count: each vector is stored as int8 of a fixed length.

        Args:
            texts: the texts, in order
        """
        ...


class TurnWindow(NamedTuple):
    """A turn in its conversation: the turn to embed, and the turns around it, in order.

    ``before`` and ``after`` have a text for each turn, "speaker: text".
    """

    before: tuple[str, ...]
    speaker: str
    text: str
    after: tuple[str, ...]


class ContextEmbedder(Embedder, Protocol):
    """An embedder that also embeds a turn within its conversation (late chunking).

    Its identity differs from that of an embedder which reads each text alone.
    """

    @property
    def reads_context(self) -> bool:
        """True; an embedder with False reads each text alone."""
        ...

    def embed_in_context(self, windows: Sequence[TurnWindow]) -> Matrix:
        """Return a vector for the turn of each window, (len(windows), dimension) float32.

        Args:
            windows: the turns, with the turns around them; an embedder may read fewer of these
        """
        ...


class TokenSpans(Protocol):
    """The optional method of a `TokenEmbedder` that relates token vectors to words.

    With it, the tokens of a question weigh as much as their words (docs/search.md).
    """

    def token_spans(self, text: str) -> Sequence[tuple[int, int] | None]:
        """Return the characters [start, end) that each vector of `embed_tokens` is of.

        None is for a special token, which is of no word.

        Args:
            text: the question
        """
        ...


def token_embedder(embedder: Embedder) -> TokenEmbedder | None:
    """Return an embedder as one of token vectors, or None if it has none."""
    is_one = getattr(embedder, "token_identity", None) is not None
    return cast("TokenEmbedder", embedder) if is_one else None


def checked_vectors(identity: EmbedderIdentity, count: int, given: object) -> Matrix:
    """Return an embedder's answer for ``count`` texts as float32, if it is that many vectors.

    Raises:
        EmbedderFailed: the shape is wrong, or an item is no number or not finite as float32.
    """
    matrix = _numbers(identity, given)
    shape = (count, identity.dimension)
    if matrix.shape != shape:
        raise failed(identity, f"returned vectors of the shape {matrix.shape}, not {shape}")
    return matrix


def _numbers(identity: EmbedderIdentity, answer: object) -> Matrix:
    """Return an embedder's answer as float32, of any shape. Raises `EmbedderFailed`."""
    try:
        matrix = np.asarray(answer)
    except MemoryError:
        raise
    except Exception as error:
        # An answer that converts itself may raise anything: a tensor on a graphics card.
        raise failed(identity, f"returned no vectors: {error}") from error
    if matrix.dtype.kind not in "fiu":
        raise failed(identity, f"returned {matrix.dtype}, not numbers")
    # A number above float32 becomes infinite, and is refused below.
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float32)
    if not np.isfinite(matrix).all():
        raise failed(identity, "returned a number that is not finite")
    return matrix


def embed_token_texts(embedder: TokenEmbedder, texts: Sequence[str]) -> list[Matrix]:
    """Return for each text a vector for each token, (tokens, dimension) float32; checked.

    Raises:
        EmbedderFailed: the embedder raised, or returned no vectors of its identity.
    """
    identity = embedder.token_identity
    answer = answer_of(identity, embedder.embed_tokens, texts)
    if not isinstance(answer, list | tuple) or len(cast("Sequence[object]", answer)) != len(texts):
        raise failed(identity, f"returned no list of {len(texts):,} arrays")
    matrices = [_numbers(identity, matrix) for matrix in cast("Sequence[object]", answer)]
    for matrix in matrices:
        is_right = matrix.ndim == 2 and matrix.shape[1] == identity.dimension
        if not (is_right and 0 < len(matrix) <= TOKEN_VECTORS_MAX):
            raise failed(
                identity,
                f"returned token vectors of the shape {matrix.shape}, not 1 to "
                f"{TOKEN_VECTORS_MAX:,} of {identity.dimension}",
            )
    return matrices


def spans_of_tokens(
    embedder: TokenEmbedder, text: str, count: int
) -> list[tuple[int, int] | None] | None:
    """Return the span of each of the ``count`` token vectors of a question; checked.

    None if the embedder has no method `token_spans`.

    Raises:
        EmbedderFailed: the embedder raised, or the spans do not align with the token vectors.
    """
    method = getattr(embedder, "token_spans", None)
    if not callable(method):
        return None
    identity = embedder.token_identity
    answer = answer_of(identity, lambda texts: method(texts[0]), [text])
    if not isinstance(answer, list | tuple):
        raise failed(identity, f"returned no list of token spans, but {answer!r:.60}")
    spans = cast("Sequence[object]", answer)
    if len(spans) != count:
        raise failed(identity, f"returned {len(spans):,} token spans for {count:,} token vectors")
    return [_span(identity, span, len(text)) for span in spans]


def _span(identity: EmbedderIdentity, span: object, size: int) -> tuple[int, int] | None:
    if span is None:
        return None
    ends = cast("Sequence[object]", span) if isinstance(span, list | tuple) else ()
    if len(ends) == 2:
        start, end = ends
        if is_integer(start) and is_integer(end) and 0 <= start <= end <= size:
            return start, end
    raise failed(identity, f"returned the token span {span!r:.60} of {size:,} characters")


def context_embedder(embedder: Embedder) -> ContextEmbedder | None:
    """Return an embedder as one that reads turns in their conversation, or None if it does not."""
    # Checked when the store was opened.
    is_one = bool(getattr(embedder, "reads_context", False))
    return cast("ContextEmbedder", embedder) if is_one else None


def embed_windows(embedder: ContextEmbedder, windows: Sequence[TurnWindow]) -> Matrix:
    """Return a vector for the turn of each window, (len(windows), dimension) float32; checked.

    Raises:
        EmbedderFailed: the embedder raised, or returned no vectors of its identity.
    """
    identity = embedder.identity
    answer = answer_of(identity, embedder.embed_in_context, windows)
    return checked_vectors(identity, len(windows), answer)


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return a vector for each text, (len(texts), dimension) float32; the answer is checked.

    Raises:
        EmbedderFailed: the embedder raised, or returned no vectors of its identity.
    """
    identity = embedder.identity
    return checked_vectors(identity, len(texts), answer_of(identity, embedder.embed, texts))


def embed_question(embedder: Embedder, text: str) -> Vector:
    """Return the vector of a question, (dimension,) float32; the answer is checked.

    It is that of the embedder's `embed_question`; without this method, that of `embed`.

    Raises:
        EmbedderFailed: the embedder raised, or returned no vector of its identity.
    """
    method = getattr(embedder, "embed_question", None)
    if method is None:
        of_text: Vector = embed_texts(embedder, [text])[0]
        return of_text
    identity = embedder.identity
    vector = _numbers(identity, answer_of(identity, lambda texts: method(texts[0]), [text]))
    if vector.shape != (identity.dimension,):
        raise failed(
            identity,
            f"returned a question's vector of the shape {vector.shape}, "
            f"not ({identity.dimension},)",
        )
    return vector


def answer_of(
    identity: EmbedderIdentity,
    embed: Callable[[Sequence[Item]], object],
    texts: Sequence[Item],
) -> object:
    """Return an embedder's answer, unchecked.

    Raises:
        EmbedderFailed: the embedder raised.
    """
    try:
        # A copy: an embedder that changes the list must not change which text a vector is of.
        return embed(list(texts))
    except (EmbedderFailed, Unsupported):
        # Unsupported: a part of the embedder is not installed; the remedy names it.
        raise
    except MemoryError:
        raise
    except Exception as error:
        raise failed(identity, f"raised {type(error).__name__}: {error}") from error


def failed(identity: EmbedderIdentity, fault: str) -> EmbedderFailed:
    """Return the error of an embedder: its space, the fault, and the remedy."""
    return EmbedderFailed(
        f"The embedder of {identity.space!r} {fault}",
        remedy="Fix the embedder and call again.",
        embedder=identity.space,
    )


# --- Any callable as an embedder, and the size of the batches that an embedder works in -----------


BATCH_DEFAULT: Final = 32
"""Texts in a call of a model: enough for a processor, few enough for any service."""


class CallableEmbedder:
    """Any function from a list of texts to one vector each, as an embedder.

    Args:
        function: takes a list of texts and returns their vectors, (texts, dimension)
        name: the model's name
        revision: the model's version; change it if the same text may get another vector
        dimension: numbers in a vector
        metric: "cosine" (default) or "dot"
        dtype: "f4" (default), or "i1" to store a byte for each number
        batch: texts in a call of the function, default 32
        max_tokens: tokens of a text that the model reads; None if unknown

    >>> def sizes(texts: list[str]) -> list[list[float]]:
    ...     return [[len(text), 1.0] for text in texts]
    >>> embedder = CallableEmbedder(sizes, name="sizes", revision="1", dimension=2)
    >>> embedder.identity.space
    'sizes@1/2/cosine'
    >>> embedder.embed(["wax", "tablet"]).tolist()
    [[3.0, 1.0], [6.0, 1.0]]

    Raises:
        InvalidInput: the function is not callable, the identity invalid, or the batch below 1.
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
                f"function must be callable, not {function!r:.60}",
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
        """Return a vector for each text, (len(texts), dimension) float32, ``batch`` at a time.

        Args:
            texts: the texts, in order
        """
        rows = np.empty((len(texts), self.identity.dimension), np.float32)
        for first in range(0, len(texts), self._batch):
            group = list(texts[first : first + self._batch])
            rows[first : first + len(group)] = checked_vectors(
                self.identity, len(group), self._function(group)
            )
        return rows


def check_batch(batch: object) -> None:
    """Raise `InvalidInput` unless a batch is a whole number of texts from 1."""
    if not is_integer(batch) or batch < 1:
        raise InvalidInput(
            f"batch must be a whole number of texts from 1, not {batch!r:.60}",
            remedy="Pass batch=1 or more.",
        )
