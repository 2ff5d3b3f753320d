"""What makes a query wrong, and where: Whoosh's parser reads anything, so this is checked first.

Owns the names that may stand before a colon, and the check of a query's flat tokens: brackets and
quotes that close, operators with something on both sides, names followed by what they can have.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from cerata.engine.errors import QuerySyntaxError
from cerata.projections.fields import Field

FIELDS: Final = {field.name.lower(): field for field in Field}
TIMES: Final = ("created", "recorded", "content")
FILTERS: Final = ("tag", "label", "kind", "role", "track", "uri", *TIMES)
OPEN_FILTERS: Final = ("scope.", "metadata.")

DEPTH_MAX: Final = 64
"""Most brackets within each other."""

_NUMBERED: Final = re.compile(r"[~^][\d.]*$")

_OPERANDS: Final = frozenset(("WordNode", "PhraseNode", "RangeNode", "WildcardNode"))
_OPERATOR_KINDS: Final = frozenset(("InfixOperator", "PrefixOperator"))
_OPERATORS: Final = frozenset(("AND", "OR", "NOT"))


class Node(Protocol):
    """What is used of Whoosh's nodes, which have no types; each kind has what it needs of it.

    ``startchar`` and ``endchar`` are places in the query. A group is iterated over.
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
    """Return the name of a node's class, which says what it is."""
    return type(node).__name__


@dataclass(frozen=True, slots=True)
class _Token:
    """A node, flat: its kind, its characters [start, end) of the query, its text or name."""

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
    """Tell whether a name is of something exact, not of words."""
    return name in FILTERS or name.startswith(OPEN_FILTERS)


def wrong(text: str, place: int, what: str, remedy: str | None) -> QuerySyntaxError:
    """Return the error for a place in a query, counted from 0."""
    shown = text[place : place + 24]
    where = f"character {place + 1}, at {shown!r}" if shown else "its end"
    return QuerySyntaxError(what, where=where, remedy=remedy)


def check_tokens(text: str, tokens: Node) -> None:
    """Raise `QuerySyntaxError` unless Whoosh's flat tokens are a query.

    Whoosh leaves out words that are wrong in their place; so the first fault ends it here.
    """
    found = [_token(node) for node in tokens]
    if all(token.kind == "Whitespace" for token in found):
        raise wrong(text, 0, "The query is empty", "Write at least one word.")
    opened: list[int] = []
    before = _NONE
    # What stands at once after it, spaces included: a name's value may not be set apart.
    for token, after in zip(found, [*found[1:], _NONE], strict=True):
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
                    f"More than {DEPTH_MAX} brackets within each other",
                    "Write fewer.",
                )
        case "CloseBracket":
            _check_close(text, token, before, opened)
        case _:
            pass


def _lonely(text: str, token: _Token) -> QuerySyntaxError:
    word = text[token.start : token.end]
    sides = "something after it" if word == "NOT" else "something on both sides"
    return wrong(text, token.start, f"{word} needs {sides}", "In quotes it is a word.")


def _check_close(text: str, token: _Token, before: _Token, opened: list[int]) -> None:
    if not opened:
        raise wrong(text, token.start, "A bracket closes that was not opened", "Remove it.")
    opened.pop()
    if before.kind == "OpenBracket":
        raise wrong(text, token.start, "There is nothing in the brackets", "Remove them.")
    if before.kind in _OPERATOR_KINDS:
        raise _lonely(text, before)


def _check_word(text: str, token: _Token, before: _Token) -> None:
    word = token.text
    if word in _OPERATORS:
        raise _lonely(text, token)
    if '"' in word:
        place = token.start + word.index('"')
        raise wrong(text, place, "A quote is not closed", "Add its partner.")
    if before.kind == "FieldnameNode" and word[0] in "[{":
        raise wrong(text, token.start, "The range is not whole", "Write [a TO b] or {a TO b}.")
    if number := _NUMBERED.search(word):
        place = token.start + number.start()
        raise wrong(text, place, "A word or phrase has no number", "Quote it, or leave it out.")


def _check_name(text: str, token: _Token, after: _Token) -> None:
    name = token.text
    if not (name in FIELDS or is_filter(name)) or name in OPEN_FILTERS:
        known = ", ".join((*FIELDS, *FILTERS, *(f"{start}NAME" for start in OPEN_FILTERS)))
        near = difflib.get_close_matches(name, [*FIELDS, *FILTERS], n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        remedy = f"{meant}Known are {known}; in quotes it is a word."
        raise wrong(text, token.start, f"{name!r} is not a name", remedy)
    if after.kind not in _OPERANDS | {"OpenBracket", "GtLtNode"}:
        raise wrong(text, token.end, f"Nothing stands after {name}:", "Leave no space.")


def _check_range(text: str, token: _Token, before: _Token) -> None:
    if before.kind != "FieldnameNode":
        remedy = "Say what it is of: created:[a TO b]."
        raise wrong(text, token.start, "A range of nothing", remedy)
    if not _is_ordered(before.text):
        raise wrong(text, token.start, f"{before.text} has no order", "Name a single value.")


def _check_comparison(text: str, token: _Token, before: _Token, after: _Token) -> None:
    if not _is_ordered(before.text):
        raise wrong(text, token.start, f"{before.text} has no order", "Leave the comparison out.")
    if after.kind not in ("WordNode", "PhraseNode"):
        raise wrong(text, token.end, "A comparison with nothing", "Leave no space.")


def _is_ordered(name: str) -> bool:
    return name in TIMES or name.startswith("metadata.")
