"""The verbs of points of the log: bisect and fork."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import BisectFailed, InvalidInput
from cerata.engine.late import late
from cerata.engine.verbs import ACTOR, Arg, Option, Verb

from .files import bisect_page, opened_input, write_page
from .history import print_diff
from .options import changing, file_of, reading, scope_of
from .shared_options import HTML
from .verbs import packs_named

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from cerata.engine.events import JsonValue
    from cerata.memory import store as memory_store
    from cerata.memory.bisection import Bisection, Probe
    from cerata.memory.store import Store
    from cerata.memory.values import options as value_options
    from cerata.memory.view import View

    from .output import Output
else:
    memory_store = late("cerata.memory.store")
    value_options = late("cerata.memory.values.options")

VERBS: Final = (
    Verb(
        "bisect",
        "time",
        "find the first event that changed an answer",
        "cerata.cli.points:run_bisect",
        (
            Option("--query TEXT", "the memory is good by its answer to this"),
            Option("--expect TEXT", "with --query: good if the context has this text"),
            Option("--forbid TEXT", "with --query: good if the context lacks this text"),
            Option(
                "--run COMMAND",
                "good by the exit code of a shell command: 0 good, 125 skip, other bad; it has "
                "$CERATA_FILE and $CERATA_BASIS",
                dest="command",
            ),
            Option("--good BASIS", "a good point (0: empty)", default="0"),
            Option("--bad BASIS", "a later bad point (HEAD)", default="HEAD"),
            Option("--batches", "test only the ends of batches"),
            Option(
                "--checks N",
                "further tests on each side, to see that the answer changes once (0)",
                type=int,
                default=0,
            ),
            Option("--resume FILE", "take the verdicts of a printed log over"),
            HTML,
        ),
        (
            "--query 'which index?' --expect Annoy",
            "--query 'who pays?' --forbid anna --good v1 --bad HEAD~9",
            "--run './check.sh' --good HEAD~100 | tee bisect.log",
            "--run './check.sh' --good HEAD~100 --resume bisect.log",
        ),
        page="bisect.md",
    ),
    Verb(
        "fork",
        "time",
        "continue a memory from a point in a new file",
        "cerata.cli.points:run_fork",
        (
            Arg("to", "path of the new file", "?", metavar="NEW"),
            Option("--at BASIS", "the end of a batch (HEAD)", default="HEAD"),
            Option("--compare FORK", "print the changes on both sides since the common event"),
            Option("--apply FORK", "print the events of a fork as drafts, one JSON a line"),
            Option("--yes", "with --apply: append them, as one batch"),
            ACTOR,
        ),
        (
            "try-it.cera",
            "before-march.cera --at 2026-03-01",
            "--compare try-it.cera",
            "--apply try-it.cera --yes",
        ),
        page="forks.md",
    ),
)

_SKIP: Final = 125
"""The exit code that skips a point, as in git bisect."""

_ENDED: Final = 128
"""From here on an exit code is a signal's, so the search ends."""

_STDERR: Final = 2

_LOG_MAX: Final = 1 << 20
"""Bytes of a printed log: a search of any length prints fewer."""


def run_bisect(options: Namespace, output: Output) -> int:
    """Print the verdicts, then the event, its batch, and the changes of that event."""
    from cerata.engine.words import clipped
    from cerata.memory.frames.event_summary import event_row

    with reading(options) as store:
        result = store.history.bisect(
            _test_of(options),
            good=options.good,
            bad=options.bad,
            by="batch" if options.batches else "event",
            known=_known(options.resume),
            checks=options.checks,
            progress=lambda probe: _print_probe(probe, output),
        )
        answers: dict[str, JsonValue] = {"before": None, "after": None}
        if options.query is not None:
            answers = {
                "before": _answer(store.at(result.good), options),
                "after": _answer(store.at(result.seq), options),
            }
        _print_event(result, output)
        for label, answer in answers.items():
            if options.query is not None:
                output.field(f"  {label:<8}", clipped(str(answer or "(nothing)"), 500), lines=3)
        # A part of a batch is no state that a writer meant.
        diff = store.diff(result.first - 1, result.last)
        output.line()
        print_diff(diff, output)
        event = None if result.event is None else event_row(result.event)
        changes = {**diff.to_dict(), "summary": diff.summary}
        report: dict[str, JsonValue] = {**result.to_dict(), "event": event, **answers}
        report["diff"] = changes
        if options.html is not None:
            texts = [(label, str(text or "(nothing)")) for label, text in answers.items()]
            page = bisect_page(result, texts if options.query is not None else [], diff)
            write_page(options.html, page, file_of(options))
            output.line(f"page: {options.html}", style="dim")
            report["html"] = options.html
        output.result(report)
    return 0


def _test_of(options: Namespace) -> Callable[[View], bool | None]:
    if (options.query is None) == (options.command is None):
        raise InvalidInput(
            "bisect takes one test, --query or --run",
            remedy="Pass --query TEXT with --expect or --forbid, or --run COMMAND.",
        )
    query, expected, forbidden = options.query, options.expect, options.forbid
    if query is None:
        if expected is not None or forbidden is not None:
            raise InvalidInput(
                "--expect and --forbid belong to --query", remedy="Remove them, or pass --query."
            )
        return lambda view: _exit_verdict(options, view.basis)
    if (expected is None) == (forbidden is None):
        raise InvalidInput(
            "--query takes one of --expect and --forbid",
            remedy="Pass the text that a good answer has, or lacks.",
        )
    sought = _sought(options)
    return lambda view: (sought in view.recall(query).text.casefold()) is (forbidden is None)


def _exit_verdict(options: Namespace, basis: int) -> bool | None:
    """Return the verdict of the shell command at a basis, by its exit code."""
    import subprocess

    environment = {
        **os.environ,
        "CERATA_FILE": os.path.abspath(file_of(options)),
        "CERATA_BASIS": str(basis),
    }
    # Its output goes to standard error: standard output has the verdicts, or one JSON object.
    words = ["/bin/sh", "-c", options.command]
    ended = subprocess.run(words, check=False, env=environment, stdout=_STDERR)
    if ended.returncode < 0 or ended.returncode >= _ENDED:
        raise BisectFailed(
            f"The command ended with exit code {ended.returncode}, that of a signal",
            where=f"at event {basis:,}",
            remedy="Return 0 for good, 1 to 127 for bad, and 125 to skip.",
        )
    return None if ended.returncode == _SKIP else ended.returncode == 0


def _known(name: str | None) -> str:
    if name is None:
        return ""
    with opened_input(name, "Pass the printed lines of an earlier search.") as (file, _):
        return file.read(_LOG_MAX).decode("utf-8", "replace")


def _answer(view: View, options: Namespace) -> str | None:
    """Return the first line of a context with the sought text, else the best entry, or None."""
    context = view.recall(options.query)
    sought = _sought(options)
    lines = [line for line in context.text.splitlines() if sought in line.casefold()]
    best = [view.frame(item.id).text for item in context.items[:1]]
    return next(iter((*lines, *best)), None)


def _sought(options: Namespace) -> str:
    text: str = options.expect if options.forbid is None else options.forbid
    return text.casefold()


def _print_probe(probe: Probe, output: Output) -> None:
    style = {"good": "green", "bad": "red"}.get(probe.verdict, "yellow")
    output.row((f"{probe.verdict:<4}", style), f" #{probe.basis}", (f"  {probe.left} left", "dim"))


def _print_event(result: Bisection, output: Output) -> None:
    from cerata.engine.words import clipped
    from cerata.memory.frames.event_summary import act_of, describe
    from cerata.memory.values.acts import credit
    from cerata.projections.columnar.times import to_datetime

    batch = f"{result.first}..{result.last}" if result.last > result.first else f"{result.first}"
    output.line()
    output.row(("first bad event ", "bold"), (f"#{result.seq}", "yellow"), f" of batch {batch}")
    event = result.event
    if event is None:
        output.row("  an event outside the scope")
        return
    output.row(
        f"  {act_of(event.type)}  {clipped(describe(event), 200)}",
        (f"  {to_datetime(event.recorded):%Y-%m-%d %H:%M:%S} UTC", "dim"),
    )
    if text := credit(event.actor, event.reason):
        output.row((f"  {text}", "dim"))


def run_fork(options: Namespace, output: Output) -> int:
    """Write a fork, compare with one, or apply one."""
    if sum(value is not None for value in (options.to, options.compare, options.apply)) != 1:
        raise InvalidInput(
            "fork takes one of NEW, --compare FORK and --apply FORK",
            remedy="Pass the path of a new file, or of a fork with one of the two options.",
        )
    if options.yes and options.apply is None:
        raise InvalidInput("--yes belongs to --apply", remedy="Remove it, or pass --apply FORK.")
    if options.to is not None:
        return _fork(options, output)
    if options.compare is not None:
        return _compare(options, output)
    return _apply(options, output)


def _fork(options: Namespace, output: Output) -> int:
    with (
        reading(options) as store,
        output.progress("forking", 0) as steps,
        store.upkeep.fork(options.at, options.to, progress=steps.stand) as fork,
    ):
        branch = fork.upkeep.branches()[-1]
        output.line(f"{options.to} continues {store.path} from event {branch.parent:,}")
        output.line(f"branch {branch.id.hex()}", style="dim")
        output.result({"file": store.path, "to": options.to, "branch": branch.to_dict()})
    return 0


def _compare(options: Namespace, output: Output) -> int:
    with reading(options) as store, _other(options, options.compare) as fork:
        diff = store.history.compare(fork)
        for name, side in ((store.path, diff.here), (fork.path, diff.there)):
            output.line(f"{name} since event {diff.point:,}", style="bold")
            print_diff(side, output)
            output.line()
        here, there = (
            {**side.to_dict(), "summary": side.summary} for side in (diff.here, diff.there)
        )
        output.result(
            {
                "file": store.path,
                "fork": fork.path,
                "point": diff.point,
                "here": here,
                "there": there,
            }
        )
    return 0


def _apply(options: Namespace, output: Output) -> int:
    import msgspec

    from cerata.engine.words import counted

    opened = changing(options, output) if options.yes else reading(options)
    with opened as store, _other(options, options.apply) as fork:
        drafts = fork.upkeep.drafts_after(store)
        rows = [draft.to_dict() for draft in drafts]
        answer: dict[str, JsonValue] = {"file": store.path, "fork": fork.path, "drafts": [*rows]}
        if not options.yes:
            for row in rows:
                output.line(msgspec.json.encode(row).decode())
            output.result({**answer, "appended": None})
            return 0
        receipt = store.upkeep.apply(fork)
        done = "appended" if receipt.added else "were appended before"
        output.line(f"{counted(len(drafts), 'event')} of {fork.path} {done}")
        output.result({**answer, "appended": [*receipt.seqs] if receipt.added else []})
    return 0


def _other(options: Namespace, path: str) -> Store:
    return memory_store.open_store(
        path,
        mode="r",
        scope=scope_of(options),
        environment=options.environment,
        packs=packs_named(options.pack),
        options=value_options.OpenOptions(shared=options.shared, lock_timeout=options.lock_timeout),
    )
