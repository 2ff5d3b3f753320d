"""Agents: the agent of a verb, by its name or as the only one of the memory.

Leaves out the agents of slots, which their declarations name (`slots`).
"""

from __future__ import annotations

import difflib

from cerata.agents.activities.reads import activities_at
from cerata.agents.agent import Agent
from cerata.agents.continuity.models import Model
from cerata.agents.growth.proposals import proposals_of
from cerata.agents.messages.reads import messages_at
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import DEFAULT_SCOPE
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.store import Store
from cerata.memory.values.words import clipped


def agent_in(
    store: Store,
    snapshot: Snapshot,
    name: str | None,
    *,
    model: Model | None = None,
    timezone: str = "UTC",
) -> Agent:
    """Return an agent over a store, by default the only one that has messages or activities.

    Args:
        store: The store.
        snapshot: The state in which the agent is looked up.
        name: The name; None for the only agent.
        model: The writer of its answers; default the model that quotes.
        timezone: The IANA name of the zone of printed times.

    Raises:
        NotFound: no agent has the name; the remedy has the nearest.
        InvalidInput: several agents have messages or activities, and none is named.
    """
    snapshot = agent_scope(snapshot)
    if name is not None:
        checked_agent(snapshot, name)
        return Agent(store, name, model=model, timezone=timezone)
    names = _names(snapshot)
    if len(names) > 1:
        raise InvalidInput(
            f"The memory has {len(names):,} agents: {clipped(', '.join(names), 200)}",
            remedy="Pass --agent NAME.",
        )
    if not names:
        raise NotFound(
            "No agent has messages or activities",
            remedy="Record some with Agent.session(), or name another file with -f FILE.",
        )
    return Agent(store, names[0], model=model, timezone=timezone)


def agent_scope(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in the scope of an agent: without a scope, the default tenant's."""
    return snapshot.within(DEFAULT_SCOPE) if snapshot.scope is None else snapshot


def checked_agent(snapshot: Snapshot, name: str) -> None:
    """Raise `NotFound` unless an agent has messages, activities or proposals."""
    names = _names(snapshot)
    if name in names or proposals_of(snapshot, name):
        return
    near = difflib.get_close_matches(name, names, n=1)
    raise NotFound(
        f"There is no agent {name!r:.60}",
        remedy=f"Did you mean {near[0]!r}?" if near else "'cerata sessions' lists their sessions.",
    )


def _names(snapshot: Snapshot) -> list[str]:
    """Return the agents that have messages or activities, by name."""
    acting = {row.agent for row in activities_at(snapshot).all_activities()}
    return sorted(acting | set(messages_at(snapshot.log_only).agents()))
