"""Faults of a query, with their places: Whoosh's parser accepts anything, so this check runs first.

Owns the names before a colon, and the check of a query's flat tokens: brackets and quotes close,
operators have operands, names have values of their kind.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from cerata.engine.errors import QuerySyntaxError
from cerata.projections.fulltext.fields import Field

FIELDS: Final = {field.name.lower(): field for field in Field}
TIMES: Final = ("created", "recorded", "content")
FILTERS: Final = ("tag", "label", "kind", "role", "track", "uri", *TIMES)
OPEN_FILTERS: Final = ("scope.", "metadata.")

DEPTH_MAX: Final = 64
"""Most nested brackets."""

_NUMBERED: Final = re.compile(r"[~^][\d.]*$")

_OPERANDS: Final = frozenset(("WordNode", "PhraseNode", "RangeNode", "WildcardNode"))
_OPERATOR_KINDS: Final = frozenset(("InfixOperator", "PrefixOperator"))
_OPERATORS: Final = frozenset(("AND", "OR", "NOT"))


class Node(Protocol):
    """The used part of Whoosh's nodes, which have no types; each kind has some of these members.

    ``startchar`` and ``endchar`` are places in the query. A group is iterable.
    """

    startchar: int
    endchar: int
    text: str
    fieldname: str | None
    start: str | None
    end: str | None
    startexcl: bool
    endexcl: bool

    def __iter__(self) -> "Iterator[Node]": ...
    def __getitem__(self, index: int) -> "Node": ...


def kind_of(node: Node) -> str:
    """Return the name of a node's class, which is its kind."""
    return type(node).__name__


@dataclass(frozen=True, slots=True)
class _Token:
    """A flat node: its kind, its characters [start, end) of the query, its text or name."""

    kind: str
    start: int
    end: int
    text: str


_NONE: Final = _Token("", 0, 0, "")


def _token(node: Node) -> _Token:
    is_name = kind_of(node) == "FieldnameNode"
    text = node.fieldname if is_name else getattr(node, "text", "")
    return _Token(kind_of(node), node.startchar, node.endchar, text or "")


def is_filter(name: str) -> bool:
    """Return whether a name is of an exact value, not of words."""
    return name in FILTERS or name.startswith(OPEN_FILTERS)


def wrong(text: str, place: int, what: str, remedy: str | None) -> QuerySyntaxError:
    """Return the error for a place in a query, an index from 0."""
    excerpt = text[place : place + 24]
    where = f"character {place + 1}, at {excerpt!r}" if excerpt else "its end"
    return QuerySyntaxError(what, where=where, remedy=remedy)


def check_tokens(text: str, tokens: Node) -> None:
    """Raise `QuerySyntaxError` unless Whoosh's flat tokens are a query.

    Whoosh drops misplaced words, so the first fault is raised.
    """
    flat = [_token(node) for node in tokens]
    if all(token.kind == "Whitespace" for token in flat):
        raise wrong(text, 0, "The query is empty", "Write at least one word.")
    opened: list[int] = []
    before = _NONE
    # The next token, spaces included: no space may separate a name from its value.
    for token, after in zip(flat, [*flat[1:], _NONE], strict=True):
        if token.kind != "Whitespace":
            _check(text, token, before, after, opened)
            before = token
    if before.kind in _OPERATOR_KINDS:
        raise _lonely(text, before)
    if opened:
        raise wrong(text, opened[-1], "A bracket is not closed", "Add its ')'.")


def _check(text: str, token: _Token, before: _Token, after: _Token, opened: list[int]) -> None:
    match token.kind:
        case "WordNode":
            _check_word(text, token, before)
        case "FieldnameNode":
            _check_name(text, token, after)
        case "RangeNode":
            _check_range(text, token, before)
        case "GtLtNode":
            _check_comparison(text, token, before, after)
        case "InfixOperator" if before.kind not in _OPERANDS | {"CloseBracket"}:
            raise _lonely(text, token)
        case "PrefixOperator" if before.kind == "PrefixOperator":
            raise _lonely(text, before)
        case "OpenBracket":
            opened.append(token.start)
            if len(opened) > DEPTH_MAX:
                raise wrong(
                    text,
                    token.start,
                    f"The query has more than {DEPTH_MAX} nested brackets",
                    "Use fewer.",
                )
        case "CloseBracket":
            _check_close(text, token, before, opened)
        case _:
            pass


def _lonely(text: str, token: _Token) -> QuerySyntaxError:
    word = text[token.start : token.end]
    sides = "an operand after it" if word == "NOT" else "operands on both sides"
    return wrong(text, token.start, f"{word} needs {sides}", "Quote it to search for the word.")


def _check_close(text: str, token: _Token, before: _Token, opened: list[int]) -> None:
    if not opened:
        raise wrong(text, token.start, "A closing bracket has no opening bracket", "Remove it.")
    opened.pop()
    if before.kind == "OpenBracket":
        raise wrong(text, token.start, "The brackets are empty", "Remove them.")
    if before.kind in _OPERATOR_KINDS:
        raise _lonely(text, before)


def _check_word(text: str, token: _Token, before: _Token) -> None:
    word = token.text
    if word in _OPERATORS:
        raise _lonely(text, token)
    if '"' in word:
        place = token.start + word.index('"')
        raise wrong(text, place, "A quote is not closed", "Add the closing quote.")
    if before.kind == "FieldnameNode" and word[0] in "[{":
        raise wrong(text, token.start, "The range is incomplete", "Write [a TO b] or {a TO b}.")
    if number := _NUMBERED.search(word):
        place = token.start + number.start()
        raise wrong(
            text, place, "A word or phrase takes no number", "Quote it, or remove the number."
        )


def _check_name(text: str, token: _Token, after: _Token) -> None:
    name = token.text
    if not (name in FIELDS or is_filter(name)) or name in OPEN_FILTERS:
        names = ", ".join((*FIELDS, *FILTERS, *(f"{start}NAME" for start in OPEN_FILTERS)))
        near = difflib.get_close_matches(name, [*FIELDS, *FILTERS], n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        remedy = f"{meant}Use one of {names}; or quote it to search for the word."
        raise wrong(text, token.start, f"{name!r} is not a name", remedy)
    if after.kind not in _OPERANDS | {"OpenBracket", "GtLtNode"}:
        raise wrong(text, token.end, f"{name}: has no value", "Remove the space.")


def _check_range(text: str, token: _Token, before: _Token) -> None:
    if before.kind != "FieldnameNode":
        remedy = "Write a name before it: created:[a TO b]."
        raise wrong(text, token.start, "The range has no name", remedy)
    if not _is_ordered(before.text):
        raise wrong(text, token.start, f"{before.text} has no order", "Write a single value.")


def _check_comparison(text: str, token: _Token, before: _Token, after: _Token) -> None:
    if not _is_ordered(before.text):
        raise wrong(text, token.start, f"{before.text} has no order", "Remove the comparison.")
    if after.kind not in ("WordNode", "PhraseNode"):
        raise wrong(text, token.end, "The comparison has no value", "Remove the space.")


def _is_ordered(name: str) -> bool:
    return name in TIMES or name.startswith("metadata.")
