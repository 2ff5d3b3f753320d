"""Hot paths, each beside a floor or a peer: the ratio of their processor times in one run.

Owns the paths, their measured ratios and the verdict; `tests/test_hot_paths.py` guards them.
``python -m tests.hot_paths`` prints each ratio beside the recorded ratio: lower the record when a
path becomes faster, or a later loss of the gain is not seen.

A path is too slow if its ratio is over `SLOWER` times the record in every attempt. Other programs
take caches and cores from both sides, and no attempt of a fast path stays slow every time.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard

import cerata
from benchmarks.beside.documents import Documents, Question
from benchmarks.beside.sqlite import Tables
from benchmarks.beside_sqlite import START, Shape, assertions
from benchmarks.facts_bench import Tables as FactTables
from cerata import Store
from cerata.engine.events import PutFrame, decoders
from cerata.engine.integrity import hash_bytes
from cerata.engine.log import Log
from cerata.memory.batch.writer import session_of
from cerata.projections.facts.reader import FactsAt
from cerata.projections.frames.projection import FramesProjection
from cerata.replay.fold import replay

from . import timing
from .inside import fold_of

SLOWER = 1.6
"""The least factor that counts as a loss: more than noise, and less than 2."""

ATTEMPTS = 4
ROUNDS = 5

DOCUMENTS = 2_000
QUESTIONS = 8


class Sides(NamedTuple):
    """The same work: by Cerata, and by the floor or peer."""

    ours: Callable[[], object]
    floor: Callable[[], object]


@dataclass(frozen=True)
class HotPath:
    """A path, its recorded ratio, and a function of the code that the path runs through."""

    name: str
    ratio: float
    sides: Callable[[Path], AbstractContextManager[Sides]]
    owner: type
    function: str


# --- the verdict ---------------------------------------------------------------------------------


def ratio(sides: Sides) -> float:
    """Return our least time over the floor's, of rounds in which the two alternate."""
    # Both load their tables.
    sides.ours()
    sides.floor()
    return timing.ratio(sides.ours, sides.floor, ROUNDS)


def too_slow(path: HotPath, sides: Sides) -> list[float]:
    """Return the ratios of all attempts if each is too large; nothing after a good attempt."""
    ratios: list[float] = []
    for _ in range(ATTEMPTS):
        ratios.append(ratio(sides))
        if ratios[-1] <= SLOWER * path.ratio:
            return []
    return ratios


@contextmanager
def slowed(path: HotPath, sides: Sides) -> Generator[None]:
    """Make the path take twice its record: each call of its function burns a share of the rest."""
    function = getattr(path.owner, path.function)
    calls = 0
    delay_s = 0.0

    def slow(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        result = function(*arguments, **options)
        # Processor time, like the measure: a wait would not count.
        end = time.process_time() + delay_s
        while time.process_time() < end:
            pass
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path.owner, path.function, slow)
        sides.ours()
        calls_per_run = calls
        assert calls_per_run, f"{path.name} does not run {path.function}"
        ours = min(timing.spent(sides.ours) for _ in range(ROUNDS))
        floor = min(timing.spent(sides.floor) for _ in range(ROUNDS))
        record = path.ratio * floor
        delay_s = max(record, 2 * record - ours) / calls_per_run
        yield


# --- the paths -----------------------------------------------------------------------------------


@contextmanager
def _both(folder: Path, documents: int = DOCUMENTS) -> Generator[tuple[Store, Tables]]:
    """Open a memory and tables with the same documents."""
    tables = Tables(str(folder / "peer.sqlite"))
    tables.create()
    with cerata.open(folder / "a.cera") as store:
        for batch in islice(Documents(DOCUMENTS).batches(), documents // 100):
            store.put_frames(
                batch.texts, vectors=cerata.Vectors(dense=batch.vectors, space="bench")
            )
            tables.add(1 + batch.first, batch.texts, batch.vectors)
        yield store, tables
    tables.close()


def _questions() -> list[Question]:
    return Documents(DOCUMENTS).questions(QUESTIONS)


@contextmanager
def ingest(folder: Path) -> Generator[Sides]:
    """Five durable batches of 100 documents with vectors into a new file, beside SQLite.

    With a search and the close, so folding and a checkpoint are in the time.
    """
    batches = list(Documents(500).batches())
    question = _questions()[0]
    numbers = count()

    def ours() -> None:
        with cerata.open(folder / f"{next(numbers)}.cera") as store:
            for batch in batches:
                store.put_frames(
                    batch.texts, vectors=cerata.Vectors(dense=batch.vectors, space="bench")
                )
            assert store.search(question.text, vectors=cerata.Vectors(dense=question.vector))

    def theirs() -> None:
        tables = Tables(str(folder / f"{next(numbers)}.sqlite"))
        tables.create()
        for batch in batches:
            tables.add(1 + batch.first, batch.texts, batch.vectors)
        assert tables.search(question.text, question.vector)
        tables.close()

    yield Sides(ours, theirs)


@contextmanager
def append(folder: Path) -> Generator[Sides]:
    """A hundred frames, one by one, beside a compression, a hash and a copy of each, in memory.

    Without a disk: how much processor time a sync takes is a matter of the other programs. The
    writes and syncs of an append are counted in `tests/test_speed.py`.
    """
    text = "We chose HNSW: recall under 5 ms on a million vectors, and it takes updates."
    compressor = zstandard.ZstdCompressor(3)
    numbers = count()
    disk = bytearray(1 << 16)
    with cerata.open(":memory:") as store:

        def put() -> None:
            for number in islice(numbers, 100):
                store.put_frame(f"{number} {text}")

        def write() -> None:
            # Often, since once takes too little time to measure.
            for number in range(1_000):
                data = compressor.compress(f"{number} {text}".encode())
                disk[:512] = (hash_bytes(data) + data).ljust(512, b"\0")

        yield Sides(put, write)


@contextmanager
def cold(folder: Path) -> Generator[Sides]:
    """Opening and a first hybrid answer, beside SQLite."""
    with _both(folder):
        pass
    question = _questions()[0]

    def ours() -> None:
        with cerata.open(folder / "a.cera", mode="r") as store:
            assert store.search(question.text, vectors=cerata.Vectors(dense=question.vector))

    def theirs() -> None:
        tables = Tables(str(folder / "peer.sqlite"))
        assert tables.search(question.text, question.vector)
        tables.close()

    yield Sides(ours, theirs)


@contextmanager
def delete(folder: Path) -> Generator[Sides]:
    """Twenty durable deletes, one by one, beside SQLite."""
    with _both(folder) as (store, tables):
        ours, theirs = iter(range(1, DOCUMENTS)), iter(range(1, DOCUMENTS))

        def close() -> None:
            for frame in islice(ours, 20):
                store.delete(frame)

        def remove() -> None:
            for row in islice(theirs, 20):
                tables.delete(row)

        yield Sides(close, remove)


@contextmanager
def facts(folder: Path) -> Generator[Sides]:
    """Look-ups by subject and predicate at both clocks, beside SQLite: the same objects."""
    shape = Shape(facts=4_000, subjects=800, predicates=20, objects=80)
    stored = assertions(shape, random.Random(3))
    dice = random.Random(4)
    asked = [
        (dice.choice(stored), dice.randrange(1, len(stored)), START + timedelta(days=day))
        for day in range(200)
    ]
    tables = FactTables(str(folder / "peer.sqlite"))
    tables.create()
    with cerata.open(folder / "a.cera") as store:
        for number, start in enumerate(range(0, len(stored), 1_000)):
            store.graph.assert_many(stored[start : start + 1_000])
            tables.add(1 + start, number, stored[start : start + 1_000])

        def ours() -> None:
            for fact, n, when in asked:
                store.at(n, valid_at=when).facts(fact.subject, fact.predicate)

        def theirs() -> None:
            for fact, n, when in asked:
                tables.find(
                    "subject = ? AND predicate = ?", (fact.subject, fact.predicate), n, when
                )

        yield Sides(ours, theirs)
    tables.close()


@contextmanager
def search(folder: Path) -> Generator[Sides]:
    """Hybrid searches of the newest state, beside SQLite."""
    with _both(folder) as (store, tables):
        yield _searches(store, tables)


@contextmanager
def past(folder: Path) -> Generator[Sides]:
    """Hybrid searches as of half of the log, a view each, beside SQLite with that half."""
    with _both(folder, DOCUMENTS // 2) as (store, tables):
        half = store.head.seq
        for batch in islice(Documents(DOCUMENTS).batches(), DOCUMENTS // 200, None):
            store.put_frames(
                batch.texts, vectors=cerata.Vectors(dense=batch.vectors, space="bench")
            )
        yield _searches(store, tables, half)


@contextmanager
def replayed(folder: Path) -> Generator[Sides]:
    """All projections from 8,192 frames with a tag and two numbers, beside decoding the payloads.

    The floor also hashes each payload. A rebuild and a verification spend most of their time so.
    """
    with cerata.open(folder / "a.cera") as store:
        for first in range(0, 8_192, 1_024):
            numbers = range(first, first + 1_024)
            store.append(
                *[
                    PutFrame(metadata={"n": n, "group": n % 97}, tags=(f"t{n % 9}",))
                    for n in numbers
                ]
            )
    with cerata.open(folder / "a.cera", mode="r") as store:
        log = session_of(store).log
        payloads = [event.payload_bytes or b"" for event in log.read()]
        decode = decoders(PutFrame).payload.decode
        digests = fold_of(store).digests()

        def ours() -> None:
            assert replay(log).digests() == digests

        def floor() -> None:
            for payload in payloads:
                decode(payload)
                hash_bytes(payload)

        yield Sides(ours, floor)


def _searches(store: Store, tables: Tables, basis: int | None = None) -> Sides:
    questions = _questions()

    def ours() -> None:
        for question in questions:
            view = store if basis is None else store.at(basis)
            assert view.search(question.text, vectors=cerata.Vectors(dense=question.vector))

    def theirs() -> None:
        for question in questions:
            assert tables.search(question.text, question.vector)

    return Sides(ours, theirs)


HOT_PATHS = (
    HotPath("ingest", 1.95, ingest, Log, "append"),
    HotPath("append", 3.2, append, Log, "append"),
    HotPath("cold", 4.1, cold, Log, "__init__"),
    HotPath("delete", 1.7, delete, Log, "append"),
    HotPath("facts", 1.4, facts, FactsAt, "find"),
    HotPath("search", 0.85, search, Store, "search"),
    HotPath("past", 1.1, past, Store, "at"),
    HotPath("replay", 6.0, replayed, FramesProjection, "apply"),
)


def main() -> None:
    """Print the ratio of each path, and of the slowed path."""
    for path in HOT_PATHS:
        with tempfile.TemporaryDirectory() as folder, path.sides(Path(folder)) as sides:
            ratios = [ratio(sides) for _ in range(3)]
            with slowed(path, sides):
                twice = ratio(sides)
        shown = " ".join(f"{value:6.2f}" for value in ratios)
        sys.stdout.write(
            f"{path.name:<8} recorded {path.ratio:6.2f}  measured {shown}  slowed {twice:6.2f}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
