"""The verbs that write texts: put, remember, update, delete, restore; and names of points: tag."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from cerata.engine.errors import InvalidInput, StorageFailed
from cerata.engine.late import late
from cerata.engine.verbs import ACTOR, EMBEDDER, LISTS, Arg, Option, Verb, identifier

from .options import (
    DEFAULT_FILE,
    changing,
    check_goes_with,
    expiry_of,
    file_of,
    hint,
    pairs_of,
    planning,
    reading,
    scope_of,
    view_of,
    where_of,
    writing,
)
from .shared_options import FILTERS, REASONS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from datetime import datetime

    from msgspec import UnsetType

    from cerata.engine.events import JsonValue, Scope
    from cerata.memory.ingest.folder import Outcome, Remembered, RememberedFile
    from cerata.memory.store import Store
    from cerata.memory.values import options as value_options
    from cerata.memory.values.frames import Receipt

    from .output import Output

else:
    value_options = late("cerata.memory.values.options")


def _embed_limit(text: str) -> int | None:
    return None if text == "all" else int(text)


_TAG_AND_EXPIRES: Final = (
    Option("--tag TAG", "a tag; repeat for several", repeats=True),
    Option(
        "--expires TIME", "leave what is written out of reads from then on, such as 'in 3 days'"
    ),
)

_EXPIRES: Final = Option("--expires TIME", "the time of expiry ('tomorrow'), or never")

VERBS: Final = (
    Verb(
        "remember",
        "everyday",
        "remember files and folders, each once",
        "cerata.cli.writes:run_remember",
        (
            Arg("paths", "a file, a folder, or - for standard input", "+", metavar="PATH"),
            *_TAG_AND_EXPIRES,
            Option("--include PATTERN", "only matching files", repeats=True),
            Option("--exclude PATTERN", "no matching files", repeats=True),
            Option("--no-default-excludes", "include hidden names, node_modules and the like"),
            Option("--dry-run", "print the outcome of each file; write nothing"),
            EMBEDDER,
            Option(
                "--embed-limit N",
                "most passages of a log or table with vectors, or all (256)",
                type=_embed_limit,
                default=256,
            ),
            Option("--jsonl", "print one JSON object per file"),
            Option("-v --verbose", "print every file, not only replaced and skipped files"),
            ACTOR,
        ),
        (
            "notes/ todo.md",
            "src --include '*.{py,md}' --exclude tests",
            "notes/ --dry-run",
            "- --tag meeting < minutes.txt",
        ),
        page="ingest.md",
    ),
    Verb(
        "put",
        "everyday",
        "store a text unchanged",
        "cerata.cli.writes:run_put",
        (
            Arg("text", "the words, or - for standard input", "+"),
            EMBEDDER,
            Option("--title TITLE", "the title, which is searched, too"),
            Option("--kind KIND", "the structure, such as message (text)", default="text"),
            Option("--role ROLE", "the speaker, such as user"),
            Option("--track NAME", "the conversation or other line"),
            Option("--uri URI", "the address of the text's source"),
            Option("--replace", "supersede the current frame with this --uri"),
            *_TAG_AND_EXPIRES,
            Option("--label LABEL", "a label; repeat for several", repeats=True),
            Option(
                "--metadata NAME=VALUE",
                "metadata, or NAME:=JSON for a number or list; repeat for several",
                repeats=True,
            ),
            Option(
                "--date TIME",
                "a date that the text is about; repeat for several; default those it names",
                repeats=True,
            ),
            ACTOR,
        ),
        (
            "The staging database listens on port 5433. --tag infra",
            "'What must I not eat?' --kind message --role user --track chat",
            "'The bridge opens.' --date 2026-05-01 --metadata 'lanes:=4'",
            "- --title Minutes < minutes.txt",
        ),
    ),
    Verb(
        "update",
        "everyday",
        "replace a frame by a new text, or change its other fields",
        "cerata.cli.writes:run_update",
        (
            Arg("id", "id of a current frame", type=identifier, metavar="ID"),
            Option("--text TEXT", "the new text; with none of the fields below"),
            Option(
                "--by ID",
                "id of an existing frame that replaces it, instead of a text",
                type=identifier,
            ),
            Option("--title TITLE", "the title; '' for none"),
            Option("--tag TAG", "a tag; the frame keeps these alone; '' for none", repeats=True),
            Option(
                "--metadata NAME=VALUE",
                "metadata, or NAME:=JSON; the frame keeps these alone; '' for none",
                repeats=True,
            ),
            _EXPIRES,
            *REASONS,
        ),
        (
            "12 --text 'We chose HNSW: recall under 5 ms.'",
            "12 --by 15",
            "12 --tag infra --tag port",
            "12 --title Ports --expires never",
        ),
    ),
    Verb(
        "delete",
        "everyday",
        "close frames; they stay readable in the past",
        "cerata.cli.writes:run_delete",
        (
            Arg("ids", "ids of frames, as in search and log", "*", type=identifier, metavar="ID"),
            *FILTERS,
            *REASONS,
        ),
        ("12", "12 13", "--tag draft --kind note"),
    ),
    Verb(
        "tag",
        "time",
        "name a point in time, or list the names",
        "cerata.cli.writes:run_tag",
        (Arg("name", "starts with a letter", "?", metavar="NAME"), *LISTS, ACTOR),
        ("before-the-move", "first --at HEAD~3", ""),
        page="time-travel.md",
    ),
    Verb(
        "restore",
        "time",
        "bring back a deleted frame or an older version",
        "cerata.cli.writes:run_restore",
        (Arg("id", "id of a closed frame", type=identifier, metavar="ID"), _EXPIRES, *REASONS),
        ("12", "12 --expires never"),
    ),
)


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
    from cerata.memory.batch.writer import session_of
    from cerata.memory.frames.drafts import frame_fields
    from cerata.memory.ingest.discovery import find_files
    from cerata.memory.ingest.folder import remember_files

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
    from dataclasses import replace

    from cerata.memory.batch.writer import session_of
    from cerata.memory.frames.drafts import frame_fields
    from cerata.memory.ingest.document import Ingest
    from cerata.memory.ingest.folder import Remembered, RememberedFile, take_in
    from cerata.memory.ingest.formats.document import is_blank
    from cerata.memory.ingest.formats.plain import extract_markdown

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
        head = opened.stream.refresh().seq
    _print_file(remembered, options, output)
    return Remembered((remembered,), 0, {}, options.dry_run, head)


def _stamped(options: Namespace) -> Scope:
    """Return the scope of every event: files are compared only with those of the same scope."""
    from cerata.memory.values.arguments import full_scope

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
    from cerata.engine.words import counted

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


INPUT = "-"
"""The path or text that means standard input."""


def read_input() -> bytes:
    """Return the bytes of standard input.

    Raises:
        StorageFailed: a read failed.
        InvalidInput: standard input is closed.
    """
    from cerata.engine.limits import STRING_SIZE_MAX

    if sys.stdin is None:
        raise InvalidInput("Standard input is closed", remedy="Pass a file.")
    try:
        # One byte more than allowed, to detect an excess without reading all of the input.
        return sys.stdin.buffer.read(STRING_SIZE_MAX + 1)
    except OSError as error:
        raise StorageFailed(
            f"Cannot read: {error.strerror}",
            where="input",
            remedy="Check the pipe, or pass a file.",
        ) from error


def _input_text() -> str:
    """Return the text of standard input, without the line end that ``echo`` adds.

    Raises:
        StorageFailed: a read failed.
        InvalidInput: standard input is closed, or is no UTF-8.
    """
    try:
        text = read_input().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Standard input is not UTF-8: {error.reason} at byte {error.start}",
            remedy="Convert it, for example with iconv; 'cerata remember FILE' reads PDF and HTML.",
        ) from error
    return text.removesuffix("\n")


def run_put(options: Namespace, output: Output) -> int:
    """Store a text, and print its id."""
    text = _input_text() if options.text == [INPUT] else " ".join(options.text)
    if not text.strip():
        raise InvalidInput("The text is empty", remedy="Pass at least one word.")
    metadata = pairs_of("--metadata", options.metadata)
    with writing(options, output) as store:
        receipt = store.put_frame(
            text,
            kind=options.kind,
            role=options.role,
            title=options.title,
            tags=options.tag,
            metadata=metadata,
            uri=options.uri,
            options=value_options.PutOptions(
                labels=options.label,
                track=options.track,
                replace=options.replace,
                content_dates=options.date or None,
                expires=expiry_of(options.expires),
            ),
        )
        for notice in receipt.notices:
            output.warn(notice)
        was = f" (was {', '.join(f'#{old}' for old in receipt.replaced)})"
        output.line(f"frame {receipt.id} in {store.path}{was if receipt.replaced else ''}")
        output.result({"file": store.path, **receipt.to_dict()})
    return 0


def _supersede(options: Namespace, output: Output) -> int:
    """Replace a frame by a text, or by an existing frame."""
    from cerata.engine.words import clipped

    text: str = options.text or ""
    fields = {
        "--title": options.title,
        "--tag": options.tag,
        "--metadata": options.metadata,
        "--expires": options.expires,
    }
    check_goes_with("the same text", fields, is_passed=False)
    if bool(text.strip()) == (options.by is not None):
        raise InvalidInput(
            "update takes either --text or --by ID", remedy="Pass --text TEXT, or --by ID."
        )
    with changing(options, output) as store:
        old = store.frame(options.id)
        new_frame = text if options.by is None else options.by
        receipt = store.supersede(options.id, new_frame, reason=options.reason)
        new = receipt.id if options.by is None else options.by
        for notice in receipt.notices:
            output.warn(notice)
        output.row(("- ", "red"), f"#{old.id} ", clipped(old.text, 200))
        output.row(("+ ", "green"), f"#{new} ", clipped(store.frame(new).text, 200))
        output.result({"file": store.path, "old": old.id, "new": new, **receipt.to_dict()})
    return 0


def run_delete(options: Namespace, output: Output) -> int:
    """Close frames by id, all or none, or the frames of a filter."""
    from cerata.engine.words import clipped, counted

    where = where_of(options)
    if bool(options.ids) == (where is not None):
        raise InvalidInput(
            "delete takes either ids or a filter", remedy="Pass ids, or --tag, --kind or --role."
        )
    with changing(options, output) as store:
        if where is not None:
            before = store.head.seq
            receipt = store.delete(where=where, reason=options.reason)
            output.line(f"closed {counted(len(receipt.deleted), 'frame')}")
            if receipt.deleted:
                output.line(f"Still readable with --at {before}.", style="dim")
            else:
                hint(store.history.view(), options, output)
            deleted: list[JsonValue] = [*receipt.deleted]
            output.result({"file": store.path, **receipt.to_dict(), "deleted": deleted})
            return 0
        frames = [store.frame(number) for number in dict.fromkeys(options.ids)]
        with store.transaction(reason=options.reason) as transaction:
            for frame in frames:
                store.delete(frame)
        receipt = transaction.receipt
        for frame in frames:
            output.row(("- ", "red"), f"#{frame.id} ", clipped(frame.text, 200))
        before = receipt.seqs[0] - 1
        output.line(f"Still readable with --at {before}.", style="dim")
        output.result(
            {"file": store.path, "deleted": [frame.id for frame in frames], **receipt.to_dict()}
        )
    return 0


def run_tag(options: Namespace, output: Output) -> int:
    """Name a point in time, or list the names."""
    if options.name is None:
        with reading(options) as store:
            view = view_of(store, options)
            tags = view.history.tags()
            with output.pages():
                for name, seq in tags.items():
                    output.parts((f"{seq:>7}  ", "yellow"), name)
            if not tags:
                output.line("There are no tags.")
            rows: list[JsonValue] = [{"tag": name, "at": seq} for name, seq in tags.items()]
            output.result({"basis": view.basis, "tags": rows}, items="tags")
        return 0
    # A missing file is an error here: a new file has no point to name.
    with changing(options, output) as store:
        view = view_of(store, options)
        receipt = store.history.tag(options.name, at=view)
        output.line(f"{options.name} names event {view.basis:,} of {store.path}")
        answer = {"file": store.path, "tag": options.name, "at": view.basis}
        output.result({**answer, **receipt.to_dict()})
    return 0


class _Fields(TypedDict):
    """The fields of a new version; UNSET leaves one unchanged."""

    title: str | None | UnsetType
    tags: list[str] | UnsetType
    metadata: dict[str, JsonValue] | UnsetType
    expires: datetime | None | UnsetType


def run_update(options: Namespace, output: Output) -> int:
    """Replace a frame by another text, or put a new version with other fields."""
    from msgspec import UNSET

    new = {"--text": options.text, "--by": options.by}
    if any(value is not None for value in new.values()):
        return _supersede(options, output)
    fields = _fields(options)
    if all(value is UNSET for value in fields.values()):
        raise InvalidInput(
            "update needs at least one field",
            remedy="Pass --text, --by, --title, --tag, --metadata or --expires.",
        )
    with changing(options, output) as store:
        receipt = store.update(options.id, **fields, reason=options.reason)
        if receipt.added:
            _print_version(store, options.id, receipt, output)
        else:
            output.line(f"#{options.id} has these fields already; nothing was written")
        output.result({"file": store.path, "old": options.id, **receipt.to_dict()})
    return 0


def _fields(options: Namespace) -> _Fields:
    from msgspec import UNSET

    tags: list[str] = options.tag
    metadata: list[str] = options.metadata
    return {
        "title": UNSET if options.title is None else options.title or None,
        "tags": UNSET if not tags else [tag for tag in tags if tag],
        "metadata": UNSET
        if not metadata
        else pairs_of("--metadata", [pair for pair in metadata if pair]),
        "expires": _expires(options),
    }


def _expires(options: Namespace) -> datetime | None | UnsetType:
    from msgspec import UNSET

    text: str | None = options.expires
    return UNSET if text is None else expiry_of(text)


def run_restore(options: Namespace, output: Output) -> int:
    """Put the content of a closed frame again."""
    with changing(options, output) as store:
        receipt = store.history.restore(
            options.id, expires=_expires(options), reason=options.reason
        )
        _print_version(store, options.id, receipt, output)
        output.result({"file": store.path, "old": options.id, **receipt.to_dict()})
    return 0


def _print_version(store: Store, old: int, receipt: Receipt, output: Output) -> None:
    from cerata.engine.words import clipped

    frame = store.frame(receipt.id)
    name = f"{frame.title}: " if frame.title else ""
    output.row(("+ ", "green"), f"#{frame.id} (was #{old}) ", clipped(name + frame.text, 200))
