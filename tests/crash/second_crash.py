"""After recovery from a crash: the store must accept writes, and may crash again.

Owns `live_on`: recover, append, kill the process, and check the crash states of that run,
recovery's writes included.
"""

from dataclasses import replace

from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.fault_injection.crash_states.readings import Readings
from cerata.fault_injection.crash_states.states import CrashState, Plan
from cerata.fault_injection.judging.campaign import Campaign, Failure, Story, Tally, crashed_world
from cerata.fault_injection.judging.model import Model, ModelEvent
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.simulation.disk import SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    Session,
    append_long,
    append_small,
    model_from,
    recover,
    story_in,
)

SECOND_PLAN = Plan(exhaustive=64, samples=8, tears=8, pair_drops=4)
"""The states of a second crash are sampled: each first crash has a separate set of them."""


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
