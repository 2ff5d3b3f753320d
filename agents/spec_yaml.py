"""Memory specs in YAML: the declarations of an agent's slots in a file.

Owns the reading of the file, with the line of each fault. Leaves out the fields (`spec`) and the
parser, which runs in a child process (`yaml_tree`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from cerata.engine.errors import InvalidInput, NotFound, Unsupported
from cerata.engine.late import install_command
from cerata.memory.ingest.formats.sandbox import Unparsed, is_installed, isolated
from cerata.memory.interchange.line_blocks import nests_deeply

from .spec import MemorySpec, check_fields, declared
from .yaml_tree import List, Map, Scalar, Tree

SIZE_MAX: Final = 1 << 20
"""Bytes of a file of declarations."""

_SECONDS_MAX: Final = 10
"""Most processor time of the parser: a declaration takes milliseconds."""

_TOP: Final = "memory"
_CODE: Final = ("schema", "upcasters")


def load_memory(path: str | os.PathLike[str]) -> dict[str, MemorySpec]:
    """Return the slots that a YAML 1.2 file declares, for `Agent`.

    The file is a map with the name ``memory``, which has a map of fields for each slot. ``schema``
    and ``upcasters`` are Python objects, so a file has neither.

    Args:
        path: The file; needs the extra ``yaml``.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file is no YAML, repeats a name, or has a slot that cannot be honoured;
            the place is the line.
        Unsupported: the extra is not installed.
    """
    file = Path(path)
    document = _document(file)
    place = _Place(file.name)
    top = place.map_of(document, "the file", None)
    for name in top:
        if name != _TOP:
            raise place.fault(
                top, name, f"{name!r:.60} is no part of a file of slots", "Begin with 'memory:'."
            )
    if _TOP not in top:
        raise InvalidInput("The file declares no memory", where=file.name, remedy="Add 'memory:'.")
    memory = place.map_of(top[_TOP], "memory", top)
    return {slot: _spec(place, memory, slot) for slot in memory}


def _spec(place: _Place, memory: Mapping[Any, Any], slot: Any) -> MemorySpec:
    fields = place.map_of({} if memory[slot] is None else memory[slot], f"slot {slot!r}", memory)
    for name in fields:
        if name in _CODE:
            raise place.fault(
                fields,
                name,
                f"{name} is a Python object, which a file cannot have",
                "Declare the slot in Python with cerata.MemorySpec.",
            )
    try:
        check_fields(fields, f"slot {slot!r}")
        spec = msgspec.convert(dict(fields), MemorySpec)
        declared(slot, spec)
    except InvalidInput as error:
        name = next((name for name in fields if error.what.startswith((name, repr(name)))), None)
        raise place.fault(
            memory if name is None else fields,
            slot if name is None else name,
            error.what,
            error.remedy or "",
        ) from error
    except msgspec.ValidationError as error:
        name = next((name for name in fields if f"$.{name}" in str(error)), None)
        raise place.fault(
            memory if name is None else fields,
            slot if name is None else name,
            f"slot {slot!r}: {error}",
            "docs/working-memory.md lists the fields.",
        ) from error
    return spec


def _document(file: Path) -> object:
    if not is_installed("ruamel.yaml"):
        raise Unsupported(
            "A file of slots needs ruamel.yaml, which is not installed",
            remedy=f"Run {install_command('yaml')}.",
        )
    try:
        data = file.read_bytes()
    except OSError as error:
        raise NotFound(
            f"The file of slots cannot be read: {error.strerror}",
            where=str(file),
            remedy="Pass the path of a YAML file.",
        ) from error
    if len(data) > SIZE_MAX:
        raise InvalidInput(
            f"The file of slots has {len(data):,} bytes, and {SIZE_MAX:,} is the most",
            where=file.name,
            remedy="Declare the slots in several files.",
        )
    if nests_deeply(data):
        raise _no_yaml(file.name, "it is nested too deeply", None)
    try:
        tree = isolated(
            data, file.name, module="cerata.agents.yaml_tree", answer=Tree, seconds=_SECONDS_MAX
        )
    except Unparsed as error:
        raise _no_yaml(file.name, str(error), None) from error
    if tree.fault is not None:
        raise _no_yaml(file.name, tree.fault, tree.line)
    return _value(tree.root)


def _no_yaml(file: str, problem: str, line: int | None) -> InvalidInput:
    return InvalidInput(
        f"The file of slots is no YAML: {problem:.200}",
        where=file if line is None else f"{file}, line {line:,}",
        remedy="Correct the line; each name may occur once in a map.",
    )


class _LinedMap(dict[Any, Any]):
    """A map of the file, with the line of each name."""

    def __init__(self, node: Map) -> None:
        super().__init__((name.value, _value(item)) for name, _, item in node.items)
        self.lines: dict[object, int] = {name.value: line for name, line, _ in node.items}


def _value(node: Map | List | Scalar) -> object:
    if isinstance(node, Map):
        return _LinedMap(node)
    return [*map(_value, node.items)] if isinstance(node, List) else node.value


class _Place:
    """The places of faults in a file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def fault(self, parent: object, name: object, message: str, remedy: str) -> InvalidInput:
        """Return an error at the line of a name in a map."""
        line = parent.lines.get(name) if isinstance(parent, _LinedMap) else None
        where = f"{self.file}, line {line:,}" if line else self.file
        return InvalidInput(message, where=where, remedy=remedy)

    def map_of(self, value: object, what: str, parent: object) -> Mapping[Any, Any]:
        """Return a map. Raises `InvalidInput` at the line of another value."""
        if isinstance(value, Mapping):
            return cast("Mapping[object, Any]", value)
        raise self.fault(
            parent,
            what.removeprefix("slot ").strip("'"),
            f"{what} is {_kind(value)}, expected a map of names to values",
            "Write 'memory:', then a name and its fields for each slot.",
        )


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    return "a list" if isinstance(value, list) else "a single value"
