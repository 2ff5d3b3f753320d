"""Owners: the one table of who may write, correct, supersede, hide and import each kind.

A handle has a role, and a batch of the handle is checked against the table (`batch.owner_rules`). A
program may write everything; every other role writes the free kinds and its own kinds, and
changes or hides no other frame. A kind that the table does not name is free, since programs choose
kinds of their own. An event type that it does not name is for programs and copies alone.

Owns the table. Leaves out where a role is given: MCP, the adapters, importers and extractors take
a handle of their role.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple


class Role(Enum):
    """The writer behind a handle; the value is the subject of a refusal."""

    PROGRAM = "A program"
    AGENT = "An agent"
    TOOL = "A tool of a model"
    EXTRACTOR = "An extractor"
    IMPORTER = "An importer"
    COPY = "An import of events"
    """Events of another log, which come with their own history."""
    LANGGRAPH = "LangGraph's adapter"
    LANGCHAIN = "LangChain's adapter"
    OPENAI = "The session of OpenAI's SDK"
    ANTHROPIC = "The memory tool"
    ADK = "ADK's memory service"


class Owned(NamedTuple):
    """A row of the table: frames and events that only their owners write, change or hide.

    - ``kinds`` are kinds of frames, with all frames below: the results below a run are its own.
      ``uris`` are starts of URIs, which make a frame of any kind the owner's. ``events`` are wire
      names.
    - ``owner`` is the role that may write them beside a program; None for programs alone.
    - If ``is_copied`` is False, an import of events into another log leaves them out.
    """

    name: str
    owner: Role | None
    kinds: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    is_copied: bool = True

    def admits(self, role: Role) -> bool:
        """Return whether a role may write, change and hide these frames and events."""
        if role is Role.COPY:
            return self.is_copied
        return role in (Role.PROGRAM, self.owner)


TABLE: Final = (
    Owned("identity", None, ("identity",), ("identity:",), is_copied=False),
    Owned("the verdicts of people", None, events=("judge",), is_copied=False),
    Owned("the file", None, events=("branch", "erase", "gap"), is_copied=False),
    Owned("proposals", Role.AGENT, ("proposal",)),
    Owned("assessments", Role.AGENT, ("assessment",)),
    Owned("reflections", Role.AGENT, ("reflection",)),
    Owned("summaries", Role.AGENT, ("summary",)),
    Owned("slots", Role.AGENT, ("value",), ("slot:",), ("putSlot",)),
    Owned(
        "recorded runs",
        Role.AGENT,
        ("run",),
        events=("startActivity", "endActivity", "recordCall"),
    ),
    Owned(
        "LangGraph's checkpoints and items",
        Role.LANGGRAPH,
        ("langgraph.item", "langgraph.path"),
        ("lg:",),
        ("langgraph.putCheckpoint", "langgraph.putWrites", "langgraph.dropCheckpoints"),
    ),
    Owned("LangChain's stores", Role.LANGCHAIN, ("langchain.document", "langchain.bytes")),
    Owned("sessions of OpenAI's SDK", Role.OPENAI, ("openai.item",), ("openai:",)),
    Owned("the memory tool", Role.ANTHROPIC, ("anthropic.file",)),
    Owned("ADK's memory service", Role.ADK, ("adk.memory",), ("adk:",)),
)
"""Each owned kind, start of a URI, and event type; a pack adds a row."""

FREE_KINDS: Final = ("text", "document", "message", "knowledge", "tool_result")
"""The kinds that Cerata gives to frames which every role may write.

A turn of a chat file may be a tool_result; the recorded results of a run are below the run."""

FREE_EVENTS: Final = frozenset(
    (
        *("putFrame", "deleteFrame", "supersedeFrame", "putEmbedding", "useEmbedder", "putTag"),
        *("assertFact", "retractFact", "putPredicate", "putEntity", "extractFacts"),
        *("mergeEntities", "unmergeEntities", "splitEntity", "unsplitEntity"),
        *("linkFacts", "unlinkFacts", "recall", "access", "importBatch"),
    )
)
"""The event types that every role may write; an event that names a frame follows its owner."""

_BY_KIND: Final = {kind: owned for owned in TABLE for kind in owned.kinds}
_BY_URI: Final = tuple((uri, owned) for owned in TABLE for uri in owned.uris)
_BY_EVENT: Final = {event: owned for owned in TABLE for event in owned.events}


def owners_of_frame(kind: str | None, uri: str | None) -> Iterator[Owned]:
    """Yield the rows of a frame, that of its kind before that of its URI; none if it is free.

    A frame of two rows needs the right of both: a URI names what a reader expects there.
    """
    if kind in _BY_KIND:
        yield _BY_KIND[kind]
    if uri is not None:
        yield from (owned for start, owned in _BY_URI if uri.startswith(start))


def owner_of_event(wire_name: str) -> Owned | None:
    """Return the row of an event type, None if it is free or not in the table."""
    return _BY_EVENT.get(wire_name)
