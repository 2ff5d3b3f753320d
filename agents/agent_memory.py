"""The memory of an agent: its declared slots, in the log and as of a view.

Owns the append of declarations, and the choice of an instance. Leaves out the fields (`spec`), the
events (`declarations`) and the values (`slot`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cerata.engine.arguments import expect_string
from cerata.engine.events import DEFAULT_SCOPE, ScopeValue
from cerata.memory.batch.attempts import attempted
from cerata.memory.batch.writer import session_of
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.store import Store
from cerata.memory.view import View

from .declarations import Declaration, Dimensions, Source, new_declarations, slot_named, spec_of
from .slot import Instance, Slot
from .slots.rows import declared_slots
from .spec import MemorySpec


class AgentMemory(NamedTuple):
    """The slots of an agent, by checked specs."""

    agent: str
    version: str
    specs: dict[str, MemorySpec]

    def declare(self, store: Store) -> None:
        """Append the declarations that are new or changed, if the store can be written.

        Raises:
            Conflict: a stored declaration contradicts a spec.
        """
        session = session_of(store)

        def attempt(snapshot: Snapshot) -> None:
            scope = session.scope or DEFAULT_SCOPE
            rows = declared_slots(snapshot.within(scope), self.agent)
            drafts = new_declarations(self.agent, self.specs, rows, scope)
            if drafts and session.log.is_writable:
                session.write(drafts, expect=None if session.in_transaction else snapshot.basis)

        if self.specs:
            attempted(session, attempt, where=f"agent {self.agent!r}")

    def slot(
        self,
        store: Store,
        view: View | None,
        name: str,
        passed: Mapping[str, ScopeValue],
        sources: Sequence[Source],
    ) -> Slot:
        """Return an instance of a slot.

        Args:
            store: The store.
            view: The view that is read; None for the store.
            name: The slot's name.
            passed: The dimensions of the call.
            sources: The dimensions of the session and the run, each with its name.

        Raises:
            NotFound: the agent has no such slot.
            InvalidInput: a dimension is missing, empty, not listed by the slot, or changed.
        """
        expect_string("The name of a slot", name)
        own = {} if view is not None else self.specs
        # A declaration of this program needs no look at the log.
        declared = {name: Declaration(own[name])} if name in own else self.declared(store, view)
        declaration = slot_named(name, declared, self.agent)
        dimensions = Dimensions(store.scope)
        dimensions.add("agent", {"agent": self.agent, "agent_version": self.version})
        for source, values in sources:
            dimensions.add(source, values)
        instance = Instance(self.agent, name, dimensions.scope_of(name, declaration.spec, passed))
        reader = store.history.view if view is None else lambda: view
        return Slot(store, reader, instance, declaration, is_past=view is not None)

    def declared(self, store: Store, view: View | None) -> dict[str, Declaration]:
        """Return the slots of the agent, by name: of this program, and of the log.

        A slot that this program does not declare has the JSON Schema of the log. As of a view, a
        declaration is that of the log, with the schema of this program.
        """
        snapshot = snapshot_of(store if view is None else view)
        slots: dict[str, Declaration] = {}
        for row in declared_slots(snapshot.within(store.scope or DEFAULT_SCOPE), self.agent):
            spec, present = spec_of(row), self.specs.get(row.slot)
            if present is None:
                slots[row.slot] = Declaration(spec, row.schema)
                continue
            spec = replace(
                spec,
                schema=present.schema,
                upcasters=present.upcasters,
                schema_version=present.schema_version,
            )
            slots[row.slot] = Declaration(spec)
        if view is None:
            slots |= {name: Declaration(spec) for name, spec in self.specs.items()}
        return slots
