"""Which file a verb works on, and how it is opened."""

import os
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Final

import cerata
from cerata.engine.errors import NotFound
from cerata.memory.store import Store
from cerata.memory.view import View

from .output import Output

Verb = Callable[[Namespace, Output], int]

DEFAULT_FILE: Final = "memory.cera"
"""What writing creates where no file is named and none is here."""


_TOUR: Final = re.compile(r"tour(-\d+)?\.cera")
"""What a tour leaves behind: nobody's notes should end up in it because it lies here."""


def file_of(options: Namespace, *, default: str | None = None) -> str:
    """Return the file that a verb works on.

    Raises:
        NotFound: none was named, and there is not exactly one here.
    """
    named: str | None = options.file or os.environ.get("CERATA_FILE") or None
    if named:
        return named
    every = sorted(str(path) for path in Path().glob("*.cera"))
    here = [name for name in every if not _TOUR.fullmatch(name)]
    if len(here) == 1:
        return here[0]
    if not here and default is not None:
        return default
    besides = " (a tour's does not count)" if len(here) < len(every) else ""
    found = f"There are {len(here)} *.cera files here" if here else "There is no *.cera file here"
    raise NotFound(
        found + besides,
        where=_folder(),
        remedy="Name one with -f FILE or $CERATA_FILE.",
    )


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed under us
        return "this folder"


def reading(options: Namespace) -> Store:
    """Open the file for reading; nothing is written or created."""
    return cerata.open(
        file_of(options),
        mode="r",
        lock_timeout=options.lock_timeout,
        environment=options.environment,
    )


def writing(options: Namespace, output: Output) -> Store:
    """Open the file for writing, or create it; warn if its newest events may be missing."""
    store = cerata.open(
        file_of(options, default=DEFAULT_FILE),
        lock_timeout=options.lock_timeout,
        environment=options.environment,
    )
    if store.report.bad_witnesses or store.report.ambiguous_tail:
        # Opening to write repairs both, so no later command can report them.
        output.warn(
            f"{store.path} was not closed, and the end of its log is damaged: its newest events "
            f"may be missing. It ends at event {store.head.seq:,}."
        )
    return store


def changing(options: Namespace, output: Output) -> Store:
    """Open an existing file for writing."""
    reading(options).close()
    return writing(options, output)


def planning(options: Namespace) -> Store:
    """Open what writing would open, without writing: a file that is not there is empty."""
    if Path(file_of(options, default=DEFAULT_FILE)).exists():
        return reading(options)
    return cerata.open(":memory:", environment=options.environment)


def view_of(store: Store, options: Namespace) -> View:
    """Return the memory as ``--at`` asks for it, by default the newest."""
    return store.at("HEAD" if options.at is None else options.at)


def memories(prefix: str, **_: object) -> list[str]:
    """Return the memories here, as ``--file`` takes them."""
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.cera"))]
