"""Matching: the rows that a query tree of words and filters selects, as of a row.

Owns the meaning of each kind of node (docs/search.md has the table). The postings of each group of
words are gathered once, for both matching and scoring. Leaves out scores (`bm25`) and the
meaning of filters: the caller passes their masks.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec
import numpy as np

from cerata.engine.errors import InvalidInput, Unsupported

from ..columnar.columns import I64, U32, Mask
from ..frames.filters import Filter
from . import analyzer as text
from .fields import BESIDE_PART, Field
from .occurrences import Occurrences
from .query import (
    And,
    AnyWord,
    FilterLeaf,
    Maybe,
    Not,
    Or,
    Phrase,
    Prefix,
    Query,
    Term,
    Wildcard,
    Words,
    words_of,
)
from .term_weights import weight_of
from .vocabulary import VocabularyView
from .word_starts import START

Filters: TypeAlias = Callable[[Filter], Mask]
"""Returns a mask over all rows of the view, current or not: the rows that pass a filter."""

GroupKey: TypeAlias = tuple[int, int | str, int]
"""The identity and the order of a group of words: kind, term or pattern, field.

Term ids follow the first occurrence in the log, so later events leave the order unchanged."""

_TERM: Final = 0
_PREFIX: Final = 1
_WILDCARD: Final = 2
"""Kinds of groups, in the order of their sum."""

_RUN_SIZE: Final = 32
"""Terms of a phrase up to which each is looked up, the rarest first."""


class Group(msgspec.Struct, frozen=True):
    """Words that count as one: ``rows`` (p,) with any of them, ascending, and ``fields`` (p,).

    ``part`` is the part of a word that they are (`fields`), and multiplies their idf.
    """

    rows: I64
    weights: I64
    part: float = 1.0


class Matching:
    """Evaluates a query. Not thread-safe."""

    def __init__(
        self, occurrences: Occurrences, vocabulary: VocabularyView, filters: Filters | None = None
    ) -> None:
        self._occurrences = occurrences
        self._vocabulary = vocabulary
        self._filters = filters
        self._groups: dict[GroupKey, Group] = {}

    def groups(self, query: Query) -> list[Group]:
        """Return the groups of words that count for a query's score, in order of their keys."""
        groups = {
            key: self._group(key, ids, field)
            for words in words_of(query)
            for key, ids, field in self._keys(words)
        }
        return [group for _, group in sorted(groups.items(), key=lambda item: _order(item[0]))]

    def named_groups(self, query: Query) -> list[tuple[str, Group]]:
        """Return `groups`, each with its word as in the query: ``index``, ``title:inde*``."""
        groups: dict[GroupKey, tuple[str, Group]] = {}
        for words in words_of(query):
            name_of = _names(words)
            for key, ids, field in self._keys(words):
                groups[key] = name_of(self._term(key)), self._group(key, ids, field)
        return [named for _, named in sorted(groups.items(), key=lambda item: _order(item[0]))]

    def _term(self, key: GroupKey) -> str:
        which = key[1]
        return self._vocabulary.text(which) if isinstance(which, int) else which

    def found(self, query: Query) -> Mask:
        """Return the rows that a query selects; without a mask, the rows with any of its words."""
        mask = self.mask(query)
        if mask is None:
            mask = np.zeros(self._occurrences.rows, np.bool_)
            for group in self.groups(query):
                mask[group.rows] = True
        return mask

    def mask(self, query: Query) -> Mask | None:
        """Return the rows that a query selects, current or not; None if the query restricts none.

        Raises:
            InvalidInput: a pattern is not a single word.
            Unsupported: the query has a filter, and the search has no filters.
        """
        match query:
            case Term(word, field):
                return self._phrase(word, field)
            case AnyWord():
                return self._any(query)
            case Phrase(words, field):
                return self._phrase(words, field)
            case Prefix() | Wildcard():
                [key] = self._keys(query)
                return self._rows(*key)
            case And(parts):
                return self._joined(np.logical_and, parts)
            case Or(parts):
                return self._joined(np.logical_or, parts)
            case Not(part):
                inner = self.mask(part)
                return None if inner is None else ~inner
            case Maybe():
                return None
            case FilterLeaf(where):
                return self._filtered(where)

    def _any(self, words: AnyWord) -> Mask | None:
        mask: Mask | None = None
        for key, ids, field in self._keys(words):
            if mask is None:
                mask = np.zeros(self._occurrences.rows, np.bool_)
            mask[self._group(key, ids, field).rows] = True
        return mask

    def _joined(self, join: np.ufunc, parts: tuple[Query, ...]) -> Mask | None:
        masks = [mask for mask in map(self.mask, parts) if mask is not None]
        return join.reduce(masks) if masks else None

    def _filtered(self, where: Filter) -> Mask:
        if self._filters is None:
            raise Unsupported(
                f"This search supports no filters; the query has {where.to_dict()}",
                remedy="Pass the filter as where= of a store's or view's search.",
            )
        return self._filters(where)

    # --- groups of words -------------------------------------------------------------------------

    def _keys(self, words: Words) -> Iterator[tuple[GroupKey, U32, Field | None]]:
        """Yield the groups of a leaf: key, ids of the terms, field."""
        field = words.field
        which = -1 if field is None else int(field)
        match words:
            case Prefix(start):
                ids = self._vocabulary.starting_with(one_word(start), self._occurrences.rows)
                yield (_PREFIX, start, which), ids, field
            case Wildcard(pattern):
                ids = self._vocabulary.matching(folded_pattern(pattern), self._occurrences.rows)
                yield (_WILDCARD, pattern, which), ids, field
            case AnyWord(cut):
                for term in text.question_terms(cut):
                    key = self._key(term, field)
                    # A start that begins no word adds nothing to the most of a question.
                    if len(key[1]) or not term.startswith(START):
                        yield key
            case Term(cut) | Phrase(cut):
                for term in dict.fromkeys(span.term for span in text.word_spans(cut)):
                    yield self._key(term, field)

    def _key(self, term: str, field: Field | None) -> tuple[GroupKey, U32, Field | None]:
        which = -1 if field is None else int(field)
        ids = self._vocabulary.ids([term], self._occurrences.rows)[term]
        # A start may have the only id of a word.
        is_word = len(ids) and not term.startswith(START)
        return (_TERM, int(ids[0]) if is_word else term, which), ids, field

    def _group(self, key: GroupKey, ids: U32, field: Field | None) -> Group:
        group = self._groups.get(key)
        if group is None:
            part = weight_of(self._term(key)) if key[0] == _TERM else 1.0
            group = self._groups[key] = Group(*self._occurrences.of(ids, field), part)
        return group

    def _rows(self, key: GroupKey, ids: U32, field: Field | None) -> Mask:
        mask = np.zeros(self._occurrences.rows, np.bool_)
        mask[self._group(key, ids, field).rows] = True
        return mask

    # --- phrases ---------------------------------------------------------------------------------

    def _phrase(self, words: str, field: Field | None) -> Mask | None:
        terms = text.terms(words)
        if len(terms) < 2:
            # AT&T has no word but those beside its letters; a stop word has none.
            alone = terms or [span.term for span in text.beside_spans(words)]
            masks = [self._rows(*self._key(term, field)) for term in alone]
            return np.logical_and.reduce(masks) if masks else None
        mask = np.zeros(self._occurrences.rows, np.bool_)
        ids = [self._vocabulary.find(term) for term in terms]
        term_ids = [term_id for term_id in ids if term_id is not None]
        if len(term_ids) < len(ids):
            return mask
        starts = self._starts(tuple(term_ids), {})
        rows = starts >> 32
        first = starts & 0xFFFF_FFFF
        of_first = self._occurrences.fields_within(rows, first)
        whole = of_first == self._occurrences.fields_within(rows, first + len(ids) - 1)
        # Beside words no term has a place.
        whole &= of_first < BESIDE_PART if field is None else of_first == field
        mask[rows[whole]] = True
        return mask

    def _starts(self, ids: tuple[int, ...], known: dict[tuple[int, ...], I64]) -> I64:
        """Return the places of a run of terms: row · 2^32 + position of the first term.

        A long run is joined from its halves, each looked up once: a run that repeats a few words
        costs no pass over their places for each of its words.
        """
        starts = known.get(ids)
        if starts is None:
            half = len(ids) // 2
            if len(ids) <= _RUN_SIZE:
                starts = self._starts_of_few(ids)
            else:
                starts = self._starts(ids[:half], known)
                if len(starts):
                    rest = self._starts(ids[half:], known)
                    is_run: Mask = np.isin(starts + half, rest, assume_unique=True)
                    starts = starts[is_run]
            known[ids] = starts
        return starts

    def _starts_of_few(self, ids: tuple[int, ...]) -> I64:
        places = {term: self._occurrences.positions(term) for term in set(ids)}
        shifted = [(places[term], offset) for offset, term in enumerate(ids)]
        # Start with the rarest term: the fewest candidates remain to be looked up.
        shifted.sort(key=lambda item: len(item[0]))
        (rarest, offset), *rest = shifted
        starts: I64 = rarest - offset
        for positions, offset in rest:
            is_run: Mask = np.isin(starts + offset, positions, assume_unique=True)
            starts = starts[is_run]
        return starts


def _names(words: Words) -> Callable[[str], str]:
    """Return the function from a term of a leaf to its word as in the query."""
    prefix = "" if words.field is None else f"{words.field.name.lower()}:"
    match words:
        case Prefix():
            return lambda _: f"{prefix}{words.start}*"
        case Wildcard():
            return lambda _: f"{prefix}{words.pattern}"
        case _:
            cut = words.word if isinstance(words, Term) else words.text
            # Backwards, so that the first word of a term stays.
            written = {span.term: span.word for span in reversed(text.question_spans(cut))}
            return lambda term: prefix + written.get(term, term)


def _order(key: GroupKey) -> tuple[int, int, str, int]:
    kind, which, field = key
    return (kind, which, "", field) if isinstance(which, int) else (kind, -1, which, field)


def one_word(start: str) -> str:
    """Return the start of a word, folded.

    Raises:
        InvalidInput: ``start`` is not exactly one word.
    """
    words = text.words(start)
    if len(words) != 1:
        raise InvalidInput(
            f"The prefix {start!r} has {len(words)} words, expected 1",
            remedy="Pass the start of a single word.",
        )
    return words[0].decode()


def folded_pattern(pattern: str) -> str:
    """Return a pattern with the text between its wildcards folded like words.

    Raises:
        InvalidInput: ``pattern`` spans more than one word, or has no letter.
    """
    parts = [text.words(part) for part in pattern.replace("?", "*").split("*")]
    blank = all(not words for words in parts)
    if blank or any(len(words) > 1 for words in parts):
        raise InvalidInput(
            f"The pattern {pattern!r} is not one word", remedy="Use letters, digits, * and ?."
        )
    signs = [character for character in pattern if character in "*?"]
    pieces = [words[0].decode() if words else "" for words in parts]
    return "".join(piece + sign for piece, sign in zip(pieces, [*signs, ""], strict=True))
