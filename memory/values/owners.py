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
from typing import Final

from cerata.engine.packs import Owned, Role, packs

TABLE: Final = (
    Owned("the file", None, events=("branch", "erase", "gap"), is_copied=False),
    Owned("reflections", Role.AGENT, ("reflection",), is_memory=False),
    Owned("summaries", Role.AGENT, ("summary",)),
    Owned(
        "recorded runs",
        Role.AGENT,
        ("run",),
        events=("startActivity", "endActivity", "recordCall"),
    ),
    Owned("LangChain's stores", Role.LANGCHAIN, ("langchain.document", "langchain.bytes")),
    Owned("sessions of OpenAI's SDK", Role.OPENAI, ("openai.item",), ("openai:",)),
    Owned("the memory tool", Role.ANTHROPIC, ("anthropic.file",)),
    Owned("ADK's memory service", Role.ADK, ("adk.memory",), ("adk:",)),
    *(owned for pack in packs() for owned in pack.owns),
)
"""Each owned kind, start of a URI, and event type; a pack adds rows."""

NO_MEMORIES: Final = tuple(kind for owned in TABLE if not owned.is_memory for kind in owned.kinds)
"""Kinds of frames that a search returns only if its filter or query names the kind."""

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
