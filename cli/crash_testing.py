"""crash-test: a workload's stories, crashed in every way on all cores, and what came of it."""

import argparse
import os
import shlex
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from cerata.engine.errors import InvalidInput
from cerata.memory.ingest import open_regular

from .output import Output, counted
from .parser import Adding, add_verb, seconds

if TYPE_CHECKING:
    from cerata.fault_injection.crash_test import CrashReport, Violation
    from cerata.fault_injection.workload import Workload

_CASES: Final = "crash-cases"
_VIOLATIONS_SHOWN: Final = 3
_BUDGET: Final = 60.0
_INTERRUPTED: Final = 130

_MEANINGS: Final[Mapping[str, str]] = {
    "O1": "Something that was acknowledged is lost",
    "O2": "What was recovered is not how the history begins",
    "O3": "A batch was recovered in part",
    "O4": "Damage was taken for data, or lost in silence",
    "O5": "A legal crash does not open again",
    "O6": "The hashes are not those of the events",
    "O7": "Recovery does not do the same each time",
    "O8": "Something that a reader was shown is lost",
    "O9": "The past reads otherwise than it was",
    "O10": "A projection is not what its events give",
    "O14": "Opening takes longer than it may",
    "O15": "What was recovered cannot be written to",
    "check": "The workload's own check failed",
    "story": "An operation raised, before anything crashed",
}
"""What each rule of the oracle means where it is broken."""


def add_verbs(adding: Adding) -> None:
    """Add crash-test."""
    test = add_verb(
        adding,
        "crash-test",
        "crash a program of yours in every way, and see what is left",
        run_crash_test,
        examples=(
            "crash-test --budget 30",
            "crash-test shop.py --budget 60",
            "crash-test shop.py --stories 200 --json | jq .violations",
            "crash-test shop.py --replay crash-cases/sell.1.case",
        ),
    )
    named = test.add_argument(
        "workload",
        nargs="?",
        metavar="WORKLOAD.py",
        help="a file with one Workload class; without it, an agent's memory",
    )
    named.completer = _python_files  # type: ignore[attr-defined]
    test.add_argument(
        "--budget", type=_budget, metavar="SECONDS", help=f"how long to look ({_BUDGET:.0f})"
    )
    test.add_argument(
        "--stories",
        type=_count,
        metavar="COUNT",
        help="so many stories, however long it takes: the same counts each time",
    )
    test.add_argument(
        "--jobs", type=_count, metavar="N", help="processes at work (one for each core)"
    )
    test.add_argument("--seed", type=int, default=0, metavar="N", help="of all chance (0)")
    test.add_argument(
        "--cases", metavar="FOLDER", default=_CASES, help=f"where violations are saved ({_CASES})"
    )
    replay = test.add_argument(
        "--replay", metavar="CASE", help="open a saved crash again, and crash its story anew"
    )
    replay.completer = _cases  # type: ignore[attr-defined]


def _budget(text: str) -> float:
    value = seconds(text)
    if value == 0:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def _python_files(prefix: str, **_: object) -> list[str]:
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.py"))]


def _cases(prefix: str, **_: object) -> list[str]:
    return [str(path) for path in sorted(Path().glob(f"{prefix or _CASES + '/'}*.case"))]


def run_crash_test(options: Namespace, output: Output) -> int:
    """Crash a workload until the time is up; 1 where a rule was broken."""
    # The whole crash simulator: no other verb needs it.
    from cerata.fault_injection.detectors import canary
    from cerata.fault_injection.workload import load_workload

    file: str | None = options.workload
    kind = _built_in() if file is None else load_workload(file)
    if options.replay is not None:
        return _replay(kind, options, output)
    name = kind.__name__ + ("" if file is None else f" ({file})")
    output.line(Text.assemble(("Crash test of ", "bold"), (name, "bold cyan"), (".", "bold")))
    own, common = _alphabet(kind)
    output.paragraph(
        Text(f"Its stories are made of {', '.join(own)}; and {', '.join(common)}."),
        indent=0,
        lines=3,
    )
    noticed = canary()
    report, was_interrupted = _tested(kind if file is None else file, options, output)
    violations = _first_of_each(report)
    _print_counts(report, options, output)
    replays = [_replay_command(options, one) for one in violations]
    for number, (violation, replay) in enumerate(zip(violations, replays, strict=True), start=1):
        if number <= _VIOLATIONS_SHOWN:
            _print_violation(number, violation, replay, output)
    _print_verdict(report, violations, output, was_interrupted=was_interrupted)
    output.result(
        {
            **report.to_dict(),
            "workload": kind.__name__,
            "operations": [*own, *common],
            "seed": options.seed,
            "canary": noticed,
            "replay": [one for one in replays if one],
        }
    )
    if was_interrupted:
        return _INTERRUPTED
    return 1 if report.violations else 0


def _built_in() -> "type[Workload]":
    from cerata.fault_injection.agent import Agent

    return Agent


def _alphabet(kind: "type[Workload]") -> tuple[list[str], list[str]]:
    """Return the names of a workload's own operations, and of those that every one has."""
    from cerata.fault_injection.workload import COMMON

    every = list(kind().alphabet())
    own = [name for name in every if name not in COMMON]
    if not own:
        raise InvalidInput(
            f"The workload {kind.__name__} has no operations",
            remedy="Mark the methods that write with @operation.",
        )
    return own, [name for name in every if name in COMMON]


def _tested(
    workload: "type[Workload] | str", options: Namespace, output: Output
) -> "tuple[CrashReport, bool]":
    """Run the crash test under a bar; with it, whether the user ended it."""
    from cerata.fault_injection.crash_test import CrashReport, crash_test

    budget = options.budget or (_BUDGET if options.stories is None else float("inf"))
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


def _so_far(report: "CrashReport") -> str:
    broken = counted(len(report.violations), "violation") if report.violations else "no violation"
    return f"{report.states:,} crash states, {broken}"


def _first_of_each(report: "CrashReport") -> "list[Violation]":
    """Return one violation of each kind, by its shortest story: one bug breaks many states."""
    found: dict[tuple[str, str], Violation] = {}
    for one in sorted(report.violations, key=lambda one: len(one.operations)):
        found.setdefault((one.rule, one.what), one)
    return list(found.values())


def _print_counts(report: "CrashReport", options: Namespace, output: Output) -> None:
    jobs = options.jobs or os.cpu_count() or 1
    cores = "one core" if jobs == 1 else f"{jobs} cores"
    rows = (
        (report.stories, "stories", f"of at most {counted(report.longest, 'operation')}"),
        (report.states, "crash states", f"in {report.seconds:.1f} s on {cores}"),
        (report.distinct, "images", "of the disk that differ"),
        (report.recovered, "recoveries", "the other images are alike in all that is read"),
        (report.questioned, "memories", "that differ: checked, and held against a replay"),
        (1, "canary", "a bug was planted first, and noticed"),
    )
    output.line()
    for count, what, more in rows:
        output.row((f"{count:>12,}  ", "bold"), f"{what:<14}", (more, "dim"))


def _print_violation(number: int, one: "Violation", replay: str, output: Output) -> None:
    rule = f" ({one.rule})" if one.rule.startswith("O") else ""
    meaning = _MEANINGS.get(one.rule, "A rule was broken")
    output.line()
    output.line(Text.assemble((f"{number}. {meaning}{rule}", "bold red")))
    rows = (
        ("story", ", ".join(one.operations)),
        ("said", one.what),
        ("crash", one.crash or one.choices),
        ("replay", replay),
    )
    for label, value in rows:
        if value:
            # A command is copied: it is never broken or cut.
            output.field(f"   {label:<8}", value, lines=None if label == "replay" else 4)


def _print_verdict(
    report: "CrashReport",
    violations: "list[Violation]",
    output: Output,
    *,
    was_interrupted: bool,
) -> None:
    output.line()
    more = len(violations) - _VIOLATIONS_SHOWN
    if more > 0:
        output.line(f"{counted(more, 'kind')} more; --json lists every violation.", style="dim")
    if was_interrupted:
        output.warn("interrupted; the counts are those so far")
    states = f"{report.states:,} crash states"
    if report.violations:
        broken = counted(len(report.violations), "violation")
        output.line(Text.assemble((broken, "bold red"), f" in {states}."))
    else:
        rate = f"{report.states_per_second:,.0f} a second"
        output.line(
            Text.assemble(("ok: ", "bold green"), f"{states}, {rate}: nothing lost or torn.")
        )


# --- replay --------------------------------------------------------------------------------------


def _replay_command(options: Namespace, one: "Violation") -> str:
    """Return what shows one violation again; nothing where no state was saved."""
    if one.case is None:
        return ""
    words = ["cerata", "crash-test", *([options.workload] if options.workload else [])]
    return shlex.join([*words, "--replay", one.case])


def _replay(kind: "type[Workload]", options: Namespace, output: Output) -> int:
    """Open a saved crash state once more, then crash its story anew; 1 where that is broken."""
    from cerata.fault_injection.cases import decode_case
    from cerata.fault_injection.crash_test import crash_test, replay

    try:
        with open_regular(Path(options.replay)) as file:
            case = decode_case(file.read())
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"The case cannot be read: {error}",
            where=options.replay,
            remedy="Name a .case file that a crash test of this version saved.",
        ) from error
    started = time.perf_counter()
    saved = replay(kind, case)
    story = tuple(case.operations)
    again = crash_test(kind, stories=[story], jobs=1, seed=options.seed)
    if saved is None:
        said = f"The saved crash opens as it must. It was {case.rule}: {case.what}"
    elif again.violations:
        said = f"The saved crash fails as before: {saved.rule}: {saved.what}"
    else:
        said = f"The saved crash holds what the program wrote then, and fails: {saved.what}"
    output.paragraph(Text(f"{said}."), indent=0, lines=4)
    for number, one in enumerate(_first_of_each(again)[:_VIOLATIONS_SHOWN], start=1):
        _print_violation(number, one, "", output)
    # What the workload's check says of an old image is about the old program, not about this one.
    broken = bool(again.violations) or (saved is not None and saved.rule != "check")
    output.line()
    states = f"{again.states:,} crash states of {' '.join(story)}, run anew"
    if again.violations:
        count = counted(len(again.violations), "violation")
        output.line(Text.assemble((count, "bold red"), f" in {states}."))
    else:
        output.line(Text.assemble(("ok: ", "bold green"), f"{states}: nothing lost or torn."))
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
