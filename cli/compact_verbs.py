"""The parsers of compact and maintain."""

from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add compact and maintain."""
    compact = add_verb(
        adding,
        "compact",
        "rewrite the file without dead space, during writes",
        "compact.run_compact",
        examples=(
            "compact --dry-run",
            "compact",
            "compact --horizon HEAD",
            "compact --horizon '90 days ago' --dry-run --json | jq .after",
        ),
    )
    compact.add_argument(
        "--horizon",
        metavar="BASIS",
        help="give up the contents of frames that were deleted or superseded by then",
    )
    compact.add_argument("--dry-run", action="store_true", help="only estimate the gain")
    maintain = add_verb(
        adding,
        "maintain",
        "do the upkeep that is due, for some seconds",
        "compact.run_maintain",
        examples=("maintain", "maintain --budget 0.5"),
    )
    maintain.add_argument(
        "--budget", type=float, default=1.0, metavar="SECONDS", help="time to use (1)"
    )
