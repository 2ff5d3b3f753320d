"""Several simulated processes on one store: their programs, and the checks after any schedule.

Owns the worlds that they meet in, the programs (each a few operations of the alphabet in
`operations`, or a reader's look), and the judgement of one finished run: every
acknowledgement and every read is true, and the run's trace is a `Story` whose crash states can be
tried. Leaves out which schedules are run (`interleavings`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from cerata.engine.event_tail import EventTail
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.fault_injection.judging.campaign import Story
from cerata.fault_injection.judging.model import Model, ModelEvent
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.judging.wire_check import expected_payload
from cerata.fault_injection.simulation.disk import ProcessKilled, SimulatedProcess
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor, OrderViolation
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    Acknowledgement,
    Session,
    append_small,
    fresh_image,
    model_from,
    recover,
    story_in,
    world_of,
)

from .operations import ALPHABET
from .schedule import Actor, Program, Run

_WAITS: Final = 5
"""Looks of a follower: the first wait only begins a watch, and the writers end before the last."""


@dataclass(slots=True)
class Seat(Session):
    """A session in a process from its caller, which survives when the store is opened again."""

    given: SimulatedProcess = field(kw_only=True)

    def begin(self) -> SimulatedProcess:
        return self.given

    def end(self) -> None:
        """Do nothing: the process stays alive."""


@dataclass(frozen=True, slots=True)
class Observation:
    """All events that a reader saw, at one look. They must survive every later crash."""

    events: tuple[ModelEvent, ...]


Witness: TypeAlias = tuple[Acknowledgement | Observation, ...]
"""The return value of a program: its acknowledgements and looks, in order."""


class SharedWorld(World):
    """A world with one store and one monitor for all its processes; they open it themselves."""

    existing = True
    """True if the store exists when the processes start."""

    def __init__(self) -> None:
        super().__init__()
        # A read of the clock does not advance it here: schedules that differ only in such reads
        # leave the same bytes.
        self.clock.step_us = 0
        self.monitor = OrderingMonitor(FileGeometry())
        if self.existing:
            self.disk.put(PATH, fresh_image())
        self.base = fresh_image() if self.existing else b""
        self.acked = 0

    def seat(self, actor: Actor) -> Seat:
        """Return the session of a writing actor; it opens the store."""
        return Seat(self, self.monitor, given=actor.process)

    def log(self, actor: Actor) -> Log:
        """Return the log of a reading actor; it opens the store."""
        return self.open_log(actor.process)

    def open_log(self, process: SimulatedProcess) -> Log:
        """Open the store for reading in a process, watched by the monitor."""
        environment = self.environment(process, self.monitor.storage(process))
        return open_log(PATH, mode="r", environment=environment)


class EmptyWorld(SharedWorld):
    """A world in which the processes create the store."""

    existing = False


class OpenWorld(SharedWorld):
    """A world in which two writers and a reader, P0 to P2, have the store open already.

    The first has appended an event that the second writer and the reader have not read yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self._processes = [self.disk.process(f"P{index}") for index in range(3)]
        first, second, third = self._processes
        self._seats = [Seat(self, self.monitor, given=process) for process in (first, second)]
        self._log = self.open_log(third)
        append_small(self._seats[0])
        self.disk.trace.clear()
        self.base = bytes(self.disk.names[PATH].data)
        self.acked = 1

    def process(self, index: int) -> SimulatedProcess:
        return self._processes[index]

    def seat(self, actor: Actor) -> Seat:
        return self._seats[actor.index]

    def log(self, actor: Actor) -> Log:
        return self._log


def shared_world(world: World) -> SharedWorld:
    """Return the world as a `SharedWorld`, which these programs need."""
    if not isinstance(world, SharedWorld):
        raise TypeError("the world must be a SharedWorld")
    return world


def _shared(actor: Actor) -> SharedWorld:
    return shared_world(actor.world)


def does(*acts: str) -> Program:
    """Return a program that does operations of the alphabet on an open store."""

    def program(actor: Actor) -> Witness:
        seat = _shared(actor).seat(actor)
        before = len(seat.acknowledgements)
        for act in acts:
            ALPHABET[act](seat)
        return tuple(seat.acknowledgements[before:])

    return program


def lives(*acts: str) -> Program:
    """Return a program that opens, does operations of the alphabet, and closes."""

    def program(actor: Actor) -> Witness:
        seat = _shared(actor).seat(actor)
        for act in acts:
            ALPHABET[act](seat)
        seat.log.close()
        return tuple(seat.acknowledgements)

    return program


def look(actor: Actor) -> Witness:
    """Refresh an open log, and read all of its events."""
    log = _shared(actor).log(actor)
    log.refresh()
    return (_look(actor, log),)


def open_and_look(actor: Actor) -> Witness:
    """Open for reading and read all events."""
    return (_look(actor, _shared(actor).open_log(actor.process)),)


def read_on(actor: Actor) -> Witness:
    """Open for reading and look three times."""
    log = _shared(actor).log(actor)
    looks = [_look(actor, log)]
    for _ in range(2):
        # The other processes get their turn here without a preemption.
        actor.world.clock.sleep(1e-3)
        log.refresh()
        looks.append(_look(actor, log))
    log.close()
    return tuple(looks)


def follow(actor: Actor) -> Witness:
    """Open for reading, and take each event once it is durable: once, in order, batches whole.

    Raises:
        Finding: an event came twice, or out of order.
    """
    world = _shared(actor)
    log = world.open_log(actor.process)
    tail = EventTail(log, 0)
    events: list[ModelEvent] = []
    looks: list[Observation] = []
    for _ in range(_WAITS):
        while (event := tail.take()) is not None:
            if event.seq != len(events) + 1:
                raise Finding("O2", f"event {event.seq} came after {len(events)} events")
            events.append(ModelEvent.of(event))
            # A consumer may act on the event at once.
            actor.acknowledge(event.seq)
            world.monitor.acknowledge(log.file.file.identity(), event.seq)
        looks.append(Observation(tuple(events)))
        tail.wait()
    tail.end()
    tail.release()
    log.close()
    return tuple(looks)


def idle(_: Actor) -> Witness:
    """Do nothing: the program of a process that a shrunk meeting can do without."""
    return ()


WRITERS: Final[dict[str, Callable[..., Program]]] = {"does": does, "lives": lives}
READERS: Final[dict[str, Program]] = {
    "looks": look,
    "opens": open_and_look,
    "reads on": read_on,
    "follows": follow,
}
WORLDS: Final[dict[str, type[SharedWorld]]] = {
    "existing": SharedWorld,
    "empty": EmptyWorld,
    "open": OpenWorld,
}
"""The names in a case file: worlds, readers, and the constructors of writers."""


def program_of(role: Sequence[str]) -> Program:
    """Return the program of a role: a writer's kind and its operations, a reader's, or nothing."""
    if not role:
        return idle
    kind, *acts = role
    return WRITERS[kind](*acts) if kind in WRITERS else READERS[kind]


def _look(actor: Actor, log: Log) -> Observation:
    """Read everything. A reader may act on an event that it saw: a look acknowledges the events."""
    events = tuple(ModelEvent.of(event) for event in log.read())
    actor.acknowledge(len(events))
    _shared(actor).monitor.acknowledge(log.file.file.identity(), len(events))
    return Observation(events)


def story_of(run: Run) -> Story:
    """Recover the file that a run left, and return the run as a story.

    Raises:
        Finding: recovery cut bytes, though no process died.
    """
    world = shared_world(run.world)
    aside = world_of(bytes(world.disk.names[PATH].data), record=False)
    log = recover(aside, aside.disk.process(), PATH)
    if log.report.cut_bytes and not _died(run):
        raise Finding("O5", f"no process died, but {log.report.cut_bytes} bytes were cut")
    model = model_from(log.log_id, [ModelEvent.of(event) for event in log.read()])
    name = f"schedule {run.schedule}"
    return story_in(world, model, name, base=world.base, acked=world.acked)


def check_told(run: Run, model: Model) -> None:
    """Compare a finished run with all acknowledgements and looks of its programs.

    Raises:
        Finding: an acknowledged event is missing or changed, an event was invented, two writers
            got the same seq, or a reader saw an event that is not there.
        OrderViolation: a write or sync came in an order that a crash could expose.
    """
    world = shared_world(run.world)
    if world.monitor.violations:
        raise OrderViolation(world.monitor.violations[0])
    seqs_given = set(range(1, world.acked + 1))
    for index, result in enumerate(run.results):
        seen_count = 0
        witnesses = cast("Witness", result) if isinstance(result, tuple) else ()
        for witness in witnesses:
            if isinstance(witness, Acknowledgement):
                _check_batch(model, witness)
                seqs = range(witness.first_seq, witness.first_seq + len(witness.batch.drafts))
                if not seqs_given.isdisjoint(seqs):
                    raise Finding("O2", f"seq {seqs[0]} was given out twice")
                seqs_given.update(seqs)
            else:
                _check_seen(model, witness, seen_count, f"P{index}")
                seen_count = len(witness.events)
    if len(model.events) > len(seqs_given) and not _died(run):
        raise Finding(
            "O2", f"{len(model.events)} events are in the log; {len(seqs_given)} were appended"
        )


def _died(run: Run) -> bool:
    return any(isinstance(error, ProcessKilled) for error in run.errors)


def _check_seen(model: Model, witness: Observation, seen_before: int, name: str) -> None:
    count = len(witness.events)
    if count < seen_before:
        raise Finding("O1", f"the view of {name} went back from {seen_before} to {count}")
    if witness.events != tuple(model.events[:count]):
        raise Finding("O2", f"{name} saw {count} events that are not in the log")
    if count not in model.ends:
        raise Finding("O3", f"{name} saw a part of a batch, up to seq {count}")


def _check_batch(model: Model, acknowledged: Acknowledgement) -> None:
    first = acknowledged.first_seq
    batch = acknowledged.batch
    if first - 1 not in model.ends or first - 1 + len(batch.drafts) not in model.ends:
        raise Finding("O1", f"the batch acknowledged at seq {first} is missing or incomplete")
    for place, draft in enumerate(batch.drafts):
        expected = expected_payload(draft, None if place else batch.key)
        if model.events[first - 1 + place].payload != expected:
            raise Finding("O1", f"seq {first + place} differs from the acknowledged event")
