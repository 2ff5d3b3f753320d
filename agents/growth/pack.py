"""The pack of growth: proposals of an agent, verdicts of people, and the identity they make.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role, State

_EVENTS: Final = "cerata.agents.growth.events"

PACK: Final = Pack(
    name="growth",
    events={"judge": _EVENTS},
    acts={"judge": "judge"},
    states=(
        State("verdicts", "verdicts/1/664a9b6d04726abc", "cerata.agents.growth.verdicts:Verdicts"),
    ),
    rules=("cerata.agents.growth.rules:JudgeRules",),
    owns=(
        Owned("identity", None, ("identity",), ("identity:",), is_copied=False),
        Owned("the verdicts of people", None, events=("judge",), is_copied=False),
        Owned("proposals", Role.AGENT, ("proposal",), is_memory=False),
        Owned("assessments", Role.AGENT, ("assessment",), is_memory=False),
    ),
    moved="cerata.agents.growth.proposal_values:with_moved_ids",
    functions={"judge": "cerata.agents.judge"},
    resident=(
        "cerata.agents.growth.gates",
        "cerata.agents.growth.proposal_values",
        "cerata.agents.growth.rules",
        "cerata.agents.growth.verdicts",
    ),
)
