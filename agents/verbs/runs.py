"""The verbs of recorded runs: runs and refs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cerata.cli.options import check_goes_with, reading, view_of
from cerata.cli.verbs import add_current_folder
from cerata.engine.errors import InvalidInput

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.agents.activities.values import Activity
    from cerata.agents.agent import Agent
    from cerata.agents.spec import MemorySpec
    from cerata.cli.output import Output
    from cerata.engine.events import JsonValue
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.memory.store import Store


STATUS_STYLES = {"open": "yellow", "done": "green", "failed": "red", "left": "yellow"}


def run_runs(options: Namespace, output: Output) -> int:
    """List the runs, newest first; with a run, its calls in order; or execute it again."""
    from cerata.agents.activities.columns import ActivityKind
    from cerata.agents.activities.values import activities_of, calls_of, run_named
    from cerata.engine.words import clipped
    from cerata.memory.snapshot.reader import snapshot_of

    from ..activities.values import activities_at

    again = {"MODULE:FUNCTION": options.function, "--live": options.live}
    check_goes_with("--again", again, is_passed=options.again)
    if options.again:
        return _run_again(options, output)
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


def _run_again(options: Namespace, output: Output) -> int:
    """Execute the function of a run again."""
    from cerata.agents.activities.values import run_named
    from cerata.agents.agent import Agent
    from cerata.agents.code import function_named
    from cerata.engine.words import clipped
    from cerata.memory.snapshot.reader import snapshot_of

    if options.named is None:
        raise InvalidInput("--again needs a run", remedy="Pass the id of a run.")
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
    from cerata.engine.words import counted

    error = f"  {activity.error}" if activity.error else ""
    output.row(
        (f"{f'#{activity.id}':>7}  ", "dim"),
        f"{activity.name}  {activity.agent} {activity.version}  ",
        (activity.status, STATUS_STYLES[activity.status]),
        f"  {counted(activity.calls, 'call')}",
        (f"  {activity.started:%Y-%m-%d %H:%M:%S} UTC", "dim"),
        error,
    )


def run_refs(options: Namespace, output: Output) -> int:
    """List the results of a run, by reference, or print the value of one."""
    from cerata.agents.activities.values import run_named
    from cerata.engine.words import clipped
    from cerata.memory.snapshot.reader import snapshot_of

    if options.ref is not None:
        return _print_ref(options, output)
    with reading(options) as store:
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        row = run_named(snapshot, run_id_of(options.named), options.agent)
        agent = at_basis(agent_named(store, snapshot, row.agent), options)
        references = agent.refs(row.seq)
        for reference in references:
            output.row(
                (f"{f'#{reference.id}':>7}  ", "dim"),
                f"{reference.ref}  {clipped(reference.summary, 120)}",
            )
        if not references:
            output.line("The run has no results that references name.")
        if row.end is not None:
            output.line(
                f"The run ended in event {row.end:,}: its results are in --at {row.end - 1}."
            )
        values: list[JsonValue] = [reference.to_dict() for reference in references]
        output.result({"basis": view.basis, "run": row.name, "references": values})
    return 0


def _print_ref(options: Namespace, output: Output) -> int:
    """Print the value that a reference names, as JSON."""
    from cerata.agents.activities.values import run_named
    from cerata.memory.snapshot.reader import snapshot_of

    with reading(options) as store:
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        row = run_named(snapshot, run_id_of(options.named), options.agent)
        value = at_basis(agent_named(store, snapshot, row.agent), options).get(row.seq, options.ref)
        output.line(json.dumps(value, ensure_ascii=False, indent=2))
        output.result({"basis": view.basis, "run": row.name, "ref": options.ref, "value": value})
    return 0


def at_basis(agent: Agent, options: Namespace) -> Agent:
    """Return the agent at ``--at``, by default at the head."""
    return agent if options.at is None else agent.at(options.at)


def agent_named(store: Store, snapshot: Snapshot, name: str) -> Agent:
    """Return an agent with the working slots that the log declares, which name its references."""
    from cerata.agents.agent import Agent
    from cerata.agents.declarations import spec_of
    from cerata.agents.slots.rows import declared_slots

    working: dict[str, MemorySpec] = {
        row.slot: spec
        for row in declared_slots(snapshot, name)
        if (spec := spec_of(row)).tier == "working"
    }
    return Agent(store, name, memory=working)
