"""Questions and filters over a limit are refused by every read that takes one."""

from collections.abc import Callable

import pytest

import cerata
from cerata import Filter, Store
from cerata.engine.errors import InvalidInput, QuerySyntaxError
from cerata.projections.frames.filters import TESTS_MAX
from cerata.projections.fulltext.query import (
    LEAVES_MAX,
    PATTERNS_MAX,
    QUESTION_SIZE_MAX,
    And,
    FilterLeaf,
    Or,
    Prefix,
    Query,
    Term,
)

READS: list[Callable[[Store, str], object]] = [
    lambda store, question: store.search(question),
    lambda store, question: store.recall(question),
    lambda store, question: store.graph.search(question),
    lambda store, question: store.files.highlights("a", question),
    lambda store, question: store.at("HEAD").search(question),
]


@pytest.mark.parametrize("read", READS)
def test_a_question_has_at_most_so_many_characters(
    store: Store, read: Callable[[Store, str], object]
) -> None:
    store.put_frame("a")
    store.assert_fact("a", "is", "b")
    read(store, "a " * (QUESTION_SIZE_MAX // 2))
    with pytest.raises(InvalidInput, match=r"more than 32,768 characters. Shorten it"):
        read(store, "a" * (QUESTION_SIZE_MAX + 1))


@pytest.mark.parametrize(
    ("fits", "over", "what"),
    [
        (And((Term("a"),) * LEAVES_MAX), And((Term("a"),) * (LEAVES_MAX + 1)), "4,096 parts"),
        (
            Or((Prefix("a"),) * PATTERNS_MAX),
            Or((Prefix("a"),) * (PATTERNS_MAX + 1)),
            "64 prefixes and wildcards",
        ),
        (
            Term("a" * QUESTION_SIZE_MAX),
            Or((Term("a" * QUESTION_SIZE_MAX), Term("b"))),
            "32,768 characters",
        ),
        (FilterLeaf(Filter()), Or((FilterLeaf(Filter()),) * (LEAVES_MAX + 1)), "4,096 parts"),
    ],
    ids=["parts", "patterns", "characters", "filters"],
)
def test_a_query_that_was_built_has_limits(
    store: Store, fits: Query, over: Query, what: str
) -> None:
    store.put_frame("a")
    store.search(fits)
    reads: list[Callable[[], object]] = [
        lambda: store.search(over),
        lambda: store.recall(over),
        lambda: store.files.highlights("a", over),
    ]
    for read in reads:
        with pytest.raises(InvalidInput, match=what):
            read()


def test_a_query_in_the_full_language_has_so_many_patterns() -> None:
    """Each may look at every word there is: 1,000 took a minute among 20,000 words."""
    cerata.query("a* " * PATTERNS_MAX)
    with pytest.raises(QuerySyntaxError, match="64 prefixes and wildcards"):
        cerata.query("*a* " * (PATTERNS_MAX + 1))


def test_a_filter_has_at_most_so_many_tests(store: Store) -> None:
    store.put_frame("word", metadata={"n": 5})
    wide = Filter(metadata={"n": ("in", list(range(TESTS_MAX)))})
    assert [hit.id for hit in store.search("word", where=wide)] == [1]
    makes: list[Callable[[], Filter]] = [
        lambda: wide | Filter(kind="note"),
        lambda: wide & ~Filter(kind="note"),
        lambda: Filter(tags=["a"] * (TESTS_MAX + 1)),
        lambda: Filter(kind=["a"] * (TESTS_MAX + 1)),
    ]
    for make in makes:
        with pytest.raises(InvalidInput, match=r"10,001 tests; the limit is 10,000"):
            make()
