"""The embedder in use while a store writes: the newest of each tenant, and the event that names it.

Owns the draft of a `useEmbedder` event, the drafts that a batch with first vectors gets at its end,
and the state of the newest events, which later writes of this store need not fold again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.events import (
    DEFAULT_SCOPE,
    Draft,
    Embedding,
    PutEmbedding,
    PutFrame,
    Scope,
    UseEmbedder,
)
from cerata.engine.late import late
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.projections.columnar.scopes import tenant_in
from cerata.projections.rows.built_in import Used, UsedEmbedders

if TYPE_CHECKING:
    from cerata.engine.head import Appended
    from cerata.replay.fold import Fold
    from cerata.retrieval.embedders import built_in
    from cerata.retrieval.embedders.embedder import Embedder
else:
    built_in = late("cerata.retrieval.embedders.built_in")


class EmbedderUse:
    """The embedders in use, folded through at least an event; all calls of a store share this."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        # `Fold.replaced`, the last covered event, and the state there.
        self._state: tuple[int, int, UsedEmbedders] | None = None

    def used(self, scope: Scope | None, through: int) -> Used | None:
        """Return the embedder of a scope's tenant as of an event.

        Cost: folds the events that other writers appended since the last call.
        """
        return self._through(through).newest(scope, through)

    def are_any(self, through: int) -> bool:
        """Return whether any tenant has used an embedder until an event."""
        return bool(self._through(through).rows)

    def scopes(self, scope: Scope | None, through: int) -> list[Scope]:
        """Return a scope of each tenant that a change of the embedder concerns: the store's own.

        Without a scope: the tenant "default", and each tenant that uses an embedder.
        """
        if scope is not None:
            return [scope]
        tenants = self._through(through).tenants()
        scopes: list[Scope] = [(("tenant", msgspec.json.decode(text)),) for text in tenants]
        return [DEFAULT_SCOPE, *(scope for scope in scopes if scope != DEFAULT_SCOPE)]

    def note_appended(self, drafts: Sequence[Draft], appended: Appended) -> None:
        """Note that a batch of this store is in the log; one that names no embedder is covered."""
        state = self._state
        if state is None or state[1] != appended.first_seq - 1:
            return
        for draft in drafts:
            if type(draft.body) is UseEmbedder:
                return
        self._state = state[0], appended.last_seq, state[2]

    def _through(self, seq: int) -> UsedEmbedders:
        replaced, state = self._fold.replaced, self._state
        if state is None or state[0] != replaced or state[1] < seq:
            try:
                used = self._fold.embedders(seq)
            except Corrupt:
                # Writes go on over damage, which each read reports; a text gets no vector then.
                used = UsedEmbedders() if state is None else state[2]
            self._state = state = replaced, seq, used
        return state[2]


def use_of(embedder: Embedder, scope: Scope) -> Draft:
    """Return the event that makes an embedder the embedder of a scope's tenant."""
    identity = embedder.identity
    space, tokens_space = built_in.spaces_of(embedder)
    use = UseEmbedder(
        identity=f"{identity.name}@{identity.revision}",
        space=space,
        name=built_in.name_of(embedder),
        tokens_space=tokens_space,
    )
    return Draft(use, scope)


def check_room(events: int, uses: int) -> None:
    """Refuse a batch that has no place for the events that record its embedder.

    Raises:
        InvalidInput: the batch would be too large.
    """
    if events <= BATCH_EVENTS_MAX < events + uses:
        raise InvalidInput(
            f"A batch of {events:,} events with first vectors is full, "
            "and has no place for the event that records their embedder",
            remedy="Write one of the texts first, by a call of its own.",
        )


def has_vectors(drafts: Sequence[Draft]) -> bool:
    """Return whether any of the drafts has a vector."""
    for draft in drafts:
        body = draft.body
        if type(body) is PutFrame and body.embedding is None and body.token_embedding is None:
            continue
        if isinstance(body, PutFrame | PutEmbedding) and _spaces(draft):
            return True
    return False


def embedded_in(drafts: Sequence[Draft], space: str) -> list[Draft]:
    """Return the first draft of each tenant with a vector in a space."""
    embedded = [draft for draft in drafts if space in _spaces(draft)]
    return [*{tenant_in(draft.scope): draft for draft in reversed(embedded)}.values()][::-1]


def _spaces(draft: Draft) -> list[str]:
    body = draft.body
    embeddings = body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ()
    # The checks of the batch come later and refuse a value that is no Embedding.
    return [embedding.space for embedding in embeddings if isinstance(embedding, Embedding)]
