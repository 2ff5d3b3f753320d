"""Typed values: the values of metadata, each as a type and a u64 key that preserves order.

Owns the comparison of values. A value compares only with values of its family: null, bool, number
or string. Numbers compare exactly, integers with floats, too: a number that float64 holds exactly
is stored as float64 (`ValueType.NUMBER`), a larger integer as itself. Leaves out the keys of
strings, which the dictionary of strings assigns.
"""

import math
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from cerata.engine.late import late

from .columns import U64

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

KEY_MAX: Final = (1 << 64) - 1
EXACT_MAX: Final = 1 << 53
"""Every whole number up to this is a float64."""

_BIAS: Final = 1 << 63
_pack: Final = struct.Struct("<d").pack

KeyRange: TypeAlias = tuple["ValueType", int, int]
"""A type, and the least and greatest key of the values of that type."""


class ValueType(IntEnum):
    """The interpretation of a key. On disk: never renumber, and stay below 8."""

    NULL = 0
    BOOL = 1
    NUMBER = 2
    """A number that float64 holds exactly; the key is its bits, transformed to ascend."""
    LARGE = 3
    """A whole number above 2^53 that no float64 holds; the key is the number."""
    LARGE_NEGATIVE = 4
    """A whole number below −2^53 that no float64 holds; the key is the number + 2^63."""
    STRING = 5
    TIME = 6
    """Microseconds since 1970 UTC; the key is the number + 2^63."""
    OTHER = 7
    """A list or a map, which no comparison matches."""


def number_key(value: float) -> tuple[ValueType, int]:
    """Return the type and key of a number that is no bool."""
    try:
        number = float(value)
    except OverflowError:
        return ValueType.OTHER, 0
    if number == value and math.isfinite(number):
        return ValueType.NUMBER, _ascending(number)
    if isinstance(value, int) and 0 < value <= KEY_MAX:
        return ValueType.LARGE, value
    if isinstance(value, int) and -_BIAS <= value < 0:
        return ValueType.LARGE_NEGATIVE, value + _BIAS
    # Only from a faulty writer: JSON has neither infinity nor numbers as large.
    return ValueType.OTHER, 0


def exact_number_keys(numbers: Sequence[float]) -> U64:
    """Return the keys of finite numbers that float64 holds exactly, (n,) uint64.

    >>> exact_number_keys([2, -0.5]).tolist() == [number_key(2)[1], number_key(-0.5)[1]]
    True
    """
    # Zero is added so that −0 counts as 0.
    bits = (np.array(numbers, np.float64) + 0.0).view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(_BIAS))


def time_key(time_us: int) -> int:
    """Return the key of a time in microseconds since 1970 UTC."""
    return time_us + _BIAS


def key_time(key: int) -> int:
    """Return the time of a key, in microseconds since 1970 UTC."""
    return key - _BIAS


def key_number(kind: ValueType, key: int) -> int | float:
    """Return the number of a type and key; a whole number as int, which `number_key` cannot tell.

    >>> [key_number(*number_key(number)) for number in (2.0, -0.5, 2**64 - 1, -(2**63) + 1)]
    [2, -0.5, 18446744073709551615, -9223372036854775807]
    """
    if kind is ValueType.LARGE:
        return key
    if kind is ValueType.LARGE_NEGATIVE:
        return key - _BIAS
    bits = key ^ _BIAS if key & _BIAS else KEY_MAX - key
    number: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return int(number) if number.is_integer() else number


def number_ranges(operator: str, bound: float) -> list[KeyRange]:
    """Return the keys of the numbers that satisfy an exact comparison with a finite bound.

    ``operator``: ``=``, ``<``, ``<=``, ``>`` or ``>=``.
    """
    if operator == "=":
        kind, key = number_key(bound)
        return [] if kind is ValueType.OTHER else [(kind, key, key)]
    upward = operator[0] == ">"
    edge = _edge(operator, bound)
    whole = math.ceil(bound) if operator in (">=", "<") else math.floor(bound)
    whole += {">=": 0, "<": -1, "<=": 0, ">": 1}[operator]
    ranges = [
        (ValueType.NUMBER, edge, _ascending(math.inf)),
        (ValueType.LARGE, whole, KEY_MAX),
        (ValueType.LARGE_NEGATIVE, whole + _BIAS, KEY_MAX),
    ]
    if not upward:
        ranges = [(kind, 0, low) for kind, low, _ in ranges]
    return [
        (kind, max(low, 0), min(high, KEY_MAX))
        for kind, low, high in ranges
        if max(low, 0) <= min(high, KEY_MAX)
    ]


def _edge(operator: str, bound: float) -> int:
    """Return the key of the float64 nearest to a bound that satisfies the comparison."""
    toward = math.inf if operator[0] == ">" else -math.inf
    try:
        number = float(bound)
    except OverflowError:
        number = math.inf if bound > 0 else -math.inf
    holds = {
        ">=": number >= bound,
        ">": number > bound,
        "<=": number <= bound,
        "<": number < bound,
    }[operator]
    return _ascending(number if holds else math.nextafter(number, toward))


def _ascending(number: float) -> int:
    """Return the bits of a float64, transformed to ascend with the number; −0 counts as 0."""
    bits = int.from_bytes(_pack(number + 0.0), "little")
    return KEY_MAX - bits if bits & _BIAS else bits | _BIAS
