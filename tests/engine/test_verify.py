"""Verification finds what reading does not need, names its place, and writes nothing."""

from collections.abc import Callable

import pytest

from cerata.engine.log import Log
from cerata.engine.verify import verify_log

from ..inside import state_of
from .specimen import Specimen, build
from .words import Disk, put


@pytest.fixture(scope="module")
def specimen() -> Specimen:
    return build()


def test_a_whole_file_has_no_problems(specimen: Specimen) -> None:
    """And the hashes come out as the log says, recomputed from the events alone."""
    disk = Disk.holding(specimen.data)
    seen: list[tuple[str, int, int]] = []
    with disk.log(mode="r") as log:
        found = verify_log(log, lambda what, done, total: seen.append((what, done, total)))
    assert found.ok
    assert (found.chain, found.root) == (specimen.chain, specimen.root)
    assert (found.events, found.torn_bytes) == (len(specimen.events), 0)
    assert found.extents == sum(
        place.name in ("segment", "spill", "keys", "manifest", "quarantine", "chunk", "ledger")
        for place in specimen.places
    )
    assert seen[-1] == ("done", found.events, found.events)
    assert disk.image() == specimen.data
    assert found.to_dict()["problems"] == []


@pytest.mark.parametrize(
    "name", ["page 0", "page 1", "chunk", "ledger", "quarantine", "keys", "TOC"]
)
def test_a_problem_names_the_structure_and_its_offset(specimen: Specimen, name: str) -> None:
    """Damage that no reader met is found where it is."""
    place = next(place for place in specimen.places if place.name == name)
    disk = Disk.holding(specimen.data)
    disk.spoil((place.start + place.stop) // 2)
    with disk.log(mode="r") as log:
        found = verify_log(log)
    assert not found.ok
    assert place.start in [problem.offset for problem in found.problems]
    assert str(found.problems[0])


def test_damage_after_opening_is_found(specimen: Specimen) -> None:
    """It reads the file, not what the handle remembers."""
    disk = Disk.holding(specimen.data)
    with disk.log(mode="r") as log:
        list(log.read())
        for place in specimen.places:
            if place.name in ("end", "padding"):
                continue
            disk.spoil(place.start + 20)
            found = verify_log(log)
            # The mark is the last record: without it, the tail looks like a killed writer's.
            assert not found.ok or found.torn_bytes, place
            disk.spoil(place.start + 20)
        assert verify_log(log).ok


def test_one_damaged_segment_is_told_once_and_the_rest_is_checked() -> None:
    """What follows is held against what the next segment says of itself."""
    disk = Disk()
    with disk.log() as log:
        for number in range(6):
            log.append([put(str(number))])
            log.seal()
        refs = list(log.reader.segment_refs(log.snapshot))
    disk.spoil(refs[1].offset + 70)
    disk.spoil(refs[4].offset + 100)
    with disk.log(mode="r") as log:
        found = verify_log(log)
    assert {problem.offset for problem in found.problems} >= {refs[1].offset, refs[4].offset}
    assert not {problem.offset for problem in found.problems} & {refs[0].offset, refs[3].offset}


def test_a_killed_writers_tail_is_no_problem() -> None:
    """It is told apart from damage: the next opener cuts it."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    disk.spoil(state_of(log).cursor.offset, b"torn")
    disk.kill()
    with disk.log(mode="r") as reader:
        found = verify_log(reader)
    assert (found.ok, found.torn_bytes, found.events) == (True, 512, 1)


def swapped(log: Log, disk: Disk) -> None:
    """Put a whole, valid segment into another's place."""
    one, two = list(log.reader.segment_refs(log.snapshot))[:2]
    data = disk.image()
    size = min(one.length, two.length)
    disk.spoil(one.offset, data[two.offset : two.offset + 64 + size + 24])


def zeroed(log: Log, disk: Disk) -> None:
    one = next(iter(log.reader.segment_refs(log.snapshot)))
    disk.spoil(one.offset, bytes(512))


@pytest.mark.parametrize("damage", [swapped, zeroed])
def test_misplaced_and_lost_writes_are_found(damage: Callable[[Log, Disk], None]) -> None:
    """Every check covers the place, so valid bytes in the wrong one are bad bytes."""
    disk = Disk()
    with disk.log() as log:
        for number in range(3):
            log.append([put(str(number))])
            log.seal()
        damage(log, disk)
        found = verify_log(log)
    assert not found.ok


def test_dead_space_is_counted() -> None:
    """Old TOCs are named by nothing."""
    disk = Disk()
    with disk.log() as log:
        before = verify_log(log).dead_bytes
        for number in range(3):
            log.append([put(str(number))])
            log.seal()
        assert verify_log(log).dead_bytes >= before + 3 * 1024
