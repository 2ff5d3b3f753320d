"""The verbs that describe the file: info, head, and the command without a verb."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import cast

import cerata
from cerata.engine.errors import NotFound
from cerata.engine.events import JsonValue
from cerata.memory.values.words import bytes_text, column, counted
from cerata.projections.columnar.times import to_datetime

from .output import Output
from .store_options import file_of, reading, view_of


def run_welcome(options: Namespace, output: Output) -> int:
    """Print a description, the file, and commands to try."""
    description = "the memory of AI agents, in one file"
    commands = (
        "cerata tour",
        "cerata remember notes.md && cerata recall 'what did we decide?'",
        "cerata --help",
    )
    file: str | None = None
    try:
        file_text = file = file_of(options)
    except NotFound as error:
        file_text = f"{error.what.lower()}; name one with -f FILE"
    output.line(f"Cerata: {description}.", style="bold")
    for name, value in zip(
        ("File:", "Try:", "Then:", "Help:"), (file_text, *commands), strict=True
    ):
        output.line(f"{name:<7} {value}")
    output.result(
        {
            "cerata": cerata.__version__,
            "what": description,
            "file": file,
            "next": list[JsonValue](commands),
        }
    )
    return 0


def run_info(options: Namespace, output: Output) -> int:
    """Print the contents and sizes of the file."""
    with reading(options) as store:
        facts = store.info(options.at)
    for label, value in _lines(facts):
        output.row((column(label, 14), "dim" if label.startswith(" ") else "bold"), value)
    output.result(facts)
    return 0


def run_head(options: Namespace, output: Output) -> int:
    """Print the head; 'cerata verify --head' compares the file with it later."""
    with reading(options) as store:
        head = view_of(store, options).head
        output.line(head.text)
        output.result(
            {
                "head": head.seq,
                "recorded": to_datetime(head.recorded).isoformat() if head.seq else None,
                "chain": head.chain.hex(),
                "root": head.root.hex(),
                "log_id": head.log_id.hex(),
                "text": head.text,
            }
        )
    return 0


def _lines(facts: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    sizes = {name: _number(facts, name) for name in facts if name.endswith("_bytes")}
    parts = sizes["ring_bytes"] + sizes["segment_bytes"] + sizes["checkpoint_bytes"]
    yield "file", f"{facts['file']}, created {_time(facts['created'])}"
    yield "log", str(facts["log_id"])
    for branch in cast("list[dict[str, JsonValue]]", facts["branches"]):
        yield "  fork", f"{branch['id']}, after event {_number(branch, 'parent'):,}"
    yield "head", f"event {_number(facts, 'head'):,}, recorded {_time(facts['recorded'])}"
    yield "  chain", str(facts["chain"])
    yield "  root", str(facts["root"])
    yield "frames", _pairs(facts["frames"], "{value:,} {name}")
    yield "size", bytes_text(sizes["size_bytes"])
    waiting = counted(_number(facts, "events_in_ring"), "event")
    yield "  ring", f"{bytes_text(sizes['ring_bytes'])}, {waiting} waiting"
    segments = counted(_number(facts, "segments"), "segment")
    yield "  events", f"{bytes_text(sizes['segment_bytes'])} in {segments}"
    saved = _saved(facts["checkpoints"])
    yield "  indexes", f"{bytes_text(sizes['checkpoint_bytes'])}; {saved or 'none saved'}"
    yield "  other", f"{bytes_text(sizes['size_bytes'] - parts)}: headers, tables, unused space"
    if facts["cuts_kept"]:
        yield "  cuts", f"{_number(facts, 'cuts_kept'):,} torn ends of the log, set aside"
    unread = cast("list[dict[str, JsonValue]] | None", facts["unread"])
    if unread is None:
        yield "unread", "not counted, since the log is damaged: run 'cerata doctor'"
    elif unread:
        kinds = ", ".join(f"{entry['type']} version {entry['version']}" for entry in unread)
        count = sum(_number(entry, "events") for entry in unread)
        yield "unread", f"{counted(count, 'event')} kept and not applied: {kinds}"
    label = "ledger"
    for entry in cast("list[dict[str, JsonValue]]", facts["ledger"]):
        yield label, f"{entry['projection']} at event {entry['seq']}: {entry['digest']}"
        label = ""


def _saved(checkpoints: JsonValue) -> str:
    assert isinstance(checkpoints, dict)
    at: dict[JsonValue, list[str]] = {}
    for name, seq in checkpoints.items():
        at.setdefault(seq, []).append(name)
    return "; ".join(f"{', '.join(names)} at event {seq:,}" for seq, names in at.items())


def _number(facts: Mapping[str, JsonValue], name: str) -> int:
    value = facts[name]
    assert isinstance(value, int)
    return value


def _time(value: JsonValue) -> str:
    return f"{str(value)[:19].replace('T', ' ')} UTC" if value else "never"


def _pairs(value: JsonValue, form: str) -> str:
    assert isinstance(value, dict)
    return ", ".join(form.format(name=name, value=item) for name, item in value.items())
