"""The verbs that copy facts, events and records between memories: export and import."""

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import IO, cast

from cerata.engine.errors import InvalidInput
from cerata.engine.loading import loading
from cerata.memory.facts.importing import ImportedFacts
from cerata.memory.interchange.importing import ImportedEvents
from cerata.memory.interchange.line_files import COMPRESSED, decompressed, holds_events, peekable
from cerata.memory.values.words import counted

from .input_files import STREAM, opened_input
from .output import Output, Steps
from .output_files import new_file
from .store_options import reading, view_of, writing


def run_export(options: Namespace, output: Output) -> int:
    """Write facts, every event, or the messages of an agent."""
    if options.archive is not None:
        return _export_archive(options, output)
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


def _export_archive(options: Namespace, output: Output) -> int:
    lines = {
        "FILE": options.to != STREAM,
        "--history": options.history,
        "--from": options.first is not None,
    }
    for name, is_passed in lines.items():
        if is_passed:
            raise InvalidInput(f"--archive takes no {name}", remedy=f"Leave out {name}.")
    with loading("the archive"):
        from .archive import export_archive
    return export_archive(options, output)


def _export_facts(options: Namespace, output: Output) -> int:
    with reading(options) as store:
        view = view_of(store, options)
        lines = view.export_facts(history=options.history)
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
    first = 1 if options.first is None else options.first
    with reading(options) as store:
        at = "HEAD" if options.at is None else options.at
        if options.to == STREAM:
            store.export_events(_standard_output(output), at=at, first=first)
            return 0
        with output.progress("exporting", store.head.seq) as steps:

            def show(count: int, total: int) -> None:
                steps.stand("exporting", count, total)

            exported = store.export_events(options.to, at=at, first=first, progress=show)
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
    if options.kind is not None:
        with loading("the importers"):
            from .record_import import import_records
        return import_records(options, output)
    if options.dry_run:
        raise InvalidInput("--dry-run goes with --from", remedy="Pass --from KIND.")
    with opened_input(options.source, "Pass a file from 'cerata export'.") as (file, size):
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
        imported = store.import_facts(lines, progress=show)
        _print_facts(imported, store.path, output)
        output.result({"file": store.path, **imported.to_dict()})
    return 0


def _print_facts(imported: ImportedFacts, file: str, output: Output) -> None:
    output.line(f"{counted(imported.added, 'line')} added, {imported.known:,} already present")
    if imported.missing:
        output.warn(
            f"{counted(imported.missing, 'place')} of evidence without their content in this memory"
        )
    output.line(f"{file} is at event {imported.head:,}")


def _import_events(options: Namespace, output: Output, lines: IO[bytes], show: _Show) -> int:
    with writing(options, output) as store:
        imported = store.import_events(lines, progress=show)
        _print_events(imported, store.path, output)
        output.result({"file": store.path, **imported.to_dict()})
    return 0 if imported.is_whole else 1


def _print_events(imported: ImportedEvents, file: str, output: Output) -> None:
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
