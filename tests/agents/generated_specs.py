"""Generated specs: no two instances of slots share a value, for any specs and scopes.

``python -m tests.agents.generated_specs 10000`` draws sets of specs, scopes and values, writes
through the instances of each set in a drawn order, and compares every read of every instance with a
model: a map from the agent, the slot and exactly the scope to values.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import cerata
from cerata import Agent, MemorySpec, Store
from cerata.agents.slot import Slot
from cerata.engine.events import ScopeValue

AGENTS = ("a", "a.b", "b")
SLOTS = ("s", "b.s", "s.b", "a")
NAMES = ("user_id", "user", "id", "region", "tenant.id")
ALIKE: tuple[tuple[ScopeValue, ...], ...] = (
    ("1", 1, True, "true", "True"),
    ("0", 0, False, "null", " "),
    ("u", "U", "u#", "u/1", '"u"', "id=u"),
    ("u:1", "u", "1", ":", "u:1:1"),
    ("ü", "u\u0308", "u", "\0"),
    (2**62, -(2**62), str(2**62)),
)
"""Values of scopes; a set has values of one row, many of which are equal as text."""
TENANTS = ("t", "t/1", "1")
KEYS = ("k", "k/1", "k#", "#", "1", "K", "k ", "s/k")
WRITES = 10

Key = tuple[str, str, tuple[tuple[str, str, ScopeValue], ...]]
"""An agent, a slot, and a scope by name with the types of its values."""


@dataclass
class Counts:
    """The sets, instances, writes and reads of a run, and a line for each fault."""

    sets: int = 0
    instances: int = 0
    writes: int = 0
    reads: int = 0
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"{self.sets:,} sets of specs: {self.instances:,} instances, {self.writes:,} writes, "
            f"{self.reads:,} reads, {len(self.faults):,} faults"
        )


class Model:
    """The values that an instance must have: by key, or in order."""

    def __init__(self, spec: MemorySpec) -> None:
        self.spec = spec
        self.written: list[object] = []
        self.current: dict[str | None, object] = {}
        self.ids: set[int] = set()

    def write(self, slot: Slot, drawn: Random, mark: object) -> None:
        if self.spec.type == "list":
            receipt = slot.append(mark)
            self.current[f"{len(self.written)}"] = mark
            for old in list(self.current)[: -(self.spec.max_items or 1_000)]:
                del self.current[old]
        elif self.spec.type == "value":
            receipt = slot.set(mark)
            self.current[None] = mark
        else:
            key = drawn.choice(KEYS)
            if key in self.current and drawn.random() < 0.2:
                slot.delete(key)
                del self.current[key]
                return
            receipt = slot.set(key, mark)
            self.current[key] = mark
        self.ids.add(receipt.id)
        self.written.append(mark)

    def reads(self, slot: Slot) -> list[tuple[str, object, object]]:
        """Return each read of an instance, its answer, and the answer that is due."""
        values, history = list(self.current.values()), slot.history()
        answers: dict[str, tuple[object, object]] = {
            "items": (_sorted(item.value for item in slot.items()), _sorted(values)),
            "history": ([item.value for item in history], self.written),
            "ids": ({item.id for item in history}, self.ids),
        }
        if self.spec.type == "dict":
            answers["keys"] = slot.keys(), sorted(self.current, key=str)
            for key in KEYS:
                answers[f"get {key!r}"] = slot.get(key), self.current.get(key)
        elif self.spec.type == "value":
            answers["get"] = slot.get(), self.current.get(None)
        else:
            answers["last"] = [item.value for item in slot.last(3)], values[-3:]
        if slot.spec.searchable and len(self.written) > 1:
            foreign = {hit.id for hit in slot.search("mark", k=50)} - self.ids
            answers["search"] = foreign, set[int]()
        return [(name, *pair) for name, pair in answers.items()]


def _sorted(values: Any) -> list[object]:
    return sorted(values, key=str)


class World:
    """A store with agents and specs that are drawn."""

    def __init__(self, store: Store, drawn: Random) -> None:
        self.drawn = drawn
        self.specs = {
            (agent, slot): self._spec()
            for agent in drawn.sample(AGENTS, 2)
            for slot in drawn.sample(SLOTS, 2)
        }
        self.values = drawn.choice(ALIKE)
        self.agents: dict[tuple[str, str], Agent] = {}
        for tenant in drawn.sample(TENANTS, 2):
            owned = store.scoped({"tenant": tenant})
            for name in {agent for agent, _ in self.specs}:
                memory = {slot: spec for (of, slot), spec in self.specs.items() if of == name}
                self.agents[tenant, name] = Agent(owned, name, memory=memory)
        self.models: dict[Key, Model] = {}
        self.handles: dict[Key, tuple[Agent, str, dict[str, ScopeValue]]] = {}

    def _spec(self) -> MemorySpec:
        drawn = self.drawn
        tier = drawn.choice(("session", "episodic", "semantic"))
        kind = drawn.choice(("dict", "dict", "list", "value"))
        return MemorySpec(
            tier=tier,
            scope=tuple(drawn.sample(NAMES, drawn.randrange(4))),
            type=kind,
            ttl=drawn.choice((None, "30d")),
            max_items=drawn.choice((None, 2)) if kind == "list" else None,
            searchable=drawn.choice((None, True)),
        )

    def instance(self) -> Key:
        """Draw an instance, new or known."""
        if self.handles and self.drawn.random() < 0.4:
            return self.drawn.choice([*self.handles])
        (tenant, name), agent = self.drawn.choice([*self.agents.items()])
        slot = self.drawn.choice([slot for of, slot in self.specs if of == name])
        spec = self.specs[name, slot]
        names = [*spec.scope, *(["session_id"] if spec.tier == "session" else [])]
        scope = {each: self.drawn.choice(self.values) for each in names}
        full: dict[str, ScopeValue] = {"tenant": tenant, **scope}
        typed = tuple(sorted((each, type(value).__name__, value) for each, value in full.items()))
        key = (name, slot, typed)
        self.handles[key] = agent, slot, scope
        self.models.setdefault(key, Model(spec))
        return key

    def slot(self, key: Key) -> Slot:
        """Return a new handle, with the names of the scope in a drawn order."""
        agent, slot, scope = self.handles[key]
        names = self.drawn.sample([*scope], len(scope))
        return agent.slot(slot, **{name: scope[name] for name in names})


def check_set(number: int, counts: Counts) -> None:
    """Draw a set, write through its instances, and count every read that differs."""
    drawn = Random(number)
    with cerata.open(":memory:") as store:
        world = World(store, drawn)
        for write in range(WRITES):
            key = world.instance()
            world.models[key].write(world.slot(key), drawn, f"mark {write} of {number}")
        counts.sets += 1
        counts.writes += WRITES
        counts.instances += len(world.models)
        earlier = set[int]()
        for key, model in world.models.items():
            reads = model.reads(world.slot(key))
            counts.reads += len(reads)
            faults = [f"{name}: {got}, not {due}" for name, got, due in reads if got != due]
            faults += ["a shared id"] * bool(earlier & model.ids)
            earlier |= model.ids
            counts.faults += [f"set {number}, {key}: {fault}" for fault in faults]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Draw specs, scopes and values.")
    parser.add_argument("sets", type=int)
    parser.add_argument("--first", type=int, default=1, help="the first set's number (1)")
    options = parser.parse_args(arguments)
    counts, started = Counts(), time.monotonic()
    for number in range(options.first, options.first + options.sets):
        check_set(number, counts)
    sys.stdout.write(f"{counts} ({time.monotonic() - started:.0f} s)\n")
    for fault in counts.faults[:20]:
        sys.stdout.write(f"  {fault}\n")
    return 1 if counts.faults else 0


if __name__ == "__main__":
    sys.exit(main())
