"""Runs several simulated processes one operation at a time, under every interleaving in bounds.

A program is a function; it runs in a separate thread, but exactly one thread runs at any time, and
the scheduler switches threads only at an operation on the disk, a sleep or a lock attempt. A
*schedule* is the vector of choices made at those points, so the same vector is the same run.
`explore` enumerates all schedules with a bounded number of preemptions (switches away from a
process that could continue), after the observation of CHESS (OSDI 2008) that few suffice for most
bugs.

Leaves out threads inside one simulated process: a program that starts threads is not controlled.

Invariants:
- choice 0 continues the running process if possible, so the empty vector never preempts;
- a process that sleeps after a failed lock attempt is not woken before that lock changes hands:
  it could only sleep again;
- time stops unless a process reads the clock or sleeps.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import Storage
from cerata.fault_injection.simulation.disk import ProcessKilled, SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World

STEPS_MAX = 20_000
"""Points after which a run counts as a livelock: a few commits need some hundred."""


class Deadlock(AssertionError):
    """Every unfinished process waits for a lock that another of them holds."""


class Livelock(AssertionError):
    """The processes did the maximum of steps without finishing."""


class Unfit(AssertionError):
    """The schedule has a choice that does not exist: it belongs to other programs."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The argument of a program: a process on the shared disk."""

    world: World
    process: SimulatedProcess
    index: int

    def environment(self, storage: Storage | None = None) -> Environment:
        """Return this process's environment; ``storage`` may wrap the process's storage."""
        return self.world.environment(self.process, storage)

    def acknowledge(self, seq: int) -> None:
        """Record in the trace that this process was acknowledged everything up to ``seq``."""
        self.world.disk.acknowledge(seq, self.process.name)


Program: TypeAlias = Callable[[Actor], object]


@dataclass(frozen=True, slots=True)
class Point:
    """One decision: the processes that could run (the default first), and the choice."""

    options: tuple[int, ...]
    chosen: int
    preempts: bool
    kill: bool
    doing: str


@dataclass(frozen=True, slots=True)
class Run:
    """One complete run: its schedule, the results and errors of its programs, and its world."""

    schedule: tuple[int, ...]
    points: tuple[Point, ...]
    results: tuple[object, ...]
    errors: tuple[BaseException | None, ...]
    world: World
    stuck: Deadlock | Livelock | Unfit | None

    @property
    def preemptions(self) -> int:
        return sum(1 for point in self.points if point.preempts and point.chosen)

    def check(self) -> None:
        """Raise the deadlock or livelock of the run, or the first error of a program."""
        if self.stuck is not None:
            raise self.stuck
        for error in self.errors:
            if error is not None and not isinstance(error, ProcessKilled):
                raise error


@dataclass(slots=True)
class _Strand:
    actor: Actor
    program: Program
    baton: threading.Lock
    asleep: bool = False
    waits: bool = False
    ended: bool = False
    result: object = None
    error: BaseException | None = None

    def blocked(self) -> bool:
        """Return whether it waits for locks of which none has changed hands since its attempt."""
        return self.waits and all(
            node.changes[name] == count
            for (node, name), count in self.actor.process.refused_locks.items()
        )


class Scheduler:
    """Runs programs once, under a schedule and then under the default.

    ``threads`` must have a free thread for each program.
    """

    def __init__(
        self,
        world: World,
        programs: Sequence[Program],
        schedule: Sequence[int] = (),
        *,
        threads: Executor,
        kill: int | None = None,
        steps_max: int = STEPS_MAX,
    ) -> None:
        self._world = world
        self._threads = threads
        self._schedule = tuple(schedule)
        self._kill = kill
        self._steps_max = steps_max
        self._steps = 0
        self._points: list[Point] = []
        self._stuck: Deadlock | Livelock | Unfit | None = None
        self._finished = threading.Lock()
        self._strands: list[_Strand] = []
        self._by_process: dict[SimulatedProcess, int] = {}
        for index, program in enumerate(programs):
            process = world.process(index)
            baton = threading.Lock()
            baton.acquire()
            self._strands.append(_Strand(Actor(world, process, index), program, baton))
            self._by_process[process] = index
        self._current = 0

    def run(self) -> Run:
        """Run to the end and return the run; never raises a program's error."""
        disk = self._world.disk
        clock = self._world.clock
        self._finished.acquire()
        disk.turn = self._turn
        clock.nap = self._nap
        try:
            bodies = [self._threads.submit(self._body, strand) for strand in self._strands]
            self._current = self._choose(None, "start")
            self._strands[self._current].baton.release()
            self._finished.acquire()
            for body in bodies:
                body.result()
        finally:
            disk.turn = clock.nap = None
        return Run(
            schedule=tuple(point.chosen for point in self._points),
            points=tuple(self._points),
            results=tuple(strand.result for strand in self._strands),
            errors=tuple(strand.error for strand in self._strands),
            world=self._world,
            stuck=self._stuck,
        )

    def _body(self, strand: _Strand) -> None:
        strand.baton.acquire()
        try:
            if self._stuck is None and not strand.actor.process.killed:
                strand.result = strand.program(strand.actor)
        except BaseException as error:  # noqa: BLE001 - stored, and raised by Run.check
            strand.error = error
        strand.ended = True
        self._hand_over_at_end()

    def _turn(self, process: SimulatedProcess, doing: str) -> None:
        """Switch before an operation of a process; its thread, the running one, calls this."""
        index = self._by_process.get(process)
        if index is None:
            return
        self._switch(index, doing)

    def _nap(self, seconds: float) -> None:
        strand = self._strands[self._current]
        strand.asleep = True
        strand.waits = bool(strand.actor.process.refused_locks)
        self._switch(self._current, "sleep")

    def _switch(self, index: int, doing: str) -> None:
        strand = self._strands[index]
        chosen = self._choose(index, doing)
        if chosen != index:
            self._current = chosen
            self._strands[chosen].baton.release()
            strand.baton.acquire()
        strand.asleep = strand.waits = False
        if self._stuck is not None:
            strand.actor.process.killed = True
        if strand.actor.process.killed:
            raise ProcessKilled

    def _hand_over_at_end(self) -> None:
        rest = [index for index, strand in enumerate(self._strands) if not strand.ended]
        if not rest:
            self._finished.release()
            return
        self._current = rest[0] if self._stuck is not None else self._choose(None, "end")
        self._strands[self._current].baton.release()

    def _choose(self, running: int | None, doing: str) -> int:
        """Return the next process; without ``running``, the last process has ended."""
        if self._stuck is not None:
            return running if running is not None else self._first_unfinished()
        options, preempts = self._options(running)
        if not options:
            self._stuck = Deadlock(self._describe("all processes wait for each other's locks"))
            return running if running is not None else self._first_unfinished()
        self._steps += 1
        if self._steps > self._steps_max:
            self._stuck = Livelock(
                self._describe(f"the run did not end after {self._steps_max} steps")
            )
            return running if running is not None else self._first_unfinished()
        can_kill = running is not None and running == self._kill
        if len(options) == 1 and not can_kill:
            return options[0]
        step = len(self._points)
        chosen = self._schedule[step] if step < len(self._schedule) else 0
        self._points.append(Point(tuple(options), chosen, preempts, can_kill, doing))
        if chosen < len(options):
            return options[chosen]
        if running is None or not can_kill or chosen > len(options):
            problem = f"choice {chosen} at step {step} does not exist; there are {len(options)}"
            self._stuck = Unfit(self._describe(problem))
            return running if running is not None else self._first_unfinished()
        self._kill = None
        self._strands[running].actor.process.kill()
        return running

    def _options(self, running: int | None) -> tuple[list[int], bool]:
        """Return the processes that may run, the default first, and whether a switch preempts."""
        ready: list[int] = []
        sleeping: list[int] = []
        for index, strand in enumerate(self._strands):
            if strand.ended or strand.blocked():
                continue
            if index == running and not strand.asleep:
                continue
            # A process that waited for a lock is ready as soon as the lock has changed hands.
            (sleeping if strand.asleep and not strand.waits else ready).append(index)
        if running is not None and not self._strands[running].asleep:
            return [running, *ready, *sleeping], True
        # A sleeper runs last by default; waking it early is a choice like any other.
        sleeping.sort(key=lambda index: index == running)
        return [*ready, *sleeping], False

    def _first_unfinished(self) -> int:
        return next(index for index, strand in enumerate(self._strands) if not strand.ended)

    def _describe(self, problem: str) -> str:
        lines: list[str] = []
        for strand in self._strands:
            process = strand.actor.process
            waits = ", ".join(
                f"{name.name} of {node.number}" for node, name in process.refused_locks
            )
            state = "ended" if strand.ended else f"waits for {waits}" if waits else "runs"
            lines.append(f"{process.name} {state}")
        return f"{problem}: {'; '.join(lines)}; schedule {[point.chosen for point in self._points]}"


def replay(
    setup: Callable[[], World],
    programs: Sequence[Program],
    schedule: Sequence[int] = (),
    *,
    kill: int | None = None,
    steps_max: int = STEPS_MAX,
) -> Run:
    """Run ``programs`` in a new world under one schedule; the same vector is the same run."""
    with ThreadPoolExecutor(len(programs)) as threads:
        return Scheduler(
            setup(), programs, schedule, threads=threads, kill=kill, steps_max=steps_max
        ).run()


def explore(
    setup: Callable[[], World],
    programs: Sequence[Program],
    *,
    preemptions: int = 2,
    kill: int | None = None,
    limit: int | None = None,
) -> Iterator[Run]:
    """Yield a run for every schedule with at most ``preemptions`` preemptions.

    ``kill`` is the index of a process that may also die at any of its points, once. Each run has a
    new world, whose disk's trace gives its crash states. ``limit`` bounds the runs, in the order of
    fewest preemptions first.
    """
    # New threads for each run would cost a third of a run.
    with ThreadPoolExecutor(len(programs)) as threads:
        run_count = 0
        # One bucket per number of preemptions: schedules near the default come first.
        buckets: list[list[tuple[int, ...]]] = [[()], *([] for _ in range(preemptions))]
        while any(buckets):
            prefix = next(bucket for bucket in buckets if bucket).pop()
            run = Scheduler(setup(), programs, prefix, threads=threads, kill=kill).run()
            yield run
            run_count += 1
            if limit is not None and run_count >= limit:
                return
            for price, schedule in _branches(run, len(prefix)):
                if price <= preemptions:
                    buckets[price].append(schedule)


def _branches(run: Run, first: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the schedules that depart from a run at a point from ``first`` on, with their price."""
    spent = 0
    for place, point in enumerate(run.points):
        if place >= first:
            cost = spent + point.preempts
            for choice in range(1, len(point.options) + point.kill):
                # A death is not a preemption.
                price = spent if choice == len(point.options) else cost
                yield price, (*run.schedule[:place], choice)
        spent += point.preempts and 0 < point.chosen < len(point.options)
