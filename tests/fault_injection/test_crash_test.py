"""The crash test of a user's workload: right it passes, broken it is told where."""

from pathlib import Path

import pytest

import cerata
from cerata.engine.errors import InvalidInput
from cerata.fault_injection.cases import decode_case
from cerata.fault_injection.crash_test import CrashReport, crash_test
from cerata.fault_injection.stories.workload import Workload, load_workload, operation

BROKEN = """
from cerata.fault_injection.stories.workload import Workload, operation


class Transfers(Workload):
    @operation
    def transfer(self, store):
        store.put_frame("taken from one", tags=["taken"])
        store.put_frame("given to the other", tags=["given"])

    def check(self, store):
        taken = sum("taken" in frame.tags for frame in store.frames())
        given = sum("given" in frame.tags for frame in store.frames())
        assert taken == given, f"{taken} taken, {given} given"
"""
WHOLE = """
from cerata.fault_injection.stories.workload import Workload, operation


class Transfers(Workload):
    @operation
    def transfer(self, store):
        with store.transaction():
            store.put_frame("taken from one", tags=["taken"])
            store.put_frame("given to the other", tags=["given"])

    def check(self, store):
        assert len(list(store.frames())) % 2 == 0
"""


def written(folder: Path, source: str) -> str:
    path = folder / "workload.py"
    path.write_text(source)
    return str(path)


def test_what_must_stand_together_and_does_not_is_found(tmp_path: Path) -> None:
    """Two batches where one was meant: a crash between them is all it takes."""
    report = crash_test(written(tmp_path, BROKEN), jobs=1, stories_max=4, cases=tmp_path)
    found = [one for one in report.violations if one.rule == "check"]
    assert found
    assert found[0].what == "1 taken, 0 given"
    assert "transfer" in found[0].operations
    case = decode_case(Path(found[0].case or "").read_bytes())
    assert case.what == found[0].what
    assert report.to_dict()["violations"] == len(report.violations)


def test_in_one_transaction_it_holds(tmp_path: Path) -> None:
    """Same operation, one batch: no state breaks it. The counts are those of any other run."""
    path = written(tmp_path, WHOLE)
    told: list[int] = []

    def progress(report: CrashReport) -> None:
        told.append(report.stories)

    report = crash_test(path, jobs=1, stories_max=8, progress=progress)
    assert report.violations == []
    assert report.states > 200
    assert report.questioned > 2
    assert told == list(range(1, 9))
    again = crash_test(path, jobs=1, stories_max=8)
    assert (again.states, again.distinct) == (report.states, report.distinct)


class Raises(Workload):
    """Its operation fails: that is told, not raised."""

    @operation
    def fail(self, store: cerata.Store) -> None:
        store.delete(99)


def test_an_operation_that_raises_is_a_violation() -> None:
    """A workload that does not run shows nothing; silence would look like success."""
    report = crash_test(Raises, jobs=1, stories_max=4)
    assert {one.rule for one in report.violations} == {"story"}
    assert "NotFound" in report.violations[0].what


def test_a_file_without_a_workload_is_refused(tmp_path: Path) -> None:
    """What is wrong, where, what to do."""
    with pytest.raises(InvalidInput, match="0 workloads"):
        load_workload(written(tmp_path, "x = 1\n"))
    with pytest.raises(InvalidInput, match="SyntaxError"):
        load_workload(written(tmp_path, "x = \n"))


def test_two_processes_share_the_stories() -> None:
    """Each has its share from the start, so the states tried are the same at every run."""
    reports = [crash_test(Raises, jobs=2, stories_max=4) for _ in range(2)]
    assert [report.stories for report in reports] == [4, 4]
    assert reports[0].states == reports[1].states
