"""Masks: exact evaluation of a filter over the rows of frames, by postings and whole columns.

Owns the evaluation of `filters`, without Python code per row. Cost: a column is a pass over the
rows (1 ms per 1,000,000), a posting is a bisection and its matches; an ordered comparison of
strings, or a prefix, is a pass over the distinct strings of the field.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np

from ..columnar.columns import I64, U32, U64, Mask, gather_ranges
from ..columnar.names import Names
from ..columnar.relative_times import RelativeTime
from ..columnar.sorted_rows import bounds
from ..columnar.typed_values import ValueType, number_ranges, time_key
from .attributes import DATE, ITEM, METADATA, AttributeView, Posting
from .columns import FrameColumns
from .filter_expressions import (
    Compared,
    During,
    Either,
    Every,
    Expression,
    Named,
    Negated,
    unequal,
)
from .timeline import creation_times

_SCOPE = "scope."
_BISECTION = 16
"""Two bisections cost as much as a scan of about this many keys."""

_COMPARED_MAX = 4
"""A look-up of all rows takes the time of more than so many comparisons."""


class FilterMasks:
    """Evaluates expressions over the first ``count`` rows of frames."""

    def __init__(self, columns: FrameColumns, attributes: AttributeView, count: int) -> None:
        self._columns = columns
        self._attributes = attributes
        self._count = count

    def mask(self, expression: Expression) -> Mask:
        """Return a mask over the rows that match an expression."""
        match expression:
            case Every(parts):
                return self._combined(np.logical_and, parts, start=True)
            case Either(parts):
                return self._combined(np.logical_or, parts, start=False)
            case Negated(part):
                return ~self.mask(part)
            case Named("kind", names):
                return self._named(self._columns.kind.view(), self._columns.kinds, names)
            case Named(_, names):
                return self._named(self._columns.role.view(), self._columns.roles, names)
            case During(time, start, end):
                assert not isinstance(start, RelativeTime)
                assert not isinstance(end, RelativeTime)
                return self._during(time, start, end)
            case Compared(_, "!="):
                return self.mask(unequal(expression))
            case Compared(field) if field.startswith(_SCOPE):
                return self._scoped(expression)
            case Compared():
                return self._marked(rows_of(self._attributes, expression))

    def _combined(self, combine: np.ufunc, parts: Iterable[Expression], *, start: bool) -> Mask:
        mask = np.full(self._count, start, np.bool_)
        for part in parts:
            combine(mask, self.mask(part), out=mask)
        return mask

    def _named(self, codes: U32, names: Names, accepted: Iterable[str]) -> Mask:
        codes = codes[: self._count]
        passing = [code for name in accepted if (code := names.find(name)) is not None]
        if len(passing) > _COMPARED_MAX:
            passes = np.zeros(len(names) + 1, np.bool_)
            passes[passing] = True
            return passes.take(codes)
        mask = np.zeros(self._count, np.bool_)
        for code in passing:
            mask |= codes == code
        return mask

    def _scoped(self, test: Compared) -> Mask:
        """Test each distinct scope once: a row of ``attributes`` is the code of a scope."""
        parts = self._columns.scope_parts.view()
        passes = np.zeros(len(self._columns.scopes) + 1, np.bool_)
        unprefixed = Compared(test.field[len(_SCOPE) :], test.operator, test.type, test.value)
        for codes in rows_of(parts, unprefixed):
            passes[codes] = True
        return passes.take(self._columns.scope.view()[: self._count])

    def _during(self, time: str, start: int | None, end: int | None) -> Mask:
        if time == "recorded":
            return _within(self._columns.recorded.view()[: self._count], start, end)
        columns = self._columns
        created = creation_times(
            columns.created.view()[: self._count], columns.recorded.view()[: self._count]
        )
        passing = _within(created, start, end)
        if time == "created":
            return passing
        dates = self._attributes.find(DATE, ValueType.TIME)
        if dates:
            dated = self._marked(posting.rows for posting in dates)
            low, high = (None if bound is None else time_key(bound) for bound in (start, end))
            inside = (posting.rows[_within(posting.keys, low, high)] for posting in dates)
            passing = np.where(dated, self._marked(inside), passing)
        return passing

    def _marked(self, parts: Iterable[U32]) -> Mask:
        mask = np.zeros(self._count, np.bool_)
        for rows in parts:
            # Postings may include later rows.
            mask[rows[rows < self._count]] = True
        return mask


def rows_of(attributes: AttributeView, test: Compared) -> Sequence[U32]:
    """Return the rows with an attribute that passes a test, in parts and in no order."""
    if test.operator == "contains":
        path = test.field.removeprefix(METADATA)
        return rows_of(attributes, Compared(ITEM + path, "=", test.type, test.value))
    postings: list[Posting] = []
    if test.operator == "exists":
        for kind in ValueType:
            postings += attributes.find(test.field, kind)
    elif test.type is ValueType.STRING:
        text = test.value
        assert isinstance(text, str)
        if test.operator != "=":
            return _strings(attributes, test, text)
        code = attributes.strings.find(text)
        if code:
            postings = attributes.find(test.field, test.type, code, code)
    elif test.type is ValueType.NUMBER:
        value = test.value
        assert isinstance(value, int | float)
        for number_type, low, high in number_ranges(test.operator, value):
            postings += attributes.find(test.field, number_type, low, high)
    else:
        key = int(bool(test.value))
        return [
            posting.rows[posting.keys == key] for posting in attributes.find(test.field, test.type)
        ]
    return [*map(attrgetter("rows"), postings)]


def _strings(attributes: AttributeView, test: Compared, text: str) -> list[U32]:
    codes = attributes.order.between(*bounds(test.operator, text)).astype(np.uint64)
    return [_with_keys(posting, codes) for posting in attributes.find(test.field, test.type)]


def _with_keys(posting: Posting, keys: U64) -> U32:
    if not len(keys):
        return posting.rows[:0]
    if len(keys) * _BISECTION < len(posting.keys):
        starts = posting.keys.searchsorted(keys)
        counts = posting.keys.searchsorted(keys, side="right") - starts
        return posting.rows[gather_ranges(starts, counts)]
    places = keys.searchsorted(posting.keys)
    matches: Mask = keys.take(places, mode="clip") == posting.keys
    return posting.rows[matches]


def _within(items: I64 | U64, start: int | None, end: int | None) -> Mask:
    """Return a mask of the items in [start, end); None is unbounded."""
    if start is None:
        return np.ones(len(items), np.bool_) if end is None else np.asarray(items < end)
    return (
        np.asarray(items >= start) if end is None else np.asarray((items >= start) & (items < end))
    )
