"""Salvage: what a damaged log still serves, in front of a hole and behind it."""

import pytest

from cerata.engine.copies.salvage import salvaged_events
from cerata.engine.errors import Corrupt, ReadOnly
from cerata.engine.log_file.file import choose_page

from ..inside import state_of
from .words import PATH, Disk, put, texts


@pytest.mark.parametrize("sealed", [False, True])
def test_a_salvaged_log_ends_before_the_hole_and_tells_what_lies_behind(sealed: bool) -> None:
    """In the ring and among segments; the page that the file has is another than the handle's."""
    disk = Disk()
    places: list[int] = []
    with disk.log() as log:
        for word in "abcd":
            places.append(state_of(log).cursor.offset)
            log.append([put(word)])
            if sealed:
                log.seal()
        if sealed:
            places = [ref.offset for ref in log.reader.segment_refs(log.snapshot)]
            # Without its TOC the log is what the segments connect to.
            disk.spoil(log.page.toc_offset + 10)
    disk.spoil(places[2] + 70)
    image = disk.image()
    log = disk.open(salvage=True)
    assert texts(log) == ["a", "b"]
    assert [event.seq for event in salvaged_events(log)] == [1, 2, 4]
    assert log.refresh().seq == 2
    assert log.page.sealed_seq == (2 if sealed else 0)
    assert log.stored_page == choose_page(image[:8192], PATH)[0]
    with pytest.raises(ReadOnly):
        log.append([put("e")])
    log.close()
    assert disk.image() == image
    with pytest.raises(Corrupt):
        disk.open()


def test_salvage_of_a_whole_log_is_reading_it() -> None:
    """And it follows what others append."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        with disk.log(salvage=True) as salvaged:
            log.append([put("b")])
            log.seal()
            assert salvaged.refresh().seq == 2
            assert texts(salvaged) == ["a", "b"]
            assert salvaged.stored_page == salvaged.page == log.page
