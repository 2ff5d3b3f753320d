"""The fold of LangGraph's threads: where their checkpoints and writes are in the log.

Values of rows are seqs and run ids, never payloads: a reader takes these from the events. A key
begins with the tenant and the text of the rest of the scope, since a saver reads exactly its scope.
"""

from collections.abc import Sequence
from typing import Final

from cerata.engine.events import Scope
from cerata.projections.columnar.scopes import by_name, scope_text, tenant_of_rows
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.rows.row_projection import Key, RowProjection

from .events import DropCheckpoints, DroppedCheckpoints, PutCheckpoint, PutWrites

CHECKPOINT: Final = 0
WRITES: Final = 1
"""The third item of a key: the kind of the row. On disk: never renumber."""

Realm = tuple[str | int | bytes, str]
"""The first items of a key: a tenant, and the text of the rest of a scope."""


def realm_of(scope: Scope) -> Realm:
    """Return the realm of a scope; different scopes have different realms."""
    return tenant_of_rows(scope), scope_text(by_name(scope)[1:])


class GraphThreads(RowProjection[tuple[Key, ...], tuple[int, str | None] | None]):
    """Rows of checkpoints and of writes.

    - (*realm, `CHECKPOINT`, thread, namespace, checkpoint id): its event's seq, and its run's id.
    - (*realm, `WRITES`, thread, namespace, checkpoint id, seq): None, for each event of writes.
    """

    name = "langgraph"
    handles = (PutCheckpoint, PutWrites, DropCheckpoints)
    tenant_first = True

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            if event.scope is None:
                continue
            realm = realm_of(event.scope)
            body = event.body
            if isinstance(body, PutCheckpoint):
                place = (body.thread, body.ns, body.checkpoint_id)
                self.rows[(*realm, CHECKPOINT, *place)] = (event.seq, body.run_id)
            elif isinstance(body, PutWrites):
                place = (body.thread, body.ns, body.checkpoint_id)
                self.rows[(*realm, WRITES, *place, event.seq)] = None
            elif isinstance(body, DropCheckpoints):
                for dropped in body.dropped:
                    self._drop(realm, dropped)

    def _drop(self, realm: Realm, dropped: DroppedCheckpoints) -> None:
        ns, checkpoint_id = dropped.ns, dropped.checkpoint_id
        place: tuple[Key, ...] = (dropped.thread,)
        if ns is not None:
            place = (*place, ns) if checkpoint_id is None else (*place, ns, checkpoint_id)
        for kind in (CHECKPOINT, WRITES):
            for key, _ in self.rows.range(prefix=(*realm, kind, *place)):
                if checkpoint_id is None or key[5] == checkpoint_id:
                    del self.rows[key]
