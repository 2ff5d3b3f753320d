"""The verbs that print changes over time: diff and history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.verbs import LISTS, Arg, Option, Verb

from .facts import when_text
from .frames import bars_over, unread_of
from .options import check_goes_with, reading, view_of
from .shared_options import HTML

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cerata.engine.events import JsonValue
    from cerata.memory.frames.blame import FieldBlame
    from cerata.memory.frames.diff import Diff
    from cerata.memory.frames.history import HistoryEntry
    from cerata.memory.store import Store
    from cerata.memory.values.explanation import ResultChange
    from cerata.memory.values.frames import Frame
    from cerata.memory.values.text_diff import DiffLine
    from cerata.memory.view import Basis, View

    from .frames import TimeBars
    from .output import Output
    from .visible_text import Part

VERBS: Final = (
    Verb(
        "diff",
        "time",
        "list the changes between two points",
        "cerata.cli.history:run_diff",
        (
            Arg("start", "a seq, a tag, HEAD~n, or a time", metavar="FROM"),
            Arg("end", "a point, written like FROM (HEAD)", "?", default="HEAD", metavar="TO"),
            Option(
                "--valid-at TIME",
                "only facts true at a time, or at one time for FROM and another for TO",
                times="+",
            ),
            Option("--query TEXT", "also the results that changed rank"),
            Option("-k K", "how many results to compare (10)", type=int, default=10),
            HTML,
        ),
        (
            "HEAD~5",
            "2026-03-01 2026-04-01",
            "before-the-move",
            "HEAD HEAD --valid-at 2025-01-01 2026-01-01",
            "v1 --query 'when does the team meet?'",
            "yesterday --html diff.html",
        ),
        page="time-travel.md",
    ),
    Verb(
        "history",
        "time",
        "list the versions of a frame, or the events of a fact, entity or link",
        "cerata.cli.history:run_history",
        (
            Arg("id", "id of a frame, fact or link, or the name of an entity", metavar="ID"),
            Option("--entity", "ID is a name, also if it is a number"),
            Option("--by-field", "print the event that set each field"),
            *LISTS,
        ),
        ("12", "anna", "12 --jsonl | jq .text", "12 --by-field", "12 --by-field --at v1 --json"),
        page="time-travel.md#blame",
    ),
)


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
            from .files import diff_page, write_page

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
    from cerata.engine.words import clipped, column, counted

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
            (column(f"#{result.id}", 7), "yellow"), (column(result.kind, 9), style), _ranks(result)
        )
        output.row((clipped(result.why, 200), "dim"), indent=7)
    if diff.results:
        output.line()
    output.line(diff.summary, style="dim")


_BARS_MAX: Final = 12
"""Bars that are drawn."""

_BLAME_WIDTH: Final = 12
"""Characters of the bar beside a field."""

_MINUTE: Final = "%Y-%m-%d %H:%M"

_DIGITS_MAX: Final = 20
"""Digits from which on a number is no id but a name: the largest seq has 19."""


def run_history(options: Namespace, output: Output) -> int:
    """Print every version of a frame, every event of another thing, or their fields."""
    from cerata.memory.frames.history import HistoryEntry
    from cerata.memory.values.frames import Frame

    if options.by_field:
        check_goes_with("versions and events", {"--jsonl": options.jsonl}, is_passed=False)
        return _print_blame(options, output)
    with reading(options) as store:
        view = view_of(store, options)
        history: list[Frame] | list[HistoryEntry] = view.history.of(_thing_in(options))
        versions = [each for each in history if isinstance(each, Frame)]
        if not versions:
            events = [each for each in history if isinstance(each, HistoryEntry)]
            return _print_events(events, view, output)
        with output.pages():
            for frame in versions:
                _print_version(frame, view, output)
            _print_current(versions, view, output)
        output.result(
            {"basis": view.basis, "versions": [frame.to_dict() for frame in versions]},
            items="versions",
        )
    return 0


def _print_events(entries: list[HistoryEntry], view: View, output: Output) -> int:
    from cerata.engine.words import column

    with output.pages():
        for entry in entries:
            act = entry.act
            output.row(
                (f"{f'#{entry.seq}':>7}  ", "yellow"),
                ("hidden" if act is None else f"{act.recorded:%Y-%m-%d %H:%M:%S}", "dim"),
                (f"  {column(entry.verb, 10)}", "bold"),
                entry.summary,
                ("" if act is None or not act.credit else f"  {act.credit}", "dim"),
            )
        _print_activity(entries, output)
        _print_validity(entries, view, output)
    rows: list[JsonValue] = [entry.to_dict() for entry in entries]
    output.result({"basis": view.basis, "events": rows}, items="events")
    return 0


def _print_activity(entries: list[HistoryEntry], output: Output) -> None:
    """Print how the events are spread over time."""
    times = [entry.act.recorded for entry in entries if entry.act is not None]
    if not output.as_json and (bars := bars_over(times)) is not None:
        ends = f"{bars.first:{_MINUTE}}", f"{bars.last:{_MINUTE}}"
        output.row(f"{ends[0]}  {bars.density(times)}  {ends[1]}", indent=9)


def _print_validity(entries: list[HistoryEntry], view: View, output: Output) -> None:
    """Print the valid period of each asserted fact, the first of many."""
    if output.as_json:
        return
    numbers = [entry.seq for entry in entries if entry.verb == "asserted"]
    facts = [view.graph.fact(number) for number in numbers[:_BARS_MAX]]
    times = [time for fact in facts for time in (fact.valid.start, fact.valid.end)]
    bars = bars_over([*times, view.now] if times else [])
    if bars is None:
        return
    for fact in facts:
        state = "  retracted" if fact.retracted_by is not None else ""
        number = f"{f'#{fact.id}':>7}  "
        row = bars.period(fact.valid)
        output.row((number, "yellow"), row, f"  {when_text(fact.valid)}{state}")
    if len(numbers) > _BARS_MAX:
        output.line(f"         {len(numbers) - _BARS_MAX:,} more", style="dim")


def _print_current(versions: list[Frame], view: View, output: Output) -> None:
    """Print the time at which each of several versions was current."""
    from cerata.memory.values.facts import Period

    if output.as_json or len(versions) < 2:
        return
    ends = [None if frame.closed is None else frame.closed.recorded for frame in versions]
    bars = bars_over([*(frame.recorded for frame in versions), *ends, view.now])
    if bars is None:
        return
    for frame, end in list(zip(versions, ends, strict=True))[-_BARS_MAX:]:
        period = Period(frame.recorded, end)
        number = f"{f'#{frame.id}':>7}  "
        output.row((number, "yellow"), bars.period(period), f"  {when_text(period)}")


def _thing_in(options: Namespace) -> int | str:
    """Return the id of a command line, or the name of an entity."""
    number = str(options.id).removeprefix("#")
    is_id = number.isascii() and number.isdecimal() and len(number) < _DIGITS_MAX
    return int(number) if is_id and not options.entity else str(options.id)


def _print_version(frame: Frame, view: View, output: Output) -> None:
    from cerata.engine.words import clipped
    from cerata.memory.snapshot.reader import snapshot_of
    from cerata.memory.values.acts import credit

    olds = ", ".join(f"#{number}" for number in frame.supersedes)
    output.row(
        (f"{'#' + str(frame.id):>7}  ", "yellow"),
        (f"{frame.recorded:%Y-%m-%d %H:%M:%S}  ", "dim"),
        (f"replaces {olds}" if olds else "put", "bold"),
        ("  current" if frame.active else "", "bold green"),
        ("  expired" if frame.is_expired else "", "dim"),
        (f"  {text}" if (text := credit(frame.actor, frame.reason)) else "", "dim"),
    )
    output.row(clipped(frame.text, 400) or f"({frame.size:,} bytes)", indent=9)
    if frame.unread:
        output.row(" " * 9, ("unread: ", "yellow"), unread_of(frame))
    closing = snapshot_of(view).layers.closing_of(frame.id)
    if closing is None or (closing.by is not None and frame.closed is None):
        return
    if closing.seq == frame.id:
        # The event that closed it is unknown.
        return
    act = frame.closed
    when = "" if act is None else f"{act.recorded:%Y-%m-%d %H:%M:%S}  "
    word = "deleted" if closing.by is None else "superseded"
    by = "" if act is None or not act.credit else f"  {act.credit}"
    if by or closing.by is None:
        seq = f" by event {closing.seq}"
        output.row(" " * 9, (when, "dim"), (word, "bold red"), seq, (by, "dim"))


def _moment(field: FieldBlame, bars: TimeBars | None) -> str:
    """Return a mark at the time of a field's event, if the fields have several times."""
    if bars is None:
        return ""
    return f"{' ' * bars.width if field.act is None else bars.moment(field.act.recorded)}  "


def _print_blame(options: Namespace, output: Output) -> int:
    """Print each field of a frame, fact, entity or link, and the event that set it."""
    from cerata.engine.words import clipped, column

    with reading(options) as store:
        view = view_of(store, options)
        blame = view.history.blame(_thing_in(options))
        width = max(len(each.field) for each in blame.fields)
        bars = bars_over(
            [None if each.act is None else each.act.recorded for each in blame.fields], _BLAME_WIDTH
        )
        for each in blame.fields:
            value = (
                each.value
                if isinstance(each.value, str)
                else json.dumps(each.value, ensure_ascii=False)
            )
            act = each.act
            when = "" if act is None else f"  {act.recorded:%Y-%m-%d %H:%M}"
            output.row(
                ("hidden " if act is None else column(f"#{act.seq}", 7), "yellow"),
                f"{each.field:<{width}}  ",
                (_moment(each, bars), "dim"),
                clipped(value, 40),
                (when, "dim"),
                ("" if act is None or not act.credit else f"  {act.credit}", "dim"),
            )
        if blame.ended is not None:
            output.row((column(f"#{blame.ended.seq}", 7), "yellow"), "ended  ", blame.ended.credit)
        output.result({"basis": view.basis, **blame.to_dict()})
    return 0
