"""The verbs that print the past of one thing: history and blame."""

import json
from argparse import Namespace
from typing import Final

from cerata.engine.json_value import JsonValue
from cerata.memory.frames.history import HistoryEntry
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.acts import credit
from cerata.memory.values.frames import Frame
from cerata.memory.values.words import clipped
from cerata.memory.view import View

from .output import Output
from .show import unread_of
from .store_options import reading, view_of

_DIGITS_MAX: Final = 20
"""Digits from which on a number is no id but a name: the largest seq has 19."""


def run_history(options: Namespace, output: Output) -> int:
    """Print every version of a frame, or every event of a fact, entity or link."""
    with reading(options) as store:
        view = view_of(store, options)
        history: list[Frame] | list[HistoryEntry] = view.history(_thing_in(options))
        versions = [each for each in history if isinstance(each, Frame)]
        if not versions:
            events = [each for each in history if isinstance(each, HistoryEntry)]
            return _print_events(events, view, output)
        with output.pages():
            for frame in versions:
                _print_version(frame, view, output)
        output.result(
            {"basis": view.basis, "versions": [frame.to_dict() for frame in versions]},
            items="versions",
        )
    return 0


def _print_events(entries: list[HistoryEntry], view: View, output: Output) -> int:
    with output.pages():
        for entry in entries:
            act = entry.act
            output.row(
                (f"{f'#{entry.seq}':>7}  ", "yellow"),
                ("hidden" if act is None else f"{act.recorded:%Y-%m-%d %H:%M:%S}", "dim"),
                (f"  {entry.verb:<10}", "bold"),
                entry.summary,
                ("" if act is None or not act.credit else f"  {act.credit}", "dim"),
            )
    rows: list[JsonValue] = [entry.to_dict() for entry in entries]
    output.result({"basis": view.basis, "events": rows}, items="events")
    return 0


def _thing_in(options: Namespace) -> int | str:
    """Return the id of a command line, or the name of an entity."""
    number = str(options.id).removeprefix("#")
    is_id = number.isascii() and number.isdecimal() and len(number) < _DIGITS_MAX
    return int(number) if is_id and not options.entity else str(options.id)


def _print_version(frame: Frame, view: View, output: Output) -> None:
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
    act = frame.closed
    when = "" if act is None else f"{act.recorded:%Y-%m-%d %H:%M:%S}  "
    word = "deleted" if closing.by is None else "superseded"
    by = "" if act is None or not act.credit else f"  {act.credit}"
    if by or closing.by is None:
        seq = f" by event {closing.seq}"
        output.row(" " * 9, (when, "dim"), (word, "bold red"), seq, (by, "dim"))


def run_blame(options: Namespace, output: Output) -> int:
    """Print each field of a frame, fact, entity or link, and the event that set it."""
    with reading(options) as store:
        view = view_of(store, options)
        blame = view.blame(_thing_in(options))
        width = max(len(each.field) for each in blame.fields)
        for each in blame.fields:
            value = (
                each.value
                if isinstance(each.value, str)
                else json.dumps(each.value, ensure_ascii=False)
            )
            act = each.act
            when = "" if act is None else f"  {act.recorded:%Y-%m-%d %H:%M}"
            output.row(
                ("hidden " if act is None else f"#{act.seq:<6}", "yellow"),
                f"{each.field:<{width}}  ",
                clipped(value, 40),
                (when, "dim"),
                ("" if act is None or not act.credit else f"  {act.credit}", "dim"),
            )
        if blame.ended is not None:
            output.row((f"#{blame.ended.seq:<6}", "yellow"), "ended  ", blame.ended.credit)
        output.result({"basis": view.basis, **blame.to_dict()})
    return 0
