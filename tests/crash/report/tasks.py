"""The parts of the report as tasks for any core: stories of the log, of whole stores, meetings.

Owns the work of one task and its result, as plain values that can be sent to another process.
Leaves out the number of tasks (`budgets`) and the sum of their results (`__main__`).
"""

import gc
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeAlias

from cerata.engine.errors import UnreadableItem
from cerata.fault_injection.cases import Case, case_of
from cerata.fault_injection.crash_states.readings import Readings
from cerata.fault_injection.crash_states.states import Plan
from cerata.fault_injection.judging.campaign import Campaign, Failure, Memory, Story, Tally, Trials
from cerata.fault_injection.judging.tally import Counts
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.agent import Agent
from cerata.fault_injection.stories.engine_workloads import fresh_image, recover
from cerata.fault_injection.stories.shrinking import shrink
from cerata.fault_injection.stories.store_stories import Judge, prepared_image, record_workload
from cerata.fault_injection.stories.workload import Workload

from ..cases import AnyCase, case_of_damage, encode_case
from ..damage import DAMAGE
from ..documents import record_documents, remember_again, sectioned
from ..failed_syncs import (
    FAILING_PLAN,
    failed_sync_case,
    failing_stories,
    sync_count,
)
from ..initial_states import start_named
from ..interleaving_cases import shrunk_case
from ..interleavings import (
    MEETINGS,
    OPERATIONS,
    ScheduleTally,
    explore_meeting,
)
from ..operations import record, record_creation
from ..runs import Runs
from ..second_crash import live_on, read_only
from ..sweeps.bit_rot import ROT_PLAN, RotCampaign
from ..sweeps.lying_syncs import LyingCampaign
from ..talks import Talks

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

    def save(self, case: Callable[[], AnyCase], *words: str) -> None:
        """Write the case of a failure, named by words, if there is a folder for cases."""
        if self.cases is not None:
            name = "-".join((self.part, *words)).replace(" ", "_")
            (Path(self.cases) / f"{name}.case").write_bytes(encode_case(case()))


@dataclass(slots=True)
class Result(Counts):
    """The result of a task, or of all tasks of a part. ``problems`` are sentences."""

    part: str
    tally: Tally = field(default_factory=Tally)
    schedules: ScheduleTally = field(default_factory=ScheduleTally)
    questioned: int = 0
    """Whole stores that were checked."""
    seconds: float = 0.0
    """Processor time, recording included."""
    problems: list[str] = field(default_factory=list[str])

    def to_dict(self) -> dict[str, int | float]:
        """Return the counts as plain values."""
        tally = self.tally
        return {
            "stories": tally.traces,
            "epochs": tally.epochs,
            "epochs_known": tally.repeated,
            "states": tally.states,
            "distinct_images": tally.distinct,
            "recovered_images": tally.recovered,
            "audited_images": tally.audited,
            "recoveries_crashed": tally.deep,
            "states_of_crashed_recoveries": tally.deep_states,
            "second_lives": tally.lives,
            "stores_questioned": self.questioned,
            "faults_met": tally.faults,
            "images_refused": tally.refused,
            "schedules": self.schedules.runs,
            "operations_max": tally.operations_max,
            "slowest_ms": round(tally.recovery_ms_max, 1),
            "processor_seconds": round(self.seconds, 1),
            "states_per_second_per_core": round(tally.states / self.seconds) if self.seconds else 0,
        }


def work(task: Task) -> Result:
    """Do a task, in the process of the caller."""
    # A list without a damaged item is a wrong answer here.
    warnings.simplefilter("error", UnreadableItem)
    gc.set_threshold(_COLLECT_AFTER, 50, 100)
    started = time.process_time()
    result = Result(task.part)
    PARTS[task.part](task, result)
    # Images and epochs stay in this process: counts and problems travel as text.
    result.tally.failures.clear()
    result.seconds = time.process_time() - started
    return result


@lru_cache(maxsize=1)
def _memory(_part: str, _start: str, _run: int) -> Memory:
    """Return the memory of the stories from one set-up; only the last set-up has one."""
    return Memory()


Made: TypeAlias = Callable[[Task, Memory | None], Trials]
"""Makes the campaign of a part, with the memory of a task, or with none to shrink a story."""


def _log(task: Task, memory: Memory | None) -> Trials:
    return Campaign(
        recover,
        task.plan,
        life=partial(live_on, readings=memory.readings if memory else None),
        lives_max=task.lives_max,
        failures_max=2,
        memory=memory,
        deep_every=task.deep_every,
    )


def _judged(task: Task, memory: Memory | None) -> Trials:
    return Campaign(read_only, task.plan, failures_max=2, memory=memory)


def _lying(_task: Task, _memory: Memory | None) -> Trials:
    return LyingCampaign(recover)


def _rot(task: Task, _: Memory | None) -> Trials:
    return RotCampaign(recover, replace(ROT_PLAN, seed=task.plan.seed))


def _of_log(make: Made, engine: str, task: Task, result: Result) -> None:
    def recorded(acts: Sequence[str], sync: str | int) -> Story:
        monitor = OrderingMonitor(FileGeometry())
        if task.start == "nothing":
            return record_creation(monitor=monitor)
        return record(acts, sync=sync, start=start_named(task.start), monitor=monitor)

    _try(task, result, partial(make, task), recorded, engine)


_WORKLOADS: Final[dict[str, type[Workload]]] = {"store": Agent, "runs": Runs, "talks": Talks}


@lru_cache(maxsize=1)
def _prepared(engine: str, _run: int) -> tuple[bytes, Judge]:
    workload = _WORKLOADS[engine]
    return prepared_image(workload()), Judge(workload)


def _store(engine: str, task: Task, result: Result) -> None:
    base, judge = _prepared(engine, task.run)
    asked_before = judge.asked

    def make(memory: Memory | None) -> Trials:
        return Campaign(
            judge.open, task.plan, failures_max=2, memory=memory, deep_every=task.deep_every
        )

    def recorded(acts: Sequence[str], _sync: str | int) -> Story:
        story = record_workload(_WORKLOADS[engine](), acts, base)
        judge.model = story.model
        return story

    _try(task, result, make, recorded, engine)
    result.questioned = judge.asked - asked_before


def _try(
    task: Task,
    result: Result,
    make: Callable[[Memory | None], Trials],
    recorded: Callable[[Sequence[str], str | int], Story],
    engine: str,
) -> None:
    """Record each story of a task and try its states with a campaign from ``make``."""
    campaign = make(_memory(task.part, task.start, task.run))
    for acts, sync in task.stories:
        try:
            story = recorded(acts, sync)
        except Exception as error:  # noqa: BLE001 - any error is a problem
            result.problems.append(f"{task.start}: {' '.join(acts)} (sync={sync}): {error!r}")
            continue
        failures = campaign.check(story).failures
        result.problems += [f"{task.start}: {failure}" for failure in failures]
        if failures:

            def again(acts: Sequence[str], sync: str | int = sync) -> Story:
                return recorded(acts, sync)

            task.save(
                partial(_shortest, task.start, engine, acts, failures[0], again, make),
                task.start,
                *acts,
            )
    result.tally = campaign.tally


def _shortest(
    start: str,
    engine: str,
    acts: Sequence[str],
    failure: Failure,
    recorded: Callable[[Sequence[str]], Story],
    make: Callable[[Memory | None], Trials],
) -> Case:
    shrunk = shrink(acts, failure, recorded, lambda: make(None))
    return case_of(shrunk.failure, engine=engine, start=start, operations=shrunk.operations)


def _failing(task: Task, result: Result) -> None:
    """Make each of their syncs fail in turn, and persist some part of the written data."""
    campaign = Campaign(
        recover,
        replace(FAILING_PLAN, seed=task.plan.seed),
        failures_max=2,
        memory=_memory(task.part, task.start, task.run),
    )
    start = start_named(task.start)
    for acts, _ in task.stories:
        for number in range(1, sync_count(acts, start) + 1):
            name = f"{task.start}: {' '.join(acts)}, sync {number} fails"
            try:
                closes = number % 2 == 0
                for story in failing_stories(acts, start, number, closes=closes):
                    failures = campaign.check(story).failures
                    result.problems += [f"{name}: {failure}" for failure in failures]
                    if failures:
                        case = partial(
                            failed_sync_case, failures[0], acts, task.start, number, closes=closes
                        )
                        task.save(case, name)
                    campaign.tally.faults += 1
            except Exception as error:  # noqa: BLE001 - any error is a problem
                result.problems.append(f"{name}: {error!r}")
    result.tally = campaign.tally


def _documents(task: Task, result: Result) -> None:
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
    failures = campaign.check(record_documents(texts, OrderingMonitor(FileGeometry()))).failures
    if failures:
        task.save(partial(case_of, failures[0], start="documents"))
    result.tally = campaign.tally
    result.problems = [str(failure) for failure in failures]


def _meeting(task: Task, result: Result) -> None:
    """Run the schedules of one meeting of processes, and crash the traces that differ."""
    meeting = MEETINGS[task.start]
    tally = explore_meeting(
        meeting, preemptions=task.preemptions, limit=task.schedules, plan=task.plan
    )
    result.problems = [
        f"{task.start}: {problem} [schedule {[*violation.schedule]}]"
        for problem, violation in tally.problems.items()
    ]
    for violation in [*tally.problems.values()][:1]:
        task.save(
            partial(shrunk_case, meeting, violation, task.plan, preemptions=task.preemptions),
            task.start,
        )
    tally.crash.failures.clear()
    result.part = "operations" if task.start in OPERATIONS else "lives"
    result.tally = tally.crash
    result.schedules = tally


def _damage(task: Task, result: Result) -> None:
    """Zero, flip and swap bytes of the files that a few stories left."""
    fresh_image()
    for images in DAMAGE:
        try:
            findings = [(item, finding) for item in images() if (finding := item.check())]
        except Exception as error:  # noqa: BLE001 - any error is a problem
            result.problems.append(f"damage: {error!r}")
            continue
        result.problems += [f"damage: {finding}" for _, finding in findings]
        if findings:
            task.save(partial(case_of_damage, *findings[0]), images.__name__)


PARTS: Final[dict[str, Callable[[Task, Result], None]]] = {
    "log": partial(_of_log, _log, "log"),
    "judged": partial(_of_log, _judged, "read"),
    "store": partial(_store, "store"),
    "runs": partial(_store, "runs"),
    "talks": partial(_store, "talks"),
    "lying": partial(_of_log, _lying, "log"),
    "rot": partial(_of_log, _rot, "log"),
    "failing": _failing,
    "documents": _documents,
    "meeting": _meeting,
    "damage": _damage,
}
