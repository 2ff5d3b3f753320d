"""Which processes meet on one store, and every schedule of each meeting with its crash states.

Owns the meetings, and exploring them, on as many cores as there are. ``OPERATIONS`` are all
meetings of three operations: one of each of two writers, from the alphabet of `workloads`, and a
reader's, from stores that are open already, which makes them few enough to run every schedule
with two preemptions. ``LIVES`` are whole lives of processes, from opening to closing, of which
one may die.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement
from multiprocessing import get_context
from typing import Final

import msgspec
from blake3 import blake3

from .afterlife import recover
from .campaign import Campaign, Memory, Story, Tally
from .operations import Lock
from .processes import (
    EmptyWorld,
    OpenWorld,
    SharedWorld,
    check_told,
    does,
    lives,
    look,
    open_and_look,
    read_on,
    story_of,
)
from .schedule import Program, Run, explore
from .states import Plan
from .workloads import fresh_image

MEETING_PLAN: Final = Plan(exhaustive=64, samples=8, tears=16, pair_drops=8)
"""For a share of the schedules; the plan of the full report tries more of every epoch."""

ACTS: Final = ("small", "long", "batch", "large", "seal", "checkpoint", "reopen")
"""What one writer does while the other does the same or another of these."""

READERS: Final[dict[str, Program]] = {"look": look, "open": open_and_look}


@dataclass(frozen=True, slots=True)
class Meeting:
    """Programs that meet in a world; ``kill`` is the one that may also die at any of its points."""

    programs: tuple[Program, ...]
    world: type[SharedWorld]
    kill: int | None = None


OPERATIONS: Final = {
    f"{first} and {second}, {name}": Meeting((does(first), does(second), reads), OpenWorld)
    for first, second in combinations_with_replacement(ACTS, 2)
    for name, reads in READERS.items()
}

LIVES: Final = {
    "two writers": Meeting((lives("small"),) * 2, SharedWorld),
    "a writer and a reader": Meeting((lives("small"), read_on), SharedWorld),
    "two writers and a reader": Meeting((*(lives("small"),) * 2, read_on), SharedWorld),
    "a sealer and a reader": Meeting((lives("small", "seal"), read_on), SharedWorld),
    "a large writer and a sealer": Meeting((lives("large"), lives("small", "seal")), SharedWorld),
    "a writer that may die and a sealer": Meeting(
        (lives("small"), lives("small", "seal")), SharedWorld, kill=0
    ),
    "a large writer that may die and a writer": Meeting(
        (lives("large"), lives("small")), SharedWorld, kill=0
    ),
    "two creators of which one may die": Meeting((lives("small"),) * 2, EmptyWorld, kill=0),
}

MEETINGS: Final = OPERATIONS | LIVES


@dataclass(slots=True)
class ScheduleTally:
    """What an exploration did. ``problems`` are messages, each with a schedule that shows it.

    ``traces`` counts the runs that differ in what reached the disk, when it was synced, or what
    was acknowledged; each one's crash states are tried once.
    """

    runs: int = 0
    points: int = 0
    traces: int = 0
    seconds: float = 0.0
    """Processor time."""
    crash: Tally = field(default_factory=Tally)
    problems: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def add(self, other: "ScheduleTally") -> None:
        self.runs += other.runs
        self.points += other.points
        self.traces += other.traces
        self.seconds += other.seconds
        self.crash.add(other.crash)
        self.problems.update(other.problems)


def explore_meeting(
    meeting: Meeting,
    *,
    preemptions: int,
    limit: int | None = None,
    plan: Plan = MEETING_PLAN,
    problems_max: int = 3,
) -> ScheduleTally:
    """Run every schedule (or the first ``limit``), check what it left, and crash its trace."""
    # Every world starts from the same bytes, made outside any schedule.
    fresh_image()
    tally = ScheduleTally()
    campaign = Campaign(recover, plan, failures_max=1, memory=Memory())
    stories: dict[bytes, Story] = {}
    started = time.process_time()
    for run in explore(
        meeting.world,
        meeting.programs,
        preemptions=preemptions,
        kill=meeting.kill,
        limit=limit,
    ):
        tally.runs += 1
        tally.points += len(run.points)
        try:
            run.check()
            trace = _trace_digest(run)
            story = stories.get(trace)
            if story is None:
                story = stories[trace] = story_of(run)
                for failure in campaign.check(story).failures:
                    tally.problems.setdefault(str(failure.finding), run.schedule)
            check_told(run, story.model)
        except Exception as error:  # noqa: BLE001 - told, whatever it is
            tally.problems.setdefault(f"{type(error).__name__}: {error}", run.schedule)
        if len(tally.problems) >= problems_max:
            break
    tally.traces = len(stories)
    tally.crash = campaign.tally
    tally.seconds = time.process_time() - started
    return tally


def _trace_digest(run: Run) -> bytes:
    """Return a digest of everything that the crash states of a run depend on."""
    trace = [one for one in run.world.disk.trace if not isinstance(one, Lock)]
    return blake3(msgspec.msgpack.encode(trace)).digest()


def explore_all(
    names: Sequence[str] = tuple(MEETINGS),
    *,
    preemptions: int,
    limit: int | None = None,
    plan: Plan = MEETING_PLAN,
    jobs: int = 1,
) -> Iterator[tuple[str, ScheduleTally]]:
    """Explore meetings by name, ``jobs`` of them at a time, and yield each one's tally in order."""
    explore_one = partial(_explore_by_name, preemptions=preemptions, limit=limit, plan=plan)
    if jobs == 1:
        yield from zip(names, map(explore_one, names), strict=True)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from zip(names, pool.map(explore_one, names), strict=True)


def _explore_by_name(
    name: str, *, preemptions: int, limit: int | None, plan: Plan
) -> ScheduleTally:
    return explore_meeting(MEETINGS[name], preemptions=preemptions, limit=limit, plan=plan)
