"""Bodies of events with other references, for a log in which the events have other seqs.

Owns the rewriting, and the attachments that a body names. Leaves out which events are written
again (`cerata.memory.fork_drafts`, and packs).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from cerata.engine.events import Attachment, Erased, EventBody, Evidence
from cerata.engine.packs import packs, target

Moved = Callable[[int], int]
"""Returns the seq of an event in the other log, or −k for the k-th draft of the batch."""


def moved_body(body: EventBody, moved: Moved) -> EventBody:
    """Return a body with other references; tuples keep their order.

    Args:
        body: the body, as read from a log
        moved: the new reference of each seq
    """
    changes: dict[str, Any] = {}
    for name in body.references:
        value: object = getattr(body, name)
        if isinstance(value, int):
            changes[name] = moved(value)
        elif isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            changes[name] = tuple(_moved_item(item, moved) for item in items)
    return replace(body, **changes) if changes else body


def with_moved_ids(body: EventBody, moved: Callable[[int], int | None]) -> EventBody:
    """Return a body with the ids inside its frame moved, by each pack that keeps ids in frames.

    Args:
        body: The body, as read from a log.
        moved: Returns the seq of an event in the other log, or None.
    """
    for pack in packs():
        if pack.moved is not None:
            body = target(pack.moved)(body, moved)
    return body


def _moved_item(item: object, moved: Moved) -> object:
    if isinstance(item, Evidence):
        frame = moved(item.frame)
        # A quote is keyed by the salt of its frame, which is another there.
        return replace(item, frame=frame, quote=item.quote if frame == item.frame else None)
    assert isinstance(item, int)
    return moved(item)


def attachments_in(body: EventBody | Erased) -> Iterator[Attachment]:
    """Yield the attachments that a body names, each once, in the order of its fields."""
    attachments: dict[Attachment, None] = {}
    _find_attachments(body, attachments)
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
