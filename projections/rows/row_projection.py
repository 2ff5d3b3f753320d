"""User-defined projections: state as rows.

Owns `RowProjection`, which a user subclasses, and `Rows`, the map that holds its state. Leaves out
saving, loading, digests and past states (`row_fold`).

A row is a key and a value: plain values, compared by their bytes. Floats are refused, since their
sums depend on order and machine; store integers, such as cents. Iteration is in order of key, so
that no order of insertion or hashing can enter a state.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.engine.events import EventBody

from ..core.projection import FoldedEvent, Parameters

Key: TypeAlias = "str | int | bytes | tuple[Key, ...]"
Value: TypeAlias = "None | bool | int | str | bytes | tuple[Value, ...]"

KeyType = TypeVar("KeyType", bound="Key")
ValueType = TypeVar("ValueType", bound="Value")

_encode = msgspec.msgpack.Encoder().encode
_RANKS: Final[Mapping[type, int]] = {int: 0, str: 1, bytes: 2, tuple: 3}
_KINDS = frozenset((type(None), bool, int, str, bytes))


class RowProjection(Generic[KeyType, ValueType]):
    """A user-defined fold. Subclass, set ``name``, and pass the class to ``open(projections=…)``.

    - ``name`` is unique in a store. Raise ``version`` when the same events would give other rows;
      other ``parameters`` mean another projection, too.
    - ``handles`` has the types of events that `apply` receives, as classes or wire names. Events
      with an erased payload, or of a later version than this process supports, are left out. A wire
      name without a class in this process is legal, since a later Cerata or another program may
      write such events; so a misspelt name is no error and selects no events. Classes avoid this.
    - All state is in ``rows``: a saved projection loses other attributes.

    Example: the number of times that each tag was put::

        class TagCounts(RowProjection[str, int]):
            name = "tag-counts"
            handles = (PutFrame,)

            def apply(self, events):
                for event in events:
                    for tag in event.body.tags:
                        self.rows[tag] = self.rows.get(tag, 0) + 1
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    handles: ClassVar[Collection[type[EventBody] | str]] = ()

    @property
    def parameters(self) -> Parameters:
        """The settings that determine the rows, too; other parameters mean another projection."""
        return {}

    @cached_property
    def rows(self) -> "Rows[KeyType, ValueType]":
        """The state: a map from plain keys to plain values, in order of key."""
        return Rows()

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold events into ``rows``.

        The rows must depend on the events and their order alone: not on the division of events into
        lists, a clock, a random number, or a file.

        Args:
            events: the next handled events, in order of seq; a list of any length.
        """
        raise NotImplementedError


class Rows(MutableMapping[KeyType, ValueType]):
    """A map in order of key that records changes.

    - Values are immutable: a list is stored as a tuple, so a change is an assignment.
    - A mark (``before``) has the values, at the time of the mark, of the keys that were set since.
    """

    def __init__(self) -> None:
        self._values: dict[KeyType, ValueType] = {}
        self._sorted: list[KeyType] | None = None
        self._marks: tuple[dict[KeyType, ValueType | _Missing], ...] = ()
        self._is_frozen = False

    def __getitem__(self, key: KeyType) -> ValueType:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[KeyType]:
        """Iterate in order of key. Cost: a sort, if keys were added or removed."""
        if self._sorted is None:
            self._sorted = sorted(self._values, key=_order)
        return iter(self._sorted)

    def __setitem__(self, key: KeyType, value: ValueType) -> None:
        """Set a row.

        Raises:
            InvalidInput: key or value is not plain.
            ReadOnly: the state belongs to a view.
        """
        _check_key(key)
        self._remember(key)
        if key not in self._values:
            self._sorted = None
        self._values[key] = cast("ValueType", _plain(value))

    def __delitem__(self, key: KeyType) -> None:
        if key not in self._values:
            raise KeyError(key)
        self._remember(key)
        self._sorted = None
        del self._values[key]

    def __repr__(self) -> str:
        return f"Rows({dict(self)!r})"

    def _remember(self, key: KeyType) -> None:
        if self._is_frozen:
            raise ReadOnly(
                "The rows of a view cannot be changed", remedy="Append events; `apply` folds them."
            )
        for mark in self._marks:
            if key not in mark:
                mark[key] = self._values.get(key, MISSING)

    # --- for the fold ----------------------------------------------------------------------------

    def mark(self) -> "dict[KeyType, ValueType | _Missing]":
        """Begin to record the previous values of changed keys."""
        before: dict[KeyType, ValueType | _Missing] = {}
        self._marks = (*self._marks, before)
        return before

    def unmark(self, before: "Mapping[KeyType, ValueType | _Missing]") -> None:
        """Stop recording into a mark."""
        self._marks = tuple(mark for mark in self._marks if mark is not before)

    def undo(self, before: "Mapping[KeyType, ValueType | _Missing]") -> None:
        """Restore the values that a mark recorded."""
        for key, value in before.items():
            if isinstance(value, _Missing):
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._sorted = None

    def changes(
        self, before: "Mapping[KeyType, ValueType | _Missing]"
    ) -> "list[tuple[bytes, bytes, bytes]]":
        """Return (key, old value, new value) of changed rows, encoded, in order of key.

        The value of a missing row is empty.
        """
        rows = [
            (_encode(key), _encoded(then), _encoded(self._values.get(key, MISSING)))
            for key, then in before.items()
        ]
        return sorted(row for row in rows if row[1] != row[2])

    def encoded(self, key: bytes) -> bytes:
        """Return the encoded value of an encoded key; empty if no row has the key."""
        return _encoded(self._values.get(cast("KeyType", _decoded(key)), MISSING))

    def in_no_order(self) -> Iterable[tuple[KeyType, ValueType]]:
        """Return every row, unsorted, for results that no order can change, such as a sum."""
        return self._values.items()

    def all_encoded(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row, encoded, in no order."""
        return ((_encode(key), _encoded(value)) for key, value in self._values.items())

    def take(self, rows: Mapping[bytes, bytes]) -> None:
        """Set encoded rows; an empty value removes the row.

        Raises:
            ValueError, msgspec.DecodeError: a row cannot be decoded; the rows are unchanged.
        """
        decoded = [
            (_decoded_key(key), _decoded(value) if value else MISSING)
            for key, value in rows.items()
        ]
        values = cast("dict[object, object]", self._values)
        for key, value in decoded:
            self._remember(cast("KeyType", key))
            if value is MISSING:
                values.pop(key, None)
            else:
                values[key] = value
        self._sorted = None

    def freeze(self) -> None:
        """Refuse every later change."""
        self._is_frozen = True

    def copy_of(self, other: "Rows[KeyType, ValueType]") -> None:
        """Become equal to another map; O(rows)."""
        self._values = dict(other._values)
        self._sorted = None


class _Missing:
    """The value of a missing row."""


MISSING: Final = _Missing()


def _encoded(value: object) -> bytes:
    return b"" if isinstance(value, _Missing) else _encode(value)


def _decoded(data: bytes) -> object:
    value: object = msgspec.msgpack.decode(data)
    # Most values are plain already, and a decoded value can be encoded.
    return value if type(value) in _KINDS else _plain(value)


def _decoded_key(data: bytes) -> object:
    key = _decoded(data)
    if type(key) is not str:
        _check_key(key)
    return key


def _check_key(key: object) -> None:
    """Raise `InvalidInput` unless a key is plain."""
    if isinstance(key, tuple):
        for part in cast("tuple[object, ...]", key):
            _check_key(part)
    elif type(key) not in (str, int, bytes):
        raise InvalidInput(
            f"A row's key cannot be a {type(key).__name__}",
            remedy="Use str, int, bytes, or tuples of them.",
        )
    else:
        _checked(key)


def _plain(value: object) -> object:
    """Return a value as stored, with tuples for lists. Raises `InvalidInput` unless it is plain."""
    if isinstance(value, list | tuple):
        return tuple(_plain(part) for part in cast("Sequence[object]", value))
    if type(value) not in _KINDS:
        raise InvalidInput(
            f"A row's value cannot be a {type(value).__name__}",
            remedy="Use None, bool, int, str, bytes, or tuples of them; no floats.",
        )
    return _checked(value)


def _checked(value: object) -> object:
    try:
        _encode(value)
    except (OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"A row cannot hold {value!r}: {error}",
            remedy="Use strings of valid Unicode, and whole numbers of at most 64 bits.",
        ) from error
    return value


def _order(key: object) -> tuple[object, ...]:
    """Return the sort key of a key of any type."""
    if isinstance(key, tuple):
        return 3, tuple(_order(part) for part in cast("tuple[object, ...]", key))
    return _RANKS[type(key)], key
