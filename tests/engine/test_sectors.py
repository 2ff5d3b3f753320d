"""Every sector of a file that holds every kind of structure: zeroed, gone back, or misplaced.

A disk loses a write, writes to another place, or reads from one. All of them, as
docs/reliability.md states it: ``CERATA_SWEEP=full pytest tests/engine/test_sectors.py -s``; without
it, a seeded share.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.disk.storage import Buffer
from cerata.engine.limits import SECTOR_SIZE

from ..crash.mutants import BY_NAME
from .damage import WRONG, outcome
from .specimen import Place, Specimen, build
from .words import RING

pytestmark = pytest.mark.unwatched("it damages every sector")

FULL = os.environ.get("CERATA_SWEEP") == "full"
PAIRS = int(os.environ.get("CERATA_SWEEP_SHARE", "1" if FULL else "600"))
"""One pair of sectors in so many is tried; of the single ones, all."""

Image = dict[int, bytes]
"""What stands in some sectors, by their numbers."""


@dataclass(frozen=True)
class Disk:
    """The specimen, and what stood in each sector before what is there now."""

    specimen: Specimen
    before: dict[int, list[bytes]]

    def sector(self, number: int) -> bytes:
        return self.specimen.data[number * SECTOR_SIZE : (number + 1) * SECTOR_SIZE]

    @property
    def used(self) -> list[int]:
        """The sectors in which something stands, or stood."""
        count = len(self.specimen.data) // SECTOR_SIZE
        return [number for number in range(count) if any(self.sector(number))]

    @property
    def _end(self) -> tuple[Place, Place]:
        """Where the last batch stands, and the mark that proves it."""
        start = self.specimen.ring_start
        records = [place for place in self.specimen.places if place.name == "record"]
        *_, last, mark = sorted(records, key=lambda place: (place.start - start) % RING)
        return last, mark

    def stale(self, number: int) -> list[bytes]:
        """Return what a lost write leaves: each older content of a sector, zeros at first."""
        return [*self.before.get(number, []), bytes(SECTOR_SIZE)]


@pytest.fixture(scope="module")
def disk() -> Disk:
    before: dict[int, list[bytes]] = {}
    write_at = MemoryFile.write_at

    def remembering(self: MemoryFile, offset: int, data: Buffer) -> None:
        for number in range(offset // SECTOR_SIZE, -(-(offset + len(data)) // SECTOR_SIZE)):
            was = self.read_at(number * SECTOR_SIZE, SECTOR_SIZE)
            if len(was) == SECTOR_SIZE and was not in before.setdefault(number, []):
                before[number].append(was)
        write_at(self, offset, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFile, "write_at", remembering)
        return Disk(build(), before)


def single(disk: Disk) -> Iterator[tuple[str, Image]]:
    """Yield every sector zeroed, and gone back to each of its older contents."""
    for number in disk.used:
        yield "zeroed", {number: bytes(SECTOR_SIZE)}
        for older in disk.stale(number)[:-1]:
            yield "stale", {number: older}


def pairs(disk: Disk) -> Iterator[tuple[str, Image]]:
    """Yield every pair swapped, and each one's content written to, or read from, the other's."""
    used = disk.used
    for number in used:
        for other in used:
            content = disk.sector(number)
            if number < other:
                yield "swapped", {number: disk.sector(other), other: content}
            if number != other:
                yield "misread", {other: content}
                for older in disk.stale(number)[-2:]:
                    yield "misdirected", {number: older, other: content}


def is_right(found: str) -> bool:
    """Tell whether what damaged sectors led to is what may come of them.

    Harmless is what leads to the same events: a lost mark after a clean close, an older header
    page beside the newer one, what nobody reads. All else is refused, with its place.
    """
    return found not in (*WRONG, "ambiguous")


def judged(disk: Disk, image: Image) -> str:
    """Put the sectors in place, open and read the file, and return what came of it."""
    data = bytearray(disk.specimen.data)
    for number, content in image.items():
        data[number * SECTOR_SIZE : (number + 1) * SECTOR_SIZE] = content
    if bytes(data) == disk.specimen.data:
        return "the same"
    return outcome(disk.specimen, data)


def test_a_last_batch_that_was_unwritten_with_its_mark_is_noticed(disk: Disk) -> None:
    """Its own place reads as never written; the witnesses name it all the same."""
    last, mark = (place.start // SECTOR_SIZE for place in disk._end)
    gone = {last: bytes(SECTOR_SIZE), mark: disk.sector(last)}
    assert is_right(judged(disk, gone))
    assert is_right(judged(disk, {last: bytes(SECTOR_SIZE)}))
    assert is_right(judged(disk, {mark: disk.sector(last)}))


def test_no_damaged_sector_goes_unseen(disk: Disk, seed: int) -> None:
    """Zeroed, stale, swapped, misdirected, misread: refused with the place, or no harm done."""
    random = Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    for name, image in (*single(disk), *pairs(disk)):
        if name not in ("zeroed", "stale") and random.randrange(PAIRS):
            continue
        found = judged(disk, image)
        counts[name, found] += 1
        assert is_right(found), (name, found, sorted(image))
    lines = [f"  {name:12} {found:16} {count:8,}\n" for (name, found), count in counts.items()]
    sys.stdout.writelines([f"\n{counts.total():,} damaged sectors\n", *sorted(lines)])
    assert {name for name, _ in counts} == {"zeroed", "stale", "swapped", "misread", "misdirected"}
    assert counts.total() > 400


def test_without_a_check_of_records_a_sector_of_another_is_believed(disk: Disk, seed: int) -> None:
    """A record's own check is what finds a sector of it that is zeros, or another one's."""
    some = [pair for pair in pairs(disk) if pair[0] == "misread"]
    Random(seed).shuffle(some)
    with BY_NAME["believe a record's body unchecked"].planted():
        assert not all(comes_out_right(disk, image) for _, image in some[:1_000])


def comes_out_right(disk: Disk, image: Image) -> bool:
    """Tell whether damage came out right; what is decoded unchecked may raise anything."""
    try:
        return is_right(judged(disk, image))
    except Exception:  # noqa: BLE001
        return False


def test_bytes_that_come_or_go_at_an_edge_are_seen(disk: Disk) -> None:
    """At the edges of every structure: what follows is no longer where its checks say."""
    specimen = disk.specimen
    edges = {edge for place in specimen.places for edge in (place.start, place.stop)}
    found: Counter[str] = Counter()
    for edge in sorted(edges):
        for size in (1, 8, SECTOR_SIZE):
            longer, shorter = bytearray(specimen.data), bytearray(specimen.data)
            longer[edge:edge] = bytes(size)
            del shorter[edge : edge + size]
            for data in (longer, shorter):
                came = "the same" if bytes(data) == specimen.data else outcome(specimen, data)
                assert is_right(came), (edge, size, came)
                found[came] += 1
    assert found["refused at open"] > 80
