"""The answers of a new process to a file, for `vectors_bench`: times, and peak memory, as JSON.

``python -m benchmarks.first_answer_probe cerata|sqlite|verify PATH QUESTIONS``. QUESTIONS is a file
of questions and vectors. The clock starts after all imports: the same call to an empty memory comes
first.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import cerata

K = 10

Times: TypeAlias = list[list[float]]
"""Milliseconds of wall time and of processor time, of each question."""


def peak_mb() -> float:
    """Return the peak of this process's memory; the resource module may give the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(calls: Sequence[Callable[[], object]]) -> Times:
    times: Times = []
    for call in calls:
        wall, processor = time.perf_counter(), time.process_time()
        call()
        times.append([1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - processor)])
    return times


@contextmanager
def asking(side: str, path: str) -> Generator[Callable[..., Any]]:
    """Yield a function that opens the file at the first call, and answers a question."""
    if side == "cerata":
        opened: list[cerata.Store] = []

        def ask(text: str, vector: Any) -> object:
            if not opened:
                opened.append(cerata.open(path, mode="r"))
            return opened[0].search(text, k=K, vectors=cerata.Vectors(dense=vector))

        yield ask
        opened[0].close()
    else:
        from benchmarks.beside.sqlite import Tables

        tables: list[Tables] = []

        def ask_tables(text: str, vector: Any) -> object:
            if not tables:
                tables.append(Tables(path))
            return tables[0].search(text, vector)

        yield ask_tables
        tables[0].close()


def import_all(side: str, text: str, vector: Any) -> None:
    """Ask a memory of one document, so that all modules are imported."""
    with tempfile.TemporaryDirectory() as name:
        path = str(Path(name) / "small")
        if side == "cerata":
            with cerata.open(path) as store:
                store.put_frame(text, vectors=cerata.Vectors(dense=vector, space="bench"))
                store.checkpoint()
        else:
            from benchmarks.beside.sqlite import Tables

            tables = Tables(path)
            tables.create()
            tables.add(1, [text], vector[None])
            tables.close()
        with asking(side, path) as ask:
            ask(text, vector)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("side", choices=("cerata", "sqlite", "verify"))
    parser.add_argument("path")
    parser.add_argument("questions")
    options = parser.parse_args()
    times: Times = []
    is_whole = True
    if options.side == "verify":
        started = time.process_time()
        with cerata.open(options.path, mode="r") as store:
            is_whole = store.verify().ok
        times.append([0.0, 1e3 * (time.process_time() - started)])
    else:
        with np.load(options.questions) as saved:
            texts, vectors = saved["texts"].tolist(), saved["vectors"]
        import_all(options.side, texts[0], vectors[0])
        with asking(options.side, options.path) as ask:
            times = timed([partial(ask, *pair) for pair in zip(texts, vectors, strict=True)])
    print(json.dumps({"times": times, "peak_mb": peak_mb(), "ok": is_whole}))


if __name__ == "__main__":
    main()
