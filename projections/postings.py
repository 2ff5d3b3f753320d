"""Postings: which rows hold a term, how often and where, in pieces that cover ranges of rows.

Owns `Piece` and what is done to pieces: made from a stream of tokens, merged, cut by row, turned
back into the stream. The stream is the canonical form (it is what digests see): term ids in order
of row and position. A piece is the same in order of term, row and position, so either gives the
other.

Small pieces are merged by the logarithmic method (Bentley and Saxe, 1980), four at a time, so
there are O(log rows) of them however they came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from .columns import (
    I64,
    U32,
    AnyColumn,
    Columns,
    Unsigned,
    ascending_order,
    concatenate,
    gather_ranges,
    narrow,
    planes,
    require,
)
from .fields import FieldLengths, weigh

_FANOUT: Final = 4
_LEVEL_ROWS: Final = 8
"""Pieces below 8 · 4 rows are one level: single puts are merged at most a few times."""


@dataclass(frozen=True)
class Piece:
    """Postings of rows [first_row, end_row), in order of term, then row.

    - ``terms``: (m,) ascending; the postings of ``terms[i]`` are [starts[i], starts[i + 1]).
    - ``rows``: (p,) relative to ``first_row``, ascending within a term.
    - ``counts``: (p,) occurrences in the row, at least 1.
    - ``positions``: (counts.sum(),) ascending within a posting, counted without stop words.
    - ``weights``: (p,) occurrences as their fields weigh; ``counts`` itself where all is text.
      They follow from the rest, and are in no chunk.
    """

    first_row: int
    end_row: int
    terms: U32
    starts: I64
    rows: Unsigned
    counts: Unsigned
    positions: Unsigned
    weights: Unsigned

    @cached_property
    def token_starts(self) -> I64:
        """Where the positions of each term start, and the end: (m + 1,). Phrases ask for it."""
        if not len(self.counts):
            return np.zeros(1, np.int64)
        sums = np.add.reduceat(self.counts, self.starts[:-1], dtype=np.int64)
        return concatenate([np.zeros(1, np.int64), np.cumsum(sums)], np.int64)

    @property
    def size_bytes(self) -> int:
        columns: list[AnyColumn] = [self.terms, self.starts]
        columns += [self.rows, self.counts, self.positions]
        held = sum(column.nbytes for column in columns)
        return held if self.weights is self.counts else held + self.weights.nbytes


def invert(stream: U32, fields: FieldLengths, first_row: int) -> Piece:
    """Return the piece of rows whose tokens follow each other in ``stream``.

    ``fields`` says how many tokens each row has. Cost: a sort, about 10 ns a token.
    """
    size, lengths = len(stream), fields.total
    order = ascending_order(stream)
    tokens = stream[order]
    ends = np.cumsum(lengths, dtype=np.int64)
    token_rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[order]
    positions = order - (ends - lengths)[token_rows]
    is_first = np.ones(size, np.bool_)
    is_first[1:] = (tokens[1:] != tokens[:-1]) | (token_rows[1:] != token_rows[:-1])
    postings = np.flatnonzero(is_first)
    terms, starts = _groups(tokens[postings])
    return _piece(
        (first_row, first_row + len(lengths)),
        terms,
        starts,
        narrow(token_rows[postings]),
        narrow(np.diff(postings, append=size)),
        narrow(positions),
        fields,
    )


def _piece(
    span: tuple[int, int],
    terms: U32,
    starts: I64,
    rows: Unsigned,
    counts: Unsigned,
    positions: Unsigned,
    fields: FieldLengths,
) -> Piece:
    """Return a piece with the columns that follow from the others."""
    weighed = weigh(rows, counts, positions, fields)
    weights = counts if weighed is counts else narrow(weighed)
    return Piece(*span, terms, starts, rows, counts, positions, weights)


def _groups(sorted_terms: U32) -> tuple[U32, I64]:
    """Return the distinct terms of an ascending column and where each starts, and the end."""
    size = len(sorted_terms)
    is_first = np.ones(size, np.bool_)
    is_first[1:] = sorted_terms[1:] != sorted_terms[:-1]
    starts = np.flatnonzero(is_first)
    return sorted_terms[starts], concatenate([starts, np.array([size])], np.int64)


def merge(pieces: Sequence[Piece]) -> Piece:
    """Return one piece for neighbouring pieces, given in order of rows."""
    if len(pieces) == 1:
        return pieces[0]
    first_row = pieces[0].first_row
    terms = concatenate([piece.terms for piece in pieces], np.uint32)
    # Stable: within a term, pieces and so rows stay in order.
    order = np.argsort(terms, kind="stable")
    sizes = concatenate([np.diff(piece.starts) for piece in pieces], np.int64)[order]
    starts = _shifted([piece.starts[:-1] for piece in pieces], [len(p.rows) for p in pieces])
    postings = gather_ranges(starts[order], sizes)
    rows = concatenate(
        [np.add(p.rows, p.first_row - first_row, dtype=np.uint32) for p in pieces], np.uint32
    )
    counts = concatenate([piece.counts.astype(np.uint32) for piece in pieces], np.uint32)
    token_ends = concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)], np.int64)
    token_starts = token_ends[starts[order]]
    token_sizes = token_ends[starts[order] + sizes] - token_starts
    positions = concatenate([piece.positions.astype(np.uint32) for piece in pieces], np.uint32)
    merged_terms, group_starts = _groups(terms[order])
    posting_starts = concatenate([np.zeros(1, np.int64), np.cumsum(sizes)], np.int64)
    merged_starts, merged_counts = posting_starts[group_starts], narrow(counts[postings])
    weights = merged_counts
    if any(piece.weights is not piece.counts for piece in pieces):
        weighed = concatenate([piece.weights.astype(np.uint32) for piece in pieces], np.uint32)
        weights = narrow(weighed[postings])
    return Piece(
        first_row=first_row,
        end_row=pieces[-1].end_row,
        terms=merged_terms,
        starts=merged_starts,
        rows=narrow(rows[postings]),
        counts=merged_counts,
        positions=narrow(positions[gather_ranges(token_starts, token_sizes)]),
        weights=weights,
    )


def _shifted(starts: Sequence[I64], sizes: Sequence[int]) -> I64:
    """Return starts as places in the pieces' columns laid end to end."""
    bases = np.cumsum([0, *sizes[:-1]])
    return concatenate([s + b for s, b in zip(starts, bases, strict=True)], np.int64)


def cut(piece: Piece, first_row: int, end_row: int) -> Piece:
    """Return the part of a piece in rows [first_row, end_row), which must lie within it."""
    if (first_row, end_row) == (piece.first_row, piece.end_row):
        return piece
    rows = piece.rows.astype(np.int64) + piece.first_row
    keep = (rows >= first_row) & (rows < end_row)
    kept_before = concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)], np.int64)
    starts = kept_before[piece.starts]
    present = np.diff(starts) > 0
    kept_starts = concatenate([starts[:-1][present], starts[-1:]], np.int64)
    counts = narrow(piece.counts[keep])
    plain = piece.weights is piece.counts
    return Piece(
        first_row=first_row,
        end_row=end_row,
        terms=piece.terms[present],
        starts=kept_starts,
        rows=narrow(rows[keep] - first_row),
        counts=counts,
        positions=narrow(piece.positions[np.repeat(keep, piece.counts)]),
        weights=counts if plain else narrow(piece.weights[keep]),
    )


def gather(pieces: Sequence[Piece], first_row: int, end_row: int) -> Piece:
    """Return the postings of rows [first_row, end_row), however the pieces divide them.

    Equal ranges give equal pieces: dtypes follow the contents.
    """
    parts = [
        cut(piece, max(first_row, piece.first_row), min(end_row, piece.end_row))
        for piece in pieces
        if piece.first_row < end_row and first_row < piece.end_row
    ]
    return merge(parts) if parts else _empty(first_row, end_row)


def _empty(first_row: int, end_row: int) -> Piece:
    none, zero = np.empty(0, np.uint8), np.zeros(1, np.int64)
    return Piece(first_row, end_row, np.empty(0, np.uint32), zero, none, none, none, none)


def stream_of(piece: Piece, lengths: U32) -> U32:
    """Return the tokens of a piece in order of row and position: what `invert` was given.

    Raises:
        Corrupt: a position lies outside its row, as only a damaged chunk has.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    row_starts = np.repeat((ends - lengths)[piece.rows], piece.counts)
    row_lengths = np.repeat(lengths[piece.rows], piece.counts)
    require((piece.positions < row_lengths).all(), "a position lies outside its text")
    stream = np.empty(int(ends[-1]) if len(ends) else 0, np.uint32)
    require(len(stream) == len(piece.positions), "its texts have other lengths")
    term_of_posting = np.repeat(piece.terms, np.diff(piece.starts))
    stream[row_starts + piece.positions] = np.repeat(term_of_posting, piece.counts)
    return stream


def tidy(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return the pieces with the last four merged while the first of them is not the largest.

    So each piece is of a larger size than the three after it.
    """
    kept = list(pieces)
    while len(kept) >= _FANOUT:
        first, *later = map(_level, kept[-_FANOUT:])
        if first > max(later):
            break
        kept[-_FANOUT:] = [merge(kept[-_FANOUT:])]
    return tuple(kept)


def _level(piece: Piece) -> int:
    """Return the size class of a piece: 0 below 32 rows, 1 below 128, and so on."""
    return max((piece.end_row - piece.first_row) // _LEVEL_ROWS, 1).bit_length() - 1 >> 1


# --- in a chunk ----------------------------------------------------------------------------------


def encode(piece: Piece) -> dict[str, AnyColumn]:
    """Return the columns of a piece, as `decode` reads them; terms are kept as gaps."""
    return {
        **planes("postings.terms", narrow(np.diff(piece.terms, prepend=np.uint32(0)))),
        **planes("postings.sizes", narrow(np.diff(piece.starts))),
        **planes("postings.rows", piece.rows),
        "postings.counts": piece.counts,
        "postings.positions": piece.positions,
    }


def decode(columns: Columns, fields: FieldLengths, first_row: int, term_count: int) -> Piece:
    """Return the piece in a chunk. Raises `Corrupt` unless it is what `encode` could give.

    ``fields`` are those of the chunk's rows, ``term_count`` how many terms there are with it.
    """
    lengths = fields.total
    gaps, sizes = columns.planes("postings.terms"), columns.planes("postings.sizes")
    rows, counts = columns.planes("postings.rows"), columns.narrow("postings.counts")
    positions = columns.narrow("postings.positions")
    ends = np.cumsum(gaps, dtype=np.int64)
    starts = concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)], np.int64)
    require(len(gaps) == len(sizes), "its terms and their sizes differ")
    require(int(starts[-1]) == len(rows) == len(counts), "its postings differ in length")
    require(int(counts.sum(dtype=np.int64)) == len(positions), "its positions differ in length")
    require(int(lengths.sum(dtype=np.int64)) == len(positions), "its texts have other lengths")
    if len(gaps):
        require(int(sizes.min()) > 0 and int(counts.min()) > 0, "it has an empty posting")
        require((gaps[1:] > 0).all(), "its terms do not ascend")
        require(int(ends[-1]) < term_count, "it names a term that is not there")
        ascends = rows[1:] > rows[:-1]
        ascends[starts[1:-1] - 1] = True
        require(ascends.all(), "the rows of a term do not ascend")
        require(int(rows.max()) < len(lengths), "it names a row that is not there")
    span = first_row, first_row + len(lengths)
    return _piece(span, ends.astype(np.uint32), starts, rows, counts, positions, fields)
