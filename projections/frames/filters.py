"""Filters: which frames a read admits, the same for search, recall, frames and timeline.

Owns `Filter`, a frozen expression over the attributes of frames, and its meaning. Leaves out
the parts: `filter_tests` checks parameters, `filter_expressions` has the nodes, and `filter_masks`
turns a filter into an exact mask over the rows of frames.

- ``tags``, ``labels``: the frame has all of them. Combine filters with ``|`` for any of them.
- ``kind``, ``role``, ``track``: the frame has one of the names; a frame without a name never
  matches.
- ``uri_prefix``: the frame has a URI with this prefix.
- ``scope``: the scope has each name with this value.
- ``metadata``: by key, or by a path of keys joined by dots; a map of tests stands for its paths. A
  plain value means ``=``; else ``(operator, value)`` with ``=``, ``!=``, ``<``, ``<=``, ``>``,
  ``>=``, ``in`` (a list of values), ``contains`` (a list that has the value) or ``exists`` (True or
  False). Values compare within their family: null, bool, number or string, numbers exactly, strings
  by code point; True is not 1. A value of another family, a list and a map match no comparison but
  ``!=``, which holds if the key is there and ``=`` does not hold; a missing key matches none: for
  "not 3, or absent" write ``~Filter(metadata={"n": 3})``. A list
  contains the values of lists inside it, and by their path the values of maps inside it.
- ``created``, ``recorded``, ``content``: ``(start, end)`` with start ≤ time < end; None is open.
  A single string is the whole day, month or other time that it names. A time in words, such as
  "last week", is a `RelativeTime`, which each read resolves against its now (`resolved`). A frame
  without a time of creation counts as created when recorded. Content times are the content dates,
  else the time of creation; a single time within the range is enough.

- ``content="question"``: the content times that a question in plain language names; none if it
  names none. Only a search has a question.
- ``include_superseded``, ``include_deleted``: not tests, but which closed frames are read too; with
  ``&``, ``|`` and ``~`` they hold for the whole filter.
- ``absent``: neither the scope nor the metadata has the name; ``"scope.user_id"`` and
  ``"metadata.lang"`` test one of the two.

All parameters of a filter must hold; ``Filter()`` admits every frame. An erased frame has only its
time of recording.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, cast

from cerata.engine.arguments import expect_bool, expect_text, expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue, ScopeValue
from cerata.engine.json_value import exact

from ..columnar.relative_times import RelativeTime
from ..columnar.typed_values import ValueType
from .filter_expressions import (
    Compared,
    During,
    Either,
    Every,
    Expression,
    Named,
    Negated,
    TimeName,
    expression_dict,
    is_relative,
    is_universal,
    number_of_tests,
    resolved,
)
from .filter_tests import (
    MetadataTest,
    TimeRange,
    absent_tests,
    either,
    equals,
    metadata_tests,
    names_of,
    pairs,
    time_test,
    words,
)


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
        content: ``(start, end)`` or a time that must contain a content time, or "question" for the
            times that a question names; default any.
        uri_prefix: Prefix of the frame's URI; default any.
        absent: Names that neither the frame's scope nor its metadata may have, or "scope.NAME" or
            "metadata.NAME" for one of the two; default none.
        include_superseded: Also read frames that a newer version replaced; default False.
        include_deleted: Also read deleted frames; default False.

    Raises:
        InvalidInput: a value of the wrong type, an unknown operator, a time without a zone, a
            range that ends before its start.
    """

    expression: Expression
    depth: int = field(compare=False, repr=False)
    """Upper bound of the nesting levels of the expression."""
    size: int = field(compare=False, repr=False)
    """Number of tests in the expression."""
    include_superseded: bool = field(repr=False)
    include_deleted: bool = field(repr=False)
    of_question: bool = field(repr=False)
    """True for the content times that a question names."""

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
        include_superseded: bool = False,
        include_deleted: bool = False,
    ) -> None:
        of_question = content == OF_QUESTION
        if of_question:
            content = None
        parts: list[Expression] = []
        # A filter has few of these, and each check is a call.
        if tags is not _NO_WORDS:
            parts += map(partial(equals, "tag"), words("tags", tags))
        if labels is not _NO_WORDS:
            parts += map(partial(equals, "label"), words("labels", labels))
        if kind is not None:
            parts.append(Named("kind", names_of("kind", kind)))
        if role is not None:
            parts.append(Named("role", names_of("role", role)))
        if track is not None:
            parts.append(either([equals("track", name) for name in names_of("track", track)]))
        for name, value in () if scope is None else pairs("scope", scope):
            if not isinstance(exact(value), str | int):
                raise InvalidInput(
                    f"scope {name!r} must be a string, an integer or a bool, not "
                    f"{type(value).__name__}",
                    remedy="Pass a str, int or bool.",
                )
            parts.append(equals(f"scope.{name}", value))
        for name, test in () if metadata is None else pairs("metadata", metadata):
            parts += metadata_tests(name, test)
        for time, span in (("created", created), ("recorded", recorded), ("content", content)):
            if span is not None:
                parts.append(time_test(cast("TimeName", time), span))
        if uri_prefix is not None:
            prefix = expect_text("uri_prefix", uri_prefix)
            parts.append(Compared("uri", "prefix", ValueType.STRING, prefix))
        for name in () if absent is _NO_WORDS else words("absent", absent):
            parts += absent_tests(name)
        size = 0
        for part in parts:
            size += 1 if isinstance(part, Compared) else number_of_tests(part)
        if include_superseded is not False:
            include_superseded = expect_bool("include_superseded", include_superseded)
        if include_deleted is not False:
            include_deleted = expect_bool("include_deleted", include_deleted)
        expression = parts[0] if len(parts) == 1 else Every(tuple(parts))
        _fill(self, expression, PLAIN_DEPTH, size, include_superseded, include_deleted, of_question)

    def __and__(self, right: "Filter") -> "Filter":
        parts = (*_parts(self, Every), *_parts(right, Every))
        joined = parts[0] if len(parts) == 1 else Every(parts)
        return _filter(joined, _depth_of(Every, self, right), self.size + right.size, self, right)

    def __or__(self, right: "Filter") -> "Filter":
        parts = (*_parts(self, Either), *_parts(right, Either))
        _check_no_question(self, right)
        depth = _depth_of(Either, self, right)
        return _filter(Either(parts), depth, self.size + right.size, self, right)

    def __invert__(self) -> "Filter":
        _check_no_question(self)
        inner = self.expression
        if isinstance(inner, Negated):
            return _filter(inner.part, self.depth, self.size, self)
        return _filter(Negated(inner), self.depth + 1, self.size, self)

    @property
    def is_universal(self) -> bool:
        """True if the filter tests nothing, so that every frame passes."""
        return is_universal(self.expression)

    @property
    def is_relative(self) -> bool:
        """True if a time of the filter is in words, so that the result depends on now."""
        return is_relative(self.expression)

    def resolved(self, now: datetime) -> "Filter":
        """Return the filter with each time in words as an instant, relative to ``now``.

        Args:
            now: The time that words such as "yesterday" count from.
        """
        if not self.is_relative:
            return self
        return _filter(resolved(self.expression, now), self.depth, self.size, self)

    def plain(self) -> "Filter":
        """Return the tests alone, without the closed frames and the question."""
        if not (self.include_superseded or self.include_deleted or self.of_question):
            return self
        return _filter(self.expression, self.depth, self.size)

    def of_frames(self) -> "Filter":
        """Return the tests of a read that has read the closed frames.

        Raises:
            InvalidInput: the filter asks for the times of a question.
        """
        if self.of_question:
            raise InvalidInput(
                "content='question' needs a question, and this read has none",
                remedy="Pass the times, such as content='last week', or call search().",
            )
        return self.plain()

    def check_plain(self) -> None:
        """Raise `InvalidInput` for a read of current frames alone, if the filter asks for more."""
        if self.of_question:
            _ = self.of_frames()
        if self.include_superseded or self.include_deleted:
            raise InvalidInput(
                "The filter includes closed frames, and this call takes current frames alone",
                remedy="Leave include_superseded and include_deleted out of the filter.",
            )

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the filter as plain values: tests under ``all``, ``any`` and ``not``."""
        plain = expression_dict(self.expression)
        for name in _REACH:
            if getattr(self, name):
                plain[name] = True
        return plain


OF_QUESTION: Final = "question"
"""As a content time: the times that the question names."""

_NO_WORDS: Final[tuple[str, ...]] = ()

_REACH: Final = ("include_superseded", "include_deleted", "of_question")

PLAIN_DEPTH: Final = 3
"""Maximum levels of the parameters of a filter: conjunction, alternatives of a list, test."""

DEPTH_MAX: Final = 100
"""Maximum nesting levels: evaluation is recursive."""

TESTS_MAX: Final = 10_000
"""Maximum tests of a filter: each test is a pass over the frames."""


def _fill(where: Filter, expression: Expression, depth: int, size: int, *reach: bool) -> None:
    """Give each field of a new filter its value; ``reach`` has those of `_REACH`."""
    if size > TESTS_MAX:
        raise InvalidInput(
            f"The filter has {size:,} tests; the limit is {TESTS_MAX:,}",
            remedy="Pass fewer values to a filter.",
        )
    assign = object.__setattr__
    assign(where, "expression", expression)
    assign(where, "depth", depth)
    assign(where, "size", size)
    for name, value in zip(_REACH, reach, strict=True):
        assign(where, name, value)


def _check_no_question(*parts: Filter) -> None:
    for part in parts:
        if part.of_question:
            raise InvalidInput(
                "content='question' holds for a whole filter",
                remedy="Add it last, with &: (a | b) & cerata.Filter(content='question').",
            )


def check_filter(where: object) -> None:
    """Raise `InvalidInput` unless a value is a filter."""
    expect_type(
        "where",
        where,
        Filter,
        "a Filter",
        "Pass a filter, such as where=cerata.Filter(tags=['x']).",
    )


def _filter(expression: Expression, depth: int, size: int, *parts: Filter) -> Filter:
    if depth > DEPTH_MAX:
        raise InvalidInput(
            f"The filter has more than {DEPTH_MAX} nested levels",
            remedy="Combine fewer filters; a chain of only & or only | is a single level.",
        )
    include_superseded = include_deleted = of_question = False
    for part in parts:
        include_superseded |= part.include_superseded
        include_deleted |= part.include_deleted
        of_question |= part.of_question
    combined = object.__new__(Filter)
    _fill(combined, expression, depth, size, include_superseded, include_deleted, of_question)
    return combined


def _depth_of(kind: type[Every] | type[Either], *filters: Filter) -> int:
    """Return the levels of joined filters; a part of the same kind merges into the result."""
    depth = 0
    for part in filters:
        depth = max(depth, part.depth - isinstance(part.expression, kind))
    return 1 + depth


def _parts(operand: object, kind: type[Every] | type[Either]) -> tuple[Expression, ...]:
    if not isinstance(operand, Filter):
        raise InvalidInput(
            f"A Filter combines only with a Filter, not {type(operand).__name__}",
            remedy="Combine it with another cerata.Filter.",
        )
    expression = operand.expression
    return expression.parts if isinstance(expression, kind) else (expression,)


def kinds_named(where: Filter) -> set[str]:
    """Return the kinds of frames that a filter asks for, not those that it leaves out."""
    kinds: set[str] = set()
    left = [where.expression]
    while left:
        match left.pop():
            case Named("kind", names):
                kinds.update(names)
            case Every(parts) | Either(parts):
                left += parts
            case _:
                continue
    return kinds


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
