"""Tests of a filter: from its parameters to expressions, each checked.

Owns the rules for names, values, operators and time ranges. Every error names the parameter.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final, TypeAlias, cast

from cerata.engine.arguments import expect_text, expect_type
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.json_value import exact
from cerata.engine.limits import NESTING_MAX

from ..columnar.relative_times import RelativeTime, bounds_of, interval_of, is_relative
from ..columnar.typed_values import ValueType
from .filter_expressions import (
    Bound,
    Compared,
    During,
    Either,
    Expression,
    Negated,
    Scalar,
    TimeName,
)

Time: TypeAlias = date | str | RelativeTime
TimeRange: TypeAlias = tuple[Time | None, Time | None] | date | str
MetadataTest: TypeAlias = (
    Scalar | tuple[str, Scalar | Collection[Scalar]] | Mapping[str, "MetadataTest"]
)

OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for now in times that do not depend on now."""
_ORDERED: Final = ("<", "<=", ">", ">=")


def either(parts: Sequence[Expression]) -> Expression:
    """Return an expression that holds if a part holds."""
    return parts[0] if len(parts) == 1 else Either(tuple(parts))


def strings(name: str, values: Collection[str]) -> list[str]:
    """Return a checked list of strings."""
    if isinstance(values, tuple) and not values:
        return []
    if isinstance(values, str):
        raise InvalidInput(
            f"{name} must be a list of strings, not one string",
            remedy=f"Write {name}=[{values!r}].",
        )
    expect_type(name, values, Collection, "a list of strings", "Pass a list of strings.")
    return [expect_text(f"each item of {name}", value) for value in values]


def words(name: str, values: Collection[str]) -> list[str]:
    """Return a checked list of strings, none of them empty: no frame has an empty tag."""
    if isinstance(values, tuple) and not values:
        return []
    checked = strings(name, values)
    if "" in checked:
        raise InvalidInput(
            f"{name} has an empty string", remedy=f"Leave it out, or pass {name}=[]."
        )
    return checked


def names_of(name: str, values: str | Collection[str]) -> tuple[str, ...]:
    """Return the accepted names of a parameter, at least one."""
    names = [expect_text(name, values)] if isinstance(values, str) else strings(name, values)
    if not names:
        raise InvalidInput(
            f"{name} must not be empty, because no frame would match",
            remedy=f"Omit {name} to admit every frame.",
        )
    return tuple(names)


def pairs(name: str, values: Mapping[str, object] | None) -> list[tuple[str, object]]:
    """Return the items of a map with checked keys; none of None."""
    if values is None:
        return []
    expect_type(name, values, Mapping, "a mapping", "Pass a dict.")
    return [(expect_text(f"each key of {name}", key), value) for key, value in values.items()]


def absent_tests(name: str) -> list[Expression]:
    """Return the tests that a name is absent, of the scope, the metadata or both."""
    part, _, last = name.partition(".")
    if part not in ("scope", "metadata") or not last:
        return [*absent_tests(f"scope.{name}"), *absent_tests(f"metadata.{name}")]
    if part == "metadata":
        return [_metadata_test(last, ("exists", False))]
    return [Negated(Compared(name, "exists", ValueType.NULL, None))]


def metadata_tests(name: str, test: object, depth: int = 1) -> list[Expression]:
    """Return the tests of a metadata key or path."""
    if not isinstance(test, Mapping):
        return [_metadata_test(name, test)]
    inner = pairs(f"metadata {name!r}", cast("Mapping[str, object]", test))
    if not inner or depth > NESTING_MAX:
        raise InvalidInput(
            f"metadata {name!r:.60} must be a map of tests, at most {NESTING_MAX} levels deep",
            remedy="Pass a test for each name, or ('exists', True).",
        )
    paths = (metadata_tests(f"{name}.{key}", value, depth + 1) for key, value in inner)
    return [part for parts in paths for part in parts]


def _metadata_test(name: str, test: object) -> Expression:
    field = f"metadata.{name}"
    if isinstance(test, list):
        raise InvalidInput(
            f"metadata {name!r} cannot be compared with a list",
            remedy="Pass ('contains', value) for a list that has a value, or ('in', [value, …]).",
        )
    if not isinstance(test, tuple):
        return equals(field, test)
    pair = cast("tuple[object, ...]", test)
    if len(pair) != 2 or pair[0] not in OPERATORS:
        raise InvalidInput(
            f"metadata {name!r} must be a value or (operator, value), not "
            f"{value_text(cast('object', test))}",
            remedy=f"Pass a value, or (operator, value) with one of {', '.join(OPERATORS)}.",
        )
    operator = str(pair[0])
    value = exact(pair[1])
    if operator == "exists":
        if not isinstance(value, bool):
            raise InvalidInput(
                f"'exists' of metadata {name!r} must be True or False, not {value_text(value)}",
                remedy="Pass ('exists', True) or ('exists', False).",
            )
        exists = Compared(field, "exists", ValueType.NULL, None)
        return exists if value else Negated(exists)
    if operator == "in":
        if isinstance(value, str) or not isinstance(value, Collection):
            raise InvalidInput(
                f"'in' of metadata {name!r} takes a list of values, not {value_text(value)}",
                remedy="Pass ('in', [value, …]).",
            )
        return either([equals(field, choice) for choice in cast("Collection[object]", value)])
    compared = _compared(field, operator, value)
    if operator in _ORDERED and compared.type in (ValueType.NULL, ValueType.BOOL):
        raise InvalidInput(
            f"{value!r} of metadata {name!r} has no order",
            remedy="Compare with = or !=, or pass a number or a string.",
        )
    return compared


def equals(field: str, value: object) -> Compared:
    """Return the test that a field has a value."""
    return _compared(field, "=", value)


def _compared(field: str, operator: str, value: object) -> Compared:
    value = exact(value)
    if value is None:
        return Compared(field, operator, ValueType.NULL, None)
    if isinstance(value, bool):
        return Compared(field, operator, ValueType.BOOL, value)
    if isinstance(value, str):
        return Compared(field, operator, ValueType.STRING, expect_text(field, value))
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return Compared(field, operator, ValueType.NUMBER, value)
    raise InvalidInput(
        f"{field} cannot be compared with {value_text(value)}",
        remedy="Pass a string, a finite number, a bool or None; for a time, its ISO string.",
    )


def time_test(time: TimeName, span: object) -> During:
    """Return the test of a time that a range or a single time contains."""
    if isinstance(span, str):
        return During(time, *bounds_of(span))
    if isinstance(span, date):
        return During(time, *interval_of(span, _EPOCH))
    is_pair = isinstance(span, tuple | list)
    pair = cast("Sequence[object]", span) if is_pair else ()
    if len(pair) != 2:
        raise InvalidInput(
            f"{time} must be (start, end) or a time, not {value_text(span)}",
            remedy="Pass (start, end); None leaves an end open.",
        )
    start, end = map(_bound, pair)
    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise InvalidInput(
            f"{time} ends at {pair[1]}, before its start at {pair[0]}",
            remedy="Pass (start, end) in this order.",
        )
    return During(time, start, end)


def _bound(value: object) -> Bound:
    if value is None or isinstance(value, RelativeTime):
        return value
    if isinstance(value, str) and is_relative(value):
        return RelativeTime(value)
    return interval_of(cast("datetime", value), _EPOCH).start
