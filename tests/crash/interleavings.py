"""The processes that meet on one store, and every schedule of each meeting with its crash states.

Owns the meetings, and their exploration. ``OPERATIONS`` are all meetings of three operations: one
of each of two writers, from the alphabet of `operations`, and a reader's, on stores that are
open already, so that they are few enough to run every schedule with two preemptions.
``LIVES`` are whole lives of processes, from opening to closing; in some of them a process may die.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Final, TypeAlias

import msgspec
from blake3 import blake3

from cerata.fault_injection.crash_states.operations import Lock
from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.judging.campaign import Campaign, Memory, Story, Tally
from cerata.fault_injection.judging.oracle import Finding
from cerata.fault_injection.judging.tally import Counts
from cerata.fault_injection.stories.engine_workloads import fresh_image, recover

from .processes import WORLDS, SharedWorld, check_told, program_of, story_of
from .schedule import Program, Run, explore

MEETING_PLAN: Final = Plan(exhaustive=64, samples=8, tears=16, pair_drops=8)
"""For a share of the schedules; the plan of the full report tries more of every epoch."""

ACTS: Final = ("small", "long", "batch", "large", "seal", "checkpoint", "compact", "reopen")
"""The operations of one writer while the other does the same or another of these."""

Role: TypeAlias = tuple[str, ...]
"""The operations of a process, in the form that `program_of` reads."""


class Meeting(msgspec.Struct, frozen=True):
    """Processes that meet in a world; ``kill`` is the process that may also die at any point.

    Plain values, so a case file can hold them: the names of the world and of each process's
    operations.
    """

    roles: tuple[Role, ...]
    world: str = "existing"
    kill: int | None = None

    def programs(self) -> list[Program]:
        """Return the programs of the processes."""
        return [program_of(role) for role in self.roles]

    def begin(self) -> SharedWorld:
        """Return a new world for one run."""
        return WORLDS[self.world]()


_SMALL: Final = ("lives", "small")
_SEALER: Final = ("lives", "small", "seal")
_GROWER: Final = ("lives", "small", "grow")
_COMPACTOR: Final = ("lives", "small", "compact")
_LARGE: Final = ("lives", "large")
_READER: Final = ("reads on",)
_FOLLOWER: Final = ("follows",)

OPERATIONS: Final = {
    f"{first} and {second}, {name}": Meeting((("does", first), ("does", second), reads), "open")
    for first, second in combinations_with_replacement(ACTS, 2)
    for name, reads in (("look", ("looks",)), ("open", ("opens",)))
}

LIVES: Final = {
    "two writers": Meeting((_SMALL, _SMALL)),
    "a writer and a reader": Meeting((_SMALL, _READER)),
    "two creators of which one may die": Meeting((_SMALL, _SMALL), "empty", kill=0),
    "a large writer and a sealer": Meeting((_LARGE, _SEALER)),
    "a sealer and a reader": Meeting((_SEALER, _READER)),
    "a writer that may die and a sealer": Meeting((_SMALL, _SEALER), kill=0),
    "a large writer that may die and a writer": Meeting((_LARGE, _SMALL), kill=0),
    "a grower and a reader": Meeting((_GROWER, _READER)),
    "a grower that may die and a writer": Meeting((_GROWER, _SMALL), kill=0),
    "a compactor and a writer": Meeting((_COMPACTOR, _SMALL)),
    "a compactor and a reader": Meeting((_COMPACTOR, _READER)),
    "a compactor that may die and a writer": Meeting((_COMPACTOR, _SMALL), kill=0),
    "a compactor and a large writer that may die": Meeting((_COMPACTOR, _LARGE), kill=1),
    "two compactors": Meeting((_COMPACTOR, _COMPACTOR)),
    "two writers and a reader": Meeting((_SMALL, _SMALL, _READER)),
}

"""The first notice most planted bugs."""

FOLLOWS: Final = {
    "a writer and a follower": Meeting((_SMALL, _FOLLOWER)),
    "a writer that may die and a follower": Meeting((("lives", "batch"), _FOLLOWER), kill=0),
    "a sealer and a follower": Meeting((_SEALER, _FOLLOWER)),
    "a compactor and a follower": Meeting((_COMPACTOR, _FOLLOWER)),
    "a compactor that may die and a follower": Meeting((_COMPACTOR, _FOLLOWER), kill=0),
    "two writers and a follower": Meeting((_SMALL, _LARGE, _FOLLOWER)),
}
"""Lives of writers, whose events another process follows."""

MEETINGS: Final = OPERATIONS | LIVES | FOLLOWS


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a run broke; ``rule`` is the error's class if the error is no `Finding`.

    ``choices`` describes the crash state of its trace, if the violation needed a crash.
    """

    rule: str
    what: str
    schedule: tuple[int, ...]
    choices: str = ""

    @classmethod
    def of(cls, error: BaseException, run: Run, choices: str = "") -> "Violation":
        """Return the violation that an error of a run reports."""
        if isinstance(error, Finding):
            return cls(error.rule, error.what, run.schedule, choices)
        return cls(type(error).__name__, str(error), run.schedule, choices)

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


class Judge:
    """Checks the runs of one meeting, and crashes each distinct trace once."""

    def __init__(self, plan: Plan) -> None:
        self.campaign = Campaign(recover, plan, failures_max=1, memory=Memory())
        self.stories: dict[bytes, Story] = {}

    def violations(self, run: Run) -> Iterator[Violation]:
        """Yield the violations of a run, including crash states if its trace is new."""
        try:
            run.check()
            trace = _trace_digest(run)
            story = self.stories.get(trace)
            if story is None:
                story = self.stories[trace] = story_of(run)
                for failure in self.campaign.check(story).failures:
                    yield Violation.of(failure.finding, run, failure.state.describe())
            check_told(run, story.model)
        except Exception as error:  # noqa: BLE001 - any error is a violation
            yield Violation.of(error, run)


@dataclass(slots=True)
class ScheduleTally(Counts):
    """Counts of an exploration. ``problems`` maps messages to violations.

    ``traces`` counts the runs that differ in the data that reached the disk, in the instants of the
    syncs, or in the acknowledgements; the crash states of each trace are tried once.
    """

    runs: int = 0
    traces: int = 0
    crash: Tally = field(default_factory=Tally)
    problems: dict[str, Violation] = field(default_factory=dict[str, Violation])


def explore_meeting(
    meeting: Meeting,
    *,
    preemptions: int,
    limit: int | None = None,
    plan: Plan = MEETING_PLAN,
    problems_max: int = 3,
) -> ScheduleTally:
    """Run every schedule (or the first ``limit``), check each run, and crash its trace."""
    # Every world starts from the same bytes, built outside any schedule.
    fresh_image()
    tally = ScheduleTally()
    judge = Judge(plan)
    for run in explore(
        meeting.begin,
        meeting.programs(),
        preemptions=preemptions,
        kill=meeting.kill,
        limit=limit,
    ):
        tally.runs += 1
        for violation in judge.violations(run):
            tally.problems.setdefault(str(violation), violation)
        if len(tally.problems) >= problems_max:
            break
    tally.traces = len(judge.stories)
    tally.crash = judge.campaign.tally
    return tally


def _trace_digest(run: Run) -> bytes:
    """Return a digest of everything that decides the crash states of a run."""
    trace = [operation for operation in run.world.disk.trace if not isinstance(operation, Lock)]
    return blake3(msgspec.msgpack.encode(trace)).digest()
