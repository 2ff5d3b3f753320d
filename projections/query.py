"""Queries as trees: what a frame must say to be found, and what decides its place.

Owns the values; `cerata.retrieval.query` makes them from the full language, `plain` from a
question. `matching` says which frames a tree finds, `ranking` in which order: a frame's score is
that of all the tree's words it holds, whatever part of the tree let it in, those under `Not`
left out.

Words are as written; each is cut and stemmed as text is when it is searched. One that gives
several terms (``put_frame``) is a phrase, and one that gives none (a stop word) decides nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from .fields import Field
from .filters import Filter


@dataclass(frozen=True, slots=True)
class Term:
    """Frames with a word of the same term, in one field or in any."""

    word: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class AnyWord:
    """Frames with any of the words of a text, in one field or in any."""

    text: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Phrase:
    """Frames with these words in this order within one field, nothing but stop words between."""

    text: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """Frames with a word that starts so. All such words count as one."""

    start: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Frames with a word that matches: ``*`` any characters, ``?`` one. They count as one word."""

    pattern: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class And:
    """Frames that every part finds."""

    parts: tuple["Query", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Frames that any part finds."""

    parts: tuple["Query", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Frames that the part does not find."""

    part: "Query"


@dataclass(frozen=True, slots=True)
class Maybe:
    """Decides nothing; its words add to the score of what the rest finds."""

    part: "Query"


@dataclass(frozen=True, slots=True)
class FilterLeaf:
    """Frames that a filter lets pass; whoever searches brings its mask."""

    where: Filter


Words: TypeAlias = Term | AnyWord | Phrase | Prefix | Wildcard
Query: TypeAlias = Words | And | Or | Not | Maybe | FilterLeaf

_QUOTED: Final = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]*)["\u201c\u201d]')


def plain(question: str) -> Query:
    """Return the query of a plain-language question.

    Any word may match, and the more the better. What stands in double quotes must occur as it
    is; then the other words decide the order only. A quote without its partner is no sign.

    >>> plain('which "event log" is it')
    And(parts=(Phrase(text='event log', field=None), Maybe(part=AnyWord(text='which   is it', ...
    """
    quoted = [part for part in _QUOTED.findall(question) if part.strip()]
    if not quoted:
        return AnyWord(question)
    return And((*map(Phrase, quoted), Maybe(AnyWord(_QUOTED.sub(" ", question)))))


_EVERYTHING: Final = FilterLeaf(Filter())


def loosened(query: Query) -> Query:
    """Return a query as if every word were in every frame: its filters and its ``Not`` stay.

    >>> loosened(And((Term("index"), Not(Term("annoy")))))
    And(parts=(FilterLeaf(where=Filter(expression=Every(parts=()))), Not(part=Term(word='annoy', ...
    """
    return _loosened(query, excludes=False)


def _loosened(query: Query, *, excludes: bool) -> Query:
    match query:
        case And(parts):
            return And(tuple(_loosened(part, excludes=excludes) for part in parts))
        case Or(parts):
            return Or(tuple(_loosened(part, excludes=excludes) for part in parts))
        case Not(part):
            return Not(_loosened(part, excludes=not excludes))
        case Term() | AnyWord() | Phrase() | Prefix() | Wildcard():
            return query if excludes else _EVERYTHING
        case Maybe() | FilterLeaf():
            return query


def words_of(query: Query) -> Iterator[Words]:
    """Yield the words that count for a query's score, from left to right."""
    match query:
        case And(parts) | Or(parts):
            for part in parts:
                yield from words_of(part)
        case Maybe(part):
            yield from words_of(part)
        case Term() | AnyWord() | Phrase() | Prefix() | Wildcard():
            yield query
        case Not() | FilterLeaf():
            return
