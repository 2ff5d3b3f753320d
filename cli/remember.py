"""The verb remember: files become frames."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Scope
from cerata.memory.batch.writer import session_of
from cerata.memory.frames.drafts import frame_fields
from cerata.memory.ingest.discovery import find_files
from cerata.memory.ingest.document import Ingest
from cerata.memory.ingest.folder import Outcome, Remembered, RememberedFile, remember_files, take_in
from cerata.memory.ingest.formats.document import is_blank
from cerata.memory.ingest.formats.plain import extract_markdown
from cerata.memory.store import Store
from cerata.memory.values.arguments import full_scope
from cerata.memory.values.words import counted

from .expiry import expiry_of
from .output import Output
from .pair_options import scope_of
from .put import INPUT, read_input
from .store_options import DEFAULT_FILE, file_of, planning, writing


def run_remember(options: Namespace, output: Output) -> int:
    """Remember files, and print the outcome of each."""
    if INPUT in options.paths and len(options.paths) > 1:
        raise InvalidInput(
            "- must be the only path", remedy="Remember the files with another command."
        )
    file = file_of(options, default=DEFAULT_FILE)
    with ExitStack() as opened:

        def store() -> Store:
            if options.dry_run:
                return opened.enter_context(planning(options))
            return opened.enter_context(writing(options, output))

        try:
            do = _remember_input if INPUT in options.paths else _remember_files
            remembered = do(options, store, output)
        except KeyboardInterrupt:
            output.warn("remembered files stay; run the command again to continue")
            raise
    for notice in remembered.notices:
        output.warn(notice)
    _print_summary(remembered, file, output)
    output.result(
        {"file": None if remembered.head is None else file, **remembered.to_dict()}, items="files"
    )
    return 1 if remembered.of("skipped") else 0


def _remember_files(options: Namespace, store: Callable[[], Store], output: Output) -> Remembered:
    sources = find_files(
        options.paths,
        include=options.include,
        exclude=options.exclude,
        default_excludes=not options.no_default_excludes,
    )
    with output.progress("remembering", len(sources.files)) as steps:

        def report(remembered: RememberedFile, _at: int, _total: int) -> None:
            steps.done()
            _print_file(remembered, options, output)

        fields = frame_fields(kind="text", tags=options.tag, expires=expiry_of(options.expires))
        # Open an existing store first; create a missing store lazily.
        is_there = Path(file_of(options, default=DEFAULT_FILE)).exists()
        target = session_of(store()) if is_there else lambda: session_of(store())
        return remember_files(
            target,
            sources,
            fields,
            _stamped(options),
            dry_run=options.dry_run,
            report=report,
            embed_limit=options.embed_limit,
        )


def _remember_input(options: Namespace, store: Callable[[], Store], output: Output) -> Remembered:
    head: int | None = None
    try:
        data = read_input()
        document = None if is_blank(data) else extract_markdown(data, "input")
    except InvalidInput as error:
        remembered = RememberedFile(INPUT, "skipped", why=str(error))
    else:
        if document is None:
            empty = RememberedFile(INPUT, "empty")
            _print_file(empty, options, output)
            return Remembered((empty,), 0, {}, options.dry_run, None)
        opened = store()
        fields = frame_fields(kind="text", tags=options.tag, expires=expiry_of(options.expires))
        ingest = Ingest(session_of(opened), document, fields, _stamped(options))
        became = take_in(ingest, INPUT, dry_run=options.dry_run)
        remembered = replace(became, parts=len(document.sections), flaws=document.flaws)
        head = opened.refresh().seq
    _print_file(remembered, options, output)
    return Remembered((remembered,), 0, {}, options.dry_run, head)


def _stamped(options: Namespace) -> Scope:
    """Return the scope of every event: files are compared only with those of the same scope."""
    return full_scope(scope_of(options), None)


def _print_file(file: RememberedFile, options: Namespace, output: Output) -> None:
    """Print a file's outcome; by default only of replaced and skipped files."""
    if file.outcome == "skipped":
        output.warn(f"skipped {file.path}: {file.why}")
        return
    for flaw in file.flaws:
        if options.verbose or not flaw.is_usual:
            output.warn(f"{file.path}: {flaw}")
    new = file.outcome == "added" and options.dry_run
    if not (options.verbose or new or file.outcome == "replaced"):
        return
    colour = {"added": "green", "replaced": "yellow"}.get(file.outcome, "dim")
    before = f"  (was {', '.join(f'#{number}' for number in file.replaced)})"
    output.parts(
        (f"{file.outcome:<10}", colour), file.path, (before if file.replaced else "", "dim")
    )


def _usual_parts(remembered: Remembered) -> dict[str, int]:
    """Return the counts of usual parts of all files, by their reason."""
    counts: dict[str, int] = {}
    for flaw in (flaw for file in remembered.files for flaw in file.flaws if flaw.is_usual):
        counts[flaw.why] = counts.get(flaw.why, 0) + flaw.count
    return counts


def _print_summary(remembered: Remembered, file: str, output: Output) -> None:
    outcomes: tuple[Outcome, ...] = ("added", "replaced", "unchanged", "skipped")
    counts = ", ".join(f"{len(remembered.of(outcome)):,} {outcome}" for outcome in outcomes)
    frames = counted(remembered.frames, "frame")
    skipped, doubtful = remembered.parts_skipped, remembered.parts_doubtful
    flaws = f"; {counted(skipped, 'part')} skipped, {doubtful:,} doubtful"
    output.line(f"{counts}; {frames}, passages included{flaws if skipped or doubtful else ''}")
    left = [f"{remembered.excluded:,} excluded"] if remembered.excluded else []
    empty = len(remembered.of("empty"))
    left += [f"{empty:,} empty"] if empty else []
    usual = _usual_parts(remembered).items()
    left += [f"{counted(count, 'part')} ({why})" for why, count in usual]
    left += [f"{count:,} {ending}" for ending, count in remembered.passed_over.items()]
    if left:
        output.line(f"left out: {', '.join(left)}", style="dim")
    if remembered.dry_run:
        output.line("nothing was written: this was a dry run")
    elif remembered.head is None:
        output.line("nothing was written")
    else:
        output.line(f"{file} is at event {remembered.head:,}")
