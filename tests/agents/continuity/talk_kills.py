"""Kills of a conversation: no acknowledged message is lost, and none is there twice.

``python -m tests.agents.continuity.talk_kills --kills 200`` starts a session in a process, kills it
at drawn times, and starts the next one, which sends its last exchange again with its id, until so
many kills are done. It prints the figures. Every tenth session reflects.
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
from dataclasses import dataclass, field
from pathlib import Path

import cerata
from cerata import Agent, Filter

THREADS = ("main", "taxes")
_LATEST_S = 0.15
"""A kill comes at most so long after the process is ready."""


@dataclass
class Result:
    """What the kills left; ``faults`` has a line for each broken promise."""

    kills: int = 0
    acknowledged: int = 0
    resumed: int = 0
    """Sessions that began with the last messages of a crashed one."""
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills: {self.acknowledged:,} acknowledged exchanges, "
            f"{self.resumed:,} sessions resumed after a crash, {len(self.faults):,} faults"
        )


def work(path: Path, journal_path: Path, number: int) -> None:
    """Talk in a session until the kill; the first exchange is the last acknowledged, again."""
    journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    lines = journal_path.read_text().splitlines()
    with cerata.open(path) as store:
        agent = Agent(store, "wyatt")
        session = agent.session(f"s{number}", thread=THREADS[number % 2])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if lines:
            before, _, last = lines[-1].partition(" ")
            again = agent.session(before, thread=THREADS[int(before[1:]) % 2])
            again.exchange(f"question {last}", f"answer {last}", id=last)
        if number % 10 == 9:
            agent.reflect()
        count = 0
        while True:
            name = f"{number}.{count}"
            session.exchange(f"question {name}", f"answer {name}", id=name)
            os.write(journal, f"s{number} {name}\n".encode())
            count += 1


def run(folder: Path, kills: int, seed: int) -> Result:
    """Kill sessions in a folder, and check the next handoff after each kill."""
    path, journal = folder / "memory.cera", folder / "journal"
    drawn, result = random.Random(seed), Result()
    with cerata.open(path):
        journal.touch()
    for number in range(kills):
        process = _started(path, journal, number)
        time.sleep(drawn.uniform(0, _LATEST_S))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        result.kills += 1
        _check_last(path, journal, number, result)
    check_all(path, journal, result)
    return result


def _started(path: Path, journal: Path, number: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.agents.continuity.talk_kills", "--work"]
    process = subprocess.Popen(
        [*command, str(path), str(journal), str(number)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"ready\n"
    return process


def _check_last(path: Path, journal: Path, number: int, result: Result) -> None:
    """The next session of the thread shows the last acknowledged message, or a later one."""
    names = [line.split()[1] for line in journal.read_text().splitlines()]
    own = [name for name in names if name.startswith(f"{number}.")]
    with cerata.open(path) as store:
        agent = Agent(store, "wyatt")
        thread = THREADS[number % 2]
        texts = [message.text for message in agent.handoff(thread).messages]
        if own and not any(_place(text) >= int(own[-1].partition(".")[2]) for text in texts):
            result.faults.append(f"the handoff lacks {own[-1]}: {texts}")
        session = agent.session(f"look{number}", thread=thread)
        if own and session.resumed != "crashed":
            result.faults.append(f"s{number} looks {session.resumed}")
        context = session.assemble("So?", max_tokens=2_000)
        result.resumed += "[SESSION_RESUME]" in context.text
        if own and f"answer {own[-1]}" not in context.text and texts[-1] not in context.text:
            result.faults.append(f"the context lacks {own[-1]}")


def _place(text: str) -> int:
    return int(text.rpartition(".")[2]) if text.startswith("answer ") else -1


def check_all(path: Path, journal: Path, result: Result) -> None:
    """Every acknowledged exchange is there once, whole; no exchange is there in part."""
    names = [line.split()[1] for line in journal.read_text().splitlines()]
    result.acknowledged = len(names)
    with cerata.open(path, mode="r") as store:
        texts = Counter(frame.text for frame in store.frames(Filter(kind="message")))
        for name in names:
            if texts[f"question {name}"] != 1 or texts[f"answer {name}"] != 1:
                result.faults.append(f"{name} is not there once")
        for text, count in texts.items():
            kind, _, name = text.partition(" ")
            other = {"question": "answer", "answer": "question"}[kind]
            if count != 1 or texts[f"{other} {name}"] != 1:
                result.faults.append(f"{text!r} is there {count} times or without its half")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Kill conversations.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", nargs=3, metavar=("FILE", "JOURNAL", "NUMBER"))
    options = parser.parse_args()
    if options.work:
        path, journal, number = options.work
        work(Path(path), Path(journal), int(number))
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), options.kills, options.seed)
    for fault in result.faults:
        sys.stdout.write(f"{fault}\n")
    sys.stdout.write(f"{result}\n")
    sys.exit(bool(result.faults))


if __name__ == "__main__":
    main()
