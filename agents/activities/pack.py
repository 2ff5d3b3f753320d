"""The pack of activities: the sessions and runs of agents, and their calls.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role, State

_EVENTS: Final = "cerata.agents.activities.events"

PACK: Final = Pack(
    name="activities",
    events={"startActivity": _EVENTS, "endActivity": _EVENTS, "recordCall": _EVENTS},
    acts={"startActivity": "start", "endActivity": "end", "recordCall": "call"},
    states=(
        State(
            "activities",
            "activities/2/f580e348b0a2cf4b",
            "cerata.agents.activities.projection:ActivitiesProjection",
            before="vectors",
        ),
    ),
    rules=("cerata.agents.activities.rules:ActivityRules",),
    owns=(
        Owned(
            "recorded runs",
            Role.AGENT,
            ("run",),
            events=("startActivity", "endActivity", "recordCall"),
        ),
    ),
    resident=("cerata.agents.activities.projection", "cerata.agents.activities.rules"),
)
