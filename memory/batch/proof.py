"""Proofs: knowledge from a writer's last batch, so that the next batch needs no fold.

Owns the protocol. Leaves out the rules that believe a proof (`reference_rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from cerata.engine.events import Event, EventBody


class Proof(Protocol):
    """That some events exist and are open at event ``n``, in the reach of the session that writes.

    - ``bodies`` are the types of the drafts that a proof may cover; none closes a frame.
    """

    bodies: ClassVar[frozenset[type[EventBody]]]

    @property
    def n(self) -> int: ...

    @property
    def open_events(self) -> frozenset[tuple[str, int]]:
        """The wire name and the seq of each of these events."""
        ...

    @property
    def open_frames(self) -> tuple[int, ...]:
        """The frames among them, all of the session's role."""
        ...

    def check_later(self, delta: Sequence[Event]) -> None:
        """Raise `Conflict` if an event of another writer since ``n`` may have closed one."""
        ...
