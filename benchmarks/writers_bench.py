"""Commits of several writer processes, beside SQLite.

``python -m benchmarks.writers_bench`` (``--tiny`` in CI) starts 1, 2 and 4 processes that write to
one file. Each commit puts one document of 40 words with a vector, durable on return; SQLite (WAL,
synchronous=FULL) writes a row with the vector as a blob, and an FTS5 row. A process writes for a
fixed time, so that all compete until the end. Cerata and SQLite take turns.

Each line has the commits a second of all processes together, the waits of single commits (median,
99 %, worst), the share of the slowest process over the fastest, and the processor time of a commit.
The check at the end counts the documents in the file.

Goals: at least the commits of SQLite; a worst wait under 100 ms on a quiet disk.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

import cerata

from .append_bench import machine

WRITERS = (1, 2, 4)
_SCHEMA = """
CREATE TABLE documents (id INTEGER PRIMARY KEY, text TEXT, vector BLOB);
CREATE VIRTUAL TABLE words USING fts5(text);
"""


@dataclass(frozen=True)
class Run:
    """The commits of all processes: the seconds of each commit by process, and processor time."""

    waits: list[list[float]]
    processor: float
    seconds: float

    @property
    def commits(self) -> int:
        return sum(map(len, self.waits))

    def __str__(self) -> str:
        every = np.concatenate([np.array(waits) for waits in self.waits]) * 1e3
        p50, p99 = np.percentile(every, [50, 99])
        counts = [len(waits) for waits in self.waits]
        return (
            f"{self.commits / self.seconds:7.0f} commits/s, {p50:6.2f} / {p99:6.2f} / "
            f"{every.max():7.1f} ms (50 % / 99 % / worst), shares {min(counts) / max(counts):.2f}, "
            f"{self.processor / self.commits * 1e6:5.0f} us cpu"
        )


# --- a writer process ----------------------------------------------------------------------------


def cerata_commit(path: str, dimension: int, source: Random) -> Callable[[], object]:
    store = cerata.open(path, options=cerata.OpenOptions(lock_timeout=60))
    vectors = np.random.default_rng(source.randrange(1 << 30))

    def commit() -> object:
        vector = vectors.standard_normal(dimension, np.float32)
        return store.put_frame(text_of(source), vectors=cerata.Vectors(dense=vector, space="bench"))

    return commit


def sqlite_commit(path: str, dimension: int, source: Random) -> Callable[[], object]:
    database = sqlite3.connect(path, isolation_level=None, timeout=60)
    database.execute("PRAGMA synchronous=FULL")
    vectors = np.random.default_rng(source.randrange(1 << 30))

    def commit() -> object:
        text = text_of(source)
        vector = vectors.standard_normal(dimension, np.float32).tobytes()
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO documents (text, vector) VALUES (?, ?)", (text, vector))
        database.execute("INSERT INTO words (text) VALUES (?)", (text,))
        return database.execute("COMMIT")

    return commit


def text_of(source: Random) -> str:
    """Return 40 words, of which few are frequent."""
    return " ".join(f"word{int(20_000 ** source.random())}" for _ in range(40))


COMMITS = {"cerata": cerata_commit, "sqlite": sqlite_commit}


def write(name: str, path: str, dimension: int, seconds: float, seed: int) -> None:
    """Commit for some seconds after a line of input; print waits and processor time as JSON."""
    commit = COMMITS[name](path, dimension, Random(seed))
    commit()
    print("ready", flush=True)
    sys.stdin.readline()
    waits: list[float] = []
    processor = time.process_time()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        commit()
        waits.append(time.perf_counter() - started)
    json.dump({"waits": waits, "processor": time.process_time() - processor}, sys.stdout)
    sys.stdout.flush()
    # Without the checkpoint of a close, which is not part of a commit.
    os._exit(0)


# --- the comparison ------------------------------------------------------------------------------


def run(name: str, path: Path, writers: int, dimension: int, seconds: float) -> Run:
    """Run writer processes on one file, and return their commits."""
    command = [sys.executable, "-m", "benchmarks.writers_bench", "--write", name, str(path)]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [*command, str(dimension), str(seconds), str(seed)],
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        for seed in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [json.loads(process.communicate()[0]) for process in processes]
    waits = [answer["waits"] for answer in answers]
    return Run(waits, sum(answer["processor"] for answer in answers), seconds)


def created(name: str, path: Path) -> None:
    if name == "cerata":
        cerata.open(path).close()
        return
    with sqlite3.connect(path) as database:
        database.executescript(f"PRAGMA journal_mode=WAL; {_SCHEMA}")
    database.close()


def documents(name: str, path: Path) -> int:
    """Return the number of documents in a file; the file is whole."""
    if name == "cerata":
        with cerata.open(path, mode="r") as store:
            assert store.verify().log.ok
            return sum(1 for _ in store.frames())
    with sqlite3.connect(path) as database:
        (count,) = database.execute("SELECT count(*) FROM words").fetchone()
    database.close()
    return int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a few seconds")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--folder", help="a folder on the disk to measure")
    parser.add_argument("--write", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        name, path, dimension, length, seed = options.write
        write(name, path, int(dimension), float(length), int(seed))
    seconds, rounds = (0.5, 1) if options.tiny else (options.seconds, options.rounds)
    print(machine(), f"\nSQLite {sqlite3.sqlite_version}", flush=True)
    for writers in WRITERS:
        for number in range(rounds):
            for name in sorted(COMMITS, reverse=bool(number % 2)):
                with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                    path = Path(folder) / f"{name}.cera"
                    created(name, path)
                    result = run(name, path, writers, options.dimension, seconds)
                    assert documents(name, path) == result.commits + writers
                    print(f"{writers} writers, {name:<6} {result}", flush=True)
    print("every document is there")


if __name__ == "__main__":
    main()
