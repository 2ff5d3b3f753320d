"""Distinct values of a field of the frames that a view reads, with their counts.

Owns `ValueCount`, the names of fields, and the prefixes of URIs. Leaves out the counts over columns
(`cerata.projections.frames.value_counts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.typed_values import ValueType
from cerata.projections.frames.value_counts import STRING_FIELDS, Scalar, TypedValue

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask

    from ..snapshot.layers import Layers

_METADATA: Final = "metadata"
FIELDS: Final = ("kind", "role", *STRING_FIELDS, _METADATA)
"""The fields whose values can be counted; metadata.NAME for the values of a key."""


@dataclass(frozen=True, slots=True)
class ValueCount(PlainValue):
    """A value, and the count of frames that have it; a URI that ends with "/" is a prefix."""

    value: Scalar
    count: int


def value_counts(
    layers: Layers, masks: Sequence[Mask], field: str, prefix: str
) -> list[ValueCount]:
    """Return the values of a field over rows of each layer, most frequent first.

    Raises:
        InvalidInput: the field is unknown.
    """
    if field not in FIELDS and not field.startswith(f"{_METADATA}."):
        raise InvalidInput(
            f"{field!r:.60} is no field whose values can be counted",
            remedy=f"Pass one of {', '.join(FIELDS)}, or metadata.NAME.",
        )
    counts = Counter[TypedValue]()
    for layer, mask in zip(layers.all, masks, strict=True):
        for typed, count in layer.frames.counts(field, mask).items():
            text = typed[1]
            if prefix and not (isinstance(text, str) and text.startswith(prefix)):
                continue
            if field == "uri" and isinstance(text, str):
                typed = ValueType.STRING, _level(text, len(prefix))
            counts[typed] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [ValueCount(value, count) for (_, value), count in ordered]


def _level(uri: str, start: int) -> str:
    """Return a URI up to the next "/" that begins no part of "//", or the whole."""
    end = start
    while end < len(uri) and uri[end] == "/":
        end += 1
    end = uri.find("/", end)
    while end >= 0 and uri[end : end + 2] == "//":
        end = uri.find("/", end + 2)
    return uri if end < 0 else uri[: end + 1]
