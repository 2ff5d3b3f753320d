"""The full-text fold: the text, title and tags of frames, and the text of facts, as postings.

Owns births only: the fold never removes a frame, and each query brings the mask of current frames
(`frames`). Leaves out ranking (`bm25`), tokenizing (`text`), and words and their terms
(`vocabulary`). A frame's tokens are those of its ``search_text`` (else its ``text``), then its
title, then its tags, in a single row (`fields`). Rows are those of `frames`: every putFrame has a
row, without tokens if erased. Every assertFact has a row, also if it repeats a fact.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Self

import numpy as np

from cerata.engine.events import Erased, EventBody, PutFrame

from ..columnar.append_only import AppendOnly
from ..columnar.columns import (
    I64,
    U32,
    AnyColumn,
    Column,
    Columns,
    concatenate,
    decode_columns,
    encode_columns,
    narrow,
    require,
    rows_up_to,
)
from ..columnar.names import check_seqs
from ..core.projection import (
    BLOCK_SEQS,
    BlockDigests,
    FoldedEvent,
    Parameters,
    check_follows,
    check_head,
    check_range,
    chunk_head,
    salt_of,
)
from ..core.seal import Seal, StateDamaged
from . import analyzer as text
from . import postings
from .bm25 import K1, B, Fulltext
from .english import STEMMER, english
from .fields import FIELD_COUNT, WEIGHTS, Field, FieldLengths
from .postings import Piece
from .unicode_tables import UNICODE_VERSION
from .vocabulary import Vocabulary
from .word_table import cut

_BATCH_ROWS: Final = 512
"""Rows tokenized at once: enough that numpy pays, few enough that new words soon have ids."""

_PIECE_TOKENS_MIN: Final = 1 << 18
"""Tokens that may wait for a reader before they become a piece; so many still sort in cache."""


class FulltextProjection:
    """Folds putFrame into postings.

    - ``_blocks`` has a piece for each complete block with a frame. Its chunk holds the same piece,
      so neither loading nor saving merges pieces. ``_recent`` has the pieces of later rows, merged
      by `postings.tidy`.
    - ``_stream`` has the tokens from row ``_stream_row`` on, which the next digest needs; the
      tokens of earlier rows of the block are in pieces.
    """

    name: ClassVar[str] = "fulltext"
    version: ClassVar[int] = 3
    row_type: ClassVar[str] = PutFrame.wire_name
    """The type of the events that have a row."""

    def __init__(self) -> None:
        self._seq = 0
        self._seqs = Column(np.int64)
        # Token counts of a row: of all fields, of the title, of the tags.
        self._lengths = Column(np.uint32)
        self._title_lengths = Column(np.uint32)
        self._tags_lengths = Column(np.uint32)
        self._token_ends = Column(np.int64)
        self._vocabulary = Vocabulary()
        self._blocks: tuple[Piece, ...] = ()
        self._recent: tuple[Piece, ...] = ()
        self._stream = Column(np.uint32)
        self._stream_row = 0
        self._digests = BlockDigests(salt_of(self.name, self.version, self.parameters))
        self._seal = Seal(self._appended_items)

    @property
    def parameters(self) -> Parameters:
        return {
            "k1": str(K1),
            "b": str(B),
            "fields": " ".join(f"{field.name.lower()}^{WEIGHTS[field]}" for field in Field),
            "stemmer": STEMMER,
            "unicode": UNICODE_VERSION,
        }

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def _pieces(self) -> tuple[Piece, ...]:
        return (*self._blocks, *self._recent)

    def snapshot(self) -> Fulltext:
        """Return an immutable reader of the state at ``seq``; any thread may use it.

        Cost: a sort of the tokens folded since the previous snapshot.
        """
        self._settle()
        return Fulltext(self._pieces, self._vocabulary.view(), self._fields(), self._seq)

    def _appended_items(self) -> list[AppendOnly]:
        return [self._stream, *self._by_row(), *self._vocabulary.effect_columns()]

    def _fields(self) -> FieldLengths:
        columns = self._lengths, self._title_lengths, self._tags_lengths
        return FieldLengths(*(column.view() for column in columns))

    # --- folding ---------------------------------------------------------------------------------

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        if not events:
            return
        check_follows(self._seq, events)
        self._seal.check_counts()
        # Raise before any change if the stemmer is missing: no text can be folded without it.
        english()
        start = 0
        while start < len(events):
            step = events[start : start + BLOCK_SEQS - self._seq % BLOCK_SEQS]
            start += len(step)
            rows = [event for event in step if event.type == self.row_type]
            for first in range(0, len(rows), _BATCH_ROWS):
                self._fold(rows[first : first + _BATCH_ROWS])
                if self._unsettled() >= _PIECE_TOKENS_MIN:
                    self._settle()
            self._seq = step[-1].seq
            self._seal.extend()
            if self._seq % BLOCK_SEQS == 0:
                self._seal.check()
                self._digests.complete(self._seq, self._effects)
            self._complete()

    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        """Append the tokens of rows, a column at a time; about 7 us for 40 words."""
        parts: list[str] = []
        for event in events:
            parts += self._searched(event.body)
        data, sizes = text.folded(parts)
        words = cut(data)
        part_ends = np.cumsum(np.array(sizes, np.int64) + 1)
        words_before = np.searchsorted(words.starts, part_ends)
        row = len(self._seqs)

        def rows_of(places: I64) -> U32:
            parts_before = np.searchsorted(words_before, places, side="right")
            return (parts_before // FIELD_COUNT + row).astype(np.uint32)

        ids = self._vocabulary.ids(data, words, rows_of)
        is_term = ids >= 0
        terms_before = concatenate([np.zeros(1, np.int64), np.cumsum(is_term)], np.int64)
        lengths = np.diff(terms_before[words_before], prepend=0).reshape(-1, FIELD_COUNT)
        total = lengths.sum(axis=1)
        base = int(self._token_ends.view()[-1]) if row else 0
        self._stream.extend(ids[is_term])
        self._seqs.extend([event.seq for event in events])
        self._lengths.extend(total)
        self._title_lengths.extend(lengths[:, Field.TITLE])
        self._tags_lengths.extend(lengths[:, Field.TAGS])
        self._token_ends.extend(np.cumsum(total) + base)

    def _searched(self, body: EventBody | Erased) -> tuple[str, str, str]:
        """Return the searched texts of an event, in the order of `Field`."""
        return searchable(body) if isinstance(body, PutFrame) else ("", "", "")

    def _settled_row(self) -> int:
        """Return the first row that no piece holds yet."""
        last = self._recent[-1:] or self._blocks[-1:]
        return last[0].end_row if last else 0

    def _unsettled(self) -> int:
        """Return the number of tokens that no piece holds yet."""
        return self._tokens_before(len(self._seqs)) - self._tokens_before(self._settled_row())

    def _settle(self) -> None:
        """Turn the rows that no piece holds into a piece."""
        row = self._settled_row()
        end = len(self._seqs)
        if row < end:
            piece = postings.invert(self._tokens(row, end), self._fields().part(row, end), row)
            self._recent = postings.tidy((*self._recent, piece))

    def _complete(self) -> None:
        """At the end of a block, merge its rows into a single piece and drop their tokens."""
        if self._seq % BLOCK_SEQS == 0:
            self._settle()
            if self._recent:
                self._blocks = (*self._blocks, postings.merge(self._recent))
                self._recent = ()
            self._stream = Column(np.uint32)
            self._stream_row = len(self._seqs)
            self._seal.restart()

    def _tokens_before(self, row: int) -> int:
        return int(self._token_ends.view()[row - 1]) if row else 0

    def _tokens(self, first_row: int, end_row: int) -> U32:
        """Return the tokens of rows, from the stream, or else reconstructed from the pieces."""
        if first_row >= self._stream_row:
            base = self._tokens_before(self._stream_row)
            start = self._tokens_before(first_row)
            end = self._tokens_before(end_row)
            return self._stream.view()[start - base : end - base]
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
        check_range(0, seq, self._seq)
        self._settle()
        _, rows = self._rows(0, seq)
        _, block_rows = self._rows(0, seq - seq % BLOCK_SEQS)
        fork = type(self)()
        for column, shared in zip(fork._by_row(), self._by_row(), strict=True):
            column.share(shared, rows)
        fork._vocabulary.share(self._vocabulary, rows)
        for piece in self._pieces:
            if piece.end_row <= block_rows:
                fork._blocks += (piece,)
            elif piece.first_row < rows:
                cut_piece = postings.cut(piece, piece.first_row, min(piece.end_row, rows))
                fork._recent += (cut_piece,)
        fork._stream_row = rows
        fork._digests.share(self._digests, seq)
        fork._seq = seq
        fork._seal.restart()
        return fork

    def check(self) -> None:
        self._seal.check()
        # A digest covers the stream and a chunk holds the pieces: the two must agree.
        first = self._stream_row
        end = self._settled_row()
        if first < end:
            fields = self._fields().part(first, end)
            expected = postings.encode(postings.invert(self._tokens(first, end), fields, first))
            actual = postings.encode(postings.gather(self._pieces, first, end))
            if not all(np.array_equal(actual[name], expected[name]) for name in expected):
                raise StateDamaged("a posting in memory differs from its tokens")

    def check_digest(self, seq: int, digest: bytes) -> None:
        if seq <= self._seq and self.digest_at(seq) != digest:
            raise StateDamaged("the state in memory differs from the last checkpoint")

    # --- digest and chunks -----------------------------------------------------------------------

    def digest(self) -> bytes:
        return self._digests.root(self._seq, self._effects)

    def digest_at(self, seq: int) -> bytes:
        """Return the digest at an earlier seq; about 5 ms per 100,000 frames."""
        check_range(0, seq, self._seq)
        return self._digests.root(seq, self._effects)

    def _effects(self, after: int, through: int) -> Mapping[str, AnyColumn]:
        """Return the canonical columns of a range of events."""
        first, end = self._rows(after, through)
        return {
            "rows.seq": self._seqs.view()[first:end],
            **self._lengths_within(first, end),
            "tokens": self._tokens(first, end),
            **self._vocabulary.effects(first, end),
        }

    def _lengths_within(self, first: int, end: int) -> dict[str, AnyColumn]:
        fields = self._fields().part(first, end)
        return {
            "rows.length": narrow(fields.total),
            "rows.title": narrow(fields.title),
            "rows.tags": narrow(fields.tags),
        }

    def _rows(self, after: int, through: int) -> tuple[int, int]:
        seqs = self._seqs.view()
        return rows_up_to(seqs, after), rows_up_to(seqs, through)

    def chunk(self, after: int, through: int | None = None) -> bytes:
        last = self._seq if through is None else through
        check_range(after, last, self._seq)
        self._settle()
        self._digests.recheck(after, last, self._effects)
        first, end = self._rows(after, last)
        return encode_columns(
            {
                **chunk_head(self._digests.salt, after, last),
                "blocks": self._digests.leaves(after, last),
                "rows.seq": self._seqs.view()[first:end],
                **self._lengths_within(first, end),
                **postings.encode(postings.gather(self._pieces, first, end)),
                **self._vocabulary.encode(first, end),
            }
        )

    def load(self, *chunks: bytes) -> None:
        self._seal.check_counts()
        parts = [decode_columns(chunk) for chunk in chunks]
        rows = sum(len(part.i64("rows.seq")) for part in parts)
        for column in self._by_row():
            column.reserve(rows)
        for part in parts:
            self._load(part)

    def _by_row(self) -> tuple[Column[np.int64] | Column[np.uint32], ...]:
        fields = (self._lengths, self._title_lengths, self._tags_lengths)
        return (self._seqs, self._token_ends, *fields)

    def _load(self, columns: Columns) -> None:
        through = check_head(columns, self._digests.salt, self._seq)
        self._settle()
        blocks = columns.u8("blocks")
        seqs = columns.i64("rows.seq")
        self._digests.check(blocks, self._seq, through)
        check_seqs(seqs, self._seq, through, "rows.seq")
        fields = _read_lengths(columns, len(seqs))
        row = len(self._seqs)
        term_count = len(self._vocabulary)
        added = self._vocabulary.check(columns, len(seqs))
        piece = postings.decode(columns, fields, row, term_count + added)
        # Every new term occurs, so the new terms are the last terms of the piece.
        new = np.arange(term_count, term_count + added)
        place = len(piece.terms) - added
        require(place >= 0 and (piece.terms[place:] == new).all(), "a new term has no posting")
        first_rows = piece.rows[piece.starts[place:-1]].astype(np.uint32) + np.uint32(row)
        require(
            (first_rows[1:] >= first_rows[:-1]).all(),
            "new terms are not in the order of their first rows",
        )
        self._vocabulary.load(columns, row, first_rows)
        self._token_ends.extend(np.cumsum(fields.total, dtype=np.int64) + self._tokens_before(row))
        self._seqs.extend(seqs)
        self._lengths.extend(fields.total)
        self._title_lengths.extend(fields.title)
        self._tags_lengths.extend(fields.tags)
        if len(seqs):
            self._recent = (*self._recent, piece)
        self._stream = Column(np.uint32)
        self._stream_row = len(self._seqs)
        self._digests.load(blocks)
        self._seq = through
        self._complete()
        self._seal.restart()

    @property
    def size_bytes(self) -> int:
        """Memory of columns, pieces and the vocabulary."""
        size = sum(column.size_bytes for column in (*self._by_row(), self._stream))
        size += sum(piece.size_bytes for piece in self._pieces)
        return size + self._vocabulary.size_bytes


def _read_lengths(columns: Columns, count: int) -> FieldLengths:
    """Return the lengths in a chunk of ``count`` rows. Raises `Corrupt`."""
    total, title, tags = (columns.narrow(f"rows.{name}") for name in ("length", "title", "tags"))
    require(
        len(total) == len(title) == len(tags) == count,
        "the length columns differ in count from rows.seq",
    )
    fields = FieldLengths(total.astype(np.uint32), title.astype(np.uint32), tags.astype(np.uint32))
    # In 64 bits: the sum of damaged lengths may overflow 32.
    named = fields.title.astype(np.int64) + fields.tags
    require((named <= fields.total).all(), "the title and tags of a row exceed its length")
    return fields


def searchable(body: PutFrame) -> tuple[str, str, str]:
    """Return the searched texts of a frame, in the order of `Field`."""
    content = body.search_text if body.search_text is not None else body.text
    return content or "", body.title or "", " ".join(body.tags)
