"""The parser of fork."""

from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add fork."""
    verb = add_verb(
        adding,
        "fork",
        "continue a memory from a point in a new file",
        "fork.run_fork",
        writes=True,
        examples=(
            "fork try-it.cera",
            "fork before-march.cera --at 2026-03-01",
            "fork --compare try-it.cera",
            "fork --apply try-it.cera --yes",
        ),
    )
    verb.add_argument("to", metavar="NEW", nargs="?", help="path of the new file")
    verb.add_argument("--at", metavar="BASIS", default="HEAD", help="the end of a batch (HEAD)")
    verb.add_argument(
        "--compare", metavar="FORK", help="print the changes on both sides since the common event"
    )
    verb.add_argument(
        "--apply", metavar="FORK", help="print the events of a fork as drafts, one JSON a line"
    )
    verb.add_argument("--yes", action="store_true", help="with --apply: append them, as one batch")
