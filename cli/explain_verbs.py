"""The parser of explain."""

from .verb_parser import Adding, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add explain."""
    explain = add_verb(
        adding,
        "explain",
        "print what a recorded recall showed and why, and what it would show today",
        "explain.run_explain",
        reads=True,
        examples=("explain 41", "explain '#41' --at HEAD~3 --json"),
    )
    explain.add_argument(
        "seq", type=identifier, metavar="SEQ", help="seq of the recall: log --type recall"
    )
