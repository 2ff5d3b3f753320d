"""The verbs that print changes over time: log and diff."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.events import DEFAULT_SCOPE, Event, JsonValue, PutFrame
from cerata.engine.loading import loading
from cerata.memory.frames.event_summary import act_of, describe, event_row, type_of_act
from cerata.memory.store import Store
from cerata.memory.values.acts import credit
from cerata.memory.values.words import clipped, column, counted
from cerata.memory.view import Basis, View
from cerata.projections.columnar.times import to_datetime

from .filter_options import count_of
from .output import Output
from .store_options import reading, view_of

if TYPE_CHECKING:
    from cerata.memory.frames.diff import Diff
    from cerata.memory.values.result_change import ResultChange
    from cerata.memory.values.text_diff import DiffLine

    from .visible_text import Part


def run_log(options: Namespace, output: Output) -> int:
    """Print events, newest first, in blocks of batches."""
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
    for name, seq in view.tags().items():
        names.setdefault(seq, []).append(f"tag: {name}")
    return names


def _decoration(names: dict[int, list[str]], seq: int) -> list[tuple[str, str]]:
    labels = names.get(seq)
    return [(f"  ({', '.join(labels)})", "bold cyan")] if labels else []


def _print_line(event: Event, names: dict[int, list[str]], output: Output) -> None:
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
    text = credit(event.actor, event.reason)
    return f"  {text}" if text else ""


def _print_batches(events: Sequence[Event], names: dict[int, list[str]], output: Output) -> None:
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
    return isinstance(event.body, PutFrame) and event.body.chunk_index is not None


def _print_part(part: Sequence[Event], output: Output, *, are_passages: bool, signed: bool) -> None:
    """Print events of a batch, one a line, and the passages of a document as one line.

    With ``signed`` each line has its actor and reason: those of the batch differ.
    """
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


def _states(store: Store, options: Namespace) -> tuple[Basis, Basis]:
    instants: Sequence[str] = options.valid_at or ()
    if not instants:
        return options.start, options.end
    if len(instants) > 2:
        raise InvalidInput(
            f"--valid-at takes one or two times, not {len(instants)}",
            remedy="Pass one time for both states, or one for FROM and one for TO.",
        )
    return (
        store.at(options.start, valid_at=instants[0]),
        store.at(options.end, valid_at=instants[-1]),
    )


def run_diff(options: Namespace, output: Output) -> int:
    """Print added, removed, replaced and changed frames and facts, in order of their events."""
    with reading(options) as store:
        diff = store.diff(*_states(store, options), query=options.query, k=options.k)
        with output.pages():
            print_diff(diff, output)
        answer: dict[str, JsonValue] = {**diff.to_dict(), "summary": diff.summary}
        if options.html is not None:
            with loading("the pages"):
                from .html_pages import diff_page
                from .output_files import write_page

            write_page(options.html, diff_page(diff), store.path)
            output.line(f"page: {options.html}", style="dim")
            answer["html"] = options.html
        output.result(answer)
    return 0


def _ranks(result: ResultChange) -> str:
    return f"rank {result.old_rank or '–'} → {result.new_rank or '–'}"


def _parts(line: DiffLine, *, is_styled: bool) -> list[Part]:
    """Return a line in its colour with changed words in reverse; without styles, with marks."""
    if not is_styled:
        return [line.marked]
    style = {"+": "green", "-": "red"}.get(line.sign, "dim")
    words: list[Part] = [
        (text, f"{style} reverse" if is_changed else style) for text, is_changed in line.parts()
    ]
    return [(line.sign, style), *words]


def print_diff(diff: Diff, output: Output) -> None:
    """Print the changes of a diff, and their counts in the last line."""
    for change in diff:
        output.row((change.title, "bold"))
        lines, left = change.excerpt
        for line in lines:
            output.row(*_parts(line, is_styled=output.is_styled), indent=2)
        if left:
            output.row((f"… and {counted(left, 'line')} more", "dim"), indent=4)
        output.line()
    for fact_change in diff.facts:
        from .facts import print_fact_change

        print_fact_change(fact_change, output)
    if diff.facts:
        output.line()
    for result in diff.results:
        style = {"appeared": "green", "rose": "green"}.get(result.kind, "red")
        output.row(
            (column(f"#{result.id}", 7), "yellow"),
            (column(result.kind, 9), style),
            _ranks(result),
        )
        output.row((clipped(result.why, 200), "dim"), indent=7)
    if diff.results:
        output.line()
    output.line(diff.summary, style="dim")
