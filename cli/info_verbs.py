"""The parsers of info and head."""

from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add info and head."""
    add_verb(
        adding,
        "info",
        "print the file's sizes by part, head and ledger",
        "info.run_info",
        reads=True,
        examples=("info", "info --at HEAD~5", "info --json | jq .size_bytes"),
    )
    add_verb(
        adding,
        "head",
        "print the head as a text to store elsewhere",
        "info.run_head",
        reads=True,
        examples=("head > brain.head", "head --at before-the-move", "head --json | jq .root"),
    )
