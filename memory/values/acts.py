"""Acts: the events that put, close, assert or retract a thing, with their actor and reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cerata.engine.instants import to_datetime
from cerata.engine.plain_value import PlainValue
from cerata.retrieval.context.imitation import on_one_line

if TYPE_CHECKING:
    from cerata.engine.events import Event


@dataclass(frozen=True, slots=True)
class Act(PlainValue):
    """An event that made or ended a thing: which, when, by whom and why.

    ``seq`` is −k for the k-th event of an open transaction. ``correlation`` is the id of the
    request or run.
    """

    seq: int
    type: str
    recorded: datetime
    actor: str | None
    reason: str | None
    correlation: str | None

    @property
    def credit(self) -> str:
        """The actor and the reason on one line, such as "by anna (moved)"; empty without both."""
        return credit(self.actor, self.reason)


def act_of(event: Event) -> Act:
    """Return the act that an event records."""
    time = to_datetime(event.recorded)
    return Act(event.seq, event.type, time, event.actor, event.reason, event.correlation)


def credit(actor: str | None, reason: str | None) -> str:
    """Return an actor and a reason on one line; empty without both."""
    by = f"by {on_one_line(actor)}" if actor else ""
    return " ".join(filter(None, (by, f"({on_one_line(reason)})" if reason else "")))
