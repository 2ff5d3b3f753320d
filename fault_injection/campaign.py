"""Runs every crash state of a trace through recovery and the oracle, and counts.

Owns deduplication, the tally and the failures. Leaves out how traces are made (`workloads`) and
how a log is opened: an `Opener` does that, so a toy can stand in for the engine.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cerata.engine.errors import NotFound

from .disk import SimulatedDisk, SimulatedProcess
from .epochs import Epoch, epochs
from .model import Model
from .operations import AnyOperation
from .oracle import Finding, LogLike, Oracle
from .states import CrashState, Plan, crash_states
from .world import World

Opener: TypeAlias = Callable[[World, SimulatedProcess, str], LogLike]
"""Opens the file at a path as a process that starts after the crash."""

UNPUBLISHED_STATES = 4
"""States tried of an epoch in which the file had no name yet: what is in it can hardly matter."""


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
    """What a campaign did. ``states`` counts all enumerated, ``distinct`` the images opened."""

    traces: int = 0
    epochs: int = 0
    states: int = 0
    distinct: int = 0
    opened: int = 0
    """Distinct images of first crashes only; ``distinct`` counts those of second lives too."""
    lives: int = 0
    seconds: float = 0.0
    """Processor time: what is shared with other programs does not count."""
    failures: list[Failure] = field(default_factory=list[Failure])

    def add(self, other: "Tally") -> None:
        self.traces += other.traces
        self.epochs += other.epochs
        self.states += other.states
        self.distinct += other.distinct
        self.opened += other.opened
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


Life: TypeAlias = Callable[[CrashState, Story, int], Tally]
"""Goes on with a file that was recovered up to a seq, and counts what it tried."""


class Campaign:
    """Checks stories, remembering which images it has seen.

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
    ) -> None:
        self.opener = opener
        self.plan = plan or Plan()
        self.life = life
        self.life_every = life_every
        self.lives_max = lives_max
        self.failures_max = failures_max
        self.tally = Tally()

    def check(self, story: Story) -> Tally:
        """Try every crash state of a story; returns this story's counts."""
        tally = Tally(traces=1)
        started = time.process_time()
        oracle = Oracle(story.model)
        # What recovery makes of an image does not change, but the bound it must meet does.
        recovered: dict[tuple[int, int, str], int] = {}
        names = {story.path: story.node} if story.existing else {}
        for epoch in epochs(
            story.trace, story.node, base=story.base, acked=story.acked, names=names
        ):
            tally.epochs += 1
            self._check_epoch(epoch, story, oracle, recovered, tally)
            if len(tally.failures) >= self.failures_max:
                break
        tally.seconds = time.process_time() - started
        self.tally.add(tally)
        return tally

    def _check_epoch(
        self,
        epoch: Epoch,
        story: Story,
        oracle: Oracle,
        recovered: dict[tuple[int, int, str], int],
        tally: Tally,
    ) -> None:
        published = story.path in epoch.names
        for number, state in enumerate(crash_states(epoch, self.plan)):
            if not published and number >= UNPUBLISHED_STATES:
                return
            tally.states += 1
            key = state.key
            seq = recovered.get(key) if published else None
            try:
                if seq is None:
                    tally.distinct += 1
                    tally.opened += 1
                    seq = self._recover(state, story, oracle, published=published)
                    if published:
                        recovered[key] = seq
                        self._live_on(state, story, seq, tally)
                elif seq < state.acked:
                    raise Finding("O1", f"seq {state.acked} was acknowledged; {seq} recovered")
            except Finding as finding:
                tally.failures.append(Failure(state, finding, story.name))
                if len(tally.failures) >= self.failures_max:
                    return

    def _recover(self, state: CrashState, story: Story, oracle: Oracle, *, published: bool) -> int:
        world = crashed_world(state, story.path)
        process = world.disk.process("after")
        try:
            if published:
                return oracle.check_legal(
                    lambda: self.opener(world, process, story.path), acked=state.acked
                )
            try:
                found = self.opener(world, process, story.path).head.seq
            except NotFound:
                found = 0  # Who only reads creates nothing.
            if found or state.acked:
                raise Finding(
                    "O1", f"{state.acked} acknowledged in a file without a name; {found} found"
                )
            return 0
        finally:
            # Its open files hold the disk: without this each image waits for the collector.
            process.kill()

    def _live_on(self, state: CrashState, story: Story, seq: int, tally: Tally) -> None:
        if self.life is None or tally.opened % self.life_every or tally.lives >= self.lives_max:
            return
        lived = self.life(state, story, seq)
        tally.lives += 1
        tally.states += lived.states
        tally.distinct += lived.distinct
        tally.epochs += lived.epochs
        tally.failures.extend(lived.failures)


def crashed_world(state: CrashState, path: str, *, record: bool = False) -> World:
    """Return a world whose disk holds the state's image under the names it had.

    Its randomness is not that of the world before: no two lives draw the same salts.
    """
    world = World(seed=1, disk=SimulatedDisk(record=record))
    names = state.epoch.names or (path,)
    node = world.disk.put(names[0], state.image())
    for other in names[1:]:
        world.disk.names[other] = node
    return world
