"""The parts of the report as tasks for any core: stories of the log, of whole stores, meetings.

Owns the work of one task and its result, as plain values that can be sent to another process.
Leaves out the number of tasks (`budgets`) and the sum of their results (`report`).
"""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeVar

from ..cases import Case, case_of, case_of_damage, encode_case
from ..crash_states.readings import Readings
from ..crash_states.states import Plan
from ..judging.campaign import Campaign, Memory, Story, Tally
from ..simulation.file_layout import FileGeometry
from ..simulation.write_order_monitor import OrderingMonitor
from ..stories.agent import Agent
from ..stories.damage import DAMAGE
from ..stories.documents import record_documents, remember_again, sectioned
from ..stories.engine_workloads import fresh_image, record, record_creation
from ..stories.initial_states import start_named
from ..stories.interleaving_cases import MeetingCase, shrunk_case
from ..stories.interleavings import LIVES, MEETINGS, ScheduleTally, explore_meeting
from ..stories.second_crash import live_on, read_only, recover
from ..stories.shrinking import Tries, shrink
from ..stories.store_stories import Judge, prepared_image, record_workload
from ..sweeps.bit_rot import ROT_PLAN, RotCampaign
from ..sweeps.failed_syncs import FAILING_PLAN, failing_stories, sync_count
from ..sweeps.lying_syncs import LyingCampaign

_COLLECT_AFTER: Final = 100_000
"""Objects allocated between collections: the memory of images is large, and never garbage."""


@dataclass(frozen=True, slots=True)
class Task:
    """One share of a part: its name, its stories, and how much of each epoch is tried.

    ``stories`` are sequences of operations, each with its sync policy; ``start`` is the set-up that
    they begin with, or the name of a meeting. ``deep_every`` and ``lives_max`` are the campaign's;
    ``preemptions`` and ``schedules`` bound a meeting.
    """

    part: str
    start: str
    stories: tuple[tuple[tuple[str, ...], str | int], ...] = ()
    plan: Plan = field(default_factory=Plan)
    deep_every: int = 0
    lives_max: int = 0
    preemptions: int = 1
    schedules: int | None = None
    cases: str | None = None
    run: int = 0
    """Distinguishes runs: a process does not reuse the memory of another run."""


@dataclass(slots=True)
class Result:
    """The result of a task. ``problems`` are sentences; ``questioned`` counts checked stores."""

    part: str
    tally: Tally = field(default_factory=Tally)
    schedules: ScheduleTally = field(default_factory=ScheduleTally)
    questioned: int = 0
    refused: int = 0
    """Damaged images that were refused with a place, or with the unreadable sector."""
    faults: int = 0
    """Faults that a read or write met."""
    seconds: float = 0.0
    """Processor time, recording included."""
    problems: list[str] = field(default_factory=list[str])


def work(task: Task) -> Result:
    """Do a task, in the process of the caller."""
    gc.set_threshold(_COLLECT_AFTER, 50, 100)
    started = time.process_time()
    result = PARTS[task.part](task)
    # Images and epochs stay in this process: counts and problems travel as text.
    result.tally.failures.clear()
    result.seconds = time.process_time() - started
    return result


CampaignType = TypeVar("CampaignType", bound=Tries)


@lru_cache(maxsize=1)
def _memory(_part: str, _start: str, _run: int) -> Memory:
    """Return the memory of the stories from one set-up; only the last set-up has one."""
    return Memory()


def _log(task: Task) -> Result:
    """Crash stories of the log: recovered for writing."""

    def make(memory: Memory | None) -> Campaign:
        return Campaign(
            recover,
            task.plan,
            life=partial(live_on, readings=memory.readings if memory else None),
            lives_max=task.lives_max,
            failures_max=2,
            memory=memory,
            deep_every=task.deep_every,
        )

    return _tried(task, make, partial(_recorded, task.start))[0]


def _judged(task: Task) -> Result:
    """The same stories, opened for reading: checked without writing."""

    def make(memory: Memory | None) -> Campaign:
        return Campaign(read_only, task.plan, failures_max=2, memory=memory)

    return _tried(task, make, partial(_recorded, task.start), engine="read")[0]


def _recorded(start: str, acts: Sequence[str], sync: str | int) -> Story:
    monitor = OrderingMonitor(FileGeometry())
    if start == "nothing":
        return record_creation(monitor=monitor)
    return record(acts, sync=sync, start=start_named(start), monitor=monitor)


@lru_cache(maxsize=1)
def _agent(_run: int) -> tuple[bytes, Judge]:
    return prepared_image(Agent()), Judge(Agent)


def _store(task: Task) -> Result:
    """Crash stories of whole stores: recovered, and checked once for each distinct state."""
    base, judge = _agent(task.run)
    asked_before = judge.asked

    def make(memory: Memory | None) -> Campaign:
        return Campaign(
            judge.open,
            task.plan,
            failures_max=2,
            memory=memory,
            deep_every=task.deep_every,
        )

    def recorded(acts: Sequence[str], _sync: str | int) -> Story:
        story = record_workload(Agent(), acts, base)
        judge.model = story.model
        return story

    result, _ = _tried(task, make, recorded, engine="store")
    result.questioned = judge.asked - asked_before
    return result


def _tried(
    task: Task,
    make: Callable[[Memory | None], CampaignType],
    recorded: Callable[[Sequence[str], str | int], Story],
    *,
    engine: str = "log",
) -> tuple[Result, CampaignType]:
    """Record each story of a task and try its crash states with a campaign from ``make``."""
    result = Result(task.part)
    campaign = make(_memory(task.part, task.start, task.run))
    for acts, sync in task.stories:
        name = f"{task.start}: {' '.join(acts)} (sync={sync})"
        try:
            story = recorded(acts, sync)
        except Exception as error:  # noqa: BLE001 - any error is a problem
            result.problems.append(f"{name}: {error!r}")
            continue
        failures = campaign.check(story).failures
        result.problems += [f"{task.start}: {failure}" for failure in failures]
        if failures and task.cases is not None:
            shrunk = shrink(acts, failures[0], partial(_again, recorded, sync), partial(make, None))
            case = case_of(
                shrunk.failure, engine=engine, start=task.start, operations=shrunk.operations
            )
            _save(case, task.cases, task.part, task.start, *acts)
    result.tally = campaign.tally
    return result, campaign


def _save(case: Case | MeetingCase, folder: str, *words: str) -> None:
    """Write a case file, named by its words."""
    name = "-".join(words).replace(" ", "_")
    (Path(folder) / f"{name}.case").write_bytes(encode_case(case))


def _again(
    recorded: Callable[[Sequence[str], str | int], Story], sync: str | int, acts: Sequence[str]
) -> Story:
    return recorded(acts, sync)


def _lying(task: Task) -> Result:
    """The same stories on a disk whose syncs lie: a prefix, or a refusal."""
    result, campaign = _tried(
        task, lambda _memory: LyingCampaign(recover), partial(_recorded, task.start)
    )
    result.refused = campaign.refused
    return result


def _rot(task: Task) -> Result:
    """One fault of a living disk on top of their crash states."""
    plan = replace(ROT_PLAN, seed=task.plan.seed)
    result, campaign = _tried(
        task, lambda _memory: RotCampaign(recover, plan), partial(_recorded, task.start)
    )
    result.refused = campaign.refused
    result.faults = sum(campaign.met.values())
    return result


def _failing(task: Task) -> Result:
    """Make each of their syncs fail in turn, and persist some part of the written data."""
    campaign = Campaign(
        recover,
        replace(FAILING_PLAN, seed=task.plan.seed),
        failures_max=2,
        memory=_memory(task.part, task.start, task.run),
    )
    result = Result(task.part)
    start = start_named(task.start)
    for acts, _ in task.stories:
        for number in range(1, sync_count(acts, start) + 1):
            closes = number % 2 == 0
            name = f"{task.start}: {' '.join(acts)}, sync {number} fails"
            try:
                for story in failing_stories(acts, start, number, closes=closes):
                    failures = campaign.check(story).failures
                    result.problems += [f"{name}: {failure}" for failure in failures]
                    if failures and task.cases is not None:
                        case = case_of(failures[0], start=task.start, operations=acts)
                        _save(case, task.cases, task.part, name)
                    result.faults += 1
            except Exception as error:  # noqa: BLE001 - any error is a problem
                result.problems.append(f"{name}: {error!r}")
    result.tally = campaign.tally
    return result


def _documents(task: Task) -> Result:
    """Crash the remembering of two documents of two full batches each, one after the other."""
    texts = [sectioned(title, 300) for title in ("old", "new")]
    campaign = Campaign(
        recover,
        task.plan,
        life=lambda state, story, _seq: remember_again(state, story, texts[-1]),
        life_every=10,
        lives_max=task.lives_max,
        failures_max=2,
        readings=Readings(),
    )
    story = record_documents(texts, OrderingMonitor(FileGeometry()))
    failures = campaign.check(story).failures
    if failures and task.cases is not None:
        _save(case_of(failures[0], start="documents"), task.cases, task.part)
    problems = [str(failure) for failure in failures]
    return Result(task.part, campaign.tally, problems=problems)


def _meeting(task: Task) -> Result:
    """Run the schedules of one meeting of processes, and crash the traces that differ."""
    tally = explore_meeting(
        MEETINGS[task.start],
        preemptions=task.preemptions,
        limit=task.schedules,
        plan=task.plan,
    )
    problems = [
        f"{task.start}: {problem} [schedule {[*violation.schedule]}]"
        for problem, violation in tally.problems.items()
    ]
    if tally.problems and task.cases is not None:
        first = next(iter(tally.problems.values()))
        case = shrunk_case(MEETINGS[task.start], first, task.plan, preemptions=task.preemptions)
        _save(case, task.cases, task.part, task.start)
    tally.crash.failures.clear()
    part = "lives" if task.start in LIVES else "operations"
    return Result(part, tally.crash, tally, problems=problems)


def _damage(task: Task) -> Result:
    """Zero, flip and swap bytes of the files that a few stories left."""
    fresh_image()
    result = Result(task.part)
    for images in DAMAGE:
        try:
            findings = [(item, finding) for item in images() if (finding := item.check())]
        except Exception as error:  # noqa: BLE001 - any error is a problem
            result.problems.append(f"damage: {error!r}")
            continue
        result.problems += [f"damage: {finding}" for _, finding in findings]
        if findings and task.cases is not None:
            _save(case_of_damage(*findings[0]), task.cases, task.part, images.__name__)
    return result


PARTS: Final[dict[str, Callable[[Task], Result]]] = {
    "log": _log,
    "judged": _judged,
    "store": _store,
    "lying": _lying,
    "rot": _rot,
    "failing": _failing,
    "documents": _documents,
    "meeting": _meeting,
    "damage": _damage,
}
