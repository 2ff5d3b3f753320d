"""The verbs that read the memory: search, recall, show, frames and timeline."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from rich.text import Text

import cerata
from cerata.engine.errors import InvalidInput
from cerata.memory.values import Frame, Hit
from cerata.projections.filters import Filter
from cerata.projections.query import Query
from cerata.projections.timeline import Position

from .opening import reading, view_of
from .output import Output, bytes_text, clipped

_SNIPPET: Final = 200


def run_search(options: Namespace, output: Output) -> int:
    """Print the best frames, their words marked."""
    query = " ".join(options.query)
    with reading(options) as store:
        view = view_of(store, options)
        hits = view.search(
            _asked(query, options), k=options.k, where=_where(options), **_closed(options)
        )
        for rank, hit in enumerate(hits, start=1):
            _print_hit(rank, hit, output)
        if not hits:
            output.line(f"Nothing matches {query!r} at event {view.basis:,}.")
        output.result(
            {"query": query, "basis": view.basis, "hits": [hit.to_dict() for hit in hits]},
            items="hits",
        )
    return 0


def _print_hit(rank: int, hit: Hit, output: Output) -> None:
    frame = hit.frame
    name = frame.title or frame.uri or clipped(frame.text, 40)
    closed = "" if frame.active else "  (closed)"
    output.line(
        Text.assemble(
            (f"{rank:>2}. ", "dim"),
            (name, "bold"),
            (f"  #{hit.id}  {hit.score:.3f}{closed}", "dim"),
        )
    )
    start, end = hit.span
    begin = max(0, start - 60)
    before = " ".join(hit.text[begin:start].split())
    inside = " ".join(hit.text[start:end].split())
    rest = clipped(hit.text[end : end + _SNIPPET], max(20, _SNIPPET - len(before) - len(inside)))
    lead = "…" if begin else ""
    output.line(Text.assemble("    ", lead, before, " ", (inside, "green"), " ", rest))


def run_recall(options: Namespace, output: Output) -> int:
    """Print a context, its last line saying what was shown."""
    query = " ".join(options.query)
    with reading(options) as store:
        context = view_of(store, options).recall(
            _asked(query, options), max_tokens=options.max_tokens, where=_where(options)
        )
        if context.text:
            output.line(context.text)
            output.line()
        output.line(context.summary, style="dim")
        output.result({"query": query, **context.to_dict()})
    return 0


def run_show(options: Namespace, output: Output) -> int:
    """Print frames whole, each below the line that says where it comes from."""
    with reading(options) as store:
        view = view_of(store, options)
        found = [view.frame(number) for number in options.ids]
        for place, frame in enumerate(found):
            if place:
                output.line()
            output.line(f"[{view.source_of(frame)}]", style="dim")
            for name, value in _said_of(frame):
                output.line(Text.assemble((f"{name}: ", "dim"), value))
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
    yield "scope", ", ".join(f"{name}={value}" for name, value in frame.scope.items())
    named = {"role": frame.role, "kind": None if frame.kind == "text" else frame.kind}
    yield from ((name, value) for name, value in named.items() if value)
    lists = {
        "tags": frame.tags,
        "labels": frame.labels,
        "supersedes": [f"#{number}" for number in frame.supersedes],
    }
    yield from ((name, ", ".join(values)) for name, values in lists.items() if values)
    if frame.metadata:
        yield "metadata", json.dumps(dict(frame.metadata), ensure_ascii=False, sort_keys=True)
    if frame.search_text:
        yield "search text", frame.search_text


def run_frames(options: Namespace, output: Output) -> int:
    """Print what there is, one frame a line, newest first."""
    count = count_of(options)
    with reading(options) as store:
        view = view_of(store, options)
        every = view.frames(_where(options), include_chunks=options.chunks, **_closed(options))
        found = list(islice(every, count))
        for frame in found:
            _print_frame(frame, frame.created, output)
        if not found:
            output.line("There are no frames.")
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
            where=_where(options),
            after=None if options.after is None else Position(*options.after),
            limit=count_of(options),
            newest_first=not options.oldest_first,
            **_closed(options),
        )
        for entry in page.entries:
            _print_frame(entry.frame, entry.time, output)
        if not page.entries:
            output.line("There are no frames.")
        if page.next is not None:
            output.line(f"More: --after {page.next.time} {page.next.frame}", style="dim")
        output.result({"basis": view.basis, **page.to_dict()}, items="entries")
    return 0


def _print_frame(frame: Frame, time: datetime, output: Output) -> None:
    name = frame.title or frame.uri or ""
    closed = "" if frame.active else "(closed) "
    output.line(
        Text.assemble(
            (f"{frame.id:>8,}  ", "yellow"),
            (f"{time:%Y-%m-%d}  ", "dim"),
            (closed, "dim"),
            (f"{name}  " if name else "", "bold"),
            clipped(frame.text, 80) or f"({bytes_text(frame.size)})",
        )
    )


def _asked(query: str, options: Namespace) -> str | Query:
    return cerata.query(query) if options.full else query


def _where(options: Namespace) -> Filter | None:
    """Return the filter that was asked for, or None."""
    if not (options.tag or options.kind or options.role):
        return None
    return Filter(tags=options.tag, kind=options.kind, role=options.role)


def _closed(options: Namespace) -> dict[str, bool]:
    return {"include_superseded": options.superseded, "include_deleted": options.deleted}


def count_of(options: Namespace) -> int:
    """Return how many items were asked for. Raises `InvalidInput`."""
    count: int = options.n
    if not 0 < count <= sys.maxsize:
        raise InvalidInput(f"-n {count}", remedy="Ask for 1 or more.")
    return count
