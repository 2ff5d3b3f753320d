"""The parser of extract."""

from .verb_parser import Adding, add_filters, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add extract."""
    extract = add_verb(
        adding,
        "extract",
        "find facts in the text of frames",
        "extract.run_extract",
        writes=True,
        examples=("extract --dry-run", "extract 12 13", "extract --tag people"),
    )
    extract.add_argument(
        "ids", nargs="*", type=identifier, metavar="ID", help="ids of frames (all current frames)"
    )
    extract.add_argument("--dry-run", action="store_true", help="print the facts; write nothing")
    add_filters(extract, closed=False)
