"""BM25 over postings, as of any event.

    view = projection.snapshot().view(frames.alive(n))     # the frames current at n
    view.search("which index", k=10, among=mask)           # plain language
    view.search(tree, filters=lambda where: frames.mask(where, n))      # a tree (`query`)
    view.highlights(text, query)                           # the matches in a frame's text

Owns the scores and their order (Robertson and Zaragoza, *The Probabilistic Relevance Framework*,
2009, section 3; idf as in Lucene, never negative):

    idf(t)    = float32(log(1 + (N − df + 0.5) / (df + 0.5)))
    score(d)  = Σ_t idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length(d) / average length))

Occurrences and lengths are weighted by field (`fields`), and those of a turn include shares of its
neighbours (`context_kernel`); df and N never do. All words that match a pattern are a
single t; a t with a field counts in that field alone. N, df and the average length count the
current frames with tokens. Sums are in order of term id, in float64, and rounded to 9 decimals;
ties are in order of frame. So a view at n ranks exactly like a store that stopped at n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cerata.engine.late import late
from cerata.engine.plain_value import PlainValue

from ..columnar.columns import F64, I64, U8, U32, Mask
from ..columnar.turn_order import NO_ROW, TurnOrder
from . import analyzer as text
from .fields import Field, FieldLengths
from .joined_postings import PieceGroup
from .occurrences import Occurrences
from .postings import Piece
from .query import AnyWord, Query, plain
from .query_evaluation import Filters, Group, Matching
from .vocabulary import VocabularyView

if TYPE_CHECKING:
    from . import context_kernel, turn_lengths, turn_ranking
    from . import highlights as highlighting
    from .highlights import Highlight
    from .turn_lengths import LastLengths, TurnLengths
    from .turn_ranking import TurnNorms
else:
    context_kernel = late("cerata.projections.fulltext.context_kernel")
    highlighting = late("cerata.projections.fulltext.highlights")
    turn_lengths = late("cerata.projections.fulltext.turn_lengths")
    turn_ranking = late("cerata.projections.fulltext.turn_ranking")

K1: Final = 1.2
B: Final = 0.75

TURN_K1: Final = 0.9
TURN_B: Final = 0.5
"""Of turns in context, whose counts and lengths are sums over 13 turns: a sum varies less with the
length of its turn, and a word that occurs again beside a turn adds less."""

SCORE_DECIMALS: Final = 9

_DENSE_SHARE: Final = 16
"""With fewer postings than rows / 16, a sort adds up faster than an array of all rows."""

_BLOCK_ROWS: Final = 64
"""Rows of a block; the search for the best rows takes the maximum of each block first."""

_SCORE_MIN: Final = float(np.finfo(np.float64).tiny)
"""A bound below every score: a term adds at least idf / 16 million."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows: ``rows`` (k,) int64, ``scores`` (k,) float64, descending, ties by row."""

    rows: I64
    scores: F64

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class WordScore(PlainValue):
    """The contribution of a query word to a row's score: ``idf`` times the saturated sum of counts.

    ``word`` is spelled as in the query. ``count`` is weighted by field, 0 if the row lacks the
    word. ``near`` is the share of neighbouring turns' occurrences, 0 outside a conversation.
    """

    word: str
    idf: float
    count: int
    near: float
    added: float


@dataclass(frozen=True, slots=True, eq=False)
class Fulltext:
    """Postings up to ``seq``. Immutable; safe for threads during a fold."""

    pieces: tuple[Piece, ...]
    vocabulary: VocabularyView
    lengths: FieldLengths
    seq: int
    marks: U8
    """The marks of each row (`marks.Mark`), (rows,)."""
    groups: tuple[PieceGroup, ...] = ()
    """The pieces in groups that questions may join; without groups they stay apart."""

    def view(
        self, alive: Mask, turns: TurnOrder | None = None, last: LastLengths | None = None
    ) -> FulltextView:
        """Return the ranking over the first ``len(alive)`` rows.

        Cost: about 0.2 ms per 100,000 rows; keep the view for later questions at the same basis.

        Args:
            alive: The current rows, (rows,).
            turns: The order of the current turns, whose words count for their neighbours; default
                None: each row counts by itself.
            last: The lengths of an earlier state, which the view extends if possible, and replaces;
                default None.
        """
        return FulltextView(self, alive, turns, last)


class FulltextView:
    """Ranks the frames of a state."""

    def __init__(
        self,
        fulltext: Fulltext,
        alive: Mask,
        turns: TurnOrder | None = None,
        last: LastLengths | None = None,
    ) -> None:
        self._vocabulary = fulltext.vocabulary
        self._rows = len(alive)
        # Terms from this count on occur in later rows only.
        self._terms = fulltext.vocabulary.count_at(self._rows)
        self._occurrences = Occurrences(
            fulltext.pieces, fulltext.lengths, self._rows, fulltext.groups
        )
        self._lengths = self._occurrences.fields.weighted()
        self._marks = fulltext.marks
        self._alive = alive
        self._dead = np.flatnonzero(~alive)
        counted = self._lengths[alive] if len(self._dead) else self._lengths
        self.document_count = int(np.count_nonzero(counted))
        self.token_count = int(counted.sum(dtype=np.int64))
        self._turns = turns
        self._last = last
        self._asked_rows = 0

    def marks_at(self, rows: I64) -> U8:
        """Return the marks of rows (`marks.Mark`)."""
        return self._marks[rows]

    def text_lengths_at(self, rows: I64) -> I64:
        """Return how many terms the text field of rows has."""
        # A term of another field weighs 2, so weighted lengths have it once more.
        lengths = 2 * self._occurrences.fields.total[rows].astype(np.int64)
        lengths -= self._lengths[rows]
        return lengths

    @cached_property
    def _turn_lengths(self) -> TurnLengths | None:
        if self._turns is None:
            return None
        last = self._last
        earlier = None if last is None else last.lengths
        lengths = turn_lengths.turn_lengths(self._lengths, self._turns, earlier)
        if last is not None:
            last.lengths = lengths
        return lengths

    @cached_property
    def _average_length(self) -> float:
        lengths = self._turn_lengths
        tokens = self.token_count + (0.0 if lengths is None else lengths.shares)
        return tokens / self.document_count if self.document_count else 1.0

    def _norm(self, lengths: F64 | U32) -> F64:
        """Return the length parts of the denominator of rows that are no turns."""
        return K1 * ((1.0 - B) + B * (lengths / self._average_length))

    @cached_property
    def _row_norms(self) -> F64:
        return self._norm(self._lengths)

    @cached_property
    def _ones(self) -> F64:
        """The contribution of a term with a single occurrence in each row, without its idf.

        Most terms occur once in a row.
        """
        return (K1 + 1.0) / (1.0 + self._row_norms)

    def _ones_at(self, rows: I64) -> F64:
        """Return `_ones` of some rows."""
        if self._has_paid(len(rows)):
            return self._ones[rows]
        return (K1 + 1.0) / (1.0 + self._norm(self._lengths[rows]))

    def _norms_at(self, rows: I64) -> F64:
        """Return `_row_norms` of some rows."""
        return self._row_norms[rows] if self._has_paid(0) else self._norm(self._lengths[rows])

    def _has_paid(self, count: int) -> bool:
        """Count rows of a question; return whether the questions so far had most rows of the state.

        Then the arrays of all rows are made, which serve many questions. A view of the past mostly
        has a single question, of few rows; the numbers are the same.
        """
        self._asked_rows += count
        return 2 * self._asked_rows > self._rows

    @cached_property
    def _turn_norms(self) -> TurnNorms:
        lengths = self._turn_lengths
        if lengths is None:
            return turn_ranking.turn_norms(np.empty(0), np.zeros(0, np.bool_))
        norms = lengths.in_context / self._average_length
        norms *= TURN_B
        norms += 1.0 - TURN_B
        norms *= TURN_K1
        return turn_ranking.turn_norms(norms, lengths.order.is_turn)

    def search(
        self,
        query: str | Query,
        *,
        k: int = 10,
        among: Mask | None = None,
        filters: Filters | None = None,
    ) -> Ranking:
        """Return the best ``k`` rows for a question in plain language, or for a query.

        ``among`` (rows,) marks the rows that may be returned, by default the current rows. Neither
        ``among`` nor the query's ``filters`` change a score.

        Raises:
            InvalidInput: a pattern is not a single word.
            Unsupported: the query has a filter, and the call no ``filters``.
        """
        tree = plain(query) if isinstance(query, str) else query
        if isinstance(tree, AnyWord) and tree.field is None:
            return self.rank(text.terms(tree.text), k=k, among=among)
        matching = Matching(self._occurrences, self._vocabulary, filters)
        matches = matching.found(tree)
        scores = self._scores(matching.groups(tree))
        rows = np.flatnonzero(matches & (self._alive if among is None else among))
        return _best(rows, scores[rows], k) if k > 0 else _NOTHING

    def passing(self, query: Query, filters: Filters) -> Mask | None:
        """Return the rows that a query selects, current or not; None if it restricts nothing."""
        return Matching(self._occurrences, self._vocabulary, filters).mask(query)

    def found(self, query: str | Query, filters: Filters) -> Mask:
        """Return the candidate rows of `search`, current or not."""
        tree = plain(query) if isinstance(query, str) else query
        matching = Matching(self._occurrences, self._vocabulary, filters)
        found = matching.found(tree)
        if isinstance(tree, AnyWord) and tree.field is None and self._turns is not None:
            # Turns beside a turn with a word score, too.
            found |= self._scores(matching.groups(tree)) > 0
        return found

    def words(self, query: str | Query, row: int) -> list[WordScore]:
        """Return the contributions of a query's words to a row's score, the largest first."""
        tree = plain(query) if isinstance(query, str) else query
        matching = Matching(self._occurrences, self._vocabulary)
        scores = [self._word(name, group, row) for name, group in matching.named_groups(tree)]
        # Not in the order of the vocabulary, which contains words of later events.
        return sorted(scores, key=lambda score: (-round(score.added, SCORE_DECIMALS), score.word))

    def _word(self, name: str, group: Group, row: int) -> WordScore:
        idf = self._idf(int(np.count_nonzero(self._alive[group.rows])))
        count = int(group.weights[group.rows == row].sum())
        total = float(count)
        k1, norm = K1, float(self._norm(self._lengths[row : row + 1])[0])
        order = self._turns
        if order is not None and (place := int(order.places[row])) != NO_ROW:
            places = order.places[group.rows]
            is_turn = places != NO_ROW
            counts = group.weights[is_turn].astype(np.float64)
            reached, sums = context_kernel.Shares(len(order.rows)).spread(places[is_turn], counts)
            total = float(sums[reached == place].max(initial=0.0))
            k1, norm = TURN_K1, float(self._turn_norms.norms[place])
        added = idf * (total * (k1 + 1.0) / (total + norm))
        return WordScore(name, idf, count, round(total - count, SCORE_DECIMALS), added)

    def idf(self, term: str) -> float:
        """Return the idf of a term, that of no row included. Cost: a pass over its postings."""
        code = self._vocabulary.find(term, self._terms)
        ids = np.array([] if code is None else [code], np.uint32)
        rows, _, _ = self._occurrences.gather(ids)
        return self._idf(int(np.count_nonzero(self._alive[rows])))

    def have(self, term: str, rows: I64) -> Mask:
        """Return which rows have a term, in any field. Cost: a pass over its postings."""
        code = self._vocabulary.find(term, self._terms)
        ids = np.array([] if code is None else [code], np.uint32)
        return np.isin(rows, self._occurrences.gather(ids)[0])

    def shares_of_words(self, words: Sequence[str], rows: I64) -> F64:
        """Return the share of distinct words that rows have in any field, each by its idf, (rows,).

        Cost: about 10 ns a posting of the words.
        """
        found = [self._vocabulary.find(word, self._terms) for word in words]
        ids = np.array(sorted(code for code in found if code is not None), np.uint32)
        postings, ends, _ = self._occurrences.gather(ids)
        total = self._idf(0) * (len(words) - len(ids))
        shares = np.zeros(len(rows))
        for part, frequency in self._frequencies(postings, ends):
            idf = self._idf(frequency)
            total += idf
            # The rows of a word ascend, and each is there once.
            ends_of_rows = np.searchsorted(postings[part], rows, "right")
            shares += idf * (ends_of_rows - np.searchsorted(postings[part], rows))
        return shares / total if total else shares

    def highlights(
        self, content: str, query: str | Query, field: Field = Field.TEXT
    ) -> list[Highlight]:
        """Return the matches to mark in the text of a field: [start, end), ascending."""
        tree = plain(query) if isinstance(query, str) else query
        return highlighting.highlights(content, tree, self._vocabulary, self._rows, field)

    def _scores(self, groups: Iterable[Group]) -> F64:
        """Return every row's score, (rows,), 0 without any of the words."""
        alive = self._alive
        words = (
            (group.rows, group.weights.astype(np.float64), int(np.count_nonzero(alive[group.rows])))
            for group in groups
        )
        return self._summed(words).of_rows(self._rows)

    def _summed(self, words: Iterable[tuple[I64, F64, int]]) -> _Scores:
        """Return the scores for words: rows, counts, number of current rows.

        The rows of a word are distinct.
        """
        order = self._turns
        by_row: F64 | None = None
        by_place = np.zeros(0 if order is None else len(order.rows))
        shares = None if order is None else context_kernel.Shares(len(order.rows))
        for rows, counts, frequency in words:
            idf = self._idf(frequency)
            if order is not None and shares is not None:
                places = order.places[rows]
                is_turn = places != NO_ROW
                reached, sums = shares.spread(places[is_turn], counts[is_turn])
                # A place may occur several times: assigned again, its sum stays the same.
                added = _saturated(sums, self._turn_norms.norms[reached], TURN_K1) * idf
                by_place[reached] = by_place[reached] + added
                rows, counts = rows[~is_turn], counts[~is_turn]
            if len(rows):
                by_row = np.zeros(self._rows) if by_row is None else by_row
                by_row[rows] += _saturated(counts, self._norms_at(rows)) * idf
        if order is not None:
            by_place[~order.is_turn] = 0.0
        return _Scores(by_row, by_place, order)

    def rank(self, terms: Iterable[str], *, k: int = 10, among: Mask | None = None) -> Ranking:
        """Return the best ``k`` rows that hold any of the terms; empty if no term matches.

        Turns beside a turn that holds one count, too.

        Cost: about 10 ns a posting of the terms; in conversations see `best_turns`.
        """
        matches = [self._vocabulary.find(term, self._terms) for term in set(terms)]
        ids = np.array(sorted(i for i in matches if i is not None), np.uint32)
        if k <= 0:
            return _NOTHING
        if self._turns is not None:
            return self._rank_turns(self._turns, ids, k, among)
        rows, weights = self._weights(ids)
        if not len(rows):
            return _NOTHING
        if len(rows) * _DENSE_SHARE < self._rows:
            admitted = (self._alive if among is None else among)[rows]
            distinct, inverse = np.unique(rows[admitted], return_inverse=True)
            return _best(distinct, _totals(inverse, weights[admitted], len(distinct)), k)
        scores = _totals(rows, weights, self._rows)
        if among is None:
            scores[self._dead] = 0.0
        else:
            scores *= among
        best = _candidates(scores, k)
        return _best(best, scores[best], k)

    def _rank_turns(self, order: TurnOrder, ids: U32, k: int, among: Mask | None) -> Ranking:
        """Return the best of many turns, and of the rows that are no turns."""
        rows, ends, counts = self._occurrences.gather(ids)
        if not len(rows):
            return _NOTHING
        idfs = np.array([self._idf(count) for _, count in self._frequencies(rows, ends)])
        places = order.places[rows]
        counted = context_kernel.Counts(np.array(ends), places, counts)
        by_row: F64 | None = None
        is_turn = places != NO_ROW
        if not is_turn.all():
            others = np.flatnonzero(~is_turn)
            of_rows = rows[others]
            of_others = counts[others].astype(np.float64)
            added = _saturated(of_others, self._norm(self._lengths[of_rows]))
            by_row = _totals(of_rows, added * idfs[counted.words(others)], self._rows)
            turn_ends = np.searchsorted(np.flatnonzero(is_turn), counted.ends)
            counted = context_kernel.Counts(turn_ends, places[is_turn], counts[is_turn])
        is_admitted = None if among is None else among[order.rows]
        places, scores = turn_ranking.best_turns(
            counted, idfs, self._turn_norms, k, scale=TURN_K1 + 1.0, among=is_admitted
        )
        turns = Ranking(order.rows[places], scores)
        return _joined(_best_of_rows(by_row, k, self._dead, among), turns, k)

    def _weights(self, ids: U32) -> tuple[I64, F64]:
        """Return the rows that hold each term, term after term, and their contributions."""
        rows, ends, counts = self._occurrences.gather(ids)
        weights = self._ones_at(rows)
        heavy = np.flatnonzero(counts > 1)
        heavy_counts = counts[heavy].astype(np.float64)
        weights[heavy] = _saturated(heavy_counts, self._norms_at(rows[heavy]))
        for part, frequency in self._frequencies(rows, ends):
            weights[part] *= self._idf(frequency)
        return rows, weights

    def _frequencies(self, rows: I64, ends: Sequence[int]) -> Iterator[tuple[slice, int]]:
        """Yield the slice of each term and the number of its current rows."""
        alive = self._alive[rows] if len(self._dead) else None
        start = 0
        for end in ends:
            part = slice(start, end)
            yield part, end - start if alive is None else int(np.count_nonzero(alive[part]))
            start = end

    def _idf(self, frequency: int) -> float:
        odds = (self.document_count - frequency + 0.5) / (frequency + 0.5)
        # libm may differ in the last bit between machines; float32 drops that bit.
        return float(np.float32(math.log(1.0 + odds)))


class _Scores(NamedTuple):
    """Scores by row, (rows,), None if all are 0, and of turns by place, (places,)."""

    by_row: F64 | None
    by_place: F64
    order: TurnOrder | None

    def of_rows(self, count: int) -> F64:
        """Return the score of every row, (rows,)."""
        scores = np.zeros(count) if self.by_row is None else self.by_row
        if self.order is not None:
            places = np.flatnonzero(self.by_place > 0)
            scores[self.order.rows[places]] = self.by_place[places]
        return scores

    def best(self, k: int, dead: I64, among: Mask | None) -> Ranking:
        """Return the best ``k`` of the rows of a mask, (rows,); None: of all but the dead rows."""
        of_rows = _best_of_rows(self.by_row, k, dead, among)
        if self.order is None:
            return _joined(of_rows, _NOTHING, k)
        # No turn is dead.
        admitted = self.by_place
        if among is not None:
            admitted *= among[self.order.rows]
        places = _candidates(admitted, k)
        return _joined(of_rows, Ranking(self.order.rows[places], admitted[places]), k)


def _best_of_rows(scores: F64 | None, k: int, dead: I64, among: Mask | None) -> Ranking:
    """Return the rows with the k best scores, and more, in any order; none without scores."""
    if scores is None:
        return _NOTHING
    if among is None:
        scores[dead] = 0.0
    else:
        scores *= among
    rows = _candidates(scores, k)
    return Ranking(rows, scores[rows])


def _joined(rows: Ranking, turns: Ranking, k: int) -> Ranking:
    """Return the k best of both."""
    if len(rows):
        joined = np.concatenate([rows.rows, turns.rows])
        turns = Ranking(joined, np.concatenate([rows.scores, turns.scores]))
    rounded = np.round(turns.scores, SCORE_DECIMALS)
    best, scores = _nearly_best(turns.rows, rounded, k)
    order = np.lexsort((best, -scores))[:k]
    return Ranking(best[order], scores[order])


def _saturated(counts: F64, norms: F64, k1: float = K1) -> F64:
    return counts * (k1 + 1.0) / (counts + norms)


def _totals(rows: I64, weights: F64, size: int) -> F64:
    return np.bincount(rows, weights, size).astype(np.float64, copy=False)


def _candidates(scores: F64, k: int) -> I64:
    """Return ascending rows with the k best positive scores, and all rows with equal scores.

    The k-th best maximum of a block is at most the k-th best score.
    """
    # The rows of a block are far apart: numpy takes such maxima four times faster.
    whole = len(scores) // _BLOCK_ROWS * _BLOCK_ROWS
    maxima = scores[:whole].reshape(_BLOCK_ROWS, -1).max(axis=0)
    if len(maxima) <= k:
        return np.flatnonzero(scores)
    least = float(np.partition(maxima, len(maxima) - k)[len(maxima) - k])
    # A score within this distance below may round to the same value.
    return np.flatnonzero(scores >= max(least - 10.0**-SCORE_DECIMALS, _SCORE_MIN))


def _best(rows: I64, scores: F64, k: int) -> Ranking:
    """Return the k best of ascending rows by (rounded score descending, row)."""
    rows, rounded = _nearly_best(rows, np.round(scores, SCORE_DECIMALS), k)
    order = np.argsort(-rounded, kind="stable")[:k]
    return Ranking(rows[order], rounded[order])


def _nearly_best(rows: I64, scores: F64, k: int) -> tuple[I64, F64]:
    """Return the rows with the k best scores, and those with the k-th; ties need all of these."""
    if len(rows) <= k:
        return rows, scores
    best = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
    return rows[best], scores[best]


_NOTHING: Final = Ranking(np.empty(0, np.int64), np.empty(0, np.float64))
