"""A YAML file as a tree of plain values with lines; `parse` runs in a child process.

Owns the parser and the form of its answer. It makes no Python objects of tags, and cuts below the
levels that a file of slots has, so an alias cannot multiply a value.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

LEVELS: Final = 6
"""Levels of containers that the answer has: the file, the memory, a slot, a field, an item."""


class Map(msgspec.Struct, frozen=True, tag="m", array_like=True):
    """The names of a map with their lines, counted from 1, and values."""

    items: list[tuple[Scalar, int, Map | List | Scalar]]


class List(msgspec.Struct, frozen=True, tag="l", array_like=True):
    """The items of a list."""

    items: list[Map | List | Scalar]


class Scalar(msgspec.Struct, frozen=True, tag="s", array_like=True):
    """A plain value."""

    value: None | bool | int | float | str


class Tree(msgspec.Struct, frozen=True):
    """The document, or the fault of the file and its line."""

    root: Map | List | Scalar = Scalar(None)
    fault: str | None = None
    line: int | None = None
    error: str | None = None


def parse(data: bytes) -> Tree:
    """Parse a file of YAML 1.2."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        # The round-trip loader keeps lines.
        loader: Any = YAML(typ="rt", pure=True)
        return Tree(_node(loader.load(data.decode("utf-8")), LEVELS))
    except AssertionError:
        # The loader's check of an ordered map.
        return Tree(fault="a name occurs twice in an ordered map")
    except (YAMLError, UnicodeDecodeError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        fault = [*str(problem).splitlines(), type(error).__name__][0]
        return Tree(fault=fault, line=None if mark is None else mark.line + 1)


def _node(value: Any, levels: int) -> Map | List | Scalar:
    lines: Any = getattr(value, "lc", None)
    items: Any = value if levels else ()
    if isinstance(value, dict):
        return Map(
            [(_scalar(name), _line(lines, name), _node(items[name], levels - 1)) for name in items]
        )
    if isinstance(value, list):
        return List([_node(item, levels - 1) for item in items])
    return _scalar(value)


def _line(lines: Any, name: object) -> int:
    try:
        return int(lines.key(name)[0]) + 1
    except (AttributeError, KeyError, TypeError):
        return 0


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool):
        return Scalar(value)
    for kind in (int, float, str):
        if isinstance(value, kind):
            return Scalar(kind(value))
    # A date is the text that the file has.
    return Scalar(str(value))
