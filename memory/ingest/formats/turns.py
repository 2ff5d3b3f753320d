"""Turns: the shapes of chat transcripts, read into a common form.

Owns the shapes: plain lists of messages, messages of OpenAI's and Anthropic's interfaces, exports
of ChatGPT and Claude, and session logs of Claude Code and Codex. All of this is foreign data: a
value that does not fit raises an error with its place, or is skipped if the shape allows more than
turns.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.times import to_microseconds
from cerata.retrieval.chunking import PARTS_MAX, too_many_parts

from .document import NAME_SIZE_MAX

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
"""The types to which msgspec decodes JSON."""

_ROLES: Final = ("role", "speaker", "sender", "author", "from")
_TEXTS: Final = ("content", "text", "message", "value", "parts")
_TIMES: Final = ("created", "created_at", "create_time", "timestamp", "time", "date", "ts")
_SESSIONS: Final = (
    *("session", "session_id", "sessionId", "thread", "thread_id", "conversation"),
    *("conversation_id", "chat_id", "channel"),
)
_ENVELOPES: Final = ("message", "payload")
_KNOWN_ROLES: Final = {"human": "user", "gpt": "assistant", "ai": "assistant", "bot": "assistant"}
_MILLISECONDS_FROM: Final = 1e11
"""Numbers from here on are milliseconds: as seconds they would be after the year 5138."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn: role, text, kind, time (microseconds since 1970 UTC), session and title."""

    role: str
    text: str
    kind: str
    created: int | None
    session: str | None
    title: str | None = None


def read_turns(value: Json, where: str) -> list[Turn] | None:
    """Return the turns of decoded JSON, or None if the value is not a transcript.

    Raises:
        InvalidInput: a turn has a bad time or too long a session name (the error's place is the
            turn), or there are too many turns.
    """
    if isinstance(value, dict):
        return _read_conversation(value, where)
    if not isinstance(value, list) or not value:
        return None
    objects = [item for item in value if isinstance(item, dict)]
    if len(objects) == len(value) and all(map(_is_conversation, objects)):
        turn_lists = [read_turns(item, f"{where}, {at}") for at, item in enumerate(objects, 1)]
        return [turn for turns in turn_lists for turn in turns or ()]
    return _conversation(value, {}, where) if _all_messages(value) else None


def _read_conversation(value: dict[str, Json], where: str) -> list[Turn] | None:
    mapping = value.get("mapping")
    if isinstance(mapping, dict):
        messages = _chatgpt_messages(mapping, value.get("current_node"))
        return _conversation(messages, value, where)
    for name in ("messages", "chat_messages", "conversations"):
        listed = value.get(name)
        if isinstance(listed, list):
            return _conversation(listed, value, where)
    return None


def is_turn(value: Json) -> bool:
    """Return whether a line of JSON Lines is a turn of a session, in an envelope or not."""
    return isinstance(value, dict) and _message_in(value) is not None


def is_conversation_line(value: Json) -> bool:
    """Return whether a line of JSON Lines is a whole conversation."""
    return isinstance(value, dict) and _is_conversation(value)


def read_turn(value: dict[str, Json], session: str | None, where: str) -> Turn | None:
    """Return the turn of a message, or None if the message has no text."""
    message = _message_in(value)
    if message is None:
        return None
    role = _role(message)
    kind, text = _content(message)
    if not text.strip():
        return None
    created = _first(value, _TIMES)
    if created is None:
        created = _first(message, _TIMES)
    return Turn(
        role=_KNOWN_ROLES.get(role, role),
        text=text,
        kind=kind,
        created=None if created is None else _time(created, where),
        session=session_of(value) or session_of(message) or session,
    )


def session_of(value: dict[str, Json]) -> str | None:
    """Return the session or thread that a message or line names."""
    session = _first(value, _SESSIONS)
    if isinstance(session, bool) or not isinstance(session, str | int):
        return None
    return _session(str(session))


def _session(name: str) -> str | None:
    # Each turn stores the name.
    if len(name) > NAME_SIZE_MAX:
        raise InvalidInput(
            f"The name of a session has {len(name):,} characters, and the limit is {NAME_SIZE_MAX}",
            remedy="Shorten the name of the session.",
        )
    return name or None


def _is_conversation(value: dict[str, Json]) -> bool:
    return any(isinstance(value.get(name), list) for name in ("messages", "chat_messages")) or (
        isinstance(value.get("mapping"), dict)
    )


def _conversation(messages: list[Json], about: dict[str, Json], where: str) -> list[Turn] | None:
    if not messages or not _all_messages(messages):
        return None
    session = session_of(about)
    if session is None:
        number = about.get("uuid") or about.get("id")
        session = _session(number) if isinstance(number, str) else None
    name = about.get("title") or about.get("name")
    title = name if isinstance(name, str) else None
    if len(messages) > PARTS_MAX:
        raise too_many_parts()
    turns: list[Turn] = []
    for at, message in enumerate(messages, 1):
        place = f"{where}, turn {at:,}"
        turn = read_turn(message, session, place) if isinstance(message, dict) else None
        if turn is not None:
            turns.append(Turn(turn.role, turn.text, turn.kind, turn.created, turn.session, title))
    return turns


def _all_messages(items: list[Json]) -> bool:
    return all(isinstance(item, dict) and _message_in(item) is not None for item in items)


def _message_in(value: dict[str, Json]) -> dict[str, Json] | None:
    """Return the message that a value is or wraps: an object with a role and content."""
    if _role(value):
        return value if any(name in value for name in (*_TEXTS, "tool_calls")) else None
    for name in _ENVELOPES:
        inner = value.get(name)
        if isinstance(inner, dict) and _role(inner):
            return inner
    return None


def _role(message: dict[str, Json]) -> str:
    role = _first(message, _ROLES)
    if isinstance(role, dict):
        role = role.get("role") or role.get("name")
    return role if isinstance(role, str) else ""


def _first(value: dict[str, Json], names: tuple[str, ...]) -> Json:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _content(message: dict[str, Json]) -> tuple[str, str]:
    """Return the kind of a turn, and its text: the texts of all blocks in order."""
    blocks = list(_blocks(_first(message, _TEXTS)))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            inner = call.get("function")
            about = inner if isinstance(inner, dict) else call
            blocks.append(("tool_call", f"{about.get('name')} {_shown(about.get('arguments'))}"))
    if _role(message) in ("tool", "function"):
        blocks = [("tool_result", text) for _, text in blocks]
    kinds = {kind for kind, text in blocks if text.strip()}
    kind = kinds.pop() if len(kinds) == 1 else "message"
    return kind, "\n\n".join(text for _, text in blocks if text.strip())


def _blocks(content: Json) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield "message", content
    elif isinstance(content, list):
        for part in content:
            yield from _blocks(part)
    elif isinstance(content, dict):
        yield from _block(content)


def _block(block: dict[str, Json]) -> Iterator[tuple[str, str]]:
    kind = block.get("type")
    if kind in ("tool_use", "function_call"):
        yield "tool_call", f"{block.get('name')} {_shown(_first(block, ('input', 'arguments')))}"
    elif kind == "tool_result":
        for _, text in _blocks(block.get("content")):
            yield "tool_result", text
    elif (inner := _first(block, ("text", "thinking", "parts"))) is not None:
        yield from _blocks(inner)
    elif isinstance(kind, str):
        yield "message", f"[{kind}]"


def _shown(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _time(value: Json, where: str) -> int:
    """Return a time in microseconds: ISO, or a number of seconds or milliseconds since 1970.

    A time without a zone counts as UTC: few transcripts have zones, and their order matters most.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1_000 if abs(value) >= _MILLISECONDS_FROM else value
        if math.isfinite(seconds) and abs(seconds) < _MILLISECONDS_FROM:
            return round(seconds * 1_000_000)
    elif isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
            return to_microseconds(when if when.tzinfo else when.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            pass
    raise InvalidInput(
        f"{str(value)[:60]!r} is not a time",
        where=where,
        remedy="Write times as 2026-03-01T12:00:00Z or as seconds since 1970.",
    )


def _chatgpt_messages(mapping: dict[str, Json], current: Json) -> list[Json]:
    """Return the messages from the root of a ChatGPT export to its current node.

    Without a current node, return all messages in their order. Visit each node once, since links
    may form a circle.
    """
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    path: list[dict[str, Json]] = []
    met = set[str]()
    at = current
    while isinstance(at, str) and at in nodes and at not in met:
        met.add(at)
        path.append(nodes[at])
        at = nodes[at].get("parent")
    messages = [node.get("message") for node in path[::-1] or nodes.values()]
    return [
        message
        for message in messages
        if isinstance(message, dict) and _message_in(message) is not None
    ]
