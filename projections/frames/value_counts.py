"""Distinct values: how many frames have each value of a field, from the columns.

Owns the counts over a mask of rows, without a read of events and without Python code per row. Cost:
a pass over the attributes of the field, and a string for each distinct value.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np

from ..columnar.columns import Mask, run_starts
from ..columnar.names import Names
from ..columnar.typed_values import ValueType, key_number
from . import attributes
from .attributes import AttributeView
from .columns import FrameColumns

Scalar: TypeAlias = str | int | float | bool | None
TypedValue: TypeAlias = tuple[ValueType, Scalar]
"""A value with its type, which tells True from 1."""

STRING_FIELDS: Final = (
    attributes.TAG, attributes.LABEL, attributes.TRACK, attributes.TITLE, attributes.URI
)  # fmt: skip


def field_counts(
    columns: FrameColumns, view: AttributeView, field: str, mask: Mask
) -> Counter[TypedValue]:
    """Return how many rows of a mask have each value of a field.

    Args:
        columns: The columns of frames.
        view: Their attributes.
        field: "kind", "role", one of `STRING_FIELDS`, "metadata" for the keys, "metadata.NAME" for
            the values of a key; lists and maps have no value.
        mask: The rows to count.
    """
    if field in ("kind", "role"):
        names, codes = (
            (columns.kinds, columns.kind) if field == "kind" else (columns.roles, columns.role)
        )
        return _named(names, np.bincount(codes.view()[: len(mask)][mask]).tolist())
    if field == "metadata":
        return Counter(
            {
                (ValueType.STRING, name[len(attributes.METADATA) :]): count
                for name in view.fields()
                if name.startswith(attributes.METADATA) and (count := _having(view, name, mask))
            }
        )
    counts = Counter[TypedValue]()
    for kind in ValueType:
        if kind is not ValueType.OTHER:
            for key, count in _keys(view, field, kind, mask):
                counts[kind, _value(view, kind, key)] += count
    return counts


def _named(names: Names, counts: list[int]) -> Counter[TypedValue]:
    return Counter(
        {
            (ValueType.STRING, text): count
            for code, count in enumerate(counts)
            if count and (text := names.text(code)) is not None
        }
    )


def _having(view: AttributeView, field: str, mask: Mask) -> int:
    """Return how many rows of a mask have a field."""
    rows = np.zeros(len(mask), np.bool_)
    for kind in ValueType:
        for posting in view.find(field, kind):
            rows[posting.rows[posting.rows < len(mask)]] = True
    return int(np.count_nonzero(rows & mask))


def _keys(
    view: AttributeView, field: str, kind: ValueType, mask: Mask
) -> Iterator[tuple[int, int]]:
    """Yield the keys of a field and type, each with its count of rows; a key may come again."""
    for keys, rows in view.find(field, kind):
        # Postings may include later rows. A frame may have a tag twice.
        counted = (rows < len(mask)) & run_starts(keys, rows)
        counted[counted] = mask[rows[counted]]
        found, counts = np.unique(keys[counted], return_counts=True)
        yield from zip(found.tolist(), counts.tolist(), strict=True)


def _value(view: AttributeView, kind: ValueType, key: int) -> Scalar:
    match kind:
        case ValueType.NULL:
            return None
        case ValueType.BOOL:
            return bool(key)
        case ValueType.STRING:
            return view.strings.text(key)
        case _:
            return key_number(kind, key)
