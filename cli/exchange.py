"""The verbs that copy facts, events and records between memories: export and import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.errors import Conflict, InvalidInput

from .files import STREAM, new_file, opened_input
from .options import IMPORTERS, planning, reading, view_of, writing
from .talk import agent_in, agent_scope
from .verb import ACTOR, AT, Arg, Option, Verb

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import IO

    from cerata.agents.continuity.archive import ArchivedDay
    from cerata.engine.events import JsonValue
    from cerata.integrations.importers import ImportedRecords
    from cerata.memory.facts.importing import ImportedFacts
    from cerata.memory.interchange.importing import ImportedEvents

    from .output import Output, Steps

VERBS: Final = (
    Verb(
        "export",
        "file",
        "write facts or every event as JSON Lines, or an agent's messages by day",
        "exchange:run_export",
        (
            Arg("to", "a new file, or - for standard output", "?", default="-", metavar="FILE"),
            # Required, so that later kinds of exports do not change this command.
            Option("--facts", "export facts and entities", either="kind", required=True),
            Option("--events", "export every event, exact; FILE may end in .zst", either="kind"),
            Option(
                "--archive DIR",
                "write a file for each UTC day with messages of an agent, and replace none",
                either="kind",
            ),
            Option("--agent NAME", "with --archive: the agent; by default the only one"),
            Option("--history", "include retracted facts"),
            Option(
                "--from SEQ",
                "with --events: begin with the batch of this event",
                dest="first",
                type=int,
            ),
            AT,
        ),
        (
            "--facts facts.jsonl",
            "--facts --history --at before-the-move | jq .subject",
            "--events memory.jsonl.zst",
            "--archive days --agent wyatt --at 2026-11-26",
        ),
        page="interchange.md",
    ),
    Verb(
        "import",
        "file",
        "import an export, or another memory, each record once",
        "exchange:run_import",
        (
            Arg("source", "a file from export, or - for standard input", metavar="FILE"),
            Option(
                "--from KIND",
                f"FILE is of another memory: {', '.join(IMPORTERS)}",
                dest="kind",
                choices=IMPORTERS,
            ),
            Option("--dry-run", "with --from: print counts and problems only"),
            ACTOR,
        ),
        (
            "facts.jsonl -f new.cera",
            "- < facts.jsonl",
            "memory.jsonl.zst -f copy.cera",
            "--from mem0 ~/.mem0/history.db --dry-run",
        ),
        page="importers.md",
    ),
)


def run_export(options: Namespace, output: Output) -> int:
    """Write facts, every event, or the messages of an agent."""
    if options.archive is not None:
        return _export_days(options, output)
    if options.agent is not None:
        raise InvalidInput("--agent goes with --archive", remedy="Leave out --agent.")
    if options.to == STREAM and output.as_json:
        raise InvalidInput(
            "--json does not go with lines on standard output", remedy="Pass a FILE for the lines."
        )
    if options.events and options.history:
        raise InvalidInput("--history goes with --facts", remedy="Leave out --history.")
    if options.facts and options.first is not None:
        raise InvalidInput("--from goes with --events", remedy="Leave out --from.")
    return (_export_events if options.events else _export_facts)(options, output)


def _export_days(options: Namespace, output: Output) -> int:
    lines = {
        "FILE": options.to != STREAM,
        "--history": options.history,
        "--from": options.first is not None,
    }
    for name, is_passed in lines.items():
        if is_passed:
            raise InvalidInput(f"--archive takes no {name}", remedy=f"Leave out {name}.")
    return export_archive(options, output)


def _export_facts(options: Namespace, output: Output) -> int:
    from cerata.memory.values.words import counted

    with reading(options) as store:
        view = view_of(store, options)
        lines = view.interchange.export_facts(history=options.history)
        if options.to == STREAM:
            for line in lines:
                output.json_text(line)
            return 0
        count = 0
        with new_file(options.to, store.path) as file:
            for line in lines:
                file.write(line.encode() + b"\n")
                count += 1
        summary = f"{counted(count, 'line')} in {options.to}, as of event {view.basis:,}"
        output.line(summary)
        output.result(
            {
                "file": store.path,
                "to": options.to,
                "lines": count,
                "basis": view.basis,
                "history": options.history,
            }
        )
    return 0


def _export_events(options: Namespace, output: Output) -> int:
    from cerata.memory.values.words import counted

    first = 1 if options.first is None else options.first
    with reading(options) as store:
        at = "HEAD" if options.at is None else options.at
        if options.to == STREAM:
            store.interchange.export_events(_standard_output(output), at=at, first=first)
            return 0
        with output.progress("exporting", store.head.seq) as steps:

            def show(count: int, total: int) -> None:
                steps.stand("exporting", count, total)

            exported = store.interchange.export_events(
                options.to, at=at, first=first, progress=show
            )
        output.line(
            f"{counted(exported.count, 'event')} in {options.to}, as of event {exported.last:,}"
        )
        output.result({"file": store.path, "to": options.to, **exported.to_dict()})
    return 0


def _standard_output(output: Output) -> IO[bytes]:
    if sys.stdout is None:
        raise InvalidInput("Standard output is closed", remedy="Pass a FILE for the lines.")
    sys.stdout.flush()
    return cast("IO[bytes]", _Printed(output)) if sys.stdout.isatty() else sys.stdout.buffer


class _Printed:
    """Prints lines on a terminal, with steering characters escaped."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, lines: bytes) -> None:
        for line in lines.removesuffix(b"\n").split(b"\n"):
            self._output.json_text(line.decode())


def run_import(options: Namespace, output: Output) -> int:
    """Import lines, or the records of another memory, and print how many were new."""
    from cerata.memory.interchange.line_files import (
        COMPRESSED,
        decompressed,
        holds_events,
        peekable,
    )

    if options.kind is not None:
        return import_records(options, output)
    if options.dry_run:
        raise InvalidInput("--dry-run goes with --from", remedy="Pass --from KIND.")
    with opened_input(options.source, "Pass a file from 'cerata file export'.") as (file, size):
        is_compressed = options.source.endswith(COMPRESSED)
        lines = peekable(decompressed(file) if is_compressed else file)
        run = _import_events if holds_events(lines) else _import_facts
        try:
            with output.progress("importing", size) as steps:
                done = _Advance(steps, file) if size else _Advance(steps, None)
                return run(options, output, lines, done)
        except KeyboardInterrupt:
            output.warn("imported lines stay; run the command again to continue")
            raise


class _Advance:
    """Moves the progress bar to the place in a file; standard input has none."""

    def __init__(self, steps: Steps, file: IO[bytes] | None) -> None:
        self._steps = steps
        self._file = file
        self._before = 0

    def __call__(self, _lines: int, _size: int) -> None:
        if self._file is not None:
            place = self._file.tell()
            self._steps.done(place - self._before)
            self._before = place


_Show = Callable[[int, int], None]


def _import_facts(options: Namespace, output: Output, lines: IO[bytes], show: _Show) -> int:
    with writing(options, output) as store:
        imported = store.interchange.import_facts(lines, progress=show)
        _print_facts(imported, store.path, output)
        output.result({"file": store.path, **imported.to_dict()})
    return 0


def _print_facts(imported: ImportedFacts, file: str, output: Output) -> None:
    from cerata.memory.values.words import counted

    output.line(f"{counted(imported.added, 'line')} added, {imported.known:,} already present")
    if imported.missing:
        output.warn(
            f"{counted(imported.missing, 'place')} of evidence without their content in this memory"
        )
    output.line(f"{file} is at event {imported.head:,}")


def _import_events(options: Namespace, output: Output, lines: IO[bytes], show: _Show) -> int:
    with writing(options, output) as store:
        imported = store.interchange.import_events(lines, progress=show)
        _print_events(imported, store.path, output)
        output.result({"file": store.path, **imported.to_dict()})
    return 0 if imported.is_whole else 1


def _print_events(imported: ImportedEvents, file: str, output: Output) -> None:
    from cerata.memory.values.words import counted

    copy = "as a copy of their log" if imported.is_copy else "as new events"
    output.line(
        f"{counted(imported.added, 'event')} added {copy}, {imported.known:,} already present"
    )
    if imported.skipped:
        kinds = ", ".join(f"{count:,} {name}" for name, count in imported.skipped.items())
        output.line(f"left out, since they belong to their log: {kinds}")
    if imported.erased:
        output.warn(
            f"the content of {counted(imported.erased, 'event')} is erased in the export and "
            "present here; an import erases nothing"
        )
    if not imported.is_whole:
        output.warn("the lines end before their end line: they were cut off")
    output.line(f"{file} is at event {imported.head:,}")


def export_archive(options: Namespace, output: Output) -> int:
    """Write the days that the folder lacks; a file that differs is an error before any write."""
    from cerata.agents.continuity.archive import archived_days
    from cerata.agents.continuity.exchanges import Talk
    from cerata.memory.snapshot.reader import snapshot_of
    from cerata.memory.values.words import counted

    with reading(options) as store:
        view = view_of(store, options)
        snapshot = agent_scope(snapshot_of(view))
        agent = agent_in(store, snapshot, options.agent)
        talk = Talk(snapshot, agent.name)
        folder = _folder(options.archive)
        present = {day.date for day in archived_days(talk) if _is_present(folder, day)}
        folder.mkdir(parents=True, exist_ok=True)
        days: list[JsonValue] = []
        for day in archived_days(talk):
            if day.date not in present:
                with new_file(str(_path(folder, day)), store.path) as file:
                    file.write(day.data)
            days.append(
                {
                    "date": day.date,
                    "count": day.count,
                    "unreadable": day.unreadable,
                    "added": day.date not in present,
                }
            )
        output.line(
            f"{counted(len(days), 'day')} in {folder}, {len(days) - len(present):,} new, "
            f"as of event {view.basis:,}"
        )
        output.result(
            {
                "file": store.path,
                "to": str(folder),
                "agent": agent.name,
                "basis": view.basis,
                "days": days,
            }
        )
    return 0


def _folder(name: str) -> Path:
    if not name or (Path(name).exists() and not Path(name).is_dir()):
        raise InvalidInput(
            f"--archive {name!r:.60} is no folder", remedy="Pass the name of a folder."
        )
    return Path(name)


def _path(folder: Path, day: ArchivedDay) -> Path:
    return folder / f"{day.date}.json"


def _is_present(folder: Path, day: ArchivedDay) -> bool:
    """Return whether the folder has a day's file.

    Raises:
        Conflict: the file has another content.
    """
    path = _path(folder, day)
    if not path.exists():
        return False
    if day.unreadable and path.is_file():
        # The file may have the messages that cannot be read now.
        return True
    # A pipe or a device is not opened.
    is_equal = path.is_file() and path.stat().st_size == len(day.data)
    if not is_equal or path.read_bytes() != day.data:
        raise Conflict(
            f"{path} exists and differs from the messages of its day",
            remedy="Pass another folder, or move the file away.",
        )
    return True


def import_records(options: Namespace, output: Output) -> int:
    """Import the records of another memory, and print how many were new."""
    from cerata.integrations.importers import import_from

    source = options.source
    if source == STREAM:
        if sys.stdin is None:
            raise InvalidInput("Standard input is closed", remedy="Pass a file.")
        source = sys.stdin.buffer
    opened = planning(options) if options.dry_run else writing(options, output)
    try:
        with opened as store, output.progress("importing", 0) as steps:

            def show(done: int, total: int) -> None:
                steps.stand("importing", done, max(done, total))

            imported = import_from(
                store, options.kind, source, dry_run=options.dry_run, progress=show
            )
    except KeyboardInterrupt:
        output.warn("imported records stay; run the command again to continue")
        raise
    _print_records(imported, store.path, output, dry_run=options.dry_run)
    output.result(
        {
            "file": store.path,
            "from": options.kind,
            "source": options.source,
            "dry_run": options.dry_run,
            **imported.to_dict(),
        }
    )
    return 1 if imported.refused else 0


def _print_records(imported: ImportedRecords, file: str, output: Output, *, dry_run: bool) -> None:
    from cerata.memory.values.words import counted

    would = "would be " if dry_run else ""
    parts = {
        "skipped": sum(imported.skipped.values()),
        "refused": imported.refused,
        "doubtful": imported.doubtful,
    }
    output.line(
        f"{counted(imported.added, 'record')} {would}added, {imported.known:,} already present"
        + "".join(f", {count:,} {name}" for name, count in parts.items() if count)
    )
    for reason, count in imported.skipped.items():
        output.line(f"skipped: {reason} ({count:,})")
    for notice in imported.notices:
        output.warn(notice)
    for problem in (*imported.problems, *imported.doubts):
        output.line(problem.where)
        output.paragraph(problem.what, indent=2, lines=4)
    if imported.doubtful:
        were = "was" if imported.doubtful == 1 else "were"
        output.warn(f"{counted(imported.doubtful, 'record')} {were} added without a part")
    if imported.refused:
        output.warn(f"{counted(imported.refused, 'record')} cannot be imported")
    if not dry_run:
        output.line(f"{file} is at event {imported.head:,}")
