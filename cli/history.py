"""The verb that shows what happened: log."""

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice

from rich.text import Text

from cerata.engine.events import (
    DeleteFrame,
    Erased,
    Event,
    JsonValue,
    PutFrame,
    PutTag,
    SupersedeFrame,
)
from cerata.memory.view import View
from cerata.projections.times import to_datetime

from .opening import reading, view_of
from .output import Output, bytes_text, clipped
from .reads import count_of


def run_log(options: Namespace, output: Output) -> int:
    """Print events, newest first."""
    count = count_of(options)
    with reading(options) as store:
        view = view_of(store, options)
        rows: list[JsonValue] = []
        for event in islice(_newest_first(view), count):
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
        output.result({"basis": view.basis, "events": rows}, items="events")
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
    if isinstance(body, PutTag):
        return f"{body.tag} names event {body.at}"
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
