"""The fold of accesses: how often each frame was shown and used, and when last.

Owns counts by scope and frame. A frame that an event names twice counts once. This fold handles
no frame events, so an id that names no frame gets a row as well; no reader looks it up.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from cerata.engine.events import (
    DEFAULT_SCOPE,
    AccessFrames,
    PutTag,
    RecallContext,
    Scope,
    UseEmbedder,
)

from ..columnar.scopes import by_name, read_scope, scope_text, tenant_in, tenant_key
from ..core.projection import FoldedEvent
from .row_projection import RowProjection

Counts = tuple[int, int, int, int]
"""How often a frame was shown, and when last; how often a frame was used, and when last.

Times are in microseconds since 1970 UTC; 0 means never.
"""

NEVER: Counts = (0, 0, 0, 0)


class Accesses(RowProjection[tuple[int, str], Counts]):
    """Rows of (frame, scope of the events) and `Counts`."""

    name = "access"
    handles = (RecallContext, AccessFrames)

    @cached_property
    def by_frame(self) -> Mapping[int, Sequence[tuple[Scope, Counts]]]:
        """The rows of each frame; only for a state that no longer changes, such as a view's."""
        counts_of: dict[int, list[tuple[Scope, Counts]]] = {}
        scopes: dict[str, Scope] = {}
        for (frame, text), counts in self.rows.range():
            scope = scopes.get(text) or scopes.setdefault(text, read_scope(text))
            counts_of.setdefault(frame, []).append((scope, counts))
        return counts_of

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if not isinstance(body, RecallContext | AccessFrames) or event.scope is None:
                continue
            scope = scope_text(by_name(event.scope))
            for frame in dict.fromkeys(body.frames):
                shows, last_shown, uses, last_used = self.rows.get((frame, scope), NEVER)
                if isinstance(body, RecallContext):
                    shows += 1
                    last_shown = event.recorded
                else:
                    uses += 1
                    last_used = event.recorded
                self.rows[frame, scope] = (shows, last_shown, uses, last_used)


# --- The fold of used embedders: which embedder each tenant's memory uses, and since when ---------
#
# Every event keeps its row, so the rows with a seq up to n are the state as of n: a view of the
# past reads the newest state. Embedders change rarely, so the rows are few.


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


# --- The fold of tags: names for ends of batches, by scope ----------------------------------------
#
# A tag never moves. A store refuses a name that is taken in its scope. No store writes two events
# with the same name and scope; if a log has them, the first holds.


class Tags(RowProjection[tuple[str, str], tuple[int, int]]):
    """Rows by (text of the scope, name): the tagged seq, and the seq of the tag's event."""

    name = "tags"
    version = 2
    handles = (PutTag,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, PutTag) and event.scope is not None:
                key = scope_text(by_name(event.scope)), body.tag
                self.rows.setdefault(key, (body.at, event.seq))
