"""Attributes: what is said of few frames, or several times of one, as postings by field and value.

Owns URI, title, track, tags, labels, content dates and metadata: a row each of (frame's row,
group, key), where a group is a field and the type of a value, and the key one u64 (a number's or
time's own order, a string's code). A frame without any takes nothing. `GroupIndex` finds the rows
of a group whose key lies in a range.
"""

import threading
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import PutFrame

from .columns import I64, U32, U64, AnyColumn, Column, Columns, require
from .hash_index import SORT_SIZE_MIN
from .names import LoadedNames, Names
from .seal import Kept
from .sorted_rows import SortedRows
from .string_order import StringOrder
from .strings import LoadedStrings, Strings
from .typed_values import KEY_MAX, ValueType, number_key, time_key

URI: Final = "uri"
TITLE: Final = "title"
TRACK: Final = "track"
TAG: Final = "tag"
LABEL: Final = "label"
DATE: Final = "date"
METADATA: Final = "metadata."
"""The field of a metadata key is this and the key. On disk: never change any of these."""

_TYPE_BITS: Final = 3
_TYPE_MASK: Final = (1 << _TYPE_BITS) - 1


def group_of(field_code: int, kind: ValueType) -> int:
    """Return the group of a field and a type. On disk: never change."""
    return field_code << _TYPE_BITS | kind


class Attributes:
    """The attributes of frames, in order of row. One thread adds; any thread may read.

    - ``row`` never descends; a row's attributes stand in the order in which the event has them.
    """

    def __init__(self) -> None:
        self.fields, self.strings = Names(), Strings()
        self.row, self.group = Column(np.uint32), Column(np.uint32)
        self.key = Column(np.uint64)
        self.index, self.order = GroupIndex(), StringOrder(self.strings)
        self._new: list[tuple[int, int, int]] = []
        # The first group of each field seen so far.
        self._bases: dict[str, int] = {}

    # --- adding ----------------------------------------------------------------------------------

    def add(self, row: int, seq: int, body: PutFrame) -> None:
        """Take what a frame says of itself; it can be read after `settle`. About 1 us a value."""
        if body.uri is not None:
            self._add_strings(row, seq, URI, (body.uri,))
        if body.title is not None:
            self._add_strings(row, seq, TITLE, (body.title,))
        if body.track is not None:
            self._add_strings(row, seq, TRACK, (body.track,))
        if body.tags:
            self._add_strings(row, seq, TAG, body.tags)
        if body.labels:
            self._add_strings(row, seq, LABEL, body.labels)
        if body.content_dates:
            group = self._base(DATE, seq) + ValueType.TIME
            self._new += [(row, group, time_key(date)) for date in body.content_dates]
        for name, value in body.metadata.items():
            self.add_value(row, seq, METADATA + name, value)

    def add_value(self, row: int, seq: int, field: str, value: object) -> None:
        """Take one value, a string, number, bool or null; of others only that they are there."""
        if isinstance(value, str):
            self._add_strings(row, seq, field, (value,))
            return
        if value is None:
            kind, key = ValueType.NULL, 0
        elif isinstance(value, bool):
            kind, key = ValueType.BOOL, int(value)
        elif isinstance(value, int | float):
            kind, key = number_key(value)
        else:
            kind, key = ValueType.OTHER, 0
        self._new.append((row, self._base(field, seq) + kind, key))

    def _add_strings(self, row: int, seq: int, field: str, texts: Iterable[str]) -> None:
        group, code_of = self._base(field, seq) + ValueType.STRING, self.strings.code
        self._new += [(row, group, code_of(text, seq)) for text in texts]

    def _base(self, field: str, seq: int) -> int:
        base = self._bases.get(field)
        if base is None:
            base = self._bases[field] = self.fields.code(field, seq) << _TYPE_BITS
        return base

    def settle(self) -> None:
        """Append to the columns what was added."""
        if self._new:
            codes = self.strings.settle()
            self.row.extend([row for row, _, _ in self._new])
            self.group.extend([group for _, group, _ in self._new])
            keys = [key if key >= 0 else codes[-key - 1] for _, _, key in self._new]
            self.key.extend(np.array(keys, np.uint64))
            self._new.clear()

    def kept(self) -> list[Kept]:
        """Return the things that the fold appends to."""
        return [*self.fields.kept(), *self.strings.kept(), self.row, self.group, self.key]

    def view(self) -> "AttributeView":
        """Return an immutable reader of what was settled."""
        return AttributeView(self)

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, rows: tuple[int, int], after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of the frames in [first, end), which these events put."""
        start, end = np.searchsorted(self.row.view(), rows).tolist()
        return {
            "attributes.row": self.row.view()[start:end],
            "attributes.group": self.group.view()[start:end],
            "attributes.key": self.key.view()[start:end],
            **self.fields.effects("fields", after, through),
            **self.strings.effects(after, through),
        }

    def read(
        self, columns: Columns, rows: tuple[int, int], after: int, through: int
    ) -> "LoadedAttributes":
        """Check the attributes of a chunk without changing anything. Raises `Corrupt`."""
        fields = self.fields.read(columns, "fields", after, through)
        strings = self.strings.read(columns, after, through)
        row, group = columns.u32("attributes.row"), columns.u32("attributes.group")
        key = columns.u64("attributes.key")
        require(len(row) == len(group) == len(key), "its attributes differ in length")
        if len(row):
            require((row[1:] >= row[:-1]).all(), "its attributes are out of order")
            require(rows[0] <= int(row[0]) and int(row[-1]) < rows[1], "an attribute has no frame")
            field_codes, kinds = group >> np.uint32(_TYPE_BITS), group & np.uint32(_TYPE_MASK)
            count = len(self.fields) + len(fields.texts)
            require(0 < int(field_codes.min()) <= int(field_codes.max()) <= count, "no such field")
            codes = key[kinds == ValueType.STRING]
            count = len(self.strings) + len(strings.sizes)
            require(not len(codes) or 0 < codes.min() <= codes.max() <= count, "no such string")
            self._check_fields(fields, field_codes, kinds)
        return LoadedAttributes(fields, strings, row, group, key)

    def _check_fields(self, fields: LoadedNames, codes: U32, kinds: U32) -> None:
        """Raise `Corrupt` unless strings stand where strings are read, and dates likewise."""
        names = [*self.fields.texts(), *fields.texts]
        used: list[int] = np.unique(codes).tolist()
        for code in used:
            name = names[code - 1]
            if not name.startswith(METADATA):
                only = ValueType.TIME if name == DATE else ValueType.STRING
                require((kinds[codes == code] == only).all(), f"field {name!r} has another type")

    def load(self, loaded: "LoadedAttributes") -> None:
        """Append attributes that `read` checked."""
        self.fields.load(loaded.fields)
        self.strings.load(loaded.strings)
        self.row.extend(loaded.row)
        self.group.extend(loaded.group)
        self.key.extend(loaded.key)

    @property
    def size_bytes(self) -> int:
        """Memory held by columns, strings and index, field names left out."""
        columns = sum(column.size_bytes for column in (self.row, self.group, self.key))
        derived = (self.strings, self.order, self.index)
        return columns + sum(one.size_bytes for one in derived)


class LoadedAttributes:
    """Attributes read from a chunk and checked."""

    __slots__ = ("fields", "group", "key", "row", "strings")

    def __init__(
        self, fields: LoadedNames, strings: LoadedStrings, row: U32, group: U32, key: U64
    ) -> None:
        self.fields, self.strings = fields, strings
        self.row, self.group, self.key = row, group, key


class Posting(NamedTuple):
    """Keys of one group, ascending, and the rows that have them."""

    keys: U64
    rows: U32


class AttributeView:
    """The attributes at one moment; any thread may use it while more are added."""

    def __init__(self, attributes: Attributes) -> None:
        self.strings, self.order = attributes.strings, attributes.order
        self._fields = attributes.fields
        self._columns = attributes.row.view(), attributes.group.view(), attributes.key.view()
        self._index = attributes.index

    def find(self, field: str, kind: ValueType, low: int = 0, high: int = KEY_MAX) -> list[Posting]:
        """Return the rows with a value of a type whose key lies in [low, high], piece by piece.

        Rows that came later may be among them.
        """
        code = self._fields.find(field)
        if code is None:
            return []
        return self._index.find(self._columns, group_of(code, kind), low, high)

    def of_row(self, row: int) -> Iterator[tuple[str, ValueType, int]]:
        """Yield field, type and key of each attribute of a row, in the order of its event."""
        rows, groups, keys = self._columns
        start, end = np.searchsorted(rows, (row, row + 1)).tolist()
        for group, key in zip(groups[start:end].tolist(), keys[start:end].tolist(), strict=True):
            field = self._fields.text(group >> _TYPE_BITS)
            if field is not None:
                yield field, ValueType(group & _TYPE_MASK), key

    def within(self, first_row: int, end_row: int, field: str, kind: ValueType) -> Posting:
        """Return keys and rows of a field and type for a range of rows, by row, not by key."""
        rows, groups, keys = self._columns
        start, end = np.searchsorted(rows, (first_row, end_row)).tolist()
        code = self._fields.find(field)
        chosen = groups[start:end] == (0 if code is None else group_of(code, kind))
        return Posting(keys[start:end][chosen], rows[start:end][chosen])


class GroupIndex:
    """Postings: for each group the frames' rows in order of key.

    - Attributes [0, covered) are in it; the two are published together.
    - Sorting is put off until a lookup wants it, so that loading a chunk does none.
    """

    def __init__(self) -> None:
        self._state: tuple[int, dict[int, SortedRows[np.uint64]]] = (0, {})
        self._lock = threading.RLock()

    def find(
        self,
        columns: tuple[U32, U32, U64],
        group: int,
        low: int,
        high: int,
    ) -> list[Posting]:
        """Return keys and rows of a group with low ≤ key ≤ high, piece by piece.

        ``columns`` are a prefix of (row, group, key); rows beyond it may come along.
        """
        rows, groups, keys = columns
        if len(groups) - self._state[0] > SORT_SIZE_MIN:
            self._cover(rows, groups, keys)
        covered, by_group = self._state
        sorted_rows = by_group.get(group, SortedRows[np.uint64]())
        pieces = sorted_rows.between(np.uint64(low), np.uint64(high))
        found = [Posting(*piece) for piece in pieces]
        if covered < len(groups):
            tail = np.flatnonzero(groups[covered:] == group) + covered
            key = keys[tail]
            tail = tail[(key >= np.uint64(low)) & (key <= np.uint64(high))]
            if len(tail):
                tail = tail[np.argsort(keys[tail], kind="stable")]
                found.append(Posting(keys[tail], rows[tail]))
        return found

    def _cover(self, rows: U32, groups: U32, keys: U64) -> None:
        """Sort the attributes that are not sorted yet."""
        with self._lock:
            covered, by_group = self._state
            if covered < len(groups):
                added = _grouped(rows[covered:], groups[covered:], keys[covered:])
                grown = {
                    group: by_group.get(group, SortedRows[np.uint64]()).plus(key, row)
                    for group, key, row in added
                }
                self._state = len(groups), {**by_group, **grown}

    @property
    def size_bytes(self) -> int:
        """Memory held by the sorted rows."""
        return sum(one.size_bytes for one in self._state[1].values())


def _grouped(rows: U32, groups: U32, keys: U64) -> list[tuple[int, U64, U32]]:
    """Return (group, keys, rows) of each group, in order of row."""
    # A sort of 16-bit items takes a tenth of the time.
    narrow = groups.astype(np.uint16) if int(groups.max()) < 1 << 16 else groups
    order: I64 = np.argsort(narrow, kind="stable")
    in_order = groups[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=in_order[0] + np.uint32(1)))
    return [(int(groups[part[0]]), keys[part], rows[part]) for part in np.split(order, starts)[1:]]
