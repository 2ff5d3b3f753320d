"""The JSON form of a dataclass.

Owns `PlainValue`, the base of the values that callers get, and the plain form of each type. Leaves
out the objects of facts, which have a form of their own (`cerata.memory.values.facts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar, cast

from .json_value import JsonValue, exact

_PLAIN_TYPES = frozenset((str, int, float, bool, type(None)))
_LISTS = (tuple, list)


class PlainValue:
    """A dataclass with a JSON form: its fields in their order, or the attributes in `_plain`."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _plain: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the value as plain values, as ``--json`` prints it."""
        return plain_fields(self, self._plain or self.__match_args__)


def plain_fields(value: object, names: Iterable[str]) -> dict[str, JsonValue]:
    """Return attributes of ``value`` by their names, each as a plain value."""
    return {
        name: field if type(field := getattr(value, name)) in _PLAIN_TYPES else plain(field)
        for name in names
    }


def plain(value: Any) -> JsonValue:
    """Return a value as JSON's: bytes in hexadecimal, a time or a day as ISO, a tuple as a list."""
    if type(value) in _PLAIN_TYPES:
        plain_value: JsonValue = value
        return plain_value
    scalar = exact(value)
    if scalar is not value:
        return plain(scalar)
    if isinstance(value, PlainValue):
        return value.to_dict()
    if isinstance(value, _LISTS):
        return [plain(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {name: plain(item) for name, item in mapping.items()}
    json: JsonValue = value
    return json
