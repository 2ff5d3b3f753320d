"""Conversations: the newest frames in order, and the neighbours of a frame.

A chunk has its neighbours in its document, a turn in its conversation, and another frame with a
track in that track, in the order of recording. Leaves out the timeline and its pages (`timeline`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from cerata.engine.arguments import is_integer
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.json_value import exact
from cerata.engine.late import late
from cerata.projections.columnar.turn_order import NO_ROW
from cerata.projections.frames.filters import Filter

if TYPE_CHECKING:
    from cerata.projections.frames import timeline

    from ..snapshot.snapshot import Snapshot
    from . import timeline as timelines
else:
    timelines = late("cerata.memory.frames.timeline")
    timeline = late("cerata.projections.frames.timeline")


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
        paging = timelines.Paging("recorded", None, None, position, count, newest_first)
        return [entry.frame for entry in timelines.page_of(layers, masks, paging).entries]

    earlier = beside(before, newest_first=True)
    return [*reversed(earlier), frame, *beside(after, newest_first=False)]
