"""Every bit of a file that holds every kind of structure: damage is found, or does no harm.

A case is one flipped bit or one length. The full sweep, as docs/reliability.md states it, is
``CERATA_SWEEP=full pytest tests/engine/test_corruption.py -s``; without it, a seeded share of it.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from cerata.engine.copies.salvage import salvaged_events
from cerata.engine.errors import Corrupt
from cerata.engine.format.record import sectors
from cerata.engine.verify import verify_log
from cerata.fault_injection.mutation.mutate import Edit, Plant

from ..crash.mutants import BY_NAME
from .damage import WRONG, is_right, outcome
from .specimen import Place, Specimen, build
from .words import RING, Disk, stored

pytestmark = pytest.mark.unwatched("it damages every byte")

FULL = os.environ.get("CERATA_SWEEP") == "full"
SHARE = 1 if FULL else 24
"""One bit in so many is flipped."""

SHARDS = 64 if FULL else 1
"""The full sweep is cut into tests of a minute each."""


@pytest.fixture(scope="module")
def specimen() -> Specimen:
    return build()


@pytest.fixture(scope="module")
def killed() -> Specimen:
    return build(close=False)


def cut_at(specimen: Specimen, length: int) -> str:
    """Return what must come of a cut: only past the last sector that is named is nothing lost."""
    named_end = sectors(max(place.stop for place in specimen.places))
    return "refused at open" if length < named_end else "harmless"


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


@pytest.mark.slow("flips thousands of bits and opens each file")
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
            assert is_right(found, place), (found, place, offset, bit)
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
                assert found == cut_at(of, length), length


def test_a_killed_writers_file_is_ambiguous_only_in_its_last_group(
    killed: Specimen, seed: int, counts: Counts
) -> None:
    """Without the mark of a clean close, damage to the last group looks like a torn write."""
    random = Random(seed + 3)
    data = bytearray(killed.data)
    last = last_record(killed)
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
                assert place == last, place
                ambiguous += 1
    assert ambiguous > 0


def test_without_its_report_a_cut_tail_is_silent(killed: Specimen) -> None:
    """That the last group may be lost is no secret: the sweep lets it pass for that alone."""
    last = last_record(killed)
    data = bytearray(killed.data)
    data[last.stop - 1] ^= 1
    assert outcome(killed, data) == "ambiguous"
    edit = Edit(
        "cerata.engine.log_file.recovery:examine", "ambiguous_tail=True", "ambiguous_tail=False"
    )
    with Plant("say nothing of a cut", "damage", (edit,)).planted():
        assert outcome(killed, data) == "SILENT"


def last_record(killed: Specimen) -> Place:
    """Return the newest record of the ring."""
    return max(
        (place for place in killed.places if place.name == "record"),
        key=lambda place: (place.start - killed.ring_start) % RING,
    )


@dataclass(frozen=True)
class Check:
    """A check that is switched off: where, and the part of which structures it is there for."""

    edits: tuple[Edit, ...]
    places: tuple[str, ...]
    start: int = 0
    stop: int | None = None


_FORMAT = "cerata.engine.format."
_EXTENT_BODY = (
    Edit(
        "cerata.engine.log_file.file:LogFile.read_extent",
        "if own != self.file.read_at(header.body_offset + header.length, len(own)):",
        "if False:",
    ),
    Edit(
        _FORMAT + "extent:extent_is_whole",
        "return hasher.digest(CHECK_SIZE) == file.read_at(at, CHECK_SIZE)",
        "return True",
    ),
)
CHECKS = {
    "header page": Check(
        (
            Edit(
                _FORMAT + "page:decode_page",
                "if _page_check(number, body) != data[_CHECK_OFFSET:]:",
                "if False:",
            ),
        ),
        ("page 0", "page 1"),
    ),
    "record's header": Check(
        (
            Edit(
                _FORMAT + "record:decode_record_header",
                "if expected != header_check:",
                "if False:",
            ),
        ),
        ("record", "padding"),
        stop=48,
    ),
    "record's body": Check(
        BY_NAME["believe a record's body unchecked"].edits, ("record",), start=48
    ),
    "TOC": Check(
        (
            Edit(
                _FORMAT + "footer:toc_is_whole",
                "return check(key, TAG_TOC, footer.toc_offset, toc) == footer.toc_hash",
                "return True",
            ),
        ),
        ("TOC",),
    ),
    "footer": Check(
        (
            Edit(
                _FORMAT + "footer:decode_footer",
                "if own_check != data[_LAYOUT.size : FOOTER_SIZE]:",
                "if False:",
            ),
        ),
        ("footer",),
    ),
    "extent's header": Check(
        (
            Edit(
                _FORMAT + "extent:decode_extent_header",
                "if check(key, TAG_EXTENT_HEADER, offset, fields, size=CHECK_SIZE_SHORT)"
                " != own_check:",
                "if False:",
            ),
        ),
        ("segment", "spill", "manifest", "keys", "quarantine", "chunk", "ledger"),
        stop=56,
    ),
    "extent's body": Check(
        _EXTENT_BODY, ("manifest", "keys", "quarantine", "chunk", "ledger"), start=64
    ),
    "segment's block": Check(
        (
            Edit(
                "cerata.engine.segments.segment_reader:Segment._read_block",
                "if check(self._key, TAG_BLOCK, place, stored, salts, size=CHECK_SIZE_BLOCK)"
                " != row.check:",
                "if False:",
            ),
        ),
        ("segment", "spill"),
        start=64,
    ),
    "segment's index": Check(
        (
            Edit(
                "cerata.engine.segments.segment_reader:Segment._read_index",
                "if check(self._key, TAG_INDEX, self._base + at, stored) != digest:",
                "if False:",
            ),
        ),
        ("segment", "spill"),
        start=64,
    ),
    "attachment": Check(
        (
            Edit(
                "cerata.engine.events:chosen",
                "and hash_bytes(data) == attachment.hash",
                "",
            ),
        ),
        ("segment",),
        start=64,
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_without_a_check_the_sweep_fails(specimen: Specimen, seed: int, name: str) -> None:
    """Each check is needed: switched off, some bit is silent, harmless, or raises anything."""
    off = CHECKS[name]
    random = Random(seed + 5)
    places = [place for place in specimen.places if place.name in off.places]
    data = bytearray(specimen.data)
    with Plant(f"no check of a {name}", "damage", off.edits).planted():
        assert outcome(specimen, data) == "harmless"
        for _ in range(3_000):
            place = random.choice(places)
            stop = place.stop if off.stop is None else place.start + off.stop
            offset, bit = random.randrange(place.start + off.start, stop), random.randrange(8)
            data[offset] ^= 1 << bit
            try:
                noticed = not is_right(outcome(specimen, data), place)
            except Exception:  # noqa: BLE001 - what is decoded unchecked may raise anything
                noticed = True
            data[offset] ^= 1 << bit
            if noticed:
                break
        else:
            pytest.fail(f"Flipped bits of a {name} are found without its check")


_CUT_SPILL = Edit(
    "cerata.engine.log_file.recovery:_lost_spill",
    "if batch.spill is not None and spill_end(batch.spill) > (size := file.size()):",
    "if False:",
)
_CUT_FILE = Edit("cerata.engine.log_file.recovery:examine", "if size < page.data_end:", "if False:")


@pytest.mark.parametrize("edits", [(_CUT_SPILL,), (_CUT_SPILL, _CUT_FILE)])
def test_without_its_checks_a_cut_file_is_opened(
    specimen: Specimen, edits: tuple[Edit, ...]
) -> None:
    """It would be found only by who reads that far; a large batch in the ring ends the file."""
    lengths = range(len(specimen.data) - 8192, len(specimen.data), 64)

    def opened() -> list[int]:
        return [
            length
            for length in lengths
            if outcome(specimen, bytearray(specimen.data[:length])) != cut_at(specimen, length)
        ]

    assert opened() == []
    with Plant("any length will do", "damage", edits).planted():
        found = opened()
    footer = next(place for place in specimen.places if place.name == "footer")
    assert (min(found) < footer.start) == (_CUT_FILE in edits)


def test_salvage_opens_what_a_flipped_bit_closed(specimen: Specimen, seed: int) -> None:
    """Whatever one bit destroys, the other events are still served, and nothing is invented."""
    random = Random(seed + 4)
    for place in specimen.places:
        for _ in range(20 if FULL else 3):
            data = bytearray(specimen.data)
            data[random.randrange(place.start, place.stop)] ^= 1 << random.randrange(8)
            disk = Disk.holding(data)
            log = disk.open(salvage=True)
            events = stored(salvaged_events(log))
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
        assert len(stored(salvaged_events(log))) >= len(events)
