"""Erasures as another process leaves them: a new file in the old one's place, or its value alone.

Nothing erases yet. These do what an eraser will do to the file, without its locks.
"""

from collections.abc import Collection, Iterator
from typing import Any
from unittest import mock

from msgspec.structs import replace

from cerata.engine.codec import Batch, WireEvent
from cerata.engine.copies import backup
from cerata.engine.copies.backup import back_up
from cerata.engine.disk.storage import StorageFile
from cerata.engine.format.toc import Toc
from cerata.engine.integrity import commitment_of
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log_file.create import write_empty
from cerata.engine.log_file.file import PAGES_SIZE, Flip, choose_page, turned
from cerata.engine.segments.reader import Reader

from ..engine.words import PATH, Disk

NEW = "erased.cera"


def erase(disk: Disk, seqs: Collection[int], erased: int) -> None:
    """Put a copy without these payloads in the file's place; its TOC says ``erased``."""
    batches = Reader.batches

    def without(self: Reader, *given: Any) -> Iterator[Batch]:
        for batch in batches(self, *given):
            events = enumerate(batch.events, start=batch.first_seq)
            yield replace(
                batch, events=tuple(_erased(one) if seq in seqs else one for seq, one in events)
            )

    def empty(*given: Any, **_: Any) -> None:
        write_empty(*given, erased=erased)

    with (
        disk.log(mode="r") as log,
        mock.patch.object(Reader, "batches", without),
        mock.patch.object(backup, "write_empty", empty),
    ):
        back_up(log, NEW)
    _set_moved(disk)
    disk.storage.rename(NEW, PATH)


def _erased(wire: WireEvent) -> WireEvent:
    if wire.salt is None:
        return wire
    return replace(wire, salt=None, payload=commitment_of(wire.salt, wire.payload), attachments=())


def _set_moved(disk: Disk) -> None:
    file: StorageFile = disk.storage.open(PATH, mode="rw")
    page, _ = choose_page(file.read_at(0, PAGES_SIZE), PATH)
    moved = replace(turned(page), moved=True)
    file.write_at(moved.number * PAGE_SIZE, moved.encode())
    file.close()


def publish_erased(disk: Disk, erased: int) -> None:
    """Publish a TOC with another value of ``erased`` in the same file, and no checkpoints."""
    write = Flip.write

    def with_value(self: Flip, toc: Toc) -> None:
        write(self, replace(toc, erased=erased, projections={}))

    with disk.log() as log, mock.patch.object(Flip, "write", with_value):
        log.publish_projections(lambda _flip, _toc: {})
