"""Vectors as of any event: the reader over the columns that `vectors` folds."""

from typing import NamedTuple

import numpy as np

from .columns import I64, U16, U32, U64, Mask, rows_up_to
from .vector_columns import Key, SpaceRows, VectorColumns


class Space(NamedTuple):
    """The vectors of one space by an event, a row each; they stay as they are.

    ``seqs`` ascend; ``until`` is as `SpaceRows` has it; ``words`` are the signs, a word of each
    row after the other.
    """

    key: Key
    seqs: I64
    frames: U64
    checks: U64
    until: I64
    words: tuple[U64, ...]
    rows: SpaceRows

    def by(self, n: int) -> "Space":
        """Return the space with its rows by event n alone."""
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

    def held(self, n: int) -> Mask:
        """Return which of the rows, all by event n, are their frame's vector then."""
        found: Mask = self.until > n
        return found

    def row_of(self, frame: int, n: int) -> int | None:
        """Return the row of a frame's vector at n, or None."""
        found = [
            row
            for row in self.rows.by_frame.find(self.frames, frame)
            if self.seqs[row] <= n < self.until[row]
        ]
        return found[0] if found else None


class Vectors:
    """Reads vectors at any n up to ``seq``. Immutable: any thread may use it meanwhile."""

    def __init__(self, columns: VectorColumns, seq: int) -> None:
        self.seq = seq
        self._spaces = [_space(rows) for rows in columns.spaces]

    def spaces(self, n: int) -> list[Space]:
        """Return the spaces that have a vector by n, in the order in which they came."""
        return [one for one in self._spaces if len(one.seqs) and one.seqs[0] <= n]

    def find(self, key: Key, n: int) -> Space | None:
        """Return a space by its name and shape, with its rows by event n."""
        return next((one.by(n) for one in self.spaces(n) if one.key == key), None)


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
    """Return in how many signs rows differ from a query's, whose words are given."""
    words = zip(space.words, query, strict=True)
    first, *others = (np.bitwise_count(column[rows] ^ word) for column, word in words)
    # All of 65,536 signs may differ, one more than 16 bits hold.
    is_short = space.key[2] <= np.iinfo(np.uint16).max
    found: U16 | U32 = first.astype(np.uint16 if is_short else np.uint32)
    for count in others:
        found += count
    return found
