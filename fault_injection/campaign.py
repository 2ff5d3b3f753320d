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
from .epochs import Epoch, Naming, epochs
from .model import Model
from .operations import AnyOperation
from .oracle import Finding, LogLike, Oracle, Outcome
from .readings import AUDIT_EVERY, EpochAnswers, NotAFunction, Reading, Readings
from .states import CrashState, Plan, crash_states
from .world import World

Opener: TypeAlias = Callable[[World, SimulatedProcess, str], LogLike]
"""Opens the file at a path as a process that starts after the crash."""

UNPUBLISHED_STATES = 4
"""States tried of an epoch where the file has no name: what is in it can hardly matter."""


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


@dataclass(frozen=True, slots=True)
class Failure:
    """A state that broke a rule."""

    state: CrashState
    finding: Finding
    workload: str

    def __str__(self) -> str:
        return f"{self.workload}: {self.finding} [{self.state.describe()}]"


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
    seconds: float = 0.0
    """Processor time: what is shared with other programs does not count."""
    failures: list[Failure] = field(default_factory=list[Failure])

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


Life: TypeAlias = Callable[[CrashState, Story, int], Tally]
"""Goes on with a file that was recovered up to a seq, and counts what it tried."""


class Campaign:
    """Checks stories, remembering which images of a story it has seen; with ``memory``, of all.

    ``readings`` alone shares what recovery read with other campaigns of the same opener: every
    state of every story is still enumerated and judged, and every image of each story counted.
    One in ``audit_every`` outcomes known by readings is recovered anyway: it must be the same.
    ``life`` is called on every ``life_every``-th distinct image after it was recovered, at most
    ``lives_max`` times a story. ``failures_max`` ends a story early: one bug breaks thousands of
    states.
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
        self.tally = Tally()

    def check(self, story: Story) -> Tally:
        """Try every crash state of a story, then those of its copies; returns the counts."""
        tally = Tally(traces=1)
        for one in (story, *story.copies):
            if len(tally.failures) < self.failures_max:
                self._check_file(one, tally)
        self.tally.add(tally)
        return tally

    def _check_file(self, story: Story, tally: Tally) -> None:
        started = time.process_time()
        oracle = Oracle(story.model)
        memory = self.memory or Memory(readings=self.readings or Readings())
        names = {story.path: story.node} if story.existing else {}
        for epoch in epochs(
            story.trace, story.node, base=story.base, acked=story.acked, names=names
        ):
            tally.epochs += 1
            self._check_epoch(epoch, story, oracle, memory, tally)
            if len(tally.failures) >= self.failures_max:
                break
        tally.seconds += time.process_time() - started

    def _check_epoch(
        self, epoch: Epoch, story: Story, oracle: Oracle, memory: Memory, tally: Tally
    ) -> None:
        # Without a memory of other stories no epoch is met twice.
        published = story.path in epoch.naming.own
        likeness = epoch.likeness if published and self.memory is not None else None
        earlier = None if likeness is None else memory.epochs.get(likeness)
        if earlier is not None and all(map(oracle.allows, earlier, earlier.values())):
            tally.repeated += 1
            return
        outcomes: dict[Outcome, int] = {}
        answers = EpochAnswers(epoch)
        unpublished: Counter[Naming] = Counter()
        for state in crash_states(epoch, self.plan):
            published = story.path in state.naming.own
            if not published:
                unpublished[state.naming] += 1
                if unpublished[state.naming] > UNPUBLISHED_STATES:
                    continue
            tally.states += 1
            try:
                if not published:
                    tally.distinct += 1
                    tally.opened += 1
                    tally.recovered += 1
                    self._check_unpublished(state, story)
                    continue
                outcome = memory.images.get(state.key)
                if outcome is None:
                    tally.distinct += 1
                    tally.opened += 1
                    outcome = self._outcome(state, answers, story, oracle, memory, tally)
                    memory.images[state.key] = outcome
                    self._live_on(state, story, outcome.seq, tally)
                else:
                    oracle.check_known(outcome, acked=state.acked)
                outcomes[outcome] = max(state.acked, outcomes.get(outcome, 0))
            except Finding as finding:
                tally.failures.append(Failure(state, finding, story.name))
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
    ) -> Outcome:
        """Return what an image is recovered to, which may be known by what recovery reads."""
        # Garbage past the old end is not in the digests that readings are told apart by.
        if state.gap != "zero":
            tally.recovered += 1
            return self._recover(state, story, oracle)
        known = memory.readings.find(state, answers)
        if known is not None:
            oracle.check_known(known, acked=state.acked)
            if (state.digest + self.plan.seed) % self.audit_every:
                return known
            tally.audited += 1
        tally.recovered += 1
        reading = Reading()
        outcome = self._recover(state, story, oracle, reading)
        try:
            memory.readings.remember(state, answers, reading, outcome)
        except NotAFunction as error:
            raise Finding("O7", f"recovery is no function of what it reads: {error}") from error
        return outcome

    def _recover(
        self, state: CrashState, story: Story, oracle: Oracle, reading: Reading | None = None
    ) -> Outcome:
        world = crashed_world(state)
        world.disk.reading = reading
        process = world.disk.process("after")
        try:
            return oracle.check_legal(
                lambda: self.opener(world, process, story.path), acked=state.acked
            )
        finally:
            # Its open files hold the disk: without this each image waits for the collector.
            process.kill()

    def _check_unpublished(self, state: CrashState, story: Story) -> None:
        world = crashed_world(state)
        process = world.disk.process("after")
        try:
            found = self.opener(world, process, story.path).head.seq
        except NotFound:
            found = 0  # Who only reads creates nothing.
        finally:
            process.kill()
        if found or state.acked:
            raise Finding(
                "O1", f"{state.acked} acknowledged in a file without a name; {found} found"
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
