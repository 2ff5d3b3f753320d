"""The crash test of the engine as one command: the gate, the soak, or a share of them, counted.

``python -m tests.crash.report --change`` tries at least 250,000 crash states on all cores,
``--gate`` a million, ``--soak`` ten million. Leaves out the selection of tasks (`budgets`) and
their work (`tasks`).
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

from cerata.fault_injection.mutation.canary import Blind, canary
from cerata.fault_injection.stories.parallel import run_shards

from ..detection import Baselines, detect
from ..mutants import PLANTS
from ..operations import ALPHABET, EXTRA
from .budgets import FULL_PLAN, GATE, SCALES, Scale, having_one_of, meetings, tasks
from .tasks import PARTS, Result, Task, work

_RUNS = count()

TITLES = {
    "log": "short and longer stories of the log, recovered for writing",
    "judged": "a share of them opened for reading",
    "store": "stories of whole stores, recovered and checked in full",
    "runs": "stories of agents, whose runs are executed again after each recovery",
    "talks": "stories of conversations, whose contexts are made again after each recovery",
    "lying": "a share of them on a disk whose syncs lie",
    "rot": "a share of their crash states with one fault of a living disk",
    "failing": "a share of them with a sync that fails",
    "documents": "documents of several batches, remembered again",
    "operations": "three operations of two writers and a reader, all interleaved",
    "lives": "whole lives of processes, interleaved",
    "damage": "bytes that were zeroed, flipped, or belong elsewhere",
}


@dataclass(slots=True)
class Report:
    """The counts and findings of a run. ``problems`` are sentences; empty if every rule held."""

    parts: dict[str, Result] = field(default_factory=dict[str, Result])
    problems: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    jobs: int = 1
    tasks: int = 0
    """How many tasks the scale has; ``done`` excludes tasks that the time limit left out."""
    done: int = 0

    @property
    def states(self) -> int:
        return sum(part.tally.states for part in self.parts.values())

    def add(self, result: Result) -> None:
        """Add the result of one task."""
        self.done += 1
        self.parts.setdefault(result.part, Result(result.part)).add(result)
        self.problems += result.problems

    def to_dict(self) -> dict[str, object]:
        """Return the counts as plain values, as ``--json`` prints them."""
        return {
            "states": self.states,
            "violations": len(self.problems),
            "seconds": round(self.seconds, 1),
            "jobs": self.jobs,
            "tasks": self.tasks,
            "tasks_done": self.done,
            "states_per_second": round(self.states / self.seconds) if self.seconds else 0,
            "parts": {name: part.to_dict() for name, part in self.parts.items()},
            "problems": self.problems,
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for name, part in self.parts.items():
            lines.append(TITLES[name])
            lines += [
                f"{count:>14,}  {key.replace('_', ' ')}"
                for key, count in part.to_dict().items()
                if count
            ]
        rate = self.states / self.seconds if self.seconds else 0
        left = self.tasks - self.done
        lines.append(
            f"{self.states:,} crash states in {self.seconds:,.0f} s on {self.jobs} cores"
            f" ({rate:,.0f} a second), {len(self.problems)} violations"
            + (f"; {left} of {self.tasks} tasks left out for lack of time" if left else "")
        )
        lines += [f"  - {problem}" for problem in self.problems]
        return "\n".join(lines)


def run(
    scale: Scale,
    *,
    seed: int = 0,
    jobs: int = 1,
    cases: Path | None = None,
    only: str | None = None,
    having: Collection[str] = (),
    budget_seconds: float | None = None,
    progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Run a scale and return its report.

    Args:
        scale: how much is tried.
        seed: seed of everything that is sampled.
        jobs: processes at a time.
        cases: a folder for the case files of failures; None writes none.
        only: the name of the only part to run; None runs all.
        having: run only the stories and meetings with one of these operations; empty runs all.
        budget_seconds: wall time after which no new task begins.
        progress: called with the report after each task.
    """
    started = time.perf_counter()
    report = Report(jobs=jobs)
    try:
        canary()
    except Blind as error:
        report.problems.append(str(error))
    folder = None if cases is None else str(cases)
    planned = partial(_planned, scale, seed, folder, only, having, next(_RUNS))
    report.tasks = len(planned())
    deadline = None if budget_seconds is None else started + budget_seconds
    for result in run_shards(work, planned, jobs=jobs, deadline=deadline):
        report.add(result)
        report.seconds = time.perf_counter() - started
        progress(report)
    return report


def _planned(
    scale: Scale,
    seed: int,
    cases: str | None,
    only: str | None,
    having: Collection[str],
    number: int,
) -> Sequence[Task]:
    candidates = meetings(scale) if only == "meeting" else tasks(scale, seed)
    chosen = (
        (having_one_of(task, having) if having else task)
        for task in candidates
        if only in (None, task.part)
    )
    return [replace(task, cases=cases, run=number) for task in chosen if task is not None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the crash test from the command line; the exit code is 1 if a rule was broken."""
    parser = argparse.ArgumentParser(description="Try the crash states of small programs.")
    which = parser.add_mutually_exclusive_group()
    for name, scale in SCALES.items():
        text = f"all sequences of up to {scale.length} operations, from {len(scale.starts)} set-ups"
        which.add_argument(f"--{name}", dest="scale", action="store_const", const=name, help=text)
    which.add_argument("--plants", action="store_true", help="plant every bug instead")
    parser.add_argument("--only", choices=tuple(PARTS))
    parser.add_argument(
        "--having",
        nargs="+",
        default=(),
        choices=(*ALPHABET, *EXTRA),
        metavar="OPERATION",
        help="only stories with one of these operations, such as compact and prune",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of all sampled choices")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--cases", type=Path, help="folder for case files of failures")
    parser.add_argument("--seconds", type=float, help="begin no new task after this time")
    parser.add_argument(
        "--states", type=int, default=0, help="fail below this number of crash states"
    )
    parser.add_argument(
        "--schedules",
        type=lambda text: None if text == "all" else int(text),
        help="schedules of each meeting of processes, or all",
        default=-1,
    )
    parser.add_argument("--preemptions", type=int, help="most preemptions of a schedule")
    parser.add_argument("--quiet", action="store_true", help="print no line for each task")
    options = parser.parse_args(arguments)
    if options.plants:
        return _plants()
    scale = SCALES[options.scale or GATE.name]
    if options.schedules != -1:
        scale = replace(scale, schedules=options.schedules)
    if options.preemptions is not None:
        # A run with more schedules tries all of their states, too.
        scale = replace(scale, preemptions=options.preemptions, meeting_plan=FULL_PLAN)
    report = run(
        scale,
        seed=options.seed,
        jobs=options.jobs,
        cases=options.cases,
        only=options.only,
        having=options.having,
        budget_seconds=options.seconds,
        progress=(lambda _: None) if options.quiet else _print_progress,
    )
    sys.stdout.write(f"{report}\n")
    if report.states < options.states:
        sys.stdout.write(f"fewer than {options.states:,} crash states\n")
        return 1
    return 1 if report.problems else 0


def _print_progress(report: Report) -> None:
    sys.stderr.write(f"{report.seconds:8.0f} s {report.states:12,} {len(report.problems)}\n")


def _plants() -> int:
    missed = 0
    started = time.process_time()
    baselines: Baselines = {}
    for plant in PLANTS:
        noticed = detect(plant, baselines)
        missed += noticed is None
        sys.stdout.write(f"{plant.name}: {noticed or 'NOT NOTICED'}\n")
    seconds = time.process_time() - started
    noticed_count = len(PLANTS) - missed
    sys.stdout.write(
        f"{noticed_count} of {len(PLANTS)} noticed, in {seconds:.1f} s of processor time\n"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
