"""Tenants for the isolation test: who writes into one file, and what each of them writes.

Every owner marks all that it writes with a word of its own. Owners use the same names where two
tenants may: entities, tags, keys, vector spaces (each with another dimension).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import cerata
from cerata import agents
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import Draft, EventBody, Scope, ScopeValue, event

from ...clocks import StandingClock
from ...inside import log_of

Own = dict[str, Any]
"""What the calls of one owner returned, by name."""

SCOPES: Final[Mapping[str, Mapping[str, ScopeValue]]] = {
    "alpha": {"tenant": "tn-alpha"},
    "beta": {"tenant": "tn-beta"},
    "ux": {"tenant": "tn-alpha", "user": "us-x"},
    "uy": {"tenant": "tn-alpha", "user": "us-y"},
    "int": {"tenant": 1},
    "text": {"tenant": "1"},
    "bool": {"tenant": True},
}
SHARED: Final = "ux+"
"""The reader that opens the file with the scope of the owner "ux" and ``shared=True``."""
READERS: Final = (*SCOPES, SHARED)
DIMENSIONS: Final = dict(zip(SCOPES, (2, 3, 5, 7, 4, 6, 9), strict=True))

FILE: Final = "shared.cera"
START: Final = 1_790_000_000_000_000


def in_memory() -> cerata.Environment:
    """Return an environment with files of its own, whose clock stands still."""
    return cerata.Environment(storage=MemoryStorage(), clock=StandingClock(START))


@event("isolationFiller")
class Filler(EventBody, frozen=True, kw_only=True):
    """Takes the place of an event that a reader may not see."""


VOID: Final[Scope] = (("tenant", "void"),)


def owner_of(reader: str) -> str:
    """Return the owner whose scope a reader has."""
    return reader.rstrip("+")


def scope_of(reader: str) -> Mapping[str, ScopeValue]:
    """Return a reader's scope."""
    return SCOPES[owner_of(reader)]


def mark(owner: str) -> str:
    """Return the word that is in all that an owner writes."""
    return f"qz{owner_of(owner)}zq"


@cache
def secrets(reader: str) -> list[str]:
    """Return what a reader must never be shown: the words and scopes of owners outside its own."""
    hidden = [owner for owner in SCOPES if not is_seen(owner, reader)]
    seen = {*scope_of(reader).values(), "tn-alpha" if is_seen("ux", reader) else ""}
    names = {str(one) for owner in hidden for one in SCOPES[owner].values() if one not in seen}
    return [mark(owner) for owner in hidden] + [one for one in names if "-" in one]


def is_seen(owner: str, reader: str) -> bool:
    """Tell whether a reader may see what an owner writes: the rule of scopes, without the code."""
    have = SCOPES[owner]
    for name, value in scope_of(reader).items():
        if name not in have:
            if name == "tenant" or reader != SHARED:
                return False
        elif (type(have[name]), have[name]) != (type(value), value):
            return False
    return True


# --- what each owner writes ----------------------------------------------------------------------


def _frames(store: cerata.Store, m: str, own: Own) -> Iterator[None]:
    size = DIMENSIONS[m[2:-2]]
    own["note"] = store.put_frame(
        f"{m} harbour note: the {m}word lighthouse shines. Ada lives in {m}town.",
        uri=f"file:///home/{m}/note.txt",
        title=f"{m} title",
        role="user",
        tags=[f"{m}tag", "shared"],
        metadata={f"{m}field": f"{m}value"},
        vectors=cerata.Vectors(dense=[1.0] * size, space="shared-space"),
        options=cerata.PutOptions(
            labels=[f"{m}label"], track=f"{m}track", content_dates=["2020-01-01"]
        ),
    )
    yield
    own["late"] = store.put_frame(
        f"{m} late harbour",
        vectors=cerata.Vectors(tokens=[[1] * size] * 2, tokens_space=f"s@1/{size}/maxsim/i1"),
    )
    yield
    own["blob"] = store.put_frame(
        f"{m} bytes".encode(), options=cerata.PutOptions(search_text=f"{m} picture of a harbour")
    )
    yield
    own["mine"] = store.put_frame(
        "the harbour", vectors=cerata.Vectors(dense=[1, 2], space=f"{m}space")
    )
    yield
    text = "\n\n".join(f"## {m} part {n}\n" + f"{m} harbour word{n} " * 150 for n in range(3))
    own["document"] = store.remember(text, uri=f"file:///home/{m}/long.md", title=f"{m} long")
    yield
    own["newer"] = store.supersede(own["note"], f"{m} newer harbour note")
    yield
    own["gone"] = store.put_frame(f"{m} gone")
    store.delete(own["gone"])
    yield
    own["keyed"] = store.put_frame(f"{m} keyed", options=cerata.PutOptions(key="shared-key"))
    yield
    with store.transaction(key="shared-transaction") as block:
        store.put_frame("what all of them put")
    own["block"] = block.receipt
    yield
    own["tagged"] = store.history.tag("shared-tag")
    store.history.tag(f"{m}-release-2026-gold-edition")
    yield
    agents.record_access(store, own["newer"], own["late"])
    if m != mark("alpha"):
        # This owner's context would name the ids of its users' frames, as docs/reliability.md says.
        store.recall(f"{m} harbour", record=True)
    yield


def _facts(store: cerata.Store, m: str, own: Own) -> Iterator[None]:
    store.graph.declare("lives in", functional=True)
    store.graph.name("Ada", kind=f"{m}kind", aliases=[f"{m} alias", "Countess"])
    yield
    own["home"] = store.assert_fact(
        "Ada", "lives in", f"{m}town", valid_from="2019-01-01", evidence=[own["newer"]]
    )
    own["moved"] = store.assert_fact("Ada", "lives in", f"{m}city", valid_from="2021-01-01")
    yield
    own["knows"] = store.assert_fact(
        f"{m} Ada",
        f"{m}knows",
        cerata.Entity(f"{m} Bob"),
        options=cerata.FactOptions(assumptions=[f"{m} assumption"]),
    )
    own["likes"] = store.assert_fact("Ada", "knows", cerata.Entity(f"{m} Bob"))
    yield
    own["wrong"] = store.assert_fact("Ada", "age", 36)
    own["corrected"] = store.correct_fact(own["wrong"], object=37)
    store.retract_fact(store.assert_fact("Ada", "mood", f"{m}mood"))
    yield
    store.assert_fact(f"{m} Robert", "kind of", "person")
    own["merge"] = store.graph.merge(f"{m} Bob", f"{m} Robert")
    own["split"] = store.graph.split("Ada", f"{m} Ada the second", [own["moved"]])
    yield
    own["link"] = store.graph.link(own["home"], "supports", own["knows"])
    own["unlinked"] = store.graph.link(own["likes"], "contradicts", own["home"])
    store.graph.unlink(own["unlinked"])
    own["rests"] = store.graph.link(own["knows"], "depends_on", own["newer"])
    yield
    own["read"] = store.graph.extract(own["note"])
    yield
    own["imported"] = store.interchange.import_facts(_lines())
    yield


@cache
def _lines() -> list[str]:
    with cerata.open(":memory:", environment=in_memory()) as store:
        store.assert_fact("Ada", "born in", "1815")
        return list(store.interchange.export_facts())


def steps(store: cerata.Store, owner: str, own: Own) -> Iterator[None]:
    """Write all that an owner writes, pausing where another may write."""
    yield from _frames(store, mark(owner), own)
    yield from _facts(store, mark(owner), own)


# --- files ---------------------------------------------------------------------------------------


@dataclass
class World:
    """A file in memory, the owners whose events it has, and what their calls returned."""

    environment: cerata.Environment = field(default_factory=in_memory)
    own: dict[str, Own] = field(default_factory=dict[str, Own])
    batches: list[tuple[str, list[int]]] = field(default_factory=list[tuple[str, list[int]]])
    """Who wrote in turn, and how many events each batch had."""

    def copy(self) -> "World":
        """Return a world with a copy of the file."""
        copied = World(own=self.own, batches=self.batches)
        source = self.environment.storage.open(FILE, mode="r")
        copied.environment.storage.create(FILE).write_at(0, source.read_at(0, source.size()))
        return copied

    def open(self, scope: Mapping[str, ScopeValue] | None, **options: Any) -> cerata.Store:
        return cerata.open(FILE, scope=scope, environment=self.environment, **options)

    def open_as(self, reader: str) -> cerata.Store:
        """Open the file as a reader."""
        return self.open(scope_of(reader), options=cerata.OpenOptions(shared=reader == SHARED))

    def _sizes_after(self, store: cerata.Store, seq: int) -> list[int]:
        events = log_of(store).read(seq + 1, store.head.seq)
        return [one.header.count for one in events if one.header.index == 0]


@cache
def whole() -> World:
    """Return a file that all owners wrote in turn."""
    world = World()
    stores = {owner: world.open(scope) for owner, scope in SCOPES.items()}
    world.own = {owner: {} for owner in SCOPES}
    running = {owner: steps(stores[owner], owner, world.own[owner]) for owner in SCOPES}
    with world.open(None) as log:
        while running:
            for owner, writing in list(running.items()):
                before = log.head.seq
                if next(writing, running) is running:
                    del running[owner]
                world.batches.append((owner, world._sizes_after(log, before)))
    for store in stores.values():
        store.close()
    return world


@cache
def alone(reader: str) -> World:
    """Return a file with the events that a reader may see, at the same seqs and times.

    Empty events stand in for those of the other owners.
    """
    all_of, world = whole(), World()
    stores = {owner: world.open(SCOPES[owner]) for owner in SCOPES if is_seen(owner, reader)}
    world.own = {owner: {} for owner in stores}
    running = {owner: steps(stores[owner], owner, world.own[owner]) for owner in stores}
    with world.open(None) as log:
        for owner, sizes in all_of.batches:
            before = log.head.seq
            if owner in running:
                next(running[owner], None)
                assert world._sizes_after(log, before) == sizes
                continue
            for size in sizes:
                log.append(*[Draft(Filler(), VOID)] * size)
    for store in stores.values():
        store.close()
    return world
