"""Memory specs in YAML: the declarations of an agent's slots in a file.

Owns the reading of the file, with the line of each fault. Leaves out the fields (`spec`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from cerata.engine.errors import InvalidInput, NotFound, Unsupported

from .spec import MemorySpec, check_fields, declared

SIZE_MAX: Final = 1 << 20
"""Bytes of a file of declarations."""

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
        spec = msgspec.convert(_plain(fields), MemorySpec)
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
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ModuleNotFoundError as error:
        raise Unsupported(
            "A file of slots needs ruamel.yaml, which is not installed",
            remedy="Install it with: pip install 'cerata[yaml]'",
        ) from error
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
    try:
        # The round-trip loader keeps lines, and makes no Python objects of tags.
        loader: Any = YAML(typ="rt", pure=True)
        document: object = loader.load(data.decode("utf-8"))
    except (YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1:,}"
        problem = getattr(error, "problem", None) or error
        raise InvalidInput(
            f"The file of slots is no YAML: {str(problem).splitlines()[0]:.200}",
            where=f"{file.name}{line}",
            remedy="Correct the line; each name may occur once in a map.",
        ) from error
    return document


class _Place:
    """The places of faults in a file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def fault(self, parent: object, name: object, message: str, remedy: str) -> InvalidInput:
        """Return an error at the line of a name in a map."""
        lines: Any = getattr(parent, "lc", None)
        try:
            where = f"{self.file}, line {lines.key(name)[0] + 1:,}"
        except (AttributeError, KeyError, TypeError):
            where = self.file
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


def _plain(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return fields of the loader as plain values: scalars, and lists of scalars.

    A deeper value stays as it is and is refused, so an alias cannot multiply it.
    """
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        scalars = [*map(_scalar, items)]
        plain[name] = scalars if isinstance(value, list) else scalars[0]
    return plain


def _scalar(value: Any) -> Any:
    same: Any = value
    if isinstance(value, bool | list | Mapping) or value is None:
        return same
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    # A date is the text that the file has.
    return str(value)


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    return "a list" if isinstance(value, list) else "a single value"
