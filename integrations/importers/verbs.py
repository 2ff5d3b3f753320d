"""An addition to ``file import``: the records of another memory.

Leaves out the import (`run`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cerata.cli.files import STREAM
from cerata.cli.options import planning, writing
from cerata.engine.errors import InvalidInput
from cerata.engine.words import counted

from .run import ImportedRecords, import_from

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.cli.output import Output


def run_import(options: Namespace, output: Output) -> int:
    """Import the records of another memory, and print how many were new."""
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
