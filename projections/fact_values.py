"""The object of a fact: one typed value, as a kind and one u64 that is equal where the value is.

Owns which kinds there are, and how each is kept. Strings, bytes and entities are kept by their
number in a dictionary that others hold; two kinds are never equal, whatever their values.
"""

import math
import struct
from enum import IntEnum, StrEnum
from typing import Final

_BIAS: Final = 1 << 63
_float = struct.Struct("<d")


class ObjectKind(IntEnum):
    """What an object is. On disk: never renumber."""

    STRING = 1
    INTEGER = 2
    FLOAT = 3
    BOOL = 4
    BYTES = 5
    TIMESTAMP = 6
    ENTITY = 7


class Standing(StrEnum):
    """Whether a fact stands, by what it is linked to."""

    STANDS = "stands"
    INVALID = "invalid"
    DISPUTED = "disputed"


KIND_NAMES: Final = {kind.name.lower(): kind for kind in ObjectKind}
"""The names that `AssertFact.object_kind` may have."""

TEXT_KINDS: Final = (ObjectKind.STRING, ObjectKind.BYTES, ObjectKind.ENTITY)
"""Kinds whose values are kept as strings."""

_TYPES: Final[dict[ObjectKind, type]] = {
    ObjectKind.STRING: str,
    ObjectKind.INTEGER: int,
    ObjectKind.FLOAT: float,
    ObjectKind.BOOL: bool,
    ObjectKind.BYTES: bytes,
    ObjectKind.TIMESTAMP: int,
    ObjectKind.ENTITY: str,
}


def kind_of_value(name: str, value: object) -> ObjectKind | None:
    """Return the kind of a stored object, or None where name and value are of no kind."""
    kind = KIND_NAMES.get(name)
    if kind is None or type(value) is not _TYPES[kind]:
        return None
    if isinstance(value, int) and not -_BIAS <= value < _BIAS:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return kind


def text_of(value: object) -> str:
    """Return the string that stands for a value of one of `TEXT_KINDS`."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def number_of(kind: ObjectKind, value: object) -> int:
    """Return the u64 that stands for a value of another kind."""
    if kind is ObjectKind.FLOAT:
        assert isinstance(value, float)
        # −0.0 + 0.0 is 0.0.
        return int.from_bytes(_float.pack(value + 0.0), "little")
    assert isinstance(value, int)
    return int(value) if kind is ObjectKind.BOOL else value + _BIAS


def value_of(kind: ObjectKind, number: int) -> int | float | bool:
    """Return the value behind a u64 of `number_of`."""
    if kind is ObjectKind.FLOAT:
        found: float = _float.unpack(number.to_bytes(8, "little"))[0]
        return found
    return bool(number) if kind is ObjectKind.BOOL else number - _BIAS
