"""Several simulated processes on one store, under every schedule with few preemptions.

Owns the programs (writers, a reader), what must hold after each schedule, and the crash states of
its trace. What a reader has seen counts as acknowledged: it must survive every later crash.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from cerata.engine.log import Log

from .afterlife import recover
from .campaign import Campaign, Story, Tally
from .disk import SimulatedDisk
from .geometry import FileGeometry
from .model import ModelEvent
from .monitor import OrderingMonitor, OrderViolation
from .oracle import Finding
from .schedule import Actor, Program, Run, explore
from .states import Plan
from .workloads import PATH, frame, fresh_image, model_from, open_log
from .world import World

CRASH_PLAN = Plan(exhaustive=64, samples=8, tears=16, pair_drops=8)


class SharedWorld(World):
    """A world with one store and one monitor for all its processes."""

    existing = True
    """Whether the store is there when the processes start."""

    def __init__(self) -> None:
        super().__init__()
        self.monitor = OrderingMonitor(FileGeometry())
        if self.existing:
            self.disk.put(PATH, fresh_image())

    @property
    def node(self) -> int:
        return self.disk.names[PATH].number

    def open(self, actor: Actor) -> Log:
        storage = self.monitor.storage(actor.process)
        return open_log(self, actor.process, PATH, storage=storage)


class EmptyWorld(SharedWorld):
    """A world in which the store is still to be created."""

    existing = False


def _world(actor: Actor) -> SharedWorld:
    if not isinstance(actor.world, SharedWorld):
        raise TypeError("these programs need a SharedWorld")
    return actor.world


def writer(actor: Actor) -> int:
    """Open, append one event, close."""
    world = _world(actor)
    log = world.open(actor)
    appended = log.append([frame(f"by {actor.index}")])
    actor.acknowledge(appended.last_seq)
    world.monitor.acknowledge((1, world.node), appended.last_seq)
    log.close()
    return appended.last_seq


def large_writer(actor: Actor) -> int:
    """Open and append more than a quarter of the ring, whose payload is written unlocked."""
    world = _world(actor)
    log = world.open(actor)
    appended = log.append([frame(f"{actor.index}" * 17_000)])
    actor.acknowledge(appended.last_seq)
    world.monitor.acknowledge((1, world.node), appended.last_seq)
    log.close()
    return appended.last_seq


def sealer(actor: Actor) -> int:
    """Open, append one event, seal, close."""
    world = _world(actor)
    log = world.open(actor)
    appended = log.append([frame(f"by {actor.index}")])
    actor.acknowledge(appended.last_seq)
    log.seal()
    log.close()
    return appended.last_seq


def reader(actor: Actor) -> None:
    """Open for reading, look twice; whatever is seen must stay."""
    log = Log.open(PATH, mode="r", environment=actor.environment())
    for _ in range(2):
        actor.acknowledge(sum(1 for _ in log.read()))
        # Others get their turn here without a preemption: then it looks again.
        actor.world.clock.sleep(1e-3)
        log.refresh()
    actor.acknowledge(sum(1 for _ in log.read()))
    log.close()


@dataclass(slots=True)
class ScheduleTally:
    """What an exploration did. ``problems`` are messages, each with a schedule that shows it."""

    runs: int = 0
    points: int = 0
    seconds: float = 0.0
    crash: Tally = field(default_factory=Tally)
    problems: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


def explore_programs(
    programs: Sequence[Program],
    *,
    preemptions: int = 2,
    kill: int | None = None,
    limit: int | None = None,
    crash_every: int = 10,
    problems_max: int = 3,
    world: type[SharedWorld] = SharedWorld,
) -> ScheduleTally:
    """Run every schedule, check what it left, and crash every ``crash_every``-th one's trace."""
    # Every world starts from the same bytes, made outside any schedule.
    fresh_image()
    tally = ScheduleTally()
    campaign = Campaign(recover, CRASH_PLAN, failures_max=1)
    started = time.perf_counter()
    for run in explore(world, programs, preemptions=preemptions, kill=kill, limit=limit):
        tally.runs += 1
        tally.points += len(run.points)
        try:
            run.check()
            story = _story(run, kill=kill)
            if tally.runs % crash_every == 1 or crash_every == 1:
                for failure in campaign.check(story).failures:
                    tally.problems.setdefault(str(failure.finding), run.schedule)
        except Exception as error:  # noqa: BLE001 - told, whatever it is
            tally.problems.setdefault(f"{type(error).__name__}: {error}", run.schedule)
        if len(tally.problems) >= problems_max:
            break
    tally.crash = campaign.tally
    tally.seconds = time.perf_counter() - started
    return tally


def _story(run: Run, *, kill: int | None) -> Story:
    """Check the file that a schedule left and return its story.

    Raises:
        Finding: an acknowledged event is missing, or two writers were given one seq.
    """
    world = run.world
    if not isinstance(world, SharedWorld):
        raise TypeError("these programs need a SharedWorld")
    aside = World(disk=SimulatedDisk(record=False))
    aside.disk.put(PATH, bytes(world.disk.names[PATH].data))
    log = recover(aside, aside.disk.process(), PATH)
    events = [ModelEvent.of(event) for event in log.read()]
    given = [result for result in run.results if isinstance(result, int)]
    if len(set(given)) != len(given):
        raise Finding("O2", f"seqs {given} were given to the writers")
    if given and len(events) < max(given):
        raise Finding("O1", f"seq {max(given)} was acknowledged; {len(events)} are there")
    if kill is None and log.report.cut_bytes:
        raise Finding("O5", f"nothing died, yet {log.report.cut_bytes} bytes were cut")
    if world.monitor.violations:
        raise OrderViolation(world.monitor.violations[0])
    return Story(
        trace=list(world.disk.trace),
        node=world.node,
        path=PATH,
        model=model_from(log.log_id, events),
        name=f"schedule {run.schedule}",
        existing=world.existing,
        base=fresh_image() if world.existing else b"",
    )
