"""Exchanges that surprise Dynamics; a store without the projection loads none of its modules."""

from typing import TYPE_CHECKING

from cerata.engine.errors import NotFound
from cerata.engine.late import late
from cerata.memory.snapshot.snapshot import Snapshot

from ..turns.dynamics import NAME

if TYPE_CHECKING:
    from ..turns.dynamics import projection as dynamics_projection
else:
    dynamics_projection = late("cerata.agents.turns.dynamics.projection")


def surprising_exchanges(snapshot: Snapshot, agent: str) -> frozenset[int]:
    """Return the exchanges of an agent that surprise Dynamics, by their first frames.

    None in a store that was opened without this projection. Cost: its rows.
    """
    if not snapshot.has_state(NAME):
        return frozenset()
    try:
        rows = snapshot.state(dynamics_projection.Dynamics)
    except NotFound:
        # A projection of the user has its name.
        return frozenset()
    return frozenset(exchange for scope, exchange in rows.surprising(agent) if snapshot.sees(scope))
