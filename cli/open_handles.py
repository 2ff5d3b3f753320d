"""Holders: the processes that have a file open, as far as the system lists them.

The kernel does not list the owners of locks of open file descriptions. Linux does list the open
files of processes that this user may inspect; only these are reported.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cerata.engine.plain_value import PlainValue

_PROCESSES: Final = Path("/proc")
_COMMAND_SIZE: Final = 40


@dataclass(frozen=True, slots=True)
class Holder(PlainValue):
    """A process that has the file open."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def holders_of(path: str) -> list[Holder]:
    """Return the other processes with the file open, by number; none if the system lists none."""
    try:
        target = os.stat(path)
        processes = sorted(
            int(entry.name) for entry in _PROCESSES.iterdir() if entry.name.isdigit()
        )
    except OSError:
        return []
    this_process = os.getpid()
    return [
        Holder(pid, _command(pid))
        for pid in processes
        if pid != this_process
        and any(os.path.samestat(target, opened) for opened in _open_files(pid))
    ]


def _open_files(pid: int) -> Iterator[os.stat_result]:
    """Yield the open files of a process; none if it has ended or belongs to another user."""
    try:
        names = os.listdir(_PROCESSES / str(pid) / "fd")
    except OSError:
        return
    for name in names:
        try:
            yield os.stat(_PROCESSES / str(pid) / "fd" / name)
        except OSError:
            continue


def _command(pid: int) -> str:
    try:
        words = (_PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    line = " ".join(word.decode(errors="replace") for word in words if word)
    return line if len(line) <= _COMMAND_SIZE else line[: _COMMAND_SIZE - 1] + "…"
