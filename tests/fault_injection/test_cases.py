"""Cases: each replays by itself in a moment, and what found it is a short story.

The corpus holds an image for each planted bug of recovery that one shows, and a schedule for each
that takes several processes (`corpus` makes them): a sound engine passes all of them, one with the
bug fails its own.
"""

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from cerata.fault_injection.stories.engine_workloads import fresh_image

from ..crash import cases
from ..crash.cases import load_case, replay_saved
from ..crash.interleaving_cases import (
    MeetingCase,
    replay_meeting,
    shrunk_case,
)
from ..crash.interleavings import (
    MEETING_PLAN,
    MEETINGS,
    Meeting,
    explore_meeting,
)
from ..crash.mutants import BY_NAME, FROM_LONG_RUNS
from ..crash.report.budgets import SHARE, tasks
from ..crash.report.tasks import Task, work
from ..crash.schedule import Unfit
from .corpus import FOLDER, crash, shortest_case, shows

CORPUS = sorted(FOLDER.glob("*.case"))
SECONDS_MAX = 1.0
"""Of processor time for one case; an image takes 1 to 30 ms."""


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_case_of_the_corpus_holds_in_less_than_a_second(path: Path) -> None:
    """What broke once, or would with a bug, is asked again at every run."""
    fresh_image()
    case = load_case(path.read_bytes())
    started = time.process_time()
    assert replay_saved(case) is None
    assert time.process_time() - started < SECONDS_MAX


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_case_of_the_corpus_still_shows_its_bug(path: Path) -> None:
    """Otherwise it would hold whatever the engine did; `corpus` makes it anew."""
    assert shows(BY_NAME[path.stem.replace("_", " ")], load_case(path.read_bytes()))


def test_each_bug_of_a_long_run_has_a_case() -> None:
    """No quick check notices these bugs, so only their cases do."""
    names = {plant.name.replace(" ", "_") for plant in FROM_LONG_RUNS}
    assert names <= {path.stem for path in CORPUS}


def test_there_is_a_corpus_of_short_stories() -> None:
    """The specification asks for at most ten operations, five in the middle."""
    lengths = sorted(len(load_case(path.read_bytes()).operations) for path in CORPUS)
    assert len(lengths) >= 5
    assert lengths[-1] <= 10
    assert lengths[len(lengths) // 2] <= 5


def test_a_failure_shrinks_to_what_shows_it() -> None:
    """Nine operations come down to the one or two whose recovery believes what it should not."""
    case = shortest_case(BY_NAME["believe a record's body unchecked"], crash)
    assert case is not None
    assert len(case.operations) <= 2
    assert shows(BY_NAME["believe a record's body unchecked"], case)


def test_a_violation_is_saved_and_replayed_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the report saves is what the command reads, with the bug and without."""
    task = next(task for task in tasks(SHARE, cases=str(tmp_path)) if task.part == "log")
    plant = BY_NAME["believe a record's body unchecked"]
    with plant.planted():
        assert work(task).problems
    saved = [str(path) for path in tmp_path.iterdir()]
    assert saved
    assert cases.main(saved) == 0
    assert "holds now" in capsys.readouterr().out
    with plant.planted():
        assert cases.main(saved) == 1
    assert "BROKEN" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("do not compare a record's link", "damage-strangers.case"),
        ("do not look for records beyond a hole", "damage-unwitnessed.case"),
    ],
)
def test_what_is_wrong_with_a_damaged_image_is_saved_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, saved: str
) -> None:
    """It was told, and gone: whoever wanted to look had to find the byte again.

    Both are bugs of a reader; what a writer got wrong stays wrong in the image.
    """
    task, plant = Task("damage", "damage", cases=str(tmp_path)), BY_NAME[name]
    with plant.planted():
        assert work(task).problems
    path = str(tmp_path / saved)
    assert cases.main([path]) == 0
    assert "holds now" in capsys.readouterr().out
    with plant.planted():
        assert cases.main([path]) == 1
    assert "BROKEN" in capsys.readouterr().out


# --- meetings of processes -----------------------------------------------------------------------

UNLOCKED = BY_NAME["write without the writer lock"]


def test_a_violation_of_a_meeting_is_saved_and_replayed_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file says who did what and who ran when; the engine of today runs it again."""
    fresh_image()
    task = Task("meeting", "two writers", plan=MEETING_PLAN, schedules=60, cases=str(tmp_path))
    assert work(task).problems == []
    assert list(tmp_path.iterdir()) == []
    with UNLOCKED.planted():
        assert work(task).problems
    saved = [str(path) for path in tmp_path.iterdir()]
    assert [Path(path).name for path in saved] == ["meeting-two_writers.case"]
    assert cases.main(saved) == 0
    assert "holds now" in capsys.readouterr().out
    with UNLOCKED.planted():
        assert cases.main(saved) == 1
    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert "existing: P0:small P1:small [switches: 1 at " in out


def test_a_meeting_shrinks_to_what_shows_it() -> None:
    """Two writers with four operations and a reader come down to one each and nobody else."""
    fresh_image()
    meeting = Meeting((("lives", "small"), ("lives", "small", "tag", "long"), ("reads on",)))
    with UNLOCKED.planted():
        tally = explore_meeting(meeting, preemptions=1, limit=400, problems_max=1)
        violation = next(iter(tally.problems.values()))
        case = shrunk_case(meeting, violation, MEETING_PLAN, preemptions=1)
        assert replay_meeting(case) is not None
    assert case.rule == violation.rule
    assert len(case.meeting.roles) == len(case.operations) == 2
    assert 1 <= len(case.switches) <= 2
    assert len(case.switches) <= sum(map(bool, violation.schedule))
    assert replay_meeting(case) is None


def test_a_schedule_of_other_programs_is_told_and_never_waits() -> None:
    """A later engine has other points: a choice that is no longer there ends the run."""
    case = MeetingCase(
        rule="O2",
        what="made up",
        meeting=MEETINGS["two writers"],
        switches=[(0, 7)],
        plan=MEETING_PLAN,
    )
    found = replay_meeting(case)
    assert found is not None
    assert found.rule == Unfit.__name__


def test_a_schedule_is_found_again_a_few_operations_away() -> None:
    """The engine reads once more, or writes once less: the case is still about the same place."""
    fresh_image()
    case = load_case((FOLDER / "write_without_the_writer_lock.case").read_bytes())
    assert isinstance(case, MeetingCase)
    for by in (-2, -1, 1, 2):
        moved = [(point + by, choice) for point, choice in case.switches]
        with UNLOCKED.planted():
            assert replay_meeting(replace(case, switches=moved)) is not None
