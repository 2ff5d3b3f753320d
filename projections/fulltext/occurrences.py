"""Occurrences of terms in the first rows of the log: postings as of a row, from all pieces.

Owns gathering: the slices of a term from all pieces are concatenated once, so `bm25` and
`query_evaluation` see no boundaries of pieces.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, cast

import numpy as np

from cerata.engine.errors import Corrupt

from ..columnar.columns import I64, U8, U32, Unsigned, concatenate, gather_ranges, narrow, offsets
from .fields import WEIGHTS, Field, FieldLengths
from .postings import Piece, joined_gaps, rows_of_runs
from .vocabulary import STOP_TERMS

# --- The postings of many pieces as one array, so that those of a term are one slice --------------
#
# A block has a piece of postings (`postings.Piece`), and a question reads each of its words in each
# piece: of 100,000 turns 25 times a word. They take 5 bytes a posting, so they are made only after
# questions have looked up so many words that joining would have cost less. The pieces of complete
# blocks stay, and so does their array; those of later rows are a group of their own, of each state.


_LOOK_UP_POSTINGS: Final = 300
"""Postings that are joined in the time of a look-up of a word in a piece, about: each takes 20 ns,
and half of the look-ups of a question would have been saved."""

_POSTINGS_MAX: Final = 1 << 24
"""More postings stay apart: joining them takes 500 MB for a moment."""


class JoinedPostings(NamedTuple):
    """The postings of the rows of some pieces, in order of term, then row.

    - The postings of term ``t`` are [starts[t], starts[t + 1]); later terms have none.
    - ``rows`` (p,) are absolute, below ``end_row``.
    - ``fields`` (p,) are occurrences weighted by field.
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


# --- Occurrences of terms in the first rows of the log: postings as of a row, from all pieces -----


class Occurrences:
    """The postings of the first ``rows`` rows, current or not."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        fields: FieldLengths,
        rows: int,
        groups: Sequence[PieceGroup] = (),
    ) -> None:
        """Create the postings of pieces, which ``groups`` has in the same order, and may join."""
        self._pieces = [piece for piece in pieces if piece.first_row < rows]
        self._groups = groups
        self.fields = fields.part(0, rows)
        self.rows = rows

    def gather(self, ids: U32) -> tuple[I64, list[int], Unsigned]:
        """Return the postings of terms, term after term, rows ascending within each term.

        The result: rows (p,); the end of each term in rows; the weight of each posting.

        Args:
            ids: The terms, ascending. Those from `STOP_TERMS` on are stop words.
        """
        first_stop = int(ids.searchsorted(STOP_TERMS))
        if first_stop == len(ids):
            return self._gathered_terms(ids)
        rows, ends, weights = self._gathered_terms(ids[:first_stop])
        of_stops = [self._rows_of_stop(code - STOP_TERMS) for code in ids[first_stop:].tolist()]
        for of_stop in of_stops:
            ends.append((ends[-1] if ends else 0) + len(of_stop))
        ones = np.ones(ends[-1] - len(rows), np.uint8)
        return np.concatenate([rows, *of_stops]), ends, _end_to_end([weights, ones])

    def gather_groups(self, groups: Sequence[U32]) -> tuple[I64, list[int], Unsigned]:
        """Return `gather` of groups of terms, each of which counts as a term.

        Cost: a sort of the rows of each group of several terms.
        """
        ids = np.concatenate([np.empty(0, np.uint32), *groups])
        # No group is empty.
        if len(ids) == len(groups):
            return self.gather(ids)
        row_parts: list[I64] = []
        weight_parts: list[Unsigned] = []
        for group in groups:
            rows, weights = self.of(group)
            row_parts.append(rows)
            weight_parts.append(weights.astype(np.uint32))
        ends = np.cumsum([len(rows) for rows in row_parts]).tolist()
        return np.concatenate(row_parts), ends, _end_to_end(weight_parts)

    def _rows_of_stop(self, number: int) -> I64:
        """Return the rows with a stop word."""
        bits = self.fields.stops[number // 64] >> np.uint64(number % 64)
        return np.flatnonzero(bits & np.uint64(1))

    def _gathered_terms(self, ids: U32) -> tuple[I64, list[int], Unsigned]:
        """Return `gather` of terms that are no stop words."""
        if not self._groups:
            return self._gathered(self._pieces, ids)
        gathered: list[tuple[I64 | U32, Unsigned, list[slice]]] = []
        first = 0
        for group in self._groups:
            pieces = self._pieces[first : first + len(group.pieces)]
            first += len(group.pieces)
            joined = group.postings(len(ids)) if pieces else None
            if joined is not None:
                gathered.append((joined.rows, joined.weights, joined.slices(ids, self.rows)))
            elif pieces:
                apart, ends, weights = self._gathered(pieces, ids)
                if len(pieces) == len(self._pieces):
                    return apart, ends, weights
                gathered.append((apart, weights, [slice(*span) for span in pairwise([0, *ends])]))
        row_parts: list[I64 | U32] = []
        weight_parts: list[Unsigned] = []
        term_ends: list[int] = []
        filled = 0
        for index in range(len(ids)):
            for rows, weights, slices in gathered:
                of_term = slices[index]
                row_parts.append(rows[of_term])
                weight_parts.append(weights[of_term])
                filled += of_term.stop - of_term.start
            term_ends.append(filled)
        all_rows = np.concatenate(row_parts, dtype=np.int64) if filled else np.empty(0, np.int64)
        return all_rows, term_ends, _end_to_end(weight_parts)

    def _gathered(self, pieces: Sequence[Piece], ids: U32) -> tuple[I64, list[int], Unsigned]:
        """Return `gather` of pieces."""
        places: list[tuple[list[int], list[int]]] = []
        for piece in pieces:
            places.append(self._places(piece, ids))
        lows: list[U8] = []
        highs: list[U8] = []
        weights: list[Unsigned] = []
        sizes: list[int] = []
        bases: list[int] = []
        end_rows: list[int] = []
        ends: list[int] = []
        filled = 0
        for index in range(len(ids)):
            for piece, (term_starts, term_ends) in zip(pieces, places, strict=True):
                start = term_starts[index]
                end = term_ends[index]
                if start < end:
                    low, high = piece.gaps
                    lows.append(low[start:end])
                    highs.append(high[start:end])
                    weights.append(piece.weights[start:end])
                    sizes.append(end - start)
                    bases.append(piece.first_row)
                    end_rows.append(piece.end_row)
                    filled += end - start
            ends.append(filled)
        if not filled:
            return np.empty(0, np.int64), ends, np.empty(0, np.uint8)
        gaps = joined_gaps(np.concatenate(lows), np.concatenate(highs))
        rows = rows_of_runs(gaps, np.array(sizes), np.array(bases), np.array(end_rows))
        return rows.astype(np.int64), ends, _end_to_end(weights)

    def of(self, ids: U32, field: Field | None = None) -> tuple[I64, I64]:
        """Return the rows that hold any of the terms, ascending, and the weights of these rows.

        With a field, only its occurrences count. Cost: about 10 ns a posting, 30 ns with a field.
        """
        if len(ids) == 1 and field is None:
            rows, _, counts = self.gather(ids)
            return rows, counts.astype(np.int64)
        parts = [self._of_piece(piece, ids, field) for piece in self._pieces]
        rows = concatenate([rows for rows, _ in parts], np.int64)
        weights = concatenate([weights for _, weights in parts], np.int64)
        if len(ids) > 1:
            totals = np.bincount(rows, weights, self.rows).astype(np.int64)
            rows = np.flatnonzero(totals)
            weights = totals[rows]
        return rows, weights

    def _of_piece(self, piece: Piece, ids: U32, field: Field | None) -> tuple[I64, I64]:
        index = piece.terms.searchsorted(ids)
        index = index[index < piece.terms.searchsorted(ids, side="right")]
        starts = piece.starts[index]
        sizes = piece.starts[index + 1] - starts
        postings = gather_ranges(starts, sizes)
        bases = np.full(len(sizes), piece.first_row)
        gaps = joined_gaps(piece.gaps.low[postings], piece.gaps.high[postings])
        rows = rows_of_runs(gaps, sizes, bases, piece.end_row).astype(np.int64)
        if field is None:
            weights = piece.weights[postings].astype(np.int64)
        else:
            starts = piece.token_starts[index]
            tokens = gather_ranges(starts, piece.token_starts[index + 1] - starts)
            posting = np.repeat(np.arange(len(postings)), piece.counts[postings])
            fields = self.fields_within(rows[posting], piece.positions[tokens].astype(np.int64))
            counts = np.bincount(posting[fields == field], minlength=len(postings))
            weights = counts.astype(np.int64) * WEIGHTS[field]
        inside = (rows < self.rows) & (weights > 0)
        return rows[inside], weights[inside]

    def positions(self, term: int) -> I64:
        """Return the places of a term, ascending: row · 2^32 + position."""
        rows: list[U32] = []
        counts: list[Unsigned] = []
        positions: list[Unsigned] = []
        for piece in self._pieces:
            index = int(piece.terms.searchsorted(np.uint32(term)))
            if index < len(piece.terms) and piece.terms[index] == term:
                start, end = piece.starts[index : index + 2].tolist()
                run = np.array([end - start]), np.array([piece.first_row])
                gaps = joined_gaps(piece.gaps.low[start:end], piece.gaps.high[start:end])
                rows.append(rows_of_runs(gaps, *run, piece.end_row))
                counts.append(piece.counts[start:end])
                start, end = piece.token_starts[index : index + 2].tolist()
                positions.append(piece.positions[start:end])
        joined = np.repeat(concatenate(rows, np.uint32), concatenate(counts, np.uint32)).astype(
            np.int64
        )
        return ((joined << 32) + concatenate(positions, np.uint32))[joined < self.rows]

    def fields_within(self, rows: I64, positions: I64) -> I64:
        """Return the `Field` of positions; a row past the end counts as the last row."""
        return self.fields.fields_of(np.minimum(rows, self.rows - 1), positions)

    def _places(self, piece: Piece, ids: U32) -> tuple[list[int], list[int]]:
        starts: list[int] = piece.starts[piece.terms.searchsorted(ids)].tolist()
        ends: list[int] = piece.starts[piece.terms.searchsorted(ids, side="right")].tolist()
        limit = self.rows - piece.first_row
        if piece.end_row > self.rows:
            low, high = piece.gaps
            ends = [
                start
                + int(np.cumsum(joined_gaps(low[start:end], high[start:end])).searchsorted(limit))
                for start, end in zip(starts, ends, strict=True)
            ]
        return starts, ends


def _end_to_end(parts: Sequence[Unsigned]) -> Unsigned:
    """Return the concatenated parts, as wide as the widest; an empty column without parts."""
    return cast("Unsigned", np.concatenate(parts)) if parts else np.empty(0, np.uint8)
