"""The parser of tour."""

from pathlib import Path

from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add tour."""
    tour = add_verb(
        adding,
        "tour",
        "demonstrate: remember, ask, kill, correct, rebuild",
        "tour.run_tour",
        scoped=False,
        examples=("tour", "tour ~/notes --json | jq .holds"),
    )
    tour.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="your files (Cerata's documentation)"
    )
