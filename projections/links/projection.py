"""The fold of links between facts, and from facts to frames.

Owns the handled events and their effects: *births* (a row per link), *repeats* (the same link
again), *closings*, and anomalies, which change nothing. Leaves out the consequences for facts:
reads compute them (`labelling`). So a link may name any id, and has no effect if an end does not
exist.

Rules of the fold, which never fails:

- A link that equals a link that holds, in scope, kind and ends, is a repeat.
- The first closing of a link wins.
- An event with an unknown kind, a reference to no earlier event, or a link from a fact to itself is
  an anomaly.
"""

from typing import ClassVar, Final

from cerata.engine.events import Erased, EventBody, LinkFacts, UnlinkFacts

from ..core.column_fold import ForkableFold
from ..core.event_batch import EventBatch
from ..core.projection import FoldedEvent
from .reader import LINK_KINDS, LinkAnomaly, LinkBirth, LinkColumns, Links

_KINDS: Final[tuple[type[EventBody], ...]] = (LinkFacts, UnlinkFacts)
LINK_EVENTS: Final = frozenset(kind.wire_name for kind in _KINDS)
"""The wire names of the handled events."""


class LinksProjection(ForkableFold[LinkColumns]):
    """Folds links and their closings into columns."""

    name: ClassVar[str] = "links"
    version: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__(LinkColumns())
        self._links: Links | None = None

    def snapshot(self) -> Links:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._links is None or self._links.seq != self.seq:
            self._links = Links(self._columns, self.seq)
        return self._links

    def _fold(self, events: EventBatch) -> None:
        handled = events.of_types(LINK_EVENTS)
        if not handled:
            return
        batch = _Batch(self._columns)
        for event in handled:
            body = event.body
            if isinstance(body, LinkFacts):
                birth = self._birth(event, body)
                if isinstance(birth, LinkAnomaly):
                    batch.anomalies.append((event.seq, birth))
                else:
                    batch.link(birth)
            elif isinstance(body, UnlinkFacts):
                batch.unlink(event, body)
            elif isinstance(body, Erased):
                batch.anomalies.append((event.seq, LinkAnomaly.ERASED))
        batch.keep()

    def _birth(self, event: FoldedEvent, body: LinkFacts) -> LinkBirth | LinkAnomaly:
        """Return the link of an event, or the anomaly for which the event has no link."""
        kind = LINK_KINDS.get(body.kind)
        ends = (body.target, body.frame)
        target = body.frame if body.target is None else body.target
        if kind is None or target is None or None not in ends or target == body.fact:
            return LinkAnomaly.NO_LINK
        if not (0 < body.fact < event.seq and 0 < target < event.seq):
            return LinkAnomaly.UNKNOWN_REFERENCE
        scope = self._scope_code(event.scope, event.seq)
        is_frame = int(body.target is None)
        return LinkBirth(event.seq, event.recorded, scope, body.fact, kind, target, is_frame)


class _Batch:
    """The effects of a batch, before they are appended to the columns."""

    def __init__(self, columns: LinkColumns) -> None:
        self._columns = columns
        self._first_row = len(columns.births)
        self._births: list[LinkBirth] = []
        self._repeats: list[tuple[int, int]] = []
        self._closings: list[tuple[int, int, int]] = []
        self._rows: dict[int, int] = {}
        """The rows of this batch's links, by seq."""
        self._alike: dict[tuple[int, ...], int] = {}
        """The last row of this batch with each identity."""
        self._closed: set[int] = set()
        self.anomalies: list[tuple[int, int]] = []

    def link(self, birth: LinkBirth) -> None:
        """Add a link, or a repeat of a link that holds."""
        rows = self._columns.rows_alike(birth)
        rows += [self._alike[birth.identity]] if birth.identity in self._alike else []
        row = next((row for row in reversed(rows) if not self._is_closed(row)), None)
        if row is None:
            row = self._first_row + len(self._births)
            self._births.append(birth)
            self._alike[birth.identity] = row
        else:
            self._repeats.append((birth.seq, row))
        self._rows[birth.seq] = row

    def unlink(self, event: FoldedEvent, body: UnlinkFacts) -> None:
        """Add the first closing of a link; a later closing is an anomaly."""
        row = self._rows.get(body.link)
        if row is None and 0 < body.link < event.seq:
            row = self._columns.row_of(body.link)
        if row is None:
            self.anomalies.append((event.seq, LinkAnomaly.UNKNOWN_REFERENCE))
        elif self._is_closed(row):
            self.anomalies.append((event.seq, LinkAnomaly.ALREADY_CLOSED))
        else:
            self._closings.append((event.seq, event.recorded, row))
            self._closed.add(row)

    def _is_closed(self, row: int) -> bool:
        is_earlier = row < self._first_row
        return row in self._closed or (is_earlier and self._columns.closed_at.is_closed(row))

    def keep(self) -> None:
        """Append the effects to the columns."""
        columns = self._columns
        columns.append_births(self._births)
        columns.repeats.append(self._repeats)
        columns.append_closings(self._closings)
        columns.anomalies.append(self.anomalies)
