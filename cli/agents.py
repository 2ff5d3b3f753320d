"""The verbs of agents: runs, slots, refs, proposals and judge."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.plain_value import plain

from .options import (
    add_current_folder,
    changing,
    check_goes_with,
    json_of,
    reading,
    view_of,
    writing,
)
from .verb import ACTOR, AT, Arg, Option, Verb, identifier

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.agents.activities.values import Activity
    from cerata.agents.agent import Agent
    from cerata.agents.growth.proposal_values import VerdictName
    from cerata.agents.growth.proposals import Proposal
    from cerata.agents.slot import Slot, SlotItem
    from cerata.agents.slots.rows import DeclaredSlot
    from cerata.agents.spec import MemorySpec
    from cerata.engine.events import JsonValue
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.memory.store import Store
    from cerata.memory.values.frames import Receipt

    from .output import Output


def _agent_option(text: str = "the agent; not needed if the file has one") -> Option:
    return Option("--agent NAME", text)


_RUN: Final = "id of a run, or #SEQ of its start"

VERBS: Final = (
    Verb(
        "runs",
        "agents",
        "list the recorded runs of agents, or the calls of a run, or execute a run again",
        "agents:run_runs",
        (
            Arg("named", _RUN, "?", metavar="RUN"),
            Arg(
                "function",
                "with --again: the function to import, also from this folder; its code runs",
                "?",
                metavar="MODULE:FUNCTION",
            ),
            _agent_option("only the runs of this agent"),
            Option("--again", "execute the run again, with its calls answered from the recording"),
            Option(
                "--live FILE",
                "with --again: go on at the first difference, in a new fork of the memory",
            ),
            AT,
        ),
        (
            "",
            "r-17",
            "--agent analyst --at yesterday",
            "r-17 analyst:analyse --again",
            "r-17 analyst:analyse --again --live fork.cera",
        ),
        page="agents.md",
    ),
    Verb(
        "slots",
        "agents",
        "list the slots of agents, or read, write or declare slots",
        "agents:run_slots",
        (
            Arg("slot", "name of a slot, to print its values", "?", metavar="NAME"),
            Arg("key", "key in a map", "?", metavar="KEY"),
            _agent_option("the agent; for the values of a slot not needed if the file has one"),
            Option("--set JSON", "store a value", dest="value"),
            Option("--append JSON", "add an item to a list"),
            Option("--delete KEY", "close a value, by its key or '#ID'"),
            Option("--search QUERY", "print the best hits among the values"),
            Option("--history", "print every value, also closed and expired ones"),
            Option("--declare FILE", "declare the slots of a YAML file; needs --agent"),
            AT,
            ACTOR,
        ),
        (
            "",
            "--agent analyst --at yesterday",
            "--declare memory.yaml --agent analyst",
            "prefs --scope user_id=u1",
            "prefs risk --scope user_id=u1",
            """prefs risk --set '{"level": 3}' --scope user_id=u1""",
            """notes --append '"prefers bonds"' --scope user_id=u1""",
            "notes --history --at yesterday --scope user_id=u1",
        ),
        page="working-memory.md#slots",
    ),
    Verb(
        "refs",
        "agents",
        "list the results of a run, by reference, or print one",
        "agents:run_refs",
        (
            Arg("named", _RUN, metavar="RUN"),
            Arg("ref", "a reference; quote it, since it begins with $", "?", metavar="REF"),
            _agent_option(),
            AT,
        ),
        (
            "r-17",
            "r-17 --at 40",
            "r-17 '$ref:market.fetch.1'",
            "r-17 '$ref:market.fetch.1#/AAPL/0'",
        ),
        page="working-memory.md#references",
    ),
    Verb(
        "proposals",
        "agents",
        "list the changes that agents propose, with their gates",
        "agents:run_proposals",
        (_agent_option("only the proposals of this agent"), AT),
        ("", "--agent wyatt --at yesterday"),
        page="continuity.md#growth",
    ),
    Verb(
        "judge",
        "agents",
        "approve a proposal of an agent after its gates, reject it, or revoke an approval",
        "agents:run_judge",
        (
            Arg("verdict", "the verdict", choices=("approve", "reject", "revoke")),
            Arg("proposal", "id of the proposal", type=identifier, metavar="ID"),
            Option("--actor NAME", "the person who judges, recorded in the log", required=True),
            Option("--content HASH", "refuse a proposal with another content than this"),
        ),
        ("approve 12 --actor anna", "reject '#12' --actor anna --json", "revoke 12 --actor anna"),
        page="continuity.md#verdicts",
    ),
)

STATUS_STYLES = {"open": "yellow", "done": "green", "failed": "red", "left": "yellow"}


def run_runs(options: Namespace, output: Output) -> int:
    """List the runs, newest first; with a run, its calls in order; or execute it again."""
    from cerata.agents.activities.columns import ActivityKind
    from cerata.agents.activities.reads import activities_at
    from cerata.agents.activities.values import activities_of, calls_of, run_named
    from cerata.memory.snapshot.reader import snapshot_of
    from cerata.memory.values.words import clipped

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
    from cerata.memory.snapshot.reader import snapshot_of
    from cerata.memory.values.words import clipped

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
    from cerata.memory.values.words import counted

    error = f"  {activity.error}" if activity.error else ""
    output.row(
        (f"{f'#{activity.id}':>7}  ", "dim"),
        f"{activity.name}  {activity.agent} {activity.version}  ",
        (activity.status, STATUS_STYLES[activity.status]),
        f"  {counted(activity.calls, 'call')}",
        (f"  {activity.started:%Y-%m-%d %H:%M:%S} UTC", "dim"),
        error,
    )


_VALUE_WIDTH = 200


def run_slots(options: Namespace, output: Output) -> int:
    """List the declared slots, declare those of a file, or read and write the values of one."""
    from cerata.agents.slots.rows import declared_slots
    from cerata.memory.snapshot.reader import snapshot_of

    values = {
        "--set": options.value,
        "--append": options.append,
        "--delete": options.delete,
        "--search": options.search,
        "--history": options.history,
    }
    check_goes_with("the NAME of a slot", values, is_passed=options.slot is not None)
    if options.slot is not None:
        check_goes_with("no NAME", {"--declare": options.declare}, is_passed=False)
        return _run_slot(options, output)
    if options.declare is not None:
        return _declare(options, output)
    with reading(options) as store:
        view = view_of(store, options)
        rows = declared_slots(snapshot_of(view), options.agent)
        slots = [_plain_slot(row) for row in rows]
        for row in rows:
            _print_slot(row, output)
        if not rows:
            output.line("No slot is declared.")
        output.result({"basis": view.basis, "slots": slots})
    return 0


def _declare(options: Namespace, output: Output) -> int:
    from cerata.agents.agent import Agent
    from cerata.agents.slots.rows import declared_slots
    from cerata.agents.spec_yaml import load_memory
    from cerata.memory.snapshot.reader import snapshot_of
    from cerata.memory.values.words import counted

    if options.agent is None or options.at is not None:
        raise InvalidInput(
            "--declare needs --agent, and no --at", remedy="Pass --agent NAME of the slots' agent."
        )
    memory = load_memory(options.declare)
    with writing(options, output) as store:
        before = store.head.seq
        Agent(store, options.agent, memory=memory)
        rows = [
            row
            for row in declared_slots(snapshot_of(store), options.agent)
            if row.slot in memory and row.seq > before
        ]
        for row in rows:
            _print_slot(row, output)
        same = len(memory) - len(rows)
        output.line(f"{counted(len(rows), 'slot')} declared, {same} unchanged")
        output.result({"file": store.path, "declared": [_plain_slot(row) for row in rows]})
    return 0


def _plain_slot(row: DeclaredSlot) -> dict[str, JsonValue]:
    from cerata.agents.text.json_text import decoded

    return {
        "agent": row.agent,
        "slot": row.slot,
        "event": row.seq,
        "spec": decoded(row.spec),
        "schema": None if row.schema is None else decoded(row.schema),
    }


def _print_slot(row: DeclaredSlot, output: Output) -> None:
    from cerata.agents.declarations import spec_of
    from cerata.memory.values.words import clipped

    spec = spec_of(row)
    parts = [spec.tier, *([spec.type] if spec.type else [])]
    names = (spec.scope,) if isinstance(spec.scope, str) else spec.scope
    if names:
        parts.append(f"by {', '.join(names)}")
    if spec.ttl:
        parts.append(f"for {spec.ttl}" + ("" if isinstance(spec.ttl, str) else " s"))
    if spec.max_items:
        parts.append(f"at most {spec.max_items:,}")
    if spec.searchable:
        parts.append("searchable")
    if row.schema:
        parts.append(f"schema version {spec.schema_version or 1}")
    output.row(
        (f"{f'#{row.seq}':>7}  ", "dim"),
        f"{row.agent}/{row.slot}  ",
        "  ".join(parts),
        (f"  {clipped(spec.description, 80)}" if spec.description else "", "dim"),
    )


def _run_slot(options: Namespace, output: Output) -> int:
    """Print the values of a slot, or write one."""
    from cerata.memory.snapshot.reader import snapshot_of

    acts = {
        "--set": options.value,
        "--append": options.append,
        "--delete": options.delete,
        "--search": options.search,
        "--history": options.history or None,
    }
    passed = [name for name, value in acts.items() if value is not None]
    if len(passed) > 1:
        raise InvalidInput(
            f"{passed[0]} and {passed[1]} cannot be combined",
            remedy="Run 'cerata agents slots' for each.",
        )
    if passed and passed[0] in ("--set", "--append", "--delete"):
        return _write(options, output)
    with reading(options) as store:
        view = view_of(store, options)
        slot = _at(_agent(store, snapshot_of(view), options), options).slot(options.slot)
        if options.search is not None:
            hits = slot.search(options.search)
            ids = {hit.id for hit in hits}
            by_id = {item.id: item for item in slot.items() if item.id in ids}
            items = [by_id[hit.id] for hit in hits]
        else:
            items = _items(slot, options)
        for item in items:
            _print_item(item, output)
        if not items:
            output.line("No value is stored.")
        values: list[JsonValue] = [item.to_dict() for item in items]
        output.result({"basis": view.basis, "slot": options.slot, "items": values})
    return 0


def _items(slot: Slot, options: Namespace) -> list[SlotItem]:
    import difflib

    if options.history:
        return slot.history(options.key)
    if options.key is None:
        return slot.items()
    items = [item for item in slot.items() if item.key == options.key]
    if items:
        return items
    near = difflib.get_close_matches(str(options.key), slot.keys(), n=1)
    raise NotFound(
        f"There is no current value {options.key!r:.60}",
        where=f"slot {options.slot!r}",
        remedy=f"Did you mean {near[0]!r}?" if near else "'--history' lists closed values too.",
    )


def _write(options: Namespace, output: Output) -> int:
    from cerata.memory.snapshot.reader import snapshot_of

    if options.at is not None:
        raise InvalidInput("A slot is written at the head", remedy="Leave out --at.")
    if options.key is not None and options.value is None:
        raise InvalidInput(
            "KEY is for reads and --set", remedy="Pass --append JSON, or --delete KEY, without it."
        )
    with changing(options, output) as store:
        slot = _agent(store, snapshot_of(store), options).slot(options.slot)
        receipt = _written(slot, options)
        if options.delete is not None:
            output.line(f"deleted from {options.slot} by event {receipt.id:,}")
        else:
            output.line(f"#{receipt.id} stored in {options.slot}")
        output.result({"file": store.path, "slot": options.slot, **receipt.to_dict()})
    return 0


def _written(slot: Slot, options: Namespace) -> Receipt:
    if options.append is not None:
        return slot.append(_json("--append", options.append))
    if options.delete is not None:
        text = str(options.delete)
        number = text.removeprefix("#")
        is_id = number.isdecimal() and number.isascii() and len(number) < 20
        return slot.delete(int(number) if is_id and text.startswith("#") else text)
    value = _json("--set", options.value)
    return slot.set(value) if options.key is None else slot.set(options.key, value)


def _json(option: str, text: str) -> JsonValue:
    remedy = f"Pass JSON, such as {option} '{{\"level\": 3}}' or {option} '\"a text\"'."
    return json_of(text, f"{option} {text!r:.60} is not valid JSON", remedy)


def _print_item(item: SlotItem, output: Output) -> None:
    from cerata.memory.values.words import clipped

    text = json.dumps(plain(item.value), ensure_ascii=False)
    key = "" if item.key is None else f"{item.key}  "
    until = "" if item.expires is None else f"  until {item.expires:%Y-%m-%d %H:%M} UTC"
    output.row(
        (f"{f'#{item.id}':>7}  ", "dim"),
        f"{key}{clipped(text, _VALUE_WIDTH)}",
        (f"  {item.created:%Y-%m-%d %H:%M:%S} UTC{until}", "dim"),
    )


def run_refs(options: Namespace, output: Output) -> int:
    """List the results of a run, by reference, or print the value of one."""
    from cerata.agents.activities.values import run_named
    from cerata.memory.snapshot.reader import snapshot_of
    from cerata.memory.values.words import clipped

    if options.ref is not None:
        return _print_ref(options, output)
    with reading(options) as store:
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        row = run_named(snapshot, run_id_of(options.named), options.agent)
        agent = _at(_agent_named(store, snapshot, row.agent), options)
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
        value = _at(_agent_named(store, snapshot, row.agent), options).get(row.seq, options.ref)
        output.line(json.dumps(value, ensure_ascii=False, indent=2))
        output.result({"basis": view.basis, "run": row.name, "ref": options.ref, "value": value})
    return 0


def _agent(store: Store, snapshot: Snapshot, options: Namespace) -> Agent:
    """Return the agent of the options, or the only one that declares slots.

    Raises:
        NotFound: no agent, or another, declares slots.
        InvalidInput: several agents do, and none is named.
    """
    from cerata.agents.slots.rows import declared_slots
    from cerata.memory.values.words import clipped

    agents = sorted({row.agent for row in declared_slots(snapshot)})
    if options.agent is None and len(agents) == 1:
        return _agent_named(store, snapshot, agents[0])
    if options.agent is None and agents:
        raise InvalidInput(
            f"The memory has {len(agents):,} agents: {clipped(', '.join(agents), 200)}",
            remedy="Pass --agent NAME.",
        )
    if options.agent is None:
        raise NotFound("No slot is declared", remedy="'cerata agents slots --help' has an example.")
    return _agent_named(store, snapshot, options.agent)


def _at(agent: Agent, options: Namespace) -> Agent:
    return agent if options.at is None else agent.at(options.at)


def _agent_named(store: Store, snapshot: Snapshot, name: str) -> Agent:
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


_PAST: Final = {"approve": "approved", "reject": "rejected", "revoke": "revoked"}


def run_proposals(options: Namespace, output: Output) -> int:
    """List the current proposals with their gates."""
    from cerata.agents.growth.proposals import proposals_of
    from cerata.memory.snapshot.reader import snapshot_of

    with reading(options) as store:
        view = view_of(store, options)
        proposals = proposals_of(snapshot_of(view), options.agent)
        for proposal in proposals:
            _print_proposal(proposal, output)
        if not proposals:
            output.line("There is no proposal.")
        items: list[JsonValue] = [proposal.to_dict() for proposal in proposals]
        output.result({"basis": view.basis, "proposals": items})
    return 0


def run_judge(options: Namespace, output: Output) -> int:
    """Print a proposal, and record the verdict on what was printed."""
    from cerata.agents.growth.commands import judge

    verdict: VerdictName = options.verdict
    with changing(options, output) as store:
        proposal = _proposal(store, options.proposal)
        if options.content is not None:
            proposal = replace(proposal, content=_content(options.content))
        _print_proposal(proposal, output)
        receipt = judge(store, proposal, verdict, actor=options.actor)
        words = _PAST[verdict] if receipt.added else f"is {_PAST[verdict]} already,"
        output.line(f"#{proposal.id} {words} by event {receipt.id:,}")
        after = _proposal(store, proposal.id).to_dict()
        output.result({"file": store.path, "proposal": after, **receipt.to_dict()})
    return 0


def _proposal(store: Store, number: int) -> Proposal:
    from cerata.agents.growth.gates import gated_proposal
    from cerata.agents.growth.proposals import proposal_of
    from cerata.memory.snapshot.reader import snapshot_of

    snapshot = snapshot_of(store)
    return proposal_of(snapshot, gated_proposal(snapshot, number))


def _content(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInput(
            f"--content {text!r:.40} is no hash in hexadecimal",
            remedy="Copy the content from 'cerata agents proposals --json'.",
        ) from None


def _print_proposal(proposal: Proposal, output: Output) -> None:
    # The text of a proposal is shown whole: a person judges all of it.
    first, *gates = str(proposal).split("\n")
    agent = "" if proposal.agent is None else f"{proposal.agent}  "
    number, _, rest = first.partition(" ")
    output.row((f"{number:>7}  ", "dim"), agent, rest)
    for gate in gates:
        output.row((f"       {gate}", "dim"))
