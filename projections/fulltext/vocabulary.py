"""The vocabulary of the log: terms, word forms, and the term of each word.

Owns the ids of terms and forms. A *term* is the unit of search: a word without its ending. A *form*
is a word that differs from its term (``decisions``, with the term ``decis``). Forms are stored so
that a prefix matches words even if the prefix is longer than the term: ``decisio*``. Both are
numbered in order of first occurrence, so the vocabulary at an earlier row is a prefix.

Each distinct word is stemmed once; then a `WordTable` returns the terms of a batch at once.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from ..columnar.columns import (
    I32,
    I64,
    U32,
    AnyColumn,
    AppendOnly,
    Column,
    Columns,
    narrow,
    require,
    run_starts,
)
from ..columnar.string_table import StringRows, StringTable
from .english import STEM_SIZE_MAX, WORD_SIZE_MAX, english
from .term_weights import BESIDE
from .word_starts import START, split
from .word_table import KEY_SIZE, UNKNOWN, Words, WordTable

FIRST_STOP: Final = UNKNOWN - 1
"""The number of the first stop word in place of an id; those of the further ones descend."""

STOP_TERMS: Final = (1 << 32) - 128
"""The id of the first stop word as a term: no column has it, and its rows have a bit
(`fields`)."""

_WORDS_KEPT_MAX: Final = 1 << 18
"""Words whose terms are cached, about 40 MB; a full cache is cleared."""

_TERM_HASH_BITS: Final = 32
_FORM_HASH_BITS: Final = 16
"""Bits of the hash of a word in memory and in a chunk. Forms are looked up when words are new."""

RowsOf = Callable[[I64], I64]
"""Returns the rows of words from their places in a batch."""


class VocabularyView:
    """The vocabulary after a step of the fold; immutable, for any thread."""

    __slots__ = ("_form_rows", "_form_terms", "_forms", "_term_rows", "_terms")

    def __init__(self, terms: StringTable, forms: StringTable, form_terms: U32) -> None:
        self._terms = terms
        self._term_rows = terms.firsts.view()[: len(terms)]
        self._forms = forms
        self._form_terms = form_terms
        self._form_rows = forms.firsts.view()[: len(form_terms)]

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self._term_rows)

    def count_at(self, rows: int) -> int:
        """Return the number of terms in the first ``rows`` rows; they have the first ids."""
        return int(self._term_rows.searchsorted(rows))

    def find(self, term: str, count: int | None = None) -> int | None:
        """Return the id of a term, or None if not among the first ``count`` terms.

        The term of a stop word has an id in each vocabulary.
        """
        if term.startswith(BESIDE):
            number = english().stop_number(term[1:].encode())
            if number is not None:
                return STOP_TERMS + number
        return self._terms.find(term.encode(), len(self) if count is None else count)

    def find_each(self, terms: Iterable[bytes | None], rows: int) -> list[int]:
        """Return the ids of the terms of words that occur in the first ``rows`` rows."""
        count = int(self._term_rows.searchsorted(rows))
        ids: list[int] = []
        for term in terms:
            code = None if term is None else self._terms.find(term, count)
            if code is not None:
                ids.append(code)
        return ids

    def ids(self, terms: Iterable[str], rows: int) -> dict[str, U32]:
        """Return the ids, ascending, of each term of a question in the first ``rows`` rows.

        Those of a start (`word_starts`) are of all words that begin so, those of any other term
        one or none. Cost: that of `find` or `starting_with` for each.
        """
        count = int(self._term_rows.searchsorted(rows))
        ids: dict[str, U32] = {}
        starts: list[str] = []
        for term in terms:
            lead = term[:1]
            if lead == START:
                starts.append(term)
                continue
            if lead == BESIDE:
                code = self.find(term, count)
            else:
                code = self._terms.find(term.encode(), count)
            ids[term] = np.array([] if code is None else [code], np.uint32)
        for term in starts:
            start, known = split(term)
            of_known = ids.get(known)
            is_known = known and (
                self.find(known, count) is not None if of_known is None else len(of_known) > 0
            )
            ids[term] = np.empty(0, np.uint32) if is_known else self.starting_with(start, rows)
        return ids

    def text(self, term: int) -> str:
        """Return the term with an id."""
        if term >= STOP_TERMS:
            return BESIDE + english().stop_words[term - STOP_TERMS].decode()
        return self._terms.utf8(term).decode("utf-8", "replace")

    def starting_with(self, start: str, rows: int) -> U32:
        """Return the ids, ascending, of the terms of words with a prefix, in the first rows.

        A term with the prefix counts, too. Cost: about 0.3 ms per 100,000 words.
        """
        return self._together(*self._starting_with(start.encode()), rows)

    def _starting_with(self, prefix: bytes) -> tuple[I64, I64]:
        """Return the ids of the terms and of the forms with a prefix."""
        return (
            self._terms.starting_with(prefix, len(self._term_rows)),
            self._forms.starting_with(prefix, len(self._form_rows)),
        )

    def matching(self, pattern: str, rows: int) -> U32:
        """Return the ids, ascending, of the terms of words that match, in the first rows.

        ``*`` matches any characters, ``?`` a single character; the rest is letters and digits.
        Cost: that of `starting_with` for the text before the first wildcard, and 1 us for each word
        with that prefix.
        """
        start = re.split(r"[*?]", pattern, maxsplit=1)[0].encode()
        beside = BESIDE.encode()
        # The translation of fnmatch never backtracks over a "*".
        matches = re.compile(fnmatch.translate(pattern)).match

        def matching(words: StringTable, ids: I64) -> I64:
            texts = ((word, words.utf8(word)) for word in ids.tolist())
            passing = (
                word
                for word, utf8 in texts
                if not utf8.startswith(beside) and matches(utf8.decode())
            )
            return np.fromiter(passing, np.int64)

        terms, forms = self._starting_with(start)
        return self._together(matching(self._terms, terms), matching(self._forms, forms), rows)

    def _together(self, terms: I64, forms: I64, rows: int) -> U32:
        # A later term occurs in none of these rows, but would mark words in a highlighted text.
        terms = terms[self._term_rows[terms] < rows]
        forms = forms[self._form_rows[forms] < rows]
        return np.union1d(terms, self._form_terms[forms]).astype(np.uint32)


class Vocabulary:
    """Terms and forms, appended by a single thread.

    - The first ``_hidden_terms`` terms and ``_hidden_forms`` forms may be missing from the
      dictionaries, and are then looked up in the tables of strings.
    """

    def __init__(self) -> None:
        # The first occurrence of a term or form is a row.
        self._terms = StringTable(hash_bits=_TERM_HASH_BITS)
        self._forms = StringTable(hash_bits=_FORM_HASH_BITS)
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
        form_terms = self._form_terms.view()[: len(self._forms)]
        return VocabularyView(self._terms, self._forms, form_terms)

    # --- folding ---------------------------------------------------------------------------------

    def ids(self, data: bytes, words: Words, rows_of: RowsOf) -> I32:
        """Return the term id of each word of a batch; add the new words.

        Stop word k has the number `FIRST_STOP` − k.

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

    def _learn(self, data: bytes, words: Words, unknown: I64, rows_of: RowsOf) -> I32:
        """Return the term ids of words that the table lacks, and cache them."""
        places, repeats = _distinct(data, words, unknown)
        starts = words.starts[places].tolist()
        ends = words.ends[places].tolist()
        texts = [data[start:end] for start, end in zip(starts, ends, strict=True)]
        if self._overflow:
            ids = np.array([self._overflow.get(word, UNKNOWN) for word in texts], np.int32)
            fresh = np.flatnonzero(ids == UNKNOWN)
            texts = [texts[index] for index in fresh.tolist()]
            ids[fresh] = self._number(texts, places[fresh], rows_of)
        else:
            fresh = np.arange(len(texts))
            ids = self._number(texts, places, rows_of)
        self._remember(texts, ids[fresh], words, places[fresh])
        return ids[repeats]

    def _number(self, texts: list[bytes], places: I64, rows_of: RowsOf) -> I32:
        """Return the term ids of distinct words at places of a batch; add new terms and forms."""
        new = _New()
        count = len(self._terms)
        term_ids = self._term_ids
        hidden_terms, hidden_forms = self._hidden_terms, self._hidden_forms
        ids: list[int] = []
        # One loop without calls: a fold of new documents spends most of its time here.
        rules = english()
        for index, (word, term) in enumerate(zip(texts, rules.terms(texts), strict=True)):
            if term is None:
                ids.append(FIRST_STOP - (rules.stop_number(word) or 0))
                continue
            term_id = term_ids.get(term)
            if term_id is None:
                if hidden_terms:
                    term_id = self._terms.find(term, hidden_terms)
                if term_id is None:
                    term_id = count
                    count += 1
                    new.terms.append(term)
                    new.term_indices.append(index)
                term_ids[term] = term_id
            if (
                term != word
                and len(word) <= STEM_SIZE_MAX
                and (not hidden_forms or self._forms.find(word, hidden_forms) is None)
            ):
                new.forms.append(word)
                new.form_indices.append(index)
                new.form_terms.append(term_id)
            ids.append(term_id)
        for table, added, indices in (
            (self._terms, new.terms, new.term_indices),
            (self._forms, new.forms, new.form_indices),
        ):
            if added:
                table.extend(table.rows_of(added, rows_of(places[indices])))
        self._form_terms.extend(new.form_terms)
        return np.array(ids, np.int32)

    def _remember(self, texts: list[bytes], ids: I32, words: Words, places: I64) -> None:
        """Cache the term ids of words."""
        short = words.ends[places] - words.starts[places] <= KEY_SIZE
        added = places[short]
        self._overflow.update(self._table.add(words.low[added], words.high[added], ids[short]))
        for index in np.flatnonzero(~short).tolist():
            if len(texts[index]) <= WORD_SIZE_MAX:
                self._overflow[texts[index]] = int(ids[index])

    def _hide(self) -> None:
        """Clear the dictionaries; later look-ups use the tables of strings."""
        self._table.clear()
        self._overflow.clear()
        self._term_ids.clear()
        self._hidden_terms = len(self._terms)
        self._hidden_forms = len(self._forms)

    # --- in a digest and in a chunk --------------------------------------------------------------

    def effects(self, first_row: int, end_row: int) -> dict[str, AnyColumn]:
        """Return the columns of the words that first occur in a range of rows."""
        start, end = self._forms.within(first_row, end_row)
        terms = self._terms.rows(first_row, end_row)
        forms = self._forms.rows(first_row, end_row)
        return {
            "terms.sizes": terms.sizes,
            "terms.utf8": terms.utf8,
            "forms.sizes": forms.sizes,
            "forms.utf8": forms.utf8,
            "forms.terms": self._form_terms.view()[start:end],
            "forms.rows": narrow(forms.firsts - first_row),
        }

    def hashes(self, first_row: int, end_row: int) -> dict[str, AnyColumn]:
        """Return the hashes of these words; a chunk has them so that `load` computes none."""
        return {
            "terms.hashes": self._terms.rows(first_row, end_row).hashes,
            "forms.hashes": self._forms.rows(first_row, end_row).hashes,
        }

    def check(self, columns: Columns, row_count: int) -> int:
        """Return the number of terms in a chunk of ``row_count`` rows. Raises `Corrupt`."""
        counts: list[int] = []
        for name, table in (("terms", self._terms), ("forms", self._forms)):
            words = _rows(columns, name, np.empty(0, np.int64))
            table.check(words, name)
            require(bool(words.sizes.all()), f"one of its {name} is empty")
            counts.append(len(words.sizes))
        added, forms = counts
        terms = columns.u32("forms.terms")
        rows = columns.narrow("forms.rows")
        same = len(terms) == forms == len(rows)
        require(same, "the columns of its forms differ in count")
        if len(terms):
            require(int(terms.max()) < len(self) + added, "the term of a form is out of range")
            require((rows[1:] >= rows[:-1]).all(), "new forms are not in the order of their rows")
            require(int(rows[-1]) < row_count, "the row of a form is out of range")
        return added

    def reserve(self, chunks: Sequence[Columns]) -> None:
        """Make room for the words of chunks, so that loading each copies no old words."""
        for name, table in (("terms", self._terms), ("forms", self._forms)):
            sizes = [
                (chunk.count(f"{name}.sizes"), chunk.count(f"{name}.utf8")) for chunk in chunks
            ]
            table.reserve(*map(sum, zip(*sizes, strict=True)))
        self._form_terms.reserve(sum(chunk.count("forms.terms") for chunk in chunks))

    def load(self, columns: Columns, first_row: int, term_rows: I64) -> None:
        """Append the words of a chunk that `check` accepted; ``term_rows``: first rows of terms."""
        rows = columns.narrow("forms.rows").astype(np.int64) + first_row
        self._terms.extend(_rows(columns, "terms", term_rows))
        self._forms.extend(_rows(columns, "forms", rows))
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
        """Memory of words and table, without cached terms."""
        size = self._terms.size_bytes + self._forms.size_bytes
        return size + self._form_terms.size_bytes + self._table.size_bytes


def _distinct(data: bytes, words: Words, places: I64) -> tuple[I64, I64]:
    """Return the first place of each distinct word, ascending, and for each place its index there.

    Cost: sorts of numbers for words of up to 16 bytes, whose keys are exact; a look-up in a
    dictionary for each longer word.
    """
    firsts = places.copy()
    is_short = words.ends[places] - words.starts[places] <= KEY_SIZE
    short = np.flatnonzero(is_short)
    low = words.low[places[short]]
    high = words.high[places[short]]
    order = np.lexsort((high, low))
    is_first = run_starts(low[order], high[order])
    # The sort is stable, so the first of equal words is the first in the text.
    runs = np.flatnonzero(is_first)
    sizes = np.diff(np.append(runs, len(order)))
    firsts[short[order]] = np.repeat(places[short[order[runs]]], sizes)
    met: dict[bytes, int] = {}
    for index in np.flatnonzero(~is_short).tolist():
        place = int(places[index])
        firsts[index] = met.setdefault(data[words.starts[place] : words.ends[place]], place)
    distinct, repeats = np.unique(firsts, return_inverse=True)
    return distinct, repeats


def _rows(columns: Columns, name: str, firsts: I64) -> StringRows:
    return StringRows(
        firsts,
        columns.u32(f"{name}.sizes"),
        columns.u8(f"{name}.utf8"),
        columns.narrow(f"{name}.hashes"),
    )


class _New:
    """The new words of a batch, their indices among the distinct words, and the terms of forms."""

    __slots__ = ("form_indices", "form_terms", "forms", "term_indices", "terms")

    def __init__(self) -> None:
        self.terms: list[bytes] = []
        self.term_indices: list[int] = []
        self.forms: list[bytes] = []
        self.form_indices: list[int] = []
        self.form_terms: list[int] = []
