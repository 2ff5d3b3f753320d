"""The verbs that print events and the state of the file: log, follow and info."""

from __future__ import annotations

from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final, cast

from cerata import __version__
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.verbs import AT, LISTS, Option, Verb, seconds

from .options import check_goes_with, count_of, file_of, reading, view_of
from .shared_options import EVENTS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from cerata.engine.events import Event, JsonValue
    from cerata.memory.view import View

    from .output import Output

VERBS: Final = (
    Verb(
        "log",
        "everyday",
        "list events, newest first, or report the changes",
        "cerata.cli.log:run_log",
        (
            Option("-n COUNT", "how many (20); not with the report", type=int),
            Option("--oneline", "print one event per line"),
            Option("--reverse", "print the oldest of them first"),
            Option("--who", "report each change with actor, time and request, the oldest first"),
            Option("--markdown", "print the report as a page in Markdown"),
            Option("--html FILE", "also write the report as a page of HTML"),
            Option("--type TYPE", "only events of this type, such as putFrame"),
            *EVENTS,
            Option("--since TIME", "only events recorded from then on"),
            Option("--until TIME", "only events recorded before then"),
            *LISTS,
        ),
        (
            "",
            "--oneline -n 100",
            "--actor anna --since yesterday",
            "--at v1 --type putFrame --jsonl | jq .body.text",
            "--who --actor anna --json",
            "--who --at v1 --markdown > audit.md",
        ),
        page="time-travel.md",
    ),
    Verb(
        "info",
        "everyday",
        "print the file's sizes by part, head and ledger",
        "cerata.cli.log:run_info",
        (Option("--head", "print the head as a text to store elsewhere"), AT),
        (
            "",
            "--at HEAD~5",
            "--json | jq .size_bytes",
            "--head > brain.head",
            "--head --at before-the-move",
        ),
    ),
    Verb(
        "follow",
        "time",
        "print events as they are written",
        "cerata.cli.log:run_follow",
        (
            Option(
                "--after POSITION",
                "the last known event: a seq, HEAD~n, a tag, a time, or a head (the newest)",
            ),
            Option("--jsonl", "print one JSON object per event"),
            Option("-n COUNT", "end after this many", dest="count", type=int),
            Option("--timeout SECONDS", "end after this time without an event", type=seconds),
            Option("--type TYPE", "only this type; repeatable", repeats=True),
            *EVENTS,
        ),
        (
            "",
            "--after 120 --jsonl | jq .body",
            "--after 0 --type putFrame --type supersede --timeout 0",
        ),
        page="follow.md",
    ),
)


def run_log(options: Namespace, output: Output) -> int:
    """Print events, newest first, in blocks of batches, or a report of the changes."""
    from cerata.memory.frames.event_summary import event_row

    plain = {"-n": options.n, "--oneline": options.oneline, "--reverse": options.reverse}
    report = {"--markdown": options.markdown, "--html": options.html}
    check_goes_with("a log without --who", plain, is_passed=not options.who)
    check_goes_with("--who", report, is_passed=options.who)
    if options.who:
        return _print_audit(options, output)
    count = count_of(options)
    with reading(options) as store:
        view = view_of(store, options)
        events = list(islice(_newest_first(view, options), count))
        if options.reverse:
            events.reverse()
        names = _names(view, store.head.seq)
        with output.pages():
            if options.oneline:
                for event in events:
                    _print_line(event, names, output)
            else:
                _print_batches(events, names, output)
        if not events:
            output.line("No event matches." if view.basis else "The log is empty.")
        rows: list[JsonValue] = [event_row(event) for event in events]
        output.result({"basis": view.basis, "events": rows}, items="events")
    return 0


def _newest_first(view: View, options: Namespace, step: int = 256) -> Iterator[Event]:
    from cerata.memory.frames.event_summary import type_of_act

    read = partial(
        view.log,
        type=None if options.type is None else type_of_act(options.type),
        actor=options.actor,
        correlation=options.correlation,
        causation=options.causation,
        since=options.since,
        until=options.until,
    )
    earliest = 1
    if options.since is not None:
        earliest = next((event.seq for event in view.log(since=options.since)), view.basis + 1)
    last = view.basis
    while last >= earliest:
        first = max(earliest, last - step + 1)
        yield from reversed(list(read(first, last)))
        last = first - 1


def _names(view: View, head: int) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {head: ["HEAD"]}
    for name, seq in view.history.tags().items():
        names.setdefault(seq, []).append(f"tag: {name}")
    return names


def _decoration(names: dict[int, list[str]], seq: int) -> list[tuple[str, str]]:
    labels = names.get(seq)
    return [(f"  ({', '.join(labels)})", "bold cyan")] if labels else []


def _print_line(event: Event, names: dict[int, list[str]], output: Output) -> None:
    from cerata.engine.words import clipped
    from cerata.memory.frames.event_summary import act_of, describe
    from cerata.projections.columnar.times import to_datetime

    output.row(
        (f"{event.seq:>7}  ", "yellow"),
        (f"{to_datetime(event.recorded):%Y-%m-%d %H:%M:%S}", "dim"),
        (f"  {act_of(event.type):<9}", "bold"),
        *_decoration(names, event.seq),
        f"  {clipped(describe(event), 200)}",
        (_by(event), "dim"),
    )


def _by(event: Event) -> str:
    """Return the actor and the reason of an event, with a margin; empty without both."""
    from cerata.memory.values.acts import credit

    text = credit(event.actor, event.reason)
    return f"  {text}" if text else ""


def _print_batches(events: Sequence[Event], names: dict[int, list[str]], output: Output) -> None:
    from cerata.engine.events import DEFAULT_SCOPE
    from cerata.memory.values.acts import credit
    from cerata.projections.columnar.times import to_datetime

    batches = [list(batch) for _, batch in groupby(events, lambda event: event.header.first_seq)]
    for place, batch in enumerate(batches):
        if place:
            output.line()
        header = batch[0].header
        whole = header.last_seq - header.first_seq + 1
        numbers = f"event {header.first_seq}" + (f"..{header.last_seq}" if whole > 1 else "")
        output.row(
            (numbers, "yellow"),
            *_decoration(names, header.last_seq),
            (f"  {to_datetime(header.recorded):%Y-%m-%d %H:%M:%S} UTC", "dim"),
        )
        scope = next((event.scope for event in batch if event.scope is not None), DEFAULT_SCOPE)
        if scope != DEFAULT_SCOPE:
            pairs = ", ".join(f"{name}={value}" for name, value in scope)
            output.row(("Scope: ", "dim"), pairs)
        authors = {(event.actor, event.reason) for event in batch}
        is_joint = len(authors) == 1
        if is_joint and (text := credit(*authors.pop())):
            output.row((text, "dim"))
        for is_passage, part in groupby(sorted(batch, key=lambda event: event.seq), _is_passage):
            _print_part(list(part), output, are_passages=is_passage, signed=not is_joint)
        if len(batch) < whole:
            output.row(("… ", "dim"), f"{whole - len(batch):,} more", indent=4)


def _is_passage(event: Event) -> bool:
    from cerata.engine.events import PutFrame

    return isinstance(event.body, PutFrame) and event.body.chunk_index is not None


def _print_part(part: Sequence[Event], output: Output, *, are_passages: bool, signed: bool) -> None:
    """Print events of a batch, one a line, and the passages of a document as one line.

    With ``signed`` each line has its actor and reason: those of the batch differ.
    """
    from cerata.engine.events import PutFrame
    from cerata.engine.words import clipped, column, counted
    from cerata.memory.frames.event_summary import act_of, describe

    if are_passages and len(part) > 1:
        output.row(
            ("put        ", "bold"),
            f"#{part[0].seq} to #{part[-1].seq}: {counted(len(part), 'passage')}",
            indent=4,
        )
        return
    for event in part:
        number = f"#{event.seq} " if isinstance(event.body, PutFrame) else ""
        act = column(act_of(event.type), 11)
        by = _by(event) if signed else ""
        output.row((act, "bold"), number, clipped(describe(event), 200), (by, "dim"), indent=4)


def _print_audit(options: Namespace, output: Output) -> int:
    """Print the changes, oldest first, in blocks of batches; with ``--markdown`` as a page."""
    from cerata.memory.frames.event_summary import type_of_act

    with reading(options) as store:
        audit = view_of(store, options).history.audit(
            type=None if options.type is None else type_of_act(options.type),
            actor=options.actor,
            correlation=options.correlation,
            causation=options.causation,
            since=options.since,
            until=options.until,
        )
        with output.pages():
            for line in (audit.markdown if options.markdown else str(audit)).splitlines():
                output.line(line, wraps=not options.markdown)
        answer = audit.to_dict()
        if options.html is not None:
            from .files import audit_page, write_page

            write_page(options.html, audit_page(audit), file_of(options))
            output.line(f"page: {options.html}", style="dim")
            answer["html"] = options.html
        output.result(answer, items="entries")
    return 0


def run_follow(options: Namespace, output: Output) -> int:
    """Print each event after a point, and each later event as it is written."""
    from cerata.engine.words import clipped
    from cerata.memory.frames.event_summary import act_of, describe, event_row, type_of_act
    from cerata.memory.values.acts import credit
    from cerata.projections.columnar.times import to_datetime

    if options.count is not None and options.count < 1:
        raise InvalidInput(
            f"-n must be at least 1, not {options.count}", remedy="Leave it out to follow for ever."
        )
    rows: list[JsonValue] = []
    with (
        reading(options) as store,
        store.stream.follow(
            options.after,
            types=[type_of_act(name) for name in options.type] or None,
            actor=options.actor,
            correlation=options.correlation,
            causation=options.causation,
            timeout=options.timeout,
        ) as events,
    ):
        for event in islice(events, options.count):
            row = event_row(event)
            output.item(row)
            output.row(
                (f"{event.seq:>7}  ", "yellow"),
                (f"{to_datetime(event.recorded):%Y-%m-%d %H:%M:%S}", "dim"),
                (f"  {act_of(event.type):<9}", "bold"),
                f"  {clipped(describe(event), 200)}",
                (f"  {text}" if (text := credit(event.actor, event.reason)) else "", "dim"),
            )
            if options.json:
                rows.append(row)
        position = events.position
    if not options.jsonl:
        output.result({"position": position, "events": rows})
    return 0


def run_welcome(options: Namespace, output: Output) -> int:
    """Print a description, the file, and commands to try."""
    from cerata.engine.events import JsonValue

    description = "the memory of AI agents, in one file"
    commands = (
        "cerata admin tour",
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
            "cerata": __version__,
            "what": description,
            "file": file,
            "next": list[JsonValue](commands),
        }
    )
    return 0


def run_info(options: Namespace, output: Output) -> int:
    """Print the contents and sizes of the file, or its head."""
    from cerata.engine.words import column

    if options.head:
        return _print_head(options, output)
    with reading(options) as store:
        facts = store.upkeep.info(options.at)
    for label, value in _lines(facts):
        output.row((column(label, 14), "dim" if label.startswith(" ") else "bold"), value)
    output.result(facts)
    return 0


def _print_head(options: Namespace, output: Output) -> int:
    """Print the head; 'cerata file verify --head' compares the file with it later."""
    from cerata.projections.columnar.times import to_datetime

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
    from cerata.engine.words import bytes_text, counted

    sizes = {name: _number(facts, name) for name in facts if name.endswith("_bytes")}
    parts = sizes["ring_bytes"] + sizes["segment_bytes"] + sizes["checkpoint_bytes"]
    yield "file", f"{facts['file']}, created {_time_text(facts['created'])}"
    yield "log", str(facts["log_id"])
    for branch in cast("list[dict[str, JsonValue]]", facts["branches"]):
        yield "  fork", f"{branch['id']}, after event {_number(branch, 'parent'):,}"
    yield "head", f"event {_number(facts, 'head'):,}, recorded {_time_text(facts['recorded'])}"
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
        yield "unread", "not counted, since the log is damaged: run 'cerata file doctor'"
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


def _time_text(value: JsonValue) -> str:
    return f"{str(value)[:19].replace('T', ' ')} UTC" if value else "never"


def _pairs(value: JsonValue, form: str) -> str:
    assert isinstance(value, dict)
    return ", ".join(form.format(name=name, value=item) for name, item in value.items())
