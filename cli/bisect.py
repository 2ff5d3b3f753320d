"""The verb that finds the event that changed an answer: bisect."""

import os
import subprocess
from argparse import Namespace
from collections.abc import Callable
from typing import Final

from cerata.engine.errors import BisectFailed, InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.bisection import Bisection, Probe
from cerata.memory.frames.event_summary import act_of, describe, event_row
from cerata.memory.values.acts import credit
from cerata.memory.values.words import clipped
from cerata.memory.view import View
from cerata.projections.columnar.times import to_datetime

from .history import print_diff
from .html_pages import bisect_page
from .input_files import opened_input
from .output import Output
from .output_files import write_page
from .store_options import file_of, reading

_SKIP: Final = 125
"""The exit code that skips a point, as in git bisect."""

_ENDED: Final = 128
"""From here on an exit code is a signal's, so the search ends."""

_STDERR: Final = 2

_LOG_MAX: Final = 1 << 20
"""Bytes of a printed log: a search of any length prints fewer."""


def run_bisect(options: Namespace, output: Output) -> int:
    """Print the verdicts, then the event, its batch, and the changes of that event."""
    with reading(options) as store:
        result = store.bisect(
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
