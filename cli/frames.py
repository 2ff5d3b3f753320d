"""The verbs that print frames: show and list; and bars over time."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from cerata.engine.errors import InvalidInput
from cerata.engine.verbs import ACTOR, LISTS, Arg, Option, Verb, identifier

from .options import (
    changing,
    check_goes_with,
    count_of,
    hint,
    read_of,
    reading,
    view_of,
    where_of,
)
from .shared_options import CLOSED, FILTERS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cerata.engine.events import JsonValue
    from cerata.memory.frames.access import Access
    from cerata.memory.values.facts import Period
    from cerata.memory.values.frames import Frame

    from .output import Output


def _part_of_place(text: str) -> int:
    return int(text.removeprefix("#"))


_TIMES: Final = ("content", "recorded")

VERBS: Final = (
    Verb(
        "show",
        "everyday",
        "print whole frames",
        "cerata.cli.frames:run_show",
        (
            Arg("ids", "ids of frames, as in search and log", "+", type=identifier, metavar="ID"),
            *LISTS,
        ),
        ("12", "12 --at HEAD~1", "12 13 --jsonl | jq .metadata"),
    ),
    Verb(
        "list",
        "everyday",
        "list frames, newest first, or by a time, a use or a value",
        "cerata.cli.frames:run_list",
        (
            Arg("ids", "with --by access: ids of frames", "*", type=identifier, metavar="ID"),
            Option(
                "--by NAME",
                "content or recorded: in order of that time; access: how often frames were shown "
                "and used; tag, label, kind, role, track, title, uri, metadata or metadata.NAME: "
                "each value and its count of frames",
            ),
            Option("-n COUNT", "how many (20); not with values", type=int),
            Option("--chunks", "include the parts of documents"),
            Option("--since TIME", "with a time: only frames from this time on"),
            Option("--until TIME", "with a time: only frames before this time"),
            Option("--oldest-first", "with a time: print the oldest first"),
            Option(
                "--after TIME ID",
                "with a time: continue after a page, as printed at its end",
                type=_part_of_place,
            ),
            Option("--prefix PREFIX", "with values: only values that start with it"),
            Option("--record", "with access: record a use of each frame; not with --at"),
            *FILTERS,
            *CLOSED,
            *LISTS,
            ACTOR,
        ),
        (
            "--tag decision",
            "-n 1000000 --jsonl | wc -l",
            "--by content --since 2026-01-01 --until 2026-02-01",
            "--by recorded -n 5",
            "--by access 3 8 --record",
            "--by uri --prefix docs/ --at HEAD~3",
            "--by metadata.lang",
        ),
    ),
)


def run_show(options: Namespace, output: Output) -> int:
    """Print whole frames, each below its source."""
    from cerata.engine.unreadable import frame_place, readable
    from cerata.engine.words import bytes_text

    with reading(options) as store:
        view = view_of(store, options)
        ids = options.ids
        # A frame alone raises its error.
        frames = [*readable(ids, view.frame, frame_place)] if ids[1:] else [view.frame(ids[0])]
        with output.pages():
            for place, frame in enumerate(frames):
                if place:
                    output.line()
                output.line(f"[{view.files.source(frame)}]", style="bold")
                for name, value in _details_of(frame):
                    output.parts((f"{name}: ", "dim"), value)
                output.line()
                output.line(frame.text or f"({bytes_text(frame.size)})")
        output.result(
            {"basis": view.basis, "frames": [frame.to_dict() for frame in frames]}, items="frames"
        )
    return 0


def _details_of(frame: Frame) -> Iterator[tuple[str, str]]:
    from cerata.memory.values.acts import credit

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


def _list_frames(options: Namespace, output: Output) -> int:
    """Print current frames, one a line, newest first."""
    count = count_of(options)
    with reading(options) as store:
        view = view_of(store, options)
        matches = view.frames(read_of(options), include_chunks=options.chunks)
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


def _list_timeline(options: Namespace, output: Output) -> int:
    """Print a page of frames in order of time."""
    # The module is imported here: help would wait for it.
    from dataclasses import replace

    from cerata.engine.unreadable import frame_place, readable
    from cerata.projections.frames.timeline import Position

    with reading(options) as store:
        view = view_of(store, options)
        page = view.history.timeline(
            by=options.by,
            start=options.since,
            end=options.until,
            where=read_of(options),
            after=None if options.after is None else Position(*options.after),
            limit=count_of(options),
            newest_first=not options.oldest_first,
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
    from cerata.engine.words import bytes_text, clipped

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


def _list_access(options: Namespace, output: Output) -> int:
    """Print counts, one frame a line, the most used first."""
    from cerata.engine.events import AccessFrames
    from cerata.engine.unreadable import frame_place, readable
    from cerata.memory.frames.access import access_of, all_access
    from cerata.memory.snapshot.reader import snapshot_of

    count = count_of(options)
    if options.record and options.at is not None:
        raise InvalidInput(
            "--record works at the newest point only, not with --at",
            remedy="Remove --at or --record.",
        )
    if options.record and not options.ids:
        raise InvalidInput(
            "--record needs at least one frame", remedy="Pass the ids of the frames that were used."
        )
    with changing(options, output) if options.record else reading(options) as store:
        if options.record:
            store.append(AccessFrames(frames=tuple(dict.fromkeys(options.ids))))
        view = view_of(store, options)
        snapshot = snapshot_of(view)
        accesses = (
            [access_of(snapshot, snapshot.id_of(number)) for number in options.ids]
            if options.ids
            else all_access(snapshot)
        )
        page = accesses if options.ids else accesses[:count]
        is_whole = len(page) == len(accesses)
        named = readable(
            page,
            lambda access: (access, view.files.source(view.frame(access.frame))),
            lambda access: frame_place(access.frame),
        )
        sources = [*named]
        page = [access for access, _ in sources]
        with output.pages():
            for access, source in sources:
                _print_access(access, source, output)
            if not is_whole:
                output.line("More: -n COUNT", style="dim")
        if not page:
            output.line("No access is recorded; 'recall --record' records the shown frames.")
        output.result(
            {"basis": view.basis, "accesses": [access.to_dict() for access in page]},
            items="accesses",
        )
    return 0


def _print_access(access: Access, source: str, output: Output) -> None:
    output.row(
        (f"{f'#{access.frame}':>7}  ", "yellow"),
        f"used {_use_text(access.used, access.last_used)}  ",
        f"shown {_use_text(access.shown, access.last_shown)}  ",
        (source.partition(" · ")[2], "dim"),
    )


def _use_text(count: int, last: datetime | None) -> str:
    return f"{count:,}" if last is None else f"{count:,} (last {last:%Y-%m-%d})"


WIDTH: Final = 24
"""Characters of a bar."""

_LEVELS: Final = (" ▁▂▃▄▅▆▇█", " .:-=+*#@")
_PERIOD: Final = ("─━", ".=")
_MOMENT: Final = ("●", "*")


def can_draw() -> bool:
    """Return whether standard output has the characters of the drawings; else they are ASCII."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "".join((_LEVELS[0], _PERIOD[0], _MOMENT[0])).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class TimeBars(NamedTuple):
    """Bars over one range of time, from ``first`` to ``last``.

    - Each of the ``width`` characters is an equal part of the range.
    """

    first: datetime
    last: datetime
    width: int = WIDTH

    @property
    def _kind(self) -> int:
        return 0 if can_draw() else 1

    @property
    def is_empty(self) -> bool:
        """True if the range is a single instant, over which nothing can be drawn."""
        return self.first >= self.last

    def density(self, times: Sequence[datetime]) -> str:
        """Return a row whose heights are the counts of times in each part."""
        counts = [0] * self.width
        for time in times:
            counts[self._place(time)] += 1
        levels = _LEVELS[self._kind]
        top = max(counts, default=0) or 1
        # A part with a single time keeps the lowest visible level.
        return "".join(levels[-(-count * (len(levels) - 1) // top)] for count in counts)

    def period(self, period: Period) -> str:
        """Return a row that is strong where a period holds; each period has a part at least."""
        off, on = _PERIOD[self._kind]
        start = 0 if period.start is None else self._place(period.start)
        end = self.width if period.end is None else self._place(period.end)
        end = max(end, start + 1)
        return off * start + on * (end - start) + off * (self.width - end)

    def moment(self, time: datetime) -> str:
        """Return a row with a mark at a time."""
        off = _PERIOD[self._kind][0]
        place = self._place(time)
        return off * place + _MOMENT[self._kind] + off * (self.width - place - 1)

    def _place(self, time: datetime) -> int:
        if self.is_empty:
            return 0
        share = (time - self.first) / (self.last - self.first)
        return min(self.width - 1, max(0, int(share * self.width)))


def bars_over(times: Sequence[datetime | None], width: int = WIDTH) -> TimeBars | None:
    """Return bars over the range of times; None unless two of them differ."""
    known = [time for time in times if time is not None]
    if not known or min(known) == max(known):
        return None
    return TimeBars(min(known), max(known), width)


def _list_values(options: Namespace, output: Output) -> int:
    """Print each value of a field with its count of frames."""
    with reading(options) as store:
        view = view_of(store, options)
        counts = view.files.values(options.by, prefix=options.prefix or "", where=where_of(options))
        with output.pages():
            for count in counts:
                value = count.value if isinstance(count.value, str) else repr(count.value)
                output.parts((f"{count.count:>7,}  ", "yellow"), value)
        if not counts:
            output.line("There are no values.")
            hint(view, options, output)
        rows: list[JsonValue] = [count.to_dict() for count in counts]
        output.result({"basis": view.basis, "field": options.by, "values": rows}, items="values")
    return 0


def run_list(options: Namespace, output: Output) -> int:
    """List frames, newest first, or by the time, use or value that ``--by`` names."""
    by: str | None = options.by
    is_access = by == "access"
    is_values = not (by is None or is_access or by in _TIMES)
    times = {
        "--since": options.since,
        "--until": options.until,
        "--oldest-first": options.oldest_first,
        "--after": options.after,
    }
    filters = {
        "--tag": options.tag,
        "--kind": options.kind,
        "--role": options.role,
        "--absent": options.absent,
        "--where": options.where,
    }
    closed = {"--superseded": options.superseded, "--deleted": options.deleted}
    access = {"ID": options.ids, "--record": options.record}
    check_goes_with("--by content and --by recorded", times, is_passed=by in _TIMES)
    check_goes_with("a list of frames", {"--chunks": options.chunks}, is_passed=by is None)
    check_goes_with("--by access", access, is_passed=is_access)
    check_goes_with("--by and a field", {"--prefix": options.prefix}, is_passed=is_values)
    check_goes_with("a list of frames", {"-n": options.n}, is_passed=not is_values)
    check_goes_with("frames and their values", filters, is_passed=not is_access)
    check_goes_with("a list of frames", closed, is_passed=by is None or by in _TIMES)
    if by is None:
        return _list_frames(options, output)
    if by in _TIMES:
        return _list_timeline(options, output)
    return (_list_access if is_access else _list_values)(options, output)
