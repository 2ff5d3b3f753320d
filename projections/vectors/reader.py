"""Vectors as of any event: the reader of the columns that `projection` folds."""

from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import I32, I64, U16, U32, U64, Mask, rows_up_to
from .columns import Key, SpaceRows, VectorColumns

_BLOCK_ROWS: Final = 1 << 16
"""Rows that are compared at once: 512 KiB of signs, which fit a processor's cache."""


class Space(NamedTuple):
    """The vectors of a space up to an event, a row each; immutable.

    - ``seqs`` ascend; ``until`` is that of `SpaceRows`.
    - ``words``: the signs, a column for each word of 64 bits.
    """

    key: Key
    seqs: I64
    frames: U64
    checks: U64
    until: I64
    words: tuple[U64, ...]
    rows: SpaceRows

    def by(self, n: int) -> "Space":
        """Return the space with its rows up to event n."""
        count = rows_up_to(self.seqs, n)
        if count == len(self.seqs):
            return self
        return self._replace(
            seqs=self.seqs[:count],
            frames=self.frames[:count],
            checks=self.checks[:count],
            until=self.until[:count],
            words=tuple(column[:count] for column in self.words),
        )

    def current_mask(self, n: int) -> Mask:
        """Return the mask of the rows that are their frame's vector at n; all rows are up to n."""
        mask: Mask = self.until > n
        return mask

    def row_of(self, frame: int, n: int) -> int | None:
        """Return the row of a frame's vector at n, or None."""
        rows = [
            row
            for row in self.rows.by_frame.find(self.frames, frame)
            if self.seqs[row] <= n < self.until[row]
        ]
        return rows[0] if rows else None


class Vectors:
    """Reads vectors at any n up to ``seq``. Immutable; safe for threads during a fold."""

    def __init__(self, columns: VectorColumns, seq: int) -> None:
        self.seq = seq
        self._spaces = [_space(rows) for rows in columns.spaces]

    def spaces(self, n: int) -> list[Space]:
        """Return the spaces with a vector up to n, in order of first occurrence."""
        return [space for space in self._spaces if len(space.seqs) and space.seqs[0] <= n]

    def find(self, key: Key, n: int) -> Space | None:
        """Return the space with a key, with its rows up to event n, or None."""
        return next((space.by(n) for space in self.spaces(n) if space.key == key), None)


def _space(rows: SpaceRows) -> Space:
    return Space(
        rows.key,
        rows.seqs.view(),
        rows.frames.view(),
        rows.checks.view(),
        rows.until.view(),
        tuple(column.view() for column in rows.words),
        rows,
    )


def distances(space: Space, rows: I64 | slice, query: U64) -> U16 | U32:
    """Return the number of signs in which each row differs from a query's sign words."""
    words = [column[rows] for column in space.words]
    count = len(words[0])
    # All of 65,536 signs may differ: 16 bits can count up to 65,535.
    is_short = space.key[2] <= np.iinfo(np.uint16).max
    short: U16 = np.zeros(count if is_short else 0, np.uint16)
    total: U16 | U32 = short if is_short else np.zeros(count, np.uint32)
    differing = np.empty(min(count, _BLOCK_ROWS), np.uint64)
    counts = np.empty(len(differing), np.uint8)
    for start in range(0, count, _BLOCK_ROWS):
        block = total[start : start + _BLOCK_ROWS]
        size = len(block)
        for column, word in zip(words, query, strict=True):
            np.bitwise_xor(column[start : start + size], word, out=differing[:size])
            np.bitwise_count(differing[:size], out=counts[:size])
            np.add(block, counts[:size], out=block)
    return total


def agreement(space: Space, rows: I64 | slice, query: I32) -> I32:
    """Return for each row the sum of the query's numbers in the dimensions with a set sign bit.

    Exact, if the magnitudes of the query add up to less than 2**31. Computed by table look-up, a
    byte of signs at a time.
    """
    pooled = np.zeros(64 * len(space.words), np.int32)
    pooled[: len(query)] = query
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    tables = pooled.reshape(-1, 8) @ bits.T.astype(np.int32)
    totals: I32 | None = None
    for place, column in enumerate(space.words):
        codes = column[rows].astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
        for byte in range(8):
            share = tables[8 * place + byte][codes[:, byte]]
            totals = share if totals is None else np.add(totals, share, out=totals)
    assert totals is not None
    return totals
