"""The graph over facts beside SQLite in one run: neighbours, and walks of two hops.

``python -m benchmarks.graph_bench`` takes about five minutes for 1,000,000 facts; ``--facts N``
sets another number. SQLite has a table with a covering index each way, in WAL mode with a cache for
the whole file, and walks with one recursive query. Both answer the same questions, at random bases
and instants, with the same entities and hops.
"""

import random
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import cerata
from cerata import Assertion
from cerata.projections.columnar.times import to_microseconds

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
    report,
    report_machine,
    report_times,
)

Answer = list[tuple[str, int]]
"""Entities, and their distances in hops."""

_SCHEMA: Final = """
CREATE TABLE edge (
    id INTEGER PRIMARY KEY, subject TEXT, object TEXT, valid_from INTEGER, valid_to INTEGER
);
CREATE INDEX by_subject ON edge (subject, valid_from, valid_to, object);
CREATE INDEX by_object ON edge (object, valid_from, valid_to, subject);
"""

_TRUE_THEN: Final = "edge.id <= :n AND valid_from <= :instant AND valid_to > :instant"

_WALK: Final = f"""
WITH RECURSIVE walk(name, hop) AS (
    SELECT :start, 0
    UNION SELECT object, hop + 1 FROM walk JOIN edge ON subject = name
        WHERE hop < :hops AND {_TRUE_THEN}
    UNION SELECT subject, hop + 1 FROM walk JOIN edge ON object = name
        WHERE hop < :hops AND {_TRUE_THEN}
)
SELECT name, MIN(hop) AS hop FROM walk GROUP BY name HAVING hop > 0
"""  # noqa: S608 - no values


class Edges:
    """The same edges in an SQLite table."""

    def __init__(self, path: str, facts: Sequence[Assertion]) -> None:
        self._database = connected(path)
        self._database.executescript(_SCHEMA)
        rows = [(number, *_edge(fact)) for number, fact in enumerate(facts, start=1)]
        self._database.executemany("INSERT INTO edge VALUES (?, ?, ?, ?, ?)", rows)
        self._database.commit()

    def walk(self, start: str, hops: int, n: int, instant: int) -> Answer:
        bound = {"start": start, "hops": hops, "n": n, "instant": instant}
        return self._database.execute(_WALK, bound).fetchall()

    def close(self) -> None:
        self._database.close()


def _edge(fact: Assertion) -> tuple[str, str, int, int]:
    assert isinstance(fact.valid_from, datetime)
    end = OPEN if fact.valid_to is None else to_microseconds(fact.valid_to)
    return str(fact.subject), entity_of(fact).name, to_microseconds(fact.valid_from), end


def neighbours(store: cerata.Store, start: str, n: int, when: datetime) -> Answer:
    return [(entry.entity, 1) for entry in store.at(n, valid_at=when).graph.neighbours(start)]


def walk(store: cerata.Store, start: str, n: int, when: datetime) -> Answer:
    return [
        (entry.entity, entry.hop) for entry in store.at(n, valid_at=when).graph.walk(start, hops=2)
    ]


def run(shape: Shape, queries: int) -> None:
    report_machine()
    report("facts, subjects, objects", f"{shape.facts:,}, {shape.subjects:,}, {shape.objects:,}")
    source = random.Random(8)
    facts = assertions(shape, source)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "graph.cera")
        with cerata.open(path) as store:
            for at in range(0, len(facts), BATCH):
                store.graph.assert_many(facts[at : at + BATCH])
        edges = Edges(str(Path(folder) / "graph.sqlite"), facts)
        with cerata.open(path, mode="r") as store:
            asking(store, edges, facts, source, queries)
        edges.close()


def asking(
    store: cerata.Store,
    edges: Edges,
    facts: Sequence[Assertion],
    source: random.Random,
    queries: int,
) -> None:
    """Report the times of both, from subjects and from objects."""
    for name, read, hops, starts in (
        ("neighbours of a subject", neighbours, 1, 0),
        ("neighbours of an object", neighbours, 1, 1),
        ("two hops from a subject", walk, 2, 0),
        ("two hops from an object", walk, 2, 1),
    ):
        mine: list[Callable[[], Answer]] = []
        theirs: list[Callable[[], Answer]] = []
        for _ in range(queries):
            start = str(_edge(source.choice(facts))[starts])
            n = source.randrange(1, len(facts) + 1)
            when = START + timedelta(days=source.randrange(DAYS))
            mine.append(partial(read, store, start, n, when))
            theirs.append(partial(edges.walk, start, hops, n, to_microseconds(when)))
        count = 0
        for question, peer_question in zip(mine[:100], theirs[:100], strict=True):
            answer = question()
            assert sorted(answer) == sorted(peer_question()), name
            count += len(answer)
        report_times(f"{name}, {count / 100:.1f} entities on average", mine, theirs)


def main() -> None:
    run(*asked_for(__doc__, queries=1_000))


if __name__ == "__main__":
    main()
