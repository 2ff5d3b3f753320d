"""The full query language: `cerata.query` parses a string into a tree, or names the first fault.

Built on Whoosh's query parser, loaded on first use (50 ms), which is lenient: it turns unreadable
input into words. So its flat list of tokens is checked first (`validation`), with places; then its
groups become the tree of `cerata.projections.fulltext.query`, and nothing of Whoosh leaks.

docs/search.md describes the language; at a glance::

    index memory            both words, anywhere          index OR memory, NOT annoy, (…)
    "event log"             these words in this order     title:"event log"  text:x  tags:x
    inde*  h?sw             words that start, or match
    tag:x  label:x  kind:x  role:x  track:x  uri:file:    exactly this; the start of a URI
    scope.user_id:u1        metadata.price:>=5            metadata.n:[1 TO 5]
    created:2026-01         created:[2026-01-01 TO 2026-02-01}   recorded:>2026-01-05
    created:yesterday       created:"last week"
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache, reduce
from typing import Final, Protocol, TypeAlias, cast

from cerata.engine.arguments import expect_string
from cerata.engine.errors import InvalidInput, QuerySyntaxError
from cerata.engine.events import ScopeValue
from cerata.engine.late import loading
from cerata.projections.columnar.relative_times import RelativeTime, interval_of, is_relative
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.filter_tests import Time
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.fields import Field
from cerata.projections.fulltext.query import (
    And,
    FilterLeaf,
    Not,
    Or,
    Phrase,
    Prefix,
    Query,
    Term,
    Wildcard,
    check_size,
)
from cerata.projections.fulltext.query_evaluation import folded_pattern, one_word

from .validation import FIELDS, TIMES, Node, check_tokens, is_filter, kind_of, wrong

QUERY_SIZE_MAX: Final = 4_096
"""Most characters of a query: the time to parse grows with their square."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for now in times that do not depend on now."""

TimePair: TypeAlias = tuple[Time | None, Time | None]


def query(text: str) -> Query:
    """Parse a string in the full language.

    All parts must hold unless OR is between them. Cost: about 0.5 ms; the first call loads
    Whoosh's parser.

    Args:
        text: the query, at most 4,096 characters

    >>> query("index OR inde*")
    Or(parts=(Term(word='index', field=None), Prefix(start='inde', field=None)))

    Raises:
        QuerySyntaxError: the query cannot be parsed; the message names the place.
    """
    expect_string("A query", text)
    if len(text) > QUERY_SIZE_MAX:
        raise wrong(
            text, 0, f"The query has {len(text):,} characters", f"Use at most {QUERY_SIZE_MAX:,}."
        )
    parser = _parser()
    tokens = parser.tag(text)
    check_tokens(text, tokens)
    try:
        tree = _Reader(text).read(parser.filterize(tokens))
        check_size(tree)
    except QuerySyntaxError:
        raise
    except InvalidInput as error:
        raise wrong(text, 0, error.what, error.remedy) from error
    return tree


_RANGE: Final = (
    r"(?P<open>[\[{])\s*(?:(?P<start>[^][{}]{1,200}?)\s+)?"
    r"[Tt][Oo](?:\s+(?P<end>[^][{}]{1,200}?))?\s*(?P<close>[]}])"
)
"""A range, bounded: Whoosh's expression takes minutes for brackets that never close."""


class _Parser(Protocol):
    """The used part of Whoosh's parser, which has no types."""

    def tag(self, text: str) -> Node: ...
    def filterize(self, nodes: Node) -> Node: ...


@cache
def _parser() -> _Parser:
    with loading("Whoosh's parser"):
        from whoosh import qparser
        from whoosh.qparser import plugins

    parser: object = qparser.QueryParser(
        "",
        None,
        plugins=[
            # A name starts a word, so that 12:30 and file:a stay whole.
            plugins.FieldsPlugin(r"(?:^|(?<=[\s(]))(?P<text>[A-Za-z_][\w.]*):"),
            plugins.WildcardPlugin(),
            plugins.PhrasePlugin(r'"(?P<text>[^"]*)"(?P<slop>)'),
            plugins.RangePlugin(re.compile(_RANGE)),
            plugins.GroupPlugin(),
            plugins.OperatorsPlugin(AndNot="", AndMaybe="", Require=""),
            plugins.GtLtPlugin(r"(?<=:)(?P<rel><=|>=|<|>)"),
        ],
    )
    return cast("_Parser", parser)


class _Reader:
    """Turns nodes of Whoosh that `check_tokens` accepted into a tree."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, node: Node) -> Query:
        kind = kind_of(node)
        if kind in ("AndGroup", "OrGroup"):
            return _joined([self.read(part) for part in node], And if kind == "AndGroup" else Or)
        if kind == "NotGroup":
            return Not(self.read(node[0]))
        name = node.fieldname
        if name is not None and is_filter(name):
            return self._filter(name, kind, node)
        field = None if name is None else FIELDS[name]
        return self._words(field, kind, node)

    def _words(self, field: Field | None, kind: str, node: Node) -> Query:
        text: str = node.text or ""
        try:
            if kind == "PrefixNode":
                one_word(text)
                return Prefix(text, field)
            if kind == "WildcardNode":
                folded_pattern(text)
                return Wildcard(text, field)
        except InvalidInput as error:
            raise wrong(self._text, node.startchar, error.what, error.remedy) from error
        return Phrase(text, field) if kind == "PhraseNode" else Term(text, field)

    # --- filters ---------------------------------------------------------------------------------

    def _filter(self, name: str, kind: str, node: Node) -> Query:
        try:
            return FilterLeaf(self._where(name, kind, node))
        except QuerySyntaxError:
            raise
        except InvalidInput as error:
            raise wrong(self._text, node.startchar, error.what, error.remedy) from error

    def _where(self, name: str, kind: str, node: Node) -> Filter:
        place = node.startchar
        if kind == "RangeNode":
            return self._range(name, node)
        if name in TIMES:
            return _of_time(name, node.text)
        if kind == "PrefixNode" and name != "uri":
            raise wrong(
                self._text, place, f"{name} is exact and takes no *", "Write the whole value."
            )
        if kind == "WildcardNode":
            raise wrong(self._text, place, f"{name} takes no wildcards", 'Quote it: "a*b".')
        value = node.text if kind == "PhraseNode" else _value(name, node.text)
        return _equal(name, value)

    def _range(self, name: str, node: Node) -> Filter:
        if not node.start and not node.end:
            raise wrong(self._text, node.startchar, "The range has no end", "Write [a TO b].")
        if name in TIMES:
            start = self._period(node.start, node.startchar) if node.start else None
            end = self._period(node.end, node.startchar) if node.end else None
            # Half-open: an excluded first period starts the range at its end, and an excluded
            # last period ends the range at its start.
            return _of_time(
                name,
                (
                    None if start is None else start[node.startexcl],
                    None if end is None else end[not node.endexcl],
                ),
            )
        key = name.removeprefix("metadata.")
        bounds = Filter()
        if node.start:
            above = ">" if node.startexcl else ">="
            bounds &= Filter(metadata={key: (above, _value(name, node.start))})
        if node.end:
            below = "<" if node.endexcl else "<="
            bounds &= Filter(metadata={key: (below, _value(name, node.end))})
        return bounds

    def _period(self, text: str, place: int) -> TimePair:
        """Return the times [start, end) of a year, month, day, instant or time in words."""
        if is_relative(text):
            return RelativeTime(text), RelativeTime(text, "end")
        try:
            start, end = interval_of(text, _EPOCH)
        except InvalidInput as error:
            raise wrong(self._text, place, error.what, error.remedy) from error
        return to_datetime(start), to_datetime(end)


def _joined(parts: Sequence[Query], group: type[And | Or] = And) -> Query:
    flat: list[Query] = []
    for part in parts:
        flat += part.parts if isinstance(part, group) else [part]
    return flat[0] if len(flat) == 1 else group(tuple(flat))


def _of_time(name: str, during: TimePair | str) -> Filter:
    match name:
        case "created":
            return Filter(created=during)
        case "recorded":
            return Filter(recorded=during)
        case _:
            return Filter(content=during)


def _equal(name: str, value: ScopeValue | float) -> Filter:
    """Return the filter of a name and a value; only scope and metadata take more than strings."""
    text = str(value)
    match name.split(".", 1):
        case ["scope", key]:
            return Filter(scope={key: text if isinstance(value, float) else value})
        case ["metadata", key]:
            # A list has the value, as the tags of a frame have a tag.
            has_item = Filter(metadata={key: ("contains", value)})
            return Filter(metadata={key: value}) | has_item
        case ["tag"]:
            return Filter(tags=[text])
        case ["label"]:
            return Filter(labels=[text])
        case ["kind"]:
            return Filter(kind=text)
        case ["role"]:
            return Filter(role=text)
        case ["track"]:
            return Filter(track=text)
        case _:
            return Filter(uri_prefix=text)


def _value(name: str, text: str) -> ScopeValue | float:
    """Return the meaning of an unquoted value: a number or bool of JSON, else the string."""
    if name.startswith(("scope.", "metadata.")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(value, bool | int | float):
            return value
    return text


# --- A query without words, as a filter: the form in which the command line takes filters ---------


def query_filter(text: str) -> Filter:
    """Return the filter that a query of tests alone describes.

    Args:
        text: A query, as `query` takes it, such as ``metadata.user.name:anna created:yesterday``.

    Raises:
        QuerySyntaxError: the query cannot be parsed.
        InvalidInput: the query has words, which are no test.
    """
    return _filter(query(text))


def _filter(tree: Query) -> Filter:
    match tree:
        case And(parts):
            return reduce(lambda left, right: left & right, map(_filter, parts))
        case Or(parts):
            return reduce(lambda left, right: left | right, map(_filter, parts))
        case Not(part):
            return ~_filter(part)
        case FilterLeaf(where):
            return where
        case _:
            raise InvalidInput(
                "A filter has tests such as tag:x or metadata.n:>5, and no words",
                remedy="Put the words into the question.",
            )
