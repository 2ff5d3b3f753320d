"""The events of a fork as drafts: bodies with references that hold in another memory.

Owns the choice of the events and the new references. Leaves out the common point (`forks`) and the
checks of an append.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    Attachment,
    Branch,
    Draft,
    Erased,
    Event,
    EventBody,
    Evidence,
    PutTag,
    RecallContext,
    UnknownBody,
)
from cerata.engine.log import Log
from cerata.projections.columnar.scopes import admits

from .snapshot.snapshot import Snapshot


def drafts_after(snapshot: Snapshot, log: Log, point: int) -> list[Draft]:
    """Return the events after a point as drafts of one batch, within the snapshot's scope.

    Raises:
        InvalidInput: an event has a type that this process does not know, or names an event that
            is left out.
    """
    reach = snapshot.reach
    events = [
        event
        for event in log.read(point + 1, snapshot.basis)
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
                _moved(body, moved),
                scope,
                event.actor,
                event.correlation,
                moved(cause) if is_kept and cause is not None else None,
                tuple(log.attachment(event.seq, each) for each in _attachments(body)),
                reason=event.reason,
            )
        )
    return drafts


def _is_applicable(event: Event, point: int) -> bool:
    body = event.body
    if isinstance(body, UnknownBody):
        raise InvalidInput(
            f"Event {event.seq:,} has the type {body.kind!r}, which this Cerata does not know",
            remedy="Upgrade Cerata, since references in the event must be rewritten.",
        )
    if isinstance(body, PutTag):
        return body.at <= point
    return not isinstance(body, Erased | Branch | RecallContext)


def _moved(body: EventBody, moved: Callable[[int], int]) -> EventBody:
    """Return a body with other references."""
    changes: dict[str, Any] = {}
    for name in body.references:
        value: object = getattr(body, name)
        if isinstance(value, int):
            changes[name] = moved(value)
        elif isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            changes[name] = tuple(_moved_item(item, moved) for item in items)
    return replace(body, **changes) if changes else body


def _moved_item(item: object, moved: Callable[[int], int]) -> object:
    if isinstance(item, Evidence):
        frame = moved(item.frame)
        # A quote is keyed by the salt of its frame, which is another there.
        return replace(item, frame=frame, quote=item.quote if frame == item.frame else None)
    assert isinstance(item, int)
    return moved(item)


def _attachments(value: object) -> Iterator[Attachment]:
    """Yield the attachments that a body names, each once, in the order of its fields."""
    attachments: dict[Attachment, None] = {}
    _find_attachments(value, attachments)
    return iter(attachments)


def _find_attachments(value: object, attachments: dict[Attachment, None]) -> None:
    if isinstance(value, Attachment):
        attachments[value] = None
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _find_attachments(getattr(value, name), attachments)
    elif isinstance(value, tuple | list):
        for item in cast("Sequence[object]", value):
            _find_attachments(item, attachments)
