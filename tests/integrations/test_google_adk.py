# Where the extra google-adk is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""CerataMemoryService: ADK's interface, isolation, hostile input, processes, and the page."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("google.adk.memory.base_memory_service", reason="needs the extra google-adk")

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

import cerata
from cerata.integrations.google_adk import CerataMemoryService

from ..test_docs import ROOT, blocks

pytestmark = pytest.mark.google_adk

ANNA: dict[str, Any] = {"app_name": "notes", "user_id": "anna"}

# Without types, for wrong arguments.
Service: Any = CerataMemoryService


@pytest.fixture
def memory() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        yield store
        assert store.verify().ok


@pytest.fixture
def service(memory: cerata.Store) -> CerataMemoryService:
    return CerataMemoryService(memory)


def content(*texts: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text) for text in texts])


def event(name: str, *texts: str, **fields: Any) -> Event:
    return Event(
        id=name, author="user", content=content(*texts), timestamp=1_790_000_000.5, **fields
    )


def session(*events: Event, user_id: str = "anna") -> Session:
    return Session(id="s1", app_name="notes", user_id=user_id, events=list(events))


def add(service: CerataMemoryService, *events: Any, **named: Any) -> None:
    asyncio.run(service.add_events_to_memory(events=list(events), **{**ANNA, **named}))


def found(service: CerataMemoryService, query: str, **named: Any) -> list[MemoryEntry]:
    response = asyncio.run(service.search_memory(query=query, **{**ANNA, **named}))
    return list(response.memories)


def ids(memories: list[MemoryEntry]) -> list[str | None]:
    return [entry.id for entry in memories]


def test_a_growing_session_is_added_again(
    memory: cerata.Store, service: CerataMemoryService
) -> None:
    """An event is stored once; the events of a call are one batch."""
    assert isinstance(service, BaseMemoryService)
    first = [event("1", "I like green tea."), event("2", "The pond is deep.")]
    asyncio.run(service.add_session_to_memory(session(*first)))
    assert memory.head.seq == 2
    assert len({each.header.last_seq for each in memory.log()}) == 1
    asyncio.run(service.add_session_to_memory(session(*first)))
    assert memory.head.seq == 2
    asyncio.run(service.add_session_to_memory(session(*first, event("3", "Tea at four."))))
    assert memory.head.seq == 3
    # The turn between them counts as their neighbour, after both.
    assert set(ids(found(service, "tea"))[:2]) == {"1", "3"}
    assert ids(found(service, "How deep is the pond?"))[0] == "2"
    assert found(service, "  ") == []
    assert len(found(CerataMemoryService(memory, k=1), "tea")) == 1


def test_a_memory_comes_back_as_it_was(memory: cerata.Store, service: CerataMemoryService) -> None:
    """Content with bytes, author, time and metadata; recall finds its words."""
    parts = [
        types.Part(text="A photo of the mill."),
        types.Part(text="I think so.", thought=True),
        types.Part(inline_data=types.Blob(data=b"\0\xff", mime_type="image/png")),
        types.Part(function_call=types.FunctionCall(name="look", args={"at": ["mill"]})),
    ]
    picture = Event(
        id="p", author="painter", content=types.Content(role="model", parts=parts), timestamp=0.0
    )
    add(service, picture, session_id="s9", custom_metadata={"ttl": 3})
    [entry] = found(service, "mill")
    assert entry.content == picture.content
    assert (entry.id, entry.author) == ("p", "painter")
    assert entry.timestamp == "1970-01-01T00:00:00+00:00"
    assert entry.custom_metadata == {"ttl": 3}
    frame = memory.frame(1)
    assert (frame.kind, frame.role, frame.uri, frame.track) == (
        "adk.memory",
        "painter",
        "adk:p",
        "s9",
    )
    assert frame.text == "A photo of the mill."
    assert dict(frame.scope) == {"tenant": "default", "app": "notes", "user_id": "anna"}
    assert "mill" in memory.recall("mill").text


def test_events_without_words_are_left_out(
    memory: cerata.Store, service: CerataMemoryService
) -> None:
    """No search could find them."""
    add(service, Event(author="user"), event("1"), event("2", "  "))
    thought = types.Content(role="model", parts=[types.Part(text="hm", thought=True)])
    add(service, Event(author="model", content=thought))
    assert memory.head.seq == 0


def test_an_event_without_an_id_is_stored_once(
    memory: cerata.Store, service: CerataMemoryService
) -> None:
    """Its id is derived from author, time and content."""
    nameless = event("1", "tea")
    nameless.id = ""
    add(service, nameless, nameless)
    add(service, nameless)
    later = event("1", "tea")
    later.id, later.timestamp = "", 1.0
    add(service, later)
    assert len(memory) == 2


def test_memories_are_added_and_replaced(
    memory: cerata.Store, service: CerataMemoryService
) -> None:
    """A memory without an id gets one, by which it can be deleted."""
    entries = [
        MemoryEntry(content=content("Anna likes tea."), author="anna", custom_metadata={"a": 1}),
        MemoryEntry(id="m", content=content("The tea is cold."), timestamp="2026-03-01T10:00:00Z"),
        MemoryEntry(id="n", content=content("tea at noon"), timestamp="noon"),
    ]
    asyncio.run(service.add_memory(memories=entries, custom_metadata={"a": 0, "b": 2}, **ANNA))
    assert memory.head.seq == 3
    memories = {entry.content.parts[0].text: entry for entry in found(service, "tea")}
    assert len(memories) == 3
    assert memories["Anna likes tea."].custom_metadata == {"a": 1, "b": 2}
    assert memories["The tea is cold."].timestamp == "2026-03-01T10:00:00Z"
    assert memories["tea at noon"].timestamp == "noon"
    frame = memory.frame(2)
    assert frame.created.isoformat() == "2026-03-01T10:00:00+00:00"
    changed = MemoryEntry(id="m", content=content("The tea is warm."))
    asyncio.run(service.add_memory(memories=[changed], **ANNA))
    assert [entry.content for entry in found(service, "warm")] == [changed.content]
    assert found(service, "cold") == []
    name = memories["Anna likes tea."].id
    asyncio.run(service.delete_memory(memory_id=name, **ANNA))
    assert name not in ids(found(service, "tea"))


def test_a_deleted_event_stays_deleted(memory: cerata.Store, service: CerataMemoryService) -> None:
    """Also if its session is added again; an explicit memory comes back."""
    add(service, event("1", "tea"), event("2", "tea"))
    asyncio.run(service.delete_memory(memory_id="1", **ANNA))
    state = memory.head.seq
    asyncio.run(service.delete_memory(memory_id="1", **ANNA))
    asyncio.run(service.delete_memory(memory_id="none", **ANNA))
    asyncio.run(service.delete_memory(**ANNA))
    add(service, event("1", "tea"), event("2", "tea"))
    assert memory.head.seq == state
    assert ids(found(service, "tea")) == ["2"]
    assert ids(found(CerataMemoryService(memory), "tea")) == ["2"]
    asyncio.run(service.add_memory(memories=[MemoryEntry(id="1", content=content("tea"))], **ANNA))
    assert set(ids(found(service, "tea"))) == {"1", "2"}


names = st.text(st.sampled_from("ab%_/.*\0:"), min_size=1, max_size=3)
places = st.tuples(st.sampled_from(["t", "t2", "%"]), names, names, names)


@settings(max_examples=40, deadline=None)
@given(st.lists(places, min_size=1, max_size=5, unique=True), names)
def test_no_call_sees_or_changes_another_scope(
    drawn: list[tuple[str, str, str, str]], word: str
) -> None:
    """Of a tenant, an application or a user; narrower and wider scopes have no memories."""
    with cerata.open(":memory:") as memory:
        for tenant, app, user, name in drawn:
            service = CerataMemoryService(memory.scoped({"tenant": tenant}))
            add(service, event(name, f"tea {name}"), app_name=app, user_id=user)
        narrow = memory.scoped({"tenant": "t", "app": "a", "user_id": "b", "more": "x"})
        narrow.put_frame("tea", kind="adk.memory", uri="adk:narrow", metadata={"content": {}})
        memory.put_frame("tea", kind="adk.memory", uri="adk:wide", metadata={"content": {}})
        state = memory.head.seq
        for tenant, app, user, _ in drawn:
            service = CerataMemoryService(memory.scoped({"tenant": tenant}))
            own = {each[3] for each in drawn if each[:3] == (tenant, app, user)}
            for query in ("tea", f"tea {word}"):
                memories = found(service, query, app_name=app, user_id=user)
                assert set(ids(memories)) == own
                assert len(memories) == len(own)
            foreign = {each[3] for each in drawn} - own | {"narrow", "wide"}
            for name in foreign:
                deleting = service.delete_memory(app_name=app, user_id=user, memory_id=name)
                asyncio.run(deleting)
            for named in ({"app_name": app + "x"}, {"user_id": user + "x"}):
                where = {"app_name": app, "user_id": user, **named}
                assert found(service, "tea", **where) == []
        assert memory.head.seq == state


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: Service("brain.cera"), "store must be"),
        (lambda store: Service(store, k=0), "k must be"),
        (
            lambda store: add(Service(store), event("1", "a"), "tea"),
            "events\\[1\\] must be an Event",
        ),
        (lambda store: add(Service(store), event("1", "a"), user_id=""), "user_id is empty"),
        (lambda store: add(Service(store), event("1", "a"), app_name=3), "app_name must be"),
        (lambda store: add(Service(store), event("1", "a"), session_id=3), "session_id must be"),
        (lambda store: add(Service(store), event("1", "a"), custom_metadata=3), "custom_metadata"),
        (
            lambda store: add(Service(store), event("1", "a"), custom_metadata={"x": {1}}),
            "JSON cannot hold",
        ),
        (
            lambda store: asyncio.run(Service(store).add_events_to_memory(events="tea", **ANNA)),
            "events must be a list",
        ),
        (
            lambda store: add(
                Service(store),
                event("1", "a"),
                Event(author="user", content=content("a"), timestamp=1e300),
            ),
            "timestamp of events\\[1\\]",
        ),
        (
            lambda store: asyncio.run(Service(store).add_memory(memories=["tea"], **ANNA)),
            "memories\\[0\\] must be a MemoryEntry",
        ),
        (
            lambda store: asyncio.run(
                Service(store).add_memory(memories=[MemoryEntry(content=content(" "))], **ANNA)
            ),
            "memories\\[0\\] has no text",
        ),
        (lambda store: found(Service(store), 3), "query must be"),  # type: ignore[arg-type]
        (
            lambda store: asyncio.run(Service(store).delete_memory(memory_id=3, **ANNA)),
            "memory_id must be",
        ),
        (
            lambda store: found(Service(store.scoped({"tenant": "t", "app": "else"})), "tea"),
            "app",
        ),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    memory: cerata.Store, call: Any, message: str
) -> None:
    """Each error is typed and has a remedy."""
    with pytest.raises(cerata.InvalidInput, match=message) as caught:
        call(memory)
    assert caught.value.remedy
    assert memory.head.seq == 0


ADDS = """
import asyncio, sys
import cerata
from cerata.integrations.google_adk import CerataMemoryService
from google.adk.events.event import Event
from google.genai import types
content = types.Content(role="user", parts=[types.Part(text="tea")])
with cerata.open(sys.argv[1]) as store:
    service = CerataMemoryService(store)
    for number in range(20):
        events = [Event(id=f"{each}", author="user", content=content) for each in range(number)]
        asyncio.run(service.add_events_to_memory(app_name="notes", user_id="anna", events=events))
"""


def test_two_processes_store_an_event_once(tmp_path: Path) -> None:
    """They add the same growing session."""
    path = str(tmp_path / "brain.cera")
    cerata.open(path).close()
    command = [sys.executable, "-W", "ignore", "-c", ADDS, path]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[1] for process in running] == ["", ""]
    with cerata.open(path) as memory:
        assert len(memory) == 19
        assert len(list(memory.frames(where=cerata.Filter(include_superseded=True)))) == 19
        assert memory.verify().ok


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing; the second run replaces the memory of the first."""
    page = ROOT / "docs" / "google-adk.md"
    program = next(block for block in blocks(page) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    for _ in range(2):
        # Not by `run_block`, which makes the warnings of the kit errors.
        command = [sys.executable, "-c", program.text]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "Anna likes green tea." in run.stdout
