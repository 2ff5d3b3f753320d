"""The verbs that copy facts between memories: export and import."""

from argparse import Namespace

from cerata.engine.errors import InvalidInput
from cerata.memory.facts.importing import ImportedFacts, Progress
from cerata.memory.values.words import counted

from .input_files import STREAM, opened_input
from .output import Output, Steps
from .output_files import new_file
from .store_options import reading, view_of, writing


def run_export(options: Namespace, output: Output) -> int:
    """Write facts and entities of a state, one JSON object a line."""
    if options.to == STREAM and output.as_json:
        raise InvalidInput(
            "--json does not go with lines on standard output", remedy="Pass a FILE for the lines."
        )
    with reading(options) as store:
        view = view_of(store, options)
        lines = view.export_facts(history=options.history)
        if options.to == STREAM:
            for line in lines:
                output.json_text(line)
            return 0
        count = 0
        with new_file(options.to) as file:
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


def run_import(options: Namespace, output: Output) -> int:
    """Import lines, and print how many were new."""
    with opened_input(options.source, "Pass a file from 'cerata export'.") as (file, size):
        try:
            with writing(options, output) as store, output.progress("importing", size) as steps:
                imported = store.import_facts(file, progress=_progress_of(steps))
                _print_summary(imported, store.path, output)
                output.result({"file": store.path, **imported.to_dict()})
        except KeyboardInterrupt:
            output.warn("imported lines stay; run the command again to continue")
            raise
    return 0


def _progress_of(steps: Steps) -> Progress:
    before = 0

    def advance(_lines: int, size: int) -> None:
        nonlocal before
        steps.done(size - before)
        before = size

    return advance


def _print_summary(imported: ImportedFacts, file: str, output: Output) -> None:
    output.line(f"{counted(imported.added, 'line')} added, {imported.known:,} already present")
    if imported.missing:
        output.warn(
            f"{counted(imported.missing, 'place')} of evidence without their content in this memory"
        )
    output.line(f"{file} is at event {imported.head:,}")
