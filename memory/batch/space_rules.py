"""Rules: the vectors of a space have one dtype and dimension.

Owns the checks of a batch: before the lock against the folded events, and under the lock against
the events that other writers appended since.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

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

from ..values.arguments import realm
from .rule import Rule, State

if TYPE_CHECKING:
    from cerata.engine.log import Validate
    from cerata.projections.columnar.scopes import Reach
    from cerata.replay.fold import Fold

Shape: TypeAlias = tuple[str, int]
"""The dtype and dimension of all vectors of a space."""
SpaceName: TypeAlias = tuple[str, str]
"""A space: the realm of its frames, and its name; two tenants may use the same name."""
LogShapes: TypeAlias = dict[SpaceName, tuple[int, Shape]]
"""Shapes that the log has, with `Fold.replaced`: an erasure may leave a space without vectors."""


_EMBEDDED: Final = (PutFrame, PutEmbedding)


class SpaceRules(Rule):
    """The embeddings of a batch, put through a store of a reach."""

    def __init__(self, reach: Reach | None, fold: Fold, log_shapes: LogShapes) -> None:
        self._reach = reach
        self._fold = fold
        self._log_shapes = log_shapes
        self._earlier_shapes: dict[SpaceName, Shape] = {}
        """The shapes of earlier calls."""

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._shapes = self._earlier_shapes.copy()
        scope: Scope | None = None
        realm_name: str | None = None
        space: str | None = None
        dtype: str | None = None
        dimension = 0
        for draft in drafts[first - 1 :]:
            body = draft.body
            if not isinstance(body, _EMBEDDED) or (type(body) is PutFrame and not body.embeddings):
                continue
            if draft.scope is not scope:
                # The drafts of a call mostly share one scope object.
                scope = draft.scope
                realm_name = realm(scope, self._reach)
                space = None
            if type(body) is PutFrame and body.token_embedding is None:
                named = body.embedding
                if named is None:
                    continue
                if isinstance(named, Embedding):
                    if (
                        named.space is space
                        and named.dtype is dtype
                        and named.dimension == dimension
                    ):
                        continue
                    space, dtype, dimension = named.space, named.dtype, named.dimension
            self._check(body, realm_name)
        # A shape that the log has once, stays: without erasures no check is due.
        return bool(self._shapes) and not self._log_shapes.items() >= self._marked().items()

    def check(self, state: State) -> Validate:
        frames = state.frames()
        for realm_name, space in list(self._shapes):
            seq = frames.first_embedding(space, partial(self._is_in, realm_name))
            if seq is not None and seq <= state.n:
                self._check(state.log.event(seq).body, realm_name)
        return self._check_delta

    def keep(self) -> None:
        self._earlier_shapes = self._shapes

    def appended(self) -> None:
        if self._shapes:
            self._log_shapes.update(self._marked())

    def _marked(self) -> LogShapes:
        return {space: (self._fold.replaced, shape) for space, shape in self._shapes.items()}

    def _check_delta(self, delta: Sequence[Event]) -> None:
        """Refuse vectors of another shape than those of events after the folded events."""
        for event in delta:
            if event.scope is not None:
                self._check(event.body, realm(event.scope, self._reach))

    def _is_in(self, realm_name: str, scope: Scope) -> bool:
        return realm(scope, self._reach) == realm_name

    def _check(self, body: EventBody | Erased, realm_name: str | None) -> None:
        if realm_name is None:
            return
        for embedding in body.embeddings if isinstance(body, _EMBEDDED) else ():
            self._check_shape(embedding, realm_name)

    def _check_shape(self, embedding: object, realm_name: str) -> None:
        if not isinstance(embedding, Embedding):
            return
        shape = embedding.dtype, embedding.dimension
        of_space = self._shapes.setdefault((realm_name, embedding.space), shape)
        if of_space != shape:
            raise InvalidInput(
                f"The space {embedding.space!r} has vectors of {shape[1]:,} dimensions "
                f"({shape[0]}) and of {of_space[1]:,} ({of_space[0]})",
                remedy="Pass another cerata.Vectors(space=…) for vectors of another embedder.",
            )
