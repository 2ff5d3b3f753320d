"""Hostile input: peak memory and wall time of each document, and the cost of many merges.

``python -m benchmarks.hostile_bench`` (``--tiny`` in CI; ``--only NAME`` for one document). A new
process remembers each document into a new file and searches. The benchmark prints the peak memory
of that process with its children, sampled every 10 ms from /proc, or, on systems without /proc, as
counted at the end. The command fails above 512 MiB or 300 s.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import cerata
from benchmarks.append_bench import machine
from benchmarks.hostile_documents import DOCUMENTS, pdf_documents

PEAK_MAX: Final = 512 << 20
SECONDS_MAX: Final = 300.0


def remember_one(path: str, memory: str) -> dict[str, Any]:
    """Remember a document and search; runs in the process of the document."""
    started, used = time.perf_counter(), time.process_time()
    with cerata.open(memory) as store:
        try:
            receipt = store.remember(Path(path))
            outcome = f"{len(receipt.seqs):,} events"
        except cerata.CerataError as error:
            outcome = f"{type(error).__name__}: {error.what}"
        remembered = time.perf_counter() - started
        store.search("a b x")
    self_usage = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "outcome": outcome,
        "seconds": remembered,
        "all_seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - used + below.ru_utime + below.ru_stime,
        # The system counts the memory of the parent at the fork for the child too.
        "peak": (self_usage.ru_maxrss + below.ru_maxrss) * unit,
    }


def measure(path: Path, folder: Path) -> dict[str, Any]:
    """Return the cost of a document, measured in a new process."""
    memory = folder / "memory.cera"
    memory.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks.hostile_bench", "--one", str(path), str(memory)]
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            peak = max(peak, sum(map(_resident, _family(child.pid))))
            time.sleep(0.01)
        assert child.stdout is not None
        cost: dict[str, Any] = json.loads(child.stdout.read().splitlines()[-1])
    return {**cost, "peak": peak or cost["peak"], "file": memory.stat().st_size}


def _family(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    for task in _read(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{task}/children"):
            yield from _family(int(child))


def _read(place: str) -> list[str]:
    """Return the names in a folder, or the words of a file, of /proc; none if the process ended."""
    path = Path(place)
    try:
        return [item.name for item in path.iterdir()] if path.is_dir() else path.read_text().split()
    except OSError:
        return []


def _resident(pid: int) -> int:
    pages = _read(f"/proc/{pid}/statm")
    return int(pages[1]) * resource.getpagesize() if pages else 0


def merging(count: int) -> tuple[float, float]:
    """Return the wall time and processor time of durable merges into one entity."""
    with tempfile.TemporaryDirectory() as folder, cerata.open(Path(folder, "a.cera")) as store:
        store.graph.assert_many([(f"entity {n}", "is", "there") for n in range(count + 1)])
        started, used = time.perf_counter(), time.process_time()
        for number in range(count):
            store.graph.merge(f"entity {number + 1}", "entity 0")
        return time.perf_counter() - started, time.process_time() - used


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a document is over a limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--one", nargs=2, metavar=("DOCUMENT", "MEMORY"), help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--size", type=float, default=64.0, help="MiB of a document, at most")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(remember_one(*options.one)))
        return 0
    size = 20_000 if options.tiny else int(options.size * (1 << 20))
    print(machine())
    over = [name for name, cost in _documents(size, options) if _is_over(name, cost)]
    if not options.only:
        count = 50 if options.tiny else 2_000
        wall, used = merging(count)
        print(f"{count:,} merges into one: {wall:.2f} s, {used:.2f} s of a processor")
    print(f"over a limit: {', '.join(over) or 'none'}")
    return 1 if over else 0


def _documents(size: int, options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    names = options.only or (["newlines.md", "nested.html"] if options.tiny else None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, document in DOCUMENTS.items():
            if names is None or name in names:
                path = folder / f"document{document.suffix}"
                with path.open("wb") as file:
                    file.writelines(document.pieces(size))
                yield name, measure(path, folder)
        for name, data in pdf_documents(min(size, 1 << 24)).items():
            if names is None or name in names:
                path = folder / "document.pdf"
                path.write_bytes(data)
                yield name, measure(path, folder)


def _is_over(name: str, cost: dict[str, Any]) -> bool:
    print(
        f"{name:<24} {cost['peak'] / (1 << 20):6.0f} MiB {cost['seconds']:6.1f} s, searched"
        f" {cost['all_seconds']:6.1f} s, {cost['processor_seconds']:6.1f} s of a processor,"
        f" {cost['file'] / (1 << 20):5.0f} MiB stored: {cost['outcome']:.70}",
        flush=True,
    )
    return bool(cost["peak"] > PEAK_MAX or cost["seconds"] > SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main())
