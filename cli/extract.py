"""The verb that finds facts in remembered text: extract."""

from argparse import Namespace

from cerata.memory.facts.extraction import Extracted, Extraction
from cerata.memory.values.words import counted
from cerata.memory.view import View

from .filter_options import where_of
from .output import Output
from .store_options import changing, reading


def run_extract(options: Namespace, output: Output) -> int:
    """Assert the facts of plain English sentences, with evidence."""
    opening = reading(options) if options.dry_run else changing(options, output)
    with opening as store:
        with output.progress("reading", 0) as steps:

            def report(_extracted: Extracted, at: int, total: int) -> None:
                steps.stand("reading", at, total)

            extraction = store.extract(
                options.ids or None, where=where_of(options), dry_run=options.dry_run, report=report
            )
        with output.pages():
            _print(extraction, store.view(), output)
        output.result({"file": store.path, **extraction.to_dict()})
    return 0


def _print(extraction: Extraction, view: View, output: Output) -> None:
    for extracted in extraction.frames:
        if extracted.candidates:
            output.row((f"[{view.source_of(view.frame(extracted.frame))}]", "bold"))
        for number, candidate in enumerate(extracted.candidates):
            fact = "" if extraction.dry_run else f"#{extracted.facts[number]}"
            output.row((f"{fact:>7}  ", "dim"), str(candidate))
    read = sum(extracted.added for extracted in extraction.frames)
    frames = counted(len(extraction.frames), "frame")
    summary = f"{counted(extraction.found, 'fact')} in {frames}"
    output.line(
        f"{summary}; nothing was written: this was a dry run" if extraction.dry_run else summary
    )
    if not extraction.dry_run and read < len(extraction.frames):
        output.line(f"{len(extraction.frames) - read:,} were read before", style="dim")
