"""The definitions that a client reads: tools, resources, prompts and instructions.

Owns their words and schemas, written by hand, since generated schemas take more tokens. The tools
take at most 1,100 tokens together (tests/integrations/test_mcp_definitions.py). Arguments are flat,
because clients send lists and objects as text. Leaves out the checks of arguments (`arguments`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from cerata.engine.events import JsonValue

Definition = Mapping[str, JsonValue]

NAME: Final = "cerata"

INSTRUCTIONS: Final = (
    "One file of memory. Call recall before answering from memory; remember what should outlast "
    "this chat. To change an entry or fact call correct; do not remember a contradiction. The "
    "argument at reads the past."
)

_AT: Final[Definition] = {
    "type": "string",
    "description": "State to read: ISO time, tag, event number or HEAD~n",
}
_VALID_AT: Final[Definition] = {
    "type": "string",
    "description": "ISO time at which the facts must be true",
}
_TEXT: Final[Definition] = {"type": "string"}
_IDS: Final[Definition] = {"type": "string", "description": "12 or 12,15"}
_LIMIT: Final[Definition] = {"type": "integer", "default": 20, "minimum": 1, "maximum": 100}


def _tool(
    name: str,
    description: str,
    properties: Definition,
    required: Sequence[str],
    *,
    reads: bool = False,
    destroys: bool = False,
    repeats: bool = True,
) -> Definition:
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        "annotations": {
            "readOnlyHint": reads,
            "destructiveHint": destroys,
            "idempotentHint": repeats,
            "openWorldHint": False,
        },
    }


READING_TOOLS: Final[Sequence[Definition]] = (
    _tool(
        "recall",
        "Relevant entries and facts for a question, within a token budget. Every entry has an id. "
        "Call this before answering from memory.",
        {
            "query": _TEXT,
            "max_tokens": {"type": "integer", "default": 1500, "minimum": 100, "maximum": 8000},
            "at": _AT,
            "valid_at": _VALID_AT,
            "where": {
                "type": "string",
                "description": "Filter such as kind:note tag:x created:2026-01",
            },
        },
        ["query"],
        reads=True,
    ),
    _tool(
        "show",
        "Full text of entries or facts by id. With history: also versions, evidence and reasons.",
        {"ids": _IDS, "history": {"type": "boolean", "default": False}, "at": _AT},
        ["ids"],
        reads=True,
    ),
    _tool(
        "facts",
        "Facts about a subject or matching a question, with the time each is true and the time it "
        "became known.",
        {
            "subject": _TEXT,
            "predicate": _TEXT,
            "question": _TEXT,
            "at": _AT,
            "valid_at": _VALID_AT,
            "limit": _LIMIT,
        },
        [],
        reads=True,
    ),
    _tool(
        "changes",
        "Entries and facts added, replaced or removed between two points, newest first.",
        {
            "since": {"type": "string", "description": "ISO time, tag, event number or HEAD~n"},
            "until": {"type": "string", "default": "HEAD"},
            "limit": _LIMIT,
        },
        ["since"],
        reads=True,
    ),
)

WRITING_TOOLS: Final[Sequence[Definition]] = (
    _tool(
        "remember",
        "Store a text: a decision, a preference, a result. The same text is stored once.",
        {
            "text": _TEXT,
            "tags": {"type": "string", "description": "a or a,b"},
            "about_time": {"type": "string", "description": "ISO time of the event, if not now"},
        },
        ["text"],
    ),
    _tool(
        "assert_fact",
        "Record that something is true: subject, predicate, object, and from when.",
        {
            "subject": _TEXT,
            "predicate": _TEXT,
            "object": _TEXT,
            "is_entity": {"type": "boolean", "default": True},
            "valid_from": _TEXT,
            "valid_to": _TEXT,
            "evidence": {"type": "string", "description": "Ids of supporting entries: 12,15"},
        },
        ["subject", "predicate", "object"],
    ),
    _tool(
        "correct",
        "Replace an entry (text) or correct a fact (object, valid_from, valid_to). The old version "
        "stays in the past.",
        {
            "id": {"type": "integer"},
            "text": _TEXT,
            "object": _TEXT,
            "valid_from": _TEXT,
            "valid_to": _TEXT,
            "reason": _TEXT,
        },
        ["id"],
        repeats=False,
    ),
    _tool(
        "forget",
        "Hide entries and retract facts from now on. Earlier states keep them.",
        {"ids": _IDS, "reason": _TEXT},
        ["ids"],
        destroys=True,
    ),
)

STATUS_URI: Final = "cerata://status"

RESOURCES: Final[Sequence[Definition]] = (
    {
        "uri": STATUS_URI,
        "name": "status",
        "description": "Counts and head of the memory",
        "mimeType": "application/json",
    },
)

RESOURCE_TEMPLATES: Final[Sequence[Definition]] = (
    {
        "uriTemplate": "cerata://frame/{id}",
        "name": "frame",
        "description": "An entry with its source",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": "cerata://fact/{id}",
        "name": "fact",
        "description": "A fact with its periods and evidence",
        "mimeType": "text/plain",
    },
)

PROMPTS: Final[Sequence[Definition]] = (
    {
        "name": "recall",
        "description": "Answer from the memory about a topic",
        "arguments": [{"name": "topic", "description": "The topic or question", "required": True}],
    },
    {
        "name": "what_changed",
        "description": "Summarize the changes of the memory since a point",
        "arguments": [
            {
                "name": "since",
                "description": "ISO time, tag, event number or HEAD~n",
                "required": True,
            }
        ],
    },
)
