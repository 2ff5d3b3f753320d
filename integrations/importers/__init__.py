"""Importers: the records of other memories, each once.

`import_from` reads mem0, Graphiti, Chroma, JSON Lines and the sources of packs, and needs none of
their packages, except Chroma's for its vectors. Leaves out exports of Cerata, which
`interchange.import_facts` and `interchange.import_events` read.

Read first: `run`.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import IO, Final

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.packs import Role, of_packs, packs, target
from cerata.memory.store import Store

from . import chroma, graphiti, json_lines, mem0
from .records import Problem, Source
from .run import ImportedRecords, Progress, Run

__all__ = ["ImportedRecords", "Problem", "import_from", "kinds"]

_Opener = Callable[[str | os.PathLike[str], datetime], AbstractContextManager[Source]]

_OPENERS: Final[dict[str, _Opener]] = {
    "mem0": mem0.opened,
    "chroma": chroma.opened,
    "graphiti": graphiti.opened,
}


@of_packs
def kinds() -> tuple[str, ...]:
    """Return the kinds of sources."""
    own = (kind for pack in packs() for kind in pack.importers)
    return ("jsonl", *sorted({*_OPENERS, *own}))


def import_from(
    store: Store,
    kind: str,
    source: str | os.PathLike[str] | IO[bytes],
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportedRecords:
    """Write the records of another memory, each once, with the store's scope (docs/importers.md).

    A batch of records is durable before the next is read, and whole or absent after a crash, so a
    repeated call continues after an interrupt, and then adds nothing. An unusable record is left
    out, counted and named in the result. The source is only read. Vectors of Chroma come if its
    package is installed.

    Args:
        store: The memory to write.
        kind: One of `kinds`.
        source: The file; for "jsonl" also a file that is open for bytes.
        dry_run: Write nothing, and return the counts and the problems of a run. Default False.
        progress: Called after each batch with the amount read, and the amount there is.

    Raises:
        InvalidInput: no such kind exists; the source is empty, another kind's, or has no usable
            record; or it is damaged, and the whole batches before the damage are written.
            ``where`` is the table and row, or the line.
        NotFound: the source does not exist.
        Locked: another program holds the source.
        Unsupported: a value has an encoding that is never read.
        Conflict: a transaction is open, or other writers changed the records in 100 attempts.
    """
    expect_type("store", store, Store, "a cerata.Store", "Pass the store of cerata.open.")
    if kind not in kinds():
        raise InvalidInput(
            f"There is no kind of source {kind!r:.60}", remedy=f"Pass one of {', '.join(kinds())}."
        )
    # Refuses a transaction that is open, before anything is read.
    with store.transaction():
        pass
    own = None if kind in _OPENERS else kind
    pack = next((pack for pack in packs() if own in pack.importers), None)
    role = None if pack is None else pack.role
    run = Run(store, role or Role.IMPORTER, dry_run=dry_run)
    if kind == "jsonl":
        with json_lines.opened(source) as records:
            return run.read(records, progress)
    if not isinstance(source, str | os.PathLike):
        raise InvalidInput(f"A source of {kind} is a path", remedy="Pass the name of the file.")
    opened: _Opener = _OPENERS[kind] if pack is None else target(pack.importers[kind])
    with opened(source, store.history.view().now) as records:
        return run.read(records, progress)
