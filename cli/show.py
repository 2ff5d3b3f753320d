"""The verbs that print frames: show, frames and timeline."""

import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice

from cerata.engine.unreadable import frame_place, readable
from cerata.memory.values.acts import credit
from cerata.memory.values.frames import Frame
from cerata.memory.values.words import bytes_text, clipped
from cerata.projections.frames.timeline import Position

from .filter_options import closed_of, count_of, hint, where_of
from .output import Output
from .store_options import reading, view_of
from .time_bars import bars_over


def run_show(options: Namespace, output: Output) -> int:
    """Print whole frames, each below its source."""
    with reading(options) as store:
        view = view_of(store, options)
        ids = options.ids
        # A frame alone raises its error.
        frames = [*readable(ids, view.frame, frame_place)] if ids[1:] else [view.frame(ids[0])]
        with output.pages():
            for place, frame in enumerate(frames):
                if place:
                    output.line()
                output.line(f"[{view.source_of(frame)}]", style="bold")
                for name, value in _details_of(frame):
                    output.parts((f"{name}: ", "dim"), value)
                output.line()
                output.line(frame.text or f"({bytes_text(frame.size)})")
        output.result(
            {"basis": view.basis, "frames": [frame.to_dict() for frame in frames]}, items="frames"
        )
    return 0


def _details_of(frame: Frame) -> Iterator[tuple[str, str]]:
    if not frame.active and not frame.is_expired:
        by = frame.superseded_by
        closed = "deleted" if by is None else f"superseded by #{by}"
        by_whom = "" if frame.closed is None else frame.closed.credit
        yield "closed", f"{closed} {by_whom}".rstrip()
    if frame.unread:
        yield "unread", unread_of(frame)
    yield "recorded", f"{frame.recorded:%Y-%m-%d %H:%M:%S} UTC"
    if text := credit(frame.actor, frame.reason):
        yield "written", text
    if frame.scope and dict(frame.scope) != {"tenant": "default"}:
        yield "scope", ", ".join(f"{name}={value}" for name, value in frame.scope.items())
    optional = {
        "role": frame.role,
        "kind": None if frame.kind == "text" else frame.kind,
        "track": frame.track,
        "expired" if frame.is_expired else "expires": None
        if frame.expires is None
        else f"{frame.expires:%Y-%m-%d %H:%M:%S} UTC",
    }
    yield from ((name, value) for name, value in optional.items() if value)
    lists = {
        "tags": frame.tags,
        "labels": frame.labels,
        "content dates": [f"{date:%Y-%m-%d}" for date in frame.content_dates],
        "supersedes": [f"#{number}" for number in frame.supersedes],
        "parent": [] if frame.parent is None else [f"#{frame.parent}"],
    }
    yield from ((name, ", ".join(values)) for name, values in lists.items() if values)
    if frame.metadata:
        yield "metadata", json.dumps(dict(frame.metadata), ensure_ascii=False, sort_keys=True)
    if frame.search_text:
        yield "search text", frame.search_text


def unread_of(frame: Frame) -> str:
    """Return the events of later versions that name a frame."""
    numbers = ", ".join(map(str, frame.unread))
    plural = "s" if len(frame.unread) > 1 else ""
    return f"event{plural} {numbers}, of a later version: kept, not applied by this Cerata"


def run_frames(options: Namespace, output: Output) -> int:
    """Print current frames, one a line, newest first."""
    count = count_of(options)
    with reading(options) as store:
        view = view_of(store, options)
        matches = view.frames(
            where_of(options), include_chunks=options.chunks, **closed_of(options)
        )
        page = list(islice(matches, count + 1))
        more = len(page) > count
        page = page[:count]
        with output.pages():
            for frame in page:
                print_frame(frame, frame.created, output)
            if more:
                output.line("More: -n COUNT", style="dim")
        if not page:
            output.line("There are no frames.")
            hint(view, options, output)
        output.result(
            {"basis": view.basis, "frames": [frame.to_dict() for frame in page]}, items="frames"
        )
    return 0


def run_timeline(options: Namespace, output: Output) -> int:
    """Print a page of frames in order of time."""
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
        readings = readable(
            page.entries, lambda entry: (entry, entry.frame), lambda entry: frame_place(entry.id)
        )
        entries = [*readings]
        page = replace(page, entries=tuple(entry for entry, _ in entries))
        with output.pages():
            for entry, frame in entries:
                print_frame(frame, entry.time, output)
            _print_density([entry.time for entry in page.entries], output)
            if page.next is not None:
                output.line(f"More: --after {page.next.time} {page.next.frame}", style="dim")
        if not page.entries:
            output.line("There are no frames.")
            hint(view, options, output)
        output.result({"basis": view.basis, **page.to_dict()}, items="entries")
    return 0


def _print_density(times: list[datetime], output: Output) -> None:
    """Print how the frames of a page are spread over its time."""
    if output.as_json or (bars := bars_over(times)) is None:
        return
    days = f"{bars.first:%Y-%m-%d}", f"{bars.last:%Y-%m-%d}"
    output.row(f"{days[0]}  {bars.density(times)}  {days[1]}", indent=9)


def print_frame(frame: Frame, time: datetime, output: Output) -> None:
    """Print a frame as one line: id, day, name, speaker and the beginning of its text."""
    name = frame.title or frame.uri or ""
    output.row(
        (f"{'#' + str(frame.id):>7}  ", "yellow"),
        (f"{time:%Y-%m-%d}  ", "dim"),
        ("" if frame.active else "expired  " if frame.is_expired else "closed  ", "dim"),
        (f"unread {', '.join(map(str, frame.unread))}  " if frame.unread else "", "yellow"),
        (f"{name}  " if name else "", "bold"),
        (f"{frame.role}: " if frame.role else "", "bold"),
        clipped(frame.text[:400], 400) or f"({bytes_text(frame.size)})",
    )
