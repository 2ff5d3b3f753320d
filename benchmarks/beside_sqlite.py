"""The shared part of the fact benchmarks: facts, settings of SQLite, and the timing of both."""

import argparse
import gc
import os
import platform
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from benchmarks.beside.sqlite import DURABLE
from cerata import Assertion, Entity

BATCH: Final = 1_000
START: Final = datetime(2020, 1, 1, tzinfo=UTC)
DAYS: Final = 2_000
_ROUNDS: Final = 9
OPEN: Final = 1 << 62
"""The end of a fact without an end, in the tables of SQLite."""


class Shape(NamedTuple):
    """The numbers of facts, subjects, predicates and objects."""

    facts: int
    subjects: int
    predicates: int
    objects: int


def assertions(shape: Shape, source: random.Random) -> list[Assertion]:
    """Return facts that begin on some day and mostly end on a later one."""
    facts: list[Assertion] = []
    for _ in range(shape.facts):
        start = source.randrange(DAYS)
        end = start + source.randrange(1, 400) if source.random() < 0.7 else None
        facts.append(
            Assertion(
                f"person:{source.randrange(shape.subjects)}",
                f"predicate-{source.randrange(shape.predicates)}",
                Entity(f"place:{source.randrange(shape.objects)}"),
                valid_from=START + timedelta(days=start),
                valid_to=None if end is None else START + timedelta(days=end),
            )
        )
    return facts


def entity_of(fact: Assertion) -> Entity:
    """Return the object of a fact of `assertions`."""
    assert isinstance(fact.object, Entity)
    return fact.object


def connected(path: str) -> sqlite3.Connection:
    """Return a database as durable as a memory, with a cache for the whole file."""
    database = sqlite3.connect(path)
    database.executescript(DURABLE)
    return database


# --- measuring -----------------------------------------------------------------------------------


def report(label: str, figure: str) -> None:
    sys.stdout.write(f"{label:<66}{figure}\n")
    sys.stdout.flush()


def report_machine() -> None:
    report(
        "machine",
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, numpy {np.__version__}, SQLite {sqlite3.sqlite_version}",
    )


def report_times(
    label: str, mine: Sequence[Callable[[], object]], peers: Sequence[Callable[[], object]]
) -> None:
    """Report the times of the same questions on a memory and on SQLite, which take turns.

    Processor time, since other processes of the machine are in the time of the clock. They take
    caches and cores all the same, so the best round of each side is reported, too.
    """
    ours: list[list[float]] = []
    theirs: list[list[float]] = []
    for _ in range(_ROUNDS):
        ours.append(timed(mine, time.process_time))
        theirs.append(timed(peers, time.process_time))
    ratios = np.percentile(ours, [50, 99]) / np.percentile(theirs, [50, 99])
    best, best_peer = (np.median(times, axis=1).min() for times in (ours, theirs))
    report(label, f"{percentiles(ours)}, best round {1e6 * best:.1f} us")
    report("SQLite", f"{percentiles(theirs)}, best round {1e6 * best_peer:.1f} us")
    report(
        "over SQLite",
        f"{ratios[0]:.2f}x at the median, {ratios[1]:.2f}x at p99, "
        f"{best / best_peer:.2f}x of the best rounds",
    )


def timed(
    questions: Sequence[Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    gc.collect()
    times: list[float] = []
    for question in questions:
        started = clock()
        question()
        times.append(clock() - started)
    return times


def percentiles(times: Sequence[float] | Sequence[Sequence[float]]) -> str:
    p50, p99 = np.percentile(times, [50, 99]) * 1e6
    return f"p50 {p50:8.1f} us, p99 {p99:8.1f} us"


def asked_for(description: str | None, queries: int) -> tuple[Shape, int]:
    """Return the shape, and the number of questions of each kind, from the command line."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="2,000 facts")
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=queries)
    options = parser.parse_args()
    facts: int = 2_000 if options.tiny else options.facts
    return Shape(facts, max(1, facts // 5), 20, max(1, facts // 50)), options.queries
