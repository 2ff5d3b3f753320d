"""A projection of your own: state as rows, and the rest comes for free.

Owns `RowProjection`, which a user subclasses, and `Rows`, the map that holds its state. Leaves out
saving, loading, digests and the past: `row_fold` does those from the rows.

A row is a key and a value: plain values, compared by their bytes. Floats are refused, since their
sums depend on order and machine; keep integers, such as cents. Rows come in order of key however
they were made, so that no order of insertion or hashing can enter a state.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.engine.events import EventBody

from .projection import FoldedEvent, Parameters

Key: TypeAlias = "str | int | bytes | tuple[Key, ...]"
Value: TypeAlias = "None | bool | int | str | bytes | tuple[Value, ...]"

KeyType = TypeVar("KeyType", bound="Key")
ValueType = TypeVar("ValueType", bound="Value")

_encode = msgspec.msgpack.Encoder().encode
_RANKS: Final[Mapping[type, int]] = {int: 0, str: 1, bytes: 2, tuple: 3}
_KINDS = frozenset((type(None), bool, int, str, bytes))


class RowProjection(Generic[KeyType, ValueType]):
    """A fold of your own. Subclass it, name it, and pass the class to ``open(projections=…)``.

    - ``name`` is unique in a store. ``version`` goes up when the same events would give other
      rows; ``parameters``, if there are any, do the same for each set of them.
    - ``handles`` are the kinds of events that `apply` is given, as classes or wire names. Events
      whose payload was erased, or is of a later version than this process knows, are left out.
      A wire name that no class of this process has is legal: it may be of a later Cerata, or of
      another program; so a misspelt one gives no events. A class cannot be misspelt.
    - All state is in ``rows``: whatever else an instance holds is lost when it is saved.

    Example: how often each tag was put::

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
        """What else decides the rows: other parameters are another projection."""
        return {}

    @cached_property
    def rows(self) -> "Rows[KeyType, ValueType]":
        """The state: a map from plain keys to plain values."""
        return Rows()

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold events, in order, into ``rows``.

        They come in lists of any length, and how they are cut must not matter; nor may a clock,
        a random number, a file, or anything else but rows and events.
        """
        raise NotImplementedError


class Rows(MutableMapping[KeyType, ValueType]):
    """A map that remembers what changed, in order of key.

    - Values are immutable: a list is kept as a tuple, so a change is an assignment.
    - ``before`` of a mark holds what each key had when the mark was made, if it was set since.
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
        """Iterate in order of key; a sort, after keys came or went."""
        if self._sorted is None:
            self._sorted = sorted(self._values, key=_order)
        return iter(self._sorted)

    def __setitem__(self, key: KeyType, value: ValueType) -> None:
        """Set a row.

        Raises:
            InvalidInput: key or value is not plain. ReadOnly: the state is a view's.
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
                "The rows of a view do not change", remedy="Append events; `apply` folds them."
            )
        for mark in self._marks:
            if key not in mark:
                mark[key] = self._values.get(key, MISSING)

    # --- for the fold ----------------------------------------------------------------------------

    def mark(self) -> "dict[KeyType, ValueType | _Missing]":
        """Begin to remember what keys had before they are set."""
        before: dict[KeyType, ValueType | _Missing] = {}
        self._marks = (*self._marks, before)
        return before

    def unmark(self, before: "Mapping[KeyType, ValueType | _Missing]") -> None:
        """End what `mark` began."""
        self._marks = tuple(mark for mark in self._marks if mark is not before)

    def undo(self, before: "Mapping[KeyType, ValueType | _Missing]") -> None:
        """Go back to where a mark was made."""
        for key, value in before.items():
            if isinstance(value, _Missing):
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._sorted = None

    def changes(
        self, before: "Mapping[KeyType, ValueType | _Missing]"
    ) -> "list[tuple[bytes, bytes, bytes]]":
        """Return (key, value then, value now) where they differ, encoded, in order of key.

        A row that was or is not there has an empty value.
        """
        found = [
            (_encode(key), _encoded(then), _encoded(self._values.get(key, MISSING)))
            for key, then in before.items()
        ]
        return sorted(row for row in found if row[1] != row[2])

    def encoded(self, key: bytes) -> bytes:
        """Return the encoded value of an encoded key, empty if there is none."""
        return _encoded(self._values.get(cast("KeyType", _decoded(key)), MISSING))

    def in_no_order(self) -> Iterable[tuple[KeyType, ValueType]]:
        """Return every row, for what no order can change, such as a sum; nothing is sorted."""
        return self._values.items()

    def all_encoded(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row, encoded, in no order."""
        return ((_encode(key), _encoded(value)) for key, value in self._values.items())

    def take(self, rows: Mapping[bytes, bytes]) -> None:
        """Set encoded rows, and remove those with an empty value.

        Raises:
            ValueError, msgspec.DecodeError: they are not what was saved; nothing was changed.
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
        """Refuse every change from here on."""
        self._is_frozen = True

    def copy_of(self, other: "Rows[KeyType, ValueType]") -> None:
        """Become equal to another map; O(rows)."""
        self._values = dict(other._values)
        self._sorted = None


class _Missing:
    """Stands for a row that is not there."""


MISSING: Final = _Missing()


def _encoded(value: object) -> bytes:
    return b"" if isinstance(value, _Missing) else _encode(value)


def _decoded(data: bytes) -> object:
    value: object = msgspec.msgpack.decode(data)
    # Most are plain already, and what was decoded can be encoded.
    return value if type(value) in _KINDS else _plain(value)


def _decoded_key(data: bytes) -> object:
    key = _decoded(data)
    if type(key) is not str:
        _check_key(key)
    return key


def _check_key(key: object) -> None:
    """Refuse what cannot be a key."""
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
    """Return a value as it is kept: lists become tuples."""
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
            remedy="Use strings, bytes, numbers, bools, None, and tuples, lists and maps of them.",
        ) from error
    return value


def _order(key: object) -> tuple[object, ...]:
    """Return what keys of any kinds are sorted by."""
    if isinstance(key, tuple):
        return 3, tuple(_order(part) for part in cast("tuple[object, ...]", key))
    return _RANKS[type(key)], key
