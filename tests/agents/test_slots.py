"""Slots: typed values by instance, their expiry, caps, schemas and history."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import (
    Agent,
    Conflict,
    InvalidInput,
    MemorySpec,
    NotFound,
    ReadOnly,
    Store,
    UnreadableItem,
    conversation_memory,
    scratchpad,
    semantic_memory,
)
from cerata.agents import slot as slots
from cerata.engine.disk.environment import Environment
from cerata.memory.handles import History

from ..clocks import StandingClock

DAY = 86_400_000_000


class Note(msgspec.Struct, frozen=True):
    summary: str
    confidence: float
    source: str


class OldNote(msgspec.Struct, frozen=True):
    summary: str
    confidence: float


MEMORY: dict[str, MemorySpec] = {
    "prefs": MemorySpec(scope="user_id"),
    "mode": MemorySpec(type="value"),
    "talk": conversation_memory(max_items=3),
    "notes": semantic_memory(scope=["user_id", "portfolio_id"]),
    "state": MemorySpec(tier="session"),
}


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


@pytest.fixture
def agent(store: Store) -> Agent:
    return Agent(store, "analyst", memory=MEMORY)


def values(items: list[slots.SlotItem]) -> list[Any]:
    return [item.value for item in items]


# --- declarations --------------------------------------------------------------------------------


def test_declaring_again_unchanged_writes_nothing(store: Store) -> None:
    Agent(store, "analyst", memory=MEMORY)
    seq = store.head.seq
    assert seq == len(MEMORY)
    Agent(store, "analyst", memory=MEMORY)
    Agent(store, "analyst")
    assert store.head.seq == seq
    Agent(store, "analyst", memory={"prefs": MemorySpec(scope="user_id", ttl="1d")})
    assert store.head.seq == seq + 1
    assert {event.type for event in store.log()} == {"putSlot"}


@pytest.mark.parametrize(
    "changed",
    [
        MemorySpec(tier="semantic", type="dict", scope="user_id"),
        MemorySpec(scope=("user_id", "x")),
        MemorySpec(scope="user_id", type="list"),
        MemorySpec(scope="user_id", schema=Note),
    ],
)
def test_a_change_that_stored_values_contradict_is_refused(
    store: Store, changed: MemorySpec
) -> None:
    spec = MemorySpec(scope="user_id", schema=OldNote)
    Agent(store, "analyst", memory={"prefs": spec})
    with pytest.raises(Conflict, match="prefs"):
        Agent(store, "analyst", memory={"prefs": changed})
    assert store.head.seq == 1


def test_a_store_for_reading_declares_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        Agent(store, "analyst", memory={"mode": MEMORY["mode"]}).slot("mode").set("fast")
    with cerata.open(path, mode="r") as store:
        agent = Agent(store, "analyst", memory=MEMORY)
        assert agent.slot("mode").get() == "fast"
        with pytest.raises(ReadOnly):
            agent.slot("mode").set("slow")


def test_a_view_of_the_past_has_the_declarations_of_its_time(store: Store) -> None:
    old = Agent(store, "analyst", memory={"talk": conversation_memory(max_items=5)})
    talk = old.slot("talk", user_id="u1")
    for number in range(5):
        talk.append(number)
    past = store.head.seq
    new = Agent(store, "analyst", memory={"talk": conversation_memory(max_items=2)})
    assert values(new.slot("talk", user_id="u1").items()) == [3, 4]
    assert values(new.at(past).slot("talk", user_id="u1").items()) == [0, 1, 2, 3, 4]
    with pytest.raises(NotFound, match="no slot 'talk'"):
        new.at(0).slot("talk", user_id="u1")


# --- maps, lists and single values ---------------------------------------------------------------


def test_a_map_keeps_the_newest_value_of_each_key(agent: Agent) -> None:
    prefs = agent.slot("prefs", user_id="u1")
    assert prefs.get("risk") is None
    assert prefs.get("risk", 7) == 7
    first = prefs.set("risk", {"level": 3}).id
    prefs.set("risk", {"level": 4})
    prefs.set("a/b", [1, None, "x"])
    assert prefs.get("risk") == {"level": 4}
    assert prefs.keys() == ["a/b", "risk"]
    assert values(prefs.history("risk")) == [{"level": 3}, {"level": 4}]
    assert prefs.history()[0].id == first
    prefs.delete("risk")
    assert prefs.get("risk") is None
    assert prefs.keys() == ["a/b"]
    assert len(prefs.history("risk")) == 2
    with pytest.raises(NotFound, match="no current value 'risk'"):
        prefs.delete("risk")


def test_a_list_keeps_its_newest_items(agent: Agent) -> None:
    talk = agent.slot("talk", user_id="u1")
    for number in range(4):
        talk.append(number)
    # The item and the deletion of the oldest are one batch.
    assert len(talk.append(4).seqs) == 2
    assert values(talk.items()) == [2, 3, 4]
    assert values(talk.last(2)) == [3, 4]
    assert talk.last(0) == []
    assert values(talk.history()) == [0, 1, 2, 3, 4]
    talk.delete(talk.items()[0].id)
    assert values(talk.items()) == [3, 4]
    assert talk.items()[0].key is None


def test_a_single_value(agent: Agent) -> None:
    mode = agent.slot("mode")
    assert mode.get() is None
    mode.set(None)
    assert [item.value for item in mode.items()] == [None]
    mode.set("slow")
    assert (mode.get(), values(mode.history())) == ("slow", [None, "slow"])


BAD: list[tuple[Callable[[Agent], object], str]] = [
    (lambda agent: agent.slot("mode").get("x"), "is a value, and a key is for a dict"),
    (lambda agent: agent.slot("mode").set("x", 1), "is a single value"),
    (lambda agent: agent.slot("mode").append(1), "append\\(\\) is for a list"),
    (lambda agent: agent.slot("mode").keys(), "keys\\(\\) is for a dict"),
    (lambda agent: agent.slot("prefs", user_id="u").get(), "expected a text"),
    (lambda agent: agent.slot("prefs", user_id="u").set("x"), "needs a key and a value"),
    (lambda agent: agent.slot("prefs", user_id="u").set("", 1), "expected a text"),
    (lambda agent: agent.slot("prefs", user_id="u").set("x", {1, 2}), "cannot be recorded"),
    (lambda agent: agent.slot("prefs", user_id="u").set("x", b"x"), "cannot be recorded"),
    (lambda agent: agent.slot("prefs", user_id="u").search("x"), "not searchable"),
    (lambda agent: agent.slot("talk", user_id="u").get(), "is a list"),
    (lambda agent: agent.slot("talk", user_id="u").set("x", 1), "is a list"),
    (lambda agent: agent.slot("prefs"), "needs a value of 'user_id'"),
    (lambda agent: agent.slot("prefs", user_id=""), "needs a value of 'user_id'"),
    (lambda agent: agent.slot("prefs", user_id="u", x=1), "'x' is no dimension"),
    (lambda agent: agent.slot("mode", tenant="acme"), "'tenant' is no dimension"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_a_bad_call_is_refused_and_writes_nothing(
    agent: Agent, call: Callable[[Agent], object], words: str
) -> None:
    seq = agent.store.head.seq
    with pytest.raises(InvalidInput, match=words):
        call(agent)
    assert agent.store.head.seq == seq


def test_an_unknown_slot_names_the_nearest(agent: Agent) -> None:
    with pytest.raises(NotFound, match="Did you mean 'notes'"):
        agent.slot("note")
    with_pad = Agent(agent.store, "analyst", memory={"pad": scratchpad()})
    with pytest.raises(InvalidInput, match="working slot"):
        with_pad.slot("pad")


def test_writes_join_a_transaction(agent: Agent) -> None:
    prefs = agent.slot("prefs", user_id="u1")
    seq = agent.store.head.seq

    def fail() -> None:
        with agent.store.transaction():
            prefs.set("risk", 1)
            assert prefs.get("risk") == 1
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert (prefs.get("risk"), agent.store.head.seq) == (None, seq)
    with agent.store.transaction() as block:
        prefs.set("risk", 1)
        agent.slot("mode").set("fast")
    assert len(block.receipt.seqs) == 2


def test_expect_refuses_what_the_caller_did_not_see(agent: Agent) -> None:
    prefs = agent.slot("prefs", user_id="u1")
    first = prefs.set("risk", 1, expect=0).id
    with pytest.raises(Conflict, match=f"current value is {first}, expected none"):
        prefs.set("risk", 2, expect=0)
    prefs.set("risk", 2, expect=first)
    with pytest.raises(Conflict, match=f"expected {first}"):
        prefs.set("risk", 3, expect=first)
    assert prefs.get("risk") == 2


def test_counters_of_several_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"

    def count(times: int) -> None:
        with cerata.open(path) as store:
            mode = Agent(store, "analyst", memory={"mode": MEMORY["mode"]}).slot("mode")
            for _ in range(times):
                while True:
                    seen = mode.items()
                    value, expect = (seen[-1].value, seen[-1].id) if seen else (0, 0)
                    try:
                        mode.set(value + 1, expect=expect)
                    except Conflict:
                        continue
                    break

    count(1)
    threads = [Thread(target=count, args=(20,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with cerata.open(path) as store:
        assert Agent(store, "analyst", memory={"mode": MEMORY["mode"]}).slot("mode").get() == 61


# --- expiry, schemas, search ---------------------------------------------------------------------


def test_values_end_at_their_expiry() -> None:
    clock = StandingClock(1_700_000_000_000_000)
    with cerata.open(":memory:", environment=replace(Environment(), clock=clock)) as store:
        memory = {"prefs": MemorySpec(ttl="2d"), "talk": conversation_memory("x", ttl="1d")}
        agent = Agent(store, "analyst", memory=memory)
        prefs, talk = agent.slot("prefs"), agent.slot("talk", x=1)
        prefs.set("risk", 1)
        talk.append("hello")
        clock.time_us += DAY
        assert (prefs.get("risk"), talk.items()) == (1, [])
        assert values(talk.history()) == ["hello"]
        clock.time_us += DAY
        assert (prefs.get("risk"), prefs.keys()) == (None, [])
        prefs.set("risk", 2)
        assert values(prefs.history("risk")) == [1, 2]
        past = agent.at(store.head.seq - 2).slot("prefs")
        assert past.get("risk") == 1


def test_a_schema_is_checked_and_lifted(store: Store) -> None:
    memory = {"notes": semantic_memory((), schema=OldNote)}
    old = Agent(store, "analyst", memory=memory).slot("notes")
    old.append(OldNote("prefers bonds", 0.9))
    old.append({"summary": "hates risk", "confidence": 1})
    with pytest.raises(InvalidInput, match="Expected `str`"):
        old.append({"summary": 3, "confidence": 1})

    def lift(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "source": "advisor"}

    spec = semantic_memory((), schema=Note, schema_version=2, upcasters={1: lift})
    new = Agent(store, "analyst", memory={"notes": spec}).slot("notes")
    new.append(Note("likes wax", 0.5, "call"))
    assert values(new.items()) == [
        Note("prefers bonds", 0.9, "advisor"),
        Note("hates risk", 1, "advisor"),
        Note("likes wax", 0.5, "call"),
    ]
    assert [item.schema_version for item in new.items()] == [1, 1, 2]
    assert new.raw(new.items()[0].id) == {"summary": "prefers bonds", "confidence": 0.9}
    newer = "has version 2 of the schema, and this program has 1"
    with pytest.warns(UnreadableItem, match=newer):
        assert len(old.items()) == 2

    def fail(_: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("source")

    for upcasters, words in (
        ({}, "No upcaster lifts version 1"),
        ({1: fail}, "raised KeyError"),
        ({1: dict}, "missing required field `source`"),
    ):
        spec = semantic_memory((), schema=Note, schema_version=2, upcasters=upcasters)
        broken = Agent(store, "analyst", memory={"notes": spec}).slot("notes")
        with pytest.warns(UnreadableItem, match=words):
            assert values(broken.items()) == [Note("likes wax", 0.5, "call")]


def test_search_finds_the_values_of_the_instance_alone(agent: Agent) -> None:
    notes = agent.slot("notes", user_id="u1", portfolio_id="p1")
    other = agent.slot("notes", user_id="u1", portfolio_id="p2")
    for number in range(30):
        other.append(f"bonds bonds {number}")
    notes.append({"summary": "prefers bonds", "weight": 12.5})
    notes.append("Risk is fine.")
    assert [hit.id for hit in notes.search("bonds")] == [notes.items()[0].id]
    assert [hit.id for hit in notes.search("12.5")] == [notes.items()[0].id]
    assert [hit.text for hit in notes.search("risk")] == ["Risk is fine."]
    assert len(agent.store.search("bonds", k=50)) == 31
    assert agent.slot("prefs", user_id="u1").set("bonds", "bonds").added
    assert len(agent.store.search("bonds", k=50)) == 31
    # Another instance with the same text is no reason to leave a value out.
    other.append("Risk is fine.")
    notes.append("Risk is fine.")
    assert len(notes.search("risk")) == 2


# --- isolation -----------------------------------------------------------------------------------


def test_dimensions_come_from_store_session_run_and_call(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    with cerata.open(path, scope={"tenant": "acme", "user_id": "u1"}) as store:
        memory = {
            "notes": MemorySpec(scope=("user_id", "agent", "workflow")),
            "state": MemorySpec(tier="session", scope="desk"),
        }
        agent = Agent(store, "analyst", memory=memory)
        with agent.session("s1", desk="d1") as session, session.run(workflow="daily") as run:
            assert run.slot("notes").scope == {
                "tenant": "acme",
                "user_id": "u1",
                "agent": "analyst",
                "workflow": "daily",
            }
            assert session.slot("state").scope == {
                "tenant": "acme",
                "user_id": "u1",
                "session_id": "s1",
                "desk": "d1",
            }
            run.slot("state").set("k", 1)
            with pytest.raises(InvalidInput, match="sets 'desk' to 'd2', and it is 'd1'"):
                session.slot("state", desk="d2")
            assert session.slot("state", desk="d1").get("k") == 1
        with pytest.raises(InvalidInput, match="sets 'user_id' to 'u2'"):
            agent.slot("notes", user_id="u2", workflow="daily")
        with pytest.raises(InvalidInput, match="needs a value of 'desk'"):
            agent.slot("state", session_id="s1")
        assert agent.slot("state", session_id="s1", desk="d1").get("k") == 1
        with pytest.raises(InvalidInput, match="does not list"):
            Agent(store, "analyst", memory={"wide": MemorySpec()}).slot("wide")


def test_an_instance_of_a_wider_scope_leaves_out_the_narrower(tmp_path: Path) -> None:
    """Both have the same track; the history of the wider raised Corrupt."""
    path = tmp_path / "memory.cera"
    memory = {"state": MemorySpec(tier="session", searchable=True)}
    with cerata.open(path, scope={"tenant": "a"}) as wide:
        with cerata.open(path, scope={"tenant": "a", "user_id": "u1"}) as narrow:
            inner = Agent(narrow, "analyst", memory=memory).slot("state", session_id="s1")
            inner.set("k", "inner")
            assert values(inner.history()) == ["inner"]
        outer = Agent(wide, "analyst", memory=memory).slot("state", session_id="s1")
        outer.set("k", "outer")
        assert values(outer.history()) == values(outer.items()) == ["outer"]
        assert [hit.text for hit in outer.search("inner OR outer", k=1)] == ["outer"]


def test_a_read_is_of_one_state(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame came from a view of its own: a write between two of them mixed two states."""
    talk, prefs = agent.slot("talk", user_id="u1"), agent.slot("prefs", user_id="u1")
    for number in range(3):
        talk.append(number)
    prefs.set("risk", 1)
    views: list[object] = []
    made = History.view

    def counted(store: Store) -> cerata.View:
        views.append(store)
        return made(store.history)

    for slot in (talk, prefs):
        monkeypatch.setattr(slot, "_view", lambda: counted(agent.store))
    for read in (talk.items, talk.history, lambda: talk.last(2), prefs.keys, prefs.items):
        read()
        assert len(views) == 1
        views.clear()
    assert (prefs.get("risk"), prefs.raw("risk"), len(views)) == (1, 1, 2)


def test_a_reference_is_kept_beyond_its_run(agent: Agent) -> None:
    with agent.run() as run:
        ref = run.put("total", {"sum": 3}).ref
        assert ref is not None
        run.keep(ref, "prefs", "total", user_id="u1")
        run.keep(f"{ref}#/sum", "mode")
        run.keep(ref, "talk", user_id="u1")
    assert agent.slot("prefs", user_id="u1").get("total") == {"sum": 3}
    assert agent.slot("mode").get() == 3
    assert values(agent.slot("talk", user_id="u1").items()) == [{"sum": 3}]


NAMES = st.sampled_from(["a", "b", "a/b", "a:b", "u", "u:a", "%", "_", "."])
VALUES = st.sampled_from(["x", "x:1", "1", 1, True, "P", "P:1", ":", "_unknown"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["analyst", "analyst.a", "clerk"]),
            st.sampled_from(["s", "s.a", "t"]),
            st.sampled_from(["dict", "list", "value"]),
            st.dictionaries(st.sampled_from(["p", "q", "r"]), VALUES, max_size=2),
            NAMES,
        ),
        min_size=2,
        max_size=8,
    )
)
def test_two_instances_share_no_value(
    cases: list[tuple[str, str, str, dict[str, Any], str]],
) -> None:
    """A joined text of scope names would alias "u:P" + "1" with "u" + "P:1"."""
    expected: dict[Any, list[Any]] = {}
    made: dict[Any, slots.Slot] = {}
    with cerata.open(":memory:") as store:
        for number, (name, slot, kind, scope, key) in enumerate(cases):
            # The type and the dimensions are fixed for a slot, so they are a part of its name.
            label = f"{slot}.{kind}.{'.'.join(sorted(scope))}"
            spec = MemorySpec(type=kind, scope=tuple(sorted(scope)))
            found = Agent(store, name, memory={label: spec}).slot(label, **scope)
            typed = tuple((k, type(v).__name__, v) for k, v in sorted(scope.items()))
            instance = name, label, typed
            made[instance] = found
            kept = expected.setdefault(instance, [])
            if kind == "list":
                found.append(number)
                kept.append(("", number))
            else:
                key = key if kind == "dict" else ""
                found.set(key, number) if kind == "dict" else found.set(number)
                kept[:] = [pair for pair in kept if pair[0] != key] + [(key, number)]
        for instance, found in made.items():
            items = [(item.key or "", item.value) for item in found.items()]
            assert items == expected[instance]


# --- the past ------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("sadx"), st.sampled_from("ab")), max_size=14))
def test_reads_as_of_n_equal_those_of_a_store_that_stopped_there(
    acts: list[tuple[str, str]],
) -> None:
    """With expiry, eviction and deletion; `now` of the past is the recorded time of its event."""
    clock = StandingClock(1_700_000_000_000_000)
    memory: Mapping[str, MemorySpec] = {
        "map": MemorySpec(ttl="3s"),
        "list": MemorySpec(type="list", max_items=2, ttl="5s"),
    }
    states: list[tuple[int, object]] = []

    def state(agent: Agent) -> object:
        map_, list_ = agent.slot("map"), agent.slot("list")
        return map_.items(), map_.history(), map_.keys(), list_.items(), list_.history()

    with cerata.open(":memory:", environment=replace(Environment(), clock=clock)) as store:
        agent = Agent(store, "analyst", memory=memory)
        for number, (act, key) in enumerate(acts):
            clock.time_us += 1_000_000
            if act == "s":
                agent.slot("map").set(key, number)
            elif act == "a":
                agent.slot("list").append(number)
            elif act == "d" and agent.slot("map").get(key) is not None:
                agent.slot("map").delete(key)
            else:
                continue
            states.append((store.head.seq, state(agent)))
        for seq, expected in states:
            assert state(agent.at(seq)) == expected
