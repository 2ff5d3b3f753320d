"""Expressions of filters: tests of a frame's attributes, joined by all, any and not.

Owns the nodes and what a walk over them gives: their number, their times, their plain form. Leaves
out the parameters that nodes are made from, and evaluation.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Final, Literal, TypeAlias

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from ..columnar.relative_times import RelativeTime
from ..columnar.times import to_datetime
from ..columnar.typed_values import ValueType

Bound: TypeAlias = int | RelativeTime | None
TimeName: TypeAlias = Literal["created", "recorded", "content"]
Scalar: TypeAlias = str | int | float | bool | None


class Named(msgspec.Struct, frozen=True):
    """The frame's kind or role is one of ``names``."""

    column: Literal["kind", "role"]
    names: tuple[str, ...]


class Compared(msgspec.Struct, frozen=True):
    """A field of the frame, or of its scope, compared with a value.

    - ``type`` is NULL, BOOL, NUMBER (of any size) or STRING, and distinguishes True from 1.
    - ``operator`` may also be ``prefix``, ``contains`` or ``exists``, which has the value None.
    - ``!=`` has no evaluation of its own: see `unequal`.
    """

    field: str
    operator: str
    type: ValueType
    value: Scalar


class During(msgspec.Struct, frozen=True):
    """A time lies in [start, end), in microseconds since 1970 UTC; None is open.

    A bound in words is resolved before evaluation.
    """

    time: TimeName
    start: Bound
    end: Bound


class Every(msgspec.Struct, frozen=True):
    """All parts hold; true without parts."""

    parts: tuple["Expression", ...]


class Either(msgspec.Struct, frozen=True):
    """At least one part holds; false without parts."""

    parts: tuple["Expression", ...]


class Negated(msgspec.Struct, frozen=True):
    """The part does not hold."""

    part: "Expression"


Expression: TypeAlias = Named | Compared | During | Every | Either | Negated

_ATOMS_MAX: Final = 10
"""Different tests of which all 2**n combinations are tried."""


def unequal(test: Compared) -> Expression:
    """Return a test of ``!=``: the field exists, in any type, and ``=`` does not hold."""
    present = Compared(test.field, "exists", ValueType.NULL, None)
    return Every((present, Negated(Compared(test.field, "=", test.type, test.value))))


def number_of_tests(expression: Expression) -> int:
    """Return the number of tests, each a pass over the frames."""
    match expression:
        case Every(parts) | Either(parts):
            return sum(map(number_of_tests, parts))
        case Named(_, names):
            return len(names)
        case _:
            return 1


def is_universal(expression: Expression) -> bool:
    """Return whether the expression tests nothing, so that every frame passes.

    Tests count as independent of each other, so "x or not x" is universal. Past `_ATOMS_MAX`
    different tests only the structure decides. The test for an empty prefix tests nothing.
    """
    atoms = list(dict.fromkeys(_atoms(expression)))
    if len(atoms) > _ATOMS_MAX:
        return _holds(expression, {}, default=False)
    return all(
        _holds(expression, dict(zip(atoms, values, strict=True)), default=False)
        for values in product((False, True), repeat=len(atoms))
    )


def _atoms(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Every(parts) | Either(parts):
            for part in parts:
                yield from _atoms(part)
        case Negated(part):
            yield from _atoms(part)
        case _:
            yield expression


def _holds(expression: Expression, values: Mapping[Expression, bool], *, default: bool) -> bool:
    """Return whether an expression holds if its tests have values; else one without a value."""
    match expression:
        case Every(parts):
            return all(_holds(part, values, default=default) for part in parts)
        case Either(parts):
            return any(_holds(part, values, default=default) for part in parts)
        case Negated(part):
            return not _holds(part, values, default=not default)
        case During(_, None, None) | Compared(_, "prefix", _, ""):
            return True
        case _:
            return values.get(expression, default)


def is_relative(expression: Expression) -> bool:
    """Return whether a time is in words, so that the meaning depends on now."""
    match expression:
        case During(_, start, end):
            return isinstance(start, RelativeTime) or isinstance(end, RelativeTime)
        case Every(parts) | Either(parts):
            return any(map(is_relative, parts))
        case Negated(part):
            return is_relative(part)
        case _:
            return False


def resolved(expression: Expression, now: datetime) -> Expression:
    """Return the expression with each time in words as an instant, relative to ``now``.

    Raises:
        InvalidInput: a range ends before its start.
    """
    match expression:
        case During(time, start, end):
            first, last = (
                bound.at(now) if isinstance(bound, RelativeTime) else bound
                for bound in (start, end)
            )
            # The last time of a range in words is whole.
            is_range = isinstance(end, RelativeTime) and end.edge == "end"
            if first is not None and last is not None and last < first + is_range:
                raise InvalidInput(
                    f"{time} ends at {to_datetime(last)}, before its start at {to_datetime(first)}",
                    remedy="Write the earlier time first; a weekday alone is the last that is "
                    "over.",
                )
            return During(time, first, last)
        case Every(parts) | Either(parts):
            return type(expression)(tuple(resolved(part, now) for part in parts))
        case Negated(part):
            return Negated(resolved(part, now))
        case _:
            return expression


def expression_dict(expression: Expression) -> dict[str, JsonValue]:
    """Return an expression as plain values: tests under ``all``, ``any`` and ``not``."""
    match expression:
        case Named(column, names):
            return {"field": column, "operator": "in", "value": list(names)}
        case Compared(field, "exists", _, _):
            return {"field": field, "operator": "exists", "value": True}
        case Compared(field, operator, _, value):
            return {"field": field, "operator": operator, "value": value}
        case During(time, start, end):
            return {"field": time, "from": _time_text(start), "before": _time_text(end)}
        case Every(parts):
            return {"all": [expression_dict(part) for part in parts]}
        case Either(parts):
            return {"any": [expression_dict(part) for part in parts]}
        case Negated(part):
            return {"not": expression_dict(part)}


def _time_text(bound: Bound) -> str | None:
    if bound is None:
        return None
    return to_datetime(bound).isoformat() if isinstance(bound, int) else str(bound)
