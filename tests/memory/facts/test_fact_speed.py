"""The speed of facts, by wide ratios to SQLite or a scan in the same run: what must not rot.

`benchmarks.facts_bench` prints the figures themselves. Each guard is shown to fail where what makes
it fast is switched off.
"""

import random
import statistics
import sys
from collections.abc import Generator, Sequence
from datetime import timedelta
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import cerata
from benchmarks.beside_sqlite import START, Shape, assertions
from benchmarks.facts_bench import Tables
from cerata import Assertion, Store
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.columnar.columns import U64
from cerata.projections.columnar.hash_index import HashIndex, PairIndex, Rows
from cerata.projections.facts.history import Facts
from cerata.projections.facts.objects import ObjectKind
from cerata.projections.facts.reader import FactsAt
from cerata.projections.fulltext.analyzer import folded_name

from ...timing import seconds

pytestmark = [
    pytest.mark.unwatched("it measures"),
    pytest.mark.slow("compares times, which other programs on the machine change"),
]

SHAPE = Shape(facts=8_000, subjects=1_600, predicates=20, objects=160)
FACTS = assertions(SHAPE, random.Random(3))
BATCH = 1_000


# --- rows by key ---------------------------------------------------------------------------------


def index_ratio() -> float:
    """Return how often a look-up among 500,000 keys fits into a pass over them."""
    keys = np.random.default_rng(1).integers(0, 100_000, 500_000).astype(np.uint32)
    index = HashIndex()
    for wanted in range(40):
        index.find(keys, wanted)
    finding = seconds(lambda: [index.find(keys, wanted) for wanted in range(50)]) / 50
    passing = seconds(lambda: [np.flatnonzero(keys == wanted) for wanted in range(50)]) / 50
    return passing / finding


def test_a_look_up_passes_over_no_column() -> None:
    assert index_ratio() > 5


def test_a_look_up_that_passes_over_a_column_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def cover(index: HashIndex, keys: object) -> None:
        """Leave all rows where they are."""

    monkeypatch.setattr(HashIndex, "_cover", cover)
    assert index_ratio() < 5


# --- beside SQLite -------------------------------------------------------------------------------


@pytest.fixture
def store() -> Generator[Store]:
    with cerata.open(":memory:") as opened:
        for at in range(0, len(FACTS), BATCH):
            opened.graph.assert_many(FACTS[at : at + BATCH])
        yield opened


@pytest.fixture
def tables(tmp_path: Path) -> Generator[Tables]:
    made = Tables(str(tmp_path / "facts.sqlite"))
    made.create()
    for number, at in enumerate(range(0, len(FACTS), BATCH)):
        made.add(1 + at, number, FACTS[at : at + BATCH])
    yield made
    made.close()


def question_ratio(store: Store, tables: Tables, count: int = 400) -> float:
    """Return our time for a subject and predicate at some n and instant, over SQLite's."""
    dice = random.Random(4)
    asked = [
        (dice.choice(FACTS), dice.randrange(1, len(FACTS)), START + timedelta(days=day))
        for day in range(count)
    ]

    def ours() -> list[list[int]]:
        return [
            [fact.id for fact in store.at(n, valid_at=when).facts(one.subject, one.predicate)]
            for one, n, when in asked
        ]

    def theirs() -> list[list[int]]:
        where = "subject = ? AND predicate = ?"
        return [
            [fact.id for fact in tables.find(where, (one.subject, one.predicate), n, when)]
            for one, n, when in asked
        ]

    assert ours() == theirs()
    return seconds(ours) / seconds(theirs)


def test_a_question_takes_a_few_times_what_sqlite_takes(store: Store, tables: Tables) -> None:
    assert question_ratio(store, tables) < 8


def test_a_question_that_looks_at_all_facts_is_seen(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_subject(
        facts: FactsAt, name: str, predicates: object = None, *, folded: bool = False
    ) -> list[int]:
        assert folded
        return [row for row in range(facts.row_count) if facts.subject_of(row) == name]

    monkeypatch.setattr(FactsAt, "_of_subject", of_subject)
    assert question_ratio(store, tables, count=10) > 8


def asserting_ratio(size: int) -> float:
    """Return our time to assert facts in batches of a size, folded, over SQLite's in memory."""
    few = FACTS[:4_000]

    def ours() -> None:
        with cerata.open(":memory:") as opened:
            for at in range(0, len(few), size):
                opened.graph.assert_many(few[at : at + size])
            opened.facts(few[0].subject)

    def theirs() -> None:
        made = Tables(":memory:")
        made.create()
        for number, at in enumerate(range(0, len(few), BATCH)):
            made.add(1 + at, number, few[at : at + BATCH])
        made.close()

    return seconds(ours) / seconds(theirs)


def test_asserting_in_batches_takes_a_few_times_what_sqlite_takes() -> None:
    # Whatever else the machine does hits one of the two: the best of three rounds counts.
    assert min(asserting_ratio(BATCH) for _ in range(3)) < 11


def test_asserting_one_by_one_is_seen() -> None:
    assert asserting_ratio(1) > 11


# --- corrections ---------------------------------------------------------------------------------


def correcting_ratio(size: int) -> float:
    """Return the time of five corrections of each fact, over that of asserting as many."""
    plain = [Assertion(f"person:{number}", "is", "x") for number in range(100)]

    def appended() -> None:
        with cerata.open(":memory:") as opened:
            for turn in range(6):
                said(opened, plain, turn)
            opened.facts("person:0")

    def corrected() -> None:
        with cerata.open(":memory:") as opened:
            ids: Sequence[int] = said(opened, plain, 0)
            for turn in range(1, 6):
                found: list[int] = []
                for at in range(0, len(plain), size):
                    with opened.transaction() as gathered:
                        opened.graph.retract_many(ids[at : at + size])
                        said(opened, plain[at : at + size], turn)
                    found += gathered.receipt.ids
                ids = found
            assert [fact.object for fact in opened.facts("person:0")] == ["5"]

    return seconds(corrected) / seconds(appended)


def said(store: Store, facts: Sequence[Assertion], turn: int) -> Sequence[int]:
    return store.graph.assert_many(
        [Assertion(one.subject, one.predicate, str(turn)) for one in facts]
    ).ids


def test_correcting_in_batches_costs_a_few_times_what_asserting_does() -> None:
    assert statistics.median(correcting_ratio(100) for _ in range(3)) < 4


def test_correcting_one_by_one_is_seen() -> None:
    assert correcting_ratio(1) > 4


# --- the steps of a look-up ----------------------------------------------------------------------


def call_count(store: Store) -> int:
    """Return the calls of Python functions that a look-up by subject and predicate makes."""
    fact = FACTS[0]
    count = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    def look_up() -> None:
        store.at(4_000, valid_at=START).facts(fact.subject, "predicate-x")
        store.at(4_000, valid_at=START).facts(fact.subject, fact.predicate, valid_at=_NEVER)

    for _ in range(40):
        look_up()
    sys.setprofile(profile)
    try:
        look_up()
    finally:
        sys.setprofile(None)
    return count


_NEVER = START - timedelta(days=1)


def test_a_look_up_makes_few_calls(store: Store) -> None:
    """Measured 74; 200 before codes of names were cached, and links read if there are any."""
    assert call_count(store) < 82


def test_a_look_up_that_folds_its_names_again_is_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alike(facts: Facts, name: str) -> list[int]:
        return facts.columns.folded_names.find(folded_name(name))

    monkeypatch.setattr(Facts, "names_alike", alike)
    assert call_count(store) > 85


# --- many facts of one entity --------------------------------------------------------------------


def pair_ratio() -> float:
    """Return the time to find a rare predicate of a common object, over that to find a subject."""
    with cerata.open(":memory:") as opened:
        for at in range(0, 50_000, 2_000):
            batch = [Assertion(f"person:{at + number}", "is", "active") for number in range(2_000)]
            few = [Assertion(f"team:{at}", "was", "active")] if at < 20_000 else []
            opened.graph.assert_many([*batch, *few])
        facts = snapshot_of(opened).facts_at
        value = ObjectKind.STRING, "active"
        for _ in range(40):
            assert len(facts.find(None, "was", value)) == 10
            assert len(facts.find("person:7")) == 1
        rare = seconds(lambda: [facts.find(None, "was", value) for _ in range(50)])
        return rare / seconds(lambda: [facts.find("person:7") for _ in range(50)])


def test_a_rare_predicate_of_a_common_object_costs_its_own_facts() -> None:
    assert pair_ratio() < 8


def test_a_look_up_that_reads_all_facts_of_an_object_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rows_with(index: PairIndex, keys: U64, key: int, *_: object) -> Rows:
        return index.rows(keys, key)

    monkeypatch.setattr(PairIndex, "rows_with", rows_with)
    assert pair_ratio() > 8
