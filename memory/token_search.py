"""Late interaction in a view: the lane "late", and the order of the best by their tokens.

Owns what a question's token vectors are, and who makes them; what they are compared by is
`cerata.projections.maxsim`'s.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.projections.columns import Mask
from cerata.projections.maxsim import Tokens, maxsim, nearest_by_tokens, token_scores
from cerata.projections.nearest import Nearest
from cerata.projections.vector_columns import Key, matrix_of
from cerata.projections.vector_table import Space
from cerata.replay.stored_tokens import StoredTokens
from cerata.retrieval.embedders.embedder import TokenEmbedder, embed_token_texts, token_embedder
from cerata.retrieval.profiles import Profile

from .space_search import (
    Mode,
    SpaceQuery,
    gathered,
    key_for,
    key_of_frame,
    keys_of,
)
from .spaces import Vectors
from .token_vectors import token_matrix

if TYPE_CHECKING:
    from .view import View

LANE: Final = "late"
RERANKED: Final = "late (rerank)"
"""What is among a result's lanes where token vectors put the best of them in order."""


class TokenQuery(SpaceQuery):
    """The token vectors that a view is asked for, and the space that they are of.

    Scores are MaxSim over 127²: of vectors of length 1 the sum of the best cosines. Cost of a
    search: the signs of all frames, and the token vectors of at most 16,384 of them.
    """

    name: ClassVar[str] = LANE

    def __init__(self, view: "View", tokens: Vectors, space: str | None) -> None:
        """``space`` may be left out where only one fits.

        Raises:
            InvalidInput: they are none, no space has their dimension, or several have.
            NotFound: there is no such space by the view's basis.
        """
        self.tokens = token_matrix(tokens)
        super().__init__(view, key_for(view, self.tokens.shape[1], space, tokens=True))

    def _kept(self, space: Space) -> StoredTokens:
        return self._view.stored_tokens(space)

    def _nearest(self, space: Space, allowed: Mask, k: int) -> Nearest:
        return nearest_by_tokens(
            space, allowed, self.tokens, k, partial(self._kept(space).rows, space)
        )

    def _scores(self, data: Sequence[bytes]) -> list[float]:
        return self._scored([_tokens_in(one, self.key) for one in data])

    def _scored(self, frames: Sequence[Tokens]) -> list[float]:
        scores: list[float] = token_scores(maxsim(frames, self.tokens)).tolist()
        return scores

    def scores_of(self, frames: Sequence[int]) -> dict[int, float]:
        """Return the scores of those frames that have token vectors in the space.

        Raises:
            Corrupt: the token vectors of one are damaged.
        """
        there = tokens_at(self._view, self.key, frames)
        return dict(zip(there, self._scored([*there.values()]), strict=True))


def token_query(
    view: "View",
    query: object,
    tokens: Vectors | None,
    space: str | None,
    mode: Mode,
    profile: Profile,
    *,
    rerank: bool | None,
) -> TokenQuery | None:
    """Return the token vectors to search or rerank by, if there are any.

    Those which are given, or the store's embedder makes of a question in plain language where it
    has made any in the view, and the profile or ``rerank`` asks for them.

    Raises:
        InvalidInput: the token vectors are none, or a space was named, or a reranking asked for,
            without any. NotFound: there is no such space.
        EmbedderFailed: it could not embed the question.
    """
    if not (rerank is None or isinstance(rerank, bool)):
        raise InvalidInput(f"rerank is {rerank!r:.60}", remedy="Give True, False or None.")
    if tokens is not None:
        return TokenQuery(view, tokens, space) if mode != "text" or rerank else None
    is_needed = bool(rerank) or space is not None
    by_token = None if view.embedder is None else token_embedder(view.embedder)
    found: TokenQuery | None = None
    if by_token is not None and (is_needed or (mode != "text" and profile.is_late)):
        found = _made(view, by_token, query, space)
    if found is None and is_needed:
        raise InvalidInput(
            f"There are no token vectors to {'rerank' if rerank else 'search'} by",
            remedy="Pass the question's as token_embedding=, or open with their embedder.",
        )
    return found


def _made(
    view: "View", embedder: TokenEmbedder, query: object, space: str | None
) -> TokenQuery | None:
    """Return what an embedder makes of a question, if it has made any in the view."""
    if not isinstance(query, str) or not query.strip():
        return None
    own = embedder.token_identity.space
    if space not in (None, own) or own not in (key[0] for key in keys_of(view, tokens=True)):
        return None
    return TokenQuery(view, embed_token_texts(embedder, [query])[0], own)


def tokens_of(view: "View", frame: int, space: str | None) -> Tokens | None:
    """Return a frame's token vectors in a space, by default the only one; None without any.

    Raises:
        InvalidInput: it has some in several spaces, and none was named.
    """
    key = key_of_frame(view, frame, space, tokens=True)
    return None if key is None else tokens_at(view, key, [frame]).get(frame)


def tokens_at(view: "View", key: Key, frames: Sequence[int]) -> dict[int, Tokens]:
    """Return the token vectors in a space of those frames that have any. Raises `Corrupt`."""
    over = gathered(view, key)
    found = {frame: _tokens_in(over[frame], key) for frame in frames if frame in over}
    space = view.vectors.find(key, view.basis)
    if space is None:
        return found
    rows = {frame: space.row_of(frame, view.basis) for frame in frames if frame not in found}
    there = {frame: row for frame, row in rows.items() if row is not None}
    stored = view.stored_tokens(space).rows(space, np.array([*there.values()], np.int64))
    return {**found, **dict(zip(there, stored, strict=True))}


def _tokens_in(data: bytes, key: Key) -> Tokens:
    return cast("Tokens", matrix_of(data, key))
