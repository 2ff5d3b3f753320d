"""The crash test of a workload: all its short stories, then random longer stories, on all cores.

Owns `crash_test`, which ``cerata admin crash-test`` calls: it records each story on the simulated
disk, tries its crash states, and checks each recovered store by the oracle, by a replay of the log,
and by the workload's check.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count, product
from pathlib import Path
from random import Random
from typing import Final

from cerata.engine.events import JsonValue

from .cases import Case, case_of, encode_case, replay_case
from .crash_states.states import CrashState, Models, Plan, after
from .judging.campaign import Campaign, Memory, Story
from .judging.oracle import Finding
from .judging.tally import Counts
from .stories.parallel import run_shards
from .stories.shrinking import Shrunk, shrink
from .stories.store_stories import Judge, prepared_image, record_workload
from .stories.workload import Workload, load_workload

WHOLE_LENGTH: Final = 3
"""All sequences up to this many operations are tried; longer stories are drawn."""
DRAWN_LENGTH_MAX: Final = 12
PLAN: Final = Plan(exhaustive=4_096, samples=256)
FAILURES_MAX: Final = 2
"""Violations reported of one story; one bug breaks thousands of states."""

_RUNS = count()


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: the story, the crash state, and the case file.

    ``rule`` is a rule of the oracle, ``check`` for the workload's check, or ``story`` if an
    operation itself raised.
    """

    rule: str
    what: str
    operations: tuple[str, ...]
    choices: str = ""
    crash: str = ""
    """The crash in words; ``choices`` has everything that rebuilds it."""
    case: str | None = None

    def __str__(self) -> str:
        place = f" [{self.crash} {self.choices}]" if self.choices else ""
        saved = f" saved as {self.case}" if self.case else ""
        return f"{' '.join(self.operations)}: {self.rule}: {self.what}{place}{saved}"


@dataclass(slots=True)
class CrashReport(Counts):
    """Counts of a crash test: ``seconds`` of wall time, ``processor_seconds`` of all cores."""

    stories: int = 0
    epochs: int = 0
    states: int = 0
    distinct: int = 0
    """Distinct images of those states."""
    recovered: int = 0
    """Images that were recovered; each of the rest reads like an earlier image."""
    questioned: int = 0
    """Distinct states of whole stores that were checked, the workload's check included."""
    operations_max: int = 0
    """Operations of the longest story."""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    violations: list[Violation] = field(default_factory=list[Violation])

    @property
    def longest(self) -> int:
        """Operations of the longest story."""
        return self.operations_max

    @property
    def states_per_second(self) -> float:
        """Crash states a second of wall time, on all cores together."""
        return self.states / self.seconds if self.seconds else 0.0

    @property
    def states_per_second_per_core(self) -> float:
        return self.states / self.processor_seconds if self.processor_seconds else 0.0

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the counts as plain values; ``violations`` is their number."""
        return {
            "states": self.states,
            "violations": len(self.violations),
            "states_per_second": round(self.states_per_second),
            "states_per_second_per_core": round(self.states_per_second_per_core),
            "stories": self.stories,
            "epochs": self.epochs,
            "distinct_images": self.distinct,
            "recovered_images": self.recovered,
            "questioned_states": self.questioned,
            "longest_story": self.longest,
            "seconds": round(self.seconds, 1),
            "problems": [str(violation) for violation in self.violations],
            "cases": [
                violation.case for violation in self.violations if violation.case is not None
            ],
        }


Progress = Callable[[CrashReport], None]


def crash_test(
    workload: type[Workload] | str,
    *,
    budget_seconds: float = 60.0,
    jobs: int | None = None,
    seed: int = 0,
    stories_max: int | None = None,
    stories: Sequence[tuple[str, ...]] | None = None,
    violations_max: int = 10,
    cases: Path | None = None,
    progress: Progress | None = None,
) -> CrashReport:
    """Crash a workload's stories until the time is up, and return the counts and violations.

    All stories of one operation come first, then of two, then of three, then random longer stories.
    With ``stories_max`` instead of a short time the counts are the same at each run.

    Args:
        workload: a class, or the path of a file that defines one workload.
        budget_seconds: wall time after which no new story begins.
        jobs: processes that work at a time; by default one per core.
        seed: seed of the random choices.
        stories_max: how many stories to run at most; None for no limit.
        stories: the stories to run; None for all.
        violations_max: end the test after this many violations.
        cases: a folder for the case files of violations; None writes none.
        progress: called with the report after each story.

    Raises:
        InvalidInput: the file cannot be loaded.
    """
    setting = _Setting(workload, seed, None if cases is None else str(cases), next(_RUNS))
    alphabet = setting.load()().alphabet()
    started = time.perf_counter()
    report = CrashReport()
    results = run_shards(
        partial(_crash, setting),
        partial(_stories, alphabet, seed, stories_max) if stories is None else lambda: stories,
        jobs=jobs or os.cpu_count() or 1,
        deadline=started + budget_seconds,
    )
    for result in results:
        report.add(result)
        report.seconds = time.perf_counter() - started
        if progress is not None:
            progress(report)
        if len(report.violations) >= violations_max:
            results.close()
            break
    return report


def replay(workload: type[Workload], case: Case) -> Finding | None:
    """Open a saved crash state again, and return the rule that it still breaks."""
    judge = Judge(workload)
    judge.model = case.model()
    return replay_case(case, judge.open)


def _stories(
    alphabet: Sequence[str], seed: int, stories_max: int | None
) -> Iterator[tuple[str, ...]]:
    """Yield every short story, then longer stories without end; at most ``stories_max`` in all."""
    for number, story in enumerate(_all_stories(alphabet, seed)):
        if stories_max is not None and number >= stories_max:
            return
        yield story


def _all_stories(alphabet: Sequence[str], seed: int) -> Iterator[tuple[str, ...]]:
    source = Random(seed)
    for length in range(1, WHOLE_LENGTH + 1):
        whole = list(product(alphabet, repeat=length))
        # Shuffled, so that a test that runs out of time has met every operation.
        source.shuffle(whole)
        yield from whole
    while True:
        length = source.randint(WHOLE_LENGTH + 1, DRAWN_LENGTH_MAX)
        yield tuple(source.choices(alphabet, k=length))


@dataclass(frozen=True, slots=True)
class _Setting:
    workload: type[Workload] | str
    seed: int
    cases: str | None
    run: int
    """Distinguishes calls of `crash_test`: a process does not reuse the state of another call."""

    def load(self) -> type[Workload]:
        workload = self.workload
        return load_workload(workload) if isinstance(workload, str) else workload


@dataclass(frozen=True, slots=True)
class _Bench:
    workload: type[Workload]
    base: bytes
    judge: Judge
    campaign: Campaign


@lru_cache(maxsize=1)
def _bench(setting: _Setting) -> _Bench:
    workload = setting.load()
    judge = Judge(workload)
    campaign = Campaign(
        judge.open, replace(PLAN, seed=setting.seed), failures_max=FAILURES_MAX, memory=Memory()
    )
    return _Bench(workload, prepared_image(workload()), judge, campaign)


def _crash(setting: _Setting, operations: tuple[str, ...]) -> CrashReport:
    """Record one story and try its crash states, in the process of the caller."""
    started = time.process_time()
    bench = _bench(setting)
    asked_before = bench.judge.asked
    report = CrashReport(stories=1, operations_max=len(operations))
    try:
        story = record_workload(bench.workload(), operations, bench.base, seed=setting.seed)
    except Exception as error:  # noqa: BLE001 - any error is a violation
        raised = Violation("story", f"{type(error).__name__}: {error}", operations)
        report.violations.append(raised)
    else:
        bench.judge.model = story.model
        tally = bench.campaign.check(story)
        report.epochs = tally.epochs
        report.states = tally.states
        report.distinct = tally.distinct
        report.recovered = tally.recovered
        report.violations += [
            _violation(setting, bench, Shrunk(operations, failure), number)
            for number, failure in enumerate(tally.failures, start=1)
        ]
        report.questioned = bench.judge.asked - asked_before
    report.processor_seconds = time.process_time() - started
    return report


def _violation(setting: _Setting, bench: _Bench, shrunk: Shrunk, number: int) -> Violation:
    """Return a failure of a story; the first is shrunk."""
    operations = shrunk.operations
    if number == 1:
        shrunk = _shortest(setting, bench, shrunk)
    failure = shrunk.failure
    path = None
    if setting.cases is not None:
        path = str(Path(setting.cases) / f"{'-'.join(operations)}.{number}.case")
        case = case_of(
            failure,
            engine=" ".join(operations),
            start="prepared",
            operations=shrunk.operations,
        )
        Path(path).write_bytes(encode_case(case))
    return Violation(
        failure.finding.rule,
        failure.finding.what,
        shrunk.operations,
        failure.state.describe(),
        _crash_sentence(failure.state),
        path,
    )


def _shortest(setting: _Setting, bench: _Bench, shrunk: Shrunk) -> Shrunk:
    judge = Judge(bench.workload)

    def recorded(operations: Sequence[str]) -> Story:
        story = record_workload(bench.workload(), operations, bench.base, seed=setting.seed)
        judge.model = story.model
        return story

    return shrink(
        shrunk.operations,
        shrunk.failure,
        recorded,
        lambda: Campaign(judge.open, replace(PLAN, seed=setting.seed)),
    )


# --- a crash in words ----------------------------------------------------------------------------


def _crash_sentence(state: CrashState) -> str:
    """Return the crash, its instant, and the remaining data, as one sentence.

    The last step that wrote before the crash is named by its place in the story: ``2:sell``.
    """
    epoch = state.epoch
    step = epoch.labels[-1] if epoch.labels else ""
    when = f"in operation {step.replace(':', ' (', 1)})" if step else "while the store was opened"
    if state.models == Models.KILL:
        return f"The process was killed {when}{_done(state)}."
    sentence = f"The power failed {when}{_arrived(state)}"
    if state.tears:
        sentence += f", {len(state.tears)} of them torn"
    if state.size != epoch.sizes[-1]:
        sentence += f"; the file was left with {state.size:,} of {epoch.sizes[-1]:,} bytes"
    if state.lost_names is not None:
        names = ", ".join(state.lost_names.own)
        sentence += f"; its name was {names}" if names else "; its name was lost"
    return f"{sentence}."


def _done(state: CrashState) -> str:
    """Return how many writes were issued, if the versions show it."""
    epoch = state.epoch
    for writes in range(epoch.write_count, -1, -1):
        if after(epoch, writes) == state.versions:
            return f", after {_of(writes, epoch.write_count, 'write')} since the last sync"
    return ""


def _arrived(state: CrashState) -> str:
    """Return how many sectors hold their last written content; the rest hold older content."""
    pairs = list(zip(state.versions, state.epoch.sectors, strict=True))
    new = sum(1 for version, history in pairs if version == len(history.versions) - 1)
    if not pairs:
        return ""
    return f": {_of(new, len(pairs), 'sector')} written since the last sync arrived"


def _of(part: int, total: int, noun: str) -> str:
    """Return ``no sector``, ``all 3 sectors``, ``2 of 3 sectors``, or ``the one sector``."""
    if part == 0:
        return f"no {noun}"
    if part == total:
        return f"the one {noun}" if total == 1 else f"all {total} {noun}s"
    return f"{part} of {total} {noun}s"
