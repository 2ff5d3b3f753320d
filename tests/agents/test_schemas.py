"""Slots that a program does not declare: the log's declaration, and its JSON Schema."""

import socket
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import cerata
from cerata import (
    Agent,
    Conflict,
    Corrupt,
    InvalidInput,
    MemorySpec,
    NotFound,
    Store,
    Unsupported,
    semantic_memory,
)
from cerata.agents import schemas
from cerata.agents.slots.events import PutSlot


class Place(msgspec.Struct):
    city: str


class Note(msgspec.Struct, frozen=True):
    summary: str
    confidence: float
    places: list[Place] = []


class Longer(msgspec.Struct, frozen=True):
    summary: str
    confidence: float
    source: str


MEMORY = {
    "prefs": MemorySpec(scope="user_id"),
    "notes": semantic_memory("user_id", schema=Note),
}


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        Agent(opened, "analyst", memory=MEMORY)
        yield opened


def test_a_slot_of_the_log_needs_no_declaration(store: Store) -> None:
    """Before, a program had to declare each slot that it read."""
    seq = store.head.seq
    agent = Agent(store, "analyst")
    agent.slot("prefs", user_id="u1").set("risk", 3)
    assert Agent(store, "analyst").slot("prefs", user_id="u1").get("risk") == 3
    assert store.head.seq == seq + 1
    with pytest.raises(NotFound, match="Did you mean 'prefs'"):
        agent.slot("pref")
    with pytest.raises(InvalidInput, match="needs a value of 'user_id'"):
        agent.slot("prefs")


def test_the_schema_in_the_log_is_enforced_without_its_class(store: Store) -> None:
    notes = Agent(store, "analyst").slot("notes", user_id="u1")
    notes.append({"summary": "prefers bonds", "confidence": 0.9, "places": [{"city": "Bern"}]})
    seq = store.head.seq
    refused: list[tuple[Any, str]] = [
        ({"summary": "x"}, "'confidence' is a required property"),
        ({"summary": 1, "confidence": 0.5}, "$.summary"),
        ({"summary": "x", "confidence": 1, "places": [{"city": 1}]}, "$.places[0].city"),
        ("text", "is not of type 'object'"),
        (None, "is not of type 'object'"),
    ]
    for value, message in refused:
        with pytest.raises(InvalidInput) as caught:
            notes.append(value)
        assert message in str(caught.value)
    assert store.head.seq == seq
    [item] = Agent(store, "analyst", memory=MEMORY).slot("notes", user_id="u1").items()
    assert item.value == Note("prefers bonds", 0.9, [Place("Bern")])
    assert item.schema_version == 1
    assert notes.items()[0].value["summary"] == "prefers bonds"


def test_a_missing_extra_refuses_the_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    seq = store.head.seq
    with pytest.raises(Unsupported, match=r"'\.\[schemas\]'"):
        Agent(store, "analyst").slot("notes", user_id="u1").append({})
    assert store.head.seq == seq


def declare(store: Store, schema: str) -> cerata.Slot:
    spec = '{"schema_version":1,"tier":"episodic","ttl":null,"type":"dict"}'
    store.append(PutSlot(agent="bot", slot="s", spec=spec, schema=schema))
    return Agent(store, "bot").slot("s")


def test_a_schema_of_another_program_fetches_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a schema opened a connection")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for target in ("http://example.org/x.json", "file:///etc/passwd"):
        slot = declare(store, f'{{"$ref":"{target}"}}')
        with pytest.raises(Corrupt, match="cannot be used"):
            slot.set("a", 1)


@pytest.mark.parametrize(
    "schema",
    ["{", "[]", '{"type":"nonsense"}', '{"$ref":"#/none"}', "{}{}", '{"allOf":[{"$ref":"#"}]}'],
)
def test_a_schema_that_cannot_be_used_refuses_the_write(store: Store, schema: str) -> None:
    slot = declare(store, schema)
    seq = store.head.seq
    with pytest.raises(Corrupt, match="cannot be used"):
        slot.set("a", 1)
    assert store.head.seq == seq


def test_a_schema_leaves_only_with_a_higher_version(store: Store) -> None:
    """A declaration without the schema would let every value pass."""
    without = {"notes": semantic_memory("user_id")}
    with pytest.raises(Conflict, match="schema of the slot 'notes' changed"):
        Agent(store, "analyst", memory=without)
    older = {"notes": semantic_memory("user_id", schema=Longer, schema_version=1)}
    with pytest.raises(Conflict, match="schema of the slot 'notes' changed"):
        Agent(store, "analyst", memory=older)
    newer = {"notes": semantic_memory("user_id", schema=Longer, schema_version=2)}
    Agent(store, "analyst", memory=newer)
    with pytest.raises(Conflict, match="schema of the slot 'notes' changed"):
        Agent(store, "analyst", memory=MEMORY)


def test_a_schema_takes_bounded_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory from elsewhere may have any regular expression."""
    monkeypatch.setattr(schemas, "_SECONDS_MAX", 1)
    slot = declare(store, '{"pattern": "(a+)+$"}')
    seq = store.head.seq
    with pytest.raises(Corrupt, match="too much time"):
        slot.set("a", "a" * 40 + "b")
    assert store.head.seq == seq
