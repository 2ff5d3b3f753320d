"""Rules of embedders: the vectors of a batch are of the embedder that its tenant uses.

The embedder runs before the lock, and another writer may record another embedder then. Owns the
check of `ConditionalDraft.embedder`: before the lock against the folded events, and under it
against the events that other writers appended since. Leaves out vectors of the caller, which may
have any space.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cerata.engine.errors import Conflict
from cerata.engine.events import Draft, Event, UseEmbedder
from cerata.projections.columnar.scopes import tenant_in

from .conditional_draft import ConditionalDraft, Spaces
from .rule import Rule, State, conditional_of

if TYPE_CHECKING:
    from cerata.engine.log import Validate

    from .embedder_use import EmbedderUse


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
