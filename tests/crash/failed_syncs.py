"""Syncs that fail (model P6): any part of the written data persists, the rest counts as clean.

After a failed sync the system's cache still shows the written data, and the next sync succeeds,
though the disk never got the data. Owns the stories of this fault: an operation's sync fails; the
handle must report that, and then refuse everything at once without touching the disk; it is closed,
or its process dies. The next opener reads from the cache, appends and seals, and every batch that
it then acknowledges must survive a power loss, whichever part the failed sync persisted. Rebello et
al. (USENIX ATC 2020) found that none of five systems gets this right. Owns also the case file of a
violation, which makes the sync fail again: an image would hold what the disk lost for good.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import msgspec

from cerata.engine.errors import CerataError, OutcomeUnknown, StorageFailed
from cerata.fault_injection.crash_states.operations import Sync, Write
from cerata.fault_injection.crash_states.states import Models, Plan
from cerata.fault_injection.judging.campaign import Campaign, Failure, Story
from cerata.fault_injection.judging.model import ModelEvent
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.simulation.simulated_world import World
from cerata.fault_injection.stories.engine_workloads import (
    PATH,
    Session,
    Start,
    append_small,
    model_from,
    recover,
    story_in,
    world_of,
)

from .initial_states import start_named
from .operations import ALPHABET, EXTRA

FAILING_PLAN: Final = Plan(
    models=Models.SECTORS | Models.TORN, exhaustive=64, samples=8, tears=8, pair_drops=4
)
"""Without kills: the story itself reopens the file after the process died."""

KEPT_RANDOM: Final = 3
"""Random parts that a failed sync persisted, beside all, nothing, and each sector alone or missing.
"""


LATER: Final = ("small", "seal")
"""The operations of the next opener: a flip overwrites a page beside one that the disk has in part.
"""


@dataclass(frozen=True, slots=True)
class _Kept:
    sectors: frozenset[int]

    def __call__(self, sector: int) -> bool:
        return sector in self.sectors


def sync_count(acts: Sequence[str], start: Start) -> int:
    """Return how many syncs a story makes without faults, those of opening left out."""
    world, session = _opened(start)
    _run(session, acts)
    return sum(isinstance(operation, Sync) for operation in world.disk.trace)


def failing_stories(
    acts: Sequence[str],
    start: Start,
    number: int,
    *,
    closes: bool,
    kept_max: int = 12,
    later: Sequence[str] = LATER,
) -> Iterator[Story]:
    """Make the sync ``number`` of a story fail, continue, and yield a story per persisted part.

    ``closes``: the handle is closed afterwards; else its process dies. ``later`` are the operations
    of the next opener.

    Raises:
        Finding: the failure was not reported, or the handle accepted a call after it.
    """
    story = _story(acts, start, number, closes=closes, later=later)
    if story is not None:
        for part in _parts(story, kept_max, Random(f"0/{story.name}")):
            yield _keeping(story, part)


def _keeping(story: Story, part: _Kept) -> Story:
    named = f"{story.name}, keeping sectors {sorted(part.sectors)}"
    return replace(story, kept=part, name=named)


def _story(
    acts: Sequence[str], start: Start, number: int, *, closes: bool, later: Sequence[str]
) -> Story | None:
    """Record a story whose sync ``number`` fails; None if the story makes fewer syncs."""
    world, session = _opened(start)
    base = bytes(world.disk.names[PATH].data)
    world.disk.fail_sync = number
    failure: BaseException | None = None
    try:
        _run(session, acts)
    except CerataError as error:
        failure = error
    failed = next(
        (
            operation
            for operation in world.disk.trace
            if isinstance(operation, Sync) and operation.failed
        ),
        None,
    )
    if failed is None:
        return None
    is_ours = (
        failed.process == session.process.name and failed.node == world.disk.names[PATH].number
    )
    if (session.log.is_open and not is_ours) or not session.process.files:
        # The sync of another file or handle, which lost nothing of this handle; or a sync of
        # opening.
        if not isinstance(failure, StorageFailed | OutcomeUnknown):
            raise Finding("O17", f"a sync failed, and the call raised {failure!r}")
    else:
        _check_poisoned(session, failure)
    if closes and session.process.files:
        _check_close(session)
    session.process.kill()
    session.open()
    # The opener may act on the events that it read.
    session.acknowledge(session.log.head.seq)
    _run(session, later)
    trace = tuple(world.disk.trace)
    model = model_from(session.log.log_id, [ModelEvent.of(event) for event in session.log.read()])
    session.process.kill()
    name = f"{' '.join(acts)}, sync {number} fails, {'closed' if closes else 'killed'}"
    return story_in(world, model, name, base=base, acked=start.acked, trace=trace)


def _opened(start: Start) -> tuple[World, Session]:
    world = world_of(start.image)
    session = Session(world, written=[*start.written])
    world.disk.trace.clear()
    return world, session


def _run(session: Session, acts: Sequence[str]) -> None:
    for number, name in enumerate(acts, start=1):
        session.world.disk.step = f"{number}:{name}"
        (ALPHABET | EXTRA)[name](session)


def _check_poisoned(session: Session, failure: BaseException | None) -> None:
    """Check that the failure was reported, and that later calls are refused at once (O14)."""
    if not isinstance(failure, OutcomeUnknown):
        raise Finding("O5", f"a sync of the log failed, and the call raised {failure!r}")
    disk = session.world.disk
    before = disk.operations
    for attempt in (lambda: append_small(session), session.log.seal, session.log.refresh):
        try:
            attempt()
        except CerataError:
            continue
        raise Finding("O1", "a handle accepted a call after its sync had failed")
    session.written.pop()
    if disk.operations != before:
        raise Finding("O14", "a poisoned handle touched the disk before it refused")


def _check_close(session: Session) -> None:
    """Check that closing writes nothing after a failure, and raises no second error."""
    trace = session.world.disk.trace
    before = len(trace)
    sound = session.log.is_open
    try:
        session.log.close()
    except OutcomeUnknown:
        # This handle learns only now that the sync of another handle failed.
        if not sound:
            raise
    if not sound and any(isinstance(operation, Write) for operation in trace[before:]):
        raise Finding("O1", "a handle wrote while it closed, after its sync had failed")


def _parts(story: Story, limit: int, source: Random) -> Iterator[_Kept]:
    """Yield parts that the failed sync persisted: nothing, all, single sectors, random parts."""
    place = next(
        at
        for at, operation in enumerate(story.trace)
        if isinstance(operation, Sync) and operation.failed
    )
    # Sectors of this file alone: another file, such as a backup, has a story for its parts.
    sectors = [
        sector.number for epoch in story.epochs() if epoch.end == place for sector in epoch.sectors
    ]
    whole = frozenset(sectors)
    parts = [whole, frozenset[int]()]
    parts += [whole - {number} for number in sectors]
    parts += [frozenset({number}) for number in sectors]
    parts[2:] = source.sample(parts[2:], min(len(parts) - 2, limit))
    parts += [
        frozenset(number for number in sectors if source.random() < 0.5) for _ in range(KEPT_RANDOM)
    ]
    for part in dict.fromkeys(parts):
        yield _Kept(part)


# --- cases ---------------------------------------------------------------------------------------


class FailedSyncCase(
    msgspec.Struct, frozen=True, kw_only=True, tag="failed sync", tag_field="kind"
):
    """A story whose sync ``number`` fails, which broke a rule.

    ``kept`` are the sectors that the failed sync persisted; ``choices`` describes the crash state.
    """

    version: int = 1
    rule: str
    what: str
    start: str
    operations: list[str]
    number: int
    closes: bool
    later: list[str]
    kept: list[int]
    choices: str


def failed_sync_case(
    failure: Failure,
    acts: Sequence[str],
    start: str,
    number: int,
    *,
    closes: bool,
    later: Sequence[str] = LATER,
) -> FailedSyncCase:
    """Return the case of a failure in a story of `failing_stories`."""
    kept = failure.story.kept
    return FailedSyncCase(
        rule=failure.finding.rule,
        what=failure.finding.what,
        start=start,
        operations=[*acts],
        number=number,
        closes=closes,
        later=[*later],
        kept=sorted(kept.sectors) if isinstance(kept, _Kept) else [],
        choices=failure.state.describe(),
    )


def replay_failed_sync(case: FailedSyncCase) -> Finding | None:
    """Make the sync fail again on the present engine, and return a rule that a crash breaks."""
    start = start_named(case.start)
    try:
        story = _story(case.operations, start, case.number, closes=case.closes, later=case.later)
    except Finding as finding:
        return finding
    if story is None:
        return None
    campaign = Campaign(recover, FAILING_PLAN, failures_max=1)
    failures = campaign.check(_keeping(story, _Kept(frozenset(case.kept)))).failures
    return failures[0].finding if failures else None
