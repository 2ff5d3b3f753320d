"""The parser of facts."""

from .verb_parser import Adding, add_count, add_verb


def add_verbs(adding: Adding) -> None:
    """Add facts."""
    facts = add_verb(
        adding,
        "facts",
        "print facts, with the periods when they are true",
        "facts.run_facts",
        lists=True,
        examples=(
            "facts alice",
            "facts alice --predicate 'lives in' --valid-at 2024-01-01",
            "facts --object paris --at HEAD~10",
            "facts alice --evidence",
            "facts --matching 'where does Alice live?'",
            "facts --conflicts",
            "facts alice --ended --retracted --plot alice.svg",
        ),
    )
    facts.add_argument("subject", nargs="?", metavar="SUBJECT", help="an entity's name")
    facts.add_argument("--predicate", metavar="NAME", help="only facts with this predicate")
    facts.add_argument("--object", metavar="VALUE", help="an entity's name, a string or a number")
    facts.add_argument("--valid-at", metavar="TIME", help="only facts true at this time")
    facts.add_argument("--ended", action="store_true", help="include facts that have ended")
    facts.add_argument("--retracted", action="store_true", help="include retracted facts")
    facts.add_argument(
        "--matching", metavar="QUESTION", help="the best facts for a question, best first"
    )
    facts.add_argument(
        "--evidence", action="store_true", help="print the evidence of each fact, too"
    )
    facts.add_argument(
        "--invalid", action="store_true", help="include facts that links make invalid"
    )
    facts.add_argument("--conflicts", action="store_true", help="print contradictions, in pairs")
    facts.add_argument("--plot", metavar="FILE", help="draw the facts, too, as .svg or .png")
    add_count(facts)
