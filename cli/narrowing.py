"""Narrowing: from the options to a filter, and what was probably meant where nothing passes it."""

import sys
from argparse import Namespace
from itertools import islice
from typing import Final, TypedDict

from cerata.engine.errors import InvalidInput
from cerata.memory.view import View
from cerata.projections.filters import Filter

from .output import Output
from .parser import did_you_mean

_LOOKED_AT: Final = 2_000
"""Frames, newest first, whose tags, kinds and roles are known to a hint."""


def where_of(options: Namespace) -> Filter | None:
    """Return the filter that was asked for, or None."""
    if not (options.tag or options.kind or options.role):
        return None
    return Filter(tags=options.tag, kind=options.kind, role=options.role)


class Closed(TypedDict):
    """Which frames come that are no longer current."""

    include_superseded: bool
    include_deleted: bool


def closed_of(options: Namespace) -> Closed:
    """Return which frames come that are no longer current."""
    return {"include_superseded": options.superseded, "include_deleted": options.deleted}


def count_of(options: Namespace) -> int:
    """Return how many items were asked for. Raises `InvalidInput`."""
    count: int = options.n
    if not 0 < count <= sys.maxsize:
        raise InvalidInput(f"-n {count}", remedy="Ask for 1 or more.")
    return count


def hint(view: View, options: Namespace, output: Output) -> None:
    """Where nothing came, say which filter no frame passes, and what was probably meant."""
    asked = {"tag": list(options.tag), "kind": [options.kind], "role": [options.role]}
    if output.as_json or not any(value for values in asked.values() for value in values):
        return
    known: dict[str, set[str]] = {name: set() for name in asked}
    for frame in islice(view.frames(include_chunks=True), _LOOKED_AT):
        known["tag"].update(frame.tags)
        known["kind"].add(frame.kind)
        known["role"].update([frame.role] if frame.role else [])
    for name, values in asked.items():
        for value in values:
            if value and value not in known[name]:
                near = did_you_mean(value, known[name])
                meant = "" if near is None else f"; did you mean {near!r}?"
                output.warn(f"no recent frame has the {name} {value!r}{meant}")
