# Values of items have any type.
# pyright: basic
"""Filters of LangGraph's store: exact tests of values, and a `Filter` that admits a superset.

Owns the meaning of operators. The `Filter` only saves reading frames; `holds` decides. Numbers
compare exactly, also with infinities and beyond 64 bits; True is not 1; nothing compares with NaN.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from cerata.engine.errors import InvalidInput
from cerata.projections.frames.filters import Filter

_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")

_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS: Final = ("$eq", "$ne", *_ORDERED)
_INTEGER_MAX: Final = 1 << 53
_DEPTH_MAX: Final = 32

Filters = Mapping[str, Any]


def check_filter(filters: object) -> Filters:
    """Return a filter, or refuse it.

    Raises:
        ValueError: a key has other letters than those of "a-z", "A-Z", "0-9", "_", "." and "-".
        InvalidInput: the filter is no map, an operator is unknown, or it is nested too deep.
    """
    if not isinstance(filters, Mapping):
        raise InvalidInput(f"filter must be a dict, not {filters!r:.60}", remedy="Pass a dict.")
    _check(cast("Filters", filters), 1)
    return cast("Filters", filters)


def _check(filters: Filters, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise InvalidInput(
            f"A filter is nested deeper than {_DEPTH_MAX} levels", remedy="Flatten it."
        )
    for key, value in filters.items():
        if isinstance(key, str) and key.startswith("$") and depth > 1:
            if key not in _OPERATORS:
                raise InvalidInput(
                    f"There is no operator {key!r:.60}", remedy=f"Use {', '.join(_OPERATORS)}."
                )
        elif not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(f"Invalid filter key: {key!r:.60}")
        if isinstance(value, Mapping):
            _check(cast("Filters", value), depth + 1)


def holds(value: Mapping[str, Any], filters: Filters) -> bool:
    """Return whether an item's value passes a filter."""
    return all(_compares(_at(value, key), wanted) for key, wanted in filters.items())


def superset(filters: Filters) -> Filter | None:
    """Return a `Filter` that every passing item passes, or None if no test can be stated."""
    tests: dict[str, Any] = {}
    for key, wanted in filters.items():
        exact = wanted
        if isinstance(wanted, Mapping) and list(wanted) == ["$eq"]:
            exact = wanted["$eq"]
        is_small = type(exact) is int and abs(exact) < _INTEGER_MAX
        if _NAME.fullmatch(key) and (is_small or (isinstance(exact, str) and exact)):
            tests[key] = ("=", exact)
    return Filter(metadata=tests) if tests else None


def _at(value: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, or of a path of keys joined by dots; None if it is missing."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _compares(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_applies(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(
            _compares(value.get(key), part) for key, part in wanted.items()
        )
    return _equals(value, wanted)


def _applies(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return _equals(value, operand)
    if name == "$ne":
        return not _equals(value, operand)
    ordered = _ORDERED.get(name)
    if ordered is None or not (
        (_is_number(value) and _is_number(operand))
        or (isinstance(value, str) and isinstance(operand, str))
    ):
        return False
    return ordered(value, operand)


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return (
            isinstance(value, Mapping)
            and value.keys() == wanted.keys()
            and all(_equals(value[key], part) for key, part in wanted.items())
        )
    if isinstance(wanted, list | tuple):
        items = cast("Sequence[Any]", wanted)
        return (
            isinstance(value, list | tuple)
            and len(cast("Sequence[Any]", value)) == len(items)
            and all(map(_equals, cast("Sequence[Any]", value), items))
        )
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not (isinstance(value, float) and math.isnan(value))
