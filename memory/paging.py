"""Pages of the timeline over the layers of a view.

Each layer has its own order by (time, row); at one time the log's rows come before those that are
only gathered, as they will once they are appended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from cerata.engine.errors import InvalidInput
from cerata.projections.columns import Mask
from cerata.projections.timeline import Page, Position, TimelineOrder

from .layer import Layer
from .layers import Layers

_ABOVE_ALL = 1 << 62
"""A seq that no frame has: after every row of its time."""


@dataclass(frozen=True, slots=True)
class Paging:
    """What part of the timeline is asked for: start ≤ time < end in microseconds, and how."""

    by: TimelineOrder
    start: int | None
    end: int | None
    after: Position | None
    limit: int
    newest_first: bool


def page_of(layers: Layers, masks: Sequence[Mask], asked: Paging) -> Page:
    """Return the next page of the frames in ``masks``, one mask a layer.

    Raises:
        InvalidInput: an unknown order, a limit that is not positive, or no place to go on from.
    """
    if asked.by not in ("content", "recorded"):
        raise InvalidInput(f"by is {asked.by!r}", remedy="Write 'content' or 'recorded'.")
    if isinstance(asked.limit, bool) or not isinstance(asked.limit, int):
        raise InvalidInput(f"limit is {asked.limit!r}", remedy="Ask for 1 or more.")
    if asked.after is not None:
        _check_place(asked.after)
    pages = [
        layer.frames.timeline(layer.n, asked.by).page(
            among=mask,
            start=asked.start,
            end=asked.end,
            after=_place(asked, layer),
            limit=asked.limit,
            newest_first=asked.newest_first,
        )
        for layer, mask in zip(layers.all, masks, strict=True)
    ]
    if len(pages) == 1:
        return pages[0]
    entries = [
        Position(entry.time, entry.frame * layer.sign)
        for layer, page in zip(layers.all, pages, strict=True)
        for entry in page.entries
    ]
    entries.sort(key=lambda one: (one.time, layers.moment(one.frame)), reverse=asked.newest_first)
    found = tuple(entries[: asked.limit])
    goes_on = len(entries) > asked.limit or any(page.next for page in pages)
    return Page(found, found[-1] if goes_on and found else None)


def _check_place(after: object) -> None:
    pair = cast("tuple[object, ...]", after if isinstance(after, tuple) else ())
    if len(pair) != 2 or not all(
        isinstance(one, int) and not isinstance(one, bool) and abs(one) <= _ABOVE_ALL
        for one in pair
    ):
        raise InvalidInput(
            f"after is {after!r}", remedy="Pass the next of the page before, or leave it out."
        )


def _place(asked: Paging, layer: Layer) -> Position | None:
    """Return where the last page ended in a layer's own order."""
    if asked.after is None:
        return None
    time, frame = asked.after
    if frame * layer.sign > 0:
        return Position(time, frame * layer.sign)
    # Of the other layer: all of the log's rows of that time are before all gathered ones.
    return Position(time, _ABOVE_ALL if layer.sign > 0 else 0)
