"""The verbs of recorded runs: runs and rerun."""

from argparse import Namespace

from cerata.agents.activities.columns import ActivityKind
from cerata.agents.activities.reads import activities_at
from cerata.agents.activities.values import Activity, activities_of, calls_of, run_named
from cerata.agents.agent import Agent
from cerata.agents.code import function_named
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.words import clipped, counted

from .named_code import add_current_folder
from .output import Output
from .recall_comparison import run_comparison, run_recall_again
from .store_options import reading, view_of

STATUS_STYLES = {"open": "yellow", "done": "green", "failed": "red", "left": "yellow"}


def run_runs(options: Namespace, output: Output) -> int:
    """List the runs, newest first; with a run, its calls in order."""
    with reading(options) as store:
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        activities = activities_at(snapshot)
        if options.named is None:
            rows = activities.all_activities(ActivityKind.RUN, options.agent)
            calls = None
        else:
            row = run_named(snapshot, run_id_of(options.named), options.agent)
            rows = [row]
            calls = calls_of(snapshot, activities.calls(row.row))
        runs = activities_of(snapshot, reversed(rows))
        for activity in runs:
            _print_run(activity, output)
        for call in calls or ():
            output.line(f"  {clipped(str(call), 200)}")
        if not runs:
            output.line("No run is recorded.")
        values: list[JsonValue] = [activity.to_dict() for activity in runs]
        called: list[JsonValue] | None = None if calls is None else [c.to_dict() for c in calls]
        output.result({"basis": view.basis, "runs": values, "calls": called})
    return 0


def run_rerun(options: Namespace, output: Output) -> int:
    """Execute the function of a run again, or recorded recalls."""
    if options.what is None:
        return run_comparison(options, output)
    if options.what == "recall":
        return run_recall_again(options, output)
    if options.named is None or options.settings or options.compare:
        raise InvalidInput(
            "rerun run takes one run, and no --with or --compare",
            remedy="Pass 'rerun run RUN', or '--with FILE --compare' without a run.",
        )
    with reading(options) as store:
        snapshot = snapshot_of(view_of(store, options))
        row = run_named(snapshot, run_id_of(options.named), options.agent)
        function = None
        if options.function is not None:
            add_current_folder()
            function = function_named(options.function)
        rerun = Agent(store, row.agent).rerun(row.seq, function, live=options.live)
        for line in str(rerun).splitlines():
            indent = "  " if line.startswith("  ") else ""
            output.line(f"{indent}{clipped(line, 500)}")
        output.result({"file": store.path, **rerun.to_dict()})
    return 0 if rerun.outcome == "same" else 1


def run_id_of(text: str) -> str | int:
    """Return a run's id, or the seq of its start from ``#14``."""
    if not text.startswith("#"):
        return text
    if not text[1:].isdecimal() or len(text) > 20:
        raise InvalidInput(
            f"{text!r:.60} names no run", remedy="Pass its id, or the seq of its start as '#14'."
        )
    return int(text[1:])


def _print_run(activity: Activity, output: Output) -> None:
    error = f"  {activity.error}" if activity.error else ""
    output.row(
        (f"{f'#{activity.id}':>7}  ", "dim"),
        f"{activity.name}  {activity.agent} {activity.version}  ",
        (activity.status, STATUS_STYLES[activity.status]),
        f"  {counted(activity.calls, 'call')}",
        (f"  {activity.started:%Y-%m-%d %H:%M:%S} UTC", "dim"),
        error,
    )
