"""The type of plain values, those of JSON, and the conversion of a caller's scalars to them.

Owns `exact`, the one place that knows numpy's scalars, subclasses and members of enums. A scalar of
an exact type passes the first test, so callers convert only what a check of types would refuse.
"""

import builtins
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Final, TypeAlias, TypeVar, cast

JsonValue: TypeAlias = (
    "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
)
"""The values that metadata may hold: JSON's. Maps are stored with sorted names."""

Scalar = TypeVar("Scalar")

_SCALARS: Final = frozenset((str, int, float, bool, NoneType))


class PendingId(int):
    """The id −k of a thing of an open transaction.

    It stands for a seq in references, which become seqs when read. A value is stored as it is, so a
    value must not be such an id.
    """

    __slots__ = ()


def exact(value: Scalar) -> Scalar:
    """Return a scalar as the type of JSON that it is; any other value unchanged.

    Scalars are those of numpy, of subclasses of str, int and float, and members of an `Enum`.

    >>> from http import HTTPStatus
    >>> exact(HTTPStatus.OK), exact(b"bytes")
    (200, b'bytes')
    """
    return value if type(value) in _SCALARS else cast("Scalar", _converted(value))


def _converted(value: object) -> object:
    if isinstance(value, Enum):
        return exact(cast("object", value.value))
    # The methods of the base, since a subclass may override them.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__pos__(value)
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    # For numpy a timedelta is an integer.
    if isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64):
        return int(cast("int", value))
    if isinstance(value, numpy.floating):
        return float(cast("float", value))
    return bool(value) if isinstance(value, numpy.bool_) else value


def exact_fields(owner: object, *names: str) -> None:
    """Give fields of a frozen value the exact types of their scalars; see `exact`."""
    for name in names:
        value: object = getattr(owner, name)
        if type(value) not in _SCALARS and (converted := _converted(value)) is not value:
            object.__setattr__(owner, name, converted)


def exact_or_fail(value: object) -> object:
    """Return `exact` of a value for an encoder. Raises `TypeError` if nothing was converted."""
    converted = _converted(value)
    if converted is value:
        raise TypeError(f"Encoding objects of type {type_name(value)} is unsupported")
    return converted


def shown_id(number: int) -> int:
    """Return an id as a caller gets it: one of an open transaction as a `PendingId`."""
    return number if number >= 0 else PendingId(number)


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module if a built-in type has this name."""
    kind = type(value)
    name = kind.__name__
    return name if getattr(builtins, name, kind) is kind else f"{kind.__module__}.{name}"
