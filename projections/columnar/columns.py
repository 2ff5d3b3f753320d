"""Columns of numbers: arrays that grow while a fold runs, and their bytes in a chunk.

Owns `Column` and the chunk encoding. Leaves out the meaning of the columns, checksums and
compression: the storage of chunks checks and compresses.

A chunk is a header (magic 8, version u32, count u32), a 48-byte descriptor per column (name 24,
dtype 8, items u64, reserved 8), then each column's little-endian bytes, padded with zeros to a
multiple of 8 so that reading copies nothing. The same columns always give the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)

from cerata.engine.errors import Corrupt
from cerata.engine.late import late

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    U8: TypeAlias = npt.NDArray[np.uint8]
    U16: TypeAlias = npt.NDArray[np.uint16]
    U32: TypeAlias = npt.NDArray[np.uint32]
    U64: TypeAlias = npt.NDArray[np.uint64]
    I32: TypeAlias = npt.NDArray[np.int32]
    I64: TypeAlias = npt.NDArray[np.int64]
    F32: TypeAlias = npt.NDArray[np.float32]
    F64: TypeAlias = npt.NDArray[np.float64]
    Mask: TypeAlias = npt.NDArray[np.bool_]
else:
    np = late("numpy")
    # Annotations that Python evaluates need names, and no types of numpy.
    U8 = U16 = U32 = U64 = I32 = I64 = F32 = F64 = Mask = Any

Unsigned: TypeAlias = U8 | U16 | U32
"""A column whose width follows from its largest value; see `narrow`."""

AnyColumn: TypeAlias = U8 | U16 | U32 | U64 | I32 | I64

NO_ROW: Final = 0xFFFF_FFFF
"""In a u32 column of rows: no row. On disk: never renumber."""

CHUNK_MAGIC: Final = b"ceracols"
CHUNK_VERSION: Final = 1
COLUMNS_MAX: Final = 64
CHUNK_SIZE_MAX: Final = 1 << 32
"""Maximum size of a chunk before compression; 2 million frames take about 1 GiB."""

_HEADER = struct.Struct("<8sII")
_DESCRIPTOR = struct.Struct("<32sQQ")
_NAME_SIZE: Final = 24
_FORMATS: Final = {"|u1": "B", "<u2": "H", "<u4": "I", "<u8": "Q", "<i4": "i", "<i8": "q"}
"""The dtypes of columns, and the formats of `struct` for their items."""
_PLACE = "projection chunk"

Item = TypeVar("Item", bound="np.generic")


Rows: TypeAlias = int | I64 | U32


class AppendOnly(Protocol):
    """A sequence of items to which a fold only appends, as seals count and hash it."""

    @property
    def size(self) -> int:
        """The number of items."""
        ...

    def bytes_from(self, start: int) -> bytes:
        """Return the bytes of the items from index ``start`` on.

        The bytes do not depend on the division of the items into appends.
        """
        ...


class Column(Generic[Item]):
    """A growing array of one dtype.

    - Items are only appended; `view` returns an array whose items never change.
    - A single thread appends; any thread may hold a view, which keeps its buffer alive.
    """

    __slots__ = ("buffer", "size")

    def __init__(self, dtype: type[Item]) -> None:
        self.buffer: npt.NDArray[Item] = np.empty(0, dtype)
        self.size = 0

    def __len__(self) -> int:
        return self.size

    @property
    def size_bytes(self) -> int:
        """Memory used, room for growth included."""
        return self.buffer.nbytes

    def view(self) -> npt.NDArray[Item]:
        """Return the items so far, without a copy."""
        return self.buffer[: self.size]

    def bytes_from(self, start: int) -> bytes:
        """Return the bytes of the items from ``start`` on."""
        return self.buffer[start : self.size].tobytes()

    def item(self, row: int) -> int:
        """Return an item; takes a third of the time of ``int(view()[row])``."""
        item: int = self.buffer.item(row)
        return item

    def extend(self, items: npt.ArrayLike) -> None:
        """Append items; amortised O(items)."""
        if isinstance(items, range):
            # As a sequence numpy would take its items one by one.
            items = np.arange(items.start, items.stop, items.step)
        added = np.asarray(items, self.buffer.dtype)
        if not len(added):
            return
        end = self.size + len(added)
        if end > len(self.buffer):
            self._grow(max(end, 16 if self.size else 0, self.size * 3 // 2))
        self.buffer[self.size : end] = added
        self.size = end

    def adopt(self, items: npt.ArrayLike) -> None:
        """Append items that the caller will not change; an empty column does not copy them."""
        if self.size:
            self.extend(items)
        else:
            self.buffer = np.asarray(items, self.buffer.dtype)
            self.size = len(self.buffer)

    def share(self, column: Column[Any], count: int) -> None:
        """Become the first ``count`` items of another column, whose buffer is shared.

        The buffer has no room here, so an append moves to a buffer of this column's. `set_once`
        would reach the other column, and raises `ValueError`.
        """
        self.buffer = column.buffer[:count]
        self.buffer.flags.writeable = False
        self.size = count

    def reserve(self, count: int) -> None:
        """Make room for ``count`` more items, so that an `extend` by them copies no old items."""
        if self.size + count > len(self.buffer):
            self._grow(self.size + count)

    def _grow(self, capacity: int) -> None:
        """Move to a larger buffer; views continue to use the old buffer."""
        grown: npt.NDArray[Item] = np.empty(capacity, self.buffer.dtype)
        grown[: self.size] = self.buffer[: self.size]
        self.buffer = grown

    def set_once(self, rows: Rows, values: npt.ArrayLike) -> None:
        """Overwrite placeholder items.

        Only for derived columns: a view taken earlier must ignore the new values.
        """
        self.view()[rows] = values


AnyGrowing: TypeAlias = (
    "Column[np.uint8] | Column[np.uint32] | Column[np.uint64] | Column[np.int32] | Column[np.int64]"
)


def narrow(items: AnyColumn) -> Unsigned:
    """Return the items in the narrowest unsigned dtype that holds the largest.

    Raises:
        OverflowError: an item needs more than 32 bits.
    """
    largest = int(items.max()) if len(items) else 0
    if largest < 1 << 8:
        return items.astype(np.uint8, copy=False)
    if largest < 1 << 16:
        return items.astype(np.uint16, copy=False)
    if largest < 1 << 32:
        return items.astype(np.uint32, copy=False)
    raise OverflowError(f"a column item is {largest}; 32 bits is the limit")


def planes(name: str, column: Unsigned) -> dict[str, U8]:
    """Return a column per byte of the items, the lowest bytes first.

    Planes take a fifth less space when compressed, and a third less time to decompress, than
    items whose bytes are adjacent.
    """
    data = np.ascontiguousarray(column, column.dtype.newbyteorder("<")).view(np.uint8)
    apart = data.reshape(-1, column.itemsize)
    parts: dict[str, U8] = {}
    for place in range(column.itemsize):
        parts[f"{name}.{place}"] = apart[:, place]
    return parts


def encode_columns(columns: Mapping[str, AnyColumn]) -> bytes:
    """Return the canonical bytes of named columns, in the order of the mapping."""
    parts = [_HEADER.pack(CHUNK_MAGIC, CHUNK_VERSION, len(columns))]
    for name, column in columns.items():
        parts.append(_DESCRIPTOR.pack(_descriptor(name, column.dtype), len(column), 0))
    for column in columns.values():
        if len(column):
            data = column.astype(_little(column.dtype), copy=False).tobytes()
            parts += (data, bytes(-len(data) % 8))
    return b"".join(parts)


def has_items(data: bytes, *, but: Container[str]) -> bool:
    """Return whether a column of a chunk that this process encoded has an item, ``but`` some."""
    _, _, count = _HEADER.unpack_from(data)
    end = _HEADER.size + count * _DESCRIPTOR.size
    for descriptor, items, _ in _DESCRIPTOR.iter_unpack(memoryview(data)[_HEADER.size : end]):
        if items and _described(descriptor)[0] not in but:
            return True
    return False


@lru_cache(maxsize=1024)
def _descriptor(name: str, dtype: np.dtype[Any]) -> bytes:
    return name.encode().ljust(_NAME_SIZE, b"\0") + _little(dtype).str.encode()


@lru_cache(maxsize=16)
def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<")


class Columns:
    """The columns of a decoded chunk; each access checks name and dtype.

    The arrays are read-only views of the chunk's bytes, made when a column is read.
    """

    def __init__(
        self,
        data: bytes,
        dtypes: Mapping[str, str],
        starts: Mapping[str, int],
        counts: Mapping[str, int],
        parts: Sequence[Columns] = (),
    ) -> None:
        """Create the columns of a chunk, or those of several chunks end to end, by name.

        Maps of numbers keep the garbage collector away: an object for each column of each chunk
        would start it in the first question of a process.

        Args:
            data: The chunk.
            dtypes: The dtype of each column.
            starts: The offset of each column in the chunk.
            counts: The number of items of each column.
            parts: The chunks that are joined; empty for a single chunk.
        """
        self._data = data
        self._parts = parts
        self._dtypes = dtypes
        self._starts = starts
        self._counts = counts
        self._columns: dict[str, AnyColumn] = {}

    @classmethod
    def end_to_end(cls, parts: Sequence[Columns]) -> Columns:
        """Return the concatenated columns of several chunks.

        Raises:
            Corrupt: the chunks differ in column names or dtypes.
        """
        first, *following = parts
        if not following:
            return first
        for part in following:
            require(part.names() == first.names(), "its columns differ from the previous chunk's")
            if part._dtypes != first._dtypes:
                name = next(
                    name for name in first.names() if part._dtypes[name] != first._dtypes[name]
                )
                raise damaged(f"column {name!r} differs in type from the previous chunk's")
        counts = {name: sum([part._counts[name] for part in parts]) for name in first._dtypes}
        return cls(b"", first._dtypes, {}, counts, parts)

    def names(self) -> list[str]:
        return list(self._dtypes)

    def count(self, name: str) -> int:
        """Return the number of items of a column; 0 if it is missing."""
        return self._counts.get(name, 0)

    def _array(self, name: str) -> AnyColumn:
        column = self._columns.get(name)
        if column is None:
            dtype, count = self._dtypes[name], self._counts[name]
            if not self._parts:
                array = np.frombuffer(self._data, dtype, count, self._starts[name])
            elif count:
                array = np.frombuffer(b"".join([part._bytes(name) for part in self._parts]), dtype)
            else:
                array = np.empty(0, dtype)
            column = self._columns[name] = cast("AnyColumn", array)
        return column

    def _bytes(self, name: str) -> memoryview:
        start = self._starts[name]
        size = self._counts[name] * int(self._dtypes[name][-1])
        return memoryview(self._data)[start : start + size]

    def _check(self, name: str, *dtypes: str) -> None:
        dtype = self._dtypes.get(name)
        if dtype is None:
            raise damaged(f"column {name!r} is missing")
        if dtype not in dtypes:
            raise damaged(f"column {name!r} is {dtype}, expected {' or '.join(dtypes)}")

    def _get(self, name: str, *dtypes: str) -> AnyColumn:
        self._check(name, *dtypes)
        return self._array(name)

    def raw(self, name: str) -> bytes:
        """Return the bytes of a column of u8, without numpy; not of joined chunks."""
        self._check(name, "|u1")
        start = self._starts[name]
        return self._data[start : start + self._counts[name]]

    def integers(self, name: str, dtype: Literal["<u4", "<i8"]) -> Sequence[int]:
        """Return the items of a short column, without numpy; not of joined chunks."""
        self._check(name, dtype)
        form = f"<{self._counts[name]}{_FORMATS[dtype]}"
        return struct.unpack_from(form, self._data, self._starts[name])

    def u8(self, name: str) -> U8:
        return self._get(name, "|u1").astype(np.uint8, copy=False)

    def u32(self, name: str) -> U32:
        return self._get(name, "<u4").astype(np.uint32, copy=False)

    def u64(self, name: str) -> U64:
        return self._get(name, "<u8").astype(np.uint64, copy=False)

    def i64(self, name: str) -> I64:
        return self._get(name, "<i8").astype(np.int64, copy=False)

    def like(self, name: str, model: AnyColumn) -> AnyColumn:
        """Return a column that must have the dtype of ``model``."""
        return self._get(name, model.dtype.newbyteorder("<").str)

    def narrow(self, name: str) -> Unsigned:
        """Return a column that `narrow` returned before encoding."""
        column = self._get(name, "|u1", "<u2", "<u4")
        return column.astype(np.dtype(f"u{column.itemsize}"), copy=False)

    def planes(self, name: str) -> Unsigned:
        """Return a column that `planes` split into bytes; a new array if it has several planes."""
        count = sum(f"{name}.{place}" in self._dtypes for place in range(4))
        parts = [self.u8(f"{name}.{place}") for place in range(count)]
        require(count in (1, 2, 4), f"column {name!r} has {count} planes")
        require(len({len(part) for part in parts}) == 1, f"the planes of {name!r} differ in length")
        joined: Unsigned = parts[-1].astype(np.dtype(f"u{count}"), copy=False)
        for part in reversed(parts[:-1]):
            np.left_shift(joined, 8, out=joined)
            np.bitwise_or(joined, part, out=joined)
        return joined


def decode_columns(data: bytes) -> Columns:
    """Read a chunk; the columns share its bytes.

    Raises:
        Corrupt: `encode_columns` cannot have written the bytes, or they exceed a limit.
    """
    if len(data) > CHUNK_SIZE_MAX:
        raise damaged(f"it has {len(data):,} bytes; the limit is {CHUNK_SIZE_MAX:,}")
    if len(data) < _HEADER.size:
        raise damaged(f"it has {len(data)} bytes, too few for a header")
    magic, version, count = _HEADER.unpack_from(data)
    if magic != CHUNK_MAGIC or version != CHUNK_VERSION or count > COLUMNS_MAX:
        raise damaged(f"its header has magic {magic!r}, version {version}, {count} columns")
    offset = _HEADER.size + count * _DESCRIPTOR.size
    if offset > len(data):
        raise damaged("its descriptors extend past its end")
    dtypes: dict[str, str] = {}
    starts: dict[str, int] = {}
    counts: dict[str, int] = {}
    descriptors = _DESCRIPTOR.iter_unpack(memoryview(data)[_HEADER.size : offset])
    for index, (descriptor, items, reserved) in enumerate(descriptors):
        if reserved:
            raise damaged("its reserved bytes are not zero")
        name, dtype = _described(descriptor)
        if dtype is None or not name or name in dtypes:
            raise damaged(f"column {index} has an invalid descriptor: {descriptor!r}")
        end = padded = offset
        if items:
            end += items * int(dtype[-1])
            padded = end + -end % 8
        if padded > len(data) or (padded != end and any(data[end:padded])):
            raise damaged(f"column {name!r} of {items:,} items does not fit")
        dtypes[name], starts[name], counts[name] = dtype, offset, items
        offset = padded
    if offset != len(data):
        raise damaged(f"{len(data) - offset} bytes follow the last column")
    return Columns(data, dtypes, starts, counts)


@lru_cache(maxsize=1024)
def _described(descriptor: bytes) -> tuple[str, str | None]:
    """Return the name and dtype of a descriptor; an empty name or None if invalid."""
    dtype = _ascii(descriptor[_NAME_SIZE:])
    return _ascii(descriptor[:_NAME_SIZE]), dtype if dtype in _FORMATS else None


def _ascii(field: bytes) -> str:
    """Return a zero-padded name, or an empty string if the field is not plain ASCII."""
    name = field.rstrip(b"\x00")
    return name.decode("ascii") if name.isascii() and b"\x00" not in name else ""


def damaged(what: str) -> Corrupt:
    """Return the error for a chunk that no projection can have written."""
    return Corrupt(
        f"The chunk is damaged: {what}",
        where=_PLACE,
        remedy="Run 'cerata file maintain --only rebuild', which derives all chunks from the log.",
    )


def views(*columns: Column[Any]) -> list[npt.NDArray[Any]]:
    """Return `Column.view` of each column."""
    arrays: list[npt.NDArray[Any]] = []
    for column in columns:
        arrays.append(column.buffer[: column.size])
    return arrays


def require(holds: object, what: str) -> None:
    """Raise `Corrupt` unless a property of a decoded chunk holds."""
    if not holds:
        raise damaged(what)


def rows_up_to(seqs: I64, seq: int) -> int:
    """Return the count of ascending ``seqs`` that are at most ``seq``."""
    return int(seqs.searchsorted(seq, "right"))


def place_of(seqs: I64, seq: int) -> int | None:
    """Return the first index of an event in ascending ``seqs``, or None."""
    place = int(seqs.searchsorted(seq))
    return place if place < len(seqs) and seqs.item(place) == seq else None


def ascending_order(items: U32) -> I64:
    """Return the indices that sort items stably; about 10 ns an item.

    Sorts by the lower two bytes, then by the upper two: numpy sorts 16-bit items by radix, which
    takes a fifth of the time of sorting (item, index) pairs in 64 bits.
    """
    order: I64 = np.argsort(items.astype(np.uint16), kind="stable")
    if len(items) and int(items.max()) >= 1 << 16:
        upper = (items >> np.uint32(16)).astype(np.uint16)
        order = order[np.argsort(upper[order], kind="stable")]
    return order


def gather_ranges(starts: I64, counts: I64) -> I64:
    """Return the concatenated indices of many ranges.

    ``starts`` and ``counts`` have an item per range; the result has ``counts.sum()`` items.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    shifts: I64 = np.repeat(starts - (ends - counts), counts)
    return shifts + np.arange(total, dtype=np.int64)


def concatenate(parts: Sequence[npt.NDArray[Item]], dtype: type[Item]) -> npt.NDArray[Item]:
    """Return the concatenated parts; an empty array without parts."""
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def is_prefix(items: npt.NDArray[Any], column: npt.NDArray[Any]) -> bool:
    """Return whether a column begins with these items."""
    return np.array_equal(items, column[: len(items)])


def offsets(sizes: npt.NDArray[Any] | Sequence[int]) -> I64:
    """Return the start of each of the ranges with these sizes, then the end: (n + 1,)."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def distinct(values: npt.NDArray[Item]) -> npt.NDArray[Item]:
    """Return the distinct items of a column, ascending.

    Numpy's `unique` would import the masked arrays of numpy, which nothing here has.
    """
    ordered = np.sort(values, axis=None)
    return ordered[run_starts(ordered)]


def run_starts(*columns: npt.NDArray[Any]) -> Mask:
    """Return the mask of the items that differ from their predecessor in any column."""
    mask = np.ones(len(columns[0]), np.bool_)
    mask[1:] = False
    for column in columns:
        mask[1:] |= column[1:] != column[:-1]
    return mask
