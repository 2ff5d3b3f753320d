"""Several processes of the engine on one file: a share of the schedules that the report runs."""

import pytest

from cerata.fault_injection.stories.parallel import run_shards

from ..crash.interleavings import (
    FOLLOWS,
    LIVES,
    MEETING_PLAN,
    OPERATIONS,
    Meeting,
    explore_meeting,
)
from ..crash.mutants import BY_NAME
from ..crash.processes import OpenWorld, SharedWorld, lives
from ..crash.report.tasks import Task, work
from ..crash.schedule import replay


@pytest.mark.slow("the crash gate of each change tries these stories")
@pytest.mark.parametrize("meeting", LIVES.values(), ids=LIVES)
def test_every_schedule_keeps_what_was_told(meeting: Meeting) -> None:
    """No deadlock, no lost or doubled seq, no wrong order of writes, no crash that loses."""
    tally = explore_meeting(meeting, preemptions=1, limit=80)
    assert tally.problems == {}
    assert tally.runs > 30
    assert tally.crash.states > 30


@pytest.mark.parametrize("meeting", FOLLOWS.values(), ids=FOLLOWS)
def test_a_follower_gets_each_event_once_and_durable(meeting: Meeting) -> None:
    """Under every schedule: in order, batches whole, and none that a crash takes back."""
    tally = explore_meeting(meeting, preemptions=1, limit=80)
    assert tally.problems == {}
    assert tally.runs > 30
    assert tally.crash.states > 30


def test_a_follower_of_events_that_are_not_synced_is_caught() -> None:
    """The schedules notice that a look shows what its writer has not synced."""
    OpenWorld()
    with BY_NAME["show records before they are synced"].planted():
        meeting = FOLLOWS["a writer and a follower"]
        tally = explore_meeting(meeting, preemptions=1, problems_max=1)
    assert len(tally.problems) == 1


@pytest.mark.slow("the crash gate of each change tries these stories")
@pytest.mark.parametrize("meeting", OPERATIONS.values(), ids=OPERATIONS)
def test_three_operations_of_two_writers_and_a_reader(meeting: Meeting) -> None:
    """Every pair of operations with a reader that follows, or opens meanwhile."""
    tally = explore_meeting(meeting, preemptions=1, limit=16)
    assert tally.problems == {}
    assert tally.runs == 16
    assert tally.traces > 3


@pytest.mark.slow("the crash gate of each change tries these stories")
def test_all_schedules_of_one_meeting() -> None:
    """One of the meetings whole, as the report runs all of them: with two preemptions."""
    tally = explore_meeting(OPERATIONS["small and small, open"], preemptions=2)
    assert tally.problems == {}
    assert tally.runs > 1_000
    # Others differ in nothing that a disk, or a caller, ever sees.
    assert 50 < tally.traces < tally.runs / 10
    assert tally.crash.repeated > tally.crash.epochs / 2


@pytest.mark.parametrize(
    "name", ["write without the writer lock", "show records before they are synced"]
)
def test_the_schedules_notice_what_they_are_there_for(name: str) -> None:
    """The writer lock keeps two writers apart; a reader syncs what it is about to show."""
    # Worlds start from a store that was made by a whole engine.
    OpenWorld()
    with BY_NAME[name].planted():
        tally = explore_meeting(OPERATIONS["small and small, look"], preemptions=2, problems_max=1)
    assert len(tally.problems) == 1


def test_a_schedule_of_the_engine_replays_byte_for_byte() -> None:
    """Clock and randomness are the world's, so the same vector gives the same trace."""
    programs = [lives("small"), lives("small")]
    first = replay(SharedWorld, programs, [0] * 12 + [1])
    again = replay(SharedWorld, programs, first.schedule)
    assert first.world.disk.trace == again.world.disk.trace
    first.check()


def test_workers_find_what_one_process_finds() -> None:
    """Meetings are explored on all cores; what is counted does not depend on how many."""
    meetings = [
        Task("meeting", name, plan=MEETING_PLAN, preemptions=0)
        for name in ("seal and seal, look", "two writers")
    ]

    def counts(jobs: int) -> list[tuple[int, int, int, int]]:
        results = run_shards(work, lambda: meetings, jobs=jobs)
        tallies = [result.schedules for result in results if result.problems == []]
        return sorted(
            (tally.runs, tally.traces, tally.crash.states, tally.crash.distinct)
            for tally in tallies
        )

    assert len(counts(1)) == len(meetings)
    assert counts(1) == counts(2)
