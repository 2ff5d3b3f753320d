"""The verbs of an agent's working memory: slots, slot, refs and ref."""

from __future__ import annotations

import difflib
import json
from argparse import Namespace

from cerata.agents.activities.values import run_named
from cerata.agents.agent import Agent
from cerata.agents.declarations import spec_of
from cerata.agents.slot import Slot, SlotItem
from cerata.agents.slots.rows import DeclaredSlot, declared_slots
from cerata.agents.spec import MemorySpec
from cerata.agents.spec_yaml import load_memory
from cerata.agents.text.json_text import decoded
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import JsonValue
from cerata.engine.plain_value import plain
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.store import Store
from cerata.memory.values.frames import Receipt
from cerata.memory.values.words import clipped, counted

from .output import Output
from .pair_options import json_of
from .runs import run_id_of
from .store_options import changing, reading, view_of, writing

_VALUE_WIDTH = 200


# --- slots ---------------------------------------------------------------------------------------


def run_slots(options: Namespace, output: Output) -> int:
    """List the declared slots, or declare those of a file."""
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
    return {
        "agent": row.agent,
        "slot": row.slot,
        "event": row.seq,
        "spec": decoded(row.spec),
        "schema": None if row.schema is None else decoded(row.schema),
    }


def _print_slot(row: DeclaredSlot, output: Output) -> None:
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


# --- slot ----------------------------------------------------------------------------------------


def run_slot(options: Namespace, output: Output) -> int:
    """Print the values of a slot, or write one."""
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
            f"{passed[0]} and {passed[1]} cannot be combined", remedy="Run 'cerata slot' for each."
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
    text = json.dumps(plain(item.value), ensure_ascii=False)
    key = "" if item.key is None else f"{item.key}  "
    until = "" if item.expires is None else f"  until {item.expires:%Y-%m-%d %H:%M} UTC"
    output.row(
        (f"{f'#{item.id}':>7}  ", "dim"),
        f"{key}{clipped(text, _VALUE_WIDTH)}",
        (f"  {item.created:%Y-%m-%d %H:%M:%S} UTC{until}", "dim"),
    )


# --- refs and ref --------------------------------------------------------------------------------


def run_refs(options: Namespace, output: Output) -> int:
    """List the results of a run, by reference."""
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


def run_ref(options: Namespace, output: Output) -> int:
    """Print the value that a reference names, as JSON."""
    with reading(options) as store:
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        row = run_named(snapshot, run_id_of(options.named), options.agent)
        value = _at(_agent_named(store, snapshot, row.agent), options).get(row.seq, options.ref)
        output.line(json.dumps(value, ensure_ascii=False, indent=2))
        output.result({"basis": view.basis, "run": row.name, "ref": options.ref, "value": value})
    return 0


# --- the agent -----------------------------------------------------------------------------------


def _agent(store: Store, snapshot: Snapshot, options: Namespace) -> Agent:
    """Return the agent of the options, or the only one that declares slots.

    Raises:
        NotFound: no agent, or another, declares slots.
        InvalidInput: several agents do, and none is named.
    """
    agents = sorted({row.agent for row in declared_slots(snapshot)})
    if options.agent is None and len(agents) == 1:
        return _agent_named(store, snapshot, agents[0])
    if options.agent is None and agents:
        raise InvalidInput(
            f"The memory has {len(agents):,} agents: {clipped(', '.join(agents), 200)}",
            remedy="Pass --agent NAME.",
        )
    if options.agent is None:
        raise NotFound("No slot is declared", remedy="'cerata slots --help' has an example.")
    return _agent_named(store, snapshot, options.agent)


def _at(agent: Agent, options: Namespace) -> Agent:
    return agent if options.at is None else agent.at(options.at)


def _agent_named(store: Store, snapshot: Snapshot, name: str) -> Agent:
    """Return an agent with the working slots that the log declares, which name its references."""
    working: dict[str, MemorySpec] = {
        row.slot: spec
        for row in declared_slots(snapshot, name)
        if (spec := spec_of(row)).tier == "working"
    }
    return Agent(store, name, memory=working)
