"""The fold that knows tags: names for ends of batches, by tenant.

A tag is never moved or taken off, and a name is never used again within a tenant: of two events
with one name, which no store writes, the first holds.
"""

from collections.abc import Sequence

import msgspec

from cerata.engine.events import PutTag, ScopeValue

from .projection import FoldedEvent
from .rows import RowProjection


class Tags(RowProjection[tuple[str, str], int]):
    """Rows of (tenant, name) and the seq that the name stands for."""

    name = "tags"
    handles = (PutTag,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, PutTag) and event.scope is not None:
                tenant = dict(event.scope).get("tenant", "")
                self.rows.setdefault((tenant_key(tenant), body.tag), body.at)


def tenant_key(tenant: ScopeValue) -> str:
    """Return a tenant as text, by which 1, "1" and True differ."""
    return msgspec.json.encode(tenant).decode()
