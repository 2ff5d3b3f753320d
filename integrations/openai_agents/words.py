"""The words of an item of a conversation, by which searches find it.

Owns the members of the items of OpenAI's Responses API that have words. Leaves out the items.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

_WORDS: Final = (
    "content",
    "text",
    "refusal",
    "transcript",
    "summary",
    "name",
    "arguments",
    "output",
)
"""The members that have words, also inside lists and maps of them."""

_DEPTH_MAX: Final = 8


def words_of(item: Mapping[str, object]) -> str:
    """Return the words of an item; of an item without words its type.

    >>> words_of({"role": "user", "content": [{"type": "input_text", "text": "Hello."}]})
    'Hello.'
    """
    return "\n\n".join(_words(item, 0)) or str(item.get("type") or "item")


def _words(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif depth > _DEPTH_MAX:
        return
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        for name in _WORDS:
            yield from _words(members.get(name), depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for part in cast("Sequence[object]", value):
            yield from _words(part, depth + 1)
