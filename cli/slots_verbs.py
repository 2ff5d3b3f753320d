"""The parsers of slots, slot, refs and ref."""

from .verb_parser import Adding, Parser, add_verb


def add_verbs(adding: Adding) -> None:
    """Add slots, slot, refs and ref."""
    slots = add_verb(
        adding,
        "slots",
        "list the declared slots of agents, or declare slots from a file",
        "slots.run_slots",
        reads=True,
        writes=True,
        examples=("slots", "slots --agent analyst --at yesterday", "slots --declare memory.yaml"),
    )
    _add_agent(slots, "only the slots of this agent; with --declare, the agent that has them")
    slots.add_argument(
        "--declare", metavar="FILE", help="declare the slots of a YAML file; needs --agent"
    )

    slot = add_verb(
        adding,
        "slot",
        "print the values of an agent's slot, or write one",
        "slots.run_slot",
        reads=True,
        writes=True,
        examples=(
            "slot prefs --scope user_id=u1",
            "slot prefs risk --scope user_id=u1",
            """slot prefs risk --set '{"level": 3}' --scope user_id=u1""",
            """slot notes --append '"prefers bonds"' --scope user_id=u1""",
            "slot notes --history --at yesterday --scope user_id=u1",
        ),
    )
    slot.add_argument("slot", metavar="NAME", help="name of the slot")
    slot.add_argument("key", nargs="?", metavar="KEY", help="key in a map")
    _add_agent(slot)
    slot.add_argument("--set", dest="value", metavar="JSON", help="store a value")
    slot.add_argument("--append", metavar="JSON", help="add an item to a list")
    slot.add_argument("--delete", metavar="KEY", help="close a value, by its key or '#ID'")
    slot.add_argument("--search", metavar="QUERY", help="print the best hits among the values")
    slot.add_argument(
        "--history", action="store_true", help="print every value, also closed and expired ones"
    )

    refs = add_verb(
        adding,
        "refs",
        "list the results of a run, by reference",
        "slots.run_refs",
        reads=True,
        examples=("refs r-17", "refs r-17 --at 40"),
    )
    ref = add_verb(
        adding,
        "ref",
        "print the value that a reference of a run names",
        "slots.run_ref",
        reads=True,
        examples=("ref r-17 '$ref:market.fetch.1'", "ref r-17 '$ref:market.fetch.1#/AAPL/0'"),
    )
    for verb in (refs, ref):
        verb.add_argument("named", metavar="RUN", help="id of a run, or #SEQ of its start")
        _add_agent(verb)
    ref.add_argument("ref", metavar="REF", help="the reference; quote it, since it begins with $")


def _add_agent(verb: Parser, text: str = "the agent; not needed if the file has one") -> None:
    verb.add_argument("--agent", metavar="NAME", help=text)
