"""Damage to one range of bytes, of any length, in closed files and in those of killed writers.

Owns the files that are damaged, the five contents that a range gets (zeros, ones, noise, an older
image of the file, other bytes of the same file) and the judgement: every acknowledged batch is read
as it was appended, or the loss is reported: the file is refused, now and at each later opening, or
the report names the damage. Losses that nothing can report are counted, and stated in
docs/reliability.md: the last batch of a killed writer; its last two if an older image is in a range
that holds the newer witness too; and all since the image if the range holds header page 0 of a
closed file, or both witnesses of a killed writer.
Leaves out faults of single sectors on top of a crash (`bit_rot`).
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final

from cerata.engine.format.page import RING_OFFSET
from cerata.engine.format.witness import WITNESS_SPACE
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.file import LogFile, choose_page
from cerata.fault_injection.crash_states.operations import SECTOR
from cerata.fault_injection.judging.campaign import opening
from cerata.fault_injection.judging.model import Model
from cerata.fault_injection.judging.oracle import Finding, Oracle
from cerata.fault_injection.judging.tally import SweepTally
from cerata.fault_injection.simulation.disk import SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    RING_SIZE,
    Session,
    fresh_image,
    model_of,
    open_in_world,
    world_of,
)

from ..operations import ALPHABET, EXTRA

KINDS: Final = ("zero", "ones", "noise", "older image", "another page")
SYNCS: Final = ("commit", "commit", "always")
_ACTS: Final = ("small",) * 8 + ("long", "long", "batch", "quarter", "large", "seal", "kill")
_ACTS_MAX: Final = 30
_DAMAGES: Final = 60
"""Damages of one file before the next file is recorded."""

_PROBLEMS_MAX: Final = 20
_RING_END: Final = RING_OFFSET + RING_SIZE
_FIRST_WITNESS: Final = RING_OFFSET - WITNESS_SPACE


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file before it is damaged: its bytes, those at each earlier batch, and its history."""

    image: bytes
    older: tuple[bytes, ...]
    model: Model
    closed: bool
    sync: str
    newer_witness: int
    """Offset of the witness that names more."""

    @property
    def acked(self) -> int:
        return len(self.model.events)


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes that are damaged, and the kind of their new content."""

    kind: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.kind} from {self.start} to {self.stop}"

    def holds(self, offset: int) -> bool:
        return self.start <= offset < self.stop

    @property
    def holds_witnesses(self) -> bool:
        return self.holds(_FIRST_WITNESS) and self.holds(_RING_END)


@dataclass(slots=True)
class DamageTally(SweepTally):
    """Counts of damages and outcomes."""

    files: int = 0
    closed: int = 0
    damages: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    by_kind: Counter[str] = field(default_factory=Counter[str])

    def summary(self) -> str:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.by_kind.items()))
        outcomes = [f"\n  {count:6,} {name}" for name, count in sorted(self.outcomes.items())]
        return (
            f"{self.damages:,} ranges damaged ({kinds}) in {self.files:,} files,"
            f" {self.closed:,} of them closed; {len(self.problems)} problems{''.join(outcomes)}"
        )


def damage(count: int, *, seed: int = 0) -> DamageTally:
    """Damage ``count`` ranges, one at a time, and judge how each file opens.

    A damage that changes nothing is not counted.
    """
    tally = DamageTally()
    number = 0
    while tally.damages < count and len(tally.problems) < _PROBLEMS_MAX:
        source = Random(f"{seed}/{number}")
        file = _recorded(source, closed=bool(number % 2))
        tally.files += 1
        tally.closed += file.closed
        oracle = Oracle(file.model)
        for _ in range(_DAMAGES):
            damaged = _drawn(file, source)
            image = _inflicted(file, damaged, source)
            if image == file.image or tally.damages == count:
                continue
            tally.damages += 1
            tally.by_kind[damaged.kind] += 1
            try:
                tally.outcomes[_outcome(file, damaged, image, oracle)] += 1
            except Finding as finding:
                tally.problems.append(f"{finding.rule}: {finding.what} ({damaged}, file {number})")
        number += 1
    return tally


def _recorded(source: Random, *, closed: bool) -> Damaged:
    world = world_of(fresh_image(), seed=source.randrange(1 << 30), record=False)
    session = Session(world, sync=source.choice(SYNCS))
    images: list[bytes] = []
    for _ in range(source.randint(2, _ACTS_MAX)):
        images.append(bytes(world.disk.names[PATH].data))
        (ALPHABET | EXTRA)[source.choice(_ACTS)](session)
    if closed:
        session.log.close()
    session.process.kill()
    image = bytes(world.disk.names[PATH].data)
    model = model_of(world, session.written)
    page, _ = choose_page(image[: 2 * PAGE_SIZE], PATH)
    file = world.disk.process().open(PATH, mode="r")
    named = LogFile(file, PATH, page.file_id).read_witnesses(page)
    newer = max((0, 1), key=lambda number: named[number] or 0)
    return Damaged(
        image, tuple(images), model, closed, str(session.sync), page.witness_offsets[newer]
    )


def _drawn(file: Damaged, source: Random) -> Range:
    """Draw a range: one in four over ring and witnesses, most of the rest over part of the ring."""
    kind = source.choice(KINDS)
    if not source.randrange(4):
        start = source.randint(0, _FIRST_WITNESS // SECTOR) * SECTOR
        stop = source.randint(_RING_END // SECTOR + 1, len(file.image) // SECTOR) * SECTOR
        return Range(kind, start, stop)
    size = min(SECTOR << source.randint(0, 7), RING_SIZE)
    size = min(RING_SIZE, size + SECTOR * source.randrange(size // SECTOR))
    sectors = len(file.image) // SECTOR
    if source.randrange(4):
        first = RING_OFFSET // SECTOR - size // SECTOR + 1
        start = source.randint(max(0, first), _RING_END // SECTOR) * SECTOR
    else:
        start = source.randrange(sectors) * SECTOR
    return Range(kind, start, min(start + size, len(file.image)))


def _inflicted(file: Damaged, damaged: Range, source: Random) -> bytes:
    start = damaged.start
    stop = damaged.stop
    size = stop - start
    match damaged.kind:
        case "zero":
            contents = bytes(size)
        case "ones":
            contents = b"\xff" * size
        case "noise":
            contents = source.randbytes(size)
        case "older image":
            # The latest images look most like a file that was left so.
            back = min(int(source.expovariate(0.3)), len(file.older) - 1)
            older = file.older[-1 - back][start:stop]
            contents = older + file.image[start + len(older) : stop]
        case _:
            place = source.randrange((len(file.image) - size) // SECTOR + 1) * SECTOR
            contents = file.image[place : place + size]
    return file.image[:start] + contents + file.image[stop:]


def _outcome(file: Damaged, damaged: Range, image: bytes, oracle: Oracle) -> str:
    """Open the file and name the outcome. Raises `Finding` if a loss was not reported."""
    world = world_of(image, record=False)
    logs: list[Log] = []

    def opener(world: World, process: SimulatedProcess, path: str) -> Log:
        logs.append(open_in_world(world, process, path))
        return logs[0]

    with opening(opener, world, PATH) as opened:
        count = oracle.check_refusable(opened).seq
    if count < 0:
        with opening(open_in_world, world, PATH) as opened:
            if oracle.check_refusable(opened).seq >= 0:
                raise Finding("O4", "the second opening of a refused file raised no error")
        return "refused"
    report = logs[0].report
    if count >= file.acked:
        return "all there"
    if len(report.bad_witnesses) < 2 and (report.ambiguous_tail or report.bad_witnesses):
        return "lost, and reported"
    ends = file.model.ends
    if damaged.kind == "older image" and damaged.holds_witnesses:
        if damaged.start < PAGE_SIZE:
            return "window: header page 0, ring and witnesses, by an older image"
        if not file.closed:
            return "window: ring and witnesses of a killed writer, by an older image"
    if not file.closed and file.sync == "commit":
        if count >= ends[-2]:
            return "window: the last batch of a killed writer"
        older = damaged.kind == "older image" and damaged.holds(file.newer_witness)
        if older and count >= ends[-3]:
            return "window: its last two, with the newer witness, by an older image"
    how = "closed" if file.closed else f"killed (sync={file.sync})"
    raise Finding("O4", f"{count} of {file.acked} events of a {how} file are left, in silence")
