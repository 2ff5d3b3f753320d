"""Rules: the vectors of a space have one dtype and dimension.

Owns the checks of a batch: before the lock against the folded events, and under the lock against
the events that other writers appended since.
"""

from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import TypeAlias

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    Draft,
    Embedding,
    Erased,
    Event,
    EventBody,
    PutEmbedding,
    PutFrame,
    Scope,
)
from cerata.engine.log import Log
from cerata.projections.frames.reader import Frames

from ..values.arguments import realm

Shape: TypeAlias = tuple[str, int]
"""The dtype and dimension of all vectors of a space."""
SpaceName: TypeAlias = tuple[str, str]
"""A space: the realm of its frames, and its name; two tenants may use the same name."""


class Spaces:
    """The embeddings of a batch, put through a store of the scope ``within``.

    ``shapes`` has the spaces of earlier drafts; those of the batch are added.
    """

    def __init__(
        self,
        drafts: Sequence[Draft],
        within: Scope | None,
        shapes: MutableMapping[SpaceName, Shape] | None = None,
    ) -> None:
        self._within = within
        self.shapes: MutableMapping[SpaceName, Shape] = {} if shapes is None else shapes
        for draft in drafts:
            self._check(draft.body, realm(draft.scope, within))

    def __bool__(self) -> bool:
        return bool(self.shapes)

    def check(self, log: Log, frames: Frames, n: int) -> None:
        """Refuse vectors of another shape than the first vector of their space by event ``n``.

        Raises:
            InvalidInput: with the space and both shapes.
        """
        for place, space in list(self.shapes):
            seq = frames.first_embedding(space, partial(self._is_in, place))
            if seq is not None and seq <= n:
                self._check(log.event(seq).body, place)

    def check_delta(self, delta: Sequence[Event]) -> None:
        """Refuse vectors of another shape than those of events after the folded events."""
        for event in delta:
            if event.scope is not None:
                self._check(event.body, realm(event.scope, self._within))

    def _is_in(self, place: str, scope: Scope) -> bool:
        return realm(scope, self._within) == place

    def _check(self, body: EventBody | Erased, place: str | None) -> None:
        if place is None:
            return
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            self._check_shape(embedding, place)

    def _check_shape(self, embedding: object, place: str) -> None:
        if not isinstance(embedding, Embedding):
            return
        shape = embedding.dtype, embedding.dimension
        of_space = self.shapes.setdefault((place, embedding.space), shape)
        if of_space != shape:
            raise InvalidInput(
                f"The space {embedding.space!r} has vectors of {shape[1]:,} dimensions "
                f"({shape[0]}) and of {of_space[1]:,} ({of_space[0]})",
                remedy="Pass another name in space= for vectors of another embedder.",
            )
