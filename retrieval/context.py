"""Contexts: the best entries that fit a budget of tokens, each naming its source.

Owns the choice of entries and how they are written out. Pure: the same entries and budget give
the same bytes. Until the tokenizer arrives a token is one UTF-8 byte, which never undercounts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

_ELLIPSIS = "…"
_GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to show: a frame's text, and where it comes from."""

    id: int
    source: str
    text: str


SpanOf: TypeAlias = Callable[[str], tuple[int, int]]
"""Gives the best span of a text: characters [start, end)."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Something shown: the frame, its source, the text as written, ``clipped`` if not whole."""

    id: int
    source: str
    text: str
    clipped: bool

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "source": self.source,
            "text": self.text,
            "clipped": self.clipped,
        }


def count_tokens(text: str) -> int:
    """Return the tokens of a text: its UTF-8 bytes."""
    return len(text.encode())


def fill(
    entries: Sequence[Entry], max_tokens: int, span_of: SpanOf
) -> tuple[list[ContextItem], str]:
    """Choose entries in order while they fit whole; the best alone is clipped to fit.

    ``span_of`` is asked only where an entry is clipped.

    Returns the items and the text, at most ``max_tokens`` tokens.

    Raises:
        InvalidInput: the budget is not positive.
    """
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens <= 0:
        raise InvalidInput(f"A budget of {max_tokens!r} tokens", remedy="Give 1 or more.")
    items: list[ContextItem] = []
    text = ""
    for entry in entries:
        item = ContextItem(entry.id, entry.source, entry.text.strip(), clipped=False)
        longer = f"{text}{_GAP}{_written(item)}" if text else _written(item)
        if count_tokens(longer) <= max_tokens:
            items.append(item)
            text = longer
    if not items and entries:
        clipped = _clip(entries[0], max_tokens, span_of)
        items.append(clipped)
        text = _take(_written(clipped), max_tokens)
    return items, text


def _written(item: ContextItem) -> str:
    return f"[{item.source}]\n{item.text}"


def _clip(entry: Entry, max_tokens: int, span_of: SpanOf) -> ContextItem:
    """Cut an entry around its best span so that it fits with its source line."""
    frame = ContextItem(entry.id, entry.source, "", clipped=True)
    room = max_tokens - count_tokens(_written(frame))
    start, end = span_of(entry.text)
    spare = max(0, room - count_tokens(entry.text[start:end])) // 2
    begin = max(0, start - spare)
    piece = entry.text[begin:].strip()
    lead = _ELLIPSIS if begin else ""
    return ContextItem(entry.id, entry.source, _take(lead + piece, max(0, room)), clipped=True)


def _take(text: str, size: int) -> str:
    """Return the longest start of a text of at most ``size`` UTF-8 bytes, marked where cut."""
    data = text.encode()
    if len(data) <= size:
        return text
    mark = len(_ELLIPSIS.encode())
    if size < mark:
        return data[:size].decode(errors="ignore")
    return data[: size - mark].decode(errors="ignore").rstrip() + _ELLIPSIS
