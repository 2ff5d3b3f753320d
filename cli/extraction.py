"""The verb that finds facts in what is remembered: extract."""

from argparse import Namespace

from cerata.memory.extraction import Extracted, Extraction
from cerata.memory.view import View

from .narrowing import where_of
from .opening import changing, reading
from .output import Output, counted
from .parser import Adding, add_filters, add_verb


def add_verbs(adding: Adding) -> None:
    """Add extract."""
    extract = add_verb(
        adding,
        "extract",
        "find facts in the text of frames",
        run_extract,
        examples=("extract --dry-run", "extract 12 13", "extract --tag people"),
    )
    extract.add_argument("ids", nargs="*", type=int, metavar="ID", help="these (all current ones)")
    extract.add_argument(
        "--dry-run", action="store_true", help="say what would be found; write nothing"
    )
    add_filters(extract, closed=False)


def run_extract(options: Namespace, output: Output) -> int:
    """Assert what plain English sentences say, each with where it says so."""
    opening = reading(options) if options.dry_run else changing(options, output)
    with opening as store:
        with output.progress("reading", 0) as steps:

            def report(_one: Extracted, at: int, total: int) -> None:
                steps.stand("reading", at, total)

            done = store.extract(
                options.ids or None,
                where=where_of(options),
                dry_run=options.dry_run,
                report=report,
            )
        with output.pages():
            _print(done, store.view(), output)
        output.result({"file": store.path, **done.to_dict()})
    return 0


def _print(done: Extraction, view: View, output: Output) -> None:
    for one in done.frames:
        if one.candidates:
            output.row((f"[{view.source_of(view.frame(one.frame))}]", "bold"))
        for number, candidate in enumerate(one.candidates):
            fact = "" if done.dry_run else f"#{one.facts[number]}"
            output.row((f"{fact:>7}  ", "dim"), str(candidate))
    read = sum(one.added for one in done.frames)
    frames = counted(len(done.frames), "frame")
    said = f"{counted(done.found, 'fact')} in {frames}"
    output.line(f"{said}; nothing was written: this was a dry run" if done.dry_run else said)
    if not done.dry_run and read < len(done.frames):
        output.line(f"{len(done.frames) - read:,} were read before", style="dim")
