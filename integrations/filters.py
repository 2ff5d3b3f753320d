# Values of items have any type.
# pyright: basic
"""Filters of LangGraph and LangChain: exact tests of values, and a `Filter` of a superset.

Owns the meaning of operators in dicts. The `Filter` only saves reading frames; `holds` decides.
Numbers compare exactly, also with infinities and beyond 64 bits; True is not 1; nothing compares
with NaN.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import exact
from cerata.projections.frames.filters import Filter

_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")

_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_STATED: Final = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
"""The operators of a `Filter` for those of a dict."""

_OPERATORS: Final = ("$eq", "$ne", *_ORDERED)
_INTEGER_MAX: Final = 1 << 53
_DEPTH_MAX: Final = 32

Filters = Mapping[str, Any]


def check_filter(filters: object) -> Filters:
    """Return a filter, or refuse it.

    Raises:
        InvalidInput: the filter is no map, a key has other letters than those of "a-z", "A-Z",
            "0-9", "_", "." and "-", an operator is unknown, or the filter is nested too deep.
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
            raise InvalidInput(
                f"Invalid filter key: {key!r:.60}",
                remedy='Use letters, digits, "_", "-", and "." between the keys of a path.',
            )
        if isinstance(value, Mapping):
            _check(cast("Filters", value), depth + 1)


def holds(value: Mapping[str, Any], filters: Filters) -> bool:
    """Return whether an item's value passes a filter."""
    return all(_compares(_at(value, key), wanted) for key, wanted in filters.items())


def superset(filters: Filters) -> Filter | None:
    """Return a `Filter` that every passing item passes, or None if no test can be stated."""
    where: Filter | None = None
    for key, wanted in filters.items():
        tests = wanted.items() if isinstance(wanted, Mapping) else [("$eq", wanted)]
        for name, operand in tests:
            if name not in _STATED or not _NAME.fullmatch(key) or not _is_stated(operand):
                continue
            test = Filter(metadata={key: (_STATED[name], operand)})
            where = test if where is None else where & test
    return where


def _is_stated(operand: Any) -> bool:
    """Return whether a `Filter` compares with a value as `holds` does."""
    return (type(operand) is int and abs(operand) < _INTEGER_MAX) or bool(
        operand and isinstance(operand, str)
    )


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
    operand = exact(operand)
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
    wanted = exact(wanted)
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
