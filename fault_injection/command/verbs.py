"""crash-test: crash a workload's stories in every way, on all cores, and report broken rules."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.packs import seconds

from .pack import BUDGET_S, CASES

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from cerata.cli.output import Output
    from cerata.fault_injection.crash_test import CrashReport, Violation
    from cerata.fault_injection.stories.workload import Workload


def budget(text: str) -> float:
    """Return the seconds of a test, more than 0."""
    value = seconds(text)
    if value == 0:
        raise ValueError
    return value


def count(text: str) -> int:
    """Return a number, 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def python_files(prefix: str, **_: object) -> list[str]:
    """Return the files of programs that a shell completes."""
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.py"))]


def saved_cases(prefix: str, **_: object) -> list[str]:
    """Return the saved cases that a shell completes."""
    return [str(path) for path in sorted(Path().glob(f"{prefix or CASES + '/'}*.case"))]


_VIOLATIONS_SHOWN: Final = 3
_INTERRUPTED: Final = 130

_MEANINGS: Final[Mapping[str, str]] = {
    "O1": "An acknowledged event is lost",
    "O2": "The recovered events are no prefix of the history",
    "O3": "A batch was recovered in part",
    "O4": "Damage was accepted as data, or lost silently",
    "O5": "A legal crash does not open again",
    "O6": "The hashes are not those of the events",
    "O7": "Recovery is not deterministic",
    "O8": "An event that a reader saw is lost",
    "O9": "A past state reads differently",
    "O10": "A projection differs from its events",
    "O14": "Opening takes too long",
    "O15": "The recovered file rejects writes",
    "check": "The workload's check failed",
    "story": "An operation raised before any crash",
}
"""The meaning of each broken rule of the oracle."""


def run_crash_test(options: Namespace, output: Output) -> int:
    """Crash a workload until the time is up; 1 if a rule was broken."""
    # Imported here: no other verb needs the crash simulator.
    from cerata.fault_injection.mutation.canary import canary
    from cerata.fault_injection.stories.workload import load_workload

    file: str | None = options.workload
    kind = _built_in() if file is None else load_workload(file)
    if options.replay is not None:
        return _replay(kind, options, output)
    name = kind.__name__ + ("" if file is None else f" ({file})")
    output.parts(("Crash test of ", "bold"), (name, "bold cyan"), (".", "bold"))
    special, common = _alphabet(kind)
    output.paragraph(
        f"Operations of its stories: {', '.join(special)}; and {', '.join(common)}.",
        indent=0,
        lines=3,
    )
    noticed = canary()
    report, was_interrupted = _tested(kind if file is None else file, options, output)
    violations = _first_of_each(report)
    _print_counts(report, options, output)
    replays = [_replay_command(options, violation) for violation in violations]
    for number, (violation, replay) in enumerate(zip(violations, replays, strict=True), start=1):
        if number <= _VIOLATIONS_SHOWN:
            _print_violation(number, violation, replay, output)
    _print_verdict(report, violations, output, was_interrupted=was_interrupted)
    output.result(
        {
            **report.to_dict(),
            "workload": kind.__name__,
            "operations": [*special, *common],
            "seed": options.seed,
            "canary": noticed,
            "replay": [command for command in replays if command],
        }
    )
    if was_interrupted:
        return _INTERRUPTED
    return 1 if report.violations else 0


def _built_in() -> type[Workload]:
    from cerata.fault_injection.stories.agent import Agent

    return Agent


def _alphabet(kind: type[Workload]) -> tuple[list[str], list[str]]:
    """Return the names of a workload's operations, and of the operations of all workloads."""
    from cerata.fault_injection.stories.workload import COMMON

    names = list(kind().alphabet())
    special = [name for name in names if name not in COMMON]
    if not special:
        raise InvalidInput(
            f"The workload {kind.__name__} has no operations",
            remedy="Mark the methods that write with @operation.",
        )
    return special, [name for name in names if name in COMMON]


def _tested(
    workload: type[Workload] | str, options: Namespace, output: Output
) -> tuple[CrashReport, bool]:
    """Run the crash test under a bar; return the report, and whether the user interrupted."""
    from cerata.fault_injection.crash_test import CrashReport, crash_test

    budget = options.budget or (BUDGET_S if options.stories is None else float("inf"))
    total = options.stories or max(1, round(budget))
    folder = Path(options.cases)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    latest = CrashReport()
    started = time.monotonic()
    interrupted = False
    with output.progress("starting", total) as steps:

        def show(report: CrashReport) -> None:
            nonlocal latest
            latest = report
            at = report.stories if options.stories else min(total, round(report.seconds))
            unit = "stories" if options.stories else "seconds"
            steps.stand(f"{_so_far(report)}; {unit}", at, total)

        try:
            latest = crash_test(
                workload,
                budget_seconds=budget,
                jobs=options.jobs,
                seed=options.seed,
                stories_max=options.stories,
                cases=folder,
                progress=show,
            )
        except KeyboardInterrupt:
            interrupted = True
            latest.seconds = time.monotonic() - started
    if is_new and not any(folder.iterdir()):
        folder.rmdir()
    return latest, interrupted


def _so_far(report: CrashReport) -> str:
    from cerata.engine.words import counted

    broken = counted(len(report.violations), "violation") if report.violations else "no violation"
    return f"{report.states:,} crash states, {broken}"


def _first_of_each(report: CrashReport) -> list[Violation]:
    """Return one violation of each kind, with its shortest story: one bug breaks many states."""
    shortest: dict[tuple[str, str], Violation] = {}
    for violation in sorted(report.violations, key=lambda violation: len(violation.operations)):
        shortest.setdefault((violation.rule, violation.what), violation)
    return list(shortest.values())


def _print_counts(report: CrashReport, options: Namespace, output: Output) -> None:
    from cerata.engine.words import counted

    jobs = options.jobs or os.cpu_count() or 1
    cores = "one core" if jobs == 1 else f"{jobs} cores"
    rows = (
        (report.stories, "stories", f"of at most {counted(report.longest, 'operation')}"),
        (report.states, "crash states", f"in {report.seconds:.1f} s on {cores}"),
        (report.distinct, "images", "distinct contents of the disk"),
        (report.recovered, "recoveries", "other images differ only in unread bytes"),
        (report.questioned, "memories", "distinct, checked, and compared with a replay"),
        (1, "canary", "a planted bug that was detected"),
    )
    output.line()
    for count, label, more in rows:
        output.row((f"{count:>12,}  ", "bold"), f"{label:<14}", (more, "dim"))


def _print_violation(number: int, violation: Violation, replay: str, output: Output) -> None:
    rule = f" ({violation.rule})" if violation.rule.startswith("O") else ""
    meaning = _MEANINGS.get(violation.rule, "A rule was broken")
    output.line()
    output.parts((f"{number}. {meaning}{rule}", "bold red"))
    rows = (
        ("story", ", ".join(violation.operations)),
        ("fault", violation.what),
        ("crash", violation.crash or violation.choices),
        ("replay", replay),
    )
    for label, value in rows:
        if value:
            # Users copy the command: never break or cut it.
            output.field(f"   {label:<8}", value, lines=None if label == "replay" else 4)


def _print_verdict(
    report: CrashReport, violations: list[Violation], output: Output, *, was_interrupted: bool
) -> None:
    from cerata.engine.words import counted

    output.line()
    more = len(violations) - _VIOLATIONS_SHOWN
    if more > 0:
        output.line(f"{counted(more, 'kind')} more; --json lists every violation.", style="dim")
    if was_interrupted:
        output.warn("interrupted; the counts are incomplete")
    states = f"{report.states:,} crash states"
    if report.violations:
        broken = counted(len(report.violations), "violation")
        output.parts((broken, "bold red"), f" in {states}.")
    else:
        rate = f"{report.states_per_second:,.0f} a second"
        output.parts(("ok: ", "bold green"), f"{states}, {rate}: nothing lost or torn.")


# --- replay --------------------------------------------------------------------------------------


def _replay_command(options: Namespace, violation: Violation) -> str:
    """Return the command that shows a violation again; empty without a saved state."""
    import shlex

    if violation.case is None:
        return ""
    words = ["cerata", "admin", "crash-test", *([options.workload] if options.workload else [])]
    return shlex.join([*words, "--replay", violation.case])


def _replay(kind: type[Workload], options: Namespace, output: Output) -> int:
    """Open a saved crash state again, then crash its story again; 1 if that breaks a rule."""
    from cerata.engine.words import counted
    from cerata.fault_injection.cases import decode_case
    from cerata.fault_injection.crash_test import crash_test, replay
    from cerata.memory.ingest.document import open_regular

    try:
        with open_regular(Path(options.replay)) as file:
            case = decode_case(file.read())
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"The case cannot be read: {error}",
            where=options.replay,
            remedy="Pass a .case file that a crash test of this version saved.",
        ) from error
    started = time.perf_counter()
    saved = replay(kind, case)
    story = tuple(case.operations)
    again = crash_test(kind, stories=[story], jobs=1, seed=options.seed)
    if saved is None:
        verdict = f"The saved crash opens correctly. It was {case.rule}: {case.what}"
    elif again.violations:
        verdict = f"The saved crash fails as before: {saved.rule}: {saved.what}"
    else:
        verdict = f"The saved crash still fails, and a new run does not: {saved.what}"
    output.notice(f"{verdict}.")
    for number, violation in enumerate(_first_of_each(again)[:_VIOLATIONS_SHOWN], start=1):
        _print_violation(number, violation, "", output)
    # A failed check of an old image is a fault of the old program, not of the present program.
    broken = bool(again.violations) or (saved is not None and saved.rule != "check")
    output.line()
    states = f"{again.states:,} crash states of {' '.join(story)}, run again"
    if again.violations:
        count = counted(len(again.violations), "violation")
        output.parts((count, "bold red"), f" in {states}.")
    else:
        output.parts(("ok: ", "bold green"), f"{states}: nothing lost or torn.")
    output.result(
        {
            "case": options.replay,
            "workload": kind.__name__,
            "story": list(story),
            "broken": broken,
            "rule": None if saved is None else saved.rule,
            "what": None if saved is None else saved.what,
            "states": again.states,
            "violations": len(again.violations),
            "seconds": round(time.perf_counter() - started, 3),
        }
    )
    return 1 if broken else 0
