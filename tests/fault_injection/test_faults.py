"""Disks that lie, rot and fail: a prefix, or an error with its place; and the harness notices."""

from collections import Counter
from random import Random

import pytest

from cerata.engine.log import Log
from cerata.fault_injection.crash_states.epochs import epochs
from cerata.fault_injection.crash_states.operations import SECTOR, Sync
from cerata.fault_injection.judging.campaign import Campaign, Memory
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.simulation.disk import SimulatedDisk, SimulatedProcess
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.stories.engine_workloads import fresh_image, recover

from ..crash.failed_syncs import FAILING_PLAN, failing_stories, sync_count
from ..crash.initial_states import start_named
from ..crash.mutants import BY_NAME
from ..crash.operations import record
from ..crash.sweeps.bit_rot import KINDS, RotCampaign, inflict
from ..crash.sweeps.lying_syncs import LyingCampaign

ACTS = ("long", "seal", "batch")


def told(campaign: LyingCampaign | RotCampaign) -> list[str]:
    return [str(failure) for failure in campaign.tally.failures]


# --- syncs that lie ------------------------------------------------------------------------------


def test_a_lying_sync_leaves_a_prefix_or_a_refusal() -> None:
    """Never a hole, never garbage; without the lie both images would be impossible."""
    campaign = LyingCampaign(recover)
    campaign.check(record(ACTS, start=start_named("at the ring's end")))
    assert told(campaign) == []
    assert campaign.tally.states > 200
    assert campaign.tally.refused > 20
    assert campaign.tally.refused < campaign.tally.distinct


def test_who_believes_unchecked_bytes_is_caught_by_a_lie() -> None:
    """A segment's bytes that never came, and a check that was left out."""
    fresh_image()
    with BY_NAME["believe a record's body unchecked"].planted():
        campaign = LyingCampaign(recover, failures_max=1)
        campaign.check(record(ACTS))
    assert told(campaign)


# --- rot -----------------------------------------------------------------------------------------


def test_each_kind_of_fault_changes_what_it_says() -> None:
    """The faults are there: each changes its sectors and no other byte."""
    clean = fresh_image()[: 64 * SECTOR] + bytes(range(256)) * 8
    older = bytes(64 * SECTOR) + clean[64 * SECTOR :]
    for kind in KINDS[:6]:
        image = bytearray(clean)
        fault = inflict(image, older, kind, Random(1))
        assert fault is not None
        changed = {place // SECTOR for place in range(len(image)) if image[place] != clean[place]}
        assert changed == set(fault.sectors)


def test_rot_on_top_of_a_crash_is_served_whole_or_refused() -> None:
    """Every kind was met; where nobody met one, nothing was said."""
    campaign = RotCampaign(recover, every=1)
    for start in ("empty", "checkpointed", "at the ring's end"):
        campaign.check(record(ACTS, start=start_named(start)))
    assert told(campaign) == []
    assert min(campaign.met.values()) > 5
    assert campaign.tally.refused > 50


def test_rot_that_nobody_checks_is_caught() -> None:
    """With a record's body believed unchecked a flipped bit is another event."""
    fresh_image()
    with BY_NAME["believe a record's body unchecked"].planted():
        campaign = RotCampaign(recover, every=1, failures_max=1)
        campaign.check(record(ACTS))
    assert told(campaign)


def test_an_error_that_nothing_injected_is_caught() -> None:
    """O17: who refuses a sound file, or one whose damage nobody read, raises a false alarm."""
    opened = Counter[str]()

    def nervous(world: World, process: SimulatedProcess, path: str) -> Log:
        opened[path] += 1
        if opened[path] % 3 == 0:
            from cerata.engine.errors import Corrupt

            raise Corrupt("A bad feeling", offset=0)
        return recover(world, process, path)

    campaign = RotCampaign(nervous, every=1, failures_max=1)
    campaign.check(record(ACTS))
    assert any(failure.finding.rule in ("O4", "O17") for failure in campaign.tally.failures)


# --- syncs that fail -----------------------------------------------------------------------------


def test_what_a_failed_sync_did_not_keep_stays_lost_until_it_is_written_again() -> None:
    """The model itself: the cache shows it, the next sync is content, the disk never had it."""
    disk = SimulatedDisk()
    disk.put("a", bytes(2 * SECTOR))
    file = disk.process().open("a", mode="rw")
    file.write_at(0, b"\1" * 2 * SECTOR)
    disk.fail_sync = 1
    with pytest.raises(OSError, match="Cannot sync"):
        file.sync()
    file.write_at(SECTOR, b"\2" * SECTOR)
    file.sync()
    assert file.read_at(0, 1) == b"\1"
    *_, last = epochs(disk.trace, 1, base=bytes(2 * SECTOR), names={"a": 1})
    assert last.base == bytes(SECTOR) + b"\2" * SECTOR
    *_, kept = epochs(disk.trace, 1, base=bytes(2 * SECTOR), names={"a": 1}, kept=lambda _: True)
    assert kept.base == b"\1" * SECTOR + b"\2" * SECTOR


def test_a_failed_sync_is_told_to_every_file_that_was_open() -> None:
    """Once each, as Linux does; who opens later hears nothing."""
    disk = SimulatedDisk()
    disk.put("a", bytes(SECTOR))
    first, second = (disk.process().open("a", mode="rw") for _ in range(2))
    disk.fail_sync = 1
    for file in (first, second):
        with pytest.raises(OSError, match="Cannot sync"):
            file.sync()
        file.sync()
    disk.process().open("a", mode="rw").sync()
    assert [one.failed for one in disk.trace if isinstance(one, Sync)] == [True] + [False] * 3


@pytest.mark.parametrize("start", ["empty", "checkpointed", "at the ring's end"])
@pytest.mark.parametrize("act", ["small", "large", "checkpoint", "supersede"])
def test_after_a_failed_sync_nothing_is_acknowledged_that_is_not_there(
    start: str, act: str
) -> None:
    """Each sync of an operation fails in turn; what was kept of it is any part."""
    campaign = Campaign(recover, FAILING_PLAN, memory=Memory())
    stories = 0
    for number in range(1, sync_count([act], start_named(start)) + 1):
        for closes in (False, True):
            for story in failing_stories([act], start_named(start), number, closes=closes):
                stories += 1
                assert [str(one) for one in campaign.check(story).failures] == []
    assert stories >= 4
    assert campaign.tally.states > 10


def test_a_footer_is_not_adopted_from_the_cache_alone() -> None:
    """A seal's first sync fails, and the next opener finishes the flip from what it sees.

    It named a segment that the disk never had, and a power loss then took acknowledged events.
    """
    campaign = Campaign(recover, FAILING_PLAN)
    start = start_named("sealed and deleted")
    stories = failing_stories(["tag", "seal"], start, 2, closes=False, kept_max=40)
    for story in stories:
        assert [str(one) for one in campaign.check(story).failures] == []
    assert campaign.tally.states > 100


def test_a_mark_is_not_trusted_from_the_cache_alone() -> None:
    """Closing writes a mark, and its sync fails: no event is in doubt, but the mark is not there.

    What was appended behind it, and acknowledged, connected to nothing after a power loss.
    """
    campaign = Campaign(recover, FAILING_PLAN)
    for acts, number in ((["batch", "reopen"], 2), (["quarter", "quarter", "reopen"], 3)):
        for start in ("empty", "at the ring's end"):
            for story in failing_stories(acts, start_named(start), number, closes=True):
                assert [str(one) for one in campaign.check(story).failures] == []
    assert campaign.tally.states > 100


@pytest.mark.parametrize(
    ("acts", "later"),
    [(["compact"], ("small",)), (["compact"], ("compact",)), (["small", "seal"], ("compact",))],
    ids=["settled", "moved", "flipped, then moved"],
)
def test_a_page_is_not_trusted_from_the_cache_alone(
    acts: list[str], later: tuple[str, ...]
) -> None:
    """The sync of a header page fails, and the next opener writes the other page.

    A power loss then left two torn pages, and no file: after a compactor's page, and after an
    ordinary flip. Each sync of the operations fails in turn.
    """
    campaign = Campaign(recover, FAILING_PLAN, memory=Memory())
    start = start_named("empty")
    for number in range(1, sync_count(acts, start) + 1):
        for story in failing_stories(acts, start, number, closes=False, later=later):
            assert [str(one) for one in campaign.check(story).failures] == []
    assert campaign.tally.states > 150


@pytest.mark.parametrize("act", ["seal", "checkpoint", "grow"])
def test_a_second_flip_after_a_failed_page_sync_loses_nothing(act: str) -> None:
    """As above, with a flip as the next write; each kind of flip begins and continues."""
    campaign = Campaign(recover, FAILING_PLAN, memory=Memory())
    start = start_named("checkpointed")
    for number in range(1, sync_count(["small", act], start) + 1):
        for story in failing_stories(
            ["small", act], start, number, closes=False, later=("small", act)
        ):
            assert [str(one) for one in campaign.check(story).failures] == []
    assert campaign.tally.states > 300


def test_who_trusts_a_later_sync_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery that does not write anew what it recovered unproven, but syncs and goes on."""
    from cerata.engine.log_file.recovery import RecoveredState
    from cerata.engine.log_file.writer import Writer

    start = start_named("empty")
    settle = Writer.settle

    def trusting(self: Writer, recovered: RecoveredState, *, alone: bool) -> None:
        import msgspec

        position = self._state  # pyright: ignore[reportPrivateUsage]
        position.log_file.file.sync()
        head = recovered.head_seq
        settle(self, msgspec.structs.replace(recovered, proven=head, behind=(0, 1)), alone=alone)

    monkeypatch.setattr(Writer, "settle", trusting)
    campaign = Campaign(recover, FAILING_PLAN, failures_max=1)
    rules: set[str] = set()
    for story in failing_stories(["small"], start, 1, closes=False):
        rules |= {failure.finding.rule for failure in campaign.check(story).failures}
    # It says in the witnesses what it trusts: so the loss is no longer silent, but Corrupt.
    assert "O5" in rules


def test_a_handle_that_goes_on_after_a_failed_sync_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The poison is what the next call meets."""
    from cerata.engine.errors import StorageFailed
    from cerata.engine.handle import Poison

    def forgive(_poison: Poison, failure: StorageFailed) -> StorageFailed:
        return failure

    monkeypatch.setattr(Poison, "take", forgive)
    with pytest.raises(Finding):
        list(failing_stories(["small"], start_named("empty"), 1, closes=False))
