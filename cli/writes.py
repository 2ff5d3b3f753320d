"""The verbs that write: remember, put and tag."""

import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from rich.text import Text

from cerata.engine.errors import InvalidInput, NotFound, StorageFailed, Unsupported
from cerata.engine.events import JsonValue
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.memory.drafting import full_scope
from cerata.memory.extract.document import Document
from cerata.memory.extract.plain import extract_markdown
from cerata.memory.extract.registry import KNOWN_SUFFIXES, extract
from cerata.memory.ingest import find_unchanged, read_file
from cerata.memory.store import Store
from cerata.memory.values import Receipt

from .opening import reading, view_of, writing
from .output import Output


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
                data = _read(path)
                known = None if store is None else _find_unchanged(store, path, data)
                document = _document(path, data) if known is None else None
            except (InvalidInput, NotFound, StorageFailed, Unsupported) as error:
                skipped.append({"path": path, "why": str(error)})
                output.warn(f"skipped {path}: {error.what}")
            else:
                if store is None:
                    # Not before there is something to keep: a wrong name leaves no empty file.
                    store = opened.enter_context(writing(options))
                receipt = known
                if document is not None:
                    uri, title = _names(path, document)
                    receipt = store.remember(document, uri=uri, title=title, tags=options.tag)
                is_added = receipt is not None and receipt.added
                outcome["added" if is_added else "unchanged"] += 1
                passages += len(receipt.ids) if receipt is not None and is_added else 0
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
    text = " ".join(options.text)
    if not text.strip():
        raise InvalidInput("There is no text to put", remedy="Give at least one word.")
    with writing(options) as store:
        receipt = store.put_frame(text, title=options.title, tags=options.tag)
        output.line(f"frame {receipt.id} in {store.path}")
        output.result({"file": store.path, **receipt.to_dict()})
    return 0


def run_tag(options: Namespace, output: Output) -> int:
    """Name a point in time, or list what has a name."""
    if options.name is None:
        with reading(options) as store:
            view = view_of(store, options)
            tags = view.tags()
            for name, seq in tags.items():
                output.line(Text.assemble((f"{seq:>8,}  ", "yellow"), name))
            if not tags:
                output.line("There are no tags.")
            rows: list[JsonValue] = [{"tag": name, "at": seq} for name, seq in tags.items()]
            output.result({"basis": view.basis, "tags": rows}, items="tags")
        return 0
    # A missing file is said, not made: there is nothing in it to name.
    reading(options).close()
    with writing(options) as store:
        view = view_of(store, options)
        receipt = store.tag(options.name, at=view)
        output.line(f"{options.name} names event {view.basis:,} of {store.path}")
        said = {"file": store.path, "tag": options.name, "at": view.basis}
        output.result({**said, **receipt.to_dict()})
    return 0


def _expanded(names: list[str]) -> Iterator[str]:
    """Yield the files that were named, those below folders in order of their names."""
    for name in names:
        path = Path(name)
        if name != "-" and os.path.isdir(name):
            below = (one for one in path.rglob("*") if one.suffix.lower() in KNOWN_SUFFIXES)
            yield from sorted(str(one) for one in below if one.is_file())
        else:
            yield name


def _find_unchanged(store: Store, name: str, data: bytes) -> Receipt | None:
    scope = full_scope(None, store.scope)
    uri = Path(name).as_posix()
    return None if name == "-" else find_unchanged(store.view().within(scope), data, uri, scope)


def _document(name: str, data: bytes) -> Document:
    return extract_markdown(data, "input") if name == "-" else extract(data, name)


def _names(name: str, document: Document) -> tuple[str | None, str | None]:
    """Return the URI and title of what was named; input has neither."""
    path = Path(name)
    return (None, None) if name == "-" else (path.as_posix(), document.title or path.name)


def _read(name: str) -> bytes:
    """Return the bytes of what was named.

    Raises:
        NotFound, StorageFailed, InvalidInput: it cannot be read.
    """
    if name != "-":
        return read_file(Path(name))
    if sys.stdin is None:
        raise InvalidInput("There is no input", remedy="Name a file.")
    try:
        # One byte more than is allowed: what is too large is seen without reading it all.
        return sys.stdin.buffer.read(STRING_SIZE_MAX + 1)
    except OSError as error:
        raise StorageFailed(f"Cannot read: {error.strerror}", where="input") from error
