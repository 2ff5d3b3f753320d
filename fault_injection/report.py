"""The crash test as one call: run the stories, the damage and the schedules, and count.

Owns the smoke plan, the detectors that planted bugs are held against, and the printed report.
``python -m cerata.fault_injection.report`` runs it.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from .afterlife import live_on, read_only, recover
from .campaign import Campaign, Failure, Story, Tally
from .cases import case_of, encode_case
from .detectors import DAMAGE, SMOKE_PLAN, Blind, canary, damaged, detect, recordings
from .documents import record_documents, remember_again, sectioned
from .geometry import FileGeometry
from .interleavings import (
    LIVES,
    MEETING_PLAN,
    ScheduleTally,
    explore_all,
)
from .monitor import OrderingMonitor
from .plants import PLANTS
from .readings import Readings
from .states import Plan
from .workloads import fresh_image, sequences

FULL_PLAN = Plan(exhaustive=4_096, samples=4_096)


@dataclass(slots=True)
class Report:
    """What a crash test did and found. ``problems`` are sentences; empty means nothing broke."""

    stories: Tally = field(default_factory=Tally)
    sequences: Tally = field(default_factory=Tally)
    """The share of ``stories`` that are sequences of the alphabet; the others are longer."""
    judged: Tally = field(default_factory=Tally)
    documents: Tally = field(default_factory=Tally)
    operations: ScheduleTally = field(default_factory=ScheduleTally)
    lives: ScheduleTally = field(default_factory=ScheduleTally)
    problems: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    skipped: int = 0

    def to_dict(self) -> dict[str, int | float | list[str]]:
        """Return the counts as plain values, as ``--json`` prints them."""
        return {
            "traces": self.stories.traces,
            "epochs": self.stories.epochs,
            "states": self.stories.states,
            "distinct_images": self.stories.distinct,
            "recovered_images": self.stories.recovered,
            "audited_images": self.stories.audited,
            "second_lives": self.stories.lives,
            "states_per_second": round(self.stories.states_per_second),
            "images_per_second": round(self.stories.images_per_second),
            "sequences": self.sequences.traces,
            "sequences_states": self.sequences.states,
            "sequences_states_per_second": round(self.sequences.states_per_second),
            "judged_states": self.judged.states,
            "judged_recovered_images": self.judged.recovered,
            "judged_states_per_second": round(self.judged.states_per_second),
            "document_states": self.documents.states,
            "documents_remembered_again": self.documents.lives,
            "schedules_of_operations": self.operations.runs,
            "schedules_of_operations_traces": self.operations.traces,
            "schedules_of_operations_crash_states": self.operations.crash.states,
            "schedules_of_operations_recovered_images": self.operations.crash.recovered,
            "schedules_of_lives": self.lives.runs,
            "schedules_of_lives_traces": self.lives.traces,
            "schedules_of_lives_crash_states": self.lives.crash.states,
            "schedules_of_lives_recovered_images": self.lives.crash.recovered,
            "stories_skipped_for_time": self.skipped,
            "seconds": round(self.seconds, 1),
            "problems": self.problems,
        }

    def __str__(self) -> str:
        left_out = f"; {self.skipped} stories left out for time" if self.skipped else ""
        stories, judged = self.stories, self.judged
        operations, lives = self.operations, self.lives
        counts = (
            ("traces", stories.traces),
            ("crash states of recoveries that write", stories.states),
            ("  distinct images", stories.distinct),
            ("  recovered; the others read what one of these reads", stories.recovered),
            ("  of which their outcome was known, and came again", stories.audited),
            ("  second lives", stories.lives),
            ("  states/s/core", stories.states_per_second),
            ("  images/s/core", stories.images_per_second),
            ("  of the short sequences: traces", self.sequences.traces),
            ("    crash states", self.sequences.states),
            ("    distinct images", self.sequences.distinct),
            ("    recovered", self.sequences.recovered),
            ("    states/s/core", self.sequences.states_per_second),
            ("    images/s/core", self.sequences.images_per_second),
            ("crash states judged without writing", judged.states),
            ("  distinct images", judged.distinct),
            ("  recovered", judged.recovered),
            ("  states/s/core", judged.states_per_second),
            ("  images/s/core", judged.images_per_second),
            ("crash states of remembering documents", self.documents.states),
            ("  in which they were remembered again", self.documents.lives),
            ("schedules of three operations of two writers and a reader", operations.runs),
            ("  traces that differ", operations.traces),
            ("  crash states of their epochs that differ", operations.crash.states),
            ("  distinct images", operations.crash.distinct),
            ("  recovered", operations.crash.recovered),
            ("schedules of whole lives of processes", lives.runs),
            ("  traces that differ", lives.traces),
            ("  crash states of their epochs that differ", lives.crash.states),
            ("  distinct images", lives.crash.distinct),
            ("  recovered", lives.crash.recovered),
            ("problems", len(self.problems)),
        )
        lines = [f"{count:>12,.0f}  {what}" for what, count in counts]
        lines.append(f"{self.seconds:>12.1f}  seconds{left_out}")
        lines += [f"  - {problem}" for problem in self.problems]
        return "\n".join(lines)


def run(
    *,
    length: int = 2,
    budget_seconds: float | None = None,
    full: bool = False,
    seed: int = 0,
    cases: Path | None = None,
    life_every: int = 50,
    schedules: int | None = 60,
    preemptions: int = 1,
    jobs: int = 1,
) -> Report:
    """Run the crash test; ``budget_seconds`` stops taking up new stories after that time.

    ``full`` tries all states of an epoch of at most 4,096, and of larger ones the structured set
    and 4,096 samples. ``seed``: of the samples. ``cases``: a folder for the case files of
    failures. ``schedules`` bounds the runs of each meeting; None runs all, 0 none. ``jobs`` of
    them are explored at a time.
    """
    report = Report()
    started = time.perf_counter()
    try:
        canary()
    except Blind as error:
        report.problems.append(str(error))
    plan = replace(FULL_PLAN if full else SMOKE_PLAN, seed=seed)
    read = Readings()
    life = partial(live_on, readings=read)
    writing = Campaign(
        recover, plan, life=life, life_every=life_every, failures_max=2, readings=read
    )
    judging = Campaign(read_only, plan, failures_max=2, readings=Readings())
    fresh_image()
    short = {" ".join(acts) for acts in sequences(length)}
    for name, recording in recordings(length).items():
        if budget_seconds is not None and time.perf_counter() - started > budget_seconds:
            report.skipped += 1
            continue
        try:
            story = recording()
        except Exception as error:  # noqa: BLE001 - told, whatever it is
            report.problems.append(f"{name}: {error!r}")
            continue
        for campaign in (writing, judging):
            checked = campaign.check(story)
            if campaign is writing and story.name in short:
                report.sequences.add(checked)
            for failure in checked.failures:
                report.problems.append(str(failure))
                if cases is not None:
                    _save(failure, story, cases, len(report.problems))
    report.stories, report.judged = writing.tally, judging.tally
    report.documents = _documents(report, plan, lives_max=100 if full else 10)
    for check in DAMAGE:
        report.problems += [f"damage: {problem}" for problem in damaged(check)]
    if schedules != 0:
        for name, tally in explore_all(
            preemptions=preemptions,
            limit=schedules,
            plan=replace(FULL_PLAN if full else MEETING_PLAN, seed=seed),
            jobs=jobs,
        ):
            (report.lives if name in LIVES else report.operations).add(tally)
            for problem, schedule in tally.problems.items():
                report.problems.append(f"{name}: {problem} [schedule {list(schedule)}]")
    report.seconds = time.perf_counter() - started
    return report


def _documents(report: Report, plan: Plan, *, lives_max: int) -> Tally:
    """Crash the remembering of two documents of two full batches each, one for the other."""
    texts = [sectioned(title, 300) for title in ("old", "new")]
    campaign = Campaign(
        recover,
        plan,
        life=lambda state, story, _seq: remember_again(state, story, texts[-1]),
        life_every=10,
        lives_max=lives_max,
        failures_max=2,
    )
    story = record_documents(texts, OrderingMonitor(FileGeometry()))
    report.problems += [str(failure) for failure in campaign.check(story).failures]
    return campaign.tally


def _save(failure: Failure, story: Story, folder: Path, number: int) -> None:
    case = case_of(
        failure.state,
        failure.finding,
        story.model,
        path=story.path,
        workload=failure.workload,
    )
    (folder / f"{number:04}.case").write_bytes(encode_case(case))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the crash test from the command line; the exit code is 1 where something broke."""
    parser = argparse.ArgumentParser(description="Try the crash states of small programs.")
    parser.add_argument("--length", type=int, default=2, help="operations in a row (default 2)")
    parser.add_argument(
        "--full",
        action="store_true",
        help="all states of an epoch of at most 4,096, else 4,096 samples and the structured set",
    )
    parser.add_argument("--seconds", type=float, help="take up no new story after this time")
    parser.add_argument("--seed", type=int, default=0, help="of all sampled choices")
    parser.add_argument("--cases", type=Path, help="folder for case files of failures")
    parser.add_argument(
        "--schedules",
        type=lambda text: None if text == "all" else int(text),
        default=60,
        help="schedules of each meeting of processes, or all (default 60)",
    )
    parser.add_argument("--preemptions", type=int, default=1, help="most preemptions of a schedule")
    parser.add_argument("--jobs", type=int, default=1, help="meetings explored at a time")
    parser.add_argument("--plants", action="store_true", help="plant every bug instead")
    options = parser.parse_args(arguments)
    write = sys.stdout.write
    if options.plants:
        missed, started = 0, time.process_time()
        for plant in PLANTS:
            noticed = detect(plant)
            missed += noticed is None
            write(f"{plant.name}: {noticed or 'NOT NOTICED'}\n")
        seconds = time.process_time() - started
        write(f"{len(PLANTS) - missed} of {len(PLANTS)} noticed, in {seconds:.1f} s of processor\n")
        return 1 if missed else 0
    report = run(
        length=options.length,
        budget_seconds=options.seconds,
        full=options.full,
        seed=options.seed,
        cases=options.cases,
        schedules=options.schedules,
        preemptions=options.preemptions,
        jobs=options.jobs,
    )
    write(f"{report}\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
