"""The members of an embedder: their check at open, and the weight of its vectors.

Owns the types of the members; no vector is computed. Leaves out the check of answers (`embedder`).
"""

from collections.abc import Sequence
from typing import Final, cast

from cerata.engine.arguments import is_number, wrong_type
from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import exact

from .embedder import Embedder, answer_of, failed
from .identity import EmbedderIdentity

VECTOR_WEIGHT_MAX: Final = 10.0

_WEIGHTS: Final = f"a number from 0 to {VECTOR_WEIGHT_MAX:.0f}"


def check_embedder(embedder: object) -> None:
    """Raise `InvalidInput` unless an object is an embedder; no vector is computed."""
    identity = getattr(embedder, "identity", None)
    if not isinstance(identity, EmbedderIdentity) or not callable(getattr(embedder, "embed", None)):
        remedy = "Wrap a function in cerata.CallableEmbedder."
        raise wrong_type("embedder", "an Embedder", embedder, remedy)
    if identity.metric == "maxsim":
        raise InvalidInput(
            f"The embedder's space must not be of token vectors, as {identity.space!r} is",
            remedy="Return that identity as token_identity, and add embed_tokens().",
        )
    reads_context = exact(cast("object", getattr(embedder, "reads_context", False)))
    if not isinstance(reads_context, bool) or (
        reads_context and not callable(getattr(embedder, "embed_in_context", None))
    ):
        raise InvalidInput(
            f"The reads_context of a {type(embedder).__name__} must be True or False and come with "
            f"embed_in_context(), not be {reads_context!r:.60}",
            remedy="Set reads_context = False, or add embed_in_context().",
        )
    for name in ("embed_question", "knows"):
        method: object = getattr(embedder, name, None)
        if method is not None and not callable(method):
            raise InvalidInput(
                f"The {name} of a {type(embedder).__name__} must be a method, not {method!r:.60}",
                remedy=f"Write {name} as a method that takes a question, or remove it.",
            )
    weight: object = getattr(embedder, "vector_weight", 1.0)
    if not _is_weight(weight):
        raise InvalidInput(
            f"The vector_weight of a {type(embedder).__name__} must be {_WEIGHTS}, "
            f"not {weight!r:.60}",
            remedy="Set vector_weight = 1.0, or remove it.",
        )
    token_identity: object = getattr(embedder, "token_identity", None)
    if token_identity is not None and not (
        isinstance(token_identity, EmbedderIdentity)
        and token_identity.metric == "maxsim"
        and callable(getattr(embedder, "embed_tokens", None))
    ):
        raise InvalidInput(
            f"The token_identity of a {type(embedder).__name__} must have the metric 'maxsim' and "
            f"come with embed_tokens(), not be {token_identity!r:.60}",
            remedy="Pass an EmbedderIdentity with metric='maxsim', and add embed_tokens().",
        )


def vector_weight_of(embedder: Embedder | None) -> float:
    """Return V, the weight of an embedder's vectors in a score; 1 without ``vector_weight``.

    Args:
        embedder: the embedder of the question; None if the caller passed the vector

    Raises:
        EmbedderFailed: reading the weight raised, or it is no number from 0 to 10.
    """
    if embedder is None:
        return 1.0

    def read(_: Sequence[str]) -> object:
        return exact(cast("object", getattr(embedder, "vector_weight", 1.0)))

    weight = answer_of(embedder.identity, read, ())
    if not is_number(weight) or not _is_weight(weight):
        raise failed(embedder.identity, f"has the vector_weight {weight!r:.60}, not {_WEIGHTS}")
    return float(weight)


def _is_weight(value: object) -> bool:
    number = exact(value)
    return is_number(number) and 0 <= number <= VECTOR_WEIGHT_MAX
