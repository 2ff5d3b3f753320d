"""The verbs that look at what there is: show, frames and timeline."""

import json
from argparse import Namespace
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from rich.text import Text

from cerata.memory.values import Frame
from cerata.projections.timeline import Position

from .narrowing import closed_of, count_of, hint, where_of
from .opening import reading, view_of
from .output import Output, bytes_text, clipped
from .parser import Adding, add_count, add_filters, add_verb


def add_verbs(adding: Adding) -> None:
    """Add show, frames and timeline."""
    show = add_verb(
        adding,
        "show",
        "show frames whole",
        run_show,
        lists=True,
        examples=("show 12", "show 12 --at HEAD~1", "show 12 13 --jsonl | jq .metadata"),
    )
    show.add_argument("ids", nargs="+", type=int, metavar="ID", help="as search and log show it")

    frames = add_verb(
        adding,
        "frames",
        "what there is, newest first",
        run_frames,
        lists=True,
        examples=("frames --tag decision", "frames -n 1000000 --jsonl | wc -l"),
    )
    add_count(frames)
    frames.add_argument("--chunks", action="store_true", help="the parts of documents too")
    add_filters(frames, closed=True)

    timeline = add_verb(
        adding,
        "timeline",
        "frames by when they are about",
        run_timeline,
        lists=True,
        examples=("timeline --since 2026-01-01 --until 2026-02-01", "timeline --by recorded -n 5"),
    )
    add_count(timeline)
    timeline.add_argument(
        "--by", choices=("content", "recorded"), default="content", help="which time (content)"
    )
    timeline.add_argument("--since", metavar="TIME", help="from this time on")
    timeline.add_argument("--until", metavar="TIME", help="before this time")
    timeline.add_argument("--oldest-first", action="store_true")
    timeline.add_argument(
        "--after", type=int, nargs=2, metavar=("TIME", "ID"), help="the next of the page before"
    )
    add_filters(timeline, closed=True)


def run_show(options: Namespace, output: Output) -> int:
    """Print frames whole, each below the line that says where it comes from."""
    with reading(options) as store:
        view = view_of(store, options)
        found = [view.frame(number) for number in options.ids]
        with output.pages():
            for place, frame in enumerate(found):
                if place:
                    output.line()
                output.line(f"[{view.source_of(frame)}]", style="bold")
                for name, value in _said_of(frame):
                    output.line(Text.assemble((f"{name}: ", "dim"), value))
                output.line()
                output.line(frame.text or f"({bytes_text(frame.size)})")
        output.result(
            {"basis": view.basis, "frames": [frame.to_dict() for frame in found]}, items="frames"
        )
    return 0


def _said_of(frame: Frame) -> Iterator[tuple[str, str]]:
    """Yield what is known of a frame besides its source and its text."""
    if not frame.active:
        by = frame.superseded_by
        yield "closed", "deleted" if by is None else f"superseded by #{by}"
    if frame.unread:
        yield "unread", unread_of(frame)
    yield "recorded", f"{frame.recorded:%Y-%m-%d %H:%M:%S} UTC"
    if frame.scope and dict(frame.scope) != {"tenant": "default"}:
        yield "scope", ", ".join(f"{name}={value}" for name, value in frame.scope.items())
    named = {"role": frame.role, "kind": None if frame.kind == "text" else frame.kind}
    yield from ((name, value) for name, value in named.items() if value)
    lists = {
        "tags": frame.tags,
        "labels": frame.labels,
        "supersedes": [f"#{number}" for number in frame.supersedes],
        "parent": [] if frame.parent is None else [f"#{frame.parent}"],
    }
    yield from ((name, ", ".join(values)) for name, values in lists.items() if values)
    if frame.metadata:
        yield "metadata", json.dumps(dict(frame.metadata), ensure_ascii=False, sort_keys=True)
    if frame.search_text:
        yield "search text", frame.search_text


def unread_of(frame: Frame) -> str:
    """Return which events of later versions name a frame."""
    numbers = ", ".join(map(str, frame.unread))
    plural = "s" if len(frame.unread) > 1 else ""
    return f"event{plural} {numbers}, of a later version: kept, not applied by this Cerata"


def run_frames(options: Namespace, output: Output) -> int:
    """Print what there is, one frame a line, newest first."""
    count = count_of(options)
    with reading(options) as store:
        view = view_of(store, options)
        every = view.frames(where_of(options), include_chunks=options.chunks, **closed_of(options))
        found = list(islice(every, count + 1))
        more, found = len(found) > count, found[:count]
        with output.pages():
            for frame in found:
                print_frame(frame, frame.created, output)
            if more:
                output.line("More: -n COUNT", style="dim")
        if not found:
            output.line("There are no frames.")
            hint(view, options, output)
        output.result(
            {"basis": view.basis, "frames": [frame.to_dict() for frame in found]}, items="frames"
        )
    return 0


def run_timeline(options: Namespace, output: Output) -> int:
    """Print frames in order of time, a page of them."""
    with reading(options) as store:
        view = view_of(store, options)
        page = view.timeline(
            by=options.by,
            start=options.since,
            end=options.until,
            where=where_of(options),
            after=None if options.after is None else Position(*options.after),
            limit=count_of(options),
            newest_first=not options.oldest_first,
            **closed_of(options),
        )
        with output.pages():
            for entry in page.entries:
                print_frame(entry.frame, entry.time, output)
            if page.next is not None:
                output.line(f"More: --after {page.next.time} {page.next.frame}", style="dim")
        if not page.entries:
            output.line("There are no frames.")
            hint(view, options, output)
        output.result({"basis": view.basis, **page.to_dict()}, items="entries")
    return 0


def print_frame(frame: Frame, time: datetime, output: Output) -> None:
    """Print a frame as one line: id, day, name and how its text begins."""
    name = frame.title or frame.uri or ""
    output.row(
        (f"{'#' + str(frame.id):>7}  ", "yellow"),
        (f"{time:%Y-%m-%d}  ", "dim"),
        ("" if frame.active else "closed  ", "dim"),
        (f"unread {', '.join(map(str, frame.unread))}  " if frame.unread else "", "yellow"),
        (f"{name}  " if name else "", "bold"),
        clipped(frame.text[:400], 400) or f"({bytes_text(frame.size)})",
    )
