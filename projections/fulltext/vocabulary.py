"""The vocabulary of the log: terms, word forms, and the term of each word.

Owns the ids of terms and forms. A *term* is the unit of search: a word without its ending. A *form*
is a word that differs from its term (``decisions``, with the term ``decis``). Forms are stored so
that a prefix matches words even if the prefix is longer than the term: ``decisio*``. Both are
numbered in order of first occurrence, so the vocabulary at an earlier row is a prefix.

Each distinct word is stemmed once; then a `WordTable` returns the terms of a batch at once.
"""

import fnmatch
import re
from collections.abc import Callable
from typing import Final

import numpy as np

from ..columnar.append_only import AppendOnly
from ..columnar.columns import I32, I64, U32, AnyColumn, Column, Columns, narrow, require
from .english import STEM_SIZE_MAX, WORD_SIZE_MAX, english
from .lexicon import Lexicon, LexiconView
from .word_table import KEY_SIZE, UNKNOWN, Words, WordTable

NO_TERM: Final = -1
"""The id of a stop word, which has no term."""

_WORDS_KEPT_MAX: Final = 1 << 18
"""Words whose terms are cached, about 40 MB; a full cache is cleared."""

RowsOf = Callable[[I64], U32]
"""Returns the rows of words from their places in a batch."""


class VocabularyView:
    """The vocabulary after a step of the fold; immutable, for any thread."""

    __slots__ = ("_form_rows", "_form_terms", "_forms", "_term_rows", "_terms")

    def __init__(
        self,
        terms: LexiconView,
        term_rows: U32,
        forms: LexiconView,
        form_terms: U32,
        form_rows: U32,
    ) -> None:
        self._terms = terms
        self._term_rows = term_rows
        self._forms = forms
        self._form_terms = form_terms
        self._form_rows = form_rows

    def __len__(self) -> int:
        """Return the number of terms."""
        return self._terms.count

    def count_at(self, rows: int) -> int:
        """Return the number of terms in the first ``rows`` rows; they have the first ids."""
        return int(np.searchsorted(self._term_rows, np.uint32(rows)))

    def find(self, term: str, count: int | None = None) -> int | None:
        """Return the id of a term, or None if not among the first ``count`` terms."""
        return self._terms.find(term.encode(), count)

    def text(self, term: int) -> str:
        """Return the term with an id."""
        return self._terms.text(term)

    def starting_with(self, start: str, rows: int) -> U32:
        """Return the ids, ascending, of the terms of words with a prefix, in the first rows.

        A term with the prefix counts, too. Cost: about 0.3 ms per 100,000 words.
        """
        prefix = start.encode()
        return self._together(
            self._terms.starting_with(prefix), self._forms.starting_with(prefix), rows
        )

    def matching(self, pattern: str, rows: int) -> U32:
        """Return the ids, ascending, of the terms of words that match, in the first rows.

        ``*`` matches any characters, ``?`` a single character; the rest is letters and digits.
        Cost: that of `starting_with` for the text before the first wildcard, and 1 us for each word
        with that prefix.
        """
        start = re.split(r"[*?]", pattern, maxsplit=1)[0].encode()
        # The translation of fnmatch never backtracks over a "*".
        matches = re.compile(fnmatch.translate(pattern)).match

        def matching(words: LexiconView) -> I64:
            ids = words.starting_with(start).tolist()
            return np.array([word for word in ids if matches(words.text(word))], np.int64)

        return self._together(matching(self._terms), matching(self._forms), rows)

    def _together(self, terms: I64, forms: I64, rows: int) -> U32:
        # A later term occurs in none of these rows, but would mark words in a highlighted text.
        terms = terms[self._term_rows[terms] < rows]
        forms = forms[self._form_rows[forms] < rows]
        return np.union1d(terms, self._form_terms[forms]).astype(np.uint32)


class Vocabulary:
    """Terms and forms, appended by a single thread.

    - The words of ``_hidden_terms`` and ``_hidden_forms`` may be missing from the dictionaries, and
      are then looked up in these lexicons.
    """

    def __init__(self) -> None:
        self._terms = Lexicon("terms")
        self._forms = Lexicon("forms")
        self._form_terms = Column(np.uint32)
        self._table = WordTable()
        # The words that the table cannot hold, and terms by their bytes.
        self._overflow: dict[bytes, int] = {}
        self._term_ids: dict[bytes, int] = {}
        self._hide()

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self._terms)

    def view(self) -> VocabularyView:
        """Return a reader of the current state; any thread may use it."""
        forms = len(self._forms)
        return VocabularyView(
            self._terms.view(),
            self._terms.first_row(),
            self._forms.view(),
            self._form_terms.view()[:forms],
            self._forms.first_row(),
        )

    # --- folding ---------------------------------------------------------------------------------

    def ids(self, data: bytes, words: Words, rows_of: RowsOf) -> I32:
        """Return the term id of each word of a batch, or `NO_TERM`; add the new words.

        Cost: 25 ns a word, and 7 us for each new word.
        """
        if len(self._table) + len(self._overflow) > _WORDS_KEPT_MAX:
            self._hide()
        ids = self._table.find(words.low, words.high)
        ids[words.ends - words.starts > KEY_SIZE] = UNKNOWN
        unknown = np.flatnonzero(ids == UNKNOWN)
        if len(unknown):
            ids[unknown] = self._learn(data, words, unknown, rows_of)
        return ids

    def _learn(self, data: bytes, words: Words, unknown: I64, rows_of: RowsOf) -> list[int]:
        """Return the term ids of words that the table lacks, and cache them."""
        met: dict[bytes, int] = {}
        first: list[int] = []
        new = _New()
        result: list[int] = []
        starts = words.starts[unknown].tolist()
        ends = words.ends[unknown].tolist()
        for place, start, end in zip(unknown.tolist(), starts, ends, strict=True):
            word = data[start:end]
            term_id = met.get(word)
            if term_id is None:
                term_id = self._overflow.get(word)
                if term_id is None:
                    term_id = self._id_of(word, place, new)
                    first.append(place)
                    met[word] = term_id
            result.append(term_id)
        self._terms.extend(new.terms, rows_of(np.array(new.term_places, np.int64)))
        self._forms.extend(new.forms, rows_of(np.array(new.form_places, np.int64)))
        self._form_terms.extend(new.form_terms)
        self._remember(met, words, np.array(first, np.int64))
        return result

    def _id_of(self, word: bytes, place: int, new: "_New") -> int:
        term = english().term(word)
        if term is None:
            return NO_TERM
        term_id = self._term_ids.get(term)
        if term_id is None and self._hidden_terms.count:
            term_id = self._hidden_terms.find(term)
        if term_id is None:
            term_id = len(self._terms) + len(new.terms)
            new.terms.append(term)
            new.term_places.append(place)
        self._term_ids[term] = term_id
        if (
            term != word
            and len(word) <= STEM_SIZE_MAX
            and (not self._hidden_forms.count or self._hidden_forms.find(word) is None)
        ):
            new.forms.append(word)
            new.form_places.append(place)
            new.form_terms.append(term_id)
        return term_id

    def _remember(self, met: dict[bytes, int], words: Words, places: I64) -> None:
        ids = np.array(list(met.values()), np.int32)
        short = words.ends[places] - words.starts[places] <= KEY_SIZE
        added = places[short]
        self._overflow.update(self._table.add(words.low[added], words.high[added], ids[short]))
        if not short.all():
            self._overflow.update(
                (word, term_id)
                for (word, term_id), is_short in zip(met.items(), short.tolist(), strict=True)
                if not is_short and len(word) <= WORD_SIZE_MAX
            )

    def _hide(self) -> None:
        """Clear the dictionaries; later look-ups use the lexicons."""
        self._table.clear()
        self._overflow.clear()
        self._term_ids.clear()
        self._hidden_terms = self._terms.view()
        self._hidden_forms = self._forms.view()

    # --- in a digest and in a chunk --------------------------------------------------------------

    def effects(self, first_row: int, end_row: int) -> dict[str, AnyColumn]:
        """Return the columns of the words that first occur in a range of rows."""
        start, end = self._forms.ids_within(first_row, end_row)
        rows = self._forms.first_row()[start:end]
        return {
            **self._terms.effects(first_row, end_row),
            **self._forms.effects(first_row, end_row),
            "forms.terms": self._form_terms.view()[start:end],
            "forms.rows": narrow(rows - np.uint32(first_row)),
        }

    def encode(self, first_row: int, end_row: int) -> dict[str, AnyColumn]:
        """Return the columns of a chunk: effects, and hashes so that `load` computes none."""
        return {
            **self.effects(first_row, end_row),
            **self._terms.hashes(first_row, end_row),
            **self._forms.hashes(first_row, end_row),
        }

    def check(self, columns: Columns, row_count: int) -> int:
        """Return the number of terms in a chunk of ``row_count`` rows. Raises `Corrupt`."""
        added = self._terms.check(columns)
        forms = self._forms.check(columns)
        terms = columns.u32("forms.terms")
        rows = columns.narrow("forms.rows")
        require(len(terms) == forms == len(rows), "the columns of its forms differ in count")
        if forms:
            require(int(terms.max()) < len(self) + added, "the term of a form is out of range")
            require((rows[1:] >= rows[:-1]).all(), "new forms are not in the order of their rows")
            require(int(rows[-1]) < row_count, "the row of a form is out of range")
        return added

    def load(self, columns: Columns, first_row: int, term_rows: U32) -> None:
        """Append the words of a chunk that `check` accepted; ``term_rows``: first rows of terms."""
        rows = columns.narrow("forms.rows").astype(np.uint32) + np.uint32(first_row)
        self._terms.load(columns, term_rows)
        self._forms.load(columns, rows)
        self._form_terms.extend(columns.u32("forms.terms"))
        self._hide()

    def share(self, vocabulary: "Vocabulary", rows: int) -> None:
        """Become the words of another vocabulary that occur in its first ``rows`` rows."""
        self._terms.share(vocabulary._terms, rows)
        self._forms.share(vocabulary._forms, rows)
        self._form_terms.share(vocabulary._form_terms, len(self._forms))
        self._hide()

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to, without dictionaries."""
        return [*self._terms.effect_columns(), *self._forms.effect_columns(), self._form_terms]

    @property
    def size_bytes(self) -> int:
        """Memory of lexicons and table, without cached terms."""
        size = self._terms.size_bytes + self._forms.size_bytes
        return size + self._form_terms.size_bytes + self._table.size_bytes


class _New:
    """The new words of a batch, their first places, and the terms of forms."""

    __slots__ = ("form_places", "form_terms", "forms", "term_places", "terms")

    def __init__(self) -> None:
        self.terms: list[bytes] = []
        self.term_places: list[int] = []
        self.forms: list[bytes] = []
        self.form_places: list[int] = []
        self.form_terms: list[int] = []
