"""Runs every crash state of a trace through recovery and the oracle, and counts.

Owns deduplication, the tally and the failures. Leaves out how traces are made (`workloads`) and
how a log is opened: an `Opener` does that, so a toy can stand in for the engine.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cerata.engine.errors import NotFound

from .disk import SimulatedDisk, SimulatedProcess
from .epochs import Epoch, Kept, Naming, epochs
from .model import Model
from .operations import AnyOperation, SetSize, Write
from .oracle import LEGAL, Finding, Judgement, LogLike, Oracle, Outcome
from .readings import AUDIT_EVERY, EpochAnswers, NotAFunction, Reading, Readings
from .states import CrashState, Plan, crash_states
from .world import World

Opener: TypeAlias = Callable[[World, SimulatedProcess, str], LogLike]
"""Opens the file at a path as a process that starts after the crash."""

UNPUBLISHED_STATES = 4
"""States tried of an epoch where the file has no name: what is in it can hardly matter."""


DEPTH_MAX = 3
"""A crash, a crash in the recovery from it, and one in the recovery from that."""

DEEP_PLAN = Plan(exhaustive=256, samples=16, tears=16, pair_drops=16)
"""The states of a crash in recovery: there is one such set for each first crash."""

THIRD_EVERY = 100
"""Of so many recoveries from a crash in recovery, one is crashed again."""

OPERATIONS_MAX = 400
"""Operations on the disk that opening and reading an image of these sizes may take (O14)."""


@dataclass(slots=True)
class Memory:
    """What recovery made of the images and epochs of other stories.

    Recovery is a function of what it reads of the image, and the chain hash binds every event, so
    what was recovered once can be judged against another story's model and bounds without doing
    it again. An epoch with the same start, writes and bounds has the same states: it is judged by
    the outcomes that those had, each with the highest bound that it met.
    """

    images: dict[Hashable, Outcome] = field(default_factory=dict[Hashable, Outcome])
    readings: Readings = field(default_factory=Readings)
    epochs: dict[Hashable, dict[Outcome, int]] = field(
        default_factory=dict[Hashable, dict[Outcome, int]]
    )


@dataclass(slots=True)
class Tally:
    """What a campaign did. ``states`` counts all enumerated, ``distinct`` the images of them."""

    traces: int = 0
    epochs: int = 0
    repeated: int = 0
    """Epochs that equal one of another story, whose states were not enumerated again."""
    states: int = 0
    distinct: int = 0
    opened: int = 0
    """Distinct images of first crashes only; ``distinct`` counts those of second lives too."""
    recovered: int = 0
    """Distinct images that recovery was run on; of the others it reads what it read before."""
    audited: int = 0
    """Those of ``recovered`` whose outcome was known by then, and came out the same."""
    lives: int = 0
    deep: int = 0
    """Recoveries that wrote, and were crashed in turn; ``states`` counts what that left, too."""
    deep_states: int = 0
    operations_max: int = 0
    """The most operations on the disk that one recovery took, with reading all there is."""
    slowest_ms: float = 0.0
    """The longest that it took, in processor time."""
    seconds: float = 0.0
    """Processor time: what is shared with other programs does not count."""
    failures: "list[Failure]" = field(default_factory=list["Failure"])

    def add(self, other: "Tally") -> None:
        self.traces += other.traces
        self.epochs += other.epochs
        self.repeated += other.repeated
        self.states += other.states
        self.distinct += other.distinct
        self.opened += other.opened
        self.recovered += other.recovered
        self.audited += other.audited
        self.lives += other.lives
        self.deep += other.deep
        self.deep_states += other.deep_states
        self.operations_max = max(self.operations_max, other.operations_max)
        self.slowest_ms = max(self.slowest_ms, other.slowest_ms)
        self.seconds += other.seconds
        self.failures.extend(other.failures)

    @property
    def states_per_second(self) -> float:
        return self.states / self.seconds if self.seconds else 0.0

    @property
    def images_per_second(self) -> float:
        return self.distinct / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Story:
    """One recorded run: its trace, the file that matters, and what was written to it.

    ``existing`` says that the file was there before the trace began, with ``base`` in it and
    ``acked`` acknowledged.
    """

    trace: Sequence[AnyOperation]
    node: int
    path: str
    model: Model
    name: str = ""
    existing: bool = False
    base: bytes = b""
    acked: int = 0
    copies: "tuple[Story, ...]" = ()
    """The same run as the story of each file that it copied the log into."""
    kept: Kept | None = None
    """What a sync kept that failed, if one did."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A state that broke a rule, in a story; with ``image``, after more was done to it.

    ``unreadable`` are sectors that cannot be read, and how often; below 0 for ever.
    """

    state: CrashState
    finding: Finding
    story: Story
    image: bytes | None = None
    judgement: Judgement = LEGAL
    unreadable: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return f"{self.story.name}: {self.finding} [{self.state.describe()}]"


Life: TypeAlias = Callable[[CrashState, Story, int], Tally]
"""Goes on with a file that was recovered up to a seq, and counts what it tried."""


class Campaign:
    """Checks stories, remembering which images of a story it has seen; with ``memory``, of all.

    ``readings`` alone shares what recovery read with other campaigns of the same opener: every
    state of every story is still enumerated and judged, and every image of each story counted.
    One in ``audit_every`` outcomes known by readings is recovered anyway: it must be the same.
    Of the recoveries that write, one in ``deep_every`` is crashed in turn (0: none), and what it
    left is opened once more: it must stand still. ``life`` is called on every ``life_every``-th
    distinct image after it was recovered, at most ``lives_max`` times a story. ``failures_max``
    ends a story early: one bug breaks thousands of states.
    """

    def __init__(
        self,
        opener: Opener,
        plan: Plan | None = None,
        *,
        life: Life | None = None,
        life_every: int = 50,
        lives_max: int = 8,
        failures_max: int = 5,
        memory: Memory | None = None,
        readings: Readings | None = None,
        audit_every: int = AUDIT_EVERY,
        deep_every: int = 0,
    ) -> None:
        self.opener = opener
        self.plan = plan or Plan()
        self.life = life
        self.life_every = life_every
        self.lives_max = lives_max
        self.failures_max = failures_max
        self.memory = memory
        self.readings = readings
        self.audit_every = audit_every
        self.deep_every = deep_every
        self.tally = Tally()

    def check(self, story: Story) -> Tally:
        """Try every crash state of a story, then those of its copies; returns the counts."""
        tally = Tally(traces=1)
        started = time.process_time()
        for one in (story, *story.copies):
            if len(tally.failures) < self.failures_max:
                memory = self.memory or Memory(readings=self.readings or Readings())
                self._check_file(one, memory, tally, 1)
        tally.seconds = time.process_time() - started
        self.tally.add(tally)
        return tally

    def _check_file(self, story: Story, memory: Memory, tally: Tally, depth: int) -> None:
        oracle = Oracle(story.model)
        names = {story.path: story.node} if story.existing else {}
        for epoch in epochs(
            story.trace,
            story.node,
            base=story.base,
            acked=story.acked,
            names=names,
            kept=story.kept,
        ):
            tally.epochs += 1
            self._check_epoch(epoch, story, oracle, memory, tally, depth)
            if len(tally.failures) >= self.failures_max:
                break

    def _check_epoch(
        self,
        epoch: Epoch,
        story: Story,
        oracle: Oracle,
        memory: Memory,
        tally: Tally,
        depth: int,
    ) -> None:
        # Without a memory of other stories no epoch is met twice.
        published = story.path in epoch.naming.own
        shared = published and self.memory is not None and depth == 1
        likeness = epoch.likeness if shared else None
        earlier = None if likeness is None else memory.epochs.get(likeness)
        if earlier is not None and all(map(oracle.allows, earlier, earlier.values())):
            tally.repeated += 1
            return
        outcomes: dict[Outcome, int] = {}
        answers = EpochAnswers(epoch)
        unpublished: Counter[Naming] = Counter()
        for state in crash_states(epoch, self.plan if depth == 1 else DEEP_PLAN):
            published = story.path in state.naming.own
            if not published:
                unpublished[state.naming] += 1
                if unpublished[state.naming] > UNPUBLISHED_STATES:
                    continue
            tally.states += 1
            tally.deep_states += depth > 1
            try:
                if not published:
                    tally.distinct += 1
                    tally.opened += depth == 1
                    tally.recovered += 1
                    check_unpublished(self.opener, crashed_world(state), story.path, state.acked)
                    continue
                outcome = memory.images.get(state.key)
                if outcome is None:
                    tally.distinct += 1
                    tally.opened += depth == 1
                    outcome = self._outcome(state, answers, story, oracle, memory, tally, depth)
                    memory.images[state.key] = outcome
                    if depth == 1:
                        self._live_on(state, story, outcome.seq, tally)
                else:
                    oracle.check_known(outcome, acked=state.acked)
                outcomes[outcome] = max(state.acked, outcomes.get(outcome, 0))
            except Finding as finding:
                tally.failures.append(Failure(state, finding, story))
                if len(tally.failures) >= self.failures_max:
                    return
        if likeness is not None and not tally.failures:
            memory.epochs[likeness] = outcomes

    def _outcome(
        self,
        state: CrashState,
        answers: EpochAnswers,
        story: Story,
        oracle: Oracle,
        memory: Memory,
        tally: Tally,
        depth: int,
    ) -> Outcome:
        """Return what an image is recovered to, which may be known by what recovery reads."""
        # Garbage past the old end is not in the digests that readings are told apart by.
        if state.gap != "zero":
            return self._recover(state, story, oracle, memory, tally, depth)
        known = memory.readings.find(state, answers)
        if known is not None:
            oracle.check_known(known, acked=state.acked)
            if (state.digest + self.plan.seed) % self.audit_every:
                return known
            tally.audited += 1
        reading = Reading()
        outcome = self._recover(state, story, oracle, memory, tally, depth, reading)
        try:
            memory.readings.remember(state, answers, reading, outcome)
        except NotAFunction as error:
            raise Finding("O7", f"recovery is no function of what it reads: {error}") from error
        return outcome

    def _recover(
        self,
        state: CrashState,
        story: Story,
        oracle: Oracle,
        memory: Memory,
        tally: Tally,
        depth: int,
        reading: Reading | None = None,
    ) -> Outcome:
        tally.recovered += 1
        every = self.deep_every * (1 if depth == 1 else THIRD_EVERY)
        deeper = bool(every) and depth < DEPTH_MAX and (state.digest + self.plan.seed) % every == 0
        world = crashed_world(state, record=deeper)
        disk = world.disk
        base = bytes(disk.names[story.path].data) if deeper else b""
        disk.reading = reading
        process = disk.process("after")
        started = time.process_time()
        try:
            outcome = oracle.check_legal(
                lambda: self.opener(world, process, story.path), acked=state.acked
            )
        finally:
            # Its open files hold the disk: without this each image waits for the collector.
            process.kill()
        tally.slowest_ms = max(tally.slowest_ms, 1e3 * (time.process_time() - started))
        tally.operations_max = max(tally.operations_max, disk.operations)
        if disk.operations > OPERATIONS_MAX:
            raise Finding("O14", f"{disk.operations} operations on the disk to open and read it")
        disk.reading = None
        if deeper and any(isinstance(one, Write | SetSize) for one in disk.trace):
            tally.deep += 1
            self._check_stable(world, story, oracle, outcome)
            # What was recovered is on the disk, so it is what every later crash has to leave.
            inner = Story(
                trace=tuple(disk.trace),
                node=disk.names[story.path].number,
                path=story.path,
                model=story.model,
                name=f"{story.name} [{state.describe()}], in recovery",
                existing=True,
                base=base,
                acked=outcome.seq,
            )
            self._check_file(inner, memory, tally, depth + 1)
        return outcome

    def _check_stable(self, world: World, story: Story, oracle: Oracle, outcome: Outcome) -> None:
        """Open once more what was recovered: nothing may be written, and nothing be different."""
        aside = World(seed=2, disk=SimulatedDisk())
        aside.disk.put(story.path, bytes(world.disk.names[story.path].data))
        process = aside.disk.process("again")
        try:
            again = oracle.check_legal(
                lambda: self.opener(aside, process, story.path), acked=outcome.seq
            )
        finally:
            process.kill()
        wrote = [one for one in aside.disk.trace if isinstance(one, Write | SetSize)]
        if again != outcome or wrote:
            raise Finding(
                "O7",
                f"recovered to {outcome.seq}, opened again at {again.seq} with {len(wrote)} writes",
            )

    def _live_on(self, state: CrashState, story: Story, seq: int, tally: Tally) -> None:
        if self.life is None or tally.opened % self.life_every or tally.lives >= self.lives_max:
            return
        lived = self.life(state, story, seq)
        tally.lives += 1
        tally.states += lived.states
        tally.distinct += lived.distinct
        tally.recovered += lived.recovered
        tally.audited += lived.audited
        tally.epochs += lived.epochs
        tally.failures.extend(lived.failures)


def check_unpublished(opener: Opener, world: World, path: str, acked: int) -> None:
    """Check what is found where a file has no name: nothing, and nobody was told otherwise.

    Raises:
        Finding: something was acknowledged, or found.
    """
    process = world.disk.process("after")
    try:
        found = opener(world, process, path).head.seq
    except NotFound:
        found = 0  # Who only reads creates nothing.
    finally:
        process.kill()
    if found or acked:
        raise Finding("O1", f"{acked} acknowledged in a file without a name; {found} found")


def crashed_world(state: CrashState, *, record: bool = False) -> World:
    """Return a world whose disk holds the state's image under the names it had.

    Its randomness is not that of the world before: no two lives draw the same salts.
    """
    world = World(seed=1, disk=SimulatedDisk(record=record))
    node = world.disk.new_node(state.image())
    for name in state.naming.own:
        world.disk.names[name] = node
    for name in state.naming.others:
        world.disk.put(name, b"")
    return world
