"""The parser of access."""

from .verb_parser import Adding, add_count, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add access."""
    access = add_verb(
        adding,
        "access",
        "print how often frames were shown and used",
        "access.run_access",
        writes=True,
        lists=True,
        examples=("access", "access 3 8 --at before-the-move", "access 3 8 --record"),
    )
    access.add_argument(
        "ids",
        nargs="*",
        type=identifier,
        metavar="ID",
        help="ids of frames (all shown or used frames)",
    )
    add_count(access)
    access.add_argument(
        "--record", action="store_true", help="record a use of each frame; not with --at"
    )
