"""The columns of vectors: frame, space, signs, and the event that replaced each vector.

Owns the rows of each space, in order of seq, and their place in digests and chunks. Leaves out the
vectors, which stay in the log; its segments hold the vectors of a space as a column. A row has 64
bits of the vector's hash, which verify a read from the log, and a sign bit for each number. The
vectors of a text's tokens are a single row, with the signs of their sum.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerata.engine.draft_validation import DTYPE_SIZES
from cerata.engine.events import is_token_space
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX

from ..columnar.columns import (
    I64,
    U8,
    U64,
    AnyColumn,
    AnyGrowing,
    AppendOnly,
    Column,
    Columns,
    offsets,
    require,
    rows_up_to,
)
from ..columnar.hash_index import HashIndex
from ..columnar.names import Names
from ..columnar.tables import Table, check_codes

Key: TypeAlias = tuple[str, str, int]
"""The identity of a space of vectors: name, dtype and dimension."""

STILL: Final = np.iinfo(np.int64).max
"""In ``until``: the vector has not been replaced."""

_WORD_BITS: Final = 64

STEP_NUMBERS: Final = 1 << 21
"""Numbers read at once: 8 MiB of float32, some 5,000 vectors of 384."""

Matrix: TypeAlias = npt.NDArray[np.float32 | np.int8]
"""Vectors of a space, (rows, dimension)."""


def matrix_of(data: bytes | U8, key: Key) -> Matrix:
    """Return the vectors of a space from their concatenated bytes."""
    if key[1] == "i1":
        return np.frombuffer(data, np.int8).reshape(-1, key[2])
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False).reshape(-1, key[2])


def sign_words(vectors: Matrix) -> U64:
    """Return a bit for each number, set if the number is above 0; the first is the lowest bit.

    Shape: (rows, dimension) to (rows, dimension / 64 rounded up); unused bits are 0.
    """
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    words = np.zeros((len(vectors), -(-vectors.shape[1] // _WORD_BITS) * 8), np.uint8)
    words[:, : bits.shape[1]] = bits
    return words.view("<u8").astype(np.uint64, copy=False)


def _pooled(data: Sequence[bytes], key: Key) -> Matrix:
    """Return a vector for each row of a space: for token vectors, their exact sum."""
    if not is_token_space(key[0]):
        return matrix_of(b"".join(data), key)
    return np.stack([pooled(matrix_of(tokens, key)) for tokens in data])


def pooled(tokens: Matrix) -> Matrix:
    """Return the sum of token vectors: (tokens, dimension) int8 to (dimension,) float32, exact."""
    summed: Matrix = tokens.sum(axis=0, dtype=np.int64).astype(np.float32)
    return summed


class NewVector(NamedTuple):
    """A vector to append: the seq of its event, its frame, its bytes, and 8 bytes of their hash."""

    seq: int
    frame: int
    key: Key
    check: bytes
    data: bytes


class SpaceRows:
    """The vectors of a space, appended by a single thread; row r of all columns is a vector.

    - ``until`` of a row is the event that replaced its frame's vector in the space, or `STILL`; a
      reader of an earlier state ignores later events.
    """

    def __init__(self, key: Key, code: int) -> None:
        self.key = key
        self.code = code
        """The number of the space, from 1, in order of first occurrence."""
        self.rows = Column(np.int64)
        self.seqs = Column(np.int64)
        self.frames = Column(np.uint64)
        self.checks = Column(np.uint64)
        self.until = Column(np.int64)
        self.words = [Column(np.uint64) for _ in range(_width(key) // 8)]
        self.by_frame = HashIndex()

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def width(self) -> int:
        """Bytes of a row's signs."""
        return 8 * len(self.words)

    def extend(self, rows: I64, seqs: AnyColumn, frames: AnyColumn, checks: AnyColumn) -> None:
        """Append rows, without their signs."""
        self.rows.extend(rows)
        self.seqs.extend(seqs)
        self.frames.extend(frames)
        self.checks.extend(checks)
        self.until.extend(np.full(len(rows), STILL, np.int64))

    def sign(self, words: U64) -> None:
        """Append the signs of rows; (rows, words)."""
        for place, column in enumerate(self.words):
            column.extend(words[:, place])

    def signs(self, start: int, end: int) -> U8:
        """Return the signs of rows as bytes; (rows, `width`)."""
        words = np.stack([column.view()[start:end] for column in self.words], axis=1)
        return words.astype("<u8", copy=False).view(np.uint8)

    def replace_one_by_one(self, first: int) -> None:
        """Set ``until`` of the rows that the rows from ``first`` on replaced.

        A vector of its frame's event replaces none. Cost: a look-up for each other vector.
        """
        frames = self.frames.view()
        seqs = self.seqs.view()
        late = np.flatnonzero(frames[first:] != seqs[first:].astype(np.uint64)) + first
        for row in late.tolist():
            before = [old for old in self.by_frame.find(frames, int(frames[row])) if old < row]
            if before:
                self.until.set_once(before[-1], seqs[row])

    def replace(self, first: int) -> None:
        """Do the same at once. Cost: a sort of the rows of the frames with such a vector."""
        frames = self.frames.view()
        seqs = self.seqs.view()
        late = frames[first:][frames[first:] != seqs[first:].view(np.uint64)]
        if not len(late):
            return
        rows = np.flatnonzero(np.isin(frames, late))
        order = rows[np.argsort(frames[rows], kind="stable")]
        is_replaced = frames[order[1:]] == frames[order[:-1]]
        self.until.set_once(order[:-1][is_replaced], seqs[order[1:][is_replaced]])

    def columns(self) -> list[AnyGrowing]:
        """Return all columns."""
        return [self.rows, self.seqs, self.frames, self.checks, self.until, *self.words]

    @property
    def size_bytes(self) -> int:
        """Memory of columns and index."""
        return sum(column.size_bytes for column in self.columns()) + self.by_frame.size_bytes


class VectorColumns:
    """Every column of the vectors fold, appended by a single thread; `table` has a row a vector."""

    def __init__(self) -> None:
        self.names = Names("spaces")
        self.table = Table("vectors")
        self.table.column("space", np.uint32)
        self.table.column("frame", np.uint64)
        self.table.column("check", np.uint64)
        # Indexed by code − 1. Derived, except for the signs.
        self.spaces: list[SpaceRows] = []

    def append_births(
        self, key: Key, seqs: Sequence[int], checks: Sequence[bytes], data: Sequence[bytes]
    ) -> None:
        """Append those vectors of one space, each of its event's frame, whose numbers are finite.

        Args:
            key: The space, which has no token vectors.
            seqs: The event of each vector, ascending.
            checks: The first 8 bytes of the hash of each vector.
            data: The bytes of each vector.
        """
        matrix = matrix_of(b"".join(data), key)
        if key[1] != "i1" and not np.isfinite(matrix).all():
            places = np.flatnonzero(np.isfinite(matrix).all(axis=1))
            matrix = matrix[places]
            chosen = places.tolist()
            seqs, checks = [seqs[place] for place in chosen], [checks[place] for place in chosen]
        if seqs:
            codes = np.full(len(seqs), self._code(key, seqs[0]), np.uint32)
            self._extend(seqs, codes, seqs, checks, {key: sign_words(matrix)})

    def append(self, vectors: Sequence[NewVector]) -> None:
        """Append those of the vectors, which are in order of seq, whose numbers are finite."""
        places_of: dict[Key, list[int]] = {}
        for place, vector in enumerate(vectors):
            places_of.setdefault(vector.key, []).append(place)
        signs: dict[Key, U64] = {}
        rejected = set[int]()
        for key, places in places_of.items():
            matrix = _pooled([vectors[place].data for place in places], key)
            if key[1] != "i1":
                is_finite = np.isfinite(matrix).all(axis=1)
                if not bool(is_finite.all()):
                    rejected.update(np.array(places)[~is_finite].tolist())
                    matrix = matrix[is_finite]
            signs[key] = sign_words(matrix)
        if rejected:
            vectors = [one for place, one in enumerate(vectors) if place not in rejected]
        if vectors:
            self._append(vectors, signs)

    def _append(self, vectors: Sequence[NewVector], signs: Mapping[Key, U64]) -> None:
        seqs, frames, keys, checks, _ = zip(*vectors, strict=True)
        codes: dict[Key, int] = {}
        for seq, key in zip(seqs, keys, strict=True):
            if key not in codes:
                codes[key] = self._code(key, seq)
        self._extend(seqs, [codes[key] for key in keys], frames, checks, signs)

    def _extend(
        self,
        seqs: Sequence[int],
        codes: npt.ArrayLike,
        frames: Sequence[int],
        checks: Sequence[bytes],
        signs: Mapping[Key, U64],
    ) -> None:
        """Append rows; ``signs`` are those of the rows of each space."""
        first_row = len(self.table)
        self.table.extend(seqs, codes, frames, np.frombuffer(b"".join(checks), "<u8"))
        grown = self._spread(first_row)
        for code in sorted(grown):
            rows = self.spaces[code - 1]
            rows.sign(signs[rows.key])
            rows.replace_one_by_one(grown[code])

    def _code(self, key: Key, seq: int) -> int:
        code = self.names.code(_text_of(key), seq)
        if code > len(self.spaces):
            self.spaces.append(SpaceRows(key, code))
        return code

    def _spread(self, first_row: int) -> dict[int, int]:
        """Append rows from ``first_row`` on to their spaces; return the first by code of space."""
        seqs, spaces, frames, checks = (view[first_row:] for view in self.table.views())
        grown: dict[int, int] = {}
        codes = _codes_in(spaces)
        for code in codes:
            places = np.flatnonzero(spaces == code)
            rows = self.spaces[code - 1]
            grown[code] = len(rows)
            among = slice(None) if len(codes) == 1 else places
            rows.extend(places + first_row, seqs[among], frames[among], checks[among])
        return grown

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        table = self.table.effects(after, through)
        start = rows_up_to(self.table.seq.view(), after)
        signs = self._signs(table["vectors.space"], start)
        return {**self.names.effects(after, through), **table, "signs": signs}

    def _signs(self, codes: AnyColumn, start: int) -> U8:
        """Return the signs of the rows from ``start`` on, which have these codes."""
        places = self._places(codes)
        signs = np.empty(int(places[-1]), np.uint8)
        distinct = _codes_in(codes)
        for code in distinct:
            rows = self.spaces[code - 1]
            first, end = rows.rows.view().searchsorted([start, start + len(codes)])
            if len(distinct) == 1:
                return rows.signs(first, end).reshape(-1)
            starts = places[:-1][codes == code]
            signs[starts[:, None] + np.arange(rows.width)] = rows.signs(first, end)
        return signs

    def _places(self, codes: AnyColumn) -> I64:
        """Return the start of each row's signs among the signs of all rows, then their end."""
        return offsets(np.array([0, *(rows.width for rows in self.spaces)], np.int64)[codes])

    def _signs_of(self, code: int, codes: AnyColumn, signs: U8) -> U64:
        """Return the sign words of the rows of a space among the signs of all rows."""
        width = self.spaces[code - 1].width
        if len(_codes_in(codes)) == 1:
            of_rows = signs.reshape(-1, width)
        else:
            starts = self._places(codes)[:-1][codes == code]
            of_rows = signs[starts[:, None] + np.arange(width)]
        words: U64 = of_rows.view("<u8")
        return words

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to, without derived columns."""
        signs = [column for rows in self.spaces for column in rows.words]
        return [*self.names.effect_columns(), *self.table.effect_columns(), *signs]

    def growing_columns(self) -> list[AppendOnly]:
        """Return the columns that grow with each vector, derived columns included."""
        columns = [column for rows in self.spaces for column in rows.columns()]
        return [*self.table.effect_columns(), *columns]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: `load` computes the derived columns again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` and then leaves the state unchanged."""
        names = self.names.read(columns, after, through)
        keys = [_key_in(text) for text in names.texts]
        loaded = self.table.read(columns, after, through)
        signs = columns.u8("signs")
        codes = loaded["space"]
        check_codes(codes, 1, len(self.spaces) + len(keys))
        require(
            bool((loaded["frame"] <= loaded["seq"].astype(np.uint64)).all()),
            "a vector precedes its frame",
        )
        widths = [0, *(rows.width for rows in self.spaces), *map(_width, keys)]
        size = int(np.array(widths, np.int64)[codes].sum())
        require(len(signs) == size, "the size of its signs does not match its vectors")
        self.names.load(names)
        first_code = len(self.spaces) + 1
        self.spaces += [SpaceRows(key, code) for code, key in enumerate(keys, first_code)]
        first_row = len(self.table)
        self.table.load(loaded)
        for code, first in self._spread(first_row).items():
            rows = self.spaces[code - 1]
            rows.sign(self._signs_of(code, codes, signs))
            rows.replace(first)

    @property
    def size_bytes(self) -> int:
        """Memory of columns and indexes, without names."""
        return self.table.size_bytes + sum(rows.size_bytes for rows in self.spaces)


def _codes_in(codes: AnyColumn) -> list[int]:
    """Return the distinct codes, ascending; they are at most the number of spaces."""
    distinct: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return distinct


def _width(key: Key) -> int:
    """Return the bytes of a row's signs, whole words."""
    return 8 * -(-key[2] // _WORD_BITS)


def _text_of(key: Key) -> str:
    space, dtype, dimension = key
    return f"{dtype}/{dimension}/{space}"


def _key_in(text: str) -> Key:
    """Return the key of a text that `_text_of` returned. Raises `Corrupt`."""
    dtype, _, rest = text.partition("/")
    dimension, _, space = rest.partition("/")
    is_number = dimension.isascii() and dimension.isdigit() and len(dimension) < 7
    is_valid = dtype in DTYPE_SIZES and is_number and bool(space)
    require(
        is_valid and 0 < int(dimension) <= EMBEDDING_DIMENSION_MAX, "a space has no valid shape"
    )
    return space, dtype, int(dimension)
