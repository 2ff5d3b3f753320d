"""The fold that knows words: every frame's text, title and tags as postings.

Owns births only: a frame is never taken out, and who asks brings a mask of what is current
(`frames`). Ranking is `ranking`'s, cutting text is `text`'s. A frame's tokens are those of its
``search_text`` (else its ``text``), then its title, then its tags, in one row; rows are those of
`frames`, so every putFrame has one, an erased one without tokens.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from cerata.engine.events import PutFrame

from . import postings, text
from .columns import (
    U32,
    AnyColumn,
    Column,
    decode_columns,
    encode_columns,
    narrow,
    require,
    rows_up_to,
)
from .lexicon import Lexicon
from .names import check_seqs
from .postings import Piece
from .projection import (
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
from .ranking import K1, B, Fulltext
from .unicode_tables import UNICODE_VERSION

_STEP_EVENTS: Final = BLOCK_SEQS
"""Events folded before their tokens become a piece: about 100,000 tokens, which sort in cache."""

_PIECE_TOKENS_MIN: Final = 1 << 16
"""Tokens that wait for a reader at most, before they become a piece."""

_WORDS_KEPT_MAX: Final = 1 << 18
"""Words whose term is remembered: about 40 MB. Beyond, the memory starts anew."""

_NO_TERM: Final = -1


class FulltextProjection:
    """Folds putFrame into postings."""

    name: ClassVar[str] = "fulltext"
    version: ClassVar[int] = 1

    def __init__(self) -> None:
        self._seq = 0
        self._seqs = Column(np.int64)
        self._lengths = Column(np.uint32)
        self._token_ends = Column(np.int64)
        self._lexicon = Lexicon()
        self._words = _WordIds(self._lexicon)
        self._pieces: tuple[Piece, ...] = ()
        # Tokens from row `_stream_row` on: what is not yet in a piece, and what the next digest
        # needs.
        self._stream = Column(np.uint32)
        self._stream_row = 0
        self._digests = BlockDigests(salt_of(self.name, self.version, self.parameters))

    @property
    def parameters(self) -> Parameters:
        return {
            "k1": str(K1),
            "b": str(B),
            "fields": "text title tags",
            "stemmer": text.STEMMER,
            "unicode": UNICODE_VERSION,
        }

    @property
    def seq(self) -> int:
        return self._seq

    def snapshot(self) -> Fulltext:
        """Return an immutable reader of the state at ``seq``; any thread may use it.

        Cost: a sort of the tokens folded since the last one.
        """
        self._settle()
        return Fulltext(self._pieces, self._lexicon.view(), self._lengths.view(), self._seq)

    # --- folding ---------------------------------------------------------------------------------

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        if not events:
            return
        check_follows(self._seq, events)
        # Before anything changes: without the stemmer no text can be folded.
        text.english()
        for start in range(0, len(events), _STEP_EVENTS):
            step = events[start : start + _STEP_EVENTS]
            self._fold([event for event in step if event.type == PutFrame.wire_name])
            self._seq = step[-1].seq
            if self._unsettled() >= _PIECE_TOKENS_MIN:
                self._settle()
            self._digests.complete(self._seq, self._effects)
            self._forget()

    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        """Append the tokens of frames; about 10 us for 40 words, nearly all of it in `words`."""
        if not events:
            return
        ids, counts = array("i"), array("q")
        words_of = text.words
        self._words.bound()
        id_of = self._words.__getitem__
        for event in events:
            body = event.body
            words = words_of(searchable(body)) if isinstance(body, PutFrame) else []
            counts.append(len(words))
            ids.extend(map(id_of, words))
        row, tokens = len(self._seqs), np.frombuffer(ids, np.int32)
        kept = tokens != _NO_TERM
        kept_before = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum(kept, out=kept_before[1:])
        ends = kept_before[np.cumsum(np.frombuffer(counts, np.int64))]
        stream = tokens[kept].astype(np.uint32)
        self._lexicon.extend(self._words.take_new(), self._first_rows(stream, ends, row))
        base = int(self._token_ends.view()[-1]) if row else 0
        self._stream.extend(stream)
        self._seqs.extend([event.seq for event in events])
        self._lengths.extend(np.diff(ends, prepend=0))
        self._token_ends.extend(ends + base)

    def _first_rows(self, stream: U32, ends: np.typing.NDArray[np.int64], row: int) -> U32:
        """Return the row in which each new term first occurs."""
        known, count = len(self._lexicon), self._words.count
        if known == count:
            return np.empty(0, np.uint32)
        # Ids are given out in order of occurrence: the running maximum steps up at each new one.
        highest = np.maximum.accumulate(stream)
        places = np.searchsorted(highest, np.arange(known, count, dtype=np.uint32))
        return (np.searchsorted(ends, places, side="right") + row).astype(np.uint32)

    def _unsettled(self) -> int:
        """Return how many tokens are in no piece yet."""
        row = self._pieces[-1].end_row if self._pieces else 0
        return self._tokens_before(len(self._seqs)) - self._tokens_before(row)

    def _settle(self) -> None:
        """Turn the rows that are in no piece into one."""
        row, end = self._pieces[-1].end_row if self._pieces else 0, len(self._seqs)
        if row < end:
            piece = postings.invert(self._tokens(row, end), self._lengths.view()[row:], row)
            self._pieces = postings.tidy((*self._pieces, piece))

    def _tokens_before(self, row: int) -> int:
        return int(self._token_ends.view()[row - 1]) if row else 0

    def _tokens(self, first_row: int, end_row: int) -> U32:
        """Return the tokens of rows, from the stream, else turned back from the pieces."""
        if first_row >= self._stream_row:
            base = self._tokens_before(self._stream_row)
            start, end = self._tokens_before(first_row), self._tokens_before(end_row)
            return self._stream.view()[start - base : end - base]
        middle = min(end_row, self._pieces[-1].end_row if self._pieces else 0)
        piece = postings.gather(self._pieces, first_row, middle)
        tokens = postings.stream_of(piece, self._lengths.view()[first_row:middle])
        return (
            np.concatenate([tokens, self._tokens(middle, end_row)]) if middle < end_row else tokens
        )

    def _forget(self) -> None:
        """Drop tokens that are in pieces and in complete blocks, once they are the most."""
        settled = self._pieces[-1].end_row if self._pieces else 0
        hashed = rows_up_to(self._seqs.view(), self._digests.count * BLOCK_SEQS)
        row = max(self._stream_row, min(settled, hashed))
        dropped = self._tokens_before(row) - self._tokens_before(self._stream_row)
        if 2 * dropped > len(self._stream):
            rest = self._stream.view()[dropped:]
            self._stream = Column(np.uint32)
            self._stream.extend(rest)
            self._stream_row = row

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
            "rows.length": self._lengths.view()[first:end],
            "tokens": self._tokens(first, end),
            **self._lexicon.effects(first, end),
        }

    def _rows(self, after: int, through: int) -> tuple[int, int]:
        seqs = self._seqs.view()
        return rows_up_to(seqs, after), rows_up_to(seqs, through)

    def chunk(self, after: int, through: int | None = None) -> bytes:
        last = self._seq if through is None else through
        check_range(after, last, self._seq)
        self._settle()
        first, end = self._rows(after, last)
        return encode_columns(
            {
                **chunk_head(self._digests.salt, after, last),
                "blocks": self._digests.leaves(after, last),
                "rows.seq": self._seqs.view()[first:end],
                "rows.length": narrow(self._lengths.view()[first:end]),
                **postings.encode(postings.gather(self._pieces, first, end)),
                **self._lexicon.effects(first, end),
                "terms.hashes": self._lexicon.hashes(first, end),
            }
        )

    def load(self, chunk: bytes) -> None:
        columns = decode_columns(chunk)
        through = check_head(columns, self._digests.salt, self._seq)
        self._settle()
        blocks, seqs = columns.u8("blocks"), columns.i64("rows.seq")
        lengths = columns.narrow("rows.length")
        self._digests.check(blocks, self._seq, through)
        check_seqs(seqs, self._seq, through, "rows.seq")
        require(len(seqs) == len(lengths), "its rows and their lengths differ")
        row, known, added = len(self._seqs), len(self._lexicon), self._lexicon.check(columns)
        piece = postings.decode(columns, lengths, row, known + added)
        # Every new term occurs, so the last terms of the piece are the new ones.
        new = np.arange(known, known + added)
        place = len(piece.terms) - added
        require(place >= 0 and (piece.terms[place:] == new).all(), "a new term never occurs")
        first_rows = piece.rows[piece.starts[place:-1]].astype(np.uint32) + np.uint32(row)
        require((first_rows[1:] >= first_rows[:-1]).all(), "new terms are out of order")
        self._lexicon.load(columns, first_rows)
        self._words.hide(len(self._lexicon))
        self._token_ends.extend(np.cumsum(lengths, dtype=np.int64) + self._tokens_before(row))
        self._seqs.extend(seqs)
        self._lengths.extend(lengths)
        if len(seqs):
            self._pieces = postings.tidy((*self._pieces, piece))
        self._stream, self._stream_row = Column(np.uint32), len(self._seqs)
        self._digests.load(blocks)
        self._seq = through

    @property
    def size_bytes(self) -> int:
        """Memory held by columns, pieces and the lexicon, remembered words left out."""
        columns = (self._seqs, self._lengths, self._token_ends, self._stream)
        held = sum(column.size_bytes for column in columns) + self._lexicon.size_bytes
        return held + sum(piece.size_bytes for piece in self._pieces)


class _WordIds(dict[bytes, int]):
    """The id of each word's term, or `_NO_TERM` for a stop word; new terms get the next id.

    - ``count`` terms have ids; those below ``_hidden`` may be missing from ``_terms``, and are
      looked up in the lexicon.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self._lexicon = lexicon
        self._terms: dict[bytes, int] = {}
        self._new: list[bytes] = []
        # The terms below `_hidden`, which may be missing from `_terms`.
        self._hidden = 0
        self._earlier = lexicon.view()
        self.count = 0

    def __missing__(self, word: bytes) -> int:
        term = text.english().term(word)
        found = _NO_TERM if term is None else self._id_of(term)
        if len(word) <= text.WORD_SIZE_MAX:
            self[word] = found
        return found

    def _id_of(self, term: bytes) -> int:
        found = self._terms.get(term)
        if found is None and self._hidden:
            found = self._earlier.find(term)
        if found is None:
            found = self.count
            self._new.append(term)
            self.count += 1
        self._terms[term] = found
        return found

    def take_new(self) -> list[bytes]:
        """Return the terms that got an id since the last call, in order."""
        new, self._new = self._new, []
        return new

    def bound(self) -> None:
        """Forget every word once they are too many."""
        if len(self) > _WORDS_KEPT_MAX:
            self.hide(self.count)

    def hide(self, count: int) -> None:
        """Forget every word; the lexicon now has ``count`` terms."""
        self.clear()
        self._terms.clear()
        self._hidden = self.count = count
        self._earlier = self._lexicon.view(count)


def searchable(body: PutFrame) -> str:
    """Return the text of a frame that is searched: content first, so that positions are its own."""
    content = body.search_text if body.search_text is not None else body.text
    if body.title is None and not body.tags:
        return content or ""
    return "\n".join((content or "", body.title or "", *body.tags))
