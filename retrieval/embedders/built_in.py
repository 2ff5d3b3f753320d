"""Built-in embedders by name: models that run on this machine and never use a network.

Owns the names that `cerata.open(embedder=…)` takes and that a memory remembers. An embedder that
contacts an endpoint has no name here, so that no file can cause a request.
"""

import difflib
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from cerata.engine.arguments import is_number, wrong_type
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.json_value import exact
from cerata.engine.late import loading

from .embedder import Embedder, answer_of, failed, token_embedder
from .identity import EmbedderIdentity


def _minilm(**options: Any) -> Embedder:
    with loading("MiniLM"):
        from .minilm import MiniLMEmbedder

    return MiniLMEmbedder(**options)


def _static() -> Embedder:
    with loading("the static embedder"):
        from .static import StaticEmbedder

    return StaticEmbedder()


AUTOMATIC: Final = "static"
"""The embedder of ``open(embedder="auto")`` for a memory that remembers none: it needs no extra."""

BUILT_IN: Final[dict[str, Callable[[], Embedder]]] = {
    "static": _static,
    "minilm": _minilm,
    "minilm-int8": lambda: _minilm(dtype="i1"),
    "minilm-tokens": lambda: _minilm(token_dimension=128),
    "minilm-int8-tokens": lambda: _minilm(dtype="i1", token_dimension=128),
    "minilm-context": lambda: _minilm(in_context=True),
    "minilm-context-tokens": lambda: _minilm(in_context=True, token_dimension=128),
}
"""The function of each name; it loads no model. A model's weights load for the first text."""


def built_in(name: str) -> Embedder:
    """Return the built-in embedder of a name.

    Args:
        name: a name in `BUILT_IN`

    Raises:
        InvalidInput: no built-in embedder has this name.
        Unsupported: the extra of the embedder is not installed.
    """
    make = BUILT_IN.get(name)
    if make is None:
        near = difflib.get_close_matches(name, BUILT_IN, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise InvalidInput(
            f"There is no built-in embedder {name!r:.60}",
            remedy=f"{meant}Use one of {', '.join(BUILT_IN)}, or pass an embedder object.",
        )
    return make()


def name_of(embedder: Embedder) -> str | None:
    """Return the name of a built-in embedder, None for any other.

    Args:
        embedder: an embedder of any class
    """
    for name, make in BUILT_IN.items():
        try:
            made = make()
        except Unsupported:
            continue
        if type(made) is type(embedder) and spaces_of(made) == spaces_of(embedder):
            return name
    return None


def spaces_of(embedder: Embedder) -> tuple[str, str | None]:
    """Return the space of an embedder's vectors, and that of its token vectors, if any.

    Args:
        embedder: an embedder of any class
    """
    tokens = token_embedder(embedder)
    return embedder.identity.space, None if tokens is None else tokens.token_identity.space


# --- The members of an embedder: their check at open, and the weight of its vectors ---------------


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
