"""The vocabulary of cases: named checks, a memory of one file, and calls that may refuse."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import cerata
from cerata.memory.store import Store

ERROR = cerata.CerataError


class Checks:
    """The checks of one case.

    - ``folder`` is empty at the start.
    - ``failures`` holds the name of each check that failed, and the value that it saw.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures: list[str] = []

    def __call__(self, name: str, is_right: bool, seen: object = "") -> None:
        """Record a check that failed."""
        if not is_right:
            self.failures.append(f"{name}: {seen!r}"[:300])

    def answers(self, name: str, call: Callable[[], object]) -> None:
        """Check that a call returns, or raises an error of ours."""
        try:
            call()
        except ERROR:
            pass
        except Exception as error:  # noqa: BLE001
            self(name, False, f"{type(error).__name__}: {error}")


def remembered(checks: Checks, name: str, content: object) -> tuple[Store, Any, list[cerata.Frame]]:
    """Return a memory that remembered one file, the report, and all frames.

    Bytes and a text are the file's content; another value is written as JSON.
    """
    path = checks.folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")
    store = cerata.open(":memory:")
    report = store.files.remember([path])
    return store, report, [*store.frames(include_chunks=True)]


def cerata_command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process."""
    command = [sys.executable, "-m", "cerata", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


Case: TypeAlias = Callable[[Checks], None]
