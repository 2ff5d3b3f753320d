"""Runs every crash state of a trace through recovery and the oracle, and counts the results.

Owns stories, deduplication, the tally and the failures. Leaves out recording traces
(`stories.engine_workloads`) and opening a log: an `Opener` does that, so a toy can replace the
engine.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from cerata.engine.errors import NotFound

from ..crash_states.epochs import Epoch, Kept, Naming, epochs
from ..crash_states.operations import AnyOperation, SetSize, Write
from ..crash_states.readings import (
    AUDIT_EVERY,
    EpochAnswers,
    NotAFunction,
    Outcome,
    Reading,
    Readings,
)
from ..crash_states.states import CrashState, Plan, crash_states
from ..simulation.disk import SimulatedDisk, SimulatedProcess
from ..simulation.simulated_world import World
from .model import Model
from .oracle import LEGAL, Finding, Judgement, LogLike, Oracle
from .tally import Counts

Opener: TypeAlias = Callable[[World, SimulatedProcess, str], LogLike]
"""Opens the file at a path, in a process that starts after the crash."""

UNPUBLISHED_STATES = 4
"""States tried of an epoch in which the file has no name: its content can hardly matter."""


DEPTH_MAX = 3
"""A crash, a crash in its recovery, and a crash in the recovery from the second."""

DEEP_PLAN = Plan(exhaustive=256, samples=16, tears=16, pair_drops=16)
"""The states of a crash in recovery: each first crash has a separate set of them."""

THIRD_EVERY = 100
"""A third crash is tried this many times less often than a second."""

OPERATIONS_MAX = 400
"""Operations on the disk that opening and reading an image of these sizes may take (O14)."""


@dataclass(slots=True)
class Memory:
    """The recovered outcomes of the images and epochs of other stories.

    Recovery is a function of the bytes that it reads of the image, and the chain hash binds every
    event, so one outcome can be compared with another story's model and bounds without a second
    recovery. An epoch with the same start, writes and bounds has the same states: the outcomes of
    its twin are checked instead, each with the highest bound that it met.
    """

    images: dict[Hashable, Outcome] = field(default_factory=dict[Hashable, Outcome])
    readings: Readings = field(default_factory=Readings)
    epochs: dict[Hashable, dict[Outcome, int]] = field(
        default_factory=dict[Hashable, dict[Outcome, int]]
    )


@dataclass(slots=True)
class Tally(Counts):
    """Counts of a campaign. ``states`` counts all enumerated states, ``distinct`` their images."""

    traces: int = 0
    epochs: int = 0
    repeated: int = 0
    """Epochs equal to an epoch of another story; their states were not enumerated again."""
    states: int = 0
    distinct: int = 0
    opened: int = 0
    """Distinct images of first crashes; ``distinct`` also counts those of second lives."""
    recovered: int = 0
    """Distinct images that were recovered; each of the rest reads like an earlier image."""
    audited: int = 0
    """Images of ``recovered`` whose outcome was known already, and came out equal."""
    lives: int = 0
    deep: int = 0
    """Recoveries that wrote and were crashed in turn; ``states`` includes the states they left."""
    deep_states: int = 0
    operations_max: int = 0
    """The most disk operations of one recovery, the reading of every event included."""
    recovery_ms_max: float = 0.0
    """The longest recovery, in processor time."""
    refused: int = 0
    """Distinct images that were refused with a place, or with the unreadable sector."""
    faults: int = 0
    """Faults on top of a crash that a read met."""
    seconds: float = 0.0
    """Processor time, which other programs do not inflate."""
    failures: "list[Failure]" = field(default_factory=list["Failure"])


@dataclass(frozen=True, slots=True)
class Story:
    """One recorded run: its trace, the file under test, and the model of the events written to it.

    ``existing`` means that the file existed before the trace began, with ``base`` as its content
    and ``acked`` as its acknowledged seq.
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
    """The same run as a story of each file that received a copy of the log."""
    kept: Kept | None = None
    """Which sectors a failed sync persisted; None if no sync failed."""
    replaces: int = 0
    """The file that had the path before a compaction put this file there; 0 for none."""
    heirs: frozenset[int] = frozenset()
    """The files that had the path later: their events must be here if a crash undoes the change."""

    def epochs(self, trace: Sequence[AnyOperation] | None = None) -> Iterator[Epoch]:
        """Return the epochs of the file, in this trace or in a changed one."""
        return epochs(
            self.trace if trace is None else trace,
            self.node,
            base=self.base,
            acked=self.acked,
            names=self._names(),
            kept=self.kept,
            heirs=self.heirs,
        )

    def _names(self) -> dict[str, int]:
        """Return the file at the path before the trace began."""
        before = self.node if self.existing else self.replaces
        return {self.path: before} if before else {}


@dataclass(frozen=True, slots=True)
class Failure:
    """A state of a story that broke a rule; ``image`` is set if the image was damaged further.

    ``unreadable`` pairs sectors that cannot be read with a number of failures; below 0 for ever.
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
"""Continues on a file that was recovered up to a seq, and counts the states that it tried."""


@dataclass(slots=True)
class Course:
    """One file of a story while its states are tried.

    ``depth`` is 1, and more in a recovery that was crashed.
    """

    story: Story
    tally: Tally
    memory: Memory = field(default_factory=Memory)
    depth: int = 1
    oracle: Oracle = field(init=False)

    def __post_init__(self) -> None:
        self.oracle = Oracle(self.story.model)

    def fail(self, state: CrashState, finding: Finding) -> None:
        """Add a failure."""
        self.tally.failures.append(Failure(state, finding, self.story))

    def remember(
        self, state: CrashState, answers: EpochAnswers, reading: Reading, outcome: Outcome
    ) -> None:
        """Store the outcome of a state.

        Raises:
            Finding: an earlier state had the same readings, and another outcome.
        """
        try:
            self.memory.readings.remember(state, answers, reading, outcome)
        except NotAFunction as error:
            raise Finding(
                "O7", f"recovery is not a function of the bytes that it reads: {error}"
            ) from error


class Trials:
    """Tries states of stories, and counts: the base of every kind of campaign.

    ``failures_max`` ends a story early: one bug breaks thousands of states.
    """

    def __init__(self, opener: Opener, plan: Plan | None, failures_max: int) -> None:
        self.opener = opener
        self.plan = plan or Plan()
        self.failures_max = failures_max
        self.tally = Tally()

    def check(self, story: Story) -> Tally:
        """Try the states of a story, and return the counts."""
        tally = Tally(traces=1)
        started = time.process_time()
        self._try_story(story, tally)
        tally.seconds = time.process_time() - started
        self.tally.add(tally)
        return tally

    def _is_over(self, tally: Tally) -> bool:
        return len(tally.failures) >= self.failures_max

    def _try_story(self, story: Story, tally: Tally) -> None:
        raise NotImplementedError


class Campaign(Trials):
    """Tries every crash state of stories, and those of their copies.

    Images that were checked in a story are skipped; with ``memory``, in all stories.

    ``readings`` alone shares only the reads of recovery with other campaigns of the same opener:
    every state of every story is still enumerated and judged, and every image of each story
    counted. A share of the outcomes known by readings, 1 in ``audit_every``, is recovered anyway:
    the result must be the same. A share of the recoveries that write, 1 in ``deep_every``, is
    crashed in turn (0: none), and the recovered file is opened once more: that opening must change
    nothing. ``life`` is called on every ``life_every``-th distinct image after its recovery, at
    most ``lives_max`` times a story.
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
        super().__init__(opener, plan, failures_max)
        self.life = life
        self.life_every = life_every
        self.lives_max = lives_max
        self.memory = memory
        self.readings = readings
        self.audit_every = audit_every
        self.deep_every = deep_every

    def _try_story(self, story: Story, tally: Tally) -> None:
        for file_story in (story, *story.copies):
            if not self._is_over(tally):
                memory = self.memory or Memory(readings=self.readings or Readings())
                self._check_file(Course(file_story, tally, memory))

    def _check_file(self, course: Course) -> None:
        for epoch in course.story.epochs():
            course.tally.epochs += 1
            self._check_epoch(epoch, course)
            if self._is_over(course.tally):
                break

    def _check_epoch(self, epoch: Epoch, course: Course) -> None:
        story = course.story
        oracle = course.oracle
        tally = course.tally
        memory = course.memory
        is_first = course.depth == 1
        # Without a memory of other stories no epoch can repeat.
        published = story.path in epoch.naming.own
        shared = published and self.memory is not None and is_first
        likeness = epoch.likeness if shared else None
        earlier = None if likeness is None else memory.epochs.get(likeness)
        if earlier is not None and all(map(oracle.allows, earlier, earlier.values())):
            tally.repeated += 1
            return
        outcomes: dict[Outcome, int] = {}
        answers = EpochAnswers(epoch)
        unpublished: Counter[Naming] = Counter()
        for state in crash_states(epoch, self.plan if is_first else DEEP_PLAN):
            if story.path in state.naming.others:
                # Compaction put another file at the path: a state of that file's story.
                continue
            published = story.path in state.naming.own
            if not published:
                unpublished[state.naming] += 1
                if unpublished[state.naming] > UNPUBLISHED_STATES:
                    continue
            tally.states += 1
            tally.deep_states += not is_first
            try:
                if not published:
                    tally.distinct += 1
                    tally.opened += is_first
                    tally.recovered += 1
                    check_unpublished(self.opener, crashed_world(state), story.path, state.acked)
                    continue
                outcome = memory.images.get(state.key)
                if outcome is None:
                    tally.distinct += 1
                    tally.opened += is_first
                    outcome = self._outcome(state, answers, course)
                    memory.images[state.key] = outcome
                    if is_first:
                        self._live_on(state, story, outcome.seq, tally)
                else:
                    oracle.check_known(outcome, acked=state.acked)
                outcomes[outcome] = max(state.acked, outcomes.get(outcome, 0))
            except Finding as finding:
                course.fail(state, finding)
                if self._is_over(tally):
                    return
        if likeness is not None and not tally.failures:
            memory.epochs[likeness] = outcomes

    def _outcome(self, state: CrashState, answers: EpochAnswers, course: Course) -> Outcome:
        """Return the outcome of an image, from an earlier equal reading if there is one."""
        # The digests by which readings are compared do not cover garbage past the old end.
        if state.gap != "zero":
            return self._recover(state, course)
        earlier = course.memory.readings.find(state, answers)
        if earlier is not None:
            course.oracle.check_known(earlier, acked=state.acked)
            if (state.digest + self.plan.seed) % self.audit_every:
                return earlier
            course.tally.audited += 1
        reading = Reading()
        outcome = self._recover(state, course, reading)
        course.remember(state, answers, reading, outcome)
        return outcome

    def _recover(
        self, state: CrashState, course: Course, reading: Reading | None = None
    ) -> Outcome:
        story = course.story
        tally = course.tally
        depth = course.depth
        tally.recovered += 1
        interval = self.deep_every * (1 if depth == 1 else THIRD_EVERY)
        deeper = (
            bool(interval) and depth < DEPTH_MAX and (state.digest + self.plan.seed) % interval == 0
        )
        world = crashed_world(state, record=deeper)
        disk = world.disk
        base = bytes(disk.names[story.path].data) if deeper else b""
        disk.reading = reading
        started = time.process_time()
        with opening(self.opener, world, story.path) as opened:
            outcome = course.oracle.check_legal(opened, acked=state.acked)
        milliseconds = 1e3 * (time.process_time() - started)
        tally.recovery_ms_max = max(tally.recovery_ms_max, milliseconds)
        tally.operations_max = max(tally.operations_max, disk.operations)
        if disk.operations > OPERATIONS_MAX:
            raise Finding(
                "O14", f"opening and reading the log took {disk.operations} disk operations"
            )
        disk.reading = None
        if deeper and any(isinstance(operation, Write | SetSize) for operation in disk.trace):
            tally.deep += 1
            self._check_stable(world, course, outcome)
            # The recovered events are on the disk, so every later crash must leave them.
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
            self._check_file(Course(inner, tally, course.memory, depth + 1))
        return outcome

    def _check_stable(self, world: World, course: Course, outcome: Outcome) -> None:
        """Open a recovered file once more: nothing may be written, and no event may differ."""
        path = course.story.path
        aside = World(seed=2, disk=SimulatedDisk())
        aside.disk.put(path, bytes(world.disk.names[path].data))
        with opening(self.opener, aside, path) as opened:
            again = course.oracle.check_legal(opened, acked=outcome.seq)
        wrote = [
            operation for operation in aside.disk.trace if isinstance(operation, Write | SetSize)
        ]
        if again != outcome or wrote:
            raise Finding(
                "O7",
                f"recovered to {outcome.seq}, reopened at {again.seq} with {len(wrote)} writes",
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


@contextmanager
def opening(
    opener: Opener, world: World, path: str, name: str = "after"
) -> Generator[Callable[[], LogLike], None, None]:
    """Yield a call that opens a file in a new process, and kill the process after the block."""
    process = world.disk.process(name)
    try:
        yield lambda: opener(world, process, path)
    finally:
        # Open files keep the disk alive: without this each image waits for the collector.
        process.kill()


def check_unpublished(opener: Opener, world: World, path: str, acked: int) -> None:
    """Check a file that has no name: nothing is recovered, and nothing was acknowledged.

    Raises:
        Finding: a seq was acknowledged, or an event is there.
    """
    with opening(opener, world, path) as opened:
        try:
            head = opened().head.seq
        except NotFound:
            head = 0  # An opener for reading creates no file.
    if head or acked:
        raise Finding(
            "O1", f"seq {acked} was acknowledged in a file without a name; {head} recovered"
        )


def crashed_world(state: CrashState, *, record: bool = False) -> World:
    """Return a world whose disk holds the state's image under the names that the state leaves.

    Its seed differs from that of the world before: no two lives draw the same salts.
    """
    world = World(seed=1, disk=SimulatedDisk(record=record))
    node = world.disk.new_node(state.image())
    for name in state.naming.own:
        world.disk.names[name] = node
    for name in state.naming.others:
        world.disk.put(name, b"")
    return world
