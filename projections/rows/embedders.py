"""The fold of used embedders: which embedder each tenant's memory uses, and since when.

Every event keeps its row, so the rows with a seq up to n are the state as of n: a view of the past
reads the newest state. Embedders change rarely, so the rows are few.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cerata.engine.events import DEFAULT_SCOPE, Scope, UseEmbedder

from ..columnar.scopes import tenant_in, tenant_key
from ..core.projection import FoldedEvent
from .row_projection import RowProjection

UseRow = tuple[str | None, str, str, str | None]
"""The name of a built-in embedder or None, the identity, the space, and the space of tokens."""


class Used(NamedTuple):
    """An embedder that a memory uses, and the event that records the use."""

    seq: int
    name: str | None
    identity: str
    space: str
    tokens_space: str | None

    @property
    def spaces(self) -> tuple[str, str | None]:
        """The space of the vectors, and that of the token vectors."""
        return self.space, self.tokens_space


class UsedEmbedders(RowProjection[tuple[str, int], UseRow]):
    """Rows of (tenant, seq) and `UseRow`."""

    name = "embedders"
    handles = (UseEmbedder,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, UseEmbedder) and event.scope is not None:
                row = body.name, body.identity, body.space, body.tokens_space
                self.rows[tenant_in(event.scope), event.seq] = row

    def newest(self, scope: Scope | None, through: int) -> Used | None:
        """Return the embedder in use at an event, or None.

        Without a tenant in the scope: that of the tenant "default", else the newest of any.

        Args:
            scope: The scope of a read or write; None admits all tenants.
            through: The last event that counts.
        """
        if not self.rows:
            # Each put asks; a memory without an embedder answers at once.
            return None
        tenant = dict(scope or ()).get("tenant")
        if tenant is not None:
            return self._newest(tenant_key(tenant), through)
        return self._newest(tenant_in(DEFAULT_SCOPE), through) or self._newest(None, through)

    def tenants(self) -> list[str]:
        """Return the `tenant_key` of each tenant with an embedder."""
        return sorted({tenant for tenant, _ in self.rows})

    def _newest(self, tenant: str | None, through: int) -> Used | None:
        uses = [
            Used(seq, *row)
            for (of, seq), row in self.rows.items()
            if seq <= through and tenant in (None, of)
        ]
        return max(uses, key=lambda use: use.seq, default=None)
