"""Several processes of the engine on one file, under every schedule with one preemption."""

import pytest

from cerata.fault_injection.processes import SharedWorld, explore_programs, writer
from cerata.fault_injection.report import SCHEDULES
from cerata.fault_injection.schedule import Program, replay


@pytest.mark.parametrize(
    ("name", "programs", "kill", "world"), SCHEDULES, ids=[row[0] for row in SCHEDULES]
)
def test_every_schedule_keeps_what_was_told(
    name: str, programs: tuple[Program, ...], kill: int | None, world: type[SharedWorld]
) -> None:
    """No deadlock, no lost or doubled seq, no wrong order of writes, no crash that loses."""
    tally = explore_programs(
        programs, preemptions=1, kill=kill, limit=80, crash_every=8, world=world
    )
    assert tally.problems == {}
    assert tally.runs > 30
    assert tally.crash.states > 50


def test_a_schedule_of_the_engine_replays_byte_for_byte() -> None:
    """Clock and randomness are the world's, so the same vector gives the same trace."""
    first = replay(SharedWorld, [writer, writer], [0] * 12 + [1])
    again = replay(SharedWorld, [writer, writer], first.schedule)
    assert first.world.disk.trace == again.world.disk.trace
    first.check()
