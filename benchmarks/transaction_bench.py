"""Reads in a transaction over its pending events, beside those of another commit.

``python -m benchmarks.transaction_bench [OTHER]`` (``--frames``, ``--rounds``, ``--tiny``).
OTHER is a checkout of another commit. The same program runs in both, alternately, a process each
time: a store of so many frames and facts, then blocks that write and read, and are given up. Each
line has the least processor time of a block in the median round and, with OTHER, the median ratio.
Goal of a change to pending events: a ratio of at most 1.10.
"""

import argparse
import statistics
from pathlib import Path

from .append_bench import machine
from .commit_bench import run_probe

_PROBE = """
import json, random, sys, time
import cerata

folder, size, repeats = sys.argv[1], *map(int, sys.argv[2:])
draw = random.Random(7)
WORDS = [f"word{number}" for number in range(5_000)]

def text():
    return " ".join(draw.choices(WORDS, k=20))

class GiveUp(Exception):
    pass

def frames(store, reads):
    for number in range(100):
        frame = store.put_frame(text())
        if reads and number % 5 == 0:
            store.frame(frame), store.search("word1 word2", k=5), store.history.timeline(limit=5)

def facts(store, reads):
    for number in range(100):
        store.assert_fact(f"subject {number}", "is", f"new {number}")
        if reads and number % 5 == 0:
            store.facts(f"subject {number}")

BLOCKS = {
    "100 frames": lambda store: frames(store, False),
    "100 frames, read": lambda store: frames(store, True),
    "100 facts": lambda store: facts(store, False),
    "100 facts, read": lambda store: facts(store, True),
    "a frame, read": lambda store: store.frame(store.put_frame(text())),
    "a frame, searched": lambda store: (store.put_frame(text()), store.search("word1 word2")),
    "a fact, read": lambda store: (store.assert_fact("a", "is", "b"), store.facts("a")),
}

with cerata.open(f"{folder}/a.cera", options=cerata.OpenOptions(sync=1 << 30)) as store:
    for first in range(0, size, 500):
        count = min(500, size - first)
        store.put_frames([text() for _ in range(count)])
        numbers = range(first, first + count)
        store.graph.assert_many([(f"subject {n}", "is", f"value {n}") for n in numbers])
    store.search("word1"), store.facts("subject 1"), store.history.timeline(limit=5)
    found = {}
    for name, block in BLOCKS.items():
        taken = []
        for _ in range(repeats):
            started = time.process_time()
            try:
                with store.transaction():
                    block(store)
                    raise GiveUp
            except GiveUp:
                taken.append(time.process_time() - started)
        found[name] = 1e3 * min(taken)
print(json.dumps(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="a checkout of the other commit")
    parser.add_argument(
        "--frames", type=int, default=50_000, help="frames, and facts, of the store"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="a few seconds")
    options = parser.parse_args()
    sizes = (500, 2) if options.tiny else (options.frames, 10)
    here = Path(__file__).resolve().parents[1]
    print(machine())
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(1 if options.tiny else options.rounds):
        # Each goes first every other time.
        pair = [(ours, here)]
        if options.other is not None:
            pair.append((theirs, options.other.resolve()))
        for runs, checkout in pair if number % 2 else reversed(pair):
            runs.append(run_probe(_PROBE, checkout, sizes))
    for name in ours[0]:
        line = f"{name:<18} {statistics.median(run[name] for run in ours):8.2f} ms"
        if theirs:
            ratios = [run[name] / peer[name] for run, peer in zip(ours, theirs, strict=True)]
            line += (
                f", {statistics.median(run[name] for run in theirs):8.2f} ms there, "
                f"ratio {statistics.median(ratios):.2f}"
            )
        print(line)


if __name__ == "__main__":
    main()
