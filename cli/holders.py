"""Holders: which processes have a file open, as far as this system tells.

The kernel does not say who owns a lock of an open file description; it does say, on Linux, who has
a file open, of the processes that this user may see. So that is what is said, and not more.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cerata.engine.events import JsonValue

_PROCESSES: Final = Path("/proc")
_COMMAND_SIZE: Final = 40


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has the file open."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"

    def to_dict(self) -> dict[str, JsonValue]:
        return {"pid": self.pid, "command": self.command}


def holders_of(path: str) -> list[Holder]:
    """Return the other processes that have a file open, by number; none where nobody tells."""
    try:
        wanted = os.stat(path)
        processes = sorted(int(one.name) for one in _PROCESSES.iterdir() if one.name.isdigit())
    except OSError:
        return []
    own = os.getpid()
    return [
        Holder(pid, _command(pid))
        for pid in processes
        if pid != own and any(os.path.samestat(wanted, one) for one in _open_files(pid))
    ]


def _open_files(pid: int) -> Iterator[os.stat_result]:
    """Yield what a process has open; nothing of one that is gone or somebody else's."""
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
