"""Chat messages: from the form of chat interfaces to frames, and back without a loss.

Owns the checks of a message, and its two parts: the text, which is searched, and the rest, such as
calls of tools and images, which the frame's metadata keeps under `MESSAGE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.arguments import expect_text, expect_type
from cerata.engine.errors import InvalidInput
from cerata.memory.values.arguments import copied, listed

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue
    from cerata.memory.values.frames import Frame

MESSAGE_KIND: Final = "message"
"""The kind of the frames of messages."""

MESSAGE: Final = "message"
"""A message's metadata: its members besides the role, and the content if that is no text."""

_REMEDY: Final = 'Pass messages such as {"role": "user", "content": "Hello."}.'


def message_parts(
    messages: Sequence[Mapping[str, JsonValue]],
) -> list[tuple[str, str, dict[str, JsonValue]]]:
    """Return role, text and metadata of each message, in order.

    Raises:
        InvalidInput: an item is no message; the error names its place, from 1.
    """
    items = listed("messages", messages)
    if not items:
        raise InvalidInput("messages must have at least one message", remedy=_REMEDY)
    return [_parts(message, f"message {place}") for place, message in enumerate(items, start=1)]


def _parts(message: object, where: str) -> tuple[str, str, dict[str, JsonValue]]:
    expect_type(where, message, Mapping, "a mapping with role and content", _REMEDY)
    members = copied(cast("Mapping[str, JsonValue]", message))
    role = members.pop("role", None)
    if not isinstance(role, str) or not role.strip():
        raise InvalidInput(
            f"The role of {where} must be a string, not {role!r:.60}", remedy=_REMEDY
        )
    content = members.get("content")
    if isinstance(content, str):
        text = expect_text(f"The content of {where}", members.pop("content"))
    elif isinstance(content, list):
        text = "\n\n".join(_part_text(part, where) for part in content).strip()
    elif content is None:
        text = ""
    else:
        raise InvalidInput(
            f"The content of {where} must be a string or a list of parts, not "
            f"{type(content).__name__}",
            remedy=_REMEDY,
        )
    if not text.strip() and not any(members.values()):
        raise InvalidInput(f"The content of {where} is empty", remedy="Leave the message out.")
    return role, text, {MESSAGE: members} if members else {}


def _part_text(part: JsonValue, where: str) -> str:
    """Return the text of a part of a content, which is empty for an image or a call."""
    if isinstance(part, str):
        return expect_text(f"A part of {where}", part)
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InvalidInput(
            f"A part of {where} must be a mapping with a type, not {part!r:.60}",
            remedy='Pass parts such as {"type": "text", "text": "Hello."}.',
        )
    text = part.get("text")
    return expect_text(f"A part of {where}", text) if isinstance(text, str) else ""


def message_of(frame: Frame) -> dict[str, JsonValue]:
    """Return the message that a frame with a role holds."""
    rest = frame.metadata.get(MESSAGE)
    members = rest if frame.kind == MESSAGE_KIND and isinstance(rest, dict) else {}
    return {"role": frame.role or "", "content": frame.text, **members}
