"""After recovery from a crash: the store must accept writes, and may crash again.

Owns the openers over the engine, with the checks that need its recovery report, and `live_on`:
recover, append, kill the process, and check the crash states of that run, recovery's writes
included.
"""

from dataclasses import replace

from cerata.engine.format.extent import ExtentKind
from cerata.engine.log import Log
from cerata.engine.open import open_log

from ..crash_states.operations import SECTOR
from ..crash_states.readings import Readings
from ..crash_states.states import CrashState, Plan
from ..judging.campaign import Campaign, Failure, Story, Tally, crashed_world
from ..judging.model import Model, ModelEvent
from ..judging.oracle import Finding
from ..simulation.disk import SimulatedProcess
from ..simulation.simulated_world import World
from .engine_workloads import (
    PATH,
    Session,
    append_long,
    append_small,
    model_from,
    open_in_world,
    story_in,
)

SECOND_PLAN = Plan(exhaustive=64, samples=8, tears=8, pair_drops=4)
"""The states of a second crash are sampled: each first crash has a separate set of them."""


def recover(world: World, process: SimulatedProcess, path: str) -> Log:
    """Open a crashed file for writing, and check the bytes that recovery set aside.

    Raises:
        Finding: recovery cut bytes and did not set them aside, or set other bytes aside.
    """
    log = open_in_world(world, process, path)
    report = log.report
    if report.cut_bytes and report.cut_offset is not None:
        quarantine = log.toc().quarantine
        if not quarantine or quarantine[-1].length < report.cut_bytes:
            raise Finding("O4", f"{report.cut_bytes} bytes were cut and not set aside")
        # Recovery zeroes the first sector of the tail; the rest is still in the ring to compare
        # with. Read through the file, so that a `Reading` records this read too.
        start = report.cut_offset + SECTOR
        stop = report.cut_offset + report.cut_bytes
        body = log.file.read_extent(quarantine[-1], ExtentKind.QUARANTINE)
        if start < stop <= log.page.ring_end:
            cut = log.file.file.read_at(start, stop - start)
            if body[-len(cut) :] != cut:
                raise Finding("O4", "the bytes set aside are not the bytes that were cut")
    return log


def read_only(world: World, process: SimulatedProcess, path: str) -> Log:
    """Open for reading: recovery decides the same, and writes nothing."""
    return open_log(path, mode="r", environment=world.environment(process))


def live_on(
    state: CrashState, story: Story, seq: int, *, readings: Readings | None = None
) -> Tally:
    """Recover a crash state, append two batches, kill the process, and try its crash states."""
    world = crashed_world(state, record=True)
    # A session opens `PATH`, so a copy continues under that name.
    world.disk.names[PATH] = world.disk.names.pop(story.path)
    base = bytes(world.disk.names[PATH].data)
    tally = Tally()
    try:
        session = Session(world)
        for act in (append_long, append_small):
            act(session)
        trace = tuple(world.disk.trace)
        session.process.kill()
        model = _continued(story.model, seq, world)
    except Exception as error:  # noqa: BLE001 - any error here means a store that does not work
        finding = error if isinstance(error, Finding) else Finding("O5", repr(error))
        named = replace(story, name=f"{story.name}, then life")
        tally.failures.append(Failure(state, finding, named))
        return tally
    name = f"{story.name} [{state.describe()}], then life"
    second = story_in(world, model, name, base=base, acked=seq, trace=trace)
    return Campaign(recover, SECOND_PLAN, failures_max=1, readings=readings).check(second)


def _continued(model: Model, seq: int, world: World) -> Model:
    log = recover(world, world.disk.process(), PATH)
    if log.report.cut_bytes:
        raise Finding(
            "O5",
            f"every write was synced, but {log.report.cut_bytes} bytes were cut at"
            f" {log.report.cut_offset}",
        )
    events = [ModelEvent.of(event) for event in log.read()]
    if events[:seq] != model.events[:seq]:
        raise Finding("O2", f"the {seq} recovered events changed afterwards")
    if len(events) != seq + 2:
        raise Finding("O1", f"{seq} recovered events and two appended became {len(events)}")
    return model_from(model.log_id, events)
