"""Agents answer as of each event as a store that stopped there; see `tests.agents.equality`."""

from datetime import datetime
from unittest import mock

import pytest

from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime

from ..inside import log_of
from . import equality


@pytest.mark.parametrize(
    "seed", [3, pytest.param(15, marks=pytest.mark.slow("compares a long life"))]
)
def test_every_read_is_the_same_in_four_ways(seed: int) -> None:
    # The life of seed 15 has a pending name and a meta-pattern.
    states, _ = equality.compare(seed, acts=8)
    assert states >= 6


@pytest.mark.slow("makes five lives in two processes with another hash seed each")
def test_two_processes_with_different_hash_seeds_see_the_same() -> None:
    lines = equality.run_elsewhere(1, 5, acts=5)
    assert lines[0] == lines[1]
    assert lines[0].startswith("1 lives, ")


def test_a_read_that_knows_of_later_events_is_caught() -> None:
    """What had not expired at n expires as soon as something is written after n."""

    def of_the_clock(snapshot: Snapshot) -> datetime:
        later = log_of(snapshot).head.seq > snapshot.basis
        return to_datetime(snapshot.head.recorded + later * 60_000_000)

    with (
        mock.patch.object(Snapshot, "now", property(of_the_clock)),
        pytest.raises(AssertionError, match="native and stopped differ"),
    ):
        equality.compare(3, acts=8)
