"""Kills of an agent: no acknowledged result is lost, renamed or computed again.

``python -m tests.agents.kills --kills 500`` starts an agent in a process, kills it at drawn times,
starts it again until its runs are done, and prints the figures. A run fetches and measures by
reference, with memos, keeps its total in a slot, and ends.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cerata
from cerata import Agent, MemorySpec

STEPS = 6
MEMORY = {"totals": MemorySpec(), "notes": MemorySpec(type="list", max_items=5)}
_LATEST_S = 0.25
"""A kill comes at most so long after the process is ready."""


@dataclass
class Result:
    """What the kills left; ``faults`` has a line for each broken promise."""

    kills: int = 0
    runs: int = 0
    acknowledged: int = 0
    repeated: int = 0
    """Calls that were made again, since their result was not acknowledged before a kill."""
    resumed: int = 0
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills: {self.runs:,} runs ended, {self.resumed:,} resumed, "
            f"{self.acknowledged:,} acknowledged results, {self.repeated:,} calls made again "
            f"before an acknowledgement, {len(self.faults):,} faults"
        )


# --- the agent's process -------------------------------------------------------------------------


def _note(journal: int, *words: object) -> None:
    os.write(journal, (" ".join(map(str, words)) + "\n").encode())


def _values(run: int, step: int) -> list[int]:
    return [run * 7 + step + k for k in range(40 + 400 * (step % 3))]


def total_of(run: int) -> int:
    """Return the figure of a run that was never killed."""
    return sum(sum(_values(run, step)) for step in range(STEPS))


def _work(agent: Agent, number: int, journal: int) -> None:
    name = f"r{number}"

    def fetch(step: int) -> list[int]:
        _note(journal, "made", name, "fetch", step)
        return _values(number, step)

    def measure(values: list[int], step: int) -> int:
        _note(journal, "made", name, "measure", step)
        return sum(values)

    with agent.run(name, inputs={"number": number}) as run:
        total = 0
        for step in range(STEPS):
            fetched = run.call("fetch", fetch, memo=True, step=step)
            _note(journal, "acknowledged", name, "fetch", step, fetched.ref)
            values = fetched.ref if step % 2 else f"{fetched.ref}#"
            measured = run.call("measure", measure, memo=True, values=values, step=step)
            _note(journal, "acknowledged", name, "measure", step, measured.ref)
            total += int(str(measured.value))
        kept = run.put("total", total)
        assert kept.ref is not None
        run.keep(kept.ref, "totals", name)
        agent.slot("notes").append(number)
        _note(journal, "kept", name)


def work(path: Path, journal_path: Path, runs: int) -> None:
    """Do the runs that are not done, in order."""
    journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with cerata.open(path) as store:
        agent = Agent(store, "analyst", memory=MEMORY)
        ended = {run.name for run in agent.runs() if run.status != "open"}
        _note(journal, "ready")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for number in range(runs):
            if f"r{number}" not in ended:
                _work(agent, number, journal)
    os.close(journal)


# --- the kills -----------------------------------------------------------------------------------


def run(folder: Path, kills: int, seed: int) -> Result:
    """Kill an agent in a folder until so many kills are done and its runs have ended."""
    path, journal = folder / "memory.cera", folder / "journal"
    drawn, result = random.Random(seed), Result()
    # A run takes about as long as the time to a kill, so this many outlast the kills.
    runs = 3 * kills + 2
    while result.kills < kills:
        process = _started(path, journal, runs)
        time.sleep(drawn.uniform(0, _LATEST_S))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        result.kills += 1
        _check_open(path, journal, result)
    with cerata.open(path, mode="r") as store:
        ends = len(Agent(store, "analyst").runs())
    assert _started(path, journal, ends).wait() == 0
    _check_all(path, journal, ends, result)
    return result


def _started(path: Path, journal: Path, runs: int) -> subprocess.Popen[bytes]:
    work = ["--work", str(path), str(journal), str(runs)]
    command = [sys.executable, "-m", "tests.agents.kills", *work]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"ready\n"
    return process


def _lines(journal: Path) -> list[list[str]]:
    return [line.split() for line in journal.read_text().splitlines()]


def _check_open(path: Path, journal: Path, result: Result) -> None:
    """Check the acknowledged results of the run that a kill left open."""
    with cerata.open(path, mode="r") as store:
        agent = Agent(store, "analyst")
        opened = [run.name for run in agent.runs() if run.status == "open"]
        if len(opened) > 1:
            result.faults.append(f"open at once: {opened}")
        result.resumed += len(opened)
        for name in opened:
            refs = {reference.ref for reference in agent.refs(name)}
            for words in _lines(journal):
                if words[0] == "acknowledged" and words[1] == name:
                    _check_value(agent, name, words, refs, result)


def _check_value(agent: Agent, name: str, words: list[str], refs: set[str], result: Result) -> None:
    _, _, call, step, ref = words
    if ref not in refs:
        result.faults.append(f"lost: {ref} of {name}")
        return
    expected: Any = _values(int(name[1:]), int(step))
    if call == "measure":
        expected = sum(expected)
    if agent.get(name, ref) != expected:
        result.faults.append(f"changed: {ref} of {name}")


def _check_all(path: Path, journal: Path, runs: int, result: Result) -> None:
    """Check what the whole life promises, from the order of the journal."""
    names: dict[tuple[str, ...], str] = {}
    made: set[tuple[str, ...]] = set()
    for kind, *words in _lines(journal):
        call = tuple(words[:3])
        if kind == "made":
            result.repeated += call in made
            made.add(call)
            if call in names:
                result.faults.append(f"computed again: {call}")
        elif kind == "acknowledged" and names.setdefault(call, words[3]) != words[3]:
            result.faults.append(f"renamed: {call}, {names[call]} and {words[3]}")
    result.acknowledged = len(names)
    with cerata.open(path) as store:
        agent = Agent(store, "analyst", memory=MEMORY)
        status = {run.name: run.status for run in agent.runs()}
        if status != {f"r{number}": "done" for number in range(runs)}:
            result.faults.append(f"not done: {status}")
        result.runs = len(status)
        totals = {item.key: item.value for item in agent.slot("totals").items()}
        if totals != {f"r{number}": total_of(number) for number in range(runs)}:
            result.faults.append("other totals")
        if not store.verify().ok:
            result.faults.append("verify")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Kill an agent at drawn times.")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(Path(options.work[0]), Path(options.work[1]), int(options.work[2]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), options.kills, options.seed)
    sys.stdout.write(f"{result}\n")
    for fault in result.faults[:20]:
        sys.stdout.write(f"  {fault}\n")
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
