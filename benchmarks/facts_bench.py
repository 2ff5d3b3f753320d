"""Facts beside SQLite tables in one run: asserting, opening, and every kind of look-up.

``python -m benchmarks.facts_bench`` takes about ten minutes for 1,000,000 facts; ``--facts N`` sets
another number. SQLite has a table with a covering index for each kind of look-up, in WAL mode with
a cache for the whole file, and returns the same `cerata.Fact` values, built from rows.
"""

import gc
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import cerata
from cerata import Assertion, Entity, Fact, Period
from cerata.projections.columnar.times import to_datetime, to_microseconds
from cerata.projections.core.projection import Projection
from cerata.projections.facts.projection import FactsProjection

from .beside_sqlite import (
    BATCH,
    DAYS,
    OPEN,
    START,
    Shape,
    asked_for,
    assertions,
    connected,
    entity_of,
    percentiles,
    report,
    report_machine,
    report_times,
    timed,
)

# --- SQLite --------------------------------------------------------------------------------------

_SCHEMA = """
CREATE TABLE fact (
    id INTEGER PRIMARY KEY, subject TEXT, predicate TEXT, object TEXT,
    valid_from INTEGER, valid_to INTEGER, known_from INTEGER, known_to INTEGER,
    recorded INTEGER, retracted INTEGER, confidence REAL, source TEXT
);
CREATE INDEX by_subject ON fact (
    subject, predicate, known_from, known_to, valid_from, valid_to,
    object, recorded, retracted, confidence, source
);
CREATE INDEX by_object ON fact (
    object, predicate, known_from, known_to, valid_from, valid_to,
    subject, recorded, retracted, confidence, source
);
"""
_INSERT: Final = f"INSERT INTO fact VALUES ({', '.join('?' * 12)})"  # noqa: S608 - no values
_COLUMNS: Final = (
    "id, subject, predicate, object, valid_from, valid_to, recorded, retracted, confidence, source"
)
_BOTH_CLOCKS = "known_from <= ? AND known_to > ? AND valid_from <= ? AND valid_to > ?"


class Tables:
    """The same facts in SQLite tables."""

    def __init__(self, path: str) -> None:
        self._database = connected(path)

    def create(self) -> None:
        self._database.executescript(_SCHEMA)

    def add(self, first_id: int, recorded: int, batch: Sequence[Assertion]) -> None:
        rows = [
            (
                first_id + place,
                fact.subject,
                fact.predicate,
                entity_of(fact).name,
                to_microseconds(fact.valid_from or START),
                OPEN if fact.valid_to is None else to_microseconds(fact.valid_to),
                first_id + place,
                OPEN,
                recorded,
                None,
                fact.confidence,
                fact.source,
            )
            for place, fact in enumerate(batch)
        ]
        self._database.executemany(_INSERT, rows)
        self._database.commit()

    def find(self, where: str, bound: tuple[object, ...], n: int, when: datetime) -> list[Fact]:
        instant = to_microseconds(when)
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM fact WHERE {where} AND {_BOTH_CLOCKS}",  # noqa: S608 - bound
            (*bound, n, n, instant, instant),
        )
        return [_fact(row) for row in rows]

    def close(self) -> None:
        self._database.close()


def _fact(row: tuple[Any, ...]) -> Fact:
    number, subject, predicate, value, start, end, recorded, retracted, confidence, source = row
    period = Period(to_datetime(start), None if end == OPEN else to_datetime(end))
    return Fact(
        number,
        subject,
        predicate,
        Entity(value),
        period,
        period,
        Period(to_datetime(recorded), None if retracted is None else to_datetime(retracted)),
        confidence,
        source,
        (),
        (),
        0,
        {"tenant": "default"},
        None,
        None,
    )


# --- measuring -----------------------------------------------------------------------------------


def run(shape: Shape, queries: int) -> None:
    report_machine()
    report(
        "facts, subjects, predicates, objects",
        f"{shape.facts:,}, {shape.subjects:,}, {shape.predicates:,}, {shape.objects:,}",
    )
    source = random.Random(6)
    facts = assertions(shape, source)
    with tempfile.TemporaryDirectory() as folder:
        path, peer = str(Path(folder) / "facts.cera"), str(Path(folder) / "facts.sqlite")
        asserting(path, peer, facts)
        report("file", f"{Path(path).stat().st_size:,} bytes, {Path(peer).stat().st_size:,} SQLite")
        opening(path, peer, facts[0])
        asking(path, peer, facts, source, queries)
        searching(path, facts, source, max(20, queries // 20))
        correcting(folder, shape.facts // 10)


def asserting(path: str, peer: str, facts: Sequence[Assertion]) -> None:
    batches = [facts[at : at + BATCH] for at in range(0, len(facts), BATCH)]
    started = time.perf_counter()
    with cerata.open(path) as store:
        for batch in batches:
            store.graph.assert_many(batch)
        store.facts(facts[0].subject)
        taken = time.perf_counter() - started
        store.checkpoint()
        fold = store._fold  # pyright: ignore[reportPrivateUsage]
        size_bytes = fold.using(FactsProjection.name, None, _size_bytes)
        report("in memory", f"{size_bytes / len(facts):.0f} bytes a fact")
    tables = Tables(peer)
    tables.create()
    started = time.perf_counter()
    for number, batch in enumerate(batches):
        tables.add(1 + number * BATCH, number, batch)
    theirs = time.perf_counter() - started
    tables.close()
    report(f"assert in batches of {BATCH:,}, to the first answer", f"{len(facts) / taken:,.0f}/s")
    report("SQLite", f"{len(facts) / theirs:,.0f}/s")


def _size_bytes(projection: Projection) -> int:
    assert isinstance(projection, FactsProjection)
    return projection.size_bytes


def opening(path: str, peer: str, fact: Assertion) -> None:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(5):
        gc.collect()
        started = time.perf_counter()
        with cerata.open(path, mode="r") as store:
            store.facts(fact.subject, fact.predicate)
            ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        tables = Tables(peer)
        tables.find(
            "subject = ? AND predicate = ?", (fact.subject, fact.predicate), OPEN - 1, START
        )
        theirs.append(time.perf_counter() - started)
        tables.close()
    report("open to the first answer, best of 5", f"{min(ours) * 1e3:.1f} ms")
    report("SQLite", f"{min(theirs) * 1e3:.1f} ms")


def asking(
    path: str, peer: str, facts: Sequence[Assertion], source: random.Random, queries: int
) -> None:
    tables = Tables(peer)
    with cerata.open(path, mode="r") as store:
        head = store.head.seq
        for name, where, bound_of in _SHAPES:
            mine: list[Callable[[], list[Fact]]] = []
            peers: list[Callable[[], list[Fact]]] = []
            for _ in range(queries):
                fact = source.choice(facts)
                n = source.randrange(1, head + 1)
                when = START + timedelta(days=source.randrange(DAYS))
                bound = bound_of(fact)
                mine.append(partial(_ask, store, n, when, bound))
                texts = tuple(
                    value.name if isinstance(value, Entity) else value
                    for value in bound
                    if value is not None
                )
                peers.append(partial(tables.find, where, texts, n, when))
            for question, peer_question in zip(mine[:100], peers[:100], strict=True):
                answer = question()
                peer_answer = peer_question()
                assert [fact.id for fact in answer] == sorted(fact.id for fact in peer_answer), name
            report_times(f"{name}, any n, any instant", mine, peers)
    tables.close()


def searching(path: str, facts: Sequence[Assertion], source: random.Random, queries: int) -> None:
    """Report the time of questions with a subject's name and with words of all facts."""
    with cerata.open(path, mode="r") as store:
        started = time.perf_counter()
        store.graph.search(f"what is the predicate of {facts[0].subject}?", k=1)
        report("first search", f"{(time.perf_counter() - started) * 1e3:.0f} ms")
        questions = [
            f"what is the {fact.predicate} of {fact.subject}?"
            for fact in (source.choice(facts) for _ in range(queries))
        ]
        times = timed([partial(_search, store, question) for question in questions])
        report("search by a name and words of all facts", percentiles(times))


def _search(store: cerata.Store, question: str) -> list[Fact]:
    return [hit.fact for hit in store.graph.search(question)]


_Bound = tuple[str | None, str | None, Entity | None]

_SHAPES: tuple[tuple[str, str, Callable[[Assertion], _Bound]], ...] = (
    (
        "subject and predicate",
        "subject = ? AND predicate = ?",
        lambda fact: (str(fact.subject), fact.predicate, None),
    ),
    ("subject", "subject = ?", lambda fact: (str(fact.subject), None, None)),
    (
        "triple",
        "subject = ? AND predicate = ? AND object = ?",
        lambda fact: (str(fact.subject), fact.predicate, entity_of(fact)),
    ),
    ("object", "object = ?", lambda fact: (None, None, entity_of(fact))),
    (
        "predicate and object",
        "predicate = ? AND object = ?",
        lambda fact: (None, fact.predicate, entity_of(fact)),
    ),
)


def _ask(store: cerata.Store, n: int, when: datetime, bound: _Bound) -> list[Fact]:
    return store.at(n, valid_at=when).facts(*bound)


def correcting(folder: str, count: int) -> None:
    """Report the time of five corrections of each fact, over asserting as many new facts."""
    source = random.Random(7)
    plain = [
        Assertion(f"person:{number}", fact.predicate, fact.object)
        for number, fact in enumerate(assertions(Shape(count, count, 1, 100), source))
    ]
    started = time.perf_counter()
    with cerata.open(str(Path(folder) / "plain.cera")) as store:
        for turn in range(6):
            for at in range(0, count, BATCH):
                store.graph.assert_many(
                    [
                        Assertion(fact.subject, fact.predicate, f"{entity_of(fact)} {turn}")
                        for fact in plain[at : at + BATCH]
                    ]
                )
        store.facts(plain[0].subject)
    appended = time.perf_counter() - started
    started = time.perf_counter()
    with cerata.open(str(Path(folder) / "corrected.cera")) as store:
        ids: list[int] = []
        for at in range(0, count, BATCH):
            batch = plain[at : at + BATCH]
            ids += store.graph.assert_many(
                [Assertion(fact.subject, fact.predicate, f"{entity_of(fact)} 0") for fact in batch]
            ).ids
        for turn in range(1, 6):
            for at in range(0, count, BATCH):
                with store.transaction() as gathered:
                    store.graph.retract_many(ids[at : at + BATCH])
                    store.graph.assert_many(
                        [
                            Assertion(fact.subject, fact.predicate, f"{entity_of(fact)} {turn}")
                            for fact in plain[at : at + BATCH]
                        ]
                    )
                assert gathered.receipt is not None
                ids[at : at + BATCH] = gathered.receipt.ids
        store.facts(plain[0].subject)
    corrected = time.perf_counter() - started
    report(
        f"five corrections of each of {count:,}, against as many facts",
        f"{corrected / appended:.2f}x",
    )


def main() -> None:
    run(*asked_for(__doc__, queries=2_000))


if __name__ == "__main__":
    main()
