"""The report: its scales, its counts, and what it says where something breaks."""

import json
from dataclasses import replace

import pytest

from cerata.fault_injection.stories.engine_workloads import fresh_image

from ..crash.initial_states import STARTS
from ..crash.mutants import BY_NAME
from ..crash.operations import ALPHABET
from ..crash.report import __main__ as report
from ..crash.report.budgets import (
    CHANGE,
    GATE,
    SHARE,
    SOAK,
    Scale,
    having_one_of,
    tasks,
)
from ..crash.report.tasks import PARTS, Result, work


def stories(scale: Scale) -> set[tuple[str, tuple[str, ...]]]:
    """Return the stories of the log that a scale runs, with their set-ups."""
    return {
        (task.start, acts)
        for task in tasks(scale)
        if task.part == "log"
        for acts, _ in task.stories
    }


def test_a_change_runs_each_operation_from_each_set_up() -> None:
    """The pairs are a sample, and every part of the gate is there."""
    short = stories(CHANGE)
    assert short >= {(start, (act,)) for start in STARTS for act in ALPHABET}
    assert sum(len(acts) == 2 for _, acts in short) > 100
    assert {task.part for task in tasks(CHANGE)} == set(PARTS)


def test_the_gate_is_what_is_claimed_of_it() -> None:
    """All sequences of two operations, from eight set-ups; three are whole in the soak."""
    gate = list(tasks(GATE))
    for start in STARTS:
        pairs = {acts for name, acts in stories(GATE) if name == start and len(acts) == 2}
        assert len(pairs) == len(ALPHABET) ** 2
    assert {task.part for task in gate} == set(PARTS)
    assert len(STARTS) >= 5
    whole = {len(acts) for task in tasks(SOAK) for acts, _ in task.stories}
    assert whole >= {1, 2, 3}
    deep = [task for task in tasks(SOAK) if task.deep_every == 1]
    assert {len(acts) for task in deep for acts, _ in task.stories} == {1, 2}
    assert {task.start for task in deep} == set(STARTS)


@pytest.mark.slow("the crash gate of each change tries these stories")
def test_a_share_of_everything_holds() -> None:
    """A few parts once, in this process; the same counts at every run."""
    for part in ("judged", "lying", "rot", "failing", "store"):
        found, again = (report.run(SHARE, only=part) for _ in range(2))
        assert found.problems == []
        assert found.states == again.states > 0
        told = json.loads(json.dumps(found.to_dict()))
        assert told["violations"] == 0
        assert told["parts"][part]["states"] == found.states


def test_a_crash_in_recovery_is_tried_and_told() -> None:
    """Depth two is part of the states; a recovery that is not stable is found by it."""
    fresh_image()
    task = next(task for task in tasks(SHARE) if task.part == "log" and task.start == "empty")
    task = replace(task, deep_every=1)
    sound = work(task)
    assert sound.problems == []
    assert sound.tally.deep > 0
    assert sound.tally.deep_states > sound.tally.deep
    # Appending alone never turns a page: only recovery does, and only a crash in it shows this.
    with BY_NAME["write the header page before its data is synced"].planted():
        shallow: Result = work(replace(task, run=1, deep_every=0, lives_max=0))
        deep: Result = work(replace(task, run=2))
    assert shallow.problems == []
    assert "in recovery" in deep.problems[0]


def test_too_few_states_fail(capsys: pytest.CaptureFixture[str]) -> None:
    """A count that fell silently would be a campaign that stopped looking."""
    assert report.main(["--share", "--only", "damage", "--jobs", "1", "--quiet"]) == 0
    arguments = ["--share", "--only", "damage", "--jobs", "1", "--quiet", "--states", "1"]
    assert report.main(arguments) == 1
    assert "fewer than 1" in capsys.readouterr().out


def test_stories_with_some_operations_are_chosen() -> None:
    """Every story left has one of them, none is lost, and a meeting counts whole."""
    chosen = {"compact", "prune"}
    left = list(filter(None, (having_one_of(task, chosen) for task in tasks(GATE))))
    assert {task.part for task in left} == {"log", "judged", "lying", "rot", "failing"} | {
        "meeting"
    }
    stories = [acts for task in left for acts, _ in task.stories]
    assert all(chosen & {*acts} for acts in stories)
    whole = [acts for task in tasks(GATE) for acts, _ in task.stories if chosen & {*acts}]
    assert len(stories) == len(whole)
    meetings = {task.start for task in left if task.part == "meeting"}
    assert "a compactor and a follower" in meetings
    assert "two writers" not in meetings
