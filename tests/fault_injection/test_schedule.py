"""The scheduler runs every interleaving it promises, the same for the same vector."""

import pytest

from cerata.engine.disk.storage import LockName
from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.judging.campaign import Campaign, Story
from cerata.fault_injection.judging.oracle import LogLike
from cerata.fault_injection.simulation.disk import SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World

from ..crash.schedule import (
    Actor,
    Deadlock,
    Livelock,
    Program,
    explore,
    replay,
)
from .toy import ToyBugs, ToyLog, toy_model


def counter_world() -> World:
    world = World()
    world.disk.put("n", b"\0")
    return world


def increment(actor: Actor) -> int:
    """Read, add one, write: the textbook lost update."""
    file = actor.process.open("n", mode="rw")
    value = file.read_at(0, 1)[0]
    file.write_at(0, bytes([value + 1]))
    return value + 1


def value_of(world: World) -> int:
    return world.disk.names["n"].data[0]


def test_no_preemption_gives_the_serial_orders_only() -> None:
    """With no preemption each program runs to its end: two orders, no lost update."""
    runs = list(explore(counter_world, [increment, increment], preemptions=0))
    assert [value_of(run.world) for run in runs] == [2, 2]
    assert {run.results for run in runs} == {(1, 2), (2, 1)}


def test_one_preemption_finds_the_lost_update() -> None:
    """The smallest bound that can show the bug shows it."""
    values = [value_of(run.world) for run in explore(counter_world, [increment] * 2, preemptions=1)]
    assert set(values) == {1, 2}


def test_every_schedule_is_run_once_and_replays_to_the_same_trace() -> None:
    """A failing schedule is worth nothing if its vector does not reproduce it."""
    runs = list(explore(counter_world, [increment] * 3, preemptions=2))
    schedules = [run.schedule for run in runs]
    assert len(set(schedules)) == len(schedules)
    assert max(run.preemptions for run in runs) == 2
    for run in runs[:: max(1, len(runs) // 40)]:
        again = replay(counter_world, [increment] * 3, run.schedule)
        assert again.world.disk.trace == run.world.disk.trace
        assert again.schedule == run.schedule


def lock_both(first: LockName, second: LockName) -> Program:
    def program(actor: Actor) -> None:
        file = actor.process.open("n", mode="rw")
        for name in (first, second):
            while not file.try_lock(name, exclusive=True):
                actor.world.clock.sleep(50e-6)
        file.unlock(second)
        file.unlock(first)

    return program


def test_a_deadlock_is_found_and_named() -> None:
    """Two locks taken in opposite orders deadlock in some schedule, and the run says who waits."""
    programs = [
        lock_both(LockName.WRITER, LockName.MAINTENANCE),
        lock_both(LockName.MAINTENANCE, LockName.WRITER),
    ]
    stuck = [run for run in explore(counter_world, programs, preemptions=1) if run.stuck]
    assert stuck
    with pytest.raises(Deadlock, match="P0 waits for MAINTENANCE of 1; P1 waits for WRITER of 1"):
        stuck[0].check()


def test_locks_in_one_order_never_deadlock() -> None:
    """The same programs in one order always finish: waiting is not mistaken for a deadlock."""
    programs = [lock_both(LockName.WRITER, LockName.MAINTENANCE)] * 3
    for run in explore(counter_world, programs, preemptions=2, limit=2_000):
        run.check()


def test_a_livelock_ends_after_a_bounded_number_of_steps() -> None:
    """Two programs that wait for each other by polling are stopped."""

    def poll(actor: Actor) -> None:
        file = actor.process.open("n", mode="rw")
        while file.read_at(0, 1) == b"\0":
            actor.world.clock.sleep(1e-3)

    run = replay(counter_world, [poll, poll], steps_max=500)
    assert isinstance(run.stuck, Livelock)
    assert all(error is not None for error in run.errors)


def test_a_process_may_be_killed_at_any_of_its_points() -> None:
    """Each point of the doomed process is tried; the others go on, and its locks are free."""

    def locked_write(actor: Actor) -> str:
        file = actor.process.open("n", mode="rw")
        while not file.try_lock(LockName.WRITER, exclusive=True):
            actor.world.clock.sleep(50e-6)
        file.write_at(0, b"\x01")
        file.unlock(LockName.WRITER)
        return "done"

    runs = list(explore(counter_world, [locked_write] * 2, preemptions=0, kill=0))
    assert all(run.stuck is None for run in runs)
    assert all(run.results[1] == "done" for run in runs)
    killed = [run for run in runs if run.errors[0] is not None]
    points = {next(p.doing for p in run.points if p.chosen == len(p.options)) for run in killed}
    assert points == {"open", "lock", "write", "unlock"}


def toy_programs(bugs: ToyBugs) -> list[Program]:
    def program(actor: Actor) -> list[int]:
        log = ToyLog.open(actor.environment(), "toy", bugs)
        seqs: list[int] = []
        for number in range(2):
            seq = log.append(f"{actor.index}.{number}".encode())
            actor.acknowledge(seq)
            seqs.append(seq)
        return seqs

    return [program, program]


def toy_world() -> World:
    world = World()
    world.disk.put("toy", b"")
    return world


def test_two_writers_with_the_lock_lose_nothing() -> None:
    """Every crash state of every schedule is a prefix that holds all that was acknowledged."""

    def opener(world: World, process: SimulatedProcess, path: str) -> LogLike:
        return ToyLog.open(world.environment(process), path)

    campaign = Campaign(opener, Plan(tears=8, samples=8))
    for run in explore(toy_world, toy_programs(ToyBugs()), preemptions=1, limit=150):
        run.check()
        log = ToyLog.open(run.world.environment(run.world.disk.process()), "toy")
        assert len(log.payloads) == 4
        # The empty file was there before the trace began.
        node = run.world.disk.names["toy"].number
        story = Story(run.world.disk.trace, node, "toy", toy_model(log.payloads), existing=True)
        assert campaign.check(story).failures == []


def test_two_writers_without_the_lock_are_caught() -> None:
    """One preemption between reading the end and writing there overwrites a record."""
    lost = 0
    for run in explore(toy_world, toy_programs(ToyBugs(no_lock=True)), preemptions=1):
        log = ToyLog.open(run.world.environment(run.world.disk.process()), "toy")
        lost += len(log.payloads) < 4
    assert lost
