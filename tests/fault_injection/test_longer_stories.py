"""Longer stories than one would think of: Hypothesis draws, the enumerator crashes them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.judging.campaign import Campaign
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.engine_workloads import recover

from ..crash.initial_states import STARTS, start_named
from ..crash.operations import ALPHABET, EXTRA, record
from ..crash.sweeps.bit_rot import ROT_PLAN, RotCampaign

PLAN = Plan(exhaustive=64, samples=8, tears=8, pair_drops=8)
ACTS = st.lists(st.sampled_from([*ALPHABET, *EXTRA]), min_size=3, max_size=8)
SYNCS = st.sampled_from(["commit", "always", 4_096, 1 << 20])


@pytest.mark.slow("the crash gate of each change tries these stories")
@settings(max_examples=12, derandomize=True, deadline=None, database=None)
@given(start=st.sampled_from(sorted(STARTS)), acts=ACTS, sync=SYNCS)
def test_a_drawn_story_survives_each_of_its_crashes(
    start: str, acts: list[str], sync: str | int
) -> None:
    """From any set-up, under any sync policy; what fails is shrunk to the shortest story."""
    monitor = OrderingMonitor(FileGeometry())
    story = record(acts, sync=sync, start=start_named(start), monitor=monitor)
    campaign = Campaign(recover, PLAN, deep_every=97)
    assert [str(failure) for failure in campaign.check(story).failures] == []
    if sync == "commit":
        rot = RotCampaign(recover, ROT_PLAN, every=16)
        assert [str(failure) for failure in rot.check(story).failures] == []
