"""The type of plain values: those of JSON."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = (
    "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
)
"""The values that metadata may hold: JSON's. Maps are stored with sorted names."""
