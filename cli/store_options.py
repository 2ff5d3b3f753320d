"""Files: the file of a verb, and how it is opened."""

import os
import re
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import cerata
from cerata.engine.errors import CerataError, InvalidInput, NotFound
from cerata.engine.loading import loading
from cerata.engine.packs import Pack
from cerata.memory.resident_modules import loading_late
from cerata.memory.store import Store
from cerata.memory.view import View

from .named_code import add_current_folder
from .output import Output
from .pair_options import scope_of

DEFAULT_FILE: Final = "memory.cera"
"""The file that a writing verb creates if none is named or present."""


_TOUR: Final = re.compile(r"tour(-\d+)?\.cera")
"""Files of tours: a user's notes must not end up in a file that a tour left here."""


def file_of(options: Namespace, *, default: str | None = None) -> str:
    """Return the file of a verb.

    Raises:
        NotFound: no file was named, and this folder has none or several.
    """
    chosen: str | None = options.file or os.environ.get("CERATA_FILE") or None
    if chosen:
        return chosen
    names = sorted(str(path) for path in Path().glob("*.cera"))
    here = [name for name in names if not _TOUR.fullmatch(name)]
    if len(here) == 1:
        return here[0]
    if not here and default is not None:
        return default
    exception = " (a tour's does not count)" if len(here) < len(names) else ""
    fault = f"There are {len(here)} *.cera files here" if here else "There is no *.cera file here"
    raise NotFound(
        fault + exception, where=_folder(), remedy="Name a file with -f FILE or $CERATA_FILE."
    )


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed under us
        return "this folder"


def actor_of(options: Namespace) -> str | None:
    """Return the name of the writer: ``--actor``, else $CERATA_ACTOR, else None."""
    return vars(options).get("actor") or os.environ.get("CERATA_ACTOR") or None


def embedder_of(options: Namespace) -> str | None:
    """Return the name of ``--embedder``, of a verb that has it; None for the remembered one."""
    name: str | None = getattr(options, "embedder", None)
    return name


def packs_of(options: Namespace) -> list[Pack]:
    """Return the packs of ``--pack``: the value `PACK` of each module.

    Raises:
        InvalidInput: a module cannot be imported, or has no pack.
    """
    found: list[Pack] = []
    for name in options.pack:
        add_current_folder()
        try:
            with loading(name):
                pack = import_module(name).PACK
        except (MemoryError, CerataError):
            raise
        except Exception as error:
            raise InvalidInput(
                f"--pack {name} names no pack: {error}",
                remedy="Name a module that can be imported and has a value PACK.",
            ) from error
        found.append(pack)
    return found


def _opened(path: str, **named: Any) -> Store:
    """Open a store as `cerata.open` does; its modules are loaded when the verb uses them."""
    with loading_late():
        return cerata.open(path, **named)


def reading(options: Namespace) -> Store:
    """Open the file for reading; nothing is written or created."""
    return _opened(
        file_of(options),
        mode="r",
        scope=scope_of(options),
        shared=options.shared,
        embedder=embedder_of(options),
        lock_timeout=options.lock_timeout,
        environment=options.environment,
        packs=packs_of(options),
    )


def writing(options: Namespace, output: Output) -> Store:
    """Open the file for writing, or create it; warn if its newest events may be missing."""
    store = _opened(
        file_of(options, default=DEFAULT_FILE),
        scope=scope_of(options),
        shared=options.shared,
        actor=actor_of(options),
        embedder=embedder_of(options),
        lock_timeout=options.lock_timeout,
        environment=options.environment,
        packs=packs_of(options),
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
    """Open the file of `writing` without writing: a missing file is empty."""
    if Path(file_of(options, default=DEFAULT_FILE)).exists():
        return reading(options)
    return _opened(
        ":memory:",
        scope=scope_of(options),
        shared=options.shared,
        environment=options.environment,
        packs=packs_of(options),
    )


def view_of(store: Store, options: Namespace) -> View:
    """Return the view at ``--at``, by default the newest."""
    return store.at("HEAD" if options.at is None else options.at)
