"""Queries as trees: conditions on frames, and the words that rank them.

Owns the values. `cerata.retrieval.query_language.parser` parses the full language into them,
`plain` a question. `query_evaluation` evaluates a tree; `bm25` orders the frames: a frame's score
counts all words of the tree that the frame holds, in any part of the tree except under `Not`.

Words are as written; a search tokenizes and stems them like text. A word with several terms
(``put_frame``) is a phrase, and a word without terms (a stop word) restricts nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as column
from datetime import datetime
from typing import Final, TypeAlias, cast

import msgspec

from cerata.engine.errors import InvalidInput

from ..frames.filters import PLAIN_DEPTH, Filter
from .analyzer import question_spans, terms, word_spans
from .fields import Field


class Term(msgspec.Struct, frozen=True):
    """Frames with a word of the same term, in a field or in any."""

    word: str
    field: Field | None = None


class AnyWord(msgspec.Struct, frozen=True):
    """Frames with any of the words of a text, in a field or in any.

    ``phrases`` are quoted in the text. A frame that has one in any field scores higher by twice the
    idf of the phrase's words; none is left out without it. ``names`` are names with several
    numbers, such as "4.2.1", and count half as much as a phrase. Only a whole question has both.
    """

    text: str
    field: Field | None = None
    phrases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Phrase(msgspec.Struct, frozen=True):
    """Frames with these words in this order within a field, with only stop words between."""

    text: str
    field: Field | None = None


class Prefix(msgspec.Struct, frozen=True):
    """Frames with a word that has this prefix. All such words count as a single word."""

    start: str
    field: Field | None = None


class Wildcard(msgspec.Struct, frozen=True):
    """Frames with a matching word: ``*`` any characters, ``?`` one. All count as a single word."""

    pattern: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class _Joined:
    parts: tuple["Query", ...]
    depth: int = column(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above(self.parts))


@dataclass(frozen=True, slots=True)
class _Wrapped:
    part: "Query"
    depth: int = column(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above((self.part,)))


class And(_Joined):
    """Frames that every part matches."""

    __slots__ = ()


class Or(_Joined):
    """Frames that any part matches."""

    __slots__ = ()


class Not(_Wrapped):
    """Frames that the part does not match."""

    __slots__ = ()


class Maybe(_Wrapped):
    """Restricts nothing; its words add to the scores of frames that the other parts match."""

    __slots__ = ()


class FilterLeaf(msgspec.Struct, frozen=True):
    """Frames that pass a filter; the search provides its mask."""

    where: Filter


QUESTION_SIZE_MAX: Final = 32_768
"""Most characters of a question in plain language, or of all words of a query together."""

LEAVES_MAX: Final = 4_096
"""Most words, phrases, patterns and filters of a query."""

PATTERNS_MAX: Final = 64
"""Most prefixes and wildcards of a query: each may scan the whole vocabulary."""

Words: TypeAlias = Term | AnyWord | Phrase | Prefix | Wildcard
Query: TypeAlias = Words | And | Or | Not | Maybe | FilterLeaf

DEPTH_MAX: Final = 100
"""Most levels of a query, its filters included: printing, comparison and evaluation recurse, and
Python's limit is 1,000 calls."""


def _depth_above(parts: object) -> int:
    """Check the parts of a query; return its number of levels.

    Raises:
        InvalidInput: a part is no query, or the query has too many levels.
    """
    items = cast("tuple[object, ...]", parts) if isinstance(parts, tuple) else (None,)
    queries = [part for part in items if isinstance(part, Query)]
    if len(queries) < len(items):
        raise InvalidInput(
            "The parts of a query must be a tuple of queries",
            remedy="Create the parts with cerata.query('…').",
        )
    depth = 1 + max(map(_depth_of, queries), default=0)
    if depth > DEPTH_MAX:
        raise InvalidInput(
            f"The query has {depth:,} levels; the limit is {DEPTH_MAX}",
            remedy="Combine parts of the same kind in a single And or Or.",
        )
    return depth


def _depth_of(query: "Query") -> int:
    match query:
        case And() | Or() | Not() | Maybe():
            return query.depth
        case FilterLeaf(where):
            # A filter with a single test counts as a word, so that `loosened` adds no level.
            return 1 + where.depth - PLAIN_DEPTH
        case _:
            return 1


_MARKS: Final = '"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f'
_QUOTED: Final = re.compile(f"[{_MARKS}]([^{_MARKS}]+)[{_MARKS}]")
"""A text between quotation marks; an apostrophe is none."""


_RUN: Final = re.compile(r"(?<![^\W_])[^\W_]+(?:[./\\@:#_-]+[^\W_]+)+")
"""Letters and digits with signs between them."""
_NUMBERED: Final = re.compile(r"[^\d]*\d+[^\d]+\d.*")
"""A name with several numbers, of which another order is another version, address or date."""
_EXACT: Final = re.compile(r".*[_@].*|.*[/\\].*[/\\].*|(?=.*[A-Z]).*\d.*|\d+(?:\.\d+){2,}")
"""A code with capitals and digits, or a name with ``_``, an address, a path, "4.2.1": a name that
differs in a sign is of another thing."""


def plain(question: str) -> AnyWord:
    """Return the query of a plain-language question.

    Any word may match; more matching words rank higher. Quoted words rank a frame higher that has
    them as a phrase, and leave out no frame. A quote without its partner is ignored. A name
    with several numbers ranks a frame higher that has them in this order.

    >>> plain('"log" of 4.2.1')
    AnyWord(text='"log" of 4.2.1', field=None, phrases=(), names=('4.2.1',))
    """
    quoted: list[str] = []
    for part in _QUOTED.findall(question):
        if len(terms(part)) > 1:
            quoted.append(part)
    names: list[str] = []
    for run in _RUN.findall(question):
        if _NUMBERED.fullmatch(run) and len(terms(run)) > 1:
            names.append(run)
    return AnyWord(question, None, tuple(quoted), tuple(names))


def exact_names(question: str) -> list[str]:
    """Return the names of a question that an answer has letter by letter.

    >>> exact_names("why E_QUOTA_4291 at 10:30 on host 10.0.3.47 for ann@example.org?")
    ['E_QUOTA_4291', '10.0.3.47', 'ann@example.org']
    """
    return [run for run in _RUN.findall(question) if _EXACT.fullmatch(run)]


def check_size(query: "str | Query") -> None:
    """Refuse a question or query over a limit, since its evaluation would take too long.

    Raises:
        InvalidInput: the question or query is over a limit above.
    """
    if isinstance(query, str):
        _check("The question", len(query), QUESTION_SIZE_MAX, "characters", "Shorten it.")
        return
    leaves = patterns = size = 0
    left: list[Query] = [query]
    while left:
        node = left.pop()
        if isinstance(node, And | Or):
            # Check before listing the parts: their number is not limited yet.
            _check("The query", leaves + len(node.parts), LEAVES_MAX, "parts", "Use fewer.")
            left += node.parts
            continue
        if isinstance(node, Not | Maybe):
            left.append(node.part)
            continue
        leaves += 1
        _check("The query", leaves, LEAVES_MAX, "parts", "Use fewer.")
        if isinstance(node, FilterLeaf):
            continue
        patterns += isinstance(node, Prefix | Wildcard)
        _check("The query", patterns, PATTERNS_MAX, "prefixes and wildcards", "Use fewer.")
        size += len(_text_of(node))
        _check("The query", size, QUESTION_SIZE_MAX, "characters", "Shorten it.")


def _check(subject: str, count: int, limit: int, unit: str, remedy: str) -> None:
    if count > limit:
        raise InvalidInput(f"{subject} has more than {limit:,} {unit}", remedy=remedy)


def _text_of(words: "Words") -> str:
    match words:
        case Term(text) | AnyWord(text) | Phrase(text) | Prefix(text) | Wildcard(text):
            return text


_EVERYTHING: Final = FilterLeaf(Filter())


def loosened(query: Query) -> Query:
    """Return a query as if every frame held every word; its filters and its `Not` stay.

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


def resolved(query: Query, now: datetime) -> Query:
    """Return a query with each time in words of its filters as an instant, relative to ``now``."""
    match query:
        case And(parts):
            return And(tuple(resolved(part, now) for part in parts))
        case Or(parts):
            return Or(tuple(resolved(part, now) for part in parts))
        case Not(part):
            return Not(resolved(part, now))
        case Maybe(part):
            return Maybe(resolved(part, now))
        case FilterLeaf(where):
            return FilterLeaf(where.resolved(now))
        case _:
            return query


def filters_of(query: Query) -> Iterator[Filter]:
    """Yield the filters of a query, from left to right."""
    match query:
        case And(parts) | Or(parts):
            for part in parts:
                yield from filters_of(part)
        case Not(part) | Maybe(part):
            yield from filters_of(part)
        case FilterLeaf(where):
            yield where
        case _:
            return


def has_words(query: Query) -> bool:
    """Return whether a query has a word, pattern or phrase to find."""
    return any(map(_has_words, words_of(query)))


def _has_words(words: Words) -> bool:
    match words:
        case Prefix() | Wildcard():
            return True
        case AnyWord(text):
            return bool(question_spans(text))
        case Term(text) | Phrase(text):
            return bool(word_spans(text))


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
