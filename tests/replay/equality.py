"""One past, four ways to it: random histories, every read, at every event.

At each n of a random history of every kind of event these must answer alike:

- *native*: a view at n of a store whose state is that of the whole log;
- *checkpoint plus tail*: what an opener has who restores a checkpoint and folds no further than n;
- *full replay*: the events alone, from the first one;
- *stopped*: another store, to which nothing was ever written after event n.

``python -m tests.replay.equality 100`` does so for 100 histories in two processes with different
hash seeds, compares what they saw, and prints the figures.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from cerata.projections.registry import Registry
from cerata.projections.rows.row_fold import MakeOwn
from cerata.replay.fold import Fold, replay

from .answers import answers
from .drawn import history, written
from .spending import Spending

OWN: Sequence[MakeOwn] = (Spending,)


# --- comparing -----------------------------------------------------------------------------------


class Unequal(AssertionError):
    """Two ways to one state gave different answers."""


@dataclass
class Tally:
    """What was compared, and a hash of all answers in order."""

    histories: int = 0
    events: int = 0
    states: int = 0
    answers: Any = None

    def __post_init__(self) -> None:
        self.answers = hashlib.sha256()

    def __str__(self) -> str:
        return (
            f"{self.histories:,} histories of {self.events:,} events; "
            f"{self.states:,} states, each reached in 4 ways, all equal; "
            f"answers {self.answers.hexdigest()[:16]}"
        )


def compare(
    seed: int,
    events: int,
    tally: Tally,
    *,
    own: Sequence[MakeOwn] = OWN,
    every: int = 1,
    first: int = 0,
    step: int = 1,
) -> None:
    """Compare the four ways at each n of one history, or at each ``every``-th from ``first`` on.

    With ``step`` only each so many-th frame is read by itself; every read is made.

    Raises:
        Unequal: naming seed, n and the ways.
    """
    source = Random(seed)
    batches = history(source, events)
    registry = Registry(own)
    with written(batches) as log:
        Fold(log, registry, last=source.randint(0, events // 2)).save()
        native = Fold(log, registry)
        for n in range(first, events + 1, every):
            ways = {"native": answers(log, native, n, step)}
            ways["checkpoint plus tail"] = answers(log, Fold(log, registry, last=n), n, step)
            ways["full replay"] = answers(log, replay(log, n, registry), n, step)
            with written(batches, n) as stopped:
                ways["stopped"] = answers(stopped, Fold(stopped, registry), n, step)
            for name, answer in ways.items():
                if answer != ways["native"]:
                    raise Unequal(f"seed {seed}, event {n}: native and {name} differ")
            tally.answers.update(ways["native"].encode())
            tally.states += 1
    tally.histories += 1
    tally.events += events


# --- the command ---------------------------------------------------------------------------------


def run(histories: int, first_seed: int, events: int = 40) -> Tally:
    """Compare short histories at every event, and for each twenty of them two long ones at some.

    The longer one has two largest ranges, and of it single frames are read by sample.
    """
    tally = Tally()
    for number in range(histories):
        compare(first_seed + number, events, tally)
        if number % 20 == 19:
            compare(first_seed + number, 1_300, tally, every=97)
            compare(first_seed + number, 9_000, tally, first=4_090, every=982, step=100)
    return tally


def run_elsewhere(
    histories: int, first_seed: int, hash_seeds: Sequence[int], events: int = 40
) -> list[str]:
    """Return the line that a process with each of these hash seeds prints, run side by side."""
    command = [sys.executable, "-m", "tests.replay.equality", "--here"]
    running = [
        subprocess.Popen(
            [*command, str(histories), str(first_seed), str(events)],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            cwd=Path(__file__).resolve().parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for hash_seed in hash_seeds
    ]
    said = [(process.communicate(), process.returncode) for process in running]
    for (_, errors), code in said:
        if code:
            raise Unequal(errors)
    return [line.strip() for (line, _), _ in said]


def main() -> None:
    here = "--here" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    histories, first_seed, events = [*numbers, *(100, 20_240_229, 40)[len(numbers) :]]
    if here:
        sys.stdout.write(f"{run(histories, first_seed, events)}\n")
        return
    started = time.monotonic()
    lines = run_elsewhere(histories, first_seed, (1, 2), events)
    if len(set(lines)) > 1:
        raise Unequal(f"processes with different hash seeds saw different answers: {lines}")
    sys.stdout.write(f"{lines[0]}\nthe same in 2 processes with hash seeds 1 and 2, ")
    sys.stdout.write(f"{time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
