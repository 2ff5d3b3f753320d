"""Layers: the frames of one fold, as a view reads them.

A view has one layer, the log's; inside a transaction a second layer over it has the pending frames
of the block. Owns masks over the rows of a layer within a reach, and their cache. Leaves out
frames that a transaction closes (`layers`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cerata.engine.events import once
from cerata.engine.late import late

from ..values.arguments import DOCUMENT_KIND
from ..values.owners import no_memories

if TYPE_CHECKING:
    import numpy as np

    from cerata.projections.columnar import turn_order as turn_order_module
    from cerata.projections.columnar.columns import I64, Mask
    from cerata.projections.columnar.scopes import Reach
    from cerata.projections.columnar.turn_order import OrderedRows, TurnOrder
    from cerata.projections.facts import reader as facts_reader
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.facts.text_projection import FactText
    from cerata.projections.frames import filters
    from cerata.projections.frames.filters import Filter
    from cerata.projections.frames.reader import Frames
    from cerata.projections.fulltext.bm25 import FulltextView
    from cerata.projections.fulltext.turns.turn_lengths import TurnLengths
    from cerata.projections.rows.built_in import Used
    from cerata.replay.fold import Fold

    from . import basis_columns
    from .basis_columns import BasisColumns
else:
    basis_columns = late("cerata.memory.snapshot.basis_columns")
    np = late("numpy")
    turn_order_module = late("cerata.projections.columnar.turn_order")
    facts_reader = late("cerata.projections.facts.reader")
    filters = late("cerata.projections.frames.filters")


_PAST_LAYERS_MAX: Final = 4
"""Layers of the past in memory: about 10 bytes for each frame in each."""


class Folds(Protocol):
    """The projections of a log, or of drafts."""

    def frames(self, through: int | None = None) -> Frames: ...


class Layer(msgspec.Struct, frozen=True, dict=True):
    """The frames of a fold at its event ``n`` that ``reach`` admits.

    ``sign`` is 1 if a frame's id is its seq, −1 if its id is minus its place in a batch.
    """

    folds: Folds
    n: int
    reach: Reach | None
    sign: int = 1

    @once
    def frames(self) -> Frames:
        """The frames, folded at least through ``n``."""
        return self.folds.frames(self.n)

    @once
    def has_expiry(self) -> bool:
        """True if a frame may expire, also one that only a later event puts."""
        return self.frames.has_expiry

    @once
    def rows(self) -> int:
        """The count of rows at ``n``; masks have an item for each."""
        return self.frames.rows_at(self.n)

    def row_of(self, frame: int) -> int | None:
        """Return the row of a frame within the scope, or None."""
        row = self.frames.row_of(frame * self.sign)
        if row is None or row >= self.rows:
            return None
        # A mask of all rows would cost more than the look-up of one.
        return row if self.reach is None or self.frames.admits_row(self.reach, row) else None

    def ids(self, rows: I64) -> I64:
        """Return the ids of the frames in rows."""
        return self.frames.ids[rows] * self.sign

    def rows_of(self, frames: I64) -> I64:
        """Return the rows of frames that exist."""
        return np.searchsorted(self.frames.ids, frames * self.sign)

    @once
    def visible(self) -> Mask:
        """Rows within the scope, current or not."""
        if self.reach is None:
            return np.ones(self.rows, np.bool_)
        return self.frames.admitted(self.reach, self.n)

    def open(self, *, include_superseded: bool = False, include_deleted: bool = False) -> Mask:
        """Return the rows within the scope that are current, or closed in an included way."""
        alive = self.frames.alive(
            self.n, include_superseded=include_superseded, include_deleted=include_deleted
        )
        return self.visible & alive

    @once
    def current(self) -> Mask:
        """Rows within the scope that are current."""
        return _shared(self.open())

    @once
    def searched(self) -> Mask:
        """Rows that a search ranks: all but split documents, whose chunks are ranked."""
        return _shared(self.frames.mask(_not_of((DOCUMENT_KIND,)), self.n))

    @once
    def memories(self) -> Mask:
        """Rows of `searched` whose kinds are memories."""
        others = (DOCUMENT_KIND, *sorted(no_memories()))
        return _shared(self.frames.mask(_not_of(others), self.n))

    @once
    def sought(self) -> Mask:
        """Rows that a search returns by default: current memories."""
        return _shared(self.current & self.memories)

    @once
    def is_chunk(self) -> Mask:
        """Rows that are parts of documents."""
        return self.frames.chunk_mask(self.n)

    @once
    def first_versions(self) -> I64 | None:
        """The row of the first version of each row; None if all rows are first."""
        return turn_order_module.first_versions(
            self.frames.conversations(self.n), *self.frames.replacements(self.n)
        )

    def speakers(self, mask: Mask) -> set[str]:
        """Return the distinct roles of the rows in a mask."""
        return self.frames.roles(mask)


class LastTurns:
    """The order of turns and their lengths, as a layer of the log computed them last.

    A layer after an append extends them, with the same result as without them. So any thread or
    signal handler may replace a value at any time, also by an older value.
    """

    def __init__(self) -> None:
        self.rows: OrderedRows | None = None
        self.lengths: TurnLengths | None = None


class LogLayer(Layer, frozen=True, dict=True):
    """The layer of the log. It alone has a ranking; drafts are ranked together with the log."""

    folds: Fold
    last: LastTurns = msgspec.field(default_factory=LastTurns)

    def at(self, n: int) -> LogLayer:
        """Return the layer of a later event, which extends the order of the turns."""
        return LogLayer(self.folds, n, self.reach, last=self.last)

    @once
    def turns(self) -> TurnOrder | None:
        """The order of the current turns; None without any."""
        rows = turn_order_module.ordered_rows(
            self.frames.conversations(self.n), self.sought, self.first_versions, self.last.rows
        )
        self.last.rows = rows
        return rows.order

    @once
    def frames(self) -> Frames:
        self.folds.check_whole(self.n)
        return self.folds.frames(self.n)

    @once
    def speakers_sought(self) -> set[str]:
        """The roles of the rows that a search returns by default."""
        return self.speakers(self.sought)

    @once
    def facts(self) -> FactsAt:
        """The facts, without regard to the links between them."""
        return facts_reader.FactsAt(self.folds.facts(self.n), self.n, self.reach)

    @once
    def has_no_links(self) -> bool:
        """True if no event so far created a link."""
        return self.folds.has_no_links(self.n)

    @once
    def fact_text(self) -> FactText:
        """The words of `facts`."""
        return self.folds.fact_text(self.n)

    @once
    def used_embedder(self) -> Used | None:
        """The embedder that the memory uses, by the newest event of the tenant."""
        scope = None if self.reach is None else self.reach.pairs
        return self.folds.embedders(self.n).newest(scope, self.n)

    @once
    def ranking(self) -> FulltextView:
        """The ranking, with the statistics of the rows that a search returns by default."""
        self.folds.check_whole(self.n)
        return self.folds.fulltext(self.n).view(self.sought, self.turns, self.last)

    @once
    def columns(self) -> BasisColumns:
        """The columns that questions read."""
        frames = self.frames
        count = len(frames.role_names)
        return basis_columns.BasisColumns((frames,), (self.rows,), count, self.ranking, self.turns)


class PastLayers:
    """The layers of the last points of the log that were read, so that masks are computed once.

    - Layers are dropped when the log grows, since each holds the buffers of its time.
    """

    def __init__(self) -> None:
        self._end: tuple[int, int] = 0, 0
        self._layers: dict[int, LogLayer] = {}

    def at(self, fold: Fold, n: int, head: int, reach: Reach | None) -> LogLayer:
        """Return the layer at event ``n`` of a log that ends at event ``head``."""
        end = fold.replaced, head
        layers = self._layers
        if end != self._end:
            # Another thread may still use the old dictionary.
            layers = self._layers = {}
            self._end = end
        layer = layers.pop(n, None) or LogLayer(fold, n, reach)
        layers[n] = layer
        if len(layers) > _PAST_LAYERS_MAX:
            # Another thread may have dropped it already.
            layers.pop(next(iter(layers), n), None)
        return layer


@cache
def _not_of(kinds: tuple[str, ...]) -> Filter:
    """Return the filter that leaves out kinds of frames; there are few different ones."""
    return ~filters.Filter(kind=kinds)


def _shared(mask: Mask) -> Mask:
    """Return a mask made read-only, because all readers of a layer share it."""
    mask.flags.writeable = False
    return mask
