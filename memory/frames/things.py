"""Things by any name: a frame, fact or link by its id, an entity by its name.

Owns the look-up of a thing by a caller's value, and the parts that history and blame share.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cerata.engine.errors import NotFound, number_text
from cerata.engine.events import Event
from cerata.projections.facts.entities import Entities, EntityEvents

from ..snapshot.fact_conversion import entity_named
from ..snapshot.snapshot import Snapshot
from ..values.facts import Entity, EntityInfo, Fact, fact_id
from ..values.frames import FrameId, frame_id
from ..values.graph import Link

ThingKind: TypeAlias = Literal["frame", "fact", "entity", "link"]

AnyThing: TypeAlias = FrameId | Fact | Link | Entity | EntityInfo | str
"""A frame, fact or link by its id or a value that has the id; an entity, or its name."""

_REMEDY: Final = "Find ids with frames, facts, links or log."


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing of a view, by its id ``number``; an entity by its ``name``."""

    kind: ThingKind
    number: int = 0
    name: str = ""


def thing_of(snapshot: Snapshot, value: AnyThing) -> Thing:
    """Return a thing by a caller's value.

    Raises:
        NotFound: no thing with this id or name exists at the basis within the scope.
        InvalidInput: the value is no id and no name.
    """
    if isinstance(value, Entity | EntityInfo | str):
        name = value.name if isinstance(value, EntityInfo) else value
        return Thing("entity", name=entity_named(snapshot.facts_at, name).name)
    if isinstance(value, Fact):
        number = fact_id(value)
    else:
        number = value.id if isinstance(value, Link) else frame_id(value, snapshot.ids)
    if snapshot.layers.has(number):
        return Thing("frame", number)
    seq = snapshot.seq_of(number)
    if snapshot.facts_at.row_of(seq) is not None:
        return Thing("fact", number)
    if snapshot.labelling.links.link(seq) is not None:
        return Thing("link", number)
    raise NotFound(
        f"There is no frame, fact or link {number_text(number)}",
        where=f"basis {number_text(snapshot.basis)}",
        remedy=_REMEDY,
    )


def entity_events(snapshot: Snapshot, name: str) -> EntityEvents:
    """Return the events of an entity by its name. Raises `NotFound`."""
    facts = snapshot.facts_at
    keys = Entities(facts).denoted(name)
    if not keys:
        raise NotFound(f"There is no entity {name!r:.80}", remedy="Find names with entities.")
    return EntityEvents(facts, keys[0])


def batch_of(snapshot: Snapshot, event: Event) -> tuple[int, int] | None:
    """Return the first and last seq of an event's batch up to the basis; None for a draft."""
    header = event.header
    # The rest of a batch is after the view.
    last = min(header.last_seq, snapshot.basis)
    return (header.first_seq, last) if event.seq > 0 else None
