"""What a query finds and how it scores, written again with lists and sets only.

`expected` is the whole of BM25 over fields, phrases, patterns and trees, in some forty lines; what
the engine does with columns must be equal to it, to the last bit after rounding.
"""

import math
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

import numpy as np

from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.analyzer import question_terms, term_of, terms, word_spans, words
from cerata.projections.fulltext.fields import Field
from cerata.projections.fulltext.query import (
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
from cerata.projections.fulltext.term_weights import weight_of

from ..histories import Model, weighed

Group = tuple[frozenset[str], Field | None]


THIRDS = [Filter(tags=[str(number)]) for number in range(3)]
"""Filters that these tests give a meaning of their own: what they mean is tested elsewhere."""


def passes(where: Filter, frame: int) -> bool:
    return frame % 3 == THIRDS.index(where)


def expected(model: Model, query: Query, among: Collection[int]) -> list[tuple[int, float]]:
    """Return (frame, score) of all frames among some that a query finds, best first."""
    seen = {word for text in model.texts.values() for word in words(text)}
    forms = {word.decode(): of.decode() for word in seen if (of := term_of(word)) is not None}

    def groups(leaf: Words) -> list[Group]:
        match leaf:
            case Prefix(start):
                return [(patterned(start + "*"), leaf.field)]
            case Wildcard(pattern):
                return [(patterned(pattern), leaf.field)]
            case AnyWord(text):
                sets = ((term, asked(term)) for term in question_terms(text))
                return [
                    (each, leaf.field) for term, each in sets if len(each) > 1 or term[0] != "^"
                ]
            case Term(text) | Phrase(text):
                return [(frozenset([span.term]), leaf.field) for span in word_spans(text)]

    def asked(term: str) -> frozenset[str]:
        # A start keeps its name, which no text has, for its place in the sum.
        start, _, known = term[1:].partition("^")
        is_start = term[0] == "^" and known not in forms.values()
        return frozenset([term]) | (patterned(start + "*") if is_start else frozenset[str]())

    def patterned(pattern: str) -> frozenset[str]:
        # The form and its term both count; neither fold nor brackets are in these tests.
        return frozenset(
            term
            for form, term in forms.items()
            if fnmatchcase(form, pattern) or fnmatchcase(term, pattern)
        )

    def occurrences(frame: int, group: Group) -> int:
        parts = [p if group[1] in (None, f) else [] for f, p in enumerate(model.parts[frame])]
        stops: set[str] = model.stops[frame] if group[1] is None else set()
        return sum(term in group[0] for term in weighed(parts)) + len(group[0] & stops)

    def found(query: Query, frame: int) -> bool | None:
        match query:
            case And(parts) | Or(parts):
                said = [one for one in (found(part, frame) for part in parts) if one is not None]
                join = all if isinstance(query, And) else any
                return join(said) if said else None
            case Not(part):
                inner = found(part, frame)
                return None if inner is None else not inner
            case Maybe():
                return None
            case FilterLeaf():
                return passes(query.where, frame)
            case Term(text) | Phrase(text):
                return run(terms(text), frame, query.field)
            case AnyWord() | Prefix() | Wildcard():
                any_of = [occurrences(frame, group) > 0 for group in groups(query)]
                return any(any_of) if any_of else None

    def run(wanted: Sequence[str], frame: int, field: Field | None) -> bool | None:
        parts = [p for f, p in enumerate(model.parts[frame]) if field in (None, f)]
        inside = (part[i : i + len(wanted)] == wanted for part in parts for i in range(len(part)))
        return any(inside) if wanted else None

    alive = [frame for frame in model.alive() if model.lengths[frame]]
    average = sum(model.lengths[frame] for frame in alive) / max(len(alive), 1) or 1.0
    order = list(dict.fromkeys(term for tokens in model.in_order.values() for term in tokens))
    scored = {
        rank_of(leaf, group, order): group for leaf in words_of(query) for group in groups(leaf)
    }
    results: list[tuple[int, float]] = []
    for frame in among:
        score = 0.0
        for (kind, *_), group in sorted(scored.items()):
            if tf := occurrences(frame, group):
                df = sum(occurrences(one, group) > 0 for one in alive)
                idf = float(np.float32(math.log(1 + (len(alive) - df + 0.5) / (df + 0.5))))
                norm = 1.2 * ((1 - 0.75) + 0.75 * (model.lengths[frame] / average))
                part = 1.0 if kind else weight_of(min(group[0]))
                score += tf * (1.2 + 1.0) / (tf + norm) * (idf * part)
        decided = found(query, frame)
        if decided or (decided is None and score > 0):
            results.append((frame, float(np.round(score, 9))))
    return sorted(results, key=lambda result: (-result[1], result[0]))


def rank_of(leaf: Words, group: Group, order: Sequence[str]) -> tuple[int, int, str, int]:
    """Return a group's place in the sum: words by first occurrence in the log, then patterns."""
    field = -1 if group[1] is None else int(group[1])
    match leaf:
        case Prefix(start):
            return (1, -1, start, field)
        case Wildcard(pattern):
            return (2, -1, pattern, field)
        case _:
            # "^" is before all letters.
            term = min(group[0])
            return (0, order.index(term), "", field) if term in order else (0, -1, term, field)
