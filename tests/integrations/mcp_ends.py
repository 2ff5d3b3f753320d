"""Ends of a server of MCP, by each trigger: is it gone within 2 s, with every acknowledged write?

``python -m tests.integrations.mcp_ends --rounds 100`` starts a server for each trigger and round,
and prints the longest time of each, and of the starts the least and the median. A part of the
rounds has a write under way. The parent that is killed leaves stdin open, so that only the watch of
the parent ends the server.
"""

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import cerata

from .mcp_messages import Pipes, pipes_to, server_command

SECONDS_MAX: Final = 2.0

_PARENT: Final = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[1:])
time.sleep(600)
"""


def _close_stdin(pipes: Pipes) -> None:
    assert pipes.process.stdin is not None
    pipes.process.stdin.close()


def _signal(number: int) -> Callable[[Pipes], None]:
    return lambda pipes: pipes.process.send_signal(number)


TRIGGERS: Final[dict[str, Callable[[Pipes], None]]] = {
    "end of stdin": _close_stdin,
    "SIGTERM": _signal(signal.SIGTERM),
    "SIGINT": _signal(signal.SIGINT),
    "SIGHUP": _signal(signal.SIGHUP),
    "SIGKILL of the parent": _signal(signal.SIGKILL),
}

CODES: Final = {"end of stdin": 0, "SIGTERM": 143, "SIGINT": 130, "SIGHUP": 129}


class End(NamedTuple):
    """Seconds from the start until the server was ready, and from a trigger until it was gone.

    ``processor`` is the processor time of the whole process.
    """

    ready: float
    gone: float
    processor: float


def ended(trigger: str, folder: Path, python: str, source: random.Random) -> End:
    """Return the seconds of a server that a trigger ends.

    Raises:
        AssertionError: an answered write is not in the file, or the exit code is another.
    """
    path = folder / "ended.cera"
    path.unlink(missing_ok=True)
    command = server_command(python, path)
    if trigger == "SIGKILL of the parent":
        command = [sys.executable, "-c", _PARENT, *command]
    used = _processor_seconds()
    begin = time.monotonic()
    with pipes_to(command) as pipes:
        pipes.begin()
        ready = time.monotonic() - begin
        written = {f"text {number}" for number in range(source.randint(0, 3))}
        for text in written:
            assert pipes.call("remember", text=text) is not None
        under_way: dict[int, str] = {}
        if source.random() < 0.5:
            for number in range(source.randint(1, 8)):
                text = f"under way {number}"
                under_way[pipes.send_call("remember", {"text": text})] = text
            time.sleep(source.random() * 0.02)
        start = time.monotonic()
        TRIGGERS[trigger](pipes)
        while (message := pipes.receive()) is not None:
            if "result" in message and not message["result"].get("isError"):
                written.add(under_way[message["id"]])
        seconds = time.monotonic() - start
        if trigger in CODES:
            assert pipes.process.wait(10) == CODES[trigger], trigger
    processor = _processor_seconds() - used
    with cerata.open(path) as store:
        texts = [frame.text for frame in store.frames()]
        assert written <= set(texts), written - set(texts)
        assert len(texts) == len(set(texts))
        assert set(texts) <= written | {*under_way.values()}
    return End(ready, seconds, processor)


def _processor_seconds() -> float:
    """Return the processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--python", default=sys.executable)
    chosen = options.parse_args()
    source = random.Random(chosen.seed)
    longest = dict.fromkeys(TRIGGERS, 0.0)
    starts: list[float] = []
    used: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(chosen.rounds):
            for trigger in TRIGGERS:
                end = ended(trigger, Path(folder), chosen.python, source)
                longest[trigger] = max(longest[trigger], end.gone)
                starts.append(end.ready)
                # A killed parent is no measure: its server is another process.
                used += [end.processor] * (trigger in CODES)
    middle = sorted(starts)[len(starts) // 2]
    lines = [f"ready: at least {min(starts):.2f} s, median {middle:.2f} s"]
    lines += [f"processor time of a server: at least {min(used):.2f} s"]
    lines += [f"{name}: at most {seconds:.2f} s" for name, seconds in longest.items()]
    late = sum(seconds > SECONDS_MAX for seconds in longest.values())
    sys.stdout.write("\n".join([f"{chosen.rounds} rounds", *lines, f"{late} too late"]) + "\n")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
