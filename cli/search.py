"""The verbs that take a question: recall and search."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Final

import cerata
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.values.frames import Hit, first_readable
from cerata.projections.fulltext.query import Query

from .filter_options import hint, where_of
from .output import Output
from .profile_files import profile_from
from .store_options import changing, reading, view_of

_LINES: Final = 3
_FURTHER: Final = 8
"""Further hits of a document or text that are named."""


def run_recall(options: Namespace, output: Output) -> int:
    """Print a context, and a summary of it in the last line."""
    query = " ".join(options.query)
    if options.record and options.at is not None:
        raise InvalidInput(
            "--record works at the newest point only, not with --at",
            remedy="Remove --at or --record.",
        )
    with changing(options, output) if options.record else reading(options) as store:
        view = view_of(store, options)
        context = (store if options.record else view).recall(
            _query(query, options),
            max_tokens=options.max_tokens,
            entry_tokens=options.entry_tokens,
            where=where_of(options),
            when=options.when,
            profile=profile_from(options.profile),
            form="markdown" if options.format == "markdown" else "text",
            policy=options.policy,
            order=options.order,
            framing=options.framing,
            record=options.record,
            include_superseded=options.superseded,
            neighbours=options.neighbours,
            floor=not options.no_floor,
        )
        for notice in context.notices:
            output.warn(notice)
        if not context.items:
            hint(view, options, output)
    answer: dict[str, JsonValue] = {"query": query, **context.to_dict()}
    if options.format in ("json", "messages"):
        printed = answer if options.format == "json" else context.to_messages()
        if not output.as_json:
            output.json_text(json.dumps(printed, ensure_ascii=False, indent=2))
    else:
        if context.text:
            output.line(context.text)
            output.line()
        mark = "*" if options.format == "markdown" else ""
        output.line(f"{mark}{context.summary}{mark}", style="dim")
    output.result(answer)
    return 0


def run_search(options: Namespace, output: Output) -> int:
    """Print the best frames, with their matching words marked."""
    query = " ".join(options.query)
    with reading(options) as store:
        view = view_of(store, options)
        # A hit past the page shows that another page follows.
        page = view.search(
            _query(query, options),
            k=options.k + 1 if options.k > 0 else options.k,
            offset=options.offset,
            group_by="document" if options.group else "content",
            where=where_of(options),
            when=options.when,
            profile=profile_from(options.profile),
            include_superseded=options.superseded,
            include_deleted=options.deleted,
            min_cosine=options.min_cosine,
            min_score=options.min_score,
        )
        for notice in page.notices:
            output.warn(notice)
        hits = [*filter(None, map(first_readable, page[: options.k]))]
        with output.pages():
            for rank, hit in enumerate(hits, start=options.offset + 1):
                _print_hit(rank, hit, output)
                if hit.grouped and not output.as_json:
                    _print_grouped(hit, output, by_document=options.group)
                if options.explain:
                    for line in str(view.explain(hit)).splitlines():
                        output.line(f"    {line}", style="dim")
            if len(page) > options.k:
                output.line(f"More: --offset {options.offset + options.k}", style="dim")
        if not hits and options.offset:
            output.line(f"No hit comes after the first {options.offset:,}.")
        elif not hits:
            output.line(f"No frame matches {query!r} at event {view.basis:,}.")
            hint(view, options, output)
        output.result(
            {
                "query": query,
                "basis": view.basis,
                "hits": [
                    {**hit.to_dict(), "explanation": view.explain(hit).to_dict()}
                    if options.explain
                    else hit.to_dict()
                    for hit in (hits if output.as_json else ())
                ],
                "notices": [*page.notices],
            },
            items="hits",
        )
    return 0


def _print_hit(rank: int, hit: Hit, output: Output) -> None:
    frame = hit.frame
    closed = "" if frame.active else "  closed"
    details = f"  {hit.score:.3f}{closed}"
    uri = _from_here(frame.uri)
    name = frame.title or uri
    place = f"  {uri}" if uri and uri != name else ""
    output.row(
        (f"{rank:>2}. ", "dim"),
        (f"#{hit.id}", "yellow"),
        (details, "dim"),
        (f"  {name}" if name else "", "bold"),
        (place, "dim"),
        (f"  {frame.role}" if frame.role else "", "bold"),
        (f"  {frame.created:%Y-%m-%d}" if frame.role else "", "dim"),
    )
    # Imported here: an excerpt is a text of rich, which a context does not need.
    from .excerpts import excerpt

    lines = excerpt(hit.text, hit.span, hit.highlights, lines=_LINES)
    output.paragraph(lines, indent=4, lines=_LINES)


def _print_grouped(hit: Hit, output: Output, *, by_document: bool) -> None:
    """Print the places of equal texts, or the ids of further chunks."""
    shown, count = hit.grouped[:_FURTHER], len(hit.grouped)
    if by_document:
        names = [f"#{further.id}" for further in shown]
        lead = f"and {count:,} more in it: "
    else:
        names = [*readable(shown, _place_of, lambda further: frame_place(further.id))]
        lead = "also under "
    more = f" and {count - _FURTHER:,} more" if count > _FURTHER else ""
    output.row((f"{lead}{', '.join(names)}{more}", "dim"), indent=4)


def _place_of(hit: Hit) -> str:
    """Return the id of a hit with its file or title."""
    name = _from_here(hit.frame.uri) or hit.frame.title
    return f"#{hit.id} {name}" if name else f"#{hit.id}"


def _from_here(uri: str | None) -> str | None:
    """Return a file's path relative to the present folder, if it is below."""
    try:
        here = f"{Path.cwd().as_posix()}/"
    except OSError:  # the folder was removed
        return uri
    return uri.removeprefix(here) if uri else None


def _query(query: str, options: Namespace) -> str | Query:
    return cerata.query(query) if options.full else query
