"""The judge of stores reads everything that its checks depend on, also if it skips the checks."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import cerata
from cerata.engine.format.extent import extent_size
from cerata.fault_injection.stories.store_stories import Judge
from cerata.memory.batch.writer import session_of
from cerata.replay.checkpoint import chunk_refs


def test_the_state_covers_the_checks_of_chunks(tmp_path: Path) -> None:
    """A check after a body that ended with its sector was read by the first state alone."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"note {number}" for number in range(700)])
        store.checkpoint()
        log = session_of(store).log
        read: set[int] = set()

        def read_at(offset: int, size: int) -> bytes:
            read.update(range(offset, offset + size))
            return log.file.file.read_at(offset, size)

        file = SimpleNamespace(read_at=read_at)
        log_file = SimpleNamespace(file=file, page=log.file.page, ledger=log.file.ledger)
        watched = SimpleNamespace(head=log.head, toc=log.toc, file=log_file)
        Judge._state(cast("Any", watched))
        toc = log.toc()
        refs = [ref for key in toc.projections for ref, _ in chunk_refs(log.file, toc.saved(key))]
        assert len(refs) >= 4
        for ref in refs:
            assert read.issuperset(range(ref.offset, ref.offset + extent_size(ref.length)))
