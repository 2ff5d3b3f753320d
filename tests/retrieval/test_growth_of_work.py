"""Work on questions and texts grows with their length, for inputs made to make it grow faster.

Each function gets hostile inputs of n and of 4n characters. Steps are bytecodes, so that no clock
decides. Regular expressions run in C, where no step can be counted: those of unbounded input are
tried at a larger size, and a clock tells a square (16 times) from a line by a wide margin.
"""

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Final

import pytest

import cerata
from cerata.agents.turns.lexicon import english_lexicon, topics_of
from cerata.memory.facts.english import EnglishFacts
from cerata.memory.search.request import SearchRequest
from cerata.memory.values.text_diff import text_diff
from cerata.projections.fulltext.analyzer import spans, terms, words
from cerata.projections.fulltext.query import plain
from cerata.retrieval.chunking import split_passages, split_sections
from cerata.retrieval.context.duplicates import Duplicates, folded
from cerata.retrieval.context.extracts import best_span, by_worth, ranked_rows, sentences
from cerata.retrieval.context.imitation import marked, on_one_line
from cerata.retrieval.query_classifier import classify
from cerata.retrieval.question_analysis import analysis_of
from cerata.retrieval.question_times import times_in
from cerata.retrieval.ranking.profile import profile_of
from cerata.retrieval.speaker_names import name_places, named_roles
from cerata.retrieval.tables import find_tables
from cerata.retrieval.text_dates import dates_in
from cerata.retrieval.tokenizer import tokenizer
from cerata.retrieval.word_kinds import proper_names, proper_nouns

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
if TYPE_CHECKING:
    from _typeshed import TraceFunction

Work = Callable[[str], object]

SIZE: Final = 400
GROWTH: Final = 6.0
"""Most steps at 4n for one at n: a line is 4, a square 16."""

_UNITS: Final = (
    *("Aa ", "Anna Rossi ", "A a ", "aB1 ", "may 2023 ", "last week ", "on 03/04/2024 ", "12-"),
    *(
        '"a" ',
        '"',
        "\u201c",
        "\u2018(",
        "'s ",
        "how  ",
        "what is the reason ",
        "#1 ",
        "[#1 · ",
        "> - 1. ",
    ),
    *("a.", "a. ", "!”) ", "|", "|-|\n", "| a | b |\n|---|---|\n", "a\n", "\n", "\n ", "# A\n"),
    *("```\n", "@", "a@", "a/", "a_", "a-1 ", "1.2.", "é", "ß ", "日本", "\u200b", "\u202e", "\t"),
    *("I remember you. ", "Anna lives in Rome. ", "Anna is a b of ", "Anna is the ", "no! "),
)


def _texts(size: int) -> Iterator[str]:
    """Yield hostile texts of a size: runs of a unit, and runs of distinct words."""
    for unit in _UNITS:
        yield (unit * size)[:size]
    yield " ".join(f"Name{number}" for number in range(size // 8))
    yield " ".join(f"Ann X{number}" for number in range(size // 8))
    yield "\n".join(f"line {number // 2}" for number in range(size // 8))


def steps(work: Callable[..., object], *arguments: object) -> int:
    """Return the bytecodes that a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> "TraceFunction":
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(*arguments)
    finally:
        sys.settrace(before)
    return count


def _by_worth(text: str) -> object:
    marks = [(span.start, span.end) for span in spans(text)]
    tables = find_tables(text)
    start, _ = best_span(text, marks, tables)
    rows = [ranked_rows(text, marks, table) for table in tables]
    return rows, list(by_worth(text, sentences(text, start, tables), marks, tables))


def _duplicates(text: str) -> object:
    duplicates = Duplicates(0.9)
    texts = text, text[1:]
    return [duplicates.add(place, text, folded(text)) for place, text in enumerate(texts)]


def _request(text: str) -> SearchRequest:
    return SearchRequest(
        query=text,
        k=1,
        mode="hybrid",
        profile=profile_of("default"),
        where=None,
        embedding=None,
        space=None,
        approximate=False,
        token_embedding=None,
        tokens_space=None,
        rerank=None,
    )


def _roles(text: str) -> object:
    roles = [*text.split(" ")[:20], text, *(f"Ann X{number}" for number in range(len(text) // 40))]
    return named_roles(text, roles), name_places(text, roles)


def _signs(text: str) -> object:
    folded = words(text)
    return english_lexicon().counts(text, folded, is_users=True), topics_of(folded, ())


FUNCTIONS: Final[dict[str, Work]] = {
    "proper nouns": proper_nouns,
    "proper names": proper_names,
    "question": lambda text: analysis_of(text, _NOW),
    "times": times_in,
    "kind": classify,
    "plain query": lambda text: terms(str(plain(text))),
    "request": _request,
    "speakers": _roles,
    "dates": lambda text: dates_in(text, 0),
    "signs and topics": _signs,
    "excerpt": _by_worth,
    "imitation": lambda text: marked(text, headings=True, turns=True, dates=True),
    "one line": on_one_line,
    "duplicates": _duplicates,
    "tables": find_tables,
    "sections": split_sections,
    "passages": split_passages,
    "facts": lambda text: list(EnglishFacts().extract(text)),
    "tokens": lambda text: tokenizer().count(text),
    "difference": lambda text: text_diff(text, text[::-1]),
    "difference of words": lambda text: text_diff(text, text.replace("a", "b")),
}
"""Every function of the analysis of questions and texts."""

ALLOWED: Final = {"difference": 4_000_000, "difference of words": 4_000_000}
"""Steps of the small parts that are compared all with all, and of the first use of a pattern."""

SIZES: Final = {"passages": 800}
"""A shorter text is a passage, and is not split."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_grow_with_the_text(name: str) -> None:
    """A question of 4 times the words costs about 4 times the steps."""
    function = FUNCTIONS[name]
    for text in _texts(6_000):
        function(text)
    size = SIZES.get(name, SIZE)
    for small, large in zip(_texts(size), _texts(4 * size), strict=True):
        few, many = steps(function, small), steps(function, large)
        assert many <= GROWTH * few + ALLOWED.get(name, 2_000), (small[:20], few, many)


def _recall(text: str) -> int:
    with cerata.open(":memory:") as store:
        agent = cerata.Agent(store, "w")
        with agent.session("s") as session:
            session.exchange(text, "ok")
            session.exchange("hello Anna", "ok")
            return steps(lambda: session.recall(text))


def _search(text: str) -> int:
    quoted = f'"{text.replace(chr(34), " ")}"'
    with cerata.open(":memory:") as store:
        store.put_frame(text, role="Anna Aa")
        store.graph.name("Anna Rossi", aliases=["Anna Aa"])
        store.assert_fact("Anna Rossi", "lives in", "Rome")

        def work() -> None:
            for question in (text, quoted):
                hits = store.search(question)
                assert hits is not None
                for hit in hits:
                    store.history.explain(hit)
                store.files.highlights(text, question)
                store.recall(question, max_tokens=200)
                store.graph.search(question)

        return steps(work)


STORED: Final = (
    "Aa ",
    "Anna Rossi ",
    "may 2023 ",
    "a1 b1 ",
    "| a | b |\n|---|---|\n",
    "日本",
    "1.2.",
)


@pytest.mark.parametrize("call", [_recall, _search])
@pytest.mark.parametrize("unit", STORED)
def test_steps_of_a_question_grow_with_it(call: Callable[[str], int], unit: str) -> None:
    """`Session.recall` named each term of a question by a further pass over the question."""
    call(unit)
    few, many = call((unit * 200)[:200]), call((unit * 800)[:800])
    assert many <= GROWTH * few, (few, many)


def test_steps_of_a_query_grow_with_it() -> None:
    """Each word of a query in the full language was looked up at each word of a text."""
    text = "aa ab " * 2_000
    with cerata.open(":memory:") as store:
        store.put_frame(text)

        def work(count: int) -> int:
            question = cerata.query(" OR ".join(f'"aa ab a{number}"' for number in range(count)))
            return steps(lambda: store.files.highlights(text, question))

        few, many = work(40), work(160)
    assert many <= 1.5 * few, (few, many)


def _seconds(function: Work, text: str) -> float:
    # Without a full collection before each try, which would take longer than the tests.
    started = time.process_time()
    function(text)
    return time.process_time() - started


PATTERNS: Final = (
    "imitation",
    "excerpt",
    "sections",
    "facts",
    "proper nouns",
    "one line",
    "tables",
)


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_takes_quadratic_time(name: str) -> None:
    """Steps in C have no count: 16 times the text takes far less than 256 times the seconds."""
    function = FUNCTIONS[name]
    for unit in _UNITS:
        few, many = (_seconds(function, unit * (size // len(unit))) for size in (2_000, 32_000))
        assert many <= 64 * few + 0.05, (unit, few, many)
