"""The verbs that take a question: recall and search; and excerpts of texts around a match."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.late import late
from cerata.engine.verbs import ACTOR, AT, EMBEDDER, LISTS, Arg, Option, Verb

from .options import (
    ORDERS,
    POLICIES,
    PROFILES,
    changing,
    hint,
    profile_from,
    read_of,
    reading,
    view_of,
)
from .shared_options import CLOSED, FILTERS, SUPERSEDED

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from rich.text import Text

    from cerata.engine.events import JsonValue
    from cerata.memory.values import options as value_options
    from cerata.memory.values.frames import Hit
    from cerata.projections.fulltext.query import Query
    from cerata.retrieval.query_language import parser as query_parser

    from .output import Output
else:
    value_options = late("cerata.memory.values.options")
    query_parser = late("cerata.retrieval.query_language.parser")

_HOW: Final = (
    Option("--full", 'use the full language: "a b", inde*, tag:x, OR, NOT'),
    Option(
        "--when TIME",
        "only frames about a time: 2026-03, 'last week'; question: as the question names it",
    ),
    Option(
        "--profile NAME",
        f"weights of the lanes: {', '.join(PROFILES)}, or a file from 'admin tune'",
    ),
    EMBEDDER,
)
"""How the words are read and the lanes are ranked."""

VERBS: Final = (
    Verb(
        "recall",
        "everyday",
        "print a context for a model about a question",
        "cerata.cli.search:run_recall",
        (
            Arg("query", "the question", "+"),
            Option("--max-tokens N", "most tokens of the context (1500)", type=int, default=1500),
            Option("--entry-tokens N", "most tokens of an entry (600)", type=int, default=600),
            Option(
                "--format",
                "messages: in the form of chat interfaces (text)",
                choices=("text", "markdown", "json", "messages"),
                default="text",
            ),
            Option("--policy NAME", f"length of the entries: {', '.join(POLICIES)}"),
            Option("--order", "time: the earliest first (score)", choices=ORDERS, default="score"),
            Option("--framing", "begin with instructions to the model, within the budget"),
            Option("--record", "record the context in the log; not with --at"),
            Option(
                "--neighbours N",
                "parts or turns beside each hit to show too (0)",
                type=int,
                default=0,
            ),
            SUPERSEDED,
            Option("--no-floor", "show the closest entries to any question"),
            *_HOW,
            *FILTERS,
            AT,
            ACTOR,
        ),
        (
            "'which index did we choose?'",
            "deploys --max-tokens 500 --format markdown",
            "deploys --format messages | jq '.[0].content'",
            "deploys --at 2026-03-01 --tag decision",
            "deploys --policy tiered --order time --framing --record",
        ),
        page="contexts.md",
    ),
    Verb(
        "search",
        "everyday",
        "find frames by their words and meaning",
        "cerata.cli.search:run_search",
        (
            Arg("query", "the words", "+"),
            Option("-k K", "how many to print (10)", type=int, default=10),
            Option("--min-cosine X", "only hits with a vector at least this close", type=float),
            Option("--min-score X", "only hits with this score", type=float),
            Option("--offset N", "hits to skip (0)", type=int, default=0),
            Option("--group", "print the best hit of each document, and name the rest"),
            Option("--explain", "explain each score: lanes, words, exclusions"),
            *_HOW,
            *FILTERS,
            *CLOSED,
            *LISTS,
        ),
        (
            "harbour bridge",
            "--full '\"harbour bridge\" AND open*' -k 3",
            "bridge --explain -k 1",
            "bridge -k 20 --offset 20 --group",
            "bridge --jsonl | jq .frame.uri",
        ),
        page="search.md",
    ),
)

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
            profile=profile_from(options.profile),
            policy=options.policy,
            record=options.record,
            floor=not options.no_floor,
            layout=value_options.Layout(
                entry_tokens=options.entry_tokens,
                form="markdown" if options.format == "markdown" else "text",
                order=options.order,
                framing=options.framing,
                neighbours=options.neighbours,
            ),
            where=read_of(options),
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
    from cerata.memory.values.frames import first_readable

    query = " ".join(options.query)
    with reading(options) as store:
        view = view_of(store, options)
        # A hit past the page shows that another page follows.
        page = view.search(
            _query(query, options),
            k=options.k + 1 if options.k > 0 else options.k,
            profile=profile_from(options.profile),
            vectors=value_options.Vectors(min_cosine=options.min_cosine),
            page=value_options.Page(
                offset=options.offset, group_by="document" if options.group else "content"
            ),
            where=read_of(options),
            floor=options.min_score,
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
                    for line in str(view.history.explain(hit)).splitlines():
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
                    {**hit.to_dict(), "explanation": view.history.explain(hit).to_dict()}
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
    lines = excerpt(hit.text, hit.span, hit.highlights, lines=_LINES)
    output.paragraph(lines, indent=4, lines=_LINES)


def _print_grouped(hit: Hit, output: Output, *, by_document: bool) -> None:
    """Print the places of equal texts, or the ids of further chunks."""
    from cerata.engine.unreadable import frame_place, readable

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
    return query_parser.query(query) if options.full else query


_BEFORE: Final = 60
"""Characters before the match, in a line longer than that."""

_REACH: Final = 2_000
"""Characters that are read around the start of the match."""

_LINE_SIZE: Final = 400

_WRAPPED: Final = 50
"""Characters of a line before which a paragraph is not wrapped."""

_BLANKS: Final = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")
_PROSE: Final = re.compile(r"[^\W_]+[,.:;!?)]* [^\W_]|[\"'(`\u201c][^\W_][^\n]* [^\W_]")

_CODE: Final = re.compile(
    r"[{}=]|[;(\[\\]\s*$|^(?:from|import|def|class|return|if|for|let|const|var|use|package)\b"
)

Span = tuple[int, int]


def excerpt(text: str, span: Span, marks: Sequence[Span], *, lines: int) -> Text:
    """Return up to ``lines`` lines of a text from the start of a span on, without blank lines.

    Args:
        text: the text
        span: characters [start, end) of the best part; (0, 0) for the beginning
        marks: characters [start, end) to mark, ascending and apart
        lines: most lines; a line may be long
    """
    from rich.text import Text

    from cerata.retrieval.tables import find_tables, table_at

    at = span[0]
    table = table_at(find_tables(text), at)
    spans: list[Span] = []
    if table is not None:
        spans = _lines_from(text, table.start, table.body, 1)
        at = max(at, table.body)
    begin = text.rfind("\n", 0, at) + 1
    if at - begin > _BEFORE:
        begin = at - _BEFORE
        begin = (text.find(" ", begin, at) + 1) or begin
    spans += _lines_from(text, begin, len(text), lines - len(spans))
    if spans and table is None and text[begin - 1 : begin] in ("", "\n"):
        spans = _lines_before(text, begin, lines - len(spans)) + spans
    margin = min((_indent(text[start:end]) for start, end in spans), default=0)
    result = Text()
    for number, (start, end) in enumerate(spans):
        if number:
            is_one = table is None and _are_one(text, spans[number - 1], (start, end))
            result.append(" " if is_one else "\n")
        is_cut = text[start - 1 : start] not in ("", "\n")
        result.append("…" if is_cut else "")
        result.append_text(_marked(text, start if is_cut else start + margin, end, marks))
    if spans and text[spans[-1][1] : spans[-1][1] + _REACH].strip():
        result.append(" …", "dim")
    return result


def _lines_from(text: str, start: int, stop: int, count: int) -> list[Span]:
    """Return the next lines with any text, each up to a size."""
    spans: list[Span] = []
    limit = min(stop, start + _REACH)
    while start < limit and len(spans) < count:
        line_end = text.find("\n", start, limit)
        line_end = limit if line_end < 0 else line_end
        if text[start:line_end].strip():
            spans.append((start, min(line_end, start + _LINE_SIZE)))
        start = line_end + 1
    return spans


def _lines_before(text: str, stop: int, count: int) -> list[Span]:
    """Return the lines with any text right before a line."""
    spans: list[Span] = []
    limit = max(0, stop - _REACH)
    while stop > limit and len(spans) < count:
        start = text.rfind("\n", 0, stop - 1) + 1
        if text[start:stop].strip() and start >= limit:
            spans.append((start, min(stop - 1, start + _LINE_SIZE)))
        stop = start
    return spans[::-1]


def _are_one(text: str, first: Span, second: Span) -> bool:
    """Return whether two lines are of one paragraph, which is wrapped to the terminal."""
    is_wrapped = first[1] - first[0] >= _WRAPPED and text[first[1] : second[0]] == "\n"
    return is_wrapped and _is_prose(text[slice(*first)]) and _is_prose(text[slice(*second)])


def _is_prose(line: str) -> bool:
    """Return whether a line may be part of a paragraph: no code, list, table or heading."""
    return _PROSE.match(line) is not None and _CODE.search(line) is None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _marked(text: str, start: int, end: int, marks: Sequence[Span]) -> Text:
    """Return one line without its end; the marks in it are bold."""
    from rich.text import Text

    line = Text(text[start:end].translate(_BLANKS).rstrip())
    for first, last in marks[bisect_left(marks, (start, 0)) :]:
        if first >= end:
            break
        line.stylize("bold green", first - start, min(last, end) - start)
    return line
