"""Rules: the vectors of a space have one dtype and dimension.

Owns the checks of a batch: before the lock against the folded events, and under the lock against
the events that other writers appended since.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import (
    Draft,
    Embedding,
    Erased,
    Event,
    EventBody,
    PutEmbedding,
    PutFrame,
    Scope,
    UseEmbedder,
)
from cerata.projections.columnar.scopes import tenant_in

from ..values.arguments import realm
from .conditional_draft import ConditionalDraft, Spaces
from .rule import Rule, State, conditional_of

if TYPE_CHECKING:
    from cerata.engine.log import Validate
    from cerata.projections.columnar.scopes import Reach
    from cerata.replay.fold import Fold

    from .embedder_use import EmbedderUse


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


# --- Rules of embedders: the vectors of a batch are of the embedder that its tenant uses ----------
#
# The embedder runs before the lock, and another writer may record another embedder then.


class EmbedderRules(Rule):
    """The embedders of a batch by tenant."""

    kinds = (ConditionalDraft,)

    def __init__(self, uses: EmbedderUse) -> None:
        self._uses = uses

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._spaces = {
            (tenant_in(draft.scope), draft.embedder): draft.scope[:1]
            for draft in conditional_of(drafts[first - 1 :])
            if draft.embedder is not None
        }
        return bool(self._spaces)

    def check(self, state: State) -> Validate:
        newest: dict[str, tuple[int, Spaces]] = {}
        for (tenant, _), scope in self._spaces.items():
            used = self._uses.used(scope, state.n)
            if used is not None:
                newest[tenant] = used.seq, used.spaces
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(self._check_raced, newest)

    def _check_raced(self, newest: dict[str, tuple[int, Spaces]], delta: Sequence[Event]) -> None:
        """Refuse the batch if a tenant uses another embedder.

        Raises:
            Conflict: another writer has recorded the other embedder; ``where`` names the event.
        """
        used = newest | {
            tenant_in(event.scope): (event.seq, (event.body.space, event.body.tokens_space))
            for event in delta
            if isinstance(event.body, UseEmbedder) and event.scope is not None
        }
        for tenant, spaces in self._spaces:
            seq, in_use = used.get(tenant, (0, spaces))
            if in_use != spaces:
                raise Conflict(
                    f"Another writer made {in_use[0]!r} the memory's embedder just before",
                    where=f"event {seq:,}",
                    remedy="Call again; the store then uses this embedder, or asks for it.",
                )
