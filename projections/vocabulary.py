"""The words of the log: terms, the forms they were written in, and the term of each word.

A *term* is what is searched: a word without its ending. A *form* is a word that is not its own
term (``decisions``, whose term is ``decis``). Forms are kept so that the start of a word finds it,
also where the start is longer than the term: ``decisio*``. Both are numbered in order of first
occurrence, so those at an earlier row are a prefix.

Each distinct word is stemmed once: then a `WordTable` gives the terms of a whole batch at once.
"""

import fnmatch
import re
from collections.abc import Callable
from typing import Final

import numpy as np

from .columns import I32, I64, U32, AnyColumn, Column, Columns, narrow, require
from .english import STEM_SIZE_MAX, WORD_SIZE_MAX, english
from .lexicon import Lexicon, LexiconView
from .seal import Kept
from .word_table import KEY_SIZE, UNKNOWN, Words, WordTable

NO_TERM: Final = -1
"""In place of a term's id: the word is a stop word."""

_WORDS_KEPT_MAX: Final = 1 << 18
"""Words whose term is remembered: about 40 MB. Beyond, the memory starts anew."""

RowsOf = Callable[[I64], U32]
"""From places of words in a batch to their rows."""


class VocabularyView:
    """The vocabulary at some moment; immutable, for any thread."""

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
        """Return how many terms there are."""
        return self._terms.count

    def count_at(self, rows: int) -> int:
        """Return how many terms occur in the first ``rows`` rows: those with the first ids."""
        return int(np.searchsorted(self._term_rows, np.uint32(rows)))

    def find(self, term: str, count: int | None = None) -> int | None:
        """Return the id of a term among the first ``count``, by default all, or None."""
        return self._terms.find(term.encode(), count)

    def text(self, term: int) -> str:
        """Return the term with an id."""
        return self._terms.text(term)

    def starting_with(self, start: str, rows: int) -> U32:
        """Return the ids, ascending, of the terms of words that start so, in the first ``rows``.

        Also those of terms that start so themselves. Cost: about 0.3 ms per 100,000 words.
        """
        prefix = start.encode()
        return self._together(
            self._terms.starting_with(prefix), self._forms.starting_with(prefix), rows
        )

    def matching(self, pattern: str, rows: int) -> U32:
        """Return the ids, ascending, of the terms of words that match, in the first ``rows``.

        ``*`` stands for any characters, ``?`` for one; the rest is letters and digits. Cost: that
        of the start before the first of them, and 1 us for each word that has it.
        """
        start = re.split(r"[*?]", pattern, maxsplit=1)[0].encode()
        # Its translation never goes back over a "*", however many there are.
        matches = re.compile(fnmatch.translate(pattern)).match

        def kept(words: LexiconView) -> I64:
            found = words.starting_with(start).tolist()
            return np.array([one for one in found if matches(words.text(one))], np.int64)

        return self._together(kept(self._terms), kept(self._forms), rows)

    def _together(self, terms: I64, forms: I64, rows: int) -> U32:
        # A term of later matches no row before, but it would mark a text that was not searched.
        terms = terms[self._term_rows[terms] < rows]
        forms = forms[self._form_rows[forms] < rows]
        return np.union1d(terms, self._form_terms[forms]).astype(np.uint32)


class Vocabulary:
    """Terms and forms, appended by one thread.

    - Words below ``_hidden_terms`` and ``_hidden_forms`` may be missing from the dictionaries, and
      are looked up in the lexicons.
    """

    def __init__(self) -> None:
        self._terms = Lexicon("terms")
        self._forms = Lexicon("forms")
        self._form_terms = Column(np.uint32)
        self._table = WordTable()
        # What the table cannot hold, and terms by their bytes.
        self._others: dict[bytes, int] = {}
        self._term_ids: dict[bytes, int] = {}
        self._hide()

    def __len__(self) -> int:
        """Return how many terms there are."""
        return len(self._terms)

    def view(self) -> VocabularyView:
        """Return a reader of what there is; any thread may use it."""
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
        """Return the term's id of each word of a batch, or `NO_TERM`; new words are entered.

        Cost: 25 ns a word, and 7 us for each new one.
        """
        if len(self._table) + len(self._others) > _WORDS_KEPT_MAX:
            self._hide()
        found = self._table.find(words.low, words.high)
        found[words.ends - words.starts > KEY_SIZE] = UNKNOWN
        unknown = np.flatnonzero(found == UNKNOWN)
        if len(unknown):
            found[unknown] = self._learn(data, words, unknown, rows_of)
        return found

    def _learn(self, data: bytes, words: Words, unknown: I64, rows_of: RowsOf) -> list[int]:
        """Return the ids of words that the table does not have, and enter those it can hold."""
        met: dict[bytes, int] = {}
        first: list[int] = []
        new = _New()
        result: list[int] = []
        starts, ends = words.starts[unknown].tolist(), words.ends[unknown].tolist()
        for place, start, end in zip(unknown.tolist(), starts, ends, strict=True):
            word = data[start:end]
            found = met.get(word)
            if found is None:
                found = self._others.get(word)
                if found is None:
                    found = self._id_of(word, place, new)
                    first.append(place)
                    met[word] = found
            result.append(found)
        self._terms.extend(new.terms, rows_of(np.array(new.term_places, np.int64)))
        self._forms.extend(new.forms, rows_of(np.array(new.form_places, np.int64)))
        self._form_terms.extend(new.form_terms)
        self._remember(met, words, np.array(first, np.int64))
        return result

    def _id_of(self, word: bytes, place: int, new: "_New") -> int:
        term = english().term(word)
        if term is None:
            return NO_TERM
        found = self._term_ids.get(term)
        if found is None and self._hidden_terms.count:
            found = self._hidden_terms.find(term)
        if found is None:
            found = len(self._terms) + len(new.terms)
            new.terms.append(term)
            new.term_places.append(place)
        self._term_ids[term] = found
        if (
            term != word
            and len(word) <= STEM_SIZE_MAX
            and (not self._hidden_forms.count or self._hidden_forms.find(word) is None)
        ):
            new.forms.append(word)
            new.form_places.append(place)
            new.form_terms.append(found)
        return found

    def _remember(self, met: dict[bytes, int], words: Words, places: I64) -> None:
        ids = np.array(list(met.values()), np.int32)
        short = words.ends[places] - words.starts[places] <= KEY_SIZE
        held = places[short]
        self._others.update(self._table.add(words.low[held], words.high[held], ids[short]))
        if not short.all():
            self._others.update(
                (word, found)
                for (word, found), is_short in zip(met.items(), short.tolist(), strict=True)
                if not is_short and len(word) <= WORD_SIZE_MAX
            )

    def _hide(self) -> None:
        """Forget every word; from now on the lexicons are asked."""
        self._table.clear()
        self._others.clear()
        self._term_ids.clear()
        self._hidden_terms, self._hidden_forms = self._terms.view(), self._forms.view()

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
        """Return the columns of a chunk: effects, and hashes so that loading computes none."""
        return {
            **self.effects(first_row, end_row),
            **self._terms.hashes(first_row, end_row),
            **self._forms.hashes(first_row, end_row),
        }

    def check(self, columns: Columns, row_count: int) -> int:
        """Return how many terms a chunk of so many rows brings. Raises `Corrupt`."""
        added, forms = self._terms.check(columns), self._forms.check(columns)
        terms, rows = columns.u32("forms.terms"), columns.narrow("forms.rows")
        require(len(terms) == forms == len(rows), "its forms differ in length")
        if forms:
            require(int(terms.max()) < len(self) + added, "a form has a term that is not there")
            require((rows[1:] >= rows[:-1]).all(), "new forms are out of order")
            require(int(rows[-1]) < row_count, "a form is in a row that is not there")
        return added

    def load(self, columns: Columns, first_row: int, term_rows: U32) -> None:
        """Append the words of a chunk that `check` accepted; ``term_rows`` are the terms' first."""
        rows = columns.narrow("forms.rows").astype(np.uint32) + np.uint32(first_row)
        self._terms.load(columns, term_rows)
        self._forms.load(columns, rows)
        self._form_terms.extend(columns.u32("forms.terms"))
        self._hide()

    def kept(self) -> list[Kept]:
        """Return the things that the fold appends to, but no dictionaries."""
        return [*self._terms.kept(), *self._forms.kept(), self._form_terms]

    @property
    def size_bytes(self) -> int:
        """Memory held by lexicons and table; remembered terms left out."""
        held = self._terms.size_bytes + self._forms.size_bytes
        return held + self._form_terms.size_bytes + self._table.size_bytes


class _New:
    """What a batch brings: words, the place where each first occurs, and the terms of forms."""

    __slots__ = ("form_places", "form_terms", "forms", "term_places", "terms")

    def __init__(self) -> None:
        self.terms: list[bytes] = []
        self.term_places: list[int] = []
        self.forms: list[bytes] = []
        self.form_places: list[int] = []
        self.form_terms: list[int] = []
