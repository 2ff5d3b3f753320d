"""Servers of MCP on one file, killed at random, and processes that replace the same URIs.

``python -m tests.integrations.mcp_stress --servers 8 --writes 1000 --kills 60 --uris 1000`` gives
each server its writes, and starts a killed server again, which gets the unanswered write once more.
It checks that each acknowledged write is in the file exactly once, and that each URI that two
processes replaced at the same time has one current frame.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import cerata
from cerata.events import PutFrame

from .mcp_messages import Pipes, pipes_to, server_command, server_environment

_REPLACE = """
import sys
import cerata
with cerata.open(sys.argv[1]) as store:
    for number in range(int(sys.argv[2])):
        store.put_frame(
            f"{sys.argv[3]} {number}",
            uri=f"u:{number}",
            options=cerata.PutOptions(replace=True),
        )
"""


class Writer(threading.Thread):
    """Writes texts through a server, which it starts again after each death."""

    def __init__(self, name: str, command: list[str], writes: int) -> None:
        super().__init__(daemon=True)
        self._texts = [f"{name} writes {number}" for number in range(writes)]
        self._command = command
        self.acknowledged: list[str] = []
        self.starts = 0
        self.errors: list[str] = []
        self.pipes: Pipes | None = None

    def run(self) -> None:
        while len(self.acknowledged) < len(self._texts) and not self.errors:
            self.starts += 1
            with pipes_to(self._command) as pipes:
                try:
                    self._write(pipes)
                except (OSError, AssertionError):
                    # It was killed.
                    continue

    def _write(self, pipes: Pipes) -> None:
        pipes.begin()
        self.pipes = pipes
        while len(self.acknowledged) < len(self._texts):
            text = self._texts[len(self.acknowledged)]
            answer = pipes.call("remember", text=text)
            if answer is None:
                return
            if not answer.startswith("#"):
                self.errors.append(answer)
                return
            self.acknowledged.append(text)


def stressed(
    path: Path, python: str, servers: int, writes: int, kills: int, seed: int
) -> Counter[str]:
    """Write through all servers, kill some of them, and check the file.

    Raises:
        AssertionError: a server answered with an error, or a write is missing or there twice.
    """
    source = random.Random(seed)
    cerata.open(path).close()
    command = server_command(python, path)
    writers = [Writer(f"server {number}", command, writes) for number in range(servers)]
    for writer in writers:
        writer.start()
    counts: Counter[str] = Counter()
    total = servers * writes
    while any(writer.is_alive() for writer in writers):
        time.sleep(0.02)
        written = sum(len(writer.acknowledged) for writer in writers)
        # Kills are spread over the writes, not over the time.
        if counts["kills"] < kills and written * kills >= total * counts["kills"]:
            chosen = source.choice(writers)
            if chosen.pipes is not None and chosen.is_alive():
                chosen.pipes.process.send_signal(signal.SIGKILL)
                chosen.pipes = None
                counts["kills"] += 1
    acknowledged = [text for writer in writers for text in writer.acknowledged]
    errors = [error for writer in writers for error in writer.errors]
    assert not errors, errors[:3]
    assert len(acknowledged) == total
    with cerata.open(path) as store:
        put = Counter(event.body.text for event in store.log() if isinstance(event.body, PutFrame))
        assert put == Counter(acknowledged)
        assert store.count() == (total, 0)
        assert store.verify().ok
    counts["acknowledged"] = total
    counts["starts"] = sum(writer.starts for writer in writers)
    return counts


def replaced(path: Path, uris: int, processes: int = 2) -> None:
    """Replace the same URIs in several processes, and check that each has one current frame."""
    cerata.open(path).close()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _REPLACE, str(path), str(uris), f"process {number}"],
            env=server_environment(),
        )
        for number in range(processes)
    ]
    assert [process.wait() for process in running] == [0] * processes
    with cerata.open(path) as store:
        current = Counter(frame.uri for frame in store.frames())
        assert current == Counter({f"u:{number}": 1 for number in range(uris)})
        assert store.count() == (uris, uris * (processes - 1))
        assert store.verify().ok


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--servers", type=int, default=8)
    options.add_argument("--writes", type=int, default=20)
    options.add_argument("--kills", type=int, default=4)
    options.add_argument("--uris", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--python", default=sys.executable)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = stressed(
            Path(folder) / "shared.cera",
            chosen.python,
            chosen.servers,
            chosen.writes,
            chosen.kills,
            chosen.seed,
        )
        replaced(Path(folder) / "uris.cera", chosen.uris)
    sys.stdout.write(f"{dict(counts)}\n{chosen.uris} URIs, each with one current frame\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
