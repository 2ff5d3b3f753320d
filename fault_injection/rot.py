"""One fault of a living disk on top of a crash (model P7): rot, lost and misdirected sectors, EIO.

Owns the kinds of fault, drawing one for a crash state, and the judgement: the same data, or an
error that names its place. The one exception is the last group, acknowledged and not yet proven:
it may be cut if that is reported. Each fault is accounted for: where nobody read what it hit, the
outcome must be that without it, and no error may be raised (O17).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from cerata.engine.errors import Corrupt, StorageFailed

from .campaign import Failure, Opener, Story, Tally, crashed_world
from .epochs import epochs
from .operations import SECTOR
from .oracle import Finding, LogLike, Oracle
from .readings import Reading
from .states import CrashState, Models, Plan, crash_states
from .workloads import RING_SIZE
from .world import World

ROT_PLAN: Final = Plan(
    models=Models.KILL | Models.SECTORS, exhaustive=64, samples=8, tears=0, pair_drops=4
)
_RING: Final = range(8192 // SECTOR, (8192 + RING_SIZE) // SECTOR)
"""The sectors of the ring of every store here."""
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
    """What went wrong with which sectors."""

    kind: str
    sectors: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind} {[*self.sectors]}"


def inflict(image: bytearray, older: bytes, kind: str, source: Random) -> Fault | None:
    """Damage an image, or return what cannot be read of it; None where nothing would change.

    ``older`` is what the file held at some time before: stale sectors come from there.
    """
    count = len(image) // SECTOR
    used = [number for number in range(count) if any(_sector(image, number))]
    place = source.choice(used)
    other = source.choice(used)
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
            held = (number for number in used if _sector(older, number) != _sector(image, number))
            found = [number for number in held if (number + 1) * SECTOR <= len(older)]
            if not found:
                return None
            place = source.choice(found)
            return _put(image, kind, {place: _sector(older, place)})
        case "swapped":
            return _put(image, kind, {place: _sector(image, other), other: _sector(image, place)})
        case "misdirected":
            return _put(image, kind, {place: _sector(image, other)})
        case _:
            return Fault(kind, (place,))


def _sector(image: bytes | bytearray, number: int) -> bytes:
    return bytes(image[number * SECTOR : (number + 1) * SECTOR])


def _put(image: bytearray, kind: str, contents: dict[int, bytes]) -> Fault | None:
    changed = {number: data for number, data in contents.items() if data != _sector(image, number)}
    for number, data in changed.items():
        image[number * SECTOR : (number + 1) * SECTOR] = data
    return Fault(kind, tuple(changed)) if changed else None


class RotCampaign:
    """Puts one fault on every so-many-th crash state of stories, and judges what comes of it.

    ``met`` counts faults that somebody read, by kind; ``unmet`` those that nobody did.
    """

    def __init__(
        self, opener: Opener, plan: Plan = ROT_PLAN, *, every: int = 8, failures_max: int = 2
    ) -> None:
        self.opener = opener
        self.plan = plan
        self.every = every
        self.failures_max = failures_max
        self.tally = Tally()
        self.met = dict.fromkeys(KINDS, 0)
        self.unmet = 0
        self.refused = 0

    def check(self, story: Story) -> Tally:
        """Try the faults of a story, which runs under the sync policy "commit"."""
        tally = Tally(traces=1)
        started = time.process_time()
        oracle = Oracle(story.model)
        names = {story.path: story.node} if story.existing else {}
        held: list[bytes] = []
        for epoch in epochs(
            story.trace, story.node, base=story.base, acked=story.acked, names=names
        ):
            tally.epochs += 1
            if story.path not in epoch.naming.own:
                continue
            held.append(epoch.base)
            for number, state in enumerate(crash_states(epoch, self.plan)):
                if number % self.every:
                    continue
                source = Random(f"{self.plan.seed}/{state.digest}/{number}")
                tally.states += 1
                try:
                    self._try(state, source.choice(held), story, oracle, source, tally)
                except Finding as finding:
                    tally.failures.append(Failure(state, finding, story.name))
                    if len(tally.failures) >= self.failures_max:
                        break
        tally.seconds = time.process_time() - started
        self.tally.add(tally)
        return tally

    def _try(
        self,
        state: CrashState,
        older: bytes,
        story: Story,
        oracle: Oracle,
        source: Random,
        tally: Tally,
    ) -> None:
        kind = source.choice(KINDS)
        image = state.image()
        fault = inflict(image, older, kind, source)
        if fault is None:
            return
        tally.distinct += 1
        tally.recovered += 1
        reading = Reading()
        world = crashed_world(state)
        node = world.disk.names[story.path]
        node.data = image
        if kind.startswith("unreadable"):
            node.bad = {fault.sectors[0]: 1 if kind == "unreadable once" else -1}
        world.disk.reading = reading
        process = world.disk.process("after")
        try:
            self._judge(
                state, story, oracle, fault, world, lambda: self.opener(world, process, story.path)
            )
        except Finding as finding:
            raise Finding(finding.rule, f"{finding.what} ({fault})") from finding
        finally:
            process.kill()
        if node.met or any(
            start <= number < stop
            for question in reading.questions
            for start, stop in question.sectors
            for number in fault.sectors
        ):
            self.met[kind] += 1
        else:
            self.unmet += 1

    def _judge(
        self,
        state: CrashState,
        story: Story,
        oracle: Oracle,
        fault: Fault,
        world: World,
        opener: Callable[[], LogLike],
    ) -> None:
        if fault.kind.startswith("unreadable"):
            self._judge_unreadable(state, story, oracle, world, opener)
            return
        reading = world.disk.reading
        in_ring = sum(number in _RING for number in fault.sectors)
        ends = oracle.model.ends
        # A damaged record takes what it alone proves along with itself.
        proven = ends[max(0, ends.index(state.acked) - in_ring)] if state.acked else 0
        found = oracle.check_damaged(
            opener, acked=state.acked, proven=proven, erased="bit" not in fault.kind
        )
        refused = isinstance(found, Corrupt)
        self.refused += refused
        asked = {
            number
            for question in (reading.questions if reading else ())
            for start, stop in question.sectors
            for number in fault.sectors
            if start <= number < stop
        }
        if refused and not asked:
            raise Finding("O17", f"refused, though nobody read what is damaged: {found}")

    def _judge_unreadable(
        self,
        state: CrashState,
        story: Story,
        oracle: Oracle,
        world: World,
        opener: Callable[[], LogLike],
    ) -> None:
        """What cannot be read is said so; what can the next time is there then."""
        node = world.disk.names[story.path]
        once = max(node.bad.values()) > 0
        try:
            oracle.check(opener(), acked=state.acked)
        except StorageFailed as error:
            self.refused += 1
            if not node.met:
                raise Finding("O17", f"an error that nothing injected: {error}") from error
        except Finding:
            raise
        except Exception as error:
            raise Finding("O4", f"an unreadable sector became {error!r}") from error
        if once and node.met:
            again = world.disk.process("again")
            for process in list(world.disk.names.values()):
                process.bad.clear()
            try:
                oracle.check_legal(lambda: self.opener(world, again, story.path), acked=state.acked)
            finally:
                again.kill()
