"""The base of the rules that a batch must pass, and the state that they check it against.

Leaves out the rules, and the list of them (`validation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from cerata.engine.events import Draft

from .conditional_draft import ConditionalDraft

if TYPE_CHECKING:
    from cerata.engine.events import Event, EventBody
    from cerata.engine.log import Log
    from cerata.engine.log import Validate as Validate  # noqa: PLC0414 - re-exported
    from cerata.projections.columnar.scopes import Reach
    from cerata.projections.facts.history import Facts
    from cerata.projections.frames.reader import Frames
    from cerata.replay.fold import Fold


@dataclass(frozen=True, slots=True)
class State:
    """The log as if it ended at event ``n``, for a store of a reach; folded when a rule reads."""

    log: Log
    fold: Fold
    reach: Reach | None
    n: int

    def facts(self) -> Facts:
        return self.fold.facts(self.n)

    def frames(self) -> Frames:
        return self.fold.frames(self.n)


def drafts_of(drafts: Sequence[Draft], kinds: tuple[type[EventBody], ...]) -> list[Draft]:
    """Return the drafts with a body of one of the kinds."""
    return [draft for draft in drafts if isinstance(draft.body, kinds)]


def conditional_of(drafts: Sequence[Draft]) -> list[ConditionalDraft]:
    """Return the drafts with conditions."""
    return [draft for draft in drafts if isinstance(draft, ConditionalDraft)]


class Rule(ABC):
    """A rule for the drafts of a batch, which remembers the earlier calls of a transaction."""

    kinds: ClassVar[tuple[type[Draft | EventBody], ...]] = (Draft,)
    """The types of the drafts and bodies that the rule is about; default every draft.

    A call with no such draft or body leaves the rule out: it would take nothing, and change nothing
    that `keep` or `appended` adds."""

    @abstractmethod
    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        """Take the drafts from place ``first`` on; return whether `check` is due.

        Raises:
            InvalidInput: no state makes the drafts valid.
        """

    @abstractmethod
    def check(self, state: State) -> Validate | None:
        """Check the drafts before any lock, and return the check of later events under the lock.

        In a transaction the second check runs at the call, without events. None if no later event
        makes the drafts invalid.
        """

    def is_proven(self, proof: Proof) -> bool:
        """Return whether a proof makes `check` superfluous; the later events are checked by it."""
        del proof
        return False

    def keep(self) -> None:
        """Count the drafts, which passed, among the earlier calls of the transaction."""
        return

    def appended(self) -> None:
        """Note that the drafts are in the log."""
        return


# --- Proofs: knowledge from a writer's last batch, so that the next batch needs no fold -----------


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
