"""Commands in new processes, from the start of Python to its end.

``python -m benchmarks.cold_bench [OTHER]`` (``--rounds``, ``--frames``, ``--tiny``). OTHER is a
checkout of another commit, which answers the same commands in the same rounds. The floors of each
round are an empty Python and ``import numpy``. Each line has the least and the median of the wall
time and of the processor time (user and system), in milliseconds.

Sources are compiled first, into a folder of the run. The disk is warm: each command runs once
before it counts.
"""

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

import cerata
from benchmarks.beside.documents import vocabulary

from .append_bench import machine

_SEED: Final = 7
_COMMAND: Final = "import sys; from cerata.__main__ import main; sys.exit(main())"
_FLOORS: Final = (("python -c pass", "pass"), ("python -c 'import numpy'", "import numpy"))
_BATCH: Final = 100


def build(path: Path, frames: int) -> str:
    """Write a memory with a checkpoint, and return four words of it to ask for."""
    source = random.Random(_SEED)
    words = vocabulary(min(60_000, frames), source)
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    with cerata.open(path) as store:
        for start in range(0, frames, _BATCH):
            store.put_frames(
                [
                    " ".join(source.choices(words, cum_weights=weights, k=40))
                    for _ in range(min(_BATCH, frames - start))
                ]
            )
        store.checkpoint()
    return " ".join(source.choices(words, cum_weights=weights, k=4))


def commands_of(file: Path, question: str) -> list[list[str]]:
    """Return the command lines that are timed."""
    on = ["-f", str(file)]
    return [
        ["--version"],
        ["recall", "--help"],
        ["log", "-n", "5", *on],
        ["put", "A note about the index.", *on],
        ["search", question, *on],
        ["recall", question, *on],
    ]


class Process:
    """A Python program whose new processes are timed."""

    def __init__(
        self, code: str, words: Sequence[str], checkout: Path | None, compiled: Path
    ) -> None:
        self._line = [sys.executable, "-c", code, *words]
        # Not this folder, which Python would search before the other checkout.
        self._folder = compiled.parent
        self._variables = {
            "PATH": os.defpath,
            "PYTHONPYCACHEPREFIX": str(compiled),
            **({} if checkout is None else {"PYTHONPATH": str(checkout)}),
        }
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.answer = subprocess.run(
            self._line, cwd=self._folder, env=self._variables, check=True, capture_output=True
        ).stdout

    def run(self) -> None:
        """Run the program once, and keep its times."""
        started = time.perf_counter()
        child = subprocess.Popen(
            self._line,
            cwd=self._folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(child.pid, 0)
        self.wall.append(1e3 * (time.perf_counter() - started))
        self.cpu.append(1e3 * (usage.ru_utime + usage.ru_stime))
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, self._line

    def times(self) -> str:
        """Return the least and the median of both times."""
        return "  ".join(
            f"{min(times):7.1f} {statistics.median(times):7.1f}" for times in (self.wall, self.cpu)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="a checkout of another commit")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--only", help="only commands that begin with this word")
    parser.add_argument("--tiny", action="store_true", help="a few seconds")
    options = parser.parse_args()
    rounds, frames = (2, 200) if options.tiny else (options.rounds, options.frames)
    checkouts = {"here": Path(__file__).resolve().parents[1]}
    if options.other is not None:
        checkouts["there"] = options.other.resolve()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        file, compiled = Path(folder) / "notes.cera", Path(folder) / "compiled"
        question = build(file, frames)
        processes = {(name, ""): Process(code, (), None, compiled) for name, code in _FLOORS}
        for words in commands_of(file, question):
            if options.only not in (None, words[0]):
                continue
            for place, checkout in checkouts.items():
                name = f"cerata {' '.join(words).removesuffix(f' -f {file}')}"
                processes[name, place] = Process(_COMMAND, words, checkout, compiled)
        for number in range(rounds):
            # All take turns in going first.
            order = list(processes.values())
            for process in order if number % 2 else reversed(order):
                process.run()
    print(f"{frames:,} frames of 40 words; {rounds} rounds")
    print(f"{'':<58}{'wall: least, median':>15}  {'cpu: least, median':>15}")
    for (name, place), process in processes.items():
        print(f"{name:<50.50} {place:<7}{process.times()}")
    answers = hashlib.sha256(b"".join(process.answer for process in processes.values()))
    print(f"answers {answers.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
