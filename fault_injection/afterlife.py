"""What must still hold once a crash was recovered from: the store works on, and may crash again.

Owns the openers over the engine with the checks that need its report, and `live_on`: recover,
append, die, and check the crash states of all that, recovery's own writes included.
"""

from dataclasses import replace

from cerata.engine.format.extent import ExtentKind
from cerata.engine.log import Log

from .campaign import Campaign, Failure, Story, Tally, crashed_world
from .disk import SimulatedProcess
from .model import Model, ModelEvent
from .operations import SECTOR
from .oracle import Finding
from .readings import Readings
from .states import CrashState, Plan
from .workloads import PATH, Session, append_long, append_small, model_from, open_log
from .world import World

SECOND_PLAN = Plan(exhaustive=64, samples=8, tears=8, pair_drops=4)
"""The states of a second crash are sampled: there is one such set for each first one."""


def recover(world: World, process: SimulatedProcess, path: str) -> Log:
    """Open for writing, as a process that finds the crash, and check what was kept aside.

    Raises:
        Finding: recovery cut bytes and did not keep them, or kept others.
    """
    log = open_log(world, process, path)
    report = log.report
    if report.cut_bytes and report.cut_offset is not None:
        kept = log.toc().quarantine
        if not kept or kept[-1].length < report.cut_bytes:
            raise Finding("O4", f"{report.cut_bytes} bytes were cut and not kept aside")
        # The first sector was zeroed since: the rest still stands in the ring to compare with.
        # It is read through the file, so that whoever notes what was read hears of it.
        start, stop = report.cut_offset + SECTOR, report.cut_offset + report.cut_bytes
        body = log.file.read_extent(kept[-1], ExtentKind.QUARANTINE)
        if start < stop <= log.page.ring_end:
            was = log.file.file.read_at(start, stop - start)
            if body[-len(was) :] != was:
                raise Finding("O4", "what was kept aside is not what was cut")
    return log


def read_only(world: World, process: SimulatedProcess, path: str) -> Log:
    """Open for reading: recovery's judgement without its writes."""
    return Log.open(path, mode="r", environment=world.environment(process))


def live_on(
    state: CrashState, story: Story, seq: int, *, readings: Readings | None = None
) -> Tally:
    """Recover a crash state, append two batches, die, and try the crash states of all of it."""
    world = crashed_world(state, record=True)
    # A copy lives on under the name that sessions open.
    world.disk.names[PATH] = world.disk.names.pop(story.path)
    base = bytes(world.disk.names[PATH].data)
    tally = Tally()
    try:
        session = Session(world)
        for act in (append_long, append_small):
            act(session)
        trace = list(world.disk.trace)
        session.process.kill()
        model = _continued(story.model, seq, world)
    except Exception as error:  # noqa: BLE001 - whatever it is, the store does not work on
        finding = error if isinstance(error, Finding) else Finding("O5", repr(error))
        named = replace(story, name=f"{story.name}, then life")
        tally.failures.append(Failure(state, finding, named))
        return tally
    second = Story(
        trace=trace,
        node=world.disk.names[PATH].number,
        path=PATH,
        model=model,
        name=f"{story.name} [{state.describe()}], then life",
        existing=True,
        base=base,
        acked=seq,
    )
    return Campaign(recover, SECOND_PLAN, failures_max=1, readings=readings).check(second)


def _continued(model: Model, seq: int, world: World) -> Model:
    """Return the model of the recovered prefix and what was appended to it."""
    log = recover(world, world.disk.process(), PATH)
    if log.report.cut_bytes:
        raise Finding(
            "O5",
            f"everything was synced, yet {log.report.cut_bytes} bytes were cut at"
            f" {log.report.cut_offset}",
        )
    events = [ModelEvent.of(event) for event in log.read()]
    if events[:seq] != model.events[:seq]:
        raise Finding("O2", f"the {seq} events that were recovered changed afterwards")
    if len(events) != seq + 2:
        raise Finding("O1", f"{seq} events and two more were there; {len(events)} are left")
    return model_from(model.log_id, events)
