"""Postings: the rows of each term, with counts and positions, in pieces that cover row ranges.

Owns `Piece` and its operations: invert a stream of tokens, merge, cut by row, reconstruct the
stream. The stream is the canonical form, which digests cover: term ids in order of row and
position. A piece has the same content in order of term, row and position, so each form can be
computed from the other.

Small pieces are merged by the logarithmic method (Bentley and Saxe, 1980), four at a time, so the
number of pieces is O(log rows) for any sequence of puts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import (
    I64,
    U8,
    U32,
    AnyColumn,
    Columns,
    Unsigned,
    ascending_order,
    concatenate,
    damaged,
    gather_ranges,
    narrow,
    offsets,
    planes,
    require,
    run_starts,
)
from .fields import FieldLengths, weigh

_FANOUT: Final = 4
_LEVEL_ROWS: Final = 8
"""Pieces below 8 · 4 rows share a level: the rows of single puts are merged at most a few times."""


class Gaps(NamedTuple):
    """Gaps as the planes of a chunk: the low and the high byte of each, (p,) each.

    A piece has at most 4,096 rows, so two bytes hold a gap.
    """

    low: U8
    high: U8

    @classmethod
    def of(cls, gaps: Unsigned) -> "Gaps":
        """Return the planes of gaps. Cost: nothing, the planes are views."""
        low, *high = planes("gaps", gaps).values()
        assert len(high) < 2
        return cls(low, high[0] if high else _no_bytes(len(gaps)))

    def joined(self) -> U32:
        """Return the gaps, a new array."""
        return joined_gaps(self.low, self.high)


def joined_gaps(low: U8, high: U8) -> U32:
    """Return the gaps with these low and high bytes."""
    gaps: U32 = high.astype(np.uint32)
    gaps <<= np.uint32(8)
    gaps |= low
    return gaps


def _no_bytes(count: int) -> U8:
    """Return zeros that take no memory."""
    return np.broadcast_to(np.zeros(1, np.uint8), count)


@dataclass(frozen=True)
class Piece:
    """Postings of rows [first_row, end_row), in order of term, then row.

    - ``terms``: (m,) ascending; the postings of ``terms[i]`` are [starts[i], starts[i + 1]).
    - ``gaps``: rows relative to ``first_row`` and ascending within a term, as differences; the
      first row of a term as it is. A question sums the gaps of its terms only (`rows_of_runs`).
    - ``counts``: (p,) occurrences in the row, at least 1.
    - ``positions``: (counts.sum(),) ascending within a posting, counted without stop words.
    - ``fields``: (p,) occurrences weighted by field; ``counts`` itself if all are in the text.
      Derived from the other columns, so no chunk stores them.
    """

    first_row: int
    end_row: int
    terms: U32
    starts: I64
    gaps: Gaps
    counts: Unsigned
    positions: Unsigned
    weights: Unsigned

    def rows(self) -> U32:
        """Return the rows of all postings, relative to ``first_row``. Raises `Corrupt`."""
        sizes = np.diff(self.starts)
        return rows_of_runs(
            self.gaps.joined(), sizes, np.zeros_like(sizes), self.end_row - self.first_row
        )

    @cached_property
    def token_starts(self) -> I64:
        """The start of each term's positions, then the end: (m + 1,). Used by phrases."""
        return offsets(self.counts)[self.starts]

    @property
    def size_bytes(self) -> int:
        columns: list[AnyColumn] = [self.terms, self.starts]
        columns += [*self.gaps, self.counts, self.positions]
        size = sum(column.nbytes for column in columns)
        return size if self.weights is self.counts else size + self.weights.nbytes


def invert(stream: U32, fields: FieldLengths, first_row: int) -> Piece:
    """Return the piece of rows whose tokens follow each other in ``stream``.

    ``fields`` has the token count of each row. Cost: a sort, about 10 ns a token.
    """
    size = len(stream)
    lengths = fields.total
    order = ascending_order(stream)
    tokens = stream[order]
    ends = np.cumsum(lengths, dtype=np.int64)
    token_rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[order]
    positions = order - (ends - lengths)[token_rows]
    postings = np.flatnonzero(run_starts(tokens, token_rows))
    terms, starts = _groups(tokens[postings])
    return _piece(
        (first_row, first_row + len(lengths)),
        terms,
        starts,
        _gaps_of(token_rows[postings], starts),
        narrow(np.diff(postings, append=size)),
        narrow(positions),
        fields,
    )


def _piece(
    span: tuple[int, int],
    terms: U32,
    starts: I64,
    gaps: Gaps,
    counts: Unsigned,
    positions: Unsigned,
    fields: FieldLengths,
) -> Piece:
    piece = Piece(*span, terms, starts, gaps, counts, positions, counts)
    if fields.are_plain():
        return piece
    return replace(
        piece, weights=narrow(weigh(piece.rows().astype(np.int64), counts, positions, fields))
    )


def _gaps_of(rows: I64 | U32, starts: I64) -> Gaps:
    """Return the gaps of rows that ascend from the start of each term."""
    gaps = rows.copy()
    gaps[1:] -= rows[:-1]
    firsts = starts[:-1]
    gaps[firsts] = rows[firsts]
    return Gaps.of(narrow(gaps))


def rows_of_runs(gaps: U32, sizes: I64, bases: I64, end_row: int | I64) -> U32:
    """Return the rows of runs of gaps: the sums of the gaps of each run, and its base.

    Cost: 1.3 ns a posting.

    Args:
        gaps: The gaps of all runs, run after run; the rows are written over them.
        sizes: The number of gaps of each run, at least 1, (runs,).
        bases: The row that the rows of each run are relative to, (runs,).
        end_row: The end of the rows of all runs, or of each, relative to no base.

    Raises:
        Corrupt: a row lies past the end; the chunk is damaged.
    """
    # A sum of all runs may pass 2^32, but no row does: the difference is right modulo 2^32.
    rows: U32 = np.cumsum(gaps, dtype=np.uint32, out=gaps)
    if len(rows):
        ends = np.cumsum(sizes)
        before = rows[ends - sizes - 1]
        before[0] = 0
        rows += np.repeat(bases.astype(np.uint32) - before, sizes)
        if not (rows[ends - 1] < end_row).all():
            raise damaged("a row is out of range")
    return rows


def _groups(sorted_terms: U32) -> tuple[U32, I64]:
    """Return the distinct terms of an ascending column; the start of each, then the end."""
    starts = np.flatnonzero(run_starts(sorted_terms))
    return sorted_terms[starts], np.append(starts, len(sorted_terms))


def merge(pieces: Sequence[Piece]) -> Piece:
    """Return a single piece for adjacent pieces, passed in order of rows."""
    if len(pieces) == 1:
        return pieces[0]
    first_row = pieces[0].first_row
    base = 0
    all_sizes: list[I64] = []
    shifted: list[I64] = []
    of_rows: list[U32] = []
    for piece in pieces:
        all_sizes.append(np.diff(piece.starts))
        shifted.append(piece.starts[:-1] + base)
        of_rows.append(piece.rows() + np.uint32(piece.first_row - first_row))
        base += len(piece.counts)
    terms = np.concatenate([*map(attrgetter("terms"), pieces)])
    # A stable sort keeps pieces, and so rows, in order within a term.
    order = np.argsort(terms, kind="stable")
    sizes = np.concatenate(all_sizes)[order]
    starts = np.concatenate(shifted)
    postings = gather_ranges(starts[order], sizes)
    rows = np.concatenate(of_rows)
    counts = np.concatenate([*map(attrgetter("counts"), pieces)], dtype=np.uint32)
    token_ends = offsets(counts)
    token_starts = token_ends[starts[order]]
    token_sizes = token_ends[starts[order] + sizes] - token_starts
    positions = np.concatenate([*map(attrgetter("positions"), pieces)], dtype=np.uint32)
    merged_terms, group_starts = _groups(terms[order])
    merged_starts = offsets(sizes)[group_starts]
    merged_counts = narrow(counts[postings])
    weights = merged_counts
    if any(piece.weights is not piece.counts for piece in pieces):
        weighed = concatenate([piece.weights.astype(np.uint32) for piece in pieces], np.uint32)
        weights = narrow(weighed[postings])
    return Piece(
        first_row=first_row,
        end_row=pieces[-1].end_row,
        terms=merged_terms,
        starts=merged_starts,
        gaps=_gaps_of(rows[postings], merged_starts),
        counts=merged_counts,
        positions=narrow(positions[gather_ranges(token_starts, token_sizes)]),
        weights=weights,
    )


def cut(piece: Piece, first_row: int, end_row: int) -> Piece:
    """Return the part of a piece in rows [first_row, end_row), which must lie within it."""
    if (first_row, end_row) == (piece.first_row, piece.end_row):
        return piece
    rows = piece.rows().astype(np.int64) + piece.first_row
    keep = (rows >= first_row) & (rows < end_row)
    starts = offsets(keep)[piece.starts]
    present = np.diff(starts) > 0
    starts = np.append(starts[:-1][present], starts[-1])
    counts = narrow(piece.counts[keep])
    plain = piece.weights is piece.counts
    return Piece(
        first_row=first_row,
        end_row=end_row,
        terms=piece.terms[present],
        starts=starts,
        gaps=_gaps_of(rows[keep] - first_row, starts),
        counts=counts,
        positions=narrow(piece.positions[np.repeat(keep, piece.counts)]),
        weights=counts if plain else narrow(piece.weights[keep]),
    )


def gather(pieces: Sequence[Piece], first_row: int, end_row: int) -> Piece:
    """Return the postings of rows [first_row, end_row) as a single piece.

    The result does not depend on the boundaries of the pieces; its dtypes follow the contents.
    """
    parts = [
        cut(piece, max(first_row, piece.first_row), min(end_row, piece.end_row))
        for piece in pieces
        if piece.first_row < end_row and first_row < piece.end_row
    ]
    if parts:
        return merge(parts)
    empty = np.empty(0, np.uint8)
    no_gaps = Gaps(empty, empty)
    return Piece(first_row, end_row, np.empty(0, np.uint32), offsets([]), no_gaps, *(empty,) * 3)


def stream_of(piece: Piece, lengths: U32) -> U32:
    """Return the tokens of a piece in order of row and position, the inverse of `invert`.

    Raises:
        Corrupt: a position lies outside its row; the chunk is damaged.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    rows = piece.rows()
    row_starts = np.repeat((ends - lengths)[rows], piece.counts)
    row_lengths = np.repeat(lengths[rows], piece.counts)
    require((piece.positions < row_lengths).all(), "a position lies outside its row")
    stream = np.empty(int(ends[-1]) if len(ends) else 0, np.uint32)
    require(len(stream) == len(piece.positions), "its row lengths do not sum to its positions")
    term_of_posting = np.repeat(piece.terms, np.diff(piece.starts))
    stream[row_starts + piece.positions] = np.repeat(term_of_posting, piece.counts)
    return stream


def tidy(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return the pieces, with the last four merged until the first of these has the largest level.

    So each piece has a higher level than the three after it.
    """
    result = list(pieces)
    while len(result) >= _FANOUT:
        first, *later = map(_level, result[-_FANOUT:])
        if first > max(later):
            break
        result[-_FANOUT:] = [merge(result[-_FANOUT:])]
    return tuple(result)


def _level(piece: Piece) -> int:
    """Return the size class of a piece: 0 below 32 rows, 1 below 128, and so on."""
    return max((piece.end_row - piece.first_row) // _LEVEL_ROWS, 1).bit_length() - 1 >> 1


# --- in a chunk ----------------------------------------------------------------------------------


def encode(piece: Piece, fields: FieldLengths) -> dict[str, AnyColumn]:
    """Return the columns of a piece for `decode`; the terms are stored as gaps, too.

    All gaps are small and positive, so their planes compress to four fifths of those of the rows.
    Positions count from 1. The terms beside words of a row are in order of term, which gives their
    positions: these are stored as 0, which takes no room.
    """
    positions = piece.positions.astype(np.uint32) + np.uint32(1)
    if fields.beside.any():
        rows = np.repeat(piece.rows(), piece.counts)
        positions[positions > (fields.total - fields.beside)[rows]] = 0
    return {
        **planes("postings.terms", narrow(np.diff(piece.terms, prepend=np.uint32(0)))),
        **planes("postings.sizes", narrow(np.diff(piece.starts))),
        **planes("postings.row_gaps", narrow(piece.gaps.joined())),
        "postings.counts": piece.counts,
        "postings.positions": narrow(positions),
    }


def decode(columns: Columns, fields: FieldLengths, first_row: int, term_count: int) -> Piece:
    """Return the piece in a chunk. Raises `Corrupt` if `encode` cannot have returned the columns.

    ``fields``: the lengths of the chunk's rows. ``term_count``: the number of terms, with those of
    the chunk.
    """
    lengths = fields.total
    gaps = columns.planes("postings.terms")
    sizes = columns.planes("postings.sizes")
    row_gaps = _gaps_in(columns)
    counts = columns.narrow("postings.counts")
    stored = columns.narrow("postings.positions")
    terms = np.cumsum(gaps, dtype=np.uint32)
    starts = offsets(sizes)
    require(len(gaps) == len(sizes), "its terms and their sizes differ in count")
    is_even = int(starts[-1]) == len(row_gaps.low) == len(counts)
    require(is_even, "the columns of its postings differ in count")
    require(_sum_of_counts(counts) == len(stored), "its counts do not sum to its positions")
    require(
        int(lengths.sum(dtype=np.int64)) == len(stored),
        "its row lengths do not sum to its positions",
    )
    if len(gaps):
        require(int(sizes.min()) > 0 and int(counts.min()) > 0, "a posting is empty")
        # A sum past 2^32 is below its predecessor.
        require((terms[1:] > terms[:-1]).all(), "its terms do not ascend")
        require(int(terms[-1]) < term_count, "a term id is out of range")
    is_gap = row_gaps.low | row_gaps.high
    firsts = is_gap[starts[:-1]]
    zeros = len(is_gap) - int(np.count_nonzero(is_gap))
    ascends = zeros == len(firsts) - int(np.count_nonzero(firsts))
    require(ascends, "the rows of a term do not ascend")
    span = first_row, first_row + len(lengths)
    # In the dtype of the chunk; those beside words lie beyond it, perhaps.
    positions: Unsigned = stored - stored.dtype.type(1)
    if not fields.beside.any():
        require(bool(stored.all()), "a term beside words is in a row without such terms")
    else:
        piece = Piece(*span, terms, starts, row_gaps, counts, positions, counts)
        positions = _with_beside(positions, stored, np.repeat(piece.rows(), counts), fields)
    return _piece(span, terms, starts, row_gaps, counts, positions, fields)


def _with_beside(
    positions: Unsigned, stored: Unsigned, rows: U32, fields: FieldLengths
) -> Unsigned:
    """Return positions with those of the terms beside words, which a chunk stores as 0."""
    places = np.flatnonzero(stored == 0)
    of_places = rows[places]
    # Stable, so in order of term within each row.
    order = np.argsort(of_places, kind="stable")
    counts = np.bincount(of_places, minlength=len(fields.beside))
    require(bool((counts == fields.beside).all()), "a row differs in its terms beside words")
    firsts = np.repeat((fields.total - fields.beside).astype(np.int64), counts)
    starts = np.repeat(offsets(counts)[:-1], counts)
    wide = positions.astype(np.uint32)
    wide[places[order]] = firsts + np.arange(len(places)) - starts
    return narrow(wide)


def _gaps_in(columns: Columns) -> Gaps:
    """Return the gaps in a chunk, as views of its bytes."""
    low = columns.u8("postings.row_gaps.0")
    if columns.count("postings.row_gaps.1"):
        high = columns.u8("postings.row_gaps.1")
        require(len(low) == len(high), "the planes of its gaps differ in length")
        return Gaps(low, high)
    return Gaps(low, _no_bytes(len(low)))


def _sum_of_counts(counts: Unsigned) -> int:
    """Return the sum of counts, of which most are 1."""
    return len(counts) + int((counts[counts != 1].astype(np.int64) - 1).sum())
