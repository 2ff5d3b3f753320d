"""The engine on the simulated disk: every legal crash leaves a prefix with all that was told."""

from dataclasses import replace

import pytest
from msgspec import structs

from cerata.engine.events import Draft, PutFrame
from cerata.fault_injection.cases import case_of, decode_case, encode_case
from cerata.fault_injection.judging.campaign import Campaign, Failure, Memory, Story
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.judging.wire_check import expected_payload
from cerata.fault_injection.mutation.canary import SMOKE_PLAN
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.engine_workloads import PATH, model_from, recover

from ..crash.cases import replay_saved
from ..crash.damage import final_image, leavings, rotten, strangers
from ..crash.operations import ALPHABET, STORIES, record, record_creation
from ..crash.second_crash import live_on, read_only


def survives(story: Story) -> int:
    """Recover every crash state for writing and for reading; returns how many there were."""
    writing = Campaign(recover, SMOKE_PLAN, life=live_on, life_every=40, lives_max=3)
    reading = Campaign(read_only, SMOKE_PLAN)
    for campaign in (writing, reading):
        problems = [str(failure) for failure in campaign.check(story).failures]
        assert problems == []
    return writing.tally.states


@pytest.mark.slow("the crash gate of each change tries these stories")
@pytest.mark.parametrize("act", ALPHABET)
def test_a_crash_during_one_operation(act: str) -> None:
    """The smallest workloads first: each operation alone from an empty store."""
    assert survives(record([act], monitor=OrderingMonitor(FileGeometry())))


def test_a_crash_during_creation() -> None:
    """Until the file has its name there is no file; from then on it is whole."""
    assert survives(record_creation(monitor=OrderingMonitor(FileGeometry()))) > 30


UNSYNCED_GROUP = ("small", "long", "small", "small")


@pytest.mark.slow("the crash gate of each change tries these stories")
@pytest.mark.parametrize(
    ("acts", "sync"), [story for story in STORIES if story[0] != UNSYNCED_GROUP], ids=str
)
def test_a_crash_during_a_longer_story(acts: tuple[str, ...], sync: str | int) -> None:
    """Around the ring, over a seal, with unsynced groups, proven commits and a moving clock."""
    assert survives(record(acts, sync=sync, monitor=OrderingMonitor(FileGeometry()))) > 100


def test_a_group_that_lost_its_first_record_is_cut_whole() -> None:
    """What is left of the group must not be found, and cut, at a later open."""
    assert survives(record(UNSYNCED_GROUP, sync=1 << 20)) > 100


def test_what_was_recovered_before_is_judged_by_the_story_at_hand() -> None:
    """A memory of images and epochs saves recoveries, and must never save a judgement."""
    story = record(["small", "long"])
    campaign = Campaign(recover, SMOKE_PLAN, memory=Memory())
    first = campaign.check(story)
    assert first.failures == []
    again = campaign.check(story)
    assert (again.failures, again.states, again.repeated) == ([], 0, first.epochs)
    last = story.model.events[-1]
    other = model_from(
        story.model.log_id, [*story.model.events[:-1], structs.replace(last, salt=bytes(16))]
    )
    assert campaign.check(replace(story, model=other)).failures[0].finding.rule == "O2"
    assert campaign.check(replace(story, acked=2)).failures[0].finding.rule == "O1"


def test_rot_is_refused_with_its_place_or_harmless() -> None:
    """Each used sector zeroed and flipped: never other data, never a silent loss of the proven."""
    assert [found for one in rotten() if (found := one.check())] == []


def test_bytes_that_verify_elsewhere_are_not_believed() -> None:
    """A diverged copy's record, a record at another place, another store's extents."""
    assert [found for one in strangers() if (found := one.check())] == []


def test_records_that_were_cut_never_come_back() -> None:
    """They lie in the ring until they are overwritten; the incarnation tells them apart."""
    assert [found for one in leavings() if (found := one.check())] == []


def test_payload_bytes_are_worked_out_without_the_codec() -> None:
    """The second opinion has to be one: the same value in another order, the same bytes."""
    one = Draft(PutFrame(text="t", metadata={"b": {"d": 1, "c": 2}, "a": [1.5]}))
    other = Draft(PutFrame(text="t", metadata={"a": [1.5], "b": {"c": 2, "d": 1}}))
    assert expected_payload(one, None) == expected_payload(other, None)
    assert expected_payload(one, "k") != expected_payload(one, None)


def test_a_case_of_the_engine_replays() -> None:
    """A saved case holds all that its replay needs, for the engine as for the toy."""
    story = record(["small", "batch"])
    state_of = Campaign(recover, SMOKE_PLAN)
    assert state_of.check(story).failures == []
    image = final_image(story)
    from cerata.fault_injection.crash_states.epochs import epochs
    from cerata.fault_injection.crash_states.states import crash_states

    *_, last = epochs(story.trace, story.node, base=story.base, names={PATH: story.node})
    *_, state = crash_states(last, SMOKE_PLAN)
    case = decode_case(encode_case(case_of(Failure(state, Finding("O1", "made up"), story))))
    assert bytes(case.world().disk.names[PATH].data) == image
    assert replay_saved(case) is None


def test_what_a_reader_syncs_before_it_shows_it_counts() -> None:
    """An unsynced group of a writer's: whoever opens for reading makes it durable first."""
    story = record(("small", "read"), sync=1 << 20, monitor=OrderingMonitor(FileGeometry()))
    assert survives(story) > 40
