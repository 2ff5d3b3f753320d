"""A share of the real kills and meetings; all of them by the commands in docs/reliability.md."""

import sys

import pytest

from cerata.engine.errors import Corrupt
from cerata.fault_injection.mutation.mutate import Edit, Plant

from ..crash.mutants import BY_NAME
from ..crash.sweeps import two_writers as rounds
from ..crash.sweeps.kills import kill
from ..crash.sweeps.two_writers import meet

pytestmark = [
    pytest.mark.unwatched("its writers are other processes"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_killed_writers_lose_nothing(seed: int) -> None:
    """At random instants of append, seal, checkpoint, close and open."""
    tally = kill(60, seed=seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.kills == 60
    assert tally.acknowledged >= tally.awaited / 2 > 60


def test_a_writer_that_acknowledges_too_early_is_caught(seed: int) -> None:
    """That a record is written before it is acknowledged: here it is not."""
    with BY_NAME["acknowledge before the record is written"].planted():
        assert kill(100, seed=seed).problems != []


def test_writers_and_their_children_meet_in_peace() -> None:
    """No double writer, no lost lock, nobody's batch missing."""
    tally = meet(15)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert tally.batches == 15 * 14


def test_a_file_that_cannot_be_read_after_a_round_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two that write by one handle may leave one: the search died of it instead of telling."""

    def damaged(_: object) -> list[object]:
        raise Corrupt("Events were lost")

    monkeypatch.setattr(rounds, "batches_of", damaged)
    assert meet(3).problems == [
        (
            "round 1: the file cannot be read afterwards: Events were lost. "
            "Copy the file, and run 'cerata file doctor' on it."
        )
    ]


def test_a_child_that_keeps_its_parents_handle_is_caught() -> None:
    """A fork closes what it inherits; here it does not."""
    off = Edit("cerata.engine.log:Log.abandon", "self._lock.abandon()", "pass")
    with Plant("a child keeps the handle", "schedules", (off,)).planted():
        assert meet(3).problems != []
