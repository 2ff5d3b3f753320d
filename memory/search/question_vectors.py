"""The vectors of a question as an event stores them, and a request with them.

A recorded question can be put again without its embedder: by the stored vectors, or by words alone
if it had none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from cerata.engine.late import late

from ..values.vector_trust import VectorTrust
from .lanes import TextLane, vector_lanes_of

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot
    from . import space_lane as space_lanes
    from .late_lane import LateLane
    from .request import SearchRequest
    from .vector_lane import VectorLane
else:
    # The lanes of vectors are loaded with the first question that has any.
    space_lanes = late("cerata.memory.search.space_lane")


class Stored(Protocol):
    """An event, or a value, with the vectors of a question; see `RecallContext`."""

    @property
    def space(self) -> str | None: ...
    @property
    def vector(self) -> bytes | None: ...
    @property
    def tokens_space(self) -> str | None: ...
    @property
    def tokens(self) -> bytes | None: ...
    @property
    def token_weights(self) -> bytes | None: ...
    @property
    def trust(self) -> float: ...
    @property
    def vector_weight(self) -> float: ...


class QuestionVectors(msgspec.Struct, frozen=True):
    """The vectors of a question: bytes, little-endian, and how far they count: `RecallContext`."""

    space: str | None = None
    vector: bytes | None = None
    tokens_space: str | None = None
    tokens: bytes | None = None
    token_weights: bytes | None = None
    trust: float = 1.0
    vector_weight: float = 1.0


def stored_vectors(
    vectors: VectorLane | None, tokens: LateLane | None, trust: VectorTrust | None
) -> QuestionVectors:
    """Return the vectors of two lanes, and how far they count; ``trust`` is None if wholly."""
    trust = VectorTrust() if trust is None else trust
    weights = None if tokens is None or tokens.weights is None else tokens.weights.astype("<f8")
    return QuestionVectors(
        space=None if vectors is None else vectors.key[0],
        vector=None if vectors is None else vectors.query.astype("<f4").tobytes(),
        tokens_space=None if tokens is None else tokens.key[0],
        tokens=None if tokens is None else tokens.tokens.tobytes(),
        token_weights=None if weights is None else weights.tobytes(),
        trust=trust.trust,
        vector_weight=trust.weight,
    )


def vectors_of_question(snapshot: Snapshot, request: SearchRequest) -> QuestionVectors:
    """Return the vectors of a question, by the store's embedder.

    Raises:
        EmbedderFailed: the embedder could not embed the question.
    """
    text = TextLane(snapshot, request.tree)
    vectors, tokens, trust = vector_lanes_of(snapshot, request, text)
    if vectors is None and tokens is None:
        return QuestionVectors()
    return stored_vectors(vectors, tokens, trust)


def with_vectors(snapshot: Snapshot, request: SearchRequest, stored: Stored) -> SearchRequest:
    """Return a request with stored vectors; without any, the request is by words alone."""
    if stored.vector is None and stored.tokens is None:
        return replace(request, mode="text")
    request = replace(request, trust=VectorTrust(stored.trust, stored.vector_weight))
    if stored.vector is not None:
        vector = np.frombuffer(stored.vector, "<f4")
        request = replace(request, embedding=vector, space=stored.space)
    if stored.tokens is None:
        return request
    sizes = {name: dimension for name, _, dimension in space_lanes.keys_of(snapshot, tokens=True)}
    dimension = sizes.get(stored.tokens_space or "")
    if dimension is None:
        return request
    weights = stored.token_weights
    return replace(
        request,
        token_embedding=np.frombuffer(stored.tokens, np.int8).reshape(-1, dimension),
        tokens_space=stored.tokens_space,
        token_weights=None if weights is None else np.frombuffer(weights, "<f8"),
    )
