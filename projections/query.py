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
from dataclasses import field as column
from typing import Final, TypeAlias, cast

from cerata.engine.errors import InvalidInput

from .fields import Field
from .filters import PLAIN_DEPTH, Filter


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
    depth: int = column(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above(self.parts))


@dataclass(frozen=True, slots=True)
class Or:
    """Frames that any part finds."""

    parts: tuple["Query", ...]
    depth: int = column(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above(self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    """Frames that the part does not find."""

    part: "Query"
    depth: int = column(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above((self.part,)))


@dataclass(frozen=True, slots=True)
class Maybe:
    """Decides nothing; its words add to the score of what the rest finds."""

    part: "Query"
    depth: int = column(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above((self.part,)))


@dataclass(frozen=True, slots=True)
class FilterLeaf:
    """Frames that a filter lets pass; whoever searches brings its mask."""

    where: Filter


QUESTION_SIZE_MAX: Final = 32_768
"""Most characters of a question in plain language, or of all words of a query together."""

LEAVES_MAX: Final = 4_096
"""Most words, phrases, patterns and filters of a query."""

PATTERNS_MAX: Final = 64
"""Most prefixes and wildcards of a query: each may look at every word there is."""

Words: TypeAlias = Term | AnyWord | Phrase | Prefix | Wildcard
Query: TypeAlias = Words | And | Or | Not | Maybe | FilterLeaf

DEPTH_MAX: Final = 100
"""Most levels of a query, its filters included: it is printed, compared and evaluated by recursion,
with Python's limit of 1,000 calls."""


def _depth_above(parts: object) -> int:
    """Return the levels of a query with these parts, which are checked.

    Raises:
        InvalidInput: a part is no query, or the query has too many levels.
    """
    given = cast("tuple[object, ...]", parts) if isinstance(parts, tuple) else (None,)
    queries = [part for part in given if isinstance(part, Query)]
    if len(queries) < len(given):
        raise InvalidInput(
            "The parts of a query must be a tuple of queries",
            remedy="Make the parts with cerata.query('…').",
        )
    depth = 1 + max(map(_depth_of, queries), default=0)
    if depth > DEPTH_MAX:
        raise InvalidInput(
            f"The query has {depth:,} levels; {DEPTH_MAX} are the limit",
            remedy="Combine parts of the same kind in a single And or Or.",
        )
    return depth


def _depth_of(query: "Query") -> int:
    match query:
        case And() | Or() | Not() | Maybe():
            return query.depth
        case FilterLeaf(where):
            # A filter of one test counts as a word, so that `loosened` adds no level.
            return 1 + where.depth - PLAIN_DEPTH
        case _:
            return 1


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


def check_size(query: "str | Query") -> None:
    """Refuse a question or query that would take more time than is given to one.

    Raises:
        InvalidInput: it is over one of the limits above.
    """
    if isinstance(query, str):
        _check("The question", len(query), QUESTION_SIZE_MAX, "characters", "Shorten it.")
        return
    leaves = patterns = size = 0
    left: list[Query] = [query]
    while left:
        one = left.pop()
        if isinstance(one, And | Or):
            # Before they are listed: there may be any number.
            _check("The query", leaves + len(one.parts), LEAVES_MAX, "parts", "Ask for fewer.")
            left += one.parts
            continue
        if isinstance(one, Not | Maybe):
            left.append(one.part)
            continue
        leaves += 1
        _check("The query", leaves, LEAVES_MAX, "parts", "Ask for fewer.")
        if isinstance(one, FilterLeaf):
            continue
        patterns += isinstance(one, Prefix | Wildcard)
        _check("The query", patterns, PATTERNS_MAX, "prefixes and wildcards", "Ask for fewer.")
        size += len(_text_of(one))
        _check("The query", size, QUESTION_SIZE_MAX, "characters", "Shorten it.")


def _check(what: str, count: int, limit: int, unit: str, remedy: str) -> None:
    if count > limit:
        raise InvalidInput(f"{what} has more than {limit:,} {unit}", remedy=remedy)


def _text_of(words: "Words") -> str:
    match words:
        case Term(text) | AnyWord(text) | Phrase(text) | Prefix(text) | Wildcard(text):
            return text


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
