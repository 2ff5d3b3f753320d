"""The events of a fork as drafts: bodies with references that hold in another memory.

Owns the choice of the events. Leaves out the common point (`forks`), the rewriting of a body
(`values.moved_references`) and the checks of an append.
"""

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import (
    Draft,
    Event,
    EventBody,
    UnknownBody,
)
from cerata.engine.log import Log
from cerata.engine.unreadable import whole_events
from cerata.projections.columnar.scopes import admits

from .snapshot.snapshot import Snapshot
from .values.moved_references import attachments_in, moved_body, with_moved_ids


def drafts_after(snapshot: Snapshot, log: Log, point: int) -> list[Draft]:
    """Return the events after a point as drafts of one batch, within the snapshot's scope.

    Raises:
        InvalidInput: an event names an event that is left out.
        Unsupported: this process does not know the type of an event.
    """
    reach = snapshot.reach
    events = [
        event
        for event in whole_events(log, point + 1, snapshot.basis, "The fork's changes")
        if _is_applicable(event, point) and (reach is None or admits(event.scope, reach))
    ]
    places = {event.seq: -number for number, event in enumerate(events, start=1)}

    def moved(seq: int) -> int:
        if seq <= point:
            return seq
        if seq not in places:
            raise InvalidInput(
                f"An event of the fork names event {seq:,}, which would not be appended with it",
                remedy="Open both memories with a scope that has both events, or without a scope.",
            )
        return places[seq]

    drafts: list[Draft] = []
    for event in events:
        body = event.body
        scope = event.scope
        assert isinstance(body, EventBody)
        assert scope is not None
        cause = event.causation
        is_kept = cause is not None and (cause <= point or cause in places)
        drafts.append(
            Draft(
                with_moved_ids(moved_body(body, moved), lambda seq: seq if seq <= point else None),
                scope,
                event.actor,
                event.correlation,
                moved(cause) if is_kept and cause is not None else None,
                tuple(log.attachment(event.seq, each) for each in attachments_in(body)),
                reason=event.reason,
            )
        )
    return drafts


def _is_applicable(event: Event, point: int) -> bool:
    body = event.body
    if isinstance(body, UnknownBody):
        raise Unsupported(
            f"Event {event.seq:,} has the type {body.kind!r}, which no pack of this process "
            "has, so its references cannot be rewritten",
            remedy="Open the store with its pack, open(packs=…), or upgrade Cerata.",
        )
    return isinstance(body, EventBody) and body.is_copied(point)
