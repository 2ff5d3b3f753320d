"""One fault of a living disk on top of a crash (model P7): rot, lost and misdirected sectors, EIO.

Owns the kinds of fault, the random choice of a fault for a crash state, and the judgement: the same
data, or an error that names its place. The exception is the last group, acknowledged and not yet
proven: it may be cut if that is reported. Each fault is accounted for: if no read touched the
damage, the outcome must equal that without the fault, and no error may be raised (O17).
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from cerata.engine.format.page import decode_page
from cerata.engine.limits import PAGE_SIZE
from cerata.fault_injection.crash_states.operations import SECTOR
from cerata.fault_injection.crash_states.readings import Reading
from cerata.fault_injection.crash_states.states import CrashState, Models, Plan, crash_states
from cerata.fault_injection.judging.campaign import (
    Course,
    Failure,
    Opener,
    Story,
    Tally,
    Trials,
    crashed_world,
    opening,
)
from cerata.fault_injection.judging.oracle import Finding, Judgement, Oracle

ROT_PLAN: Final = Plan(
    models=Models.KILL | Models.SECTORS, exhaustive=64, samples=8, tears=0, pair_drops=4
)
KINDS: Final = (
    "one bit",
    "some bits",
    "zeroed",
    "stale",
    "swapped",
    "misdirected",
    "unreadable",
    "unreadable once",
)
_BITS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault, and the sectors that it hit."""

    kind: str
    sectors: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind} {[*self.sectors]}"


def inflict(image: bytearray, older: bytes, kind: str, source: Random) -> Fault | None:
    """Damage an image and return the fault; None if no byte would change.

    An unreadable sector leaves the image alone. ``older`` is an earlier content of the file, the
    source of stale sectors.
    """
    count = len(image) // SECTOR
    used = [number for number in range(count) if any(_sector(image, number))]
    place = source.choice(used)
    second = source.choice(used)
    match kind:
        case "one bit" | "some bits":
            bits = 1 if kind == "one bit" else source.randint(2, _BITS_MAX)
            hit = [place, *source.choices(used, k=bits - 1)]
            for number in hit:
                image[number * SECTOR + source.randrange(SECTOR)] ^= 1 << source.randrange(8)
            return Fault(kind, tuple(dict.fromkeys(hit)))
        case "zeroed":
            return _put(image, kind, {place: bytes(SECTOR)})
        case "stale":
            changed = (
                number for number in used if _sector(older, number) != _sector(image, number)
            )
            stale = [number for number in changed if (number + 1) * SECTOR <= len(older)]
            if not stale:
                return None
            place = source.choice(stale)
            return _put(image, kind, {place: _sector(older, place)})
        case "swapped":
            return _put(image, kind, {place: _sector(image, second), second: _sector(image, place)})
        case "misdirected":
            return _put(image, kind, {place: _sector(image, second)})
        case _:
            return Fault(kind, (place,))


def _sector(image: bytes | bytearray, number: int) -> bytes:
    return bytes(image[number * SECTOR : (number + 1) * SECTOR])


def _put(image: bytearray, kind: str, contents: dict[int, bytes]) -> Fault | None:
    changed = {number: data for number, data in contents.items() if data != _sector(image, number)}
    for number, data in changed.items():
        image[number * SECTOR : (number + 1) * SECTOR] = data
    return Fault(kind, tuple(changed)) if changed else None


def _ring_of(image: bytes | bytearray) -> range:
    """Return the sectors of the ring that the newest whole header page names; empty if none."""
    stored = [decode_page(bytes(image[at * PAGE_SIZE :][:PAGE_SIZE]), at) for at in (0, 1)]
    page = max(filter(None, stored), key=lambda page: page.flip, default=None)
    if page is None:
        return range(0)
    return range(page.ring_offset // SECTOR, page.ring_end // SECTOR)


class RotCampaign(Trials):
    """Puts one fault on every ``every``-th crash state of stories, and judges the outcome.

    The stories run under the sync policy "commit". ``met`` counts the faults that were read.
    """

    def __init__(
        self, opener: Opener, plan: Plan = ROT_PLAN, *, every: int = 8, failures_max: int = 2
    ) -> None:
        super().__init__(opener, plan, failures_max)
        self.every = every
        self.met = dict.fromkeys(KINDS, 0)

    def _try_story(self, story: Story, tally: Tally) -> None:
        course = Course(story, tally)
        bases: list[bytes] = []
        for epoch in story.epochs():
            tally.epochs += 1
            if story.path not in epoch.naming.own:
                continue
            bases.append(epoch.base)
            for number, state in enumerate(crash_states(epoch, self.plan)):
                if number % self.every:
                    continue
                source = Random(f"{self.plan.seed}/{state.digest}/{number}")
                tally.states += 1
                self._try(state, source.choice(bases), course, source)
                if self._is_over(tally):
                    return

    def _try(self, state: CrashState, older: bytes, course: Course, source: Random) -> None:
        story = course.story
        tally = course.tally
        kind = source.choice(KINDS)
        image = state.image()
        fault = inflict(image, older, kind, source)
        if fault is None:
            return
        tally.distinct += 1
        tally.recovered += 1
        judgement = self._judgement(state, course.oracle, fault, _ring_of(state.image()))
        unreadable: tuple[tuple[int, int], ...] = ()
        if judgement.kind == "unreadable":
            times: int = 1 if kind == "unreadable once" else -1
            unreadable = ((fault.sectors[0], times),)
        world = crashed_world(state)
        node = world.disk.names[story.path]
        node.data = bytearray(image)
        node.bad.update(unreadable)
        reading = world.disk.reading = Reading()
        try:
            with opening(self.opener, world, story.path) as opened:
                refused = judgement.check(course.oracle, opened, state.acked)
                met = node.met > 0 or reading.covers(fault.sectors)
                if refused and not met:
                    raise Finding("O17", "the image was refused, but no read met the fault")
                if node.bad.get(fault.sectors[0]) == 0:
                    # A sector that failed once is readable the next time.
                    with opening(self.opener, world, story.path, "again") as opened:
                        course.oracle.check_legal(opened, acked=state.acked)
        except Finding as finding:
            with_fault = Finding(finding.rule, f"{finding.what} ({fault})")
            tally.failures.append(
                Failure(state, with_fault, story, bytes(image), judgement, unreadable)
            )
            return
        tally.refused += refused
        tally.faults += met
        self.met[kind] += met

    @staticmethod
    def _judgement(state: CrashState, oracle: Oracle, fault: Fault, ring: range) -> Judgement:
        if fault.kind.startswith("unreadable"):
            return Judgement("unreadable")
        ends = oracle.model.ends
        # A damaged record takes with it the events that it alone proves.
        in_ring = sum(number in ring for number in fault.sectors)
        proven = ends[max(0, ends.index(state.acked) - in_ring)] if state.acked else 0
        return Judgement("damaged", proven, erased="bit" not in fault.kind)
