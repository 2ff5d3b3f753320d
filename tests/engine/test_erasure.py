"""The TOC names the newest erasure that the file reflects, wherever the file goes."""

from typing import Any
from unittest import mock

import cbor2
import pytest
from msgspec.structs import replace

from cerata.engine.copies.backup import back_up
from cerata.engine.errors import Unsupported
from cerata.engine.format.toc import Toc
from cerata.engine.log_file.file import Flip

from .words import RING, Disk, other, put


def erased_at(disk: Disk, erased: int) -> None:
    """Publish a TOC with another value."""
    write = Flip.write

    def with_value(self: Flip, toc: Toc) -> None:
        write(self, replace(toc, erased=erased))

    with disk.log() as log, mock.patch.object(Flip, "write", with_value):
        log.publish_projections(lambda _flip, _toc: {})


def test_a_new_file_reflects_no_erasure() -> None:
    with Disk().log() as log:
        assert (log.erased, log.toc().erased) == (0, 0)


def test_the_value_stays_through_flips_kills_and_copies() -> None:
    """A lower one would let a process from before the erasure publish what it holds."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a"), put("b")])
    erased_at(disk, 2)
    with disk.log() as log:
        assert log.erased == 2
        log.append([put("c")])
        log.seal()
        assert log.erased == 2
        log.append([put("d")])
        back_up(log, "copy.cera")
        back_up(log, "short.cera", through=2)
        log.abandon()
    disk.kill()
    with disk.log() as log:
        assert (log.head.seq, log.erased) == (4, 2)
    for path in ("copy.cera", "short.cera"):
        with disk.open(path) as log:
            assert log.erased == 2


def test_another_handle_meets_the_value_when_it_refreshes() -> None:
    disk = Disk()
    with disk.log() as log, disk.log(mode="r") as reader:
        log.append([put("a")])
        assert (log.erased, reader.erased) == (0, 0)
        erased_at(disk, 1)
        assert (log.erased, reader.erased) == (0, 0)
        log.append([put("b")])
        reader.refresh()
        assert (log.erased, reader.erased) == (1, 1)


def test_a_handle_that_forgets_reads_the_ring_again() -> None:
    """Nothing that it showed is lost, and nothing of what it held is kept."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        log.seal()
        log.append([put("b"), put("c")])
        before = log.head, [event.leaf for event in log.read()]
        tail, file = log.snapshot.tail, log.file
        log.forget()
        assert log.snapshot.tail is not tail
        assert log.file is not file
        assert (log.head, [event.leaf for event in log.read()]) == before
        log.append([put("d")])
    with disk.log() as log:
        assert log.head.seq == 4


@pytest.mark.parametrize("size", [1, RING])
def test_a_lost_toc_is_rebuilt_with_its_newest_erasure(size: int) -> None:
    """The events name it, in a large batch's extent too."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a"), other("erase"), put("b")])
        log.seal()
        log.append([put("x" * size), other("erase"), other("erase"), put("c")])
        log.append([put("d")])
        log.seal()
        log.append([put("e")])
        log.seal()
        page = log.page
    disk.spoil(page.toc_offset)
    with disk.log() as log:
        assert log.report.rebuilt_toc
        assert (log.erased, log.head.seq) == (6, 9)
        log.append([put("f")])
        log.seal()
    with disk.log() as log:
        assert (log.report.rebuilt_toc, log.erased) == (False, 6)


@pytest.mark.unwatched("the file is of no version that writes one")
def test_a_file_of_before_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its TOC says nothing of erasures, so nothing can be bound to them."""
    disk = Disk()
    encode = Toc.encode

    def without(self: Toc) -> bytes:
        fields: dict[str, Any] = cbor2.loads(encode(self))
        del fields["erased"]
        return cbor2.dumps(fields, canonical=True)

    with disk.log() as log:
        log.append([put("a")])
        with monkeypatch.context() as patched:
            patched.setattr(Toc, "encode", without)
            log.seal()
        log.abandon()
    disk.kill()
    image = disk.image()
    for mode in ("r", "rw"):
        with pytest.raises(Unsupported, match="no 'erased'") as caught, disk.log(mode=mode) as log:
            list(log.read())
        assert caught.value.remedy
        disk.kill()
    assert disk.image() == image
