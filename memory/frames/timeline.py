"""Pages of the timeline over the layers of a view.

Owns the order of entries of both layers. Each layer is in order of (time, row); at equal times the
log's rows come before pending rows, which will follow them in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast

from cerata.engine.arguments import is_integer
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.json_value import exact
from cerata.engine.late import late
from cerata.projections.columnar.relative_times import interval_of
from cerata.projections.columnar.turn_order import NO_ROW
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.timeline import Page, Position, TimelineOrder

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask
    from cerata.projections.frames import timeline

    from ..snapshot.layer import Layer
    from ..snapshot.layers import Layers
    from ..snapshot.snapshot import Snapshot
else:
    timeline = late("cerata.projections.frames.timeline")


_ABOVE_ALL = 1 << 62
"""A seq above that of every frame: the position after all rows of a time."""


@dataclass(frozen=True, slots=True)
class Paging:
    """A request for a page: order, start ≤ time < end in microseconds, position and limit."""

    by: TimelineOrder
    start: int | None
    end: int | None
    after: Position | None
    limit: int
    newest_first: bool


def page_of(layers: Layers, masks: Sequence[Mask], paging: Paging) -> Page:
    """Return the next page of the frames in ``masks``, a mask for each layer.

    Raises:
        InvalidInput: the order is unknown, the limit not positive, or ``after`` no position.
    """
    if paging.by not in ("content", "recorded"):
        raise InvalidInput(
            f"by must be 'content' or 'recorded', not {value_text(paging.by)}",
            remedy="Pass 'content' or 'recorded'.",
        )
    if not is_integer(paging.limit):
        raise InvalidInput(
            f"limit must be a whole number, not {value_text(paging.limit)}",
            remedy="Pass 1 or more.",
        )
    if paging.after is not None:
        _check_place(paging.after)
    pages = [
        layer.frames.timeline(layer.n, paging.by).page(
            among=mask,
            start=paging.start,
            end=paging.end,
            after=_place(paging, layer),
            limit=paging.limit,
            newest_first=paging.newest_first,
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
    entries.sort(
        key=lambda entry: (entry.time, layers.moment(entry.frame)), reverse=paging.newest_first
    )
    selected = tuple(entries[: paging.limit])
    has_more = len(entries) > paging.limit or any(page.next for page in pages)
    return Page(selected, selected[-1] if has_more and selected else None)


def _check_place(after: object) -> None:
    pair = cast("tuple[object, ...]", after if isinstance(after, tuple) else ())
    if len(pair) != 2 or not all(
        is_integer(number) and abs(number) <= _ABOVE_ALL for number in pair
    ):
        raise InvalidInput(
            f"after is {value_text(after)}, which is not a Position",  # pyright: ignore[reportUnknownArgumentType]
            remedy="Pass the next of the page before, or None.",
        )


def _place(paging: Paging, layer: Layer) -> Position | None:
    if paging.after is None:
        return None
    time, frame = paging.after
    if frame * layer.sign > 0:
        return Position(time, frame * layer.sign)
    # The position is in the other layer, and all log rows of a time precede its pending rows.
    return Position(time, _ABOVE_ALL if layer.sign > 0 else 0)


def range_of(
    start: date | str | None, end: date | str | None, now: datetime
) -> tuple[int | None, int | None]:
    """Return start ≤ time < end in microseconds. Raises `InvalidInput`."""
    first, last = (None if time is None else interval_of(time, now).start for time in (start, end))
    if first is not None and last is not None and last < first:
        raise InvalidInput(
            f"The range ends at {end}, before its start at {start}",
            remedy="Pass start and end in this order.",
        )
    return first, last


# --- Conversations: the newest frames in order, and the neighbours of a frame ---------------------
#
# A chunk has its neighbours in its document, a turn in its conversation, and another frame with a
# track in that track, in the order of recording.


def newest_frames(
    snapshot: Snapshot,
    where: Filter | None,
    *,
    include_chunks: bool = False,
    by_first: bool = False,
) -> Iterator[int]:
    """Yield the current frames that a filter admits, newest first by the time of recording.

    If ``by_first``, a new version of a frame has the place of its first version.
    """
    masks = snapshot.layers.admitted(where)
    layers = snapshot.layers
    yield from layers.newest(masks if include_chunks else layers.whole(masks), by_first=by_first)


ChunksOf: TypeAlias = Callable[[int], Sequence[int]]
"""Returns the chunks of a document within the scope, in order."""


def chunks_once(snapshot: Snapshot) -> ChunksOf:
    """Return a function that lists the chunks of each document once, for many neighbours."""

    @cache
    def chunks_of(document: int) -> Sequence[int]:
        return [*snapshot.chunks_of(document).values()] if snapshot.layers.has(document) else []

    return chunks_of


def neighbours_of(
    snapshot: Snapshot, frame: int, before: int, after: int, chunks_of: ChunksOf | None = None
) -> list[int]:
    """Return a frame and its neighbours, in order.

    ``chunks_of`` saves listing the chunks of a document for each of its frames.

    Raises:
        InvalidInput: a count is no whole number from 0.
    """
    before, after = exact(before), exact(after)
    for name, count in (("before", before), ("after", after)):
        if not is_integer(count) or count < 0:
            raise InvalidInput(
                f"{name} must be a whole number from 0, not {value_text(count):.60}",
                remedy=f"Pass {name}=0 or more.",
            )
    layers = snapshot.layers
    row = layers.row(frame)
    if row is not None and row.chunk_index is not None and (document := layers.parent_of(frame)):
        chunks = (chunks_of or chunks_once(snapshot))(document)
        if frame in chunks:
            place = chunks.index(frame)
            return [*chunks[max(0, place - before) : place + after + 1]]
    turns = layers.turns
    rank_row = None if turns is None else layers.rank_row(frame)
    if turns is not None and rank_row is not None and turns.places[rank_row] != NO_ROW:
        rows = turns.beside(int(turns.places[rank_row]), before, after)
        beside_turn: list[int] = layers.ids_at(rows).tolist()
        return beside_turn
    if row is None or row.track is None:
        return [frame]
    masks = layers.whole(layers.admitted(Filter(track=row.track)))
    position = timeline.Position(row.recorded, frame)

    def beside(count: int, *, newest_first: bool) -> list[int]:
        if not count:
            return []
        paging = Paging("recorded", None, None, position, count, newest_first)
        return [entry.frame for entry in page_of(layers, masks, paging).entries]

    earlier = beside(before, newest_first=True)
    return [*reversed(earlier), frame, *beside(after, newest_first=False)]
