"""Paging: long answers go through the user's pager, on a terminal alone.

The pager is $CERATA_PAGER, else $PAGER, else less, with options to show colours, to quit at once if
the text fits on one screen, and not to clear the screen. An empty value or ``cat`` means no pager.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import IO


def pager_command() -> list[str]:
    """Return the pager and its arguments; empty without a pager."""
    setting = os.environ.get("CERATA_PAGER", os.environ.get("PAGER", "less"))
    try:
        command = shlex.split(setting)
    except ValueError:
        return []
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return []
    return command


@contextmanager
def paged() -> Generator[IO[str] | None]:
    """Yield the pager's input; None without a pager. Standard output is a terminal."""
    command = pager_command()
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
            # A pager that quit has closed its end; the rest of the text is not needed.
            with suppress(BrokenPipeError):
                child.stdin.close()
            # Leave Ctrl-C to the pager, which restores the terminal when it quits.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                child.wait()
            finally:
                signal.signal(signal.SIGINT, before)
