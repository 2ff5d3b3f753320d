"""Summaries of results: the pure function ``structure 1``, at most 300 characters.

A summary is stored with its result, so a later version never changes the text that a model saw.
Strings from data are quoted, with each line end escaped.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from cerata.engine.arguments import exact_string
from cerata.engine.draft_validation import check_not_pending
from cerata.engine.errors import Corrupt, InvalidInput, value_text
from cerata.engine.events import JsonValue
from cerata.engine.integrity import hash_bytes
from cerata.engine.json_value import exact, exact_or_fail, type_name
from cerata.engine.limits import BLOB_SIZE_MAX, NESTING_MAX, STRING_SIZE_MAX

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


# --- JSON as recordings store it: strict on the way in, a fresh copy on the way out ---------------


_INTEGER_MIN: Final = -(2**63)
_INTEGER_MAX: Final = 2**63 - 1
NOT_RECORDED: Final = "(not recorded)"
"""In place of a value or a message that a recording leaves out."""

_HIDDEN: Final = "_cerata_hidden"
"""The attribute of an exception whose message is left out of recordings."""

_ERROR_SIZE_MAX: Final = 300
"""Maximum characters of a recorded error."""


def encoded(value: object, subject: str) -> bytes:
    """Return the compact JSON of a value, in its order; ``subject`` names it in an error.

    Raises:
        InvalidInput: the value is not JSON. Tuples become lists, and scalars of other types those
            of JSON (`cerata.engine.json_value.exact`); nothing else is converted.
    """
    return _text(value, subject, is_canonical=False)


def canonical(arguments: Mapping[str, object], subject: str) -> str:
    """Return the canonical JSON of a call's arguments: names sorted by code point.

    Raises:
        InvalidInput: an argument is not JSON, or all are too large.
    """
    data = _text(dict(arguments), subject, is_canonical=True)
    if len(data) > STRING_SIZE_MAX:
        raise InvalidInput(
            f"The arguments of {subject} are {len(data):,} bytes of JSON, over the limit of "
            f"{STRING_SIZE_MAX:,}",
            remedy="Pass a smaller value, or leave the argument out with secret=.",
        )
    return data.decode()


def _text(value: object, subject: str, *, is_canonical: bool) -> bytes:
    _check(value, subject, "", NESTING_MAX)
    try:
        order: Literal["deterministic"] | None = "deterministic" if is_canonical else None
        data = msgspec.json.encode(value, enc_hook=exact_or_fail, order=order)
    except (TypeError, ValueError, OverflowError) as error:
        raise _refused(subject, "", str(error)) from error
    if len(data) > BLOB_SIZE_MAX:
        raise _refused(subject, "", f"it is {len(data):,} bytes, over {BLOB_SIZE_MAX:,}")
    return data


def _check(value: object, subject: str, path: str, depth: int) -> None:
    check_not_pending(subject, value)
    value = exact(value)
    kind = type(value)
    if value is None or kind is bool:
        return
    if isinstance(value, int | float) and kind in (int, float):
        if kind is float and not math.isfinite(value):
            raise _refused(subject, path, f"{value} is no number of JSON")
        if isinstance(value, int) and not _INTEGER_MIN <= value <= _INTEGER_MAX:
            raise _refused(subject, path, f"an integer of {value.bit_length():,} bits, over 64")
    elif isinstance(value, str) and kind is str:
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise _refused(subject, path, "it has half of a surrogate pair")
    elif not isinstance(value, dict | list | tuple):
        raise _refused(subject, path, f"{type_name(value)} is no type of JSON")
    elif not depth:
        raise _refused(subject, path[:100], f"it is deeper than {NESTING_MAX} levels")
    elif isinstance(value, list | tuple) and _are_alike(cast("Sequence[object]", value)):
        return
    elif isinstance(value, dict):
        for name, item in cast("dict[object, object]", value).items():
            if not isinstance(name, str):
                raise _refused(subject, path, f"a name is {value_text(name):.60}, not a string")
            _check(name, subject, path, depth)
            _check(item, subject, f"{path}.{name}" if path else name, depth - 1)
    else:
        for place, item in enumerate(cast("list[object]", value)):
            _check(item, subject, f"{path}[{place}]", depth - 1)


def _are_alike(items: Sequence[Any]) -> bool:
    """Return whether items are valid scalars of one type: most long lists are."""
    kinds = {*map(type, items)}
    if kinds == {str}:
        return "".join(items).isascii()
    if kinds == {float}:
        return all(map(math.isfinite, items))
    if kinds == {int}:
        return bool(min(items) >= _INTEGER_MIN and max(items) <= _INTEGER_MAX)
    return not kinds


def _refused(subject: str, path: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"{subject} cannot be recorded: {reason}",
        where=path or None,
        remedy="Pass JSON values: None, bools, numbers, strings, lists and dicts; or name the "
        "argument in secret=, which leaves it out.",
    )


def decoded(data: bytes | str) -> JsonValue:
    """Return a fresh copy of a value. Raises `Corrupt` if the text is not JSON."""
    try:
        value: JsonValue = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(f"A recorded value is not JSON: {error}") from error
    return value


def digest_of(name: str, arguments: str) -> bytes:
    """Return the digest of a call: H of the name, a zero byte and the arguments."""
    return hash_bytes(f"{name}\0{arguments}".encode())


def error_text(error: BaseException) -> str:
    """Return an exception as recordings store it: its type and message.

    The message is left out if `hide_message` has marked the exception, or one that it follows.
    """
    message = NOT_RECORDED if _is_hidden(error) else str(error)
    text = f"{type(error).__name__}: {message}"[:_ERROR_SIZE_MAX]
    return text.encode("utf-8", "replace").decode()


def hide_message(error: BaseException) -> None:
    """Keep the message of an exception, and of those raised from it, out of every recording."""
    vars(error)[_HIDDEN] = True


def _is_hidden(error: BaseException | None) -> bool:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if _HIDDEN in vars(error):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
