"""Filters and timeline over many frames, beside SQLite with an index for each question.

    python -m benchmarks.filters_bench             # 100,000 and 1,000,000 frames
    python -m benchmarks.filters_bench --tiny      # 2,000 and 4,000, for continuous integration

Both answer from memory; the benchmark checks that both return the same frames. SQLite returns the
matching ids, Cerata a mask over all rows, within which a search ranks. Times are processor time of
one thread, the median of many calls, after a first call that does the lazy sorting.
"""

import argparse
import gc
import hashlib
import platform
import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cerata.engine.events import DEFAULT_SCOPE, DeleteFrame, EventBody, PutFrame, Scope
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.frames.reader import Frames
from cerata.projections.frames.timeline import Position

SEED = 20_261_122
_DAY = 86_400_000_000
_START = to_microseconds("2020-01-01")
_FRAMES_A_BATCH = 1_000
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Folded:
    """A decoded event, in the form for projections."""

    seq: int
    type: str
    recorded: int
    scope: Scope
    body: EventBody
    causation: int | None = None


def history(frames: int) -> Iterator[list[Folded]]:
    """Yield batches: frames with a kind, tags, metadata and dates, every fiftieth deleted."""
    source = random.Random(SEED)
    seq = 0
    batch: list[Folded] = []
    for number in range(frames):
        body = PutFrame(
            text="",
            kind=("text", "note", "event", "code")[source.randrange(4)],
            tags=(f"topic{source.randrange(1_000)}", f"area{source.randrange(10)}"),
            metadata={"year": 1_990 + source.randrange(40), "author": f"a{source.randrange(500)}"},
            uri=f"file:///home/docs/{source.randrange(200)}/{number % 5_000}.md",
            created=_START + source.randrange(2_000) * _DAY + source.randrange(_DAY),
        )
        bodies: list[EventBody] = [body]
        if number % 50 == 49:
            bodies.append(DeleteFrame(frame=source.randrange(1, seq)))
        for new in bodies:
            seq += 1
            batch.append(Folded(seq, new.wire_name, _START + seq, DEFAULT_SCOPE, new))
        if len(batch) >= _FRAMES_A_BATCH:
            yield batch
            batch = []
    yield batch


def build(frames: int) -> tuple[FramesProjection, sqlite3.Connection, float]:
    """Return the filled projection and database, and the processor seconds of the fold."""
    peer = sqlite3.connect(":memory:")
    peer.executescript(
        """
        create table frames (id integer primary key, kind text, uri text, created integer,
                             year integer, author text, closed integer);
        create table tags (tag text, frame integer, primary key (tag, frame)) without rowid;
        """
    )
    projection = FramesProjection()
    took = 0.0
    gc.disable()
    for batch in history(frames):
        start = time.process_time()
        projection.apply(batch)
        took += time.process_time() - start
        puts = [(event.seq, event.body) for event in batch if isinstance(event.body, PutFrame)]
        peer.executemany(
            "insert into frames values (?, ?, ?, ?, ?, ?, null)",
            (
                (seq, b.kind, b.uri, b.created, b.metadata["year"], b.metadata["author"])
                for seq, b in puts
            ),
        )
        peer.executemany(
            "insert into tags values (?, ?)", ((tag, seq) for seq, b in puts for tag in b.tags)
        )
        peer.executemany(
            "update frames set closed = coalesce(closed, ?) where id = ?",
            ((e.seq, e.body.frame) for e in batch if isinstance(e.body, DeleteFrame)),
        )
    gc.enable()
    for columns in ("kind", "uri", "created, id", "year", "author"):
        peer.execute(f"create index by_{columns[:4]} on frames ({columns})")
    peer.execute("analyze")
    return projection, peer, took


QUESTIONS: tuple[tuple[str, Filter, str], ...] = (
    (
        "one tag in 1,000",
        Filter(tags=["topic7"]),
        "select frame from tags where tag = 'topic7'",
    ),
    (
        "one kind in 4",
        Filter(kind="note"),
        "select id from frames where kind = 'note'",
    ),
    (
        "a number in a range, 1 in 8",
        Filter(metadata={"year": (">=", 2000)}) & Filter(metadata={"year": ("<", 2005)}),
        "select id from frames where year >= 2000 and year < 2005",
    ),
    (
        "a prefix of URIs, 1 in 200",
        Filter(uri_prefix="file:///home/docs/17/"),
        (
            "select id from frames "
            "where uri >= 'file:///home/docs/17/' and uri < 'file:///home/docs/170'"
        ),
    ),
    (
        "a month of creation, 1 in 66",
        Filter(created=("2022-03-01", "2022-04-01")),
        "select id from frames where created >= 1646092800000000 and created < 1648771200000000",
    ),
    (
        "tag, kind and author, without a year",
        Filter(tags=["area3"], kind="note", metadata={"author": "a5"})
        & ~Filter(metadata={"year": 2001}),
        (
            "select id from frames join tags on frame = id "
            "where tag = 'area3' and kind = 'note' and author = 'a5' and year <> 2001"
        ),
    ),
)


def timed(work: Callable[[], object], calls: int) -> float:
    """Return the median milliseconds of processor time that a call takes."""
    work()
    times: list[float] = []
    for _ in range(calls):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def report(label: str, ours: float, peer: float) -> None:
    print(f"{label:<44}{ours:>9.3f} ms {peer:>10.3f} ms {peer / ours:>8.1f}x")


def ask(frames: Frames, peer: sqlite3.Connection, calls: int) -> str:
    """Run each question on both, print a line for each, and return a hash of all answers."""
    answers: list[bytes] = []
    n = frames.seq
    for name, where, query in QUESTIONS:
        rows = np.flatnonzero(frames.mask(where, n))
        expected = sorted(frame for (frame,) in peer.execute(query))
        assert frames.ids[rows].tolist() == expected, name
        answers.append(rows.tobytes())
        report(
            name,
            timed(lambda where=where: frames.mask(where, n), calls),  # type: ignore[misc]
            timed(lambda query=query: peer.execute(query).fetchall(), max(calls // 4, 3)),  # type: ignore[misc]
        )
    half = n // 2
    report(
        "the same tag, as of half",
        timed(lambda: frames.mask(Filter(tags=["topic7"]), half), calls),
        timed(
            lambda: peer.execute(
                "select frame from tags where tag = 'topic7' and frame <= ?", (half,)
            ).fetchall(),
            calls,
        ),
    )
    answers += turn_pages(frames, peer, calls)
    return hashlib.blake2b(b"".join(answers), digest_size=8).hexdigest()


def turn_pages(frames: Frames, peer: sqlite3.Connection, calls: int) -> list[bytes]:
    """Read the newest page, a middle page, and a page of a rare tag; return the answers."""
    n, answers = frames.seq, list[bytes]()
    alive = frames.alive(n)
    timeline = frames.timeline(n)
    listed = (
        "select created, id from frames where {} closed is null "
        "order by created desc, id desc limit 50"
    )
    middle = timeline.page(end=to_microseconds("2022-06-01"), limit=1).entries[0]
    rare = alive & frames.mask(Filter(tags=["topic7"]), n)
    pages = (
        ("newest page of 50", alive, None, ""),
        ("a page of 50 from the middle", alive, middle, "(created, id) < (:time, :frame) and"),
        (
            "newest page of 50 of one tag in 1,000",
            rare,
            None,
            "id in (select frame from tags where tag = 'topic7') and",
        ),
    )
    for name, among, after, where in pages:
        named = {} if after is None else after._asdict()
        query = listed.format(where)
        entries = timeline.page(among=among, after=after, limit=_PAGE).entries
        assert entries == tuple(Position(*row) for row in peer.execute(query, named)), name
        answers.append(repr(entries).encode())
        report(
            name,
            timed(
                lambda among=among, after=after: timeline.page(  # type: ignore[misc]
                    among=among, after=after, limit=_PAGE
                ),
                calls,
            ),
            timed(lambda query=query, named=named: peer.execute(query, named).fetchall(), calls),  # type: ignore[misc]
        )
    return answers


def run(size: int, calls: int) -> None:
    projection, peer, took = build(size)
    frames = projection.snapshot()
    size_bytes = projection.size_bytes
    first = time.process_time()
    frames.mask(Filter(tags=["topic7"]), frames.seq)
    sorting = time.process_time() - first
    first = time.process_time()
    frames.timeline(frames.seq)
    ordering = time.process_time() - first
    chunk = projection.chunk(0)
    loaded = FramesProjection()
    first = time.process_time()
    loaded.load(chunk)
    loading = time.process_time() - first
    print(f"\n{size:,} frames of 6 attributes, {frames.seq:,} events")
    print(f"{'fold':<44}{1e6 * took / size:>9.2f} us a frame")
    print(f"{'columns in memory':<44}{size_bytes / size:>9.0f} bytes a frame")
    print(f"{'... with the lazily sorted':<44}{projection.size_bytes / size:>9.0f} bytes a frame")
    print(f"{'sort of all postings, once':<44}{1e3 * sorting:>9.1f} ms")
    print(f"{'sort of the timeline, once':<44}{1e3 * ordering:>9.1f} ms")
    print(f"{'load of all chunks':<44}{1e3 * loading:>9.1f} ms")
    print(f"{'':<44}{'Cerata':>12} {'SQLite':>13} {'ratio':>9}")
    answers = ask(frames, peer, calls)
    print(f"{'hash of all answers':<44}{answers}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="2,000 and 4,000 frames")
    parser.add_argument("--calls", type=int, default=41, help="calls of each question")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"SQLite {sqlite3.sqlite_version}; in memory, nothing is written"
    )
    for size in (2_000, 4_000) if options.tiny else (100_000, 1_000_000):
        run(size, 5 if options.tiny else options.calls)


if __name__ == "__main__":
    main()
