"""Filters from options, and hints about a filter that no frame passes."""

from __future__ import annotations

import sys
from argparse import Namespace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypedDict

from cerata.engine.errors import InvalidInput
from cerata.engine.loading import loading
from cerata.memory.view import View

from .output import Output
from .verb_parser import did_you_mean

if TYPE_CHECKING:
    from cerata.projections.frames.filters import Filter

_LOOKED_AT: Final = 2_000
"""Newest frames whose tags, kinds and roles a hint considers."""


def where_of(options: Namespace) -> Filter | None:
    """Return the filter of the options, or None."""
    where = None
    if options.tag or options.kind or options.role or options.absent:
        # Imported here: 'cerata log' has no filter of frames.
        from cerata.projections.frames.filters import Filter

        where = Filter(
            tags=options.tag, kind=options.kind, role=options.role, absent=options.absent
        )
    if options.where is None:
        return where
    with loading("the query language"):
        from cerata.retrieval.query_language.query_filter import query_filter
    tests = query_filter(options.where)
    return tests if where is None else where & tests


class Closed(TypedDict):
    """Which frames are included that are not current."""

    include_superseded: bool
    include_deleted: bool


def closed_of(options: Namespace) -> Closed:
    """Return which frames are included that are not current."""
    return {"include_superseded": options.superseded, "include_deleted": options.deleted}


def count_of(options: Namespace) -> int:
    """Return the number of items to print. Raises `InvalidInput`."""
    count: int = options.n
    if not 0 < count <= sys.maxsize:
        raise InvalidInput(f"-n must be 1 or more, not {count}", remedy="Pass -n 1 or more.")
    return count


def hint(view: View, options: Namespace, output: Output) -> None:
    """After an empty result, name a filter that no frame passes, and the likely name."""
    filters = {"tag": list(options.tag), "kind": [options.kind], "role": [options.role]}
    if output.as_json or not any(value for values in filters.values() for value in values):
        return
    names: dict[str, set[str]] = {name: set() for name in filters}
    for frame in islice(view.frames(include_chunks=True), _LOOKED_AT):
        names["tag"].update(frame.tags)
        names["kind"].add(frame.kind)
        names["role"].update([frame.role] if frame.role else [])
    for name, values in filters.items():
        for value in values:
            if value and value not in names[name]:
                near = did_you_mean(value, names[name])
                meant = "" if near is None else f"; did you mean {near!r}?"
                output.warn(f"no recent frame has the {name} {value!r}{meant}")
