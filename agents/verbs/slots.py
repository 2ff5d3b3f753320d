"""The verb of slots."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cerata.cli.options import changing, check_goes_with, json_of, reading, view_of, writing
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.plain_value import plain

from .runs import agent_named, at_basis

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.agents.agent import Agent
    from cerata.agents.slot import Slot, SlotItem
    from cerata.agents.slots.rows import DeclaredSlot
    from cerata.cli.output import Output
    from cerata.engine.events import JsonValue
    from cerata.memory.snapshot.snapshot import Snapshot
    from cerata.memory.store import Store
    from cerata.memory.values.frames import Receipt


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
    from cerata.engine.words import counted
    from cerata.memory.snapshot.reader import snapshot_of

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
    from ..text.summaries import decoded

    return {
        "agent": row.agent,
        "slot": row.slot,
        "event": row.seq,
        "spec": decoded(row.spec),
        "schema": None if row.schema is None else decoded(row.schema),
    }


def _print_slot(row: DeclaredSlot, output: Output) -> None:
    from cerata.agents.declarations import spec_of
    from cerata.engine.words import clipped

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
        slot = at_basis(_agent(store, snapshot_of(view), options), options).slot(options.slot)
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
    from cerata.engine.words import clipped

    text = json.dumps(plain(item.value), ensure_ascii=False)
    key = "" if item.key is None else f"{item.key}  "
    until = "" if item.expires is None else f"  until {item.expires:%Y-%m-%d %H:%M} UTC"
    output.row(
        (f"{f'#{item.id}':>7}  ", "dim"),
        f"{key}{clipped(text, _VALUE_WIDTH)}",
        (f"  {item.created:%Y-%m-%d %H:%M:%S} UTC{until}", "dim"),
    )


def _agent(store: Store, snapshot: Snapshot, options: Namespace) -> Agent:
    """Return the agent of the options, or the only one that declares slots.

    Raises:
        NotFound: no agent, or another, declares slots.
        InvalidInput: several agents do, and none is named.
    """
    from cerata.agents.slots.rows import declared_slots
    from cerata.engine.words import clipped

    agents = sorted({row.agent for row in declared_slots(snapshot)})
    if options.agent is None and len(agents) == 1:
        return agent_named(store, snapshot, agents[0])
    if options.agent is None and agents:
        raise InvalidInput(
            f"The memory has {len(agents):,} agents: {clipped(', '.join(agents), 200)}",
            remedy="Pass --agent NAME.",
        )
    if options.agent is None:
        raise NotFound("No slot is declared", remedy="'cerata agents slots --help' has an example.")
    return agent_named(store, snapshot, options.agent)
