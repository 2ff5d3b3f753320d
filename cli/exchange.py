"""The verbs that copy facts and events between memories: export and import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.errors import InvalidInput
from cerata.engine.verbs import ACTOR, AT, Arg, Option, Verb

from .files import STREAM, new_file, opened_input
from .options import reading, view_of, writing

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import IO

    from cerata.memory.facts.importing import ImportedFacts
    from cerata.memory.interchange.importing import ImportedEvents

    from .output import Output, Steps

VERBS: Final = (
    Verb(
        "export",
        "file",
        "write facts or every event as JSON Lines",
        "cerata.cli.exchange:run_export",
        (
            Arg("to", "a new file, or - for standard output", "?", default="-", metavar="FILE"),
            # Required, so that later kinds of exports do not change this command.
            Option("--facts", "export facts and entities", either="kind", required=True),
            Option("--events", "export every event, exact; FILE may end in .zst", either="kind"),
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
        ),
        page="interchange.md",
    ),
    Verb(
        "import",
        "file",
        "import an export of facts or events, each once",
        "cerata.cli.exchange:run_import",
        (
            Arg("source", "a file from export, or - for standard input", metavar="FILE"),
            ACTOR,
        ),
        (
            "facts.jsonl -f new.cera",
            "- < facts.jsonl",
            "memory.jsonl.zst -f copy.cera",
        ),
        page="interchange.md",
    ),
)


def run_export(options: Namespace, output: Output) -> int:
    """Write facts or every event."""
    if options.to == STREAM and output.as_json:
        raise InvalidInput(
            "--json does not go with lines on standard output", remedy="Pass a FILE for the lines."
        )
    if options.events and options.history:
        raise InvalidInput("--history goes with --facts", remedy="Leave out --history.")
    if options.facts and options.first is not None:
        raise InvalidInput("--from goes with --events", remedy="Leave out --from.")
    return (_export_events if options.events else _export_facts)(options, output)


def _export_facts(options: Namespace, output: Output) -> int:
    from cerata.engine.words import counted

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
    from cerata.engine.words import counted

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
    """Import lines, and print how many were new."""
    from cerata.memory.interchange.line_files import (
        COMPRESSED,
        decompressed,
        holds_events,
        peekable,
    )

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
    from cerata.engine.words import counted

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
    from cerata.engine.words import counted

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
