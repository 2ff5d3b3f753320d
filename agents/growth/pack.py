"""The pack of growth: proposals of an agent, verdicts of people, and the identity they make.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import AT, Arg, Option, Owned, Pack, Role, State, Verb, identifier

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
    verbs=(
        Verb(
            "proposals",
            "agents",
            "list the changes that agents propose, with their gates",
            "cerata.agents.verbs.proposals:run_proposals",
            (Option("--agent NAME", "only the proposals of this agent"), AT),
            ("", "--agent wyatt --at yesterday"),
            page="continuity.md#growth",
        ),
        Verb(
            "judge",
            "agents",
            "approve a proposal of an agent after its gates, reject it, or revoke an approval",
            "cerata.agents.verbs.proposals:run_judge",
            (
                Arg("verdict", "the verdict", choices=("approve", "reject", "revoke")),
                Arg("proposal", "id of the proposal", type=identifier, metavar="ID"),
                Option("--actor NAME", "the person who judges, recorded in the log", required=True),
                Option("--content HASH", "refuse a proposal with another content than this"),
            ),
            (
                "approve 12 --actor anna",
                "reject '#12' --actor anna --json",
                "revoke 12 --actor anna",
            ),
            page="continuity.md#verdicts",
        ),
    ),
    renamed={
        "approve": "agents judge approve",
        "reject": "agents judge reject",
        "revoke": "agents judge revoke",
    },
    resident=(
        "cerata.agents.growth.gates",
        "cerata.agents.growth.proposal_values",
        "cerata.agents.growth.rules",
        "cerata.agents.growth.verdicts",
    ),
)
