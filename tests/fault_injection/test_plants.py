"""A harness that never failed proves nothing: each planted bug must be noticed."""

import sys
import time

import pytest

from cerata.fault_injection.crash_states.readings import Outcome
from cerata.fault_injection.judging.oracle import Finding, Oracle
from cerata.fault_injection.mutation.canary import CANARY, Blind, canary
from cerata.fault_injection.mutation.mutate import Edit, Plant, PlantOutdated

from ..crash import detection as detectors
from ..crash.detection import detect
from ..crash.mutants import BY_NAME, FROM_LONG_RUNS, PLANTS
from ..crash.report import __main__ as report

SECONDS_MAX = 60.0
"""Of processor time, for all of them: the machine may be busy with other tests."""


@pytest.mark.slow("plants 47 bugs, with stories for each")
def test_every_planted_bug_is_noticed_within_a_minute() -> None:
    """The smoke enumeration, the monitor, the damage, the scheduler or a promise notices it."""
    started = time.process_time()
    baselines: detectors.Baselines = {}
    missed = [plant.name for plant in PLANTS if detect(plant, baselines) is None]
    assert missed == []
    assert time.process_time() - started < SECONDS_MAX


def test_there_are_bugs_of_every_kind() -> None:
    """The specification asks for 25; each kind of detector has some to show for itself."""
    assert len(PLANTS) >= 40
    assert len(BY_NAME) == len(PLANTS) + len(FROM_LONG_RUNS)
    kinds = [plant.detector for plant in PLANTS]
    assert {kind for kind in kinds if kinds.count(kind) >= 3} == set(detectors.PARTS)


def test_the_canary_is_noticed_by_the_oracle() -> None:
    """It is a bug that only a crash state shows: the whole way from there to a finding is tried."""
    assert canary().startswith("O5: ")
    assert CANARY.detector == "stories"


def test_a_blind_harness_is_noticed_by_the_canary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The canary must fail where nothing is judged; else it would be one more silent test."""

    def nods(self: Oracle, opener: object, *, acked: int) -> Outcome:
        return Outcome(acked, self.model.chains[acked])

    monkeypatch.setattr(Oracle, "check_legal", nods)
    with pytest.raises(Blind, match="the canary lives"):
        canary()
    assert report.main(["--share", "--only", "damage", "--jobs", "1", "--quiet"]) == 1
    assert "the canary lives" in capsys.readouterr().out


def test_a_harness_that_always_cries_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says of the engine without the bug is not what it says because of it."""

    def cries(*_: object, **__: object) -> Outcome:
        raise Finding("O5", "always")

    monkeypatch.setattr(Oracle, "check_legal", cries)
    with pytest.raises(Blind):
        canary()
    assert detect(CANARY) is None


def test_a_plant_that_no_longer_fits_is_an_error() -> None:
    """Otherwise a change of the engine would turn the plant into nothing, and the test green."""
    plant = Plant(
        "x", "damage", (Edit("cerata.engine.log_file.ring:walk", "no such text", "pass"),)
    )
    with pytest.raises(PlantOutdated, match="contains 0 times"), plant.planted():
        pass


def test_a_plant_leaves_the_engine_as_it_was() -> None:
    """Plants are undone also in the modules that imported the function by name."""
    recovery = sys.modules["cerata.engine.log_file.recovery"]
    ring = sys.modules["cerata.engine.log_file.ring"]
    before = recovery.walk, ring.walk
    plant = next(
        plant for plant in PLANTS if plant.edits[0].target == "cerata.engine.log_file.ring:walk"
    )
    with plant.planted():
        assert recovery.walk is ring.walk is not before[0]
    assert (recovery.walk, ring.walk) == before
