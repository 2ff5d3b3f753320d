"""The speed of an export of every event, and of its import into an empty file.

``python -m benchmarks.interchange_bench`` (``--tiny`` in CI; ``--events N …`` for other sizes) puts
short texts in batches of 1,000, exports the log, and imports the lines into an empty file. Each
line has the least processor time of the rounds, and the wall time of that round; beside them the
same lines are read, decoded by `json`, and counted, which any importer does at least. Chain, root
and digests of the copy must equal those of the log. Goals at 1,000,000 events: 60,000 a second
exported, 25,000 imported.
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import cerata
from cerata import Store

BATCH = 1_000


def filled(path: Path, events: int) -> None:
    with cerata.open(path) as store:
        for first in range(0, events, BATCH):
            numbers = range(first, min(first + BATCH, events))
            store.put_frames(
                [f"note {n} word{n * 7 % 2_000} word{n * 13 % 2_000}" for n in numbers]
            )


def least(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the least processor time of several calls, and the wall time of that call."""
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        start, cpu = time.perf_counter(), time.process_time()
        call()
        times.append((time.process_time() - cpu, time.perf_counter() - start))
    return min(times)


def report(name: str, events: int, times: tuple[float, float]) -> None:
    cpu, wall = times
    print(
        f"  {name:<30} {events / cpu:9,.0f}/s, {cpu:6.2f} s of processor, {wall:6.2f} s", flush=True
    )


def exported(store: Store, lines: Path) -> None:
    lines.unlink(missing_ok=True)
    store.interchange.export_events(lines)


def imported(lines: Path, copy: Path, calls: list[tuple[float, float]]) -> None:
    copy.unlink(missing_ok=True)
    with cerata.open(copy) as store:
        calls.append(least(partial(store.interchange.import_events, lines), 1))


def parsed(lines: Path) -> int:
    with lines.open("rb") as file:
        return sum(1 for line in file if json.loads(line))


def identity(store: Store, *, digests: bool) -> tuple[object, ...]:
    head = store.head
    return head.log_id, head.chain, head.root, store.stream.digests() if digests else None


def measure(events: int, folder: Path, rounds: int, *, digests: bool) -> None:
    log, lines, copy = (folder / name for name in ("log.cera", "log.jsonl", "copy.cera"))
    filled(log, events)
    with cerata.open(log) as store:
        export = least(partial(exported, store, lines), rounds)
        size = lines.stat().st_size
        print(f"{events:,} events, {size / 1e6:,.1f} MB of lines")
        report("export", events, export)
        calls: list[tuple[float, float]] = []
        closed = least(partial(imported, lines, copy, calls), rounds)
        report("import into an empty file", events, min(calls))
        report("the same, and its checkpoints", events, closed)
        report("json.loads of each line", events, least(partial(parsed, lines), 1))
        with cerata.open(copy) as other:
            same = identity(store, digests=digests) == identity(other, digests=digests)
            assert same, "the copy differs"
            root = other.head.root.hex()[:16]
        print(f"  chain, root{' and digests' if digests else ''} are equal: {root}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the export and import of events.")
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-digests", action="store_true", help="skip the fold of both files")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    sizes = [2_000] if options.tiny else options.events
    rounds = 1 if options.tiny else options.rounds
    print(
        f"cerata {version('cerata')}, msgspec {version('msgspec')}, Python "
        f"{platform.python_version()}, {platform.machine()}; sync 'commit'"
    )
    for events in sizes:
        with tempfile.TemporaryDirectory() as folder:
            measure(events, Path(folder), rounds, digests=not options.no_digests)


if __name__ == "__main__":
    main()
