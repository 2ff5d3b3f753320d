"""Summaries of results: the pure function ``structure 1``, at most 300 characters.

A summary is stored with its result, so a later version never changes the text that a model saw.
Strings from data are quoted, with each line end escaped.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from cerata.engine.arguments import exact_string
from cerata.engine.events import JsonValue
from cerata.engine.json_value import exact

_SUMMARY_MAX: Final = 300
_STRING_MAX: Final = 60
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_LINE_ENDS: Final = re.compile("[\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_KB: Final = 1000
_DEPTH_MAX: Final = 3


def summary_of(value: JsonValue, size: int) -> str:
    """Return the summary of a value whose JSON has ``size`` bytes."""
    end = f" · {size_text(size)}"
    room = _SUMMARY_MAX - len(end)
    return f"{_part(value, room, _DEPTH_MAX)[:room]}{end}"


def size_text(size: int) -> str:
    """Return a number of bytes for people: 15.0 KB, in units of 10³."""
    if size < _KB:
        return f"{size} B"
    if size < _KB * _KB:
        return f"{size / _KB:.1f} KB"
    return f"{size / _KB / _KB:.1f} MB"


def _part(value: JsonValue, room: int, depth: int) -> str:
    if isinstance(value, Mapping):
        return _map(value, room, depth)
    if isinstance(value, Sequence) and not isinstance(value, str):
        text = _list(value, depth)
        return text if len(text) <= room else f"{len(value)} items"
    return _scalar(value)


def _scalar(value: JsonValue) -> str:
    value = exact(value)
    if isinstance(value, str):
        short = quoted(value[:_STRING_MAX])
        return short if len(value) <= _STRING_MAX else f"{short}… {len(value)} characters"
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def quoted(text: str) -> str:
    """Return a text as JSON, with every Unicode line end escaped."""
    return on_one_line(msgspec.json.encode(exact_string(text)).decode())


def on_one_line(json: str) -> str:
    """Return JSON with the Unicode line ends of its strings escaped."""
    return _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", json)


def _list(items: Sequence[JsonValue], depth: int) -> str:
    if not items:
        return "0 items"
    if all(isinstance(item, Mapping) for item in items):
        return _rows(cast("Sequence[Mapping[str, JsonValue]]", items))
    numbers = _numbers(items) if _numbers(items[:1]) else []
    if len(numbers) == len(items):
        ends = f"first {_scalar(numbers[0])}, last {_scalar(numbers[-1])}"
        return f"{len(items)} numbers, {_range(numbers)}, {ends}"
    first, last = (_part(item, _STRING_MAX, 0) if depth else "…" for item in (items[0], items[-1]))
    return f"{len(items)} items, first {first}, last {last}"


def _rows(rows: Sequence[Mapping[str, JsonValue]]) -> str:
    parts = [f"{len(rows)} rows"]
    for name in rows[0]:
        numbers = _numbers([row.get(name) for row in rows])
        if numbers and _numbers([rows[0][name]]):
            parts.append(f"{_key(name)} {_range(numbers)}")
    return ", ".join(parts)


def _numbers(items: Sequence[JsonValue]) -> list[int | float]:
    return [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]


def _range(numbers: Sequence[int | float]) -> str:
    return f"{_scalar(min(numbers))}…{_scalar(max(numbers))}"


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else quoted(name[:_STRING_MAX])


def _map(value: Mapping[str, JsonValue], room: int, depth: int) -> str:
    if not depth:
        return f"{{{len(value)} names}}" if value else "{}"
    parts: list[str] = []
    left = room - 2 - len(f", … +{len(value)}")
    for name, item in value.items():
        text = f"{_key(name)}: {_part(item, left, depth - 1)}"
        left -= len(text) + 2
        if left < 0:
            break
        parts.append(text)
    if len(parts) < len(value):
        parts.append(f"… +{len(value) - len(parts)}")
    return f"{{{', '.join(parts)}}}"
