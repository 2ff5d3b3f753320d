"""Longer stories than one would think of: Hypothesis draws, the enumerator crashes them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cerata.fault_injection.afterlife import recover
from cerata.fault_injection.campaign import Campaign
from cerata.fault_injection.geometry import FileGeometry
from cerata.fault_injection.monitor import OrderingMonitor
from cerata.fault_injection.rot import ROT_PLAN, RotCampaign
from cerata.fault_injection.starts import STARTS, start_named
from cerata.fault_injection.states import Plan
from cerata.fault_injection.workloads import ALPHABET, EXTRA, record

PLAN = Plan(exhaustive=64, samples=8, tears=8, pair_drops=8)
ACTS = st.lists(st.sampled_from([*ALPHABET, *EXTRA]), min_size=3, max_size=8)
SYNCS = st.sampled_from(["commit", "always", 4_096, 1 << 20])


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
