"""The columns of vectors: which frame has one in which space, its signs, and when another came.

Owns the rows of each space, in order of seq, and their place in digests and chunks. The vectors
themselves stay in the log, whose segments hold those of a space as one column; here are 64 bits of
their hash, so that what is read from there can be verified, and a bit for the sign of each number.
The vectors of a text's tokens are one row, whose signs are those of their sum.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerata.engine.draft_checks import DTYPE_SIZES
from cerata.engine.events import is_token_space
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX

from .columns import I64, U8, U64, AnyColumn, AnyGrowing, Column, Columns, require
from .hash_index import HashIndex
from .names import Names
from .seal import Kept
from .tables import Table, check_codes

Key: TypeAlias = tuple[str, str, int]
"""What vectors have in common: space, dtype and dimension."""

STILL: Final = np.iinfo(np.int64).max
"""In place of the event that gave a frame another vector: none did."""

_WORD_BITS: Final = 64

STEP_NUMBERS: Final = 1 << 21
"""Numbers of vectors that are read at once: 8 MiB of float32, some 5,000 rows of 384."""

Matrix: TypeAlias = npt.NDArray[np.float32 | np.int8]
"""Vectors of one space, one a row."""


def matrix_of(data: bytes | U8, key: Key) -> Matrix:
    """Return the vectors of a space that stand end to end in bytes."""
    if key[1] == "i1":
        return np.frombuffer(data, np.int8).reshape(-1, key[2])
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False).reshape(-1, key[2])


def sign_words(vectors: Matrix) -> U64:
    """Return a bit for each number, set where it is above 0; the first is the lowest.

    Shape: (rows, dimension) to (rows, dimension / 64 rounded up); what is left over is 0.
    """
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    words = np.zeros((len(vectors), -(-vectors.shape[1] // _WORD_BITS) * 8), np.uint8)
    words[:, : bits.shape[1]] = bits
    return words.view("<u8").astype(np.uint64, copy=False)


def _pooled(data: Sequence[bytes], key: Key) -> Matrix:
    """Return a vector for each of a space's rows: of token vectors their sum, which is exact."""
    if not is_token_space(key[0]):
        return matrix_of(b"".join(data), key)
    return np.stack([pooled(matrix_of(one, key)) for one in data])


def pooled(tokens: Matrix) -> Matrix:
    """Return the sum of token vectors: (tokens, dimension) int8 to (dimension,) float32, exact."""
    summed: Matrix = tokens.sum(axis=0, dtype=np.int64).astype(np.float32)
    return summed


class NewVector(NamedTuple):
    """A vector about to be appended: the event that brings it, its frame, and its bytes."""

    seq: int
    frame: int
    key: Key
    check: int
    data: bytes


class SpaceRows:
    """The vectors of one space, appended by one thread; row r of all columns is one of them.

    - ``until`` of a row is the event that gave its frame another vector in the space, or `STILL`;
      a reader of an earlier state passes over what came later.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self.rows, self.seqs = Column(np.int64), Column(np.int64)
        self.frames, self.checks = Column(np.uint64), Column(np.uint64)
        self.until = Column(np.int64)
        self.words = [Column(np.uint64) for _ in range(-(-key[2] // _WORD_BITS))]
        self.by_frame = HashIndex()

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def width(self) -> int:
        """Bytes of a row's signs."""
        return 8 * len(self.words)

    def extend(self, rows: I64, seqs: AnyColumn, frames: AnyColumn, checks: AnyColumn) -> None:
        """Append rows, but for their signs."""
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
        """Enter for rows from ``first`` on that they took the place of an earlier one.

        A frame's own vector is its first. Cost: a look-up for each that came later.
        """
        frames, seqs = self.frames.view(), self.seqs.view()
        late = np.flatnonzero(frames[first:] != seqs[first:].astype(np.uint64)) + first
        for row in late.tolist():
            before = [one for one in self.by_frame.find(frames, int(frames[row])) if one < row]
            if before:
                self.until.set_once(before[-1], seqs[row])

    def replace_all(self) -> None:
        """Enter for all rows at once which took the place of which. Cost: a sort."""
        frames, seqs = self.frames.view(), self.seqs.view()
        if bool((frames == seqs.astype(np.uint64)).all()):
            return
        order = np.argsort(frames, kind="stable")
        again = frames[order[1:]] == frames[order[:-1]]
        self.until.set_once(order[:-1][again], seqs[order[1:][again]])

    @property
    def size_bytes(self) -> int:
        """Memory held by columns and index."""
        columns: list[AnyGrowing] = [self.rows, self.seqs, self.frames, self.checks, self.until]
        held = sum(column.size_bytes for column in (*columns, *self.words))
        return held + self.by_frame.size_bytes


class VectorColumns:
    """Every column of the vectors fold, appended by one thread; a row of `table` is a vector."""

    def __init__(self) -> None:
        self.names = Names()
        self.seq, self.space = Column(np.int64), Column(np.uint32)
        self.frame, self.check = Column(np.uint64), Column(np.uint64)
        self.table = Table(
            "vectors",
            seq=self.seq,
            space=self.space,
            frame=self.frame,
            check=self.check,
        )
        # By code − 1. Derived, but for the signs.
        self.spaces: list[SpaceRows] = []

    def append(self, vectors: Sequence[NewVector]) -> None:
        """Append vectors in order of seq."""
        codes = [self._code(one.key, one.seq) for one in vectors]
        first_row = len(self.table)
        self.table.extend(
            [one.seq for one in vectors],
            codes,
            [one.frame for one in vectors],
            [one.check for one in vectors],
        )
        grown = self._spread(first_row)
        for code in sorted(grown):
            rows = self.spaces[code - 1]
            own = [one.data for one, its in zip(vectors, codes, strict=True) if its == code]
            rows.sign(sign_words(_pooled(own, rows.key)))
            rows.replace_one_by_one(grown[code])

    def _code(self, key: Key, seq: int) -> int:
        code = self.names.code(_text_of(key), seq)
        if code > len(self.spaces):
            self.spaces.append(SpaceRows(key))
        return code

    def _spread(self, first_row: int) -> dict[int, int]:
        """Enter the rows from one on in their spaces; return by code the first in each."""
        seqs, spaces, frames, checks = (view[first_row:] for view in self.table.views())
        grown: dict[int, int] = {}
        for code in _codes_in(spaces):
            places = np.flatnonzero(spaces == code)
            rows = self.spaces[code - 1]
            grown[code] = len(rows)
            rows.extend(places + first_row, seqs[places], frames[places], checks[places])
        return grown

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        table = self.table.effects(after, through)
        codes = table["vectors.space"]
        start = int(self.seq.view().searchsorted(after, "right"))
        places, signs = self._places(codes)
        for code in _codes_in(codes):
            rows = self.spaces[code - 1]
            first, end = rows.rows.view().searchsorted([start, start + len(codes)])
            own = places[codes == code]
            signs[own[:, None] + np.arange(rows.width)] = rows.signs(first, end)
        return {**self.names.effects("spaces", after, through), **table, "signs": signs}

    def _places(self, codes: AnyColumn) -> tuple[I64, U8]:
        """Return where the signs of rows begin, end to end, and as many bytes."""
        widths = np.array([0, *(rows.width for rows in self.spaces)], np.int64)[codes]
        ends = np.cumsum(widths)
        return ends - widths, np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)

    def kept(self) -> list[Kept]:
        """Return the things that the fold appends to, but no derived columns."""
        signs = [column for rows in self.spaces for column in rows.words]
        return [*self.names.kept(), *self.table.kept(), *signs]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: what is derived is derived again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        names = self.names.read(columns, "spaces", after, through)
        keys = [_key_in(text) for text in names.texts]
        loaded, signs = self.table.read(columns, after, through), columns.u8("signs")
        codes = loaded["space"]
        check_codes(codes, 1, len(self.spaces) + len(keys))
        require(
            bool((loaded["frame"] <= loaded["seq"].astype(np.uint64)).all()),
            "a vector comes before its frame",
        )
        widths = [0, *(rows.width for rows in self.spaces), *(SpaceRows(key).width for key in keys)]
        size = int(np.array(widths, np.int64)[codes].sum())
        require(len(signs) == size, "its signs are not those of its vectors")
        self.names.load(names)
        self.spaces += [SpaceRows(key) for key in keys]
        first_row = len(self.table)
        self.table.load(loaded)
        places, _ = self._places(codes)
        for code in self._spread(first_row):
            rows = self.spaces[code - 1]
            own = places[codes == code]
            rows.sign(signs[own[:, None] + np.arange(rows.width)].view("<u8"))
            rows.replace_all()

    @property
    def size_bytes(self) -> int:
        """Memory held by columns and indexes, names left out."""
        return self.table.size_bytes + sum(rows.size_bytes for rows in self.spaces)


def _codes_in(codes: AnyColumn) -> list[int]:
    found: list[int] = np.unique(codes).tolist()
    return found


def _text_of(key: Key) -> str:
    space, dtype, dimension = key
    return f"{dtype}/{dimension}/{space}"


def _key_in(text: str) -> Key:
    """Return what `_text_of` was given. Raises `Corrupt`."""
    dtype, _, rest = text.partition("/")
    dimension, _, space = rest.partition("/")
    is_number = dimension.isascii() and dimension.isdigit() and len(dimension) < 7
    known = dtype in DTYPE_SIZES and is_number and bool(space)
    require(known and 0 < int(dimension) <= EMBEDDING_DIMENSION_MAX, "a space has no shape")
    return space, dtype, int(dimension)
