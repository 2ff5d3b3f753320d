"""User-defined projections: state as rows.

Owns `RowProjection`, which a user subclasses, and `Rows`, the map that holds its state. Leaves out
saving, loading, digests and past states (`row_fold`).

A row is a key and a value: plain values, compared by their bytes. Floats are refused, since their
sums depend on order and machine; store integers, such as cents. Iteration is in order of key, so
that no order of insertion or hashing can enter a state.
"""

from collections.abc import (
    Collection,
    ItemsView,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.engine.events import EventBody

from ..core.projection import FoldedEvent, Parameters
from .sorted_map import AFTER, SortedMap, Span, order_of, order_of_prefix

Key: TypeAlias = "str | int | bytes | tuple[Key, ...]"
Value: TypeAlias = "None | bool | int | str | bytes | tuple[Value, ...]"

KeyType = TypeVar("KeyType", bound="Key")
ValueType = TypeVar("ValueType", bound="Value")

_encode = msgspec.msgpack.Encoder().encode
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
    - With ``tenant_first`` every key is a tuple that begins with the tenant of its events (a bool
      as the bytes of its JSON), and a store with the scope of a tenant reads the rows of that
      tenant. Without it, a store with a scope cannot read the rows.

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
    tenant_first: ClassVar[bool] = False

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
    - A mark has the rows at its time, and the keys that were set since.
    - A copy costs O(1), and a change O(log n), as `sorted_map` explains.
    - ``_low`` and ``_high`` bound the rows of a part (`narrow`); None in all other maps.
    """

    def __init__(self) -> None:
        self._map: SortedMap[ValueType | _Missing] = SortedMap()
        self._marks: tuple[Mark, ...] = ()
        self._is_frozen = False
        self._low: bytes | None = None
        self._high: bytes | None = None

    def __getitem__(self, key: KeyType) -> ValueType:
        value = self._get(key)
        if isinstance(value, _Missing):
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return not isinstance(self._get(key), _Missing)

    def __len__(self) -> int:
        if self._low is None:
            return len(self._map)
        return sum(end - start for _, start, end in self._map.spans(self._low, self._high))

    def __iter__(self) -> Iterator[KeyType]:
        """Iterate in order of key, over the rows of this moment."""
        for leaf, start, end in self._spans(None, None):
            yield from cast("list[KeyType]", leaf.keys[start:end])

    def items(self) -> ItemsView[KeyType, ValueType]:
        return _Items(self)

    def range(
        self,
        low: KeyType | None = None,
        high: KeyType | None = None,
        *,
        prefix: "tuple[Key, ...] | None" = None,
        reverse: bool = False,
    ) -> Iterator[tuple[KeyType, ValueType]]:
        """Return rows in order of key, as they are now. Cost: O(log n), and the returned rows.

        Args:
            low: The first key, by default the first of all.
            high: The key to stop before, by default after the last.
            prefix: Return the rows whose key is a tuple that begins with these items.
            reverse: Return the last row first.

        Raises:
            InvalidInput: a bound is no plain key, ``prefix`` is no tuple of keys, or both a bound
                and a prefix are passed.
        """
        first, last = _bounds(low, high, prefix)
        return self._range(self._spans(first, last, reverse=reverse), reverse=reverse)

    def __setitem__(self, key: KeyType, value: ValueType) -> None:
        """Set a row.

        Raises:
            InvalidInput: key or value is not plain.
            ReadOnly: the state belongs to a view.
        """
        order = _checked_order(key)
        plain = cast("ValueType", _plain(value))
        self._remember(order, key)
        self._map.set(order, key, plain)

    def __delitem__(self, key: KeyType) -> None:
        if key not in self:
            raise KeyError(key)
        order = order_of(key)
        self._remember(order, key)
        self._map.remove(order)

    def __repr__(self) -> str:
        return f"Rows({dict(self)!r})"

    def _get(self, key: object) -> "ValueType | _Missing":
        try:
            order = order_of(key)
        except (TypeError, ValueError, OverflowError):
            # No row has a key that is not plain.
            return MISSING
        if self._low is not None and not self._low <= order < cast("bytes", self._high):
            return MISSING
        return self._map.get(order, MISSING)

    def _spans(
        self, low: bytes | None, high: bytes | None, *, reverse: bool = False
    ) -> "Iterator[Span[ValueType | _Missing]]":
        """Yield the parts of leaves in a range of the rows of this moment."""
        if self._low is not None:
            low = self._low if low is None else max(low, self._low)
            high = self._high if high is None else min(high, cast("bytes", self._high))
        rows = self._map if self._is_frozen else self._map.share()
        return rows.spans(low, high, reverse=reverse)

    def _range(
        self, spans: "Iterator[Span[ValueType | _Missing]]", *, reverse: bool
    ) -> Iterator[tuple[KeyType, ValueType]]:
        for leaf, start, end in spans:
            part = cast(
                "list[tuple[KeyType, ValueType]]",
                list(zip(leaf.keys[start:end], leaf.values[start:end], strict=True)),
            )
            yield from reversed(part) if reverse else part

    def _remember(self, order: bytes, key: object) -> None:
        if self._is_frozen:
            raise ReadOnly(
                "The rows of a view cannot be changed", remedy="Append events; `apply` folds them."
            )
        for mark in self._marks:
            mark.keys[order] = key

    # --- for the fold ----------------------------------------------------------------------------

    def mark(self) -> "Mark":
        """Begin to record the keys of changed rows."""
        before = Mark(self._map.share())
        self._marks = (*self._marks, before)
        return before

    def unmark(self, before: "Mark") -> None:
        """Stop recording into a mark."""
        self._marks = tuple(mark for mark in self._marks if mark is not before)

    def undo(self, before: "Mark") -> None:
        """Restore the rows at the time of a mark, even after an interrupted change."""
        self._map = before.rows.share()

    def changes(self, before: "Mark") -> "list[tuple[bytes, bytes, bytes]]":
        """Return (key, old value, new value) of changed rows, encoded, in order of key.

        The value of a missing row is empty.
        """
        if not before.keys:
            return []
        rows = [
            (
                _encode(key),
                _encoded(before.rows.get(order, MISSING)),
                _encoded(self._map.get(order, MISSING)),
            )
            for order, key in before.keys.items()
        ]
        return sorted(row for row in rows if row[1] != row[2])

    def check_tenants(self, before: "Mark") -> None:
        """Raise `InvalidInput` if a key set since a mark cannot begin with a tenant."""
        for key in before.keys.values():
            if not isinstance(key, tuple) or not key or isinstance(key[0], tuple):
                raise InvalidInput(
                    f"The key {key!r} does not begin with a tenant",
                    remedy="Set tenant_first = False, or begin each key with the event's tenant.",
                )

    def encoded(self, key: bytes) -> bytes:
        """Return the encoded value of an encoded key; empty if no row has the key."""
        return _encoded(self._get(_decoded(key)))

    def all_encoded(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row, encoded."""
        return ((_encode(key), _encoded(value)) for key, value in self.items())

    def take(self, rows: Mapping[bytes, bytes]) -> None:
        """Set encoded rows; an empty value removes the row.

        Raises:
            ValueError, msgspec.DecodeError: a row cannot be decoded; the rows are unchanged.
        """
        decoded = [
            (
                _checked_order(key := _decoded(encoded)),
                key,
                cast("ValueType", _decoded(value)) if value else MISSING,
            )
            for encoded, value in rows.items()
        ]
        # In order of key, so that neighbours share their path.
        decoded.sort(key=itemgetter(0))
        for order, key, value in decoded:
            self._remember(order, key)
            if isinstance(value, _Missing):
                self._map.remove(order)
            else:
                self._map.set(order, key, value)

    def freeze(self) -> None:
        """Refuse every later change."""
        self._is_frozen = True

    def copy_of(self, other: "Rows[KeyType, ValueType]") -> None:
        """Become equal to another map. Cost: O(1)."""
        self._map = other._map.share()

    def narrow(self, prefix: "tuple[Key, ...]") -> None:
        """Freeze, and hide the rows whose keys are no tuples that begin with ``prefix``."""
        self.freeze()
        self._low, self._high = _bounds(None, None, prefix)


class Mark:
    """The rows at a time, and the keys that were set since, by their order."""

    __slots__ = ("keys", "rows")

    def __init__(self, rows: "SortedMap[Any]") -> None:
        self.rows = rows
        self.keys: dict[bytes, object] = {}


class _Items(ItemsView[KeyType, ValueType]):
    """Rows in order of key, without a look-up of each."""

    def __init__(self, rows: Rows[KeyType, ValueType]) -> None:
        super().__init__(rows)
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[KeyType, ValueType]]:
        return self._rows.range()


class _Missing:
    """The value of a missing row."""


MISSING: Final = _Missing()


def _bounds(
    low: object, high: object, prefix: "tuple[Key, ...] | None"
) -> tuple[bytes | None, bytes | None]:
    """Return the orders of a range, the second excluded. Raises `InvalidInput`."""
    if prefix is None:
        first = None if low is None else _checked_order(low)
        return first, None if high is None else _checked_order(high)
    if low is not None or high is not None:
        raise InvalidInput(
            "A range of rows has a prefix or bounds, not both", remedy="Leave out one of the two."
        )
    if not isinstance(prefix, tuple):
        raise InvalidInput(
            f"prefix must be a tuple, not {prefix!r}",
            remedy="Pass the first items of the rows' keys, such as ('anna',).",
        )
    _check_key(prefix)
    start = order_of_prefix(prefix)
    return start, start + AFTER


def _checked_order(key: object) -> bytes:
    """Return the order of a key. Raises `InvalidInput` unless the key is plain."""
    try:
        return order_of(key)
    except (TypeError, ValueError, OverflowError):
        _check_key(key)
        raise


def _encoded(value: object) -> bytes:
    return b"" if isinstance(value, _Missing) else _encode(value)


def _decoded(data: bytes) -> object:
    value: object = msgspec.msgpack.decode(data)
    # Most values are plain already, and a decoded value can be encoded.
    return value if type(value) in _KINDS else _plain(value)


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
