"""Paging: long answers go through the user's pager, on a terminal alone.

The pager is $CERATA_PAGER, else $PAGER, else less, told to show colours, to leave what fits on one
screen, and not to clear it. An empty value or ``cat`` means none.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import IO


def pager_command() -> list[str]:
    """Return the pager and its arguments; empty where there is none."""
    named = os.environ.get("CERATA_PAGER", os.environ.get("PAGER", "less"))
    try:
        command = shlex.split(named)
    except ValueError:
        return []
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return []
    return command


@contextmanager
def paged(*, wanted: bool) -> Generator[IO[str] | None]:
    """Give what to write to so that a pager shows it; None where output is not paged."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()  # None: it was closed before us
    command = pager_command() if wanted and on_terminal else []
    if not command:
        yield None
        return
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    ) as child:
        assert child.stdin is not None
        try:
            yield child.stdin
        finally:
            # One that was quit has closed its end: what was not shown was not wanted.
            with suppress(BrokenPipeError):
                child.stdin.close()
            # Ctrl-C is the pager's: without it the terminal would be left as the pager had it.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                child.wait()
            finally:
                signal.signal(signal.SIGINT, before)
