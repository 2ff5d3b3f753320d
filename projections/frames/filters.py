"""Filters: which frames a read admits, the same for search, recall, frames and timeline.

Owns `Filter`, a frozen expression over the attributes of frames, and its meaning. Leaves out
evaluation: `filter_masks` turns a filter into an exact mask over the rows of frames.

- ``tags``, ``labels``: the frame has all of them. Combine filters with ``|`` for any of them.
- ``kind``, ``role``, ``track``: the frame has one of the names; a frame without a name never
  matches.
- ``uri_prefix``: the frame has a URI with this prefix.
- ``scope``: the scope has each name with this value.
- ``metadata``: by key, or by a path of keys joined by dots; a map of tests stands for its paths. A
  plain value means ``=``; else ``(operator, value)`` with ``=``, ``!=``, ``<``, ``<=``, ``>``,
  ``>=``, ``in`` (a list of values), ``contains`` (a list that has the value) or ``exists`` (True or
  False). Values compare within their family: null, bool, number or string, numbers exactly, strings
  by code point; True is not 1. A missing key, a value of another family, a list and a map match no
  comparison, not even ``!=``: for "not 3, or absent" write ``~Filter(metadata={"n": 3})``. A list
  contains the values of lists inside it, and by their path the values of maps inside it.
- ``created``, ``recorded``, ``content``: ``(start, end)`` with start ≤ time < end; None is open.
  A single string is the whole day, month or other time that it names. A time in words, such as
  "last week", is a `RelativeTime`, which each read resolves against its now (`resolved`). A frame
  without a time of creation counts as created when recorded. Content times are the content dates,
  else the time of creation; a single time within the range is enough.

- ``absent``: neither the scope nor the metadata has the name; ``"scope.user_id"`` and
  ``"metadata.lang"`` test one of the two.

All parameters of a filter must hold; ``Filter()`` admits every frame. An erased frame has only its
time of recording.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, cast

from cerata.engine.arguments import expect_text, expect_type
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import JsonValue, ScopeValue
from cerata.engine.limits import NESTING_MAX

from ..columnar.relative_times import RelativeTime, interval_of, is_relative
from ..columnar.times import to_datetime
from ..columnar.typed_values import ValueType

Time: TypeAlias = datetime | str | RelativeTime
TimeRange: TypeAlias = tuple[Time | None, Time | None] | str
Bound: TypeAlias = int | RelativeTime | None
TimeName: TypeAlias = Literal["created", "recorded", "content"]
Scalar: TypeAlias = str | int | float | bool | None
MetadataTest: TypeAlias = (
    Scalar | tuple[str, Scalar | Collection[Scalar]] | Mapping[str, "MetadataTest"]
)

OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for now in times that do not depend on now."""
_ORDERED: Final = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Named:
    """The frame's kind or role is one of ``names``."""

    column: Literal["kind", "role"]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A field of the frame, or of its scope, compared with a value.

    - ``type`` is NULL, BOOL, NUMBER (of any size) or STRING, and distinguishes True from 1.
    - ``operator`` may also be ``prefix``, ``contains`` or ``exists``, which has the value None.
    """

    field: str
    operator: str
    type: ValueType
    value: Scalar


@dataclass(frozen=True, slots=True)
class During:
    """A time lies in [start, end), in microseconds since 1970 UTC; None is open.

    A bound in words is resolved before evaluation.
    """

    time: TimeName
    start: Bound
    end: Bound


@dataclass(frozen=True, slots=True)
class Every:
    """All parts hold; true without parts."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part holds; false without parts."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """The part does not hold."""

    part: "Expression"


Expression: TypeAlias = Named | Compared | During | Every | Either | Negated


@dataclass(frozen=True, slots=True, init=False)
class Filter:
    """The frames that a read admits; all parameters must hold.

    Filters are values: they compare, hash, and combine with ``&``, ``|`` and ``~``.

    >>> recent = Filter(tags=["decision"], metadata={"year": (">=", 2024)})
    >>> notes = Filter(kind="note", uri_prefix="file:") | Filter(created=("2026-01-01", None))
    >>> (recent & ~notes).to_dict()["all"][1]
    {'field': 'metadata.year', 'operator': '>=', 'value': 2024}

    Args:
        tags: Tags that the frame must all have; default none.
        labels: Labels that the frame must all have; default none.
        kind: The kind of the frame, or a list of accepted kinds; default any.
        role: The role of the frame, or a list of accepted roles; default any.
        track: The track of the frame, or a list of accepted tracks; default any.
        scope: Names and values that the frame's scope must contain; default any.
        metadata: A value, ``(operator, value)`` or a map of these for each key or path, such as
            ``{"user.name": "anna", "tags": ("contains", "x")}``; default any.
        created: ``(start, end)`` for the time of creation, start included, or a single time, such
            as "2026-03" or "last week"; default any.
        recorded: ``(start, end)`` for the time of recording, or a single time; default any.
        content: ``(start, end)`` or a time that must contain a content time; default any.
        uri_prefix: Prefix of the frame's URI; default any.
        absent: Names that neither the frame's scope nor its metadata may have, or "scope.NAME" or
            "metadata.NAME" for one of the two; default none.

    Raises:
        InvalidInput: a value of the wrong type, an unknown operator, a time without a zone, a
            range that ends before its start.
    """

    expression: Expression
    depth: int = field(compare=False, repr=False)
    """Upper bound of the nesting levels of the expression."""
    size: int = field(compare=False, repr=False)
    """Number of tests in the expression."""

    def __init__(
        self,
        *,
        tags: Collection[str] = (),
        labels: Collection[str] = (),
        kind: str | Collection[str] | None = None,
        role: str | Collection[str] | None = None,
        track: str | Collection[str] | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        metadata: Mapping[str, MetadataTest] | None = None,
        created: TimeRange | None = None,
        recorded: TimeRange | None = None,
        content: TimeRange | None = None,
        uri_prefix: str | None = None,
        absent: Collection[str] = (),
    ) -> None:
        parts: list[Expression] = [_equals("tag", tag) for tag in _strings("tags", tags)]
        parts += [_equals("label", label) for label in _strings("labels", labels)]
        if kind is not None:
            parts.append(Named("kind", _names("kind", kind)))
        if role is not None:
            parts.append(Named("role", _names("role", role)))
        if track is not None:
            parts.append(_either([_equals("track", name) for name in _names("track", track)]))
        for name, value in _mapping("scope", scope):
            if not isinstance(value, str | int):
                raise InvalidInput(
                    f"scope {name!r} must be a string, an integer or a bool, not "
                    f"{type(value).__name__}",
                    remedy="Pass a str, int or bool.",
                )
            parts.append(_equals(f"scope.{name}", value))
        for name, test in _mapping("metadata", metadata):
            parts += _metadata(name, test)
        for time, span in (("created", created), ("recorded", recorded), ("content", content)):
            if span is not None:
                parts.append(_during(cast("TimeName", time), span))
        if uri_prefix is not None:
            prefix = expect_text("uri_prefix", uri_prefix)
            parts.append(Compared("uri", "prefix", ValueType.STRING, prefix))
        for name in _strings("absent", absent):
            parts += _absent(name)
        object.__setattr__(self, "expression", parts[0] if len(parts) == 1 else Every(tuple(parts)))
        object.__setattr__(self, "depth", PLAIN_DEPTH)
        object.__setattr__(self, "size", _checked_size(sum(map(_tests_of, parts))))

    def __and__(self, right: "Filter") -> "Filter":
        parts = (*_parts(self, Every), *_parts(right, Every))
        joined = parts[0] if len(parts) == 1 else Every(parts)
        return _filter(joined, _depth_of(Every, self, right), self.size + right.size)

    def __or__(self, right: "Filter") -> "Filter":
        parts = (*_parts(self, Either), *_parts(right, Either))
        return _filter(Either(parts), _depth_of(Either, self, right), self.size + right.size)

    def __invert__(self) -> "Filter":
        inner = self.expression
        if isinstance(inner, Negated):
            return _filter(inner.part, self.depth, self.size)
        return _filter(Negated(inner), self.depth + 1, self.size)

    @property
    def is_relative(self) -> bool:
        """True if a time of the filter is in words, so that the result depends on now."""
        return _is_relative(self.expression)

    def resolved(self, now: datetime) -> "Filter":
        """Return the filter with each time in words as an instant, relative to ``now``.

        Args:
            now: The time that words such as "yesterday" count from.
        """
        if not self.is_relative:
            return self
        return _filter(_resolved(self.expression, now), self.depth, self.size)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the filter as plain values: tests under ``all``, ``any`` and ``not``."""
        return _plain(self.expression)


PLAIN_DEPTH: Final = 3
"""Maximum levels of the parameters of a filter: conjunction, alternatives of a list, test."""

DEPTH_MAX: Final = 100
"""Maximum nesting levels: evaluation is recursive."""

TESTS_MAX: Final = 10_000
"""Maximum tests of a filter: each test is a pass over the frames."""


def _checked_size(size: int) -> int:
    if size > TESTS_MAX:
        raise InvalidInput(
            f"The filter has {size:,} tests; the limit is {TESTS_MAX:,}",
            remedy="Pass fewer values to a filter.",
        )
    return size


def _tests_of(expression: Expression) -> int:
    match expression:
        case Every(parts) | Either(parts):
            return sum(map(_tests_of, parts))
        case Named(_, names):
            return len(names)
        case _:
            return 1


def _filter(expression: Expression, depth: int, size: int) -> Filter:
    if depth > DEPTH_MAX:
        raise InvalidInput(
            f"The filter has more than {DEPTH_MAX} nested levels",
            remedy="Combine fewer filters; a chain of only & or only | is a single level.",
        )
    combined = Filter()
    object.__setattr__(combined, "expression", expression)
    object.__setattr__(combined, "depth", depth)
    object.__setattr__(combined, "size", _checked_size(size))
    return combined


def _depth_of(kind: type[Every] | type[Either], *filters: Filter) -> int:
    """Return the levels of joined filters; a part of the same kind merges into the result."""
    return 1 + max(part.depth - isinstance(part.expression, kind) for part in filters)


def _parts(operand: object, kind: type[Every] | type[Either]) -> tuple[Expression, ...]:
    if not isinstance(operand, Filter):
        raise InvalidInput(
            f"A Filter combines only with a Filter, not {type(operand).__name__}",
            remedy="Combine it with another cerata.Filter.",
        )
    expression = operand.expression
    return expression.parts if isinstance(expression, kind) else (expression,)


def times_of(where: Filter) -> list[tuple[TimeName, int | None, int | None]]:
    """Return name, start and end of each interval of a resolved filter, from left to right."""
    times: list[tuple[TimeName, int | None, int | None]] = []
    left = [where.expression]
    while left:
        match left.pop(0):
            case During(name, start, end):
                assert not isinstance(start, RelativeTime)
                assert not isinstance(end, RelativeTime)
                times.append((name, start, end))
            case Every(parts) | Either(parts):
                left = [*parts, *left]
            case Negated(part):
                left = [part, *left]
            case _:
                continue
    return times


def _either(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Either(tuple(parts))


# --- parsing of parameters ---------------------------------------------------------------------


def _strings(name: str, values: Collection[str]) -> list[str]:
    if isinstance(values, str):
        raise InvalidInput(
            f"{name} must be a list of strings, not one string",
            remedy=f"Write {name}=[{values!r}].",
        )
    expect_type(name, values, Collection, "a list of strings", "Pass a list of strings.")
    return [expect_text(f"each item of {name}", value) for value in values]


def _names(name: str, values: str | Collection[str]) -> tuple[str, ...]:
    names = [expect_text(name, values)] if isinstance(values, str) else _strings(name, values)
    if not names:
        raise InvalidInput(
            f"{name} must not be empty, because no frame would match",
            remedy=f"Omit {name} to admit every frame.",
        )
    return tuple(names)


def _mapping(name: str, values: Mapping[str, object] | None) -> list[tuple[str, object]]:
    if values is None:
        return []
    expect_type(name, values, Mapping, "a mapping", "Pass a dict.")
    return [(expect_text(f"each key of {name}", key), value) for key, value in values.items()]


def _absent(name: str) -> list[Expression]:
    part, _, last = name.partition(".")
    if part not in ("scope", "metadata") or not last:
        return [*_absent(f"scope.{name}"), *_absent(f"metadata.{name}")]
    if part == "metadata":
        return [_metadata_test(last, ("exists", False))]
    return [Negated(Compared(name, "exists", ValueType.NULL, None))]


def _metadata(name: str, test: object, depth: int = 1) -> list[Expression]:
    if not isinstance(test, Mapping):
        return [_metadata_test(name, test)]
    inner = _mapping(f"metadata {name!r}", cast("Mapping[str, object]", test))
    if not inner or depth > NESTING_MAX:
        raise InvalidInput(
            f"metadata {name!r:.60} must be a map of tests, at most {NESTING_MAX} levels deep",
            remedy="Pass a test for each name, or ('exists', True).",
        )
    paths = (_metadata(f"{name}.{key}", value, depth + 1) for key, value in inner)
    return [part for parts in paths for part in parts]


def _metadata_test(name: str, test: object) -> Expression:
    field = f"metadata.{name}"
    if isinstance(test, list):
        raise InvalidInput(
            f"metadata {name!r} cannot be compared with a list",
            remedy="Pass ('contains', value) for a list that has a value, or ('in', [value, …]).",
        )
    if not isinstance(test, tuple):
        return _equals(field, test)
    pair = cast("tuple[object, ...]", test)
    if len(pair) != 2 or pair[0] not in OPERATORS:
        raise InvalidInput(
            f"metadata {name!r} must be a value or (operator, value), not "
            f"{value_text(cast('object', test))}",
            remedy=f"Pass a value, or (operator, value) with one of {', '.join(OPERATORS)}.",
        )
    operator = str(pair[0])
    value = pair[1]
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
        return _either([_equals(field, choice) for choice in cast("Collection[object]", value)])
    compared = _compared(field, operator, value)
    if operator in _ORDERED and compared.type in (ValueType.NULL, ValueType.BOOL):
        raise InvalidInput(
            f"{value!r} of metadata {name!r} has no order",
            remedy="Compare with = or !=, or pass a number or a string.",
        )
    return compared


def _equals(field: str, value: object) -> Compared:
    return _compared(field, "=", value)


def _compared(field: str, operator: str, value: object) -> Compared:
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


def _during(time: TimeName, span: object) -> During:
    if isinstance(span, str):
        return _whole(time, span)
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


def _whole(time: TimeName, text: str) -> During:
    if is_relative(text):
        return During(time, RelativeTime(text), RelativeTime(text, "end"))
    return During(time, *interval_of(text, _EPOCH))


def _bound(value: object) -> Bound:
    if value is None or isinstance(value, RelativeTime):
        return value
    if isinstance(value, str) and is_relative(value):
        return RelativeTime(value)
    return interval_of(cast("datetime", value), _EPOCH).start


def _is_relative(expression: Expression) -> bool:
    match expression:
        case During(_, start, end):
            return isinstance(start, RelativeTime) or isinstance(end, RelativeTime)
        case Every(parts) | Either(parts):
            return any(map(_is_relative, parts))
        case Negated(part):
            return _is_relative(part)
        case _:
            return False


def _resolved(expression: Expression, now: datetime) -> Expression:
    match expression:
        case During(time, start, end):
            bounds = [
                bound.at(now) if isinstance(bound, RelativeTime) else bound
                for bound in (start, end)
            ]
            return During(time, *bounds)
        case Every(parts) | Either(parts):
            return type(expression)(tuple(_resolved(part, now) for part in parts))
        case Negated(part):
            return Negated(_resolved(part, now))
        case _:
            return expression


# --- plain values --------------------------------------------------------------------------------


def _plain(expression: Expression) -> dict[str, JsonValue]:
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
            return {"all": [_plain(part) for part in parts]}
        case Either(parts):
            return {"any": [_plain(part) for part in parts]}
        case Negated(part):
            return {"not": _plain(part)}


def _time_text(bound: Bound) -> str | None:
    if bound is None:
        return None
    return to_datetime(bound).isoformat() if isinstance(bound, int) else str(bound)
