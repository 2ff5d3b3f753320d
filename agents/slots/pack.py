"""The pack of slots: the memory that each agent declares.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import ACTOR, AT, Arg, Option, Owned, Pack, Role, State, Verb

_EVENTS: Final = "cerata.agents.slots.events"

PACK: Final = Pack(
    name="slots",
    docs=("working-memory.md",),
    events={"putSlot": _EVENTS},
    acts={"putSlot": "slot"},
    states=(State("slots", "slots/1/0cb745685e324755", "cerata.agents.slots.rows:Slots"),),
    owns=(Owned("slots", Role.AGENT, ("value",), ("slot:",), ("putSlot",)),),
    verbs=(
        Verb(
            "slots",
            "agents",
            "list the slots of agents, or read, write or declare slots",
            "cerata.agents.verbs.slots:run_slots",
            (
                Arg("slot", "name of a slot, to print its values", "?", metavar="NAME"),
                Arg("key", "key in a map", "?", metavar="KEY"),
                Option(
                    "--agent NAME",
                    "the agent; for the values of a slot not needed if the file has one",
                ),
                Option("--set JSON", "store a value", dest="value"),
                Option("--append JSON", "add an item to a list"),
                Option("--delete KEY", "close a value, by its key or '#ID'"),
                Option("--search QUERY", "print the best hits among the values"),
                Option("--history", "print every value, also closed and expired ones"),
                Option("--declare FILE", "declare the slots of a YAML file; needs --agent"),
                AT,
                ACTOR,
            ),
            (
                "",
                "--agent analyst --at yesterday",
                "--declare memory.yaml --agent analyst",
                "prefs --scope user_id=u1",
                "prefs risk --scope user_id=u1",
                """prefs risk --set '{"level": 3}' --scope user_id=u1""",
                """notes --append '"prefers bonds"' --scope user_id=u1""",
                "notes --history --at yesterday --scope user_id=u1",
            ),
            page="working-memory.md#slots",
        ),
    ),
    renamed={"slot": "agents slots"},
    resident=(_EVENTS,),
)
