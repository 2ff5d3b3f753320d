"""The verbs that bring something in: remember and put."""

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rich.text import Text

from cerata.engine.errors import InvalidInput, StorageFailed
from cerata.engine.events import DEFAULT_SCOPE
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.memory.drafting import frame_fields
from cerata.memory.extract.plain import extract_markdown
from cerata.memory.files import Outcome, Remembered, RememberedFile, remember_files, take_in
from cerata.memory.finding import find_files
from cerata.memory.ingest import Ingest
from cerata.memory.store import Store

from .opening import DEFAULT_FILE, file_of, planning, writing
from .output import Output, counted
from .parser import Adding, add_verb

_INPUT = "-"


def add_verbs(adding: Adding) -> None:
    """Add remember and put."""
    remember = add_verb(
        adding,
        "remember",
        "remember files and folders, each once",
        run_remember,
        examples=(
            "remember notes/ todo.md",
            "remember src --include '*.{py,md}' --exclude tests",
            "remember notes/ --dry-run",
            "remember - --tag meeting < minutes.txt",
        ),
    )
    remember.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a folder, or - for input"
    )
    remember.add_argument("--tag", action="append", default=[], help="may be given again")
    remember.add_argument(
        "--include", action="append", default=[], metavar="PATTERN", help="these files alone"
    )
    remember.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="not these"
    )
    remember.add_argument(
        "--no-default-excludes",
        action="store_true",
        help="also hidden names, node_modules and such (docs/ingest.md)",
    )
    remember.add_argument(
        "--dry-run", action="store_true", help="say what would happen; write nothing"
    )
    remember.add_argument("--jsonl", action="store_true", help="print one JSON object a file")
    remember.add_argument(
        "-v", "--verbose", action="store_true", help="name every file, not only what stands out"
    )

    put = add_verb(
        adding,
        "put",
        "put one text as it is",
        run_put,
        examples=("put The staging database listens on port 5433. --tag infra",),
    )
    put.add_argument("text", nargs="+")
    put.add_argument("--title")
    put.add_argument("--tag", action="append", default=[], help="may be given again")


def run_remember(options: Namespace, output: Output) -> int:
    """Remember files, and say what became of each."""
    if _INPUT in options.paths and len(options.paths) > 1:
        raise InvalidInput("- is the input, and stands alone", remedy="Name the files apart.")
    file = file_of(options, default=DEFAULT_FILE)
    with ExitStack() as opened:

        def store() -> Store:
            opening = planning(options) if options.dry_run else writing(options, output)
            return opened.enter_context(opening)

        try:
            do = _remember_input if _INPUT in options.paths else _remember_files
            done = do(options, store, output)
        except KeyboardInterrupt:
            output.warn("what was remembered stays; the same command goes on from there")
            raise
    _say_summary(done, file, output)
    output.result({"file": None if done.head is None else file, **done.to_dict()}, items="files")
    return 1 if done.of("skipped") else 0


def _remember_files(options: Namespace, store: Callable[[], Store], output: Output) -> Remembered:
    found = find_files(
        options.paths,
        include=options.include,
        exclude=options.exclude,
        default_excludes=not options.no_default_excludes,
    )
    with output.progress("remembering", len(found.files)) as steps:

        def report(done: RememberedFile, _at: int, _total: int) -> None:
            steps.done()
            _say_file(done, options, output)

        fields = frame_fields(kind="text", tags=options.tag)
        # What is there is asked before a file is read; what is not, is made once there is need.
        is_there = Path(file_of(options, default=DEFAULT_FILE)).exists()
        given = store() if is_there else store
        return remember_files(
            given,
            found,
            fields,
            DEFAULT_SCOPE,
            dry_run=options.dry_run,
            report=report,
        )


def _remember_input(options: Namespace, store: Callable[[], Store], output: Output) -> Remembered:
    head: int | None = None
    try:
        document = extract_markdown(_input(), "input")
    except InvalidInput as error:
        done = RememberedFile(_INPUT, "skipped", why=str(error))
    else:
        opened = store()
        fields = frame_fields(kind="text", tags=options.tag)
        ingest = Ingest(opened, document, fields, DEFAULT_SCOPE)
        done = take_in(ingest, _INPUT, dry_run=options.dry_run)
        head = opened.refresh().seq
    _say_file(done, options, output)
    return Remembered((done,), 0, {}, options.dry_run, head)


def _input() -> bytes:
    """Return the bytes of standard input.

    Raises:
        StorageFailed, InvalidInput: it cannot be read.
    """
    if sys.stdin is None:
        raise InvalidInput("There is no input", remedy="Name a file.")
    try:
        # One byte more than is allowed: what is too large is seen without reading it all.
        return sys.stdin.buffer.read(STRING_SIZE_MAX + 1)
    except OSError as error:
        raise StorageFailed(
            f"Cannot read: {error.strerror}",
            where="input",
            remedy="Check what is piped in, or name a file.",
        ) from error


def _say_file(file: RememberedFile, options: Namespace, output: Output) -> None:
    """Say what became of a file where that stands out: by default replaced ones, and skipped."""
    if file.outcome == "skipped":
        output.warn(f"skipped {file.path}: {file.why}")
        return
    new = file.outcome == "added" and options.dry_run
    if not (options.verbose or new or file.outcome == "replaced"):
        return
    colour = {"added": "green", "replaced": "yellow", "unchanged": "dim"}[file.outcome]
    line = Text.assemble((f"{file.outcome:<10}", colour), file.path)
    if file.replaced:
        line.append(f"  (was {', '.join(f'#{number}' for number in file.replaced)})", "dim")
    output.line(line)


def _say_summary(done: Remembered, file: str, output: Output) -> None:
    outcomes: tuple[Outcome, ...] = ("added", "replaced", "unchanged", "skipped")
    counts = ", ".join(f"{len(done.of(outcome)):,} {outcome}" for outcome in outcomes)
    output.line(f"{counts}; {counted(done.frames, 'frame')}")
    left = [f"{done.excluded:,} excluded"] if done.excluded else []
    left += [f"{count:,} {ending}" for ending, count in done.passed_over.items()]
    if left:
        output.line(f"left out: {', '.join(left)}", style="dim")
    if done.dry_run:
        output.line("nothing was written: this was a dry run")
    elif done.head is None:
        output.line("nothing was written")
    else:
        output.line(f"{file} is at event {done.head:,}")


def run_put(options: Namespace, output: Output) -> int:
    """Put one text, and print its id."""
    text = " ".join(options.text)
    if not text.strip():
        raise InvalidInput("There is no text to put", remedy="Give at least one word.")
    with writing(options, output) as store:
        receipt = store.put_frame(text, title=options.title, tags=options.tag)
        output.line(f"frame {receipt.id} in {store.path}")
        output.result({"file": store.path, **receipt.to_dict()})
    return 0
