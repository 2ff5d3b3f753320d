"""References: strings that name the results of a run, and their resolution in arguments.

Owns the syntax, the walk through arguments and the JSON pointer. Leaves out the results themselves
(`run_results`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

from cerata.engine.arguments import expect_string
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import JsonValue

DEPTH_MAX: Final = 64
"""Levels of containers in which references are looked for."""

_BODY: Final = re.compile(r"([A-Za-z0-9_.-]{1,100})\.([1-9][0-9]{0,8})(?:#(.*))?", re.DOTALL)
_ESCAPES: Final = re.compile("~(.?)")
_UNESCAPED: Final = {"0": "~", "1": "/"}
_INDEX: Final = re.compile("0|[1-9][0-9]{0,9}")
"""An index of a list in memory: Python reads no number of thousands of digits."""


class ParsedReference(NamedTuple):
    """The parts of ``$ref:NAME.N#POINTER``; the pointer is "" for the whole value."""

    name: str
    number: int
    pointer: str


def reference(prefix: str, name: str, number: int) -> str:
    """Return the reference of the n-th result of a name."""
    return f"{prefix}:{name}.{number}"


def parsed(text: str, prefix: str) -> ParsedReference:
    """Return the parts of a reference.

    Raises:
        InvalidInput: the text is no reference.
    """
    expect_string("A reference", text)
    match = _BODY.fullmatch(text, len(prefix) + 1) if text.startswith(f"{prefix}:") else None
    if match is None:
        raise InvalidInput(
            f"{text!r:.120} is not a reference, such as '{prefix}:market.fetch.1#/AAPL'",
            remedy=f"Copy a reference from run.refs(), or write {prefix[0]}{prefix}: for a text "
            f"that begins with {prefix}:.",
        )
    pointer = match[3] or ""
    if pointer and not pointer.startswith("/"):
        raise InvalidInput(
            f"The pointer {pointer!r:.60} of {text!r:.120} must begin with '/'",
            remedy="Write '#/NAME', or leave out '#'.",
        )
    return ParsedReference(match[1], int(match[2]), pointer)


Lookup = Callable[[ParsedReference], object]
"""Returns a fresh copy of the value that a reference names."""


def resolved(value: object, prefix: str, lookup: Lookup) -> object:
    """Return a value with each reference replaced by the value that it names.

    A reference is a whole string among the values of maps and the items of lists and tuples. Names
    of maps are not searched, nor is the data that replaces a reference. A string that begins with a
    doubled first character of the prefix loses one.

    Raises:
        InvalidInput: a string begins as a reference, and cannot be parsed.
        NotFound: a reference names nothing; from ``lookup``.
    """
    return _resolved(value, prefix, lookup, DEPTH_MAX)


def _resolved(value: object, prefix: str, lookup: Lookup, depth: int) -> object:
    if isinstance(value, str):
        if value.startswith(f"{prefix}:"):
            return lookup(parsed(value, prefix))
        return value[1:] if _is_escaped(value, prefix) else value
    if not depth:
        return value
    # Only the exact types of JSON: another object of the caller is passed as it is.
    if type(value) is dict:
        items = cast("dict[object, object]", value)
        return {key: _resolved(item, prefix, lookup, depth - 1) for key, item in items.items()}
    if type(value) is list:
        return [_resolved(item, prefix, lookup, depth - 1) for item in cast("list[object]", value)]
    if type(value) is tuple:
        return tuple(
            _resolved(item, prefix, lookup, depth - 1) for item in cast("tuple[object]", value)
        )
    return value


def _is_escaped(text: str, prefix: str) -> bool:
    first = prefix[0]
    bare = text.lstrip(first)
    return len(text) - len(bare) > 1 and bare.startswith(f"{prefix[1:]}:")


def pointed(value: JsonValue, pointer: str, text: str) -> JsonValue:
    """Return the part of a value at a JSON pointer (RFC 6901, not percent-decoded).

    Args:
        value: The value.
        pointer: The pointer; "" for the whole value.
        text: The reference, for the error.

    Raises:
        InvalidInput: the pointer has a "~" that is no escape.
        NotFound: no part is there; the error names the deepest that exists.
    """
    walked = ""
    for token in pointer.split("/")[1:]:
        name = _ESCAPES.sub(lambda match: _unescaped(match, text), token)
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise NotFound(
                f"{text!r:.120} has no part {name!r:.60}",
                where=f"{walked or 'the whole value'}: {_parts_of(value)}",
                remedy="Point to a part that exists.",
            )
        walked = f"{walked}/{token}"
    return value


def _unescaped(match: re.Match[str], text: str) -> str:
    character = _UNESCAPED.get(match[1])
    if character is None:
        raise InvalidInput(
            f"The pointer of {text!r:.120} has {match[0]!r}, expected '~0' or '~1'",
            remedy="Write '~0' for '~' and '~1' for '/'.",
        )
    return character


def _parts_of(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        names = [repr(name) for name in list(value)[:6]]
        more = f", and {len(value) - 6:,} more" if len(value) > 6 else ""
        return f"a map of {', '.join(names)}{more}" if names else "an empty map"
    if isinstance(value, list):
        return f"a list of {len(value):,} items"
    return f"a {'null' if value is None else type(value).__name__}"
