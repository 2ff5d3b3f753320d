"""Attributes: optional or repeated values of frames, as postings by field and value.

Owns URI, title, track, tags, labels, content dates, expiry and metadata, nested values included: a
value in a map has the field of its path ("user.name", the same as a key with a dot), and a value in
a list a field of items. An attribute is a row of (frame's row, group, key): the group is a field
and a value type, the key a u64 (order-preserving for numbers and times, a code for strings). A
frame without attributes takes no space. `GroupIndex` finds the rows of a group whose key lies in a
range.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

import numpy as np

from cerata.engine.events import PutFrame

from ..columnar.columns import (
    I64,
    U32,
    U64,
    AnyColumn,
    AppendOnly,
    Column,
    Columns,
    distinct,
    gather_ranges,
    require,
    run_starts,
    views,
)
from ..columnar.hash_index import SORT_SIZE_MIN
from ..columnar.names import LoadedNames, Names
from ..columnar.scopes import read_scope
from ..columnar.sorted_rows import SortedRows, StringOrder
from ..columnar.string_table import StringRows
from ..columnar.strings import Strings
from ..columnar.tables import check_codes
from ..columnar.typed_values import (
    EXACT_MAX,
    KEY_MAX,
    ValueType,
    exact_number_keys,
    number_key,
    time_key,
)
from .alike_attributes import AttributeRows, alike_rows

URI: Final = "uri"
TITLE: Final = "title"
TRACK: Final = "track"
TAG: Final = "tag"
LABEL: Final = "label"
DATE: Final = "date"
EXPIRES: Final = "expires"
METADATA: Final = "metadata."
"""Prefix of the field of a metadata path."""
ITEM: Final = "item."
"""Prefix of the field of a metadata path inside a list. On disk: never change these names."""

_SPAN: Final = "span"
"""The metadata of a chunk that places it in its document; no filter reads its two numbers."""

_NUMBER: Final = int(ValueType.NUMBER)
_STRING: Final = int(ValueType.STRING)
"""As plain integers: an `IntEnum` takes three times as long to add."""

_TYPE_BITS: Final = 3
_TYPE_MASK: Final = (1 << _TYPE_BITS) - 1


def group_of(field_code: int, kind: ValueType) -> int:
    """Return the group of a field and a type. On disk: never change."""
    return field_code << _TYPE_BITS | kind


class Attributes:
    """The attributes of frames, in order of row. One thread adds; any thread may read.

    - ``row`` never descends; the attributes of a row are in the order of its event.
    """

    def __init__(self) -> None:
        self.fields = Names("fields")
        self.strings = Strings()
        self.row = Column(np.uint32)
        self.group = Column(np.uint32)
        self.key = Column(np.uint64)
        self.index = GroupIndex()
        self.order = StringOrder(self.strings)
        # The attributes to settle, a list for each column: a new string has a key below 0, and a
        # number in ``_numbers`` has its key computed when it settles.
        self._rows: list[int] = []
        self._groups: list[int] = []
        self._keys: list[int] = []
        self._numbers: list[float] = []
        self._number_places: list[int] = []
        # Or the attributes of a step of frames that are alike.
        self._alike: AttributeRows | None = None
        # The first group of each field so far; that of each name in metadata, and of tags (None).
        self._bases: dict[str, int] = {}
        self._alike_bases: dict[str | None, int] = {}

    # --- adding ----------------------------------------------------------------------------------

    def add(self, first_row: int, seqs: Sequence[int], bodies: Sequence[PutFrame]) -> None:
        """Add the attributes of frames; readable after `settle`. About 0.2 us a value."""
        rows = self._rows
        groups = self._groups
        if not rows and self._alike is None:
            self._alike = alike_rows(first_row, seqs, bodies, self.strings, self._alike_bases)
            if self._alike is not None:
                return
        bases = self._alike_bases
        for row, (seq, body) in enumerate(zip(seqs, bodies, strict=True), start=first_row):
            if body.uri is not None or body.title is not None or body.track is not None:
                for field, text in ((URI, body.uri), (TITLE, body.title), (TRACK, body.track)):
                    if text is not None:
                        self._add_strings(seq, field, (text,))
            if body.tags:
                self._add_strings(seq, TAG, body.tags)
                bases[None] = self._bases[TAG]
            if body.labels:
                self._add_strings(seq, LABEL, body.labels)
            if body.content_dates:
                self._add_times(seq, DATE, body.content_dates)
            if body.expires is not None:
                self._add_times(seq, EXPIRES, (body.expires,))
            if body.metadata:
                self._add_metadata(seq, body)
            count = len(groups) - len(rows)
            if count:
                rows += [row] * count

    def _add_times(self, seq: int, field: str, times: Sequence[int]) -> None:
        self._groups += [self._base(field, seq) + ValueType.TIME] * len(times)
        self._keys += map(time_key, times)

    def _add_metadata(self, seq: int, body: PutFrame) -> None:
        bases = self._alike_bases
        keys = self._keys
        for name, value in body.metadata.items():
            base = bases.get(name)
            if base is None:
                base = bases[name] = self._base(METADATA + name, seq)
            if type(value) is int and -EXACT_MAX <= value <= EXACT_MAX:
                self._number_places.append(len(keys))
                self._numbers.append(value)
                self._groups.append(base | _NUMBER)
                keys.append(0)
            else:
                self._add_typed(seq, base, value)
                if _has_inner(value) and (name != _SPAN or body.chunk_index is None):
                    self._add_inner(seq, METADATA, name, value)

    def _add_inner(self, seq: int, prefix: str, path: str, value: object) -> None:
        """Add the values inside a map or a list; the log limits their depth."""
        if isinstance(value, dict):
            members = cast("dict[str, object]", value).items()
            inner = [(prefix, f"{path}.{name}", item) for name, item in members]
        else:
            inner = [(ITEM, path, item) for item in cast("list[object]", value)]
        for place, name, item in inner:
            # The presence of a map or list is an attribute, unless it lies in a list.
            if place == METADATA or not _has_inner(item):
                self._add_typed(seq, self._base(place + name, seq), item)
            if _has_inner(item):
                self._add_inner(seq, place, name, item)

    def add_value(self, row: int, seq: int, field: str, value: object) -> None:
        """Add a string, number, bool or null; for a list or map, only its presence."""
        self._add_typed(seq, self._base(field, seq), value)
        self._rows.append(row)

    def _add_typed(self, seq: int, base: int, value: object) -> None:
        key = 0
        kind: int
        if value is None:
            kind = ValueType.NULL
        elif isinstance(value, str):
            kind = ValueType.STRING
            key = self.strings.code(value, seq)
        elif isinstance(value, bool):
            kind = ValueType.BOOL
            key = int(value)
        elif isinstance(value, int | float):
            kind, key = number_key(value)
        else:
            kind = ValueType.OTHER
        self._groups.append(base + kind)
        self._keys.append(key)

    def _add_strings(self, seq: int, field: str, texts: Sequence[str]) -> None:
        self._groups += [self._base(field, seq) | _STRING] * len(texts)
        code_of = self.strings.code
        self._keys += [code_of(text, seq) for text in texts]

    def _base(self, field: str, seq: int) -> int:
        base = self._bases.get(field)
        if base is None:
            base = self._bases[field] = self.fields.code(field, seq) << _TYPE_BITS
        return base

    def settle(self) -> None:
        """Append the added attributes to the columns."""
        if self._alike is not None:
            self.row.extend(self._alike.row)
            self.group.extend(self._alike.group)
            self.key.extend(self._alike.key)
            self._alike = None
        if not self._rows:
            return
        codes = self.strings.settle()
        if codes:
            self._keys = [key if key >= 0 else codes[-key - 1] for key in self._keys]
        keys = np.array(self._keys, np.uint64)
        if self._numbers:
            keys[self._number_places] = exact_number_keys(self._numbers)
        self.row.extend(self._rows)
        self.group.extend(self._groups)
        self.key.extend(keys)
        for column in (
            self._rows,
            self._groups,
            self._keys,
            self._numbers,
            self._number_places,
        ):
            column.clear()

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to."""
        return [
            *self.fields.effect_columns(),
            *self.strings.effect_columns(),
            self.row,
            self.group,
            self.key,
        ]

    def view(self) -> "AttributeView":
        """Return an immutable reader of the settled attributes."""
        return AttributeView(self)

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, rows: tuple[int, int], after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns for rows [first, end): the frames that these events put."""
        start, end = np.searchsorted(self.row.view(), rows).tolist()
        return {
            "attributes.row": self.row.view()[start:end],
            "attributes.group": self.group.view()[start:end],
            "attributes.key": self.key.view()[start:end],
            **self.fields.effects(after, through),
            **self.strings.effects(after, through),
        }

    def read(
        self, columns: Columns, rows: tuple[int, int], after: int, through: int
    ) -> "LoadedAttributes":
        """Decode and check the attributes of a chunk; changes no state. Raises `Corrupt`."""
        fields = self.fields.read(columns, after, through)
        strings = self.strings.read(columns, after, through)
        row = columns.u32("attributes.row")
        group = columns.u32("attributes.group")
        key = columns.u64("attributes.key")
        require(len(row) == len(group) == len(key), "its attributes differ in length")
        if len(row):
            require((row[1:] >= row[:-1]).all(), "its attributes are out of order")
            check_codes(row, rows[0], rows[1] - 1)
            field_codes = group >> np.uint32(_TYPE_BITS)
            kinds = group & np.uint32(_TYPE_MASK)
            check_codes(field_codes, 1, len(self.fields) + len(fields.texts))
            texts = len(self.strings) + len(strings.sizes)
            check_codes(key[kinds == ValueType.STRING], 1, texts)
            self._check_fields(fields, field_codes, kinds)
        return LoadedAttributes(fields, strings, row, group, key)

    def _check_fields(self, fields: LoadedNames, codes: U32, kinds: U32) -> None:
        """Raise `Corrupt` unless each field has the type that readers expect."""
        names = [*self.fields.texts(), *fields.texts]
        used: list[int] = distinct(codes).tolist()
        for code in used:
            name = names[code - 1]
            if not name.startswith((METADATA, ITEM)):
                expected = ValueType.TIME if name in (DATE, EXPIRES) else ValueType.STRING
                require(
                    (kinds[codes == code] == expected).all(), f"field {name!r} has a wrong type"
                )

    def load(self, loaded: "LoadedAttributes") -> None:
        """Append attributes that `read` checked."""
        self.fields.load(loaded.fields)
        self.strings.load(loaded.strings)
        self.row.extend(loaded.row)
        self.group.extend(loaded.group)
        self.key.extend(loaded.key)

    @property
    def size_bytes(self) -> int:
        """Memory used by columns, strings and index, without field names."""
        columns = sum(column.size_bytes for column in (self.row, self.group, self.key))
        derived = (self.strings, self.order, self.index)
        return columns + sum(part.size_bytes for part in derived)


def _has_inner(value: object) -> bool:
    return isinstance(value, dict | list)


class LoadedAttributes(NamedTuple):
    """Checked attributes of a chunk."""

    fields: LoadedNames
    strings: StringRows
    row: U32
    group: U32
    key: U64


class Posting(NamedTuple):
    """Ascending keys of a group, and the row of each key."""

    keys: U64
    rows: U32


class AttributeView:
    """A snapshot of the attributes; any thread may use it while the writer adds more."""

    def __init__(self, attributes: Attributes) -> None:
        self.strings = attributes.strings
        self.order = attributes.order
        self._fields = attributes.fields
        rows, groups, keys = views(attributes.row, attributes.group, attributes.key)
        self._columns: tuple[U32, U32, U64] = rows, groups, keys
        self._index = attributes.index

    def fields(self) -> list[str]:
        """Return the names of the fields, also of those that only later rows have."""
        return self._fields.texts()

    def has(self, field: str) -> bool:
        """Return whether any row has the field; also if only later rows have it."""
        return self._fields.find(field) is not None

    def find(self, field: str, kind: ValueType, low: int = 0, high: int = KEY_MAX) -> list[Posting]:
        """Return the rows with a value of a type whose key lies in [low, high], in pieces.

        The result may include rows added after this view.
        """
        code = self._fields.find(field)
        if code is None:
            return []
        return self._index.find(self._columns, group_of(code, kind), low, high)

    def of_row(self, row: int) -> Iterator[tuple[str, ValueType, int]]:
        """Yield field, type and key of each attribute of a row, in the order of the event."""
        rows, groups, keys = self._columns
        start, end = np.searchsorted(rows, np.array((row, row + 1), rows.dtype)).tolist()
        for group, key in zip(groups[start:end].tolist(), keys[start:end].tolist(), strict=True):
            field = self._fields.text(group >> _TYPE_BITS)
            if field is not None:
                yield field, ValueType(group & _TYPE_MASK), key

    def times_of(self, rows: I64, field: str) -> tuple[I64, I64]:
        """Return the times of a field of rows, and the place of each time's row among them."""
        keys, places = self._keys_of(rows, field, ValueType.TIME)
        # The XOR removes the bias of a time's key.
        return (keys ^ np.uint64(1 << 63)).view(np.int64), places

    def codes_of(self, rows: I64, field: str) -> tuple[I64, I64]:
        """Return the codes of a field's strings of rows, and the place of each code's row."""
        keys, places = self._keys_of(rows, field, ValueType.STRING)
        return keys.astype(np.int64), places

    def _keys_of(self, rows: I64, field: str, kind: ValueType) -> tuple[U64, I64]:
        code = self._fields.find(field)
        if code is None:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        of_rows, groups, keys = self._columns
        # Use the dtype of the column: with another dtype each search would copy the column.
        sought = rows.astype(of_rows.dtype)
        starts = of_rows.searchsorted(sought)
        counts = of_rows.searchsorted(sought, side="right") - starts
        at = gather_ranges(starts, counts)
        chosen = np.flatnonzero(groups[at] == group_of(code, kind))
        # The first row whose attributes end after a chosen attribute.
        places = np.cumsum(counts).searchsorted(chosen, side="right")
        return keys[at[chosen]], places

    def within(self, first_row: int, end_row: int, field: str, kind: ValueType) -> Posting:
        """Return keys and rows of a field and type for a range of rows, in order of row."""
        rows, groups, keys = self._columns
        start, end = np.searchsorted(rows, np.array((first_row, end_row), rows.dtype)).tolist()
        code = self._fields.find(field)
        chosen = groups[start:end] == (0 if code is None else group_of(code, kind))
        return Posting(keys[start:end][chosen], rows[start:end][chosen])


class GroupIndex:
    """Postings: for each group the frames' rows in order of key.

    - ``_state`` is (covered, postings of attributes [0, covered)), replaced as a pair.
    - A lookup sorts on demand, so that loading a chunk sorts nothing.
    """

    def __init__(self) -> None:
        self._state: tuple[int, dict[int, SortedRows[np.uint64]]] = (0, {})
        self._lock = threading.RLock()

    def find(self, columns: tuple[U32, U32, U64], group: int, low: int, high: int) -> list[Posting]:
        """Return keys and rows of a group with low ≤ key ≤ high, in pieces.

        ``columns`` are a prefix of (row, group, key); the result may include later rows.
        """
        rows, groups, keys = columns
        if len(groups) - self._state[0] > SORT_SIZE_MIN:
            self._cover(rows, groups, keys)
        covered, by_group = self._state
        postings: list[Posting] = []
        sorted_rows = by_group.get(group)
        if sorted_rows is not None:
            pieces = sorted_rows.between(np.uint64(low), np.uint64(high))
            postings += [Posting(*piece) for piece in pieces]
        if covered < len(groups):
            tail = np.flatnonzero(groups[covered:] == group) + covered
            key = keys[tail]
            tail = tail[(key >= np.uint64(low)) & (key <= np.uint64(high))]
            if len(tail):
                tail = tail[np.argsort(keys[tail], kind="stable")]
                postings.append(Posting(keys[tail], rows[tail]))
        return postings

    def _cover(self, rows: U32, groups: U32, keys: U64) -> None:
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
        """Memory used by the sorted rows."""
        return sum(rows.size_bytes for rows in self._state[1].values())


def _grouped(rows: U32, groups: U32, keys: U64) -> list[tuple[int, U64, U32]]:
    """Return (group, keys, rows) of each group, in order of row."""
    # Sorting 16-bit items takes a tenth of the time.
    narrow = groups.astype(np.uint16) if int(groups.max()) < 1 << 16 else groups
    order: I64 = np.argsort(narrow, kind="stable")
    starts = np.flatnonzero(run_starts(groups[order]))
    return [(int(groups[part[0]]), keys[part], rows[part]) for part in np.split(order, starts)[1:]]


# --- The names and values of scopes as attributes, split when a reader first asks for them --------
#
# Most readers choose the scopes that they see by text, and few filters name a scope; so a load
# splits none.


class ScopeParts:
    """Attributes of scopes; a row is the code of a scope. Any thread may ask."""

    def __init__(self, scopes: Names) -> None:
        self._scopes = scopes
        self._parts = Attributes()
        self._through = 0
        self._lock = threading.RLock()

    def view(self) -> AttributeView:
        """Return a reader of the scopes so far. Cost: about 5 us for each new scope.

        Raises:
            Corrupt: a scope cannot be decoded.
        """
        with self._lock:
            through = len(self._scopes)
            for code in range(self._through + 1, through + 1):
                for name, value in read_scope(self._scopes.text(code) or "[]"):
                    self._parts.add_value(code, 0, name, value)
                self._through = code
            self._parts.settle()
            return self._parts.view()
