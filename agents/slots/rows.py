"""The fold of declared slots: the memory of each agent of a tenant, and since when.

Every event keeps its row, so the rows with a seq up to n are the state as of n: a view of the past
reads the newest state. Declarations are few.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cerata.engine.events import DEFAULT_SCOPE, Scope
from cerata.projections.columnar.scopes import tenant_in
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.rows.row_projection import RowProjection

from .events import PutSlot

if TYPE_CHECKING:
    from cerata.memory.snapshot.snapshot import Snapshot

SlotRow = tuple[str, str | None]
"""The spec and the schema, both JSON."""


class DeclaredSlot(NamedTuple):
    """A slot of an agent, as its newest event declares it."""

    seq: int
    agent: str
    slot: str
    spec: str
    schema: str | None


class Slots(RowProjection[tuple[str, str, str, int], SlotRow]):
    """Rows of (tenant, agent, slot, seq) and `SlotRow`."""

    name = "slots"
    handles = (PutSlot,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, PutSlot) and event.scope is not None:
                key = tenant_in(event.scope), body.agent, body.slot, event.seq
                self.rows[key] = body.spec, body.schema

    def declared(
        self, scope: Scope | None, through: int, agent: str | None = None
    ) -> list[DeclaredSlot]:
        """Return the declared slots of a tenant, in order of agent and slot.

        Args:
            scope: The scope of a read; without a tenant, that of the tenant "default".
            through: The last event that counts.
            agent: The agent; None for all.
        """
        tenant = tenant_in(DEFAULT_SCOPE if scope is None else scope)
        newest: dict[tuple[str, str], DeclaredSlot] = {}
        prefix = (tenant,) if agent is None else (tenant, agent)
        for (_, name, slot, seq), (spec, schema) in self.rows.range(prefix=prefix):
            if seq <= through:
                # Rows are in order of key, so the newest comes last.
                newest[name, slot] = DeclaredSlot(seq, name, slot, spec, schema)
        return list(newest.values())


def declared_slots(snapshot: "Snapshot", agent: str | None = None) -> list[DeclaredSlot]:
    """Return the slots that agents of the tenant declare, as of the basis.

    Args:
        snapshot: The state to read.
        agent: The agent; None for all.
    """
    return snapshot.state(Slots).declared(snapshot.scope, snapshot.end, agent)
