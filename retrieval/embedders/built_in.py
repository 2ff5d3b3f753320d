"""Built-in embedders by name: models that run on this machine and never use a network.

Owns the names that `cerata.open(embedder=…)` takes and that a memory remembers. An embedder that
contacts an endpoint has no name here, so that no file can cause a request.
"""

import difflib
from collections.abc import Callable
from typing import Any, Final

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.loading import loading

from .embedder import Embedder, token_embedder


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
