"""A question to a state: its words are gathered once, for the best rows, and for any rows.

    asked = view.asked("which index")
    asked.best(10)          # the ranking
    asked.at(rows)          # the scores of rows that another lane found: equal to those of `best`
    asked.most              # the score of a frame full of its words, about

Owns the sums of a question's words (the formula is in `bm25`), and the bonus of its quoted phrases.
Leaves out the contribution of a word (`scoring`), and the best of many turns (`turn_ranking`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from cerata.engine.late import late

from ..columnar.columns import F64, I64, U32, Mask
from ..columnar.turn_order import NO_ROW
from . import analyzer as text
from .query import AnyWord, Phrase, Query
from .query_evaluation import Group, Matching
from .scoring import (
    NOTHING,
    SCORE_DECIMALS,
    Ranking,
    Scoring,
    best,
    best_of_rows,
    candidates,
    joined,
    saturated,
)
from .term_weights import weight_of
from .vocabulary import VocabularyView
from .word_starts import START

if TYPE_CHECKING:
    from .turns import context_kernel, turn_ranking
    from .turns.turn_ranking import TurnScores
else:
    context_kernel = late("cerata.projections.fulltext.turns.context_kernel")
    turn_ranking = late("cerata.projections.fulltext.turns.turn_ranking")

MOST: Final = 2.0
"""The idf of a word that counts in a frame full of the word: the limit of its saturation is
k1 + 1, from 1.9 to 2.2."""

_OF_NAME: Final = 1.0
"""The idf of a word of a name with several numbers that counts once more for its order: half of a
quoted phrase, since the writer did not ask for it."""

_DENSE_SHARE: Final = 16
"""With fewer postings than rows / 16, a sort adds up faster than an array of all rows."""


class Asked(Protocol):
    """The scores of a question. Not thread-safe."""

    @property
    def most(self) -> float:
        """2 · Σ idf(t) over the distinct words, those of no frame included; 0 without words.

        A quoted phrase adds nothing: a frame with all words scores about as much, quoted or not.
        """
        ...

    def best(self, k: int, among: Mask | None = None) -> Ranking:
        """Return the best ``k`` rows of a mask, (rows,), by default of the current rows."""
        ...

    def at(self, rows: I64) -> F64:
        """Return the scores of rows, as `best` has them, 0 for a row that it leaves out; (n,)."""
        ...

    def finds(self, rows: I64, scores: F64) -> Mask:
        """Return which rows `best` does not leave out, (n,), given their scores."""
        ...


class QuotedPhrase(NamedTuple):
    """A quoted phrase of a question: the rows that have it, and the bonus to their scores.

    - ``rows`` (n,) ascend, and may be rows that are not current.
    """

    text: str
    rows: I64
    added: float


class AskedWords:
    """A question in plain language: any of its words may match.

    Cost: about 10 ns a posting of the words; in conversations see `TurnScores`.
    """

    def __init__(
        self,
        scoring: Scoring,
        vocabulary: VocabularyView,
        terms: Iterable[str],
        phrases: Sequence[QuotedPhrase] = (),
    ) -> None:
        """Gather the postings of terms, in any order; a start of words counts as a term."""
        self._scoring = scoring
        known: list[tuple[int, str]] = []
        self._missing: list[float] = []
        ids = vocabulary.ids(set(terms), scoring.rows)
        for term, codes in ids.items():
            if len(codes):
                known.append((codes.item(0), term))
            elif not term.startswith(START):
                self._missing.append(weight_of(term))
        known.sort()
        groups: list[U32] = []
        self._parts: list[float] = []
        for _, term in known:
            groups.append(ids[term])
            # As `weight_of`: most words are of ASCII.
            self._parts.append(1.0 if term[:1].isascii() else weight_of(term))
        rows, self._ends, self._counts = scoring.occurrences.gather_groups(groups)
        self._rows = rows
        self._idfs = scoring.idfs(rows, self._ends)
        if self._parts.count(1.0) != len(self._parts):
            self._idfs *= self._parts
        self._phrases = phrases
        idfs = self._idfs.tolist()
        none = scoring.idf(0) if self._missing else 0.0
        for part in self._missing:
            idfs.append(none * part)
        self.most = MOST * math.fsum(idfs)
        """As `Asked.most`."""

    def best(self, k: int, among: Mask | None = None) -> Ranking:
        """As `Asked.best`."""
        if k <= 0 or not len(self._rows):
            return NOTHING
        by_words = self._best_by_words(k, among)
        if not self._phrases:
            return by_words
        # A row without a phrase is among the best only if it is among the best by words.
        quoting = np.concatenate([phrase.rows for phrase in self._phrases])
        quoting = quoting[(self._scoring.alive if among is None else among)[quoting]]
        rows = np.union1d(by_words.rows, quoting)
        return best(rows, self.at(rows), k)

    def _best_by_words(self, k: int, among: Mask | None) -> Ranking:
        scoring = self._scoring
        if scoring.turns is None:
            return self._best_of_rows(k, among)
        turns = NOTHING
        if self._turns is not None:
            is_admitted = None if among is None else among[scoring.turns.rows]
            places, scores = self._turns.best(k, is_admitted)
            turns = Ranking(scoring.turns.rows[places], scores)
        by_row = self._totals() if len(self._of_rows[0]) else None
        return joined(best_of_rows(by_row, k, scoring.dead, among), turns, k)

    def at(self, rows: I64) -> F64:
        """As `Asked.at`. Cost: 15 ns for each word and row, beyond the postings."""
        scores = np.zeros(len(rows))
        turns = self._scoring.turns
        if turns is None:
            scores = self._sums_at(rows)
        else:
            places = turns.places[rows]
            is_turn = places != NO_ROW
            scores[~is_turn] = self._sums_at(rows[~is_turn])
            if self._turns is not None:
                scores[is_turn] = self._turns.at(places[is_turn])
        for phrase in self._phrases:
            scores[np.isin(rows, phrase.rows)] += phrase.added
        return np.round(scores, SCORE_DECIMALS)

    def finds(self, rows: I64, scores: F64) -> Mask:
        """As `Asked.finds`: each row with a score."""
        return scores > 0

    def shares_at(self, rows: I64) -> F64:
        """Return the share of the distinct words that rows have, each by its idf; (n,)."""
        sums = self._sums_of(rows, self._idfs.tolist())
        return sums / (self.most / MOST) if self.most else sums

    def coverages_at(self, rows: I64) -> F64:
        """Return the share of the distinct words that rows have, however rare each is; (n,)."""
        most = math.fsum([*self._parts, *self._missing])
        return self._sums_of(rows, self._parts) / (most or 1.0)

    def _sums_of(self, rows: I64, weights: Sequence[float]) -> F64:
        """Return the sums of the weights of the words that rows have; (n,)."""
        sums = np.zeros(len(rows))
        start = 0
        for end, weight in zip(self._ends, weights, strict=True):
            # The rows of a word ascend, and each is there once.
            of_word = self._rows[start:end]
            sums += weight * (of_word.searchsorted(rows, "right") - of_word.searchsorted(rows))
            start = end
        return sums

    # --- rows that are no turns ------------------------------------------------------------------

    @cached_property
    def _is_turn(self) -> Mask | None:
        """Which postings are of turns; None if none is."""
        turns = self._scoring.turns
        if turns is None:
            return None
        is_turn: Mask = turns.places[self._rows] != NO_ROW
        return is_turn if is_turn.any() else None

    @cached_property
    def _of_rows(self) -> tuple[I64, list[int], F64]:
        """The postings of rows that are no turns: rows, ends of the words, contributions."""
        rows, ends, counts, idfs = self._rows, self._ends, self._counts, self._idfs
        if self._is_turn is not None:
            others = np.flatnonzero(~self._is_turn)
            ends = np.searchsorted(others, ends).tolist()
            rows, counts = rows[others], counts[others]
        weights = self._scoring.contributions(rows, counts)
        start = 0
        for end, idf in zip(ends, idfs.tolist(), strict=True):
            weights[start:end] *= idf
            start = end
        return rows, ends, weights

    def _totals(self) -> F64:
        """Return the score of every row that is no turn; (rows,)."""
        rows, _, weights = self._of_rows
        return np.bincount(rows, weights, self._scoring.rows).astype(np.float64, copy=False)

    def _best_of_rows(self, k: int, among: Mask | None) -> Ranking:
        """Return the best of a state without turns."""
        rows, _, weights = self._of_rows
        scoring = self._scoring
        if len(rows) * _DENSE_SHARE < scoring.rows:
            admitted = (scoring.alive if among is None else among)[rows]
            distinct, inverse = np.unique(rows[admitted], return_inverse=True)
            totals = np.bincount(inverse, weights[admitted], len(distinct))
            return best(distinct, totals.astype(np.float64, copy=False), k)
        scores = self._totals()
        if among is None:
            scores[scoring.dead] = 0.0
        else:
            scores *= among
        chosen = candidates(scores, k)
        return best(chosen, scores[chosen], k)

    def _sums_at(self, rows: I64) -> F64:
        """Return the sums of contributions to some rows, (n,), in the order of `_totals`."""
        sums = np.zeros(len(rows))
        if not len(rows) or not len(self._rows):
            return sums
        of_rows, ends, weights = self._of_rows
        start = 0
        for end in ends:
            of_word = of_rows[start:end]
            if start < end:
                # The rows of a word ascend.
                index = np.minimum(of_word.searchsorted(rows), len(of_word) - 1)
                found = np.flatnonzero(of_word[index] == rows)
                sums[found] += weights[start:end][index[found]]
            start = end
        return sums

    # --- turns -----------------------------------------------------------------------------------

    @cached_property
    def _turns(self) -> TurnScores | None:
        """The scores of turns; None if no turn has a word."""
        turns, is_turn = self._scoring.turns, self._is_turn
        if turns is None or is_turn is None:
            return None
        places, ends, counts = turns.places[self._rows], np.array(self._ends), self._counts
        if not is_turn.all():
            ends = np.searchsorted(np.flatnonzero(is_turn), ends)
            places, counts = places[is_turn], counts[is_turn]
        counted = context_kernel.Counts(ends, places, counts)
        return turn_ranking.TurnScores(counted, self._idfs, self._scoring.turn_norms)


def quoted_phrases(scoring: Scoring, matching: Matching, question: AnyWord) -> list[QuotedPhrase]:
    """Return the phrases and names that rows have, each once, in the order of their terms.

    Cost: a pass over the places of their words.
    """
    quoted: list[QuotedPhrase] = []
    # Two texts with the same terms are one phrase; the order of a sum is not that of the question.
    factors = {**dict.fromkeys(question.names, _OF_NAME), **dict.fromkeys(question.phrases, MOST)}
    by_terms = {tuple(text.terms(phrase)): phrase for phrase in reversed([*factors])}
    for _, phrase in sorted(by_terms.items()):
        mask = matching.mask(Phrase(phrase))
        rows = np.flatnonzero(False if mask is None else mask)
        if len(rows):
            groups = matching.groups(AnyWord(phrase))
            idfs = [scoring.idf_of(group.rows) * group.part for group in groups]
            quoted.append(QuotedPhrase(phrase, rows, factors[phrase] * math.fsum(idfs)))
    return quoted


class AskedQuery:
    """A query: conditions and words. Cost: a pass over all rows for each word."""

    def __init__(self, scoring: Scoring, matching: Matching, query: Query) -> None:
        self._scoring = scoring
        self._matching = matching
        self._query = query

    @property
    def most(self) -> float:
        """As `Asked.most`."""
        return self._most

    @cached_property
    def _most(self) -> float:
        idf_of = self._scoring.idf_of
        return MOST * math.fsum(idf_of(group.rows) * group.part for group in self._groups)

    def best(self, k: int, among: Mask | None = None) -> Ranking:
        """As `Asked.best`."""
        scores = self.scores
        rows = np.flatnonzero(self._matches & (self._scoring.alive if among is None else among))
        return best(rows, scores[rows], k) if k > 0 else NOTHING

    def at(self, rows: I64) -> F64:
        """As `Asked.at`."""
        return np.round(self.scores[rows] * self._matches[rows], SCORE_DECIMALS)

    def finds(self, rows: I64, scores: F64) -> Mask:
        """As `Asked.finds`: each row that the query selects; one by filters alone scores 0."""
        found: Mask = self._matches[rows]
        return found

    @cached_property
    def _matches(self) -> Mask:
        return self._matching.found(self._query)

    @cached_property
    def _groups(self) -> Sequence[Group]:
        return self._matching.groups(self._query)

    @cached_property
    def scores(self) -> F64:
        """The score of every row by its words, whether or not it matches; (rows,)."""
        scoring = self._scoring
        order = scoring.turns
        scores = np.zeros(scoring.rows)
        by_place = np.zeros(0 if order is None else len(order.rows))
        shares = None
        if order is not None:
            shares = context_kernel.Shares(len(order.rows), scoring.turn_norms.near)
        for group in self._groups:
            rows, counts = group.rows, group.weights.astype(np.float64)
            idf = scoring.idf_of(rows) * group.part
            if order is not None and shares is not None:
                places = order.places[rows]
                is_turn = places != NO_ROW
                reached, sums = shares.spread(places[is_turn], counts[is_turn])
                norms = scoring.turn_norms
                # A place may occur several times: assigned again, its sum stays the same.
                added = saturated(sums, norms.norms[reached], norms.k1) * idf
                by_place[reached] = by_place[reached] + added
                rows, counts = rows[~is_turn], counts[~is_turn]
            if len(rows):
                scores[rows] += scoring.contributions(rows, counts) * idf
        if order is not None:
            is_scored = order.is_turn & (by_place > 0)
            scores[order.rows[is_scored]] = by_place[is_scored]
        return scores
