"""The full-text fold: the text, title and tags of frames, and the text of facts, as postings.

Owns births only: the fold never removes a frame, and each query brings the mask of current frames
(`frames.reader`). Leaves out ranking (`bm25`), tokenizing (`analyzer`), and words and their terms
(`vocabulary`). A frame's tokens are those of its ``search_text`` (else its ``text``), then its
title, its tags and its role, in a single row (`fields`). Rows are those of `frames`: every
putFrame has a row, without tokens if erased. Every assertFact has a row, also if it repeats a fact.
A row with the role of a speaker has `marks`, too.
"""

from collections.abc import Sequence
from typing import ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from cerata.engine.errors import Corrupt
from cerata.engine.events import Erased, EventBody, PutFrame

from ..columnar.columns import (
    I32,
    I64,
    U8,
    U32,
    U64,
    AnyColumn,
    AppendOnly,
    Column,
    Columns,
    decode_columns,
    gather_ranges,
    narrow,
    offsets,
    require,
    rows_up_to,
)
from ..columnar.names import check_seqs
from ..core.column_fold import BlockFold
from ..core.event_batch import EventBatch
from ..core.projection import BLOCK_SEQS, FoldedEvent, Parameters, check_head, check_range
from ..core.seal import StateDamaged
from . import postings
from .bm25 import Fulltext
from .english import STEMMER, english
from .fields import BESIDE_PART, PART_COUNT, PROTOCOL_ROLES, WEIGHTS, Field, FieldLengths
from .marks import MARK_MAX, marks_of
from .occurrences import PieceGroup
from .postings import Piece, joined_gaps
from .row_words import folded_rows
from .script_stems import FINGERPRINT
from .unicode_tables import UNICODE_VERSION
from .vocabulary import FIRST_STOP, Vocabulary
from .word_table import Words, cut

_EMPTY: Final = PutFrame()
"""In place of an event that has no text."""

_BATCH_ROWS: Final = 512
"""Rows tokenized at once: enough that numpy pays, few enough that new words soon have ids."""

_PIECE_TOKENS_MIN: Final = 1 << 18
"""Tokens that may wait for a reader before they become a piece; so many still sort in cache."""


class FulltextProjection(BlockFold):
    """Folds putFrame into postings.

    - ``_blocks`` has a piece for each complete block with a frame. Its chunk holds the same piece,
      so neither loading nor saving merges pieces. ``_recent`` has the pieces of later rows, merged
      by `postings.tidy`.
    - ``_stream`` has the tokens from row ``_stream_row`` on, which the next digest needs; the
      tokens of earlier rows of the block are in pieces.
    """

    name: ClassVar[str] = "fulltext"
    version: ClassVar[int] = 7
    row_type: ClassVar[str] = PutFrame.wire_name
    """The type of the events that have a row."""

    def __init__(self) -> None:
        super().__init__(self._effect_columns)
        self._seqs = Column(np.int64)
        # Token counts of a row: of all parts, of the title, the tags, the role, beside words.
        self._lengths = Column(np.uint32)
        self._title_lengths = Column(np.uint32)
        self._tags_lengths = Column(np.uint32)
        self._role_lengths = Column(np.uint32)
        self._beside_lengths = Column(np.uint32)
        # The bits of stop words, half of them each.
        self._stops = (Column(np.uint64), Column(np.uint64))
        self._marks = Column(np.uint8)
        self._token_ends = Column(np.int64)
        self._vocabulary = Vocabulary()
        self._blocks = PieceGroup(())
        self._recent = PieceGroup(())
        self._stream = Column(np.uint32)
        self._stream_row = 0
        self._checked: tuple[int, int, dict[str, AnyColumn]] | None = None
        """The encoded postings of a range of rows, from a check to the chunk of the same events."""
        self._kept_columns = self._growing()

    @property
    def parameters(self) -> Parameters:
        return {
            "fields": " ".join(f"{field.name.lower()}^{WEIGHTS[field]}" for field in Field),
            "stemmer": STEMMER,
            "stemmers": FINGERPRINT,
            "unicode": UNICODE_VERSION,
        }

    @property
    def _pieces(self) -> tuple[Piece, ...]:
        return (*self._blocks.pieces, *self._recent.pieces)

    def snapshot(self) -> Fulltext:
        """Return an immutable reader of the state at ``seq``; any thread may use it.

        Cost: a sort of the tokens folded since the previous snapshot.
        """
        self._settle()
        return Fulltext(
            self._pieces,
            self._vocabulary.view(),
            self._fields(),
            self.seq,
            self._marks.view(),
            (self._blocks, self._recent),
        )

    def _effect_columns(self) -> list[AppendOnly]:
        return self._kept_columns

    def _growing(self) -> list[AppendOnly]:
        return [self._stream, *self._by_row(), *self._vocabulary.effect_columns()]

    def _fields(self) -> FieldLengths:
        low, high = self._stops
        size = self._seqs.size
        return FieldLengths(
            (low.buffer[:size], high.buffer[:size]),
            self._lengths.buffer[:size],
            self._title_lengths.buffer[:size],
            self._tags_lengths.buffer[:size],
            self._role_lengths.buffer[:size],
            self._beside_lengths.buffer[:size],
        )

    # --- folding ---------------------------------------------------------------------------------

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        if events:
            # Raise before any change if the stemmer is missing: no text folds without it.
            english()
        self._checked = None
        super().apply(events)

    def _fold(self, events: EventBatch) -> None:
        rows = events.columns(self.row_type)
        for first in range(0, len(rows.seqs), _BATCH_ROWS):
            part = slice(first, first + _BATCH_ROWS)
            self._fold_rows(rows.seqs[part], rows.bodies[part])
            settled = self._tokens_before(self._settled_row())
            if self._tokens_before(self._seqs.size) - settled >= _PIECE_TOKENS_MIN:
                self._settle()

    def _fold_rows(self, seqs: Sequence[int], bodies: Sequence[EventBody | Erased]) -> None:
        """Append the tokens of rows, a column at a time; about 7 us for 40 words."""
        parts = self._searched(bodies)
        data, sizes = folded_rows(parts)
        words = cut(data)
        part_ends = np.cumsum(np.array(sizes, np.int64) + 1)
        words_before = np.searchsorted(words.starts, part_ends)
        row = self._seqs.size

        def rows_of(places: I64) -> I64:
            return words_before.searchsorted(places, side="right") // PART_COUNT + row

        ids = self._vocabulary.ids(data, words, rows_of)
        _order_beside(ids, words_before)
        is_term = ids >= 0
        lengths = np.diff(offsets(is_term)[words_before], prepend=0).reshape(-1, PART_COUNT)
        totals = lengths.sum(axis=1).astype(np.uint32)
        named = lengths[:, (Field.TITLE, Field.TAGS, Field.ROLE, BESIDE_PART)].astype(np.uint32).T
        self._stream.extend(ids[is_term])
        marks = _marks(parts, data, words, words_before)
        stops = _stops(ids, words_before)
        self._add_rows(seqs, FieldLengths(stops, totals, *named), marks)

    def _add_rows(self, seqs: npt.ArrayLike, lengths: FieldLengths, marks: U8) -> None:
        base = self._tokens_before(self._seqs.size)
        self._token_ends.extend(np.cumsum(lengths.total, dtype=np.int64) + base)
        self._seqs.extend(seqs)
        counts = (lengths.total, lengths.title, lengths.tags, lengths.role, lengths.beside)
        for column, added in zip(self._length_columns(), counts, strict=True):
            column.extend(added)
        for bits, added_bits in zip(self._stops, lengths.stops, strict=True):
            bits.extend(added_bits)
        self._marks.extend(marks)

    def _searched(self, bodies: Sequence[EventBody | Erased]) -> list[str]:
        """Return the searched texts of rows, row by row, each in the order of `Field`."""
        return searchable([body if isinstance(body, PutFrame) else _EMPTY for body in bodies])

    def _settled_row(self) -> int:
        last = self._recent.pieces[-1:] or self._blocks.pieces[-1:]
        return last[0].end_row if last else 0

    def _settle(self) -> None:
        row = self._settled_row()
        end = self._seqs.size
        if row < end:
            piece = postings.invert(self._tokens(row, end), self._fields().part(row, end), row)
            self._recent = PieceGroup(postings.tidy((*self._recent.pieces, piece)))

    def _end_block(self) -> None:
        super()._end_block()
        self._merge_block()

    def _merge_block(self) -> None:
        """Merge the rows of the last block into a single piece, and drop their tokens."""
        self._settle()
        if self._recent.pieces:
            merged = postings.merge(self._recent.pieces)
            self._blocks = PieceGroup((*self._blocks.pieces, merged))
            self._recent = PieceGroup(())
        self._drop_stream()

    def _drop_stream(self) -> None:
        self._stream = Column(np.uint32)
        self._stream_row = self._seqs.size
        self._kept_columns = self._growing()
        self._restart_seal()

    def _tokens_before(self, row: int) -> int:
        return self._token_ends.buffer.item(row - 1) if row else 0

    def _tokens(self, first_row: int, end_row: int) -> U32:
        """Return the tokens of rows, from the stream, or else reconstructed from the pieces."""
        if first_row >= self._stream_row:
            base = self._tokens_before(self._stream_row)
            start = self._tokens_before(first_row)
            end = self._tokens_before(end_row)
            return self._stream.buffer[start - base : end - base]
        middle = min(end_row, self._settled_row())
        piece = postings.gather(self._pieces, first_row, middle)
        tokens = postings.stream_of(piece, self._lengths.view()[first_row:middle])
        return (
            np.concatenate([tokens, self._tokens(middle, end_row)]) if middle < end_row else tokens
        )

    def fork(self, seq: int) -> Self:
        """Return an independent fold at ``seq``, up to this fold's, that shares the state so far.

        Folding either of the two changes nothing in the other.
        """
        check_range(0, seq, self.seq)
        self._settle()
        _, rows = self._rows(0, seq)
        _, block_rows = self._rows(0, seq - seq % BLOCK_SEQS)
        fork = type(self)()
        for column, shared in zip(fork._by_row(), self._by_row(), strict=True):
            column.share(shared, rows)
        fork._vocabulary.share(self._vocabulary, rows)
        fork._blocks = PieceGroup([piece for piece in self._pieces if piece.end_row <= block_rows])
        for piece in self._pieces[len(fork._blocks.pieces) :]:
            if piece.first_row < rows:
                cut_piece = postings.cut(piece, piece.first_row, min(piece.end_row, rows))
                fork._recent = PieceGroup((*fork._recent.pieces, cut_piece))
        fork._stream_row = rows
        fork._digests.share(self._digests, seq)
        fork.seq = seq
        fork._restart_seal()
        return fork

    def check(self) -> None:
        super().check()
        self._settle()
        # A digest covers the stream and a chunk holds the pieces: the two must agree.
        first = self._stream_row
        end = self._settled_row()
        if first < end:
            fields = self._fields().part(first, end)
            inverted = postings.invert(self._tokens(first, end), fields, first)
            expected = postings.encode(inverted, fields)
            try:
                actual = postings.encode(postings.gather(self._pieces, first, end), fields)
            except Corrupt:
                actual = {}
            same = actual.keys() == expected.keys()
            for name in actual if same else ():
                same &= np.array_equal(actual[name], expected[name])
            if not same:
                raise StateDamaged("a posting in memory differs from its tokens")
            self._checked = first, end, actual

    # --- digest and chunks -----------------------------------------------------------------------

    def _effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        first, end = self._rows(after, through)
        return {
            "rows.seq": self._seqs.buffer[first:end],
            **self._lengths_within(first, end),
            "rows.marks": self._marks.buffer[first:end],
            "tokens": self._tokens(first, end),
            **self._vocabulary.effects(first, end),
        }

    def _lengths_within(self, first: int, end: int) -> dict[str, AnyColumn]:
        fields = self._fields().part(first, end)
        return {
            "rows.length": narrow(fields.total),
            "rows.title": narrow(fields.title),
            "rows.tags": narrow(fields.tags),
            "rows.role": narrow(fields.role),
            "rows.beside": narrow(fields.beside),
            # A column of bytes for each eight stop words: most are rare.
            "rows.stops": np.concatenate([_bytes_of(bits) for bits in fields.stops]),
        }

    def _rows(self, after: int, through: int) -> tuple[int, int]:
        seqs = self._seqs.view()
        return rows_up_to(seqs, after), rows_up_to(seqs, through)

    def _stored(self, after: int, through: int) -> dict[str, AnyColumn]:
        self._settle()
        first, end = self._rows(after, through)
        fields = self._fields().part(first, end)
        effects = self._kept_effects(after, through)
        # The check of a plan has encoded the postings of its events, mostly of the same ones.
        checked, self._checked = self._checked, None
        if checked is not None and checked[:2] == (first, end):
            pieces = checked[2]
        else:
            pieces = postings.encode(postings.gather(self._pieces, first, end), fields)
        columns: dict[str, AnyColumn] = {}
        for name, column in effects.items():
            # The postings take the place of the tokens.
            columns.update(pieces if name == "tokens" else {name: column})
        return {**columns, **self._vocabulary.hashes(first, end)}

    def load(self, *chunks: bytes) -> None:
        self._seal.check_counts()
        parts = [decode_columns(chunk) for chunk in chunks]
        rows = sum(len(part.i64("rows.seq")) for part in parts)
        for column in self._by_row():
            column.reserve(rows)
        self._vocabulary.reserve(parts)
        for part in parts:
            self._load(part)

    def _by_row(
        self,
    ) -> tuple[Column[np.int64] | Column[np.uint64] | Column[np.uint32] | Column[np.uint8], ...]:
        lengths = self._length_columns()
        return (self._seqs, self._token_ends, *lengths, *self._stops, self._marks)

    def _length_columns(self) -> tuple[Column[np.uint32], ...]:
        return (
            self._lengths,
            self._title_lengths,
            self._tags_lengths,
            self._role_lengths,
            self._beside_lengths,
        )

    def _load(self, columns: Columns) -> None:
        through = check_head(columns, self._digests.salt, self.seq)
        self._settle()
        blocks = columns.u8("blocks")
        seqs = columns.i64("rows.seq")
        self._digests.check(blocks, self.seq, through)
        check_seqs(seqs, self.seq, through, "rows.seq")
        fields = _read_lengths(columns, len(seqs))
        marks = columns.u8("rows.marks")
        require(len(marks) == len(seqs), "rows.marks differs in count from rows.seq")
        require(not (marks > MARK_MAX).any(), "rows.marks has an unknown mark")
        row = self._seqs.size
        term_count = len(self._vocabulary)
        added = self._vocabulary.check(columns, len(seqs))
        piece = postings.decode(columns, fields, row, term_count + added)
        # Every new term occurs, so the new terms are the last terms of the piece.
        new = np.arange(term_count, term_count + added)
        place = len(piece.terms) - added
        require(place >= 0 and (piece.terms[place:] == new).all(), "a new term has no posting")
        firsts = piece.starts[place:-1]
        first_rows = joined_gaps(piece.gaps.low[firsts], piece.gaps.high[firsts]).astype(np.int64)
        first_rows += row
        require(
            (first_rows[1:] >= first_rows[:-1]).all(),
            "new terms are not in the order of their first rows",
        )
        self._vocabulary.load(columns, row, first_rows)
        self._add_rows(seqs, fields, marks)
        if len(seqs):
            self._recent = PieceGroup((*self._recent.pieces, piece))
        self._digests.load(blocks)
        self.seq = through
        if through % BLOCK_SEQS == 0:
            self._merge_block()
        else:
            self._drop_stream()

    @property
    def size_bytes(self) -> int:
        """Memory of columns, pieces and the vocabulary."""
        size = sum(column.size_bytes for column in (*self._by_row(), self._stream))
        size += sum(piece.size_bytes for piece in self._pieces) + self._blocks.size_bytes
        size += self._recent.size_bytes
        return size + self._vocabulary.size_bytes


def _marks(parts: list[str], data: bytes, words: Words, words_before: I64) -> U8:
    """Return the marks of rows: those of the text of each row with a role, else 0."""
    marks = np.zeros(len(parts) // PART_COUNT, np.uint8)
    rows = [row for row, role in enumerate(parts[Field.ROLE :: PART_COUNT]) if role]
    if rows:
        texts = np.array(rows) * PART_COUNT + Field.TEXT
        starts = np.concatenate([[0], words_before])[texts]
        spans = np.stack([starts, words_before[texts]], axis=1)
        marks[rows] = marks_of(
            [parts[row * PART_COUNT + Field.TEXT] for row in rows], data, words, spans
        )
    return marks


def _order_beside(ids: I32, words_before: I64) -> None:
    """Put the terms beside the words of each row in order."""
    ends = words_before[BESIDE_PART::PART_COUNT]
    starts = words_before[BESIDE_PART - 1 :: PART_COUNT]
    sizes = ends - starts
    if not sizes.any():
        return
    places = gather_ranges(starts, sizes)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    terms = ids[places]
    ids[places] = terms[np.lexsort((terms, rows))]


def _bytes_of(bits: U64) -> U8:
    """Return the bytes of numbers: the lowest of all, then the second of all, and so on."""
    return np.ascontiguousarray(bits, "<u8").view(np.uint8).reshape(-1, 8).T.ravel()


def _bits_of(by_byte: U8) -> U64:
    """Return the numbers of `_bytes_of`."""
    by_number = np.ascontiguousarray(by_byte.reshape(8, -1).T).view("<u8")
    return by_number.ravel().astype(np.uint64, copy=False)


def _stops(ids: I32, words_before: I64) -> tuple[U64, U64]:
    """Return the bits of the stop words in the fields of rows."""
    rows = np.arange(len(words_before) // PART_COUNT)
    places = np.flatnonzero(ids <= FIRST_STOP)
    bits = np.zeros((len(rows), 128), np.bool_)
    ends = words_before[BESIDE_PART::PART_COUNT]
    bits[np.repeat(rows, np.diff(ends, prepend=0))[places], FIRST_STOP - ids[places]] = True
    packed = np.packbits(bits, axis=1, bitorder="little")
    low, high = packed.view("<u8").astype(np.uint64, copy=False).T
    return low, high


def _read_lengths(columns: Columns, count: int) -> FieldLengths:
    names = ("length", "title", "tags", "role", "beside")
    counts = [columns.narrow(f"rows.{name}") for name in names]
    require(
        all(len(column) == count for column in counts),
        "the length columns differ in count from rows.seq",
    )
    total, *named = (column.astype(np.uint32) for column in counts)
    # In 64 bits: the sum of damaged lengths may overflow 32.
    require(
        (np.sum(named, axis=0, dtype=np.int64) <= total).all(),
        "the parts of a row exceed its length",
    )
    stops = columns.u8("rows.stops")
    require(len(stops) == 16 * count, "rows.stops differs in count from rows.seq")
    low, high = map(_bits_of, np.split(stops, 2))
    return FieldLengths((low, high), total, *named)


def _speaker(role: str | None) -> str | None:
    """Return a role that names a speaker; else None."""
    # Only ASCII has one lower case on every machine.
    is_protocol = role is not None and role.isascii() and role.lower() in PROTOCOL_ROLES
    return None if is_protocol else role


def searchable(frames: Sequence[PutFrame]) -> list[str]:
    """Return the searched texts of frames, frame by frame, each in the order of `Field`.

    The last part of each frame is empty: for the words beside those of its fields.
    """
    texts = [frame.text for frame in frames]
    overriding = [frame.search_text for frame in frames]
    if overriding.count(None) < len(frames):
        pairs = zip(texts, overriding, strict=True)
        texts = [text if instead is None else instead for text, instead in pairs]
    tags = [frame.tags for frame in frames]
    parts = [""] * (PART_COUNT * len(frames))
    for field, column in (
        (Field.TEXT, texts),
        (Field.TITLE, [frame.title for frame in frames]),
        (Field.TAGS, [" ".join(names) if names else None for names in tags] if any(tags) else []),
        (Field.ROLE, [_speaker(frame.role) for frame in frames]),
    ):
        if column.count(None) < len(column):
            parts[field::PART_COUNT] = [text or "" for text in column]
    return parts
