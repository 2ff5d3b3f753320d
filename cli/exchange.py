"""The verbs that carry facts from one memory to another: export and import."""

import os
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cerata.engine.errors import InvalidInput, NotFound
from cerata.memory.fact_import import ImportedFacts, Progress
from cerata.memory.ingest import open_regular

from .given import new_file
from .opening import reading, view_of, writing
from .output import Output, Steps, counted
from .parser import Adding, add_verb

_STREAM = "-"


def add_verbs(adding: Adding) -> None:
    """Add export and import."""
    export = add_verb(
        adding,
        "export",
        "write facts and entities as JSON Lines",
        run_export,
        reads=True,
        examples=(
            "export --facts facts.jsonl",
            "export --facts --history --at before-the-move | jq .subject",
        ),
    )
    export.add_argument(
        "to", nargs="?", metavar="FILE", default=_STREAM, help="a new file; - is the output"
    )
    # What else a memory has may be exported one day, and must not come unasked then.
    export.add_argument(
        "--facts", action="store_true", required=True, help="what is said of facts and entities"
    )
    export.add_argument("--history", action="store_true", help="what was retracted too")

    bring = add_verb(
        adding,
        "import",
        "say what lines of export say, each once",
        run_import,
        examples=("import facts.jsonl -f new.cera", "import - < facts.jsonl"),
    )
    bring.add_argument("source", metavar="FILE", help="as export wrote it; - is the input")


def run_export(options: Namespace, output: Output) -> int:
    """Write what a state says of facts and entities, one JSON object a line."""
    if options.to == _STREAM and output.as_json:
        raise InvalidInput("The lines and --json would mix", remedy="Name a FILE for the lines.")
    with reading(options) as store:
        view = view_of(store, options)
        lines = view.export_facts(history=options.history)
        if options.to == _STREAM:
            for line in lines:
                output.json_text(line)
            return 0
        count = 0
        with new_file(options.to) as file:
            for line in lines:
                file.write(line.encode() + b"\n")
                count += 1
        said = f"{counted(count, 'line')} in {options.to}, as of event {view.basis:,}"
        output.line(said)
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
    """Say what lines say, and how many of them were new."""
    with _source(options.source) as (file, size):
        try:
            with writing(options, output) as store, output.progress("importing", size) as steps:
                done = store.import_facts(file, progress=_telling(steps))
                _say(done, store.path, output)
                output.result({"file": store.path, **done.to_dict()})
        except KeyboardInterrupt:
            output.warn("what was imported stays; the same command goes on from there")
            raise
    return 0


def _telling(steps: Steps) -> Progress:
    done = 0

    def tell(_lines: int, size: int) -> None:
        nonlocal done
        steps.done(size - done)
        done = size

    return tell


@contextmanager
def _source(name: str) -> Generator[tuple[IO[bytes], int]]:
    """Open what is imported, with its size in bytes, 0 where that is not known.

    Raises:
        NotFound, InvalidInput: there is no such file, or it is none.
    """
    if name == _STREAM:
        if sys.stdin is None:
            raise InvalidInput("There is no input", remedy="Name a file.")
        yield sys.stdin.buffer, 0
        return
    try:
        file = open_regular(Path(name))
    except FileNotFoundError as error:
        remedy = "'cerata export' writes one."
        raise NotFound("There is no such file", where=name, remedy=remedy) from error
    with file:
        yield file, os.fstat(file.fileno()).st_size


def _say(done: ImportedFacts, file: str, output: Output) -> None:
    output.line(f"{counted(done.added, 'line')} added, {done.known:,} there already")
    if done.missing:
        output.warn(f"{counted(done.missing, 'place')} of evidence: no such content is here")
    output.line(f"{file} is at event {done.head:,}")
