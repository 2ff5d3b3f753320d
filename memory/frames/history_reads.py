"""Reading the past of a thing: its versions or events, and the event that set each field.

Leaves out the choice of the events (`history`, `blame`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from cerata.engine.json_value import exact
from cerata.engine.late import loading
from cerata.engine.unreadable import frame_place, readable

from ..snapshot.reader import Reader
from ..snapshot.snapshot import Snapshot
from ..values.frames import Frame, Hit, Receipt, frame_id

if TYPE_CHECKING:
    from ..values.facts import Entity, EntityInfo, Fact
    from ..values.graph import Link
    from .blame import Blame
    from .history import HistoryEntry
    from .things import AnyThing


class HistoryReads(Reader):
    """The reads of versions, events and fields of a thing."""

    @overload
    def of(self, thing: Frame | Hit) -> list[Frame]: ...

    @overload
    def of(self, thing: Fact | Link | Entity | EntityInfo | str) -> list[HistoryEntry]: ...

    @overload
    def of(self, thing: int | Receipt) -> list[Any]: ...

    def of(self, thing: AnyThing) -> list[Any]:
        """Return every version of a frame, or every event that touched another thing; in order.

        - A frame has its earlier and later versions, each a `Frame`. One frame may supersede
          several, so a history may branch.
        - A fact, entity or link has a `HistoryEntry` for each event: assertions, repeats,
          corrections, retractions, links, merges and splits. A fact has also the events of the
          facts that it corrects and that correct it, an entity those of the facts about it.

        Args:
            thing: The id of a frame, fact or link, or a value that has the id; an `Entity`, or the
                exact name of an entity.

        Raises:
            NotFound: nothing with this id or name exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        thing = exact(thing)
        if isinstance(thing, int | Receipt | Frame | Hit):
            number = frame_id(thing, snapshot.ids)
            if snapshot.layers.has(number):
                return _versions(snapshot, number)
        with loading("the part that lists events of a thing"):
            from .history import history_of
            from .things import thing_of

        return history_of(snapshot, thing_of(snapshot, thing))

    def blame(self, thing: AnyThing) -> Blame:
        """Return the event that gave each field of a thing its present value.

        A field that a new version or a correction carried over has the event that first set it.

        Args:
            thing: The id of a frame, fact or link, or a value that has the id; an `Entity`, or the
                exact name of an entity.

        Raises:
            NotFound: nothing with this id or name exists at this basis within the scope.
        """
        with loading("the part that blames"):
            from .blame import blame_of
            from .things import thing_of

        snapshot = self._snapshot()
        return blame_of(snapshot, thing_of(snapshot, thing))

    # The type of the answer depends on the kind of the thing that an id names.


def _versions(snapshot: Snapshot, number: int) -> list[Frame]:
    reached = {number}
    waiting = [number]
    for version in waiting:
        closing = snapshot.layers.closing_of(version)
        after = [] if closing is None or closing.by is None else [closing.by]
        near = (*snapshot.layers.supersedes_of(version), *after)
        waiting += [neighbour for neighbour in near if neighbour not in reached]
        reached.update(near)
    versions = sorted(snapshot.visible(reached), key=snapshot.layers.moment)
    return [*readable(versions, snapshot.frame_at, frame_place)]
