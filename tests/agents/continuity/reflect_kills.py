"""Kills of a reflection: it goes on, asks no acknowledged task again, and doubles no summary.

``python -m tests.agents.continuity.reflect_kills --kills 200`` changes a history, starts
`Agent.reflect` in a process, kills it at drawn times, half of them during a model's task, and
starts it again until it ends. A side file has each question of the model and each acknowledged
answer. It prints the figures.
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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import cerata
from cerata import Agent, Filter, Store
from cerata.agents import judge
from cerata.agents.activities.values import activities_at
from cerata.agents.continuity.models import Task
from cerata.agents.continuity.periods import LEVELS
from cerata.agents.continuity.summaries import Summaries
from cerata.agents.continuity.tasks import Writer
from cerata.agents.turns.measures import DIMENSIONS
from cerata.engine.events import Draft, PutFrame, Scope
from cerata.engine.integrity import hash_bytes
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.frames import Receipt
from cerata.projections.columnar.times import to_microseconds

AGENT = "wyatt"
MODES = ("chat", "code")
DAYS = 28
_LATEST_S = 0.3
"""A kill by the clock comes at most so long after the process is ready."""

_ANSWER_S = 0.004
"""A model takes at most so long for an answer."""

_CALLS = 12
"""A kill during a task comes in one of so many first calls."""


@dataclass
class Result:
    """What the kills left; ``faults`` has a line for each broken promise."""

    kills: int = 0
    during: int = 0
    """Kills during a task of the model."""
    ended: int = 0
    """Reflections that ended, each after some kills."""
    acknowledged: int = 0
    repeated: int = 0
    """Tasks that were asked again, since no answer was acknowledged before a kill."""
    summaries: int = 0
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills, {self.during:,} during a task: {self.ended:,} reflections "
            f"ended, {self.acknowledged:,} acknowledged tasks, {self.repeated:,} asked again "
            f"before an acknowledgement, {self.summaries:,} summaries, {len(self.faults):,} faults"
        )


# --- the process that reflects -------------------------------------------------------------------


def key_of(task: Task) -> str:
    """Return the identity of a task."""
    parts = [task.kind, task.instructions, *(f"{each.id} {each.text}" for each in task.sources)]
    return hash_bytes("\0".join(parts).encode()).hex()[:16]


def answer_to(task: Task) -> str:
    """Return the answer of the model: a pure function of the task."""
    if task.kind == "assess":
        return "\n".join(f"{name}: 5" for name in DIMENSIONS)
    if task.kind == "align":
        return "YES 1\nIt keeps its word."
    text = f"Answer {key_of(task)}."
    is_last = task.kind == "reflect" and "Conclude" in task.instructions
    return f"{text}\nPROPOSE: I remember {key_of(task)}." if is_last else text


class Counting:
    """A model that notes each task, and may die in the middle of one."""

    name = "counting"
    version = "1"

    def __init__(self, journal: int, dies_at: int) -> None:
        self._journal = journal
        self._dies_at = dies_at
        self._calls = 0

    def write(self, task: Task) -> str:
        """Answer a task; the call ``dies_at`` kills the process."""
        _note(self._journal, "asked", key_of(task))
        self._calls += 1
        time.sleep(random.random() * _ANSWER_S)
        if self._calls == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        _note(self._journal, "answered", key_of(task))
        return answer_to(task)


def _note(journal: int, *words: str) -> None:
    os.write(journal, f"{' '.join(words)}\n".encode())


def work(path: Path, journal_path: Path, dies_at: int) -> None:
    """Reflect once, and note each answer whose record returned."""
    journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    record = Writer.record

    def noted(
        self: Writer,
        task: Task,
        text: str,
        fields: PutFrame,
        scope: Scope,
        further: Sequence[Draft] = (),
        replaces: Sequence[int] = (),
    ) -> Receipt:
        receipt = record(self, task, text, fields, scope, further, replaces)
        _note(journal, "acknowledged", key_of(task))
        return receipt

    Writer.record = noted  # type: ignore[method-assign]
    with cerata.open(path) as store:
        agent = Agent(store, AGENT, model=Counting(journal, dies_at))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        failed = agent.reflect().failed
    sys.exit("; ".join(map(str, failed)) or 0)


# --- kills ---------------------------------------------------------------------------------------


def run(folder: Path, kills: int, seed: int) -> Result:
    """Kill reflections over a changing history, and check the memory after each."""
    path, journal = folder / "memory.cera", folder / "journal"
    drawn, result = random.Random(seed), Result()
    journal.touch()
    with cerata.open(path) as store:
        store.remember("I keep my word.", kind="identity", uri="identity:SOUL")
    while result.kills < kills:
        change(path, drawn, result.ended)
        for _ in range(min(drawn.randint(1, 5), kills - result.kills)):
            if _killed(path, journal, drawn):
                result.kills += 1
            _check(path, result, is_ended=False)
        _complete(path, journal)
        result.ended += 1
        _check(path, result, is_ended=True)
    check_journal(journal, result)
    return result


def change(path: Path, drawn: random.Random, number: int) -> None:
    """Talk on drawn days, edit and delete messages, and reject what was proposed."""
    with cerata.open(path) as store:
        agent = Agent(store, AGENT)
        for count in range(drawn.randint(1, 6)):
            thread, mode = drawn.choice(("main", "taxes")), drawn.choice(MODES)
            name = f"{number}.{count}"
            with agent.session(f"s{name}", thread=thread, mode=mode) as session:
                session.exchange(
                    f"No, I meant the deadline of {name}; I am scared of the deadline.",
                    f"The deadline {name} is on Friday.",
                    created=f"2026-{drawn.randint(1, 9):02}-{drawn.randint(1, DAYS):02}T10:00:00Z",
                )
        frames = [frame.id for frame in store.frames(Filter(kind="message"))]
        for frame in drawn.sample(frames, min(len(frames), drawn.randint(0, 2))):
            store.supersede(frame, f"Edited in round {number}: {frame}.")
        if drawn.random() < 0.3:
            store.delete(drawn.choice([f.id for f in store.frames(Filter(kind="message"))]))
        for proposal in agent.proposals():
            if proposal.status == "open":
                judge(store, proposal, "reject", actor="anna")


def _killed(path: Path, journal: Path, drawn: random.Random) -> bool:
    """Start a reflection and kill it; False if it ended before."""
    is_during = drawn.random() < 0.5
    process = _started(path, journal, drawn.randint(1, _CALLS) if is_during else 0)
    if not is_during:
        time.sleep(drawn.uniform(0, _LATEST_S))
        process.kill()
    return process.wait() == -signal.SIGKILL


def _complete(path: Path, journal: Path) -> None:
    assert _started(path, journal, 0).wait() == 0


def _started(path: Path, journal: Path, dies_at: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.agents.continuity.reflect_kills", "--work"]
    process = subprocess.Popen(
        [*command, str(path), str(journal), str(dies_at)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"ready\n"
    return process


# --- checks --------------------------------------------------------------------------------------


def _check(path: Path, result: Result, *, is_ended: bool) -> None:
    with cerata.open(path, mode="r") as store:
        result.faults += summary_faults(store, is_ended=is_ended)
        if is_ended:
            result.faults += [f"due at the end: {each}" for each in _due(store)]
        result.summaries = sum(1 for _ in store.frames(Filter(kind="summary")))


def _due(store: Store) -> list[str]:
    """Return the tasks that are due; a pass waits if five proposals are open."""
    agent = Agent(store, AGENT, model=Counting(-1, 0))
    opened = sum(1 for each in agent.proposals() if each.status == "open")
    due = agent.reflect(dry_run=True).skipped
    return [str(each) for each in due if not (opened >= 5 and each.subject.startswith("synth"))]


def summary_faults(store: Store, *, is_ended: bool) -> list[str]:
    """Return a line for each doubled or, after an end, stale or missing summary.

    A day that has not ended has no summary; an edited message belongs to the day of its edit.
    """
    snapshot = snapshot_of(store).within({"tenant": "default"})
    summaries = Summaries(snapshot, AGENT)
    faults: list[str] = []
    leaves: Counter[int] = Counter()
    messages: set[int] = set()
    now_us = to_microseconds(snapshot.now)
    for line in summaries.lines:
        for level in range(len(LEVELS)):
            sources = summaries.sources(line, level, now_us)
            ended = {each: used for each, used in sources.items() if each.end_us <= now_us}
            if level == 0:
                messages.update(chain.from_iterable(ended.values()))
            made = summaries.made(line, level)
            for period, frames in made.items():
                place = f"{line.thread}/{line.group} {period.key}"
                if len(frames) != 1:
                    faults.append(f"{place} has {len(frames)} summaries")
                call = activities_at(snapshot).call_that_made(frames[0])
                if call is None:
                    faults.append(f"{place} has no call")
                    continue
                used = activities_at(snapshot).used_by(call)
                if level == 0:
                    leaves.update(used)
                if is_ended and set(used) != set(ended.get(period, ())):
                    faults.append(f"{place} is stale")
            if is_ended:
                faults += [f"no summary of {each.key}" for each in ended if each not in made]
    for message in sorted(messages):
        if leaves[message] > 1 or (is_ended and leaves[message] != 1):
            faults.append(f"message #{message} is under {leaves[message]} day summaries")
    return faults


def check_journal(journal: Path, result: Result) -> None:
    """No task is asked after its answer was acknowledged."""
    acknowledged: set[str] = set()
    asked: Counter[str] = Counter()
    pending: str | None = None
    for line in journal.read_text().splitlines():
        word, key = line.split()
        if word == "asked":
            # Without an answer to the question before, the process died during that task.
            result.during += pending is not None
            pending = key
            asked[key] += 1
            if key in acknowledged:
                result.faults.append(f"the acknowledged task {key} was asked again")
        elif word == "answered":
            pending = None
        else:
            acknowledged.add(key)
    result.acknowledged = len(acknowledged)
    result.repeated = asked.total() - len(asked)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Kill reflections.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", nargs=3, metavar=("FILE", "JOURNAL", "CALL"))
    options = parser.parse_args()
    if options.work:
        path, journal, dies_at = options.work
        work(Path(path), Path(journal), int(dies_at))
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), options.kills, options.seed)
    for fault in result.faults:
        sys.stdout.write(f"{fault}\n")
    sys.stdout.write(f"{result}\n")
    sys.exit(bool(result.faults))


if __name__ == "__main__":
    main()
