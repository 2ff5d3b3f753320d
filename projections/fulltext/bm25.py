"""BM25 over postings, as of any event.

    view = projection.snapshot().view(frames.alive(n))     # the frames current at n
    view.search("which index", k=10, among=mask)           # plain language
    view.asked("which index").at(rows)                     # the scores of any rows (`asked`)
    view.search(tree, filters=lambda where: frames.mask(where, n))      # a tree (`query`)
    view.files.highlights(text, query)                           # the matches in a frame's text

Owns the scores and their order (Robertson and Zaragoza, *The Probabilistic Relevance Framework*,
2009, section 3; idf as in Lucene, never negative):

    idf(t)    = float32(log(1 + (N − df + 0.5) / (df + 0.5))) · weight(t)
    score(d)  = Σ_t idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length(d) / average length))

The weight of a part of a word is a third (`fields`).
Occurrences and lengths are weighted by field (`fields`), and those of a turn include shares of its
neighbours (`context_kernel`); df and N never do. All words that match a pattern are a
single t; a t with a field counts in that field alone. N, df and the average length count the
current frames with tokens. Sums are in order of term id, in float64, and rounded to 9 decimals;
ties are in order of frame. So a view at n ranks exactly like a store that stopped at n.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cerata.engine.late import late
from cerata.engine.plain_value import PlainValue

from ..columnar.columns import F64, I64, U8, U32, Mask
from ..columnar.turn_order import NO_ROW, TurnOrder
from . import analyzer as cutting
from . import analyzer as text
from .analyzer import Span
from .asked import Asked, AskedQuery, AskedWords, QuotedPhrase, quoted_phrases
from .fields import Field, FieldLengths
from .occurrences import Occurrences, PieceGroup
from .postings import Piece
from .query import AnyWord, Phrase, Prefix, Query, Term, Wildcard, plain, words_of
from .query_evaluation import Filters, Group, Matching, folded_pattern, one_word
from .scoring import K1, SCORE_DECIMALS, Ranking, Scoring
from .term_weights import BESIDE, weight_of
from .vocabulary import VocabularyView
from .word_starts import START

if TYPE_CHECKING:
    from .turns import context_kernel
    from .turns.turn_lengths import LastLengths
else:
    context_kernel = late("cerata.projections.fulltext.turns.context_kernel")


__all__ = ["SCORE_DECIMALS", "Fulltext", "FulltextView", "Ranking", "WordScore"]


@dataclass(frozen=True, slots=True)
class WordScore(PlainValue):
    """The contribution of a query word to a row's score: ``idf`` times the saturated sum of counts.

    ``word`` is spelled as in the query. ``count`` is weighted by field, 0 if the row lacks the
    word. ``near`` is the share of neighbouring turns' occurrences, 0 outside a conversation. A
    phrase that the query quotes is in quotes here, too: it adds twice the idf of its words, and has
    no idf of its own.
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
        self.marks = fulltext.marks
        """The marks of each row (`marks.Mark`), (rows,); also of later rows."""
        self._scoring = Scoring(self._occurrences, alive, turns, last)

    @cached_property
    def text_lengths(self) -> U32:
        """How many terms the text field of each row has, (rows,)."""
        return self._scoring.text_lengths

    @property
    def turn_mean(self) -> float:
        """The mean terms of the text of current turns; 0 without turns."""
        lengths = self._scoring.turn_lengths
        return 0.0 if lengths is None else lengths.conversations.turn_mean

    @cached_property
    def turn_parts(self) -> F64 | None:
        """The part of the conversation of each place (`conversation_parts`); (places,).

        0 in gaps. None without turns, or if all parts are 1.
        """
        lengths = self._scoring.turn_lengths
        return None if lengths is None else lengths.conversations.of_places(lengths.order)

    # --- questions -------------------------------------------------------------------------------

    def asked(self, query: str | Query, filters: Filters | None = None) -> Asked:
        """Return the scores of a question in plain language, or of a query.

        Raises:
            InvalidInput: a pattern is not a single word; a method of the result may raise it.
            Unsupported: the query has a filter, and the call no ``filters``; likewise.
        """
        tree = plain(query) if isinstance(query, str) else query
        if isinstance(tree, AnyWord) and tree.field is None:
            phrases = self._quoted(tree) if tree.phrases or tree.names else ()
            terms = text.question_terms(tree.text)
            return AskedWords(self._scoring, self._vocabulary, terms, phrases)
        matching = Matching(self._occurrences, self._vocabulary, filters)
        return AskedQuery(self._scoring, matching, tree)

    def _asked_words(
        self, terms: Iterable[str], phrases: Sequence[QuotedPhrase] = ()
    ) -> AskedWords:
        return AskedWords(self._scoring, self._vocabulary, terms, phrases)

    def _quoted(self, query: Query) -> Sequence[QuotedPhrase]:
        """Return the phrases and names of a question that rows have; a tree has none."""
        if not (isinstance(query, AnyWord) and (query.phrases or query.names)):
            return ()
        matching = Matching(self._occurrences, self._vocabulary)
        return quoted_phrases(self._scoring, matching, query)

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
        return self.asked(query, filters).best(k, among)

    def rank(self, terms: Iterable[str], *, k: int = 10, among: Mask | None = None) -> Ranking:
        """Return the best ``k`` rows that hold any of the terms; empty if no term matches.

        Turns beside a turn that holds one count, too.
        """
        return self._asked_words(terms).best(k, among)

    def passing(self, query: Query, filters: Filters) -> Mask | None:
        """Return the rows that a query selects, current or not; None if it restricts nothing."""
        return Matching(self._occurrences, self._vocabulary, filters).mask(query)

    def found(self, query: str | Query, filters: Filters) -> Mask:
        """Return the candidate rows of `search`, current or not."""
        tree = plain(query) if isinstance(query, str) else query
        matching = Matching(self._occurrences, self._vocabulary, filters)
        found = matching.found(tree)
        if isinstance(tree, AnyWord) and tree.field is None and self._scoring.turns is not None:
            # Turns beside a turn with a word score, too.
            found |= AskedQuery(self._scoring, matching, tree).scores > 0
        return found

    def words(self, query: str | Query, row: int) -> list[WordScore]:
        """Return the contributions of a query's words to a row's score, the largest first."""
        tree = plain(query) if isinstance(query, str) else query
        matching = Matching(self._occurrences, self._vocabulary)
        scores = [self._word(name, group, row) for name, group in matching.named_groups(tree)]
        scores += [
            WordScore(f'"{phrase.text}"', 0.0, 1, 0.0, phrase.added)
            for phrase in self._quoted(tree)
            if row in phrase.rows
        ]
        # Not in the order of the vocabulary, which contains words of later events.
        return sorted(scores, key=lambda score: (-round(score.added, SCORE_DECIMALS), score.word))

    def _word(self, name: str, group: Group, row: int) -> WordScore:
        scoring = self._scoring
        idf = scoring.idf_of(group.rows) * group.part
        count = int(group.weights[group.rows == row].sum())
        total = float(count)
        k1, norm = K1, float(scoring.norm(scoring.lengths[row : row + 1])[0])
        order = scoring.turns
        if order is not None and (place := int(order.places[row])) != NO_ROW:
            places = order.places[group.rows]
            is_turn = places != NO_ROW
            counts = group.weights[is_turn].astype(np.float64)
            norms = scoring.turn_norms
            shares = context_kernel.Shares(len(order.rows), norms.near)
            reached, sums = shares.spread(places[is_turn], counts)
            total = float(sums[reached == place].max(initial=0.0))
            k1, norm = norms.k1, float(norms.norms[place])
        added = idf * (total * (k1 + 1.0) / (total + norm))
        return WordScore(name, idf, count, round(total - count, SCORE_DECIMALS), added)

    def idf(self, term: str) -> float:
        """Return the idf of a term, that of no row included. Cost: a pass over its postings."""
        rows, _, _ = self._occurrences.gather(self._ids([term]))
        return self._scoring.idf_of(rows) * weight_of(term)

    def have(self, term: str, rows: I64) -> Mask:
        """Return which rows have a term, in any field. Cost: a pass over its postings."""
        return np.isin(rows, self._occurrences.gather(self._ids([term]))[0])

    def _ids(self, terms: Iterable[str]) -> U32:
        """Return the ids of the terms that the state has, ascending."""
        codes = (self._vocabulary.find(term, self._terms) for term in terms)
        return np.array(sorted(code for code in codes if code is not None), np.uint32)

    def shares_of_words(self, words: Sequence[str], rows: I64) -> F64:
        """Return the share of distinct words that rows have in any field, each by its idf, (rows,).

        Cost: about 10 ns a posting of the words.
        """
        return self._asked_words(words).shares_at(rows)

    def have_phrase(self, phrase: str, rows: I64) -> Mask:
        """Return which rows have the words of a phrase in a row, in any field; (rows,)."""
        mask = Matching(self._occurrences, self._vocabulary).mask(Phrase(phrase))
        return np.zeros(len(rows), np.bool_) if mask is None else mask[rows]

    def coverages(self, question: str, rows: I64) -> F64:
        """Return the share of a question's distinct words that rows have, rare or not, (rows,).

        Cost: about 10 ns a posting of the words.
        """
        return self._asked_words(text.question_terms(question)).coverages_at(rows)

    def highlights(
        self, content: str, query: str | Query, field: Field = Field.TEXT
    ) -> list[Highlight]:
        """Return the matches to mark in the text of a field: [start, end), ascending."""
        tree = plain(query) if isinstance(query, str) else query
        return highlights(content, tree, self._vocabulary, self._rows, field)


# --- Highlights: the matches of a query in a stored text ------------------------------------------
#
# A place is a range [start, end) of characters of the stored text, not of its case-folded or
# stemmed form: show ``text[start:end]``.


@dataclass(frozen=True, slots=True)
class Highlight:
    """Characters [start, end) of a text."""

    start: int
    end: int


def highlights(
    text: str, query: Query, vocabulary: VocabularyView, rows: int, field: Field = Field.TEXT
) -> list[Highlight]:
    """Return the ranges of a text to mark, ascending, without overlaps.

    A word of the query marks each word with the same term; a pattern, the terms that match as of
    ``rows``; a phrase, its whole run. Words under `Not` and words for another field mark nothing.
    Cost: tokenizing the text, about 1 us a word.
    """
    spans = cutting.spans(text)
    terms: set[str] = set()
    phrases: set[tuple[str, ...]] = set()
    for words in words_of(query):
        if words.field is not None and words.field != field:
            continue
        match words:
            case AnyWord(any_words, _, quoted, names):
                for term in cutting.question_terms(any_words):
                    if term.startswith(START):
                        terms |= _texts(vocabulary, vocabulary.ids([term], rows)[term])
                    else:
                        terms.add(term)
                phrases.update(tuple(cutting.terms(phrase)) for phrase in (*quoted, *names))
            case Term(phrase) | Phrase(phrase):
                run = tuple(cutting.terms(phrase))
                if run:
                    phrases.add(run)
                else:
                    terms.update(span.term for span in cutting.beside_spans(phrase))
            case Prefix(start):
                terms |= _texts(vocabulary, vocabulary.starting_with(one_word(start), rows))
            case Wildcard(pattern):
                terms |= _texts(vocabulary, vocabulary.matching(folded_pattern(pattern), rows))
    terms.update(run[0] for run in phrases if len(run) == 1)
    matches = _runs(spans, [run for run in phrases if len(run) > 1])
    marked = [*spans, *cutting.beside_spans(text)]
    if any(term.startswith(BESIDE) for term in terms):
        marked += cutting.stop_spans(text)
    matches += [Highlight(span.start, span.end) for span in marked if span.term in terms]
    return _merged(matches)


def _texts(vocabulary: VocabularyView, ids: U32) -> set[str]:
    return {vocabulary.text(term) for term in ids.tolist()}


class _State:
    """Terms that begin phrases: the state after each further term, and the longest phrase here.

    - ``back`` is the state of the longest end of these terms that begins a phrase.
    """

    __slots__ = ("back", "following", "size")

    def __init__(self) -> None:
        self.following: dict[str, _State] = {}
        self.back: _State | None = None
        self.size = 0


def _runs(spans: Sequence[Span], phrases: Collection[Sequence[str]]) -> list[Highlight]:
    """Return the longest run of a phrase that ends at each span, in one pass (Aho and Corasick).

    A. Aho and M. Corasick, *Efficient string matching*, CACM 18(6), 1975.
    """
    if not phrases:
        return []
    root = _automaton(phrases)
    runs: list[Highlight] = []
    state = root
    for index, span in enumerate(spans):
        while span.term not in state.following and state.back is not None:
            state = state.back
        state = state.following.get(span.term, root)
        if state.size:
            runs.append(Highlight(spans[index + 1 - state.size].start, span.end))
    return runs


def _automaton(phrases: Collection[Sequence[str]]) -> _State:
    root = _State()
    for phrase in phrases:
        state = root
        for term in phrase:
            state = state.following.setdefault(term, _State())
        state.size = len(phrase)
    level = deque([root])
    while level:
        state = level.popleft()
        for term, further in state.following.items():
            back = state.back
            while back is not None and term not in back.following:
                back = back.back
            further.back = root if back is None else back.following[term]
            further.size = further.size or further.back.size
            level.append(further)
    return root


def _merged(matches: Sequence[Highlight]) -> list[Highlight]:
    merged: list[Highlight] = []
    for match in sorted(matches, key=lambda highlight: (highlight.start, highlight.end)):
        if merged and match.start < merged[-1].end:
            last = merged.pop()
            match = Highlight(last.start, max(last.end, match.end))
        merged.append(match)
    return merged
