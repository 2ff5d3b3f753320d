"""Every bit of a file that holds every kind of structure: damage is found, or does no harm.

A case is one flipped bit or one length. The full sweep, as docs/reliability.md states it, is
``CERATA_SWEEP=full pytest tests/engine/test_corruption.py -s``; without it, a seeded share of it.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from cerata.engine.errors import CerataError, Corrupt, Unsupported
from cerata.engine.recovery import RecoveryReport
from cerata.engine.verify import verify_log
from cerata.fault_injection.plants import BY_NAME

from .specimen import Specimen, build
from .words import RING, Disk, stored

pytestmark = pytest.mark.unwatched("it damages every byte")

FULL = os.environ.get("CERATA_SWEEP") == "full"
SHARE = 1 if FULL else 24
"""One bit in so many is flipped."""

SHARDS = 64 if FULL else 1
"""The full sweep is cut into tests of a minute each."""

WRONG = ("SILENT", "NO PLACE", "LOST", "WRITTEN TO")


@pytest.fixture(scope="module")
def specimen() -> Specimen:
    return build()


@pytest.fixture(scope="module")
def killed() -> Specimen:
    return build(close=False)


def outcome(specimen: Specimen, data: bytearray) -> str:
    """Open a damaged file as a reader does, read everything, verify: what is found, and how."""
    disk = Disk.holding(data)
    try:
        log = disk.open(mode="r")
    except (Corrupt, Unsupported) as error:
        return "refused at open" if placed(error) else "NO PLACE"
    try:
        events = stored(log.read())
        for event in log.read():
            log.reader.attachments(log.snapshot, event.seq)
        head = log.head.chain, log.head.root
    except Corrupt as error:
        return "refused at read" if placed(error) else "NO PLACE"
    problems = verify_log(log).problems
    if events == specimen.events and head == (specimen.chain, specimen.root):
        if problems:
            return "found by verify"
        return "reported" if log.report != RecoveryReport() else "harmless"
    if problems:
        return "found by verify"
    lost = log.report.ambiguous_tail and events == specimen.events[: len(events)]
    return "ambiguous" if lost else "SILENT"


def as_a_writer(specimen: Specimen, data: bytearray) -> str:
    disk = Disk.holding(data)
    try:
        log = disk.open()
    except Corrupt:
        return "refused at open" if disk.image() == bytes(data) else "WRITTEN TO"
    with log:
        problems = verify_log(log).problems
        try:
            same = stored(log.read()) == specimen.events
        except Corrupt:
            return "refused at read"
        if problems:
            return "found by verify"
        return "same events" if same else "LOST"


def placed(error: CerataError) -> bool:
    """Tell whether an error names the place and what to do."""
    return bool(error.where) and bool(error.remedy)


Counts = Counter[tuple[str, str, str]]


@pytest.fixture(scope="module")
def counts() -> Iterator[Counts]:
    """Count outcomes by sweep and structure, and print them at the end."""
    held: Counts = Counter()
    yield held
    lines = [f"\n{sum(held.values()):,} cases\n"]
    for (sweep, name, found), count in sorted(held.items()):
        lines.append(f"  {sweep:16} {name:11} {found:16} {count:8,}\n")
    sys.stdout.writelines(lines)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_flipped_bit_goes_unseen(
    specimen: Specimen, seed: int, counts: Counts, shard: int
) -> None:
    """Every bit of every structure, and one of every byte that belongs to none."""
    random = Random(seed + shard)
    data = bytearray(specimen.data)
    for offset in range(shard, len(data), SHARDS):
        place = specimen.place_of(offset)
        bits = range(8) if place else [random.randrange(8)]
        # The free part of the ring is large and all alike.
        share = SHARE if place else 4 * SHARE
        for bit in bits:
            if random.randrange(share):
                continue
            data[offset] ^= 1 << bit
            found = outcome(specimen, data)
            data[offset] ^= 1 << bit
            counts["bits", place.name if place else "free", found] += 1
            assert found not in (*WRONG, "ambiguous"), (place, offset, bit)
            if place and place.name not in ("end", "padding"):
                assert found != "harmless", (place, offset, bit)
    assert data == specimen.data


def test_a_flipped_bit_is_repaired_or_refused_by_a_writer(
    specimen: Specimen, seed: int, counts: Counts
) -> None:
    """An opener for writing may mend what it can prove; it never loses what was acknowledged."""
    random = Random(seed + 1)
    for offset in range(0, len(specimen.data), 2 if FULL else 16):
        place = specimen.place_of(offset)
        if place is None:
            continue
        data = bytearray(specimen.data)
        data[offset] ^= 1 << random.randrange(8)
        found = as_a_writer(specimen, data)
        counts["bits, a writer", place.name, found] += 1
        assert found not in WRONG, (place, offset)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_length_goes_unseen(
    specimen: Specimen, killed: Specimen, seed: int, counts: Counts, shard: int
) -> None:
    """A file cut at any length is refused, or what was cut off was padding; a killed one too."""
    random = Random(seed + 2)
    edges = {
        edge + by
        for place in specimen.places
        for edge in (place.start, place.stop)
        for by in (-1, 0, 1)
    }
    every = 1 if FULL else 150
    lengths = sorted(edges | set(range(random.randrange(every), len(specimen.data), every)))
    for length in lengths[shard::SHARDS]:
        for of, name in ((specimen, "lengths"), (killed, "lengths, killed")):
            if 0 <= length < len(of.data):
                found = outcome(of, bytearray(of.data[:length]))
                counts[name, "file", found] += 1
                assert found not in (*WRONG, "ambiguous"), length


def test_a_killed_writers_file_is_ambiguous_only_in_its_last_group(
    killed: Specimen, seed: int, counts: Counts
) -> None:
    """Without the mark of a clean close, damage to the last group looks like a torn write."""
    random = Random(seed + 3)
    data = bytearray(killed.data)
    in_ring_order = sorted(
        (place for place in killed.places if place.name == "record"),
        key=lambda place: (place.start - killed.ring_start) % RING,
    )
    ambiguous = 0
    for place in killed.places:
        for offset in range(place.start, place.stop):
            if random.randrange(2 if FULL else 4 * SHARE):
                continue
            bit = 1 << random.randrange(8)
            data[offset] ^= bit
            found = outcome(killed, data)
            data[offset] ^= bit
            counts["bits, killed", place.name, found] += 1
            assert found not in WRONG, (place, offset)
            if found == "ambiguous":
                assert place == in_ring_order[-1], place
                ambiguous += 1
    assert ambiguous > 0


def test_without_its_check_a_record_has_silent_bits(specimen: Specimen, seed: int) -> None:
    """The sweep would say so: with one check switched off, other data comes back as if true."""
    random = Random(seed + 5)
    records = [place for place in specimen.places if place.name == "record"]
    found: Counter[str] = Counter()
    data = bytearray(specimen.data)
    with BY_NAME["believe a record's body unchecked"].planted():
        for _ in range(100):
            place = random.choice(records)
            offset, bit = random.randrange(place.start, place.stop), 1 << random.randrange(8)
            data[offset] ^= bit
            # What is decoded unchecked may raise anything.
            with suppress(Exception):
                found[outcome(specimen, data)] += 1
            data[offset] ^= bit
    assert found["SILENT"] > 0, found


def test_salvage_opens_what_a_flipped_bit_closed(specimen: Specimen, seed: int) -> None:
    """Whatever one bit destroys, the other events are still served, and nothing is invented."""
    random = Random(seed + 4)
    for place in specimen.places:
        for _ in range(20 if FULL else 3):
            data = bytearray(specimen.data)
            data[random.randrange(place.start, place.stop)] ^= 1 << random.randrange(8)
            disk = Disk.holding(data)
            log = disk.open(salvage=True)
            events = stored(log.salvaged())
            assert [event for event in events if event not in specimen.events] == [] or (
                # A flipped salt changes no payload.
                place.name in ("segment", "spill")
            )
            # The largest segment holds four.
            assert len(events) >= len(specimen.events) - 4, (place, len(events))
            assert disk.image() == bytes(data)


def test_salvage_serves_what_a_cut_left(specimen: Specimen) -> None:
    """A truncated file gives the longest prefix to `read`, and the ring's rest to `salvaged`."""
    for length in range(8192, len(specimen.data), 512 if FULL else 4096):
        disk = Disk.holding(bytearray(specimen.data[:length]))
        log = disk.open(salvage=True)
        events = stored(log.read())
        assert events == specimen.events[: len(events)]
        assert len(stored(log.salvaged())) >= len(events)
