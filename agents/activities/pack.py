"""The pack of activities: the sessions and runs of agents, and their calls.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import AT, Arg, Option, Owned, Pack, Role, State, Verb

_EVENTS: Final = "cerata.agents.activities.events"

_RUN: Final = "id of a run, or #SEQ of its start"

PACK: Final = Pack(
    name="activities",
    docs=("agents.md",),
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
    verbs=(
        Verb(
            "runs",
            "agents",
            "list the recorded runs of agents, or the calls of a run, or execute a run again",
            "cerata.agents.verbs.runs:run_runs",
            (
                Arg("named", _RUN, "?", metavar="RUN"),
                Arg(
                    "function",
                    "with --again: the function to import, also from this folder; its code runs",
                    "?",
                    metavar="MODULE:FUNCTION",
                ),
                Option("--agent NAME", "only the runs of this agent"),
                Option(
                    "--again", "execute the run again, with its calls answered from the recording"
                ),
                Option(
                    "--live FILE",
                    "with --again: go on at the first difference, in a new fork of the memory",
                ),
                AT,
            ),
            (
                "",
                "r-17",
                "--agent analyst --at yesterday",
                "r-17 analyst:analyse --again",
                "r-17 analyst:analyse --again --live fork.cera",
            ),
            page="agents.md",
        ),
        Verb(
            "refs",
            "agents",
            "list the results of a run, by reference, or print one",
            "cerata.agents.verbs.runs:run_refs",
            (
                Arg("named", _RUN, metavar="RUN"),
                Arg("ref", "a reference; quote it, since it begins with $", "?", metavar="REF"),
                Option("--agent NAME", "the agent; not needed if the file has one"),
                AT,
            ),
            (
                "r-17",
                "r-17 --at 40",
                "r-17 '$ref:market.fetch.1'",
                "r-17 '$ref:market.fetch.1#/AAPL/0'",
            ),
            page="working-memory.md#references",
        ),
    ),
    renamed={"ref": "agents refs", "rerun run": "agents runs --again"},
    resident=("cerata.agents.activities.projection", "cerata.agents.activities.rules"),
)
