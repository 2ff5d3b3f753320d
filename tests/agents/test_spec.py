"""Memory specs: every field is honoured or refused at the declaration."""

from typing import Any

import msgspec
import pytest

import cerata
from cerata import Agent, InvalidInput, MemorySpec, conversation_memory, scratchpad, semantic_memory
from cerata.agents.spec import declared, ttl_us, working_slots


class Note(msgspec.Struct, frozen=True):
    summary: str


def test_a_tier_is_a_set_of_defaults() -> None:
    working = declared("pad", scratchpad())
    assert (working.scope, working.ttl, working.type) == (("run_id",), "1h", None)
    assert (working.max_size_mb, working.auto_capture, working.reference_syntax) == (
        *(20, True),
        "$ref",
    )
    session = declared("s", MemorySpec(tier="session"))
    assert (session.scope, session.ttl, session.type) == (("session_id",), "24h", "dict")
    episodic = declared("e", MemorySpec())
    assert (episodic.scope, episodic.ttl, episodic.type, episodic.searchable) == (
        *((), None),
        *("dict", False),
    )
    talk = declared("c", conversation_memory())
    assert (talk.tier, talk.scope, talk.ttl, talk.type, talk.max_items) == (
        *("episodic", ("user_id",)),
        *("30d", "list", 100),
    )
    notes = declared("n", semantic_memory(["tenant", "user_id", "portfolio_id"], schema=Note))
    assert (notes.scope, notes.ttl, notes.type, notes.searchable, notes.schema_version) == (
        *(("user_id", "portfolio_id"), None),
        *("list", True, 1),
    )


def test_a_declaration_checked_again_is_the_same() -> None:
    for spec in (scratchpad(ttl=None), conversation_memory(), MemorySpec(tier="session", ttl=None)):
        assert declared("s", declared("s", spec)) == declared("s", spec)


@pytest.mark.parametrize(
    ("ttl", "seconds"),
    [
        (90, 90),
        ("90", 90),
        ("2s", 2),
        ("3m", 180),
        ("1h", 3600),
        ("30d", 2_592_000),
        ("1w", 604_800),
    ],
)
def test_a_ttl_has_a_unit(ttl: str | int, seconds: int) -> None:
    assert ttl_us(declared("e", MemorySpec(ttl=ttl)).ttl) == seconds * 1_000_000
    assert ttl_us(declared("e", MemorySpec(ttl=None)).ttl) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tier": "bogus"}, "tier is 'bogus'"),
        ({"tier": "episodc"}, "Did you mean 'episodic'"),
        ({"ttl": "5x"}, "ttl is '5x'"),
        ({"ttl": 0}, "ttl is 0"),
        ({"ttl": -1}, "ttl is -1"),
        ({"ttl": True}, "ttl is True"),
        ({"ttl": 1.5}, "ttl is 1.5"),
        ({"type": "set"}, "type is 'set'"),
        ({"scope": ("a", "a")}, "repeats a name"),
        ({"scope": "a b"}, "expected 1 to 100 letters"),
        ({"scope": "run_id"}, "names 'run_id'"),
        ({"max_items": 3}, "bounds lists"),
        ({"type": "list", "max_items": 0}, "max_items is 0"),
        ({"max_size_mb": 3}, "max_size_mb has no meaning in the tier 'episodic'"),
        ({"reference_syntax": "@"}, "reference_syntax has no meaning"),
        ({"searchable": 1}, "searchable is 1"),
        ({"schema": dict}, "expected a msgspec Struct type"),
        ({"schema_version": 2}, "schema is needed"),
        ({"schema": Note, "schema_version": 2, "upcasters": {2: dict}}, "lifts version 2"),
        ({"schema": Note, "schema_version": 2, "upcasters": {1: 5}}, "map from versions"),
        ({"description": 5}, "description is 5"),
        ({"tier": "working", "scope": "user_id"}, "must be the run"),
        (
            {"tier": "working", "searchable": True},
            "searchable has no meaning",
        ),
        ({"tier": "working", "max_size_mb": 0}, "max_size_mb is 0"),
        ({"tier": "working", "reference_syntax": "#ref"}, "reference_syntax is '#ref'"),
        ({"tier": "working", "reference_syntax": "$"}, "reference_syntax is '\\$'"),
        ({"tier": "working", "auto_capture": 1}, "auto_capture is 1"),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused(fields: dict[str, Any], words: str) -> None:
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match=words) as caught:
        Agent(store, "analyst", memory={"notes": MemorySpec(**fields)})
    assert "notes" in str(caught.value)


def test_an_unknown_field_names_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'max_items'"):
        semantic_memory("user_id", max_item=3)
    with pytest.raises(TypeError):
        MemorySpec(max_item=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="declared by a dict"):
        declared("notes", {"tier": "episodic"})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="slot's name"):
        declared("my notes", MemorySpec())


def test_one_working_slot_captures() -> None:
    both = {"a": declared("a", scratchpad()), "b": declared("b", scratchpad())}
    with pytest.raises(InvalidInput, match="'a' and 'b' both capture"):
        working_slots(both)
    both["b"] = declared("b", scratchpad(auto_capture=False, reference_syntax="@mem"))
    with pytest.raises(InvalidInput, match="different references"):
        working_slots(both)
    both["b"] = declared("b", scratchpad(auto_capture=False))
    assert working_slots(both).default.name == "a"
