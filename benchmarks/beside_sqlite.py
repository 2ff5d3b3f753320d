"""What benchmarks of facts beside SQLite share: the facts, settings of the peer, both's times."""

import argparse
import gc
import os
import platform
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from cerata import Assertion, Entity

BATCH: Final = 1_000
START: Final = datetime(2020, 1, 1, tzinfo=UTC)
DAYS: Final = 2_000
OPEN: Final = 1 << 62
"""An end that is none, as SQLite's tables have it."""


class Shape(NamedTuple):
    """How many facts there are, and of how many subjects, predicates and objects."""

    facts: int
    subjects: int
    predicates: int
    objects: int


def assertions(shape: Shape, source: random.Random) -> list[Assertion]:
    """Return facts that begin on some day and mostly end on a later one."""
    found: list[Assertion] = []
    for _ in range(shape.facts):
        start = source.randrange(DAYS)
        end = start + source.randrange(1, 400) if source.random() < 0.7 else None
        found.append(
            Assertion(
                f"person:{source.randrange(shape.subjects)}",
                f"predicate-{source.randrange(shape.predicates)}",
                Entity(f"place:{source.randrange(shape.objects)}"),
                valid_from=START + timedelta(days=start),
                valid_to=None if end is None else START + timedelta(days=end),
            )
        )
    return found


def entity_of(one: Assertion) -> Entity:
    """Return the object of one of these facts."""
    assert isinstance(one.object, Entity)
    return one.object


DURABLE: Final = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000000;"


def connected(path: str) -> sqlite3.Connection:
    """Return a database as durable as a memory is, with a cache that holds all of it."""
    database = sqlite3.connect(path)
    database.executescript(DURABLE)
    return database


# --- measuring -----------------------------------------------------------------------------------


def report(what: str, figure: str) -> None:
    sys.stdout.write(f"{what:<66}{figure}\n")
    sys.stdout.flush()


def report_machine() -> None:
    report(
        "machine",
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, numpy {np.__version__}, SQLite {sqlite3.sqlite_version}",
    )


def report_times(
    what: str, mine: Sequence[Callable[[], object]], peers: Sequence[Callable[[], object]]
) -> None:
    """Ask the same questions of a memory and of SQLite, and report how long each takes."""
    ours, theirs = timed(mine), timed(peers)
    ratio = statistics.median(theirs) / statistics.median(ours)
    report(what, percentiles(ours))
    report("SQLite", f"{percentiles(theirs)}, {ratio:.2f}x ours")


def timed(questions: Sequence[Callable[[], object]]) -> list[float]:
    gc.collect()
    times: list[float] = []
    for question in questions:
        started = time.perf_counter()
        question()
        times.append(time.perf_counter() - started)
    return times


def percentiles(times: Sequence[float]) -> str:
    p50, p99 = np.percentile(times, [50, 99]) * 1e6
    return f"p50 {p50:8.1f} us, p99 {p99:8.1f} us"


def asked_for(description: str | None, queries: int) -> tuple[Shape, int]:
    """Return the shape and the number of questions of each kind that the command line names."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="2,000 facts")
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=queries)
    options = parser.parse_args()
    facts: int = 2_000 if options.tiny else options.facts
    return Shape(facts, max(1, facts // 5), 20, max(1, facts // 50)), options.queries
