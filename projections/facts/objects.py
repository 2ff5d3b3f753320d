"""The object of a fact: a typed value, stored as a kind and a u64; equal values have equal u64.

Owns the kinds and their encoding. The u64 of a string, bytes or entity is a code in a dictionary
that `columns` owns. Values of two kinds are never equal.
"""

import math
import struct
from enum import IntEnum, StrEnum
from typing import Final

_BIAS: Final = 1 << 63
_float = struct.Struct("<d")


class ObjectKind(IntEnum):
    """The type of an object. On disk: never renumber."""

    STRING = 1
    INTEGER = 2
    FLOAT = 3
    BOOL = 4
    BYTES = 5
    TIMESTAMP = 6
    ENTITY = 7


class Standing(StrEnum):
    """The standing of a fact by its links."""

    STANDS = "stands"
    INVALID = "invalid"
    DISPUTED = "disputed"


KIND_NAMES: Final = {kind.name.lower(): kind for kind in ObjectKind}
"""The names that `AssertFact.object_kind` may have."""

TEXT_KINDS: Final = (ObjectKind.STRING, ObjectKind.BYTES, ObjectKind.ENTITY)
"""Kinds whose values are stored in the dictionary of strings."""

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
    """Return the kind of a stored object, or None if name or value fits no kind."""
    kind = KIND_NAMES.get(name)
    if kind is None or type(value) is not _TYPES[kind]:
        return None
    if isinstance(value, int) and not -_BIAS <= value < _BIAS:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return kind


def text_of(value: object) -> str:
    """Return the dictionary string of a value of one of `TEXT_KINDS`."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def number_of(kind: ObjectKind, value: object) -> int:
    """Return the u64 of a value of a kind outside `TEXT_KINDS`."""
    if kind is ObjectKind.FLOAT:
        assert isinstance(value, float)
        # Adding 0.0 turns −0.0 into 0.0, so that equal values have equal numbers.
        return int.from_bytes(_float.pack(value + 0.0), "little")
    assert isinstance(value, int)
    return int(value) if kind is ObjectKind.BOOL else value + _BIAS


def value_of(kind: ObjectKind, number: int) -> int | float | bool:
    """Return the value that `number_of` encoded."""
    if kind is ObjectKind.FLOAT:
        value: float = _float.unpack(number.to_bytes(8, "little"))[0]
        return value
    return bool(number) if kind is ObjectKind.BOOL else number - _BIAS
