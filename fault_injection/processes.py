"""Several simulated processes on one store: what they do, and what must hold whatever the schedule.

Owns the worlds that they meet in, the programs (each a few operations of the alphabet in
`workloads`, or a reader's look), and the judgement of one finished run: everybody was told the
truth, and the run's trace makes a `Story` whose crash states can be tried. Leaves out which
schedules are run (`interleavings`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from cerata.engine.log import Log

from .afterlife import recover
from .campaign import Story
from .disk import ProcessKilled, SimulatedDisk, SimulatedProcess
from .drafts import expected_payload
from .geometry import FileGeometry
from .model import Model, ModelEvent
from .monitor import OrderingMonitor, OrderViolation
from .oracle import Finding
from .schedule import Actor, Program, Run
from .workloads import ALPHABET, PATH, Session, Told, append_small, fresh_image, model_from
from .world import World


@dataclass(slots=True)
class Seat(Session):
    """A session whose process is given, and lives on when the store is opened again in it."""

    given: SimulatedProcess = field(kw_only=True)

    def begin(self) -> SimulatedProcess:
        return self.given

    def end(self) -> None:
        """Nothing dies."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader was shown: all events, at one look. It must survive every later crash."""

    events: tuple[ModelEvent, ...]


Witness: TypeAlias = tuple[Told | Seen, ...]
"""What a program returns: everything that it was told or shown, in order."""


class SharedWorld(World):
    """A world with one store and one monitor for all its processes; they open it themselves."""

    existing = True
    """Whether the store is there when the processes start."""

    def __init__(self) -> None:
        super().__init__()
        # Looking at the clock is not an event here: schedules that differ in nothing else leave
        # the same bytes.
        self.clock.step_us = 0
        self.monitor = OrderingMonitor(FileGeometry())
        if self.existing:
            self.disk.put(PATH, fresh_image())
        self.base = fresh_image() if self.existing else b""
        self.acked = 0

    def seat(self, actor: Actor) -> Seat:
        """Return the session of a writing actor: opened for it here."""
        return Seat(self, self.monitor, given=actor.process)

    def log(self, actor: Actor) -> Log:
        """Return the log of a reading actor: opened for it here."""
        return self.open_log(actor.process)

    def open_log(self, process: SimulatedProcess) -> Log:
        """Open the store for reading in a process, watched by the monitor."""
        environment = self.environment(process, self.monitor.storage(process))
        return Log.open(PATH, mode="r", environment=environment)


class EmptyWorld(SharedWorld):
    """A world in which the store is still to be created."""

    existing = False


class OpenWorld(SharedWorld):
    """A world in which two writers and a reader, P0 to P2, have the store open already.

    The first has appended an event since the others looked: they have something to catch up with.
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
    """Return the world as one that these programs can live in."""
    if not isinstance(world, SharedWorld):
        raise TypeError("these programs need a SharedWorld")
    return world


def _shared(actor: Actor) -> SharedWorld:
    return shared_world(actor.world)


def does(*acts: str) -> Program:
    """Return a program that does operations of the alphabet with a store that is open."""

    def program(actor: Actor) -> Witness:
        seat = _shared(actor).seat(actor)
        before = len(seat.told)
        for act in acts:
            ALPHABET[act](seat)
        return tuple(seat.told[before:])

    return program


def lives(*acts: str) -> Program:
    """Return a program that opens, does operations of the alphabet, and closes."""

    def program(actor: Actor) -> Witness:
        seat = _shared(actor).seat(actor)
        for act in acts:
            ALPHABET[act](seat)
        seat.log.close()
        return tuple(seat.told)

    return program


def look(actor: Actor) -> Witness:
    """Take in what others wrote, with a log that is open, and read all of it."""
    log = _shared(actor).log(actor)
    log.refresh()
    return (_look(actor, log),)


def open_and_look(actor: Actor) -> Witness:
    """Open for reading and read all."""
    return (_look(actor, _shared(actor).open_log(actor.process)),)


def read_on(actor: Actor) -> Witness:
    """Open for reading and look three times."""
    log = _shared(actor).log(actor)
    seen = [_look(actor, log)]
    for _ in range(2):
        # Others get their turn here without a preemption.
        actor.world.clock.sleep(1e-3)
        log.refresh()
        seen.append(_look(actor, log))
    log.close()
    return tuple(seen)


def idle(_: Actor) -> Witness:
    """Do nothing: what is left of a process that a shorter meeting can do without."""
    return ()


WRITERS: Final[dict[str, Callable[..., Program]]] = {"does": does, "lives": lives}
READERS: Final[dict[str, Program]] = {"looks": look, "opens": open_and_look, "reads on": read_on}
WORLDS: Final[dict[str, type[SharedWorld]]] = {
    "existing": SharedWorld,
    "empty": EmptyWorld,
    "open": OpenWorld,
}
"""What a case file can name: worlds, readers, and what makes a writer of its operations."""


def program_of(role: Sequence[str]) -> Program:
    """Return the program of a role: a writer's kind and its operations, a reader's, or nothing."""
    if not role:
        return idle
    kind, *acts = role
    return WRITERS[kind](*acts) if kind in WRITERS else READERS[kind]


def _look(actor: Actor, log: Log) -> Seen:
    """Read everything. Who was shown an event may act on it: it counts as acknowledged."""
    events = tuple(ModelEvent.of(event) for event in log.read())
    actor.acknowledge(len(events))
    _shared(actor).monitor.acknowledge(log.file.file.identity(), len(events))
    return Seen(events)


def story_of(run: Run) -> Story:
    """Recover the file that a run left, and return the run as a story.

    Raises:
        Finding: something was cut, though nothing died.
    """
    world = shared_world(run.world)
    aside = World(disk=SimulatedDisk(record=False))
    aside.disk.put(PATH, bytes(world.disk.names[PATH].data))
    log = recover(aside, aside.disk.process(), PATH)
    if log.report.cut_bytes and not _died(run):
        raise Finding("O5", f"nothing died, yet {log.report.cut_bytes} bytes were cut")
    return Story(
        trace=list(world.disk.trace),
        node=world.disk.names[PATH].number,
        path=PATH,
        model=model_from(log.log_id, [ModelEvent.of(event) for event in log.read()]),
        name=f"schedule {run.schedule}",
        existing=world.existing,
        base=world.base,
        acked=world.acked,
    )


def check_told(run: Run, model: Model) -> None:
    """Hold what a run left against all that its programs were told and shown.

    Raises:
        Finding: an acknowledged event is missing or changed, one was invented, two writers were
        given one seq, or a reader was shown what is not there.
        OrderViolation: a write or sync came in an order that a crash could expose.
    """
    world = shared_world(run.world)
    if world.monitor.violations:
        raise OrderViolation(world.monitor.violations[0])
    given = set(range(1, world.acked + 1))
    for index, result in enumerate(run.results):
        shown = 0
        witnesses = cast("Witness", result) if isinstance(result, tuple) else ()
        for witness in witnesses:
            if isinstance(witness, Told):
                _check_batch(model, witness)
                seqs = range(witness.first_seq, witness.first_seq + len(witness.batch.drafts))
                if not given.isdisjoint(seqs):
                    raise Finding("O2", f"seq {seqs[0]} was given out twice")
                given.update(seqs)
            else:
                _check_seen(model, witness, shown, f"P{index}")
                shown = len(witness.events)
    if len(model.events) > len(given) and not _died(run):
        raise Finding("O2", f"{len(model.events)} events are there; {len(given)} were appended")


def _died(run: Run) -> bool:
    return any(isinstance(error, ProcessKilled) for error in run.errors)


def _check_seen(model: Model, seen: Seen, shown: int, name: str) -> None:
    count = len(seen.events)
    if count < shown:
        raise Finding("O1", f"the view of {name} went back from {shown} to {count}")
    if seen.events != tuple(model.events[:count]):
        raise Finding("O2", f"{name} was shown {count} events that are not there")
    if count not in model.ends:
        raise Finding("O3", f"{name} was shown a batch in part, up to seq {count}")


def _check_batch(model: Model, told: Told) -> None:
    first, batch = told.first_seq, told.batch
    if first - 1 not in model.ends or first - 1 + len(batch.drafts) not in model.ends:
        raise Finding("O1", f"the batch that was acknowledged at seq {first} is not there whole")
    for place, draft in enumerate(batch.drafts):
        expected = expected_payload(draft, None if place else batch.key)
        if model.events[first - 1 + place].payload != expected:
            raise Finding("O1", f"seq {first + place} is not what was acknowledged there")
