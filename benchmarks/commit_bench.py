"""Durable appends and cold searches of this checkout, compared with another commit.

``python -m benchmarks.commit_bench OTHER`` (``--rounds``, ``--tiny``). OTHER is a checkout of the
other commit, such as ``git worktree add ../before COMMIT`` creates. The same program runs in both
checkouts in turn, in a new process each time, so that both meet the same conditions:

- durable: the median of single ``put_frame`` calls, each synced;
- search, folded: opening a file without checkpoints, and the first search, in processor time;
- search, restored: the same with a file whose projections are saved, apart from a tail.

Each line has the median of both, and the median of the ratios of the rounds. Goal of a change that
adds a check: a ratio of at most 1.05.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .append_bench import machine

_PROBE = """
import json, statistics, sys, time
import cerata

folder, frames, appends, searches = sys.argv[1], *map(int, sys.argv[2:])
WORDS = [f"word{number}" for number in range(2_000)]

def text(number):
    return " ".join(WORDS[(number * step) % 2_000] for step in range(1, 41))

def build(name, saved):
    path = f"{folder}/{name}.cera"
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        store._fold._try_from = 1 << 62
        store.put_frames([text(number) for number in range(frames - 100)])
        if saved:
            store.checkpoint()
        for number in range(frames - 100, frames):
            store.put_frame(text(number))
        store._log.seal()
    return path

def searched(path):
    started = time.process_time()
    with cerata.open(path, mode="r") as store:
        assert store.search("word7 word21", k=10)
        return time.process_time() - started

times = {}
for name, saved in (("folded", False), ("restored", True)):
    path = build(name, saved)
    searched(path)
    times[f"search, {name}"] = 1e3 * min(searched(path) for _ in range(searches))
with cerata.open(f"{folder}/durable.cera") as store:
    taken = []
    for number in range(appends):
        started = time.perf_counter()
        store.put_frame(f"note {number} on wax")
        taken.append(time.perf_counter() - started)
times["durable"] = 1e3 * statistics.median(taken)
print(json.dumps(times))
"""


def run_probe(program: str, checkout: Path, sizes: tuple[int, ...]) -> dict[str, float]:
    """Run a program in a checkout with a folder and sizes; return the milliseconds it prints."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-c", program, folder, *map(str, sizes)],
            cwd=checkout,
            env={"PYTHONPATH": str(checkout), "PATH": ""},
            check=True,
            capture_output=True,
            text=True,
        )
    taken: dict[str, float] = json.loads(run.stdout)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of the other commit")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tiny", action="store_true", help="a few seconds")
    options = parser.parse_args()
    sizes = (1_000, 20, 3) if options.tiny else (10_000, 300, 7)
    here = Path(__file__).resolve().parents[1]
    print(machine())
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(options.rounds):
        # The two take turns in going first.
        pair = [(ours, here), (theirs, options.other.resolve())]
        for runs, checkout in pair if number % 2 else reversed(pair):
            runs.append(run_probe(_PROBE, checkout, sizes))
    for name in ours[0]:
        ratios = [run[name] / peer[name] for run, peer in zip(ours, theirs, strict=True)]
        print(
            f"{name:<18} {statistics.median(run[name] for run in ours):8.3f} ms here, "
            f"{statistics.median(run[name] for run in theirs):8.3f} ms there, "
            f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
