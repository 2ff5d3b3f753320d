"""The verbs: each opens the file, asks the store, and says the answer."""

import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Final

from rich.text import Text

import cerata
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import (
    DeleteFrame,
    Erased,
    Event,
    JsonValue,
    PutFrame,
    SupersedeFrame,
)
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.memory.ingest import decode_text, read_document
from cerata.memory.store import Store
from cerata.memory.values import Hit
from cerata.memory.view import View
from cerata.replay.basis import to_datetime

from .output import Output, bytes_text, clipped

Verb = Callable[[Namespace, Output], int]

TEXT_SUFFIXES: Final = frozenset((".md", ".markdown", ".txt", ".text", ".rst"))
"""What a folder is searched for; a file that is named is read whatever its name."""

DEFAULT_FILE: Final = "memory.cera"
"""What writing creates where no file is named and none is here."""

_SNIPPET: Final = 200


def file_of(options: Namespace, *, default: str | None = None) -> str:
    """Return the file that a verb works on.

    Raises:
        NotFound: none was named, and there is not exactly one here.
    """
    named: str | None = options.file or os.environ.get("CERATA_FILE") or None
    if named:
        return named
    here = sorted(str(path) for path in Path().glob("*.cera"))
    if len(here) == 1:
        return here[0]
    if not here and default is not None:
        return default
    raise NotFound(
        f"There are {len(here)} *.cera files here" if here else "There is no *.cera file here",
        where=os.getcwd(),
        remedy="Name one with -f FILE or $CERATA_FILE.",
    )


def _reading(options: Namespace) -> Store:
    return cerata.open(file_of(options), mode="r", lock_timeout=options.lock_timeout)


def _writing(options: Namespace) -> Store:
    """Open the file for writing; where none is named and none is here, a new one."""
    file = file_of(options, default=DEFAULT_FILE)
    return cerata.open(file, lock_timeout=options.lock_timeout)


def run_welcome(options: Namespace, output: Output) -> int:
    """Print what this is, which file, and what to type next."""
    what = "the memory of AI agents, in one file"
    nexts = (
        "cerata tour",
        "cerata remember notes.md && cerata recall 'what did we decide?'",
        "cerata --help",
    )
    file: str | None = None
    try:
        shown = file = file_of(options)
    except NotFound as error:
        shown = f"{error.what.lower()}; name one with -f FILE"
    output.line(f"Cerata: {what}.", style="bold")
    for name, value in zip(("File:", "Try:", "Then:", "Help:"), (shown, *nexts), strict=True):
        output.line(f"{name:<7} {value}")
    output.result(
        {"cerata": cerata.__version__, "what": what, "file": file, "next": list[JsonValue](nexts)}
    )
    return 0


# --- writing -------------------------------------------------------------------------------------


def run_remember(options: Namespace, output: Output) -> int:
    """Remember files, and say what became of each."""
    paths = list(_expanded(options.paths))
    outcome: Counter[str] = Counter()
    skipped: list[dict[str, JsonValue]] = []
    passages = 0
    store: Store | None = None
    with ExitStack() as opened, output.progress("remembering", len(paths)) as steps:
        for path in paths:
            try:
                text, uri, title = _document(path)
            except (InvalidInput, NotFound, cerata.StorageFailed) as error:
                skipped.append({"path": path, "why": str(error)})
                output.warn(f"skipped {path}: {error.what}")
            else:
                if store is None:
                    # Not before there is something to keep: a wrong name leaves no empty file.
                    store = opened.enter_context(_writing(options))
                receipt = store.remember(text, uri=uri, title=title, tags=options.tag)
                outcome["added" if receipt.added else "unchanged"] += 1
                passages += len(receipt.ids) if receipt.added else 0
            steps.done()
        file = None if store is None else store.path
        head = None if store is None else store.head.seq
    output.line(
        f"{outcome['added']:,} added ({passages:,} frames), {outcome['unchanged']:,} unchanged, "
        f"{len(skipped):,} skipped; "
        + ("nothing was written" if head is None else f"{file} is at event {head:,}")
    )
    output.result(
        {
            "file": file,
            "added": outcome["added"],
            "frames": passages,
            "unchanged": outcome["unchanged"],
            "skipped": skipped,
            "head": head,
        }
    )
    return 1 if skipped else 0


def run_put(options: Namespace, output: Output) -> int:
    """Put one text, and print its id."""
    with _writing(options) as store:
        receipt = store.put_frame(" ".join(options.text), title=options.title, tags=options.tag)
        output.line(f"frame {receipt.id} in {store.path}")
        output.result({"file": store.path, **receipt.to_dict()})
    return 0


def _expanded(names: list[str]) -> Iterator[str]:
    """Yield the files that were named, those below folders in order of their names."""
    for name in names:
        path = Path(name)
        if name != "-" and os.path.isdir(name):
            below = (one for one in path.rglob("*") if one.suffix.lower() in TEXT_SUFFIXES)
            yield from sorted(str(one) for one in below if one.is_file())
        else:
            yield name


def _document(name: str) -> tuple[str, str | None, str | None]:
    """Read what was named; return its text, URI and title. Input has neither of the two.

    Raises:
        NotFound, StorageFailed, InvalidInput: it cannot be remembered.
    """
    if name != "-":
        return read_document(Path(name))
    if sys.stdin is None:
        raise InvalidInput("There is no input", remedy="Name a file.")
    try:
        # One byte more than is allowed: what is too large is seen without reading it all.
        data = sys.stdin.buffer.read(STRING_SIZE_MAX + 1)
    except OSError as error:
        raise cerata.StorageFailed(f"Cannot read: {error.strerror}", where="input") from error
    return decode_text(data, "input"), None, None


# --- reading -------------------------------------------------------------------------------------


def _view(store: Store, options: Namespace) -> View:
    return store.at("HEAD" if options.at is None else options.at)


def run_search(options: Namespace, output: Output) -> int:
    """Print the best frames, their words marked."""
    query = " ".join(options.query)
    with _reading(options) as store:
        view = _view(store, options)
        hits = view.search(query, k=options.k, include_superseded=options.superseded)
        for rank, hit in enumerate(hits, start=1):
            _print_hit(rank, hit, output)
        if not hits:
            output.line(f"Nothing matches {query!r} at event {view.basis:,}.")
        output.result(
            {"query": query, "basis": view.basis, "hits": [hit.to_dict() for hit in hits]}
        )
    return 0


def _print_hit(rank: int, hit: Hit, output: Output) -> None:
    frame = hit.frame
    name = frame.title or frame.uri or clipped(frame.text, 40)
    closed = "" if frame.active else "  (closed)"
    output.line(
        Text.assemble(
            (f"{rank:>2}. ", "dim"),
            (name, "bold"),
            (f"  #{hit.id}  {hit.score:.3f}{closed}", "dim"),
        )
    )
    start, end = hit.span
    begin = max(0, start - 60)
    before = " ".join(hit.text[begin:start].split())
    inside = " ".join(hit.text[start:end].split())
    rest = clipped(hit.text[end : end + _SNIPPET], max(20, _SNIPPET - len(before) - len(inside)))
    lead = "…" if begin else ""
    output.line(Text.assemble("    ", lead, before, " ", (inside, "green"), " ", rest))


def run_recall(options: Namespace, output: Output) -> int:
    """Print a context, its last line saying what was shown."""
    query = " ".join(options.query)
    with _reading(options) as store:
        context = _view(store, options).recall(query, max_tokens=options.max_tokens)
        if context.text:
            output.line(context.text)
            output.line()
        output.line(context.summary, style="dim")
        output.result({"query": query, **context.to_dict()})
    return 0


def run_log(options: Namespace, output: Output) -> int:
    """Print events, newest first."""
    if not 0 < options.n <= sys.maxsize:
        raise InvalidInput(f"-n {options.n}", remedy="Ask for 1 or more.")
    with _reading(options) as store:
        view = _view(store, options)
        rows: list[JsonValue] = []
        for event in islice(_newest_first(view), options.n):
            rows.append(event_row(event))
            output.line(
                Text.assemble(
                    (f"{event.seq:>8,}  ", "yellow"),
                    (f"{to_datetime(event.recorded):%Y-%m-%d %H:%M:%S}  ", "dim"),
                    (f"{event.type:<15} ", "bold"),
                    clipped(describe(event), 100),
                )
            )
        if not rows:
            output.line("The log is empty.")
        output.result({"basis": view.basis, "events": rows})
    return 0


def _newest_first(view: View, step: int = 256) -> Iterator[Event]:
    last = view.basis
    while last > 0:
        first = max(1, last - step + 1)
        yield from reversed(list(view.log(first, last)))
        last = first - 1


def describe(event: Event) -> str:
    """Return what an event says, in a few words."""
    body = event.body
    if isinstance(body, Erased):
        return "(erased)"
    if isinstance(body, PutFrame):
        if body.chunk_count is not None:
            return f"{body.title or body.uri or 'a document'} ({body.chunk_count} passages)"
        if body.blob is not None:
            return f"{body.title or body.uri or 'bytes'} ({bytes_text(body.blob.size)})"
        name = body.title or body.uri
        return f"{name}: {body.text}" if name else body.text or ""
    if isinstance(body, SupersedeFrame):
        return f"frame {body.old} by frame {body.new}"
    if isinstance(body, DeleteFrame):
        return f"frame {body.frame}"
    return ""


def event_row(event: Event) -> dict[str, JsonValue]:
    """Return an event as plain values, with the hashes that bind it."""
    header = event.header
    return {
        "seq": event.seq,
        "type": event.type,
        "version": header.version,
        "recorded": to_datetime(event.recorded).isoformat(),
        "batch": [header.first_seq, header.last_seq],
        "causation": event.causation,
        "scope": dict(event.scope),
        "leaf": event.leaf.hex(),
        "summary": clipped(describe(event), 200),
    }


# --- the file ------------------------------------------------------------------------------------


def run_info(options: Namespace, output: Output) -> int:
    """Print what is in the file and where it stands."""
    with _reading(options) as store:
        facts = store.info()
    for name, value in facts.items():
        output.line(Text.assemble((f"{name.replace('_', ' '):<18} ", "dim"), _shown(value)))
    output.result(facts)
    return 0


def _shown(value: JsonValue) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value) or "none"
    return str(value)


def run_verify(options: Namespace, output: Output) -> int:
    """Verify the file, and say what is damaged."""
    with (
        _reading(options) as store,
        output.progress("verifying", store.head.seq) as steps,
    ):
        done = 0

        def moved(_what: str, at: int, _total: int) -> None:
            nonlocal done
            steps.done(max(0, at - done))
            done = at

        found = store.verify(moved)
    for problem in found.log.problems:
        output.line(Text.assemble(("damaged: ", "bold red"), str(problem)))
    for name in found.diverging:
        output.line(Text.assemble(("diverges: ", "bold red"), f"{name} is not what its log says"))
    for note in found.notes:
        output.line(Text.assemble(("rebuilt: ", "yellow"), note))
    if found.ok:
        names = ", ".join(sorted(found.digests))
        output.line(
            Text.assemble(
                ("ok: ", "bold green"),
                f"{found.log.events:,} events, every hash recomputed; {names} equal their replay",
            )
        )
    output.result(found.to_dict())
    return 0 if found.ok else 1
