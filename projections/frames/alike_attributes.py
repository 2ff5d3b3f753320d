"""The attributes of frames that are alike: the same names in metadata, with values of few types.

Owns the columns of a step of such frames, computed by column instead of by frame. A step that is
not alike, or has a new field or string, gets none: the loop over its frames numbers these in the
order of the log. Both ways give the same columns.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from cerata.engine.events import PutFrame

from ..columnar.columns import I64, U32, U64
from ..columnar.strings import Strings
from ..columnar.typed_values import EXACT_MAX, ValueType, exact_number_keys

ALIKE_MIN: Final = 16
"""Fewer frames are added one by one: numpy would take longer."""


class AttributeRows(NamedTuple):
    """The rows of attributes, in order of frame and of the fields of its event."""

    row: I64
    group: U32
    key: U64


_NO_ROWS: Final = AttributeRows(
    np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint64)
)


class _Texts(NamedTuple):
    """Strings, and the seq of the event of each."""

    texts: Sequence[str]
    seqs: Sequence[int]


class _Field(NamedTuple):
    group: int
    keys: U64 | _Texts


def alike_rows(
    first_row: int,
    seqs: Sequence[int],
    bodies: Sequence[PutFrame],
    strings: Strings,
    bases: Mapping[str | None, int],
) -> AttributeRows | None:
    """Return the attributes of frames from ``first_row`` on, or None if these are not alike.

    Args:
        first_row: The row of the first frame.
        seqs: The seqs of the frames.
        bodies: The frames.
        strings: The strings so far; new strings of the frames are added.
        bases: The first group of each name in metadata so far, and that of tags for None.
    """
    count = len(bodies)
    if count < ALIKE_MIN or _have_more(bodies):
        return None
    metadata = [body.metadata for body in bodies]
    tags = [body.tags for body in bodies]
    if not any(metadata) and not any(tags):
        return _NO_ROWS
    shapes = [*map(tuple, metadata)]
    names = shapes[0]
    tag_counts = np.array([*map(len, tags)], np.int64)
    if shapes.count(names) < count or not bases.keys() >= {*names}:
        return None
    if tag_counts.any() and None not in bases:
        return None
    tag_seqs = np.repeat(np.array(seqs, np.int64), tag_counts).tolist()
    texts = _Texts([*chain.from_iterable(tags)], tag_seqs)
    fields = [_Field(bases.get(None, 0) + ValueType.STRING, texts)]
    for name in names:
        field = _field(bases[name], [each[name] for each in metadata], seqs)
        if field is None:
            return None
        fields.append(field)
    keys = _keys(fields, strings)
    if keys is None:
        return None
    return _laid_out(first_row, tag_counts, [field.group for field in fields], keys)


def _keys(fields: Sequence[_Field], strings: Strings) -> list[U64] | None:
    """Return the keys of each field; None if two fields have new strings.

    The new strings of one field are numbered in its order, which is that of the log.
    """
    keys: list[U64 | None] = []
    for field in fields:
        column = field.keys
        keys.append(strings.settled_codes(column.texts) if isinstance(column, _Texts) else column)
    unsettled = [place for place, column in enumerate(keys) if column is None]
    if len(unsettled) > 1:
        return None
    for place in unsettled:
        texts = fields[place].keys
        assert isinstance(texts, _Texts)
        keys[place] = strings.codes(texts.texts, texts.seqs)
    return [column for column in keys if column is not None]


def _have_more(bodies: Sequence[PutFrame]) -> bool:
    """Return whether a frame has an attribute beside tags and metadata."""
    count = len(bodies)
    return (
        [body.uri for body in bodies].count(None) < count
        or [body.title for body in bodies].count(None) < count
        or [body.track for body in bodies].count(None) < count
        or [body.expires for body in bodies].count(None) < count
        or any([body.labels or body.content_dates for body in bodies])  # noqa: C419 - twice as fast
    )


def _field(base: int, values: Sequence[Any], seqs: Sequence[int]) -> _Field | None:
    kinds = set(map(type, values))
    if kinds == {int}:
        # The limits first: a larger number overflows the array.
        if min(values) >= -EXACT_MAX and max(values) <= EXACT_MAX:
            return _Field(base + ValueType.NUMBER, exact_number_keys(values))
    elif kinds == {str}:
        return _Field(base + ValueType.STRING, _Texts(values, seqs))
    elif kinds == {bool}:
        return _Field(base + ValueType.BOOL, np.array(values, np.uint64))
    return None


def _laid_out(
    first_row: int, tag_counts: I64, groups: Sequence[int], keys: Sequence[U64]
) -> AttributeRows:
    """Return the rows of each frame's tags, which are the first field, then of its metadata."""
    sizes = tag_counts + len(keys) - 1
    starts = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    group = np.empty(total, np.uint32)
    key = np.empty(total, np.uint64)
    before = np.cumsum(tag_counts) - tag_counts
    places = np.arange(len(keys[0])) + np.repeat(starts - before, tag_counts)
    for number, field_keys in enumerate(keys):
        group[places] = groups[number]
        key[places] = field_keys
        places = starts + tag_counts + number
    row = np.repeat(np.arange(first_row, first_row + len(tag_counts)), sizes)
    return AttributeRows(row, group, key)
