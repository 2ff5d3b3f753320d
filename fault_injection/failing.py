"""Syncs that fail (model P6): any part of what was written is kept, the rest counts as clean.

After a failed sync the system's cache still shows what was written, and the next sync says that all
is well, though the disk never got it. Owns the stories of it: an operation's sync fails; the handle
must say so, and then refuse everything at once without touching the disk; it is closed, or its
process dies. The next opener finds what the cache shows, and whatever it goes on to acknowledge
must survive a power loss, whatever part the failed sync kept. Rebello et al. (USENIX ATC 2020)
found that none of five systems gets this right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from cerata.engine.errors import CerataError, OutcomeUnknown, StorageFailed

from .campaign import Story
from .epochs import epochs
from .model import ModelEvent
from .monitor import OrderingMonitor
from .operations import Sync, Write
from .oracle import Finding
from .states import Models, Plan
from .workloads import (
    ALPHABET,
    EXTRA,
    PATH,
    Session,
    Start,
    append_small,
    model_from,
)
from .world import World

FAILING_PLAN: Final = Plan(
    models=Models.SECTORS | Models.TORN, exhaustive=64, samples=8, tears=8, pair_drops=4
)
"""Without kills: what a process leaves that dies later is what the next one opens here."""

KEPT_RANDOM: Final = 3
"""Random parts that a failed sync kept, beside all, nothing, and each sector alone or missing."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a failed sync kept: some sectors of those that were written."""

    sectors: frozenset[int]

    def __call__(self, sector: int) -> bool:
        return sector in self.sectors


def sync_count(acts: Sequence[str], start: Start) -> int:
    """Return how many syncs a story makes while nothing fails, those of opening left out."""
    world, session = _opened(start, None)
    _run(session, acts)
    return sum(isinstance(one, Sync) for one in world.disk.trace)


def failing_stories(
    acts: Sequence[str],
    start: Start,
    number: int,
    *,
    closes: bool,
    monitor: OrderingMonitor | None = None,
    kept_max: int = 12,
    seed: int = 0,
) -> Iterator[Story]:
    """Let the sync ``number`` of a story fail, go on, and yield a story for each part it kept.

    ``closes``: the handle is closed afterwards; else its process dies.

    Raises:
        Finding: the failure was not told, or the handle went on after it.
    """
    world, session = _opened(start, monitor)
    base = bytes(world.disk.names[PATH].data)
    world.disk.fail_sync = number
    failure: BaseException | None = None
    try:
        _run(session, acts)
    except CerataError as error:
        failure = error
    failed = next((one for one in world.disk.trace if isinstance(one, Sync) and one.failed), None)
    if failed is None:
        return
    own = failed.process == session.process.name and failed.node == world.disk.names[PATH].number
    if (session.log.is_open and not own) or not session.process.files:
        # Of another file or handle, which lost nothing of this one's; or while it was opened.
        if not isinstance(failure, StorageFailed | OutcomeUnknown):
            raise Finding("O17", f"a sync failed, and what was said is {failure!r}")
    else:
        _check_poisoned(session, failure)
    if closes and session.process.files:
        _check_close(session)
    session.process.kill()
    session.monitor = None
    session.open()
    # Who opened it may act on what it was shown.
    session.acknowledge(session.log.head.seq)
    append_small(session)
    trace = tuple(world.disk.trace)
    model = model_from(session.log.log_id, [ModelEvent.of(event) for event in session.log.read()])
    session.process.kill()
    story = Story(
        trace=trace,
        node=world.disk.names[PATH].number,
        path=PATH,
        model=model,
        name=f"{' '.join(acts)}, sync {number} fails, {'closed' if closes else 'killed'}",
        existing=True,
        base=base,
        acked=start.acked,
    )
    for kept in _parts(story, kept_max, Random(f"{seed}/{story.name}")):
        named = f"{story.name}, keeping sectors {sorted(kept.sectors)}"
        yield replace(story, kept=kept, name=named)


def _opened(start: Start, monitor: OrderingMonitor | None) -> tuple[World, Session]:
    world = World()
    world.disk.put(PATH, start.image)
    session = Session(world, monitor, "commit", [*start.written])
    world.disk.trace.clear()
    return world, session


def _run(session: Session, acts: Sequence[str]) -> None:
    for number, name in enumerate(acts, start=1):
        session.world.disk.step = f"{number}:{name}"
        (ALPHABET | EXTRA)[name](session)


def _check_poisoned(session: Session, failure: BaseException | None) -> None:
    """The failure was told as what it is, and whatever is asked now is refused at once (O14)."""
    if not isinstance(failure, OutcomeUnknown):
        raise Finding("O5", f"a sync of the log failed, and what was said is {failure!r}")
    disk = session.world.disk
    before = disk.operations
    for attempt in (lambda: append_small(session), session.log.seal, session.log.refresh):
        try:
            attempt()
        except CerataError:
            continue
        raise Finding("O1", "a handle went on after its sync had failed")
    session.written.pop()
    if disk.operations != before:
        raise Finding("O14", "a poisoned handle touched the disk before it refused")


def _check_close(session: Session) -> None:
    """Closing writes nothing after a failure, and raises no second error."""
    trace = session.world.disk.trace
    before, sound = len(trace), session.log.is_open
    try:
        session.log.close()
    except OutcomeUnknown:
        # It hears only now that another's sync failed.
        if not sound:
            raise
    if not sound and any(isinstance(one, Write) for one in trace[before:]):
        raise Finding("O1", "a handle wrote while it closed, after its sync had failed")


def _parts(story: Story, limit: int, source: Random) -> Iterator[_Kept]:
    """Yield parts of what the failed sync was to keep: nothing, all, one, all but one, some."""
    place = next(at for at, one in enumerate(story.trace) if isinstance(one, Sync) and one.failed)
    # A backup's file, say: what of it was kept, its own story tells.
    sectors = [
        sector.number
        for epoch in epochs(story.trace, story.node, base=story.base)
        if epoch.end == place
        for sector in epoch.sectors
    ]
    every = frozenset(sectors)
    parts = [every, frozenset[int]()]
    parts += [every - {number} for number in sectors]
    parts += [frozenset({number}) for number in sectors]
    parts[2:] = source.sample(parts[2:], min(len(parts) - 2, limit))
    parts += [
        frozenset(number for number in sectors if source.random() < 0.5) for _ in range(KEPT_RANDOM)
    ]
    for part in dict.fromkeys(parts):
        yield _Kept(part)
