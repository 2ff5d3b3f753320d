"""The postings of many pieces as one array, so that those of a term are one slice.

A block has a piece of postings (`postings.Piece`), and a question reads each of its words in each
piece: of 100,000 turns 25 times a word. Owns the joined arrays, and when they are made. They take 5
bytes a posting, so they are made only after questions have looked up so many words that joining
would have cost less. The pieces of complete blocks stay, and so does their array; those of later
rows are a group of their own, of each state.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.errors import Corrupt

from ..columnar.columns import I64, U32, Unsigned, concatenate, gather_ranges, narrow, offsets
from .postings import Piece, joined_gaps, rows_of_runs

_LOOK_UP_POSTINGS: Final = 300
"""Postings that are joined in the time of a look-up of a word in a piece, about: each takes 20 ns,
and half of the look-ups of a question would have been saved."""

_POSTINGS_MAX: Final = 1 << 24
"""More postings stay apart: joining them takes 500 MB for a moment."""


class JoinedPostings(NamedTuple):
    """The postings of the rows of some pieces, in order of term, then row.

    - The postings of term ``t`` are [starts[t], starts[t + 1]); later terms have none.
    - ``rows`` (p,) are absolute, below ``end_row``.
    - ``weights`` (p,) are occurrences weighted by field.
    """

    end_row: int
    starts: I64
    rows: U32
    weights: Unsigned

    def slices(self, terms: U32, end_row: int) -> list[slice]:
        """Return the place of the postings of each term in the rows before a row."""
        last = len(self.starts) - 1
        starts = self.starts[np.minimum(terms, last)].tolist()
        ends = self.starts[np.minimum(terms.astype(np.int64) + 1, last)].tolist()
        if end_row < self.end_row:
            ends = [
                start + int(self.rows[start:end].searchsorted(end_row))
                for start, end in zip(starts, ends, strict=True)
            ]
        return [slice(start, end) for start, end in zip(starts, ends, strict=True)]


class PieceGroup:
    """Adjacent pieces, joined once that pays.

    Any threads may use them: two that join at once do the same work.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = tuple(pieces)
        self._looked_up = 0
        self._is_damaged = False
        self._joined: JoinedPostings | None = None

    @cached_property
    def _size(self) -> int:
        return sum([len(piece.counts) for piece in self.pieces])

    @property
    def size_bytes(self) -> int:
        """Memory of the joined arrays."""
        joined = self._joined
        if joined is None:
            return 0
        return joined.starts.nbytes + joined.rows.nbytes + joined.weights.nbytes

    def postings(self, term_count: int) -> JoinedPostings | None:
        """Return the joined postings if they are made; else count a look-up of so many terms."""
        if self._joined is None and len(self.pieces) > 1 and self._may_join():
            self._looked_up += term_count * len(self.pieces)
            if self._looked_up * _LOOK_UP_POSTINGS > self._size:
                try:
                    self._joined = joined_postings(self.pieces)
                except Corrupt:
                    # Only a question with a damaged word fails, as before.
                    self._is_damaged = True
        return self._joined

    def _may_join(self) -> bool:
        return self._size <= _POSTINGS_MAX and not self._is_damaged


def joined_postings(pieces: Sequence[Piece]) -> JoinedPostings:
    """Return the postings of adjacent pieces. Cost: about 20 ns a posting. Raises `Corrupt`."""
    terms = concatenate([piece.terms for piece in pieces], np.uint32)
    sizes = concatenate([np.diff(piece.starts) for piece in pieces], np.int64)
    term_counts = [len(piece.terms) for piece in pieces]
    gaps = joined_gaps(
        concatenate([piece.gaps.low for piece in pieces], np.uint8),
        concatenate([piece.gaps.high for piece in pieces], np.uint8),
    )
    rows = rows_of_runs(
        gaps,
        sizes,
        np.repeat([piece.first_row for piece in pieces], term_counts),
        np.repeat([piece.end_row for piece in pieces], term_counts),
    )
    # A stable sort keeps pieces, and so rows, in order within a term.
    order = terms.argsort(kind="stable")
    at = gather_ranges(offsets(sizes)[order], sizes[order])
    weights = narrow(concatenate([piece.weights.astype(np.uint32) for piece in pieces], np.uint32))
    starts = offsets(np.bincount(terms, sizes).astype(np.int64))
    return JoinedPostings(pieces[-1].end_row, starts, rows.take(at), weights.take(at))
