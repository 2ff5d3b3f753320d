"""Every test of the suite runs under the ordering monitor, and an ordering bug fails it."""

from pathlib import Path

import pytest

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.open import open_log
from cerata.fault_injection.simulation.write_order_monitor import MonitoredFile, OrderViolation

from .crash.mutants import BY_NAME
from .watching import watched

PLACES = ("a.cera", ":memory:")


def an_ordinary_test(path: str) -> None:
    """What any test of a store does, with nothing in it about order."""
    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=64 << 10)) as store:
        kept = store.put_frame("the first note")
        store.checkpoint()
        store.put_frames([f"note {number}" for number in range(3)])
        store.supersede(kept, "another note")
        store.checkpoint()
        store.put_frame("the last note")
        assert [hit.text for hit in store.search("another")] == ["another note"]


@pytest.mark.parametrize("place", PLACES)
def test_every_log_of_every_test_is_watched(tmp_path: Path, place: str) -> None:
    """This one has asked for nothing."""
    path = place if place == ":memory:" else str(tmp_path / place)
    with open_log(path) as log, open_log("b", environment=Environment.in_memory()) as other:
        assert isinstance(log.file.file, MonitoredFile)
        assert isinstance(other.file.file, MonitoredFile)


@pytest.mark.unwatched("it watches for itself")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        # The next record's witness names the batch, which is noticed first.
        ("acknowledge without a sync", "(acknowledged|witness)"),
        ("sync every second commit", "(acknowledged|witness)"),
        # The flip has written the newest page over itself before.
        ("write the header page before its data is synced", "(pages|two pages)"),
        ("write both header pages in one epoch", "two pages"),
    ],
)
def test_an_ordering_bug_fails_an_ordinary_test(
    tmp_path: Path, place: str, plant: str, rule: str
) -> None:
    """No crash, no simulated disk, no assertion about order: the monitor alone notices."""
    path = place if place == ":memory:" else str(tmp_path / place)
    with watched() as watch, BY_NAME[plant].planted():
        with pytest.raises(OrderViolation, match=f"^{rule}: "):
            an_ordinary_test(path)
        assert watch.violations


@pytest.mark.unwatched("it watches for itself")
@pytest.mark.parametrize("place", PLACES)
def test_the_right_order_fails_nothing(tmp_path: Path, place: str) -> None:
    """The same, with the engine as it is."""
    with watched() as watch:
        an_ordinary_test(place if place == ":memory:" else str(tmp_path / place))
    assert watch.violations == []
    assert watch.writes > 10
