"""A harness that never failed proves nothing: each planted bug must be noticed."""

import sys

import pytest

from cerata.fault_injection.detectors import detect
from cerata.fault_injection.plants import PLANTS, Edit, Plant, PlantOutdated


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_noticed(plant: Plant) -> None:
    """The smoke enumeration, the monitor, the damage or the scheduler notices it."""
    assert detect(plant) is not None


def test_a_plant_that_no_longer_fits_is_an_error() -> None:
    """Otherwise a change of the engine would turn the plant into nothing, and the test green."""
    plant = Plant("x", "damage", (Edit("cerata.engine.ring:walk", "no such text", "pass"),))
    with pytest.raises(PlantOutdated, match="contains 0 times"), plant.planted():
        pass


def test_a_plant_leaves_the_engine_as_it_was() -> None:
    """Plants are undone also in the modules that imported the function by name."""
    recovery = sys.modules["cerata.engine.recovery"]
    ring = sys.modules["cerata.engine.ring"]
    before = recovery.walk, ring.walk
    plant = next(plant for plant in PLANTS if plant.edits[0].target == "cerata.engine.ring:walk")
    with plant.planted():
        assert recovery.walk is ring.walk is not before[0]
    assert (recovery.walk, ring.walk) == before
