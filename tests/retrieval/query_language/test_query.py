"""The full language: what it means, and where it is wrong."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.errors import InvalidInput, QuerySyntaxError
from cerata.projections.columnar.relative_times import RelativeTime
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
)
from cerata.retrieval.query_language.parser import QUERY_SIZE_MAX, query

A, B, C = Term("a"), Term("b"), Term("c")


def where(**parts: Any) -> Query:
    return FilterLeaf(Filter(**parts))


def created(start: str | RelativeTime | None, end: str | RelativeTime | None) -> Query:
    return where(created=(start, end))


def has(path: str, value: str | int) -> Query:
    """Return the query of a value, which may be an item of a list."""
    return FilterLeaf(Filter(metadata={path: value}) | Filter(metadata={path: ("contains", value)}))


MEANINGS: dict[str, Query] = {
    "a": A,
    "a b": And((A, B)),
    "a AND b c": And((A, B, C)),
    "a OR b OR c": Or((A, B, C)),
    "a AND b OR c": Or((And((A, B)), C)),
    "(a OR b) c": And((Or((A, B)), C)),
    "NOT a": Not(A),
    "b NOT (a OR c)": And((B, Not(Or((A, C))))),
    "a AND NOT b": And((A, Not(B))),
    '"event log"': Phrase("event log"),
    'title:"event log"': Phrase("event log", Field.TITLE),
    "title:(a b)": And((Term("a", Field.TITLE), Term("b", Field.TITLE))),
    "text:a tags:b": And((Term("a", Field.TEXT), Term("b", Field.TAGS))),
    "inde* title:inde*": And((Prefix("inde"), Prefix("inde", Field.TITLE))),
    "h?w*d": Wildcard("h?w*d"),
    "put_frame 12:30 don't [x] a->b": And(
        tuple(map(Term, ("put_frame", "12:30", "don't", "[x]", "a->b")))
    ),
    '"NOT" and': And((Phrase("NOT"), Term("and"))),
    "tag:x": where(tags=["x"]),
    'tag:"two words" label:y:z': And((where(tags=["two words"]), where(labels=["y:z"]))),
    "kind:(note OR text)": Or((where(kind="note"), where(kind="text"))),
    "role:user a": And((where(role="user"), A)),
    "uri:file:///a": where(uri_prefix="file:///a"),
    'uri:"file:///a b"*': where(uri_prefix="file:///a b"),
    "scope.user_id:u1": where(scope={"user_id": "u1"}),
    "metadata.n:5": has("n", 5),
    'metadata.n:"5"': has("n", "5"),
    "metadata.b:true": has("b", True),
    "metadata.user.name:anna": has("user.name", "anna"),
    "metadata.n:>=1.5": where(metadata={"n": (">=", 1.5)}),
    "metadata.n:[1 TO 5}": FilterLeaf(
        Filter(metadata={"n": (">=", 1)}) & Filter(metadata={"n": ("<", 5)})
    ),
    "metadata.s:{a TO}": where(metadata={"s": (">", "a")}),
    "created:2026": created("2026-01-01", "2027-01-01"),
    "created:2026-01": created("2026-01-01", "2026-02-01"),
    "created:2026-01-01": created("2026-01-01", "2026-01-02"),
    'created:"2026-01-01T00:00:00Z"': created("2026-01-01", "2026-01-01T00:00:00.000001Z"),
    'created:<"2026-01-01T02:00:00+02:00"': created(None, "2026-01-01"),
    "created:[2026-01-01 TO 2026-01-02]": created("2026-01-01", "2026-01-03"),
    "created:yesterday": created("yesterday", RelativeTime("yesterday", "end")),
    'created:>"last week"': created(RelativeTime("last week", "end"), None),
    "created:[yesterday TO today]": created("yesterday", RelativeTime("today", "end")),
    "created:{2026-01-01 TO 2026-01-03}": created("2026-01-02", "2026-01-03"),
    "created:[2026-01-01 TO]": created("2026-01-01", None),
    "created:[ 2026-01-01 to 2026-01-02 ]": created("2026-01-01", "2026-01-03"),
    "created:[TO 2026-01-01}": created(None, "2026-01-01"),
    "created:>2026-01-01": created("2026-01-02", None),
    "created:<=2026-01-01": created(None, "2026-01-02"),
}

FAULTS = {
    "": ("empty", "its end"),
    "  ": ("empty", "character 1"),
    "(a OR b": ("not closed", "character 1"),
    "a) b": ("no opening bracket", "character 2"),
    "a ()": ("brackets are empty", "character 4"),
    'a "b': ("quote is not closed", "character 3"),
    "AND a": ("both sides", "character 1"),
    "a AND": ("both sides", "character 3"),
    "a OR OR b": ("both sides", "character 6"),
    "a (OR b)": ("both sides", "character 4"),
    "(a AND ) b": ("both sides", "character 4"),
    "a AND (b NOT )": ("after it", "character 10"),
    "NOT": ("after it", "character 1"),
    "NOT NOT a": ("after it", "character 1"),
    "x:a": ("'x' is not a name", "character 1"),
    "a scope.:b": ("not a name", "character 3"),
    "title: a": ("title: has no value", "character 7"),
    "title:": ("title: has no value", "its end"),
    "title:[a TO b]": ("no order", "character 7"),
    "tag:>a": ("no order", "character 5"),
    "[a TO b]": ("range has no name", "character 1"),
    "created:[a TO": ("incomplete", "character 9"),
    "created:[a TO b]": ("'a' is not a time", "character 9"),
    "created:[TO]": ("no end", "character 9"),
    "created:[2026 TO 2024]": ("before its start", "character 9"),
    "a metadata.n:NaN": ("cannot be compared", "character 14"),
    "metadata.b:>true": ("no order", "character 13"),
    "created:>": ("comparison has no value", "its end"),
    "created:2026-13": ("not a time", "character 9"),
    "created:soon": ("not a time", "character 9"),
    "created:03/04/2026": ("ambiguous", "character 9"),
    'created:"2026-01-01T10:00:00"': ("no zone", "character 9"),
    "a put_fr*": ("2 words", "character 9"),
    "*": ("not one word", "character 1"),
    "tag:a*": ("exact", "character 6"),
    "tag:a*b": ("no wildcards", "character 6"),
    '"a b"~3': ("no number", "character 6"),
    "a^2": ("no number", "character 2"),
    "(" * 65 + "a" + ")" * 65: ("more than 64", "character 65"),
    "a" * (QUERY_SIZE_MAX + 1): ("characters", "character 1"),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_a_query_means_this(text: str) -> None:
    assert query(text) == MEANINGS[text]


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:20] or "empty")
def test_a_fault_is_named_with_its_place(text: str) -> None:
    what, place = FAULTS[text]
    with pytest.raises(QuerySyntaxError, match=what) as caught:
        query(text)
    assert (caught.value.where or "").startswith(place)


_parts = st.sampled_from(
    (*'()[]{}"*?:<>~^ -+', "AND", "OR", "NOT", " TO ", "a", "tag:", "title:", "created:", "2026")
)


@given(st.lists(_parts, max_size=12).map("".join) | st.text(max_size=20))
def test_any_string_is_a_query_or_a_typed_error(text: str) -> None:
    # Whoosh's parser fails on some of these by itself; that must not reach a caller.
    try:
        found = query(text)
    except QuerySyntaxError as error:
        place = error.where
    else:
        place = "found" if isinstance(found, Query) else None
    assert place


@pytest.mark.parametrize(
    "part",
    ["[TO", "x[ to ", "[a ", "[ TO TO ", "a OR ", "(a) ", "*a", "NOT a ", '"a" ', "created:>", " "],
)
def test_no_query_takes_long_to_read(part: str) -> None:
    # Whoosh's expression for ranges took two minutes for the first of these.
    started = time.process_time()
    with contextlib.suppress(QuerySyntaxError):
        query(part * (QUERY_SIZE_MAX // len(part)))
    assert time.process_time() - started < 5


def test_only_a_string_is_parsed() -> None:
    with pytest.raises(InvalidInput, match="must be a string, not int"):
        query(5)  # type: ignore[arg-type]


def test_whooshs_parser_is_loaded_by_the_first_query() -> None:
    # It takes 50 ms, and most programs never write one.
    root = Path(__file__).parents[3]
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r});"
        "from cerata.retrieval.query_language.parser import query;"
        "name = 'whoosh.qparser'; assert name not in sys.modules;"
        "query('a'); assert name in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
