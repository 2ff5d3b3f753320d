"""The values of links: frozen, typed, and plain through ``to_dict()``.

Owns `Link`, its kinds, and the forms in which a caller names a link or its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.plain_value import PlainValue
from cerata.projections.links.columns import LINK_KINDS, LinkKind

from .facts import FactId, Period
from .frames import Frame, Receipt

if TYPE_CHECKING:
    from cerata.engine.events import ScopeValue

KINDS: Final = tuple(LINK_KINDS)
"""The kinds of links."""

LinkKindName: TypeAlias = Literal[
    "assumes",
    "contradicts",
    "depends_on",
    "derived_from",
    "generated_from",
    "invalidates",
    "supersedes",
    "supports",
    "validated_by",
]

Target: TypeAlias = FactId | Frame
"""The target of a link: a fact or a frame, by its id or by a value that has the id."""


@dataclass(frozen=True, slots=True)
class Link(PlainValue):
    """A link as a view sees it: "``fact`` ``kind`` ``target``", both by id.

    ``known`` is the time from its creation to its removal by event ``unlinked_by``.
    """

    id: int
    fact: int
    kind: str
    target: int
    is_frame: bool
    """True if ``target`` is a frame."""
    known: Period
    scope: Mapping[str, ScopeValue]
    unlinked_by: int | None

    def __str__(self) -> str:
        return f"#{self.fact} {self.kind.replace('_', ' ')} #{self.target}"


LinkId: TypeAlias = int | Receipt | Link
"""The forms in which a caller names a link: its id, or a value that has the id."""


def kind_of(kind: str) -> LinkKind:
    """Return a kind of link by its name. Raises `InvalidInput`."""
    link_kind = LINK_KINDS.get(kind) if isinstance(kind, str) else None
    if link_kind is None:
        raise InvalidInput(
            f"The link kind {value_text(kind):.60} is unknown",
            remedy=f"Pass one of {', '.join(KINDS)}.",
        )
    return link_kind
