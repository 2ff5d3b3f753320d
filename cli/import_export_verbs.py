"""The parsers of export and import."""

from .choices import IMPORTERS
from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add export and import."""
    export = add_verb(
        adding,
        "export",
        "write facts or every event as JSON Lines, or an agent's messages by day",
        "import_export.run_export",
        reads=True,
        examples=(
            "export --facts facts.jsonl",
            "export --facts --history --at before-the-move | jq .subject",
            "export --events memory.jsonl.zst",
            "export --archive days --agent wyatt --at 2026-11-26",
        ),
    )
    export.add_argument(
        "to",
        nargs="?",
        metavar="FILE",
        default="-",
        help="a new file, or - for standard output",
    )
    # Required, so that later kinds of exports do not change this command.
    kinds = export.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--facts", action="store_true", help="export facts and entities")
    kinds.add_argument(
        "--events", action="store_true", help="export every event, exact; FILE may end in .zst"
    )
    kinds.add_argument(
        "--archive",
        metavar="DIR",
        help="write a file for each UTC day with messages of an agent, and replace none",
    )
    export.add_argument(
        "--agent", metavar="NAME", help="with --archive: the agent; by default the only one"
    )
    export.add_argument("--history", action="store_true", help="include retracted facts")
    export.add_argument(
        "--from",
        dest="first",
        type=int,
        metavar="SEQ",
        help="with --events: begin with the batch of this event",
    )

    import_verb = add_verb(
        adding,
        "import",
        "import an export, or another memory, each record once",
        "import_export.run_import",
        writes=True,
        examples=(
            "import facts.jsonl -f new.cera",
            "import - < facts.jsonl",
            "import memory.jsonl.zst -f copy.cera",
            "import --from mem0 ~/.mem0/history.db --dry-run",
        ),
    )
    import_verb.add_argument(
        "source", metavar="FILE", help="a file from export, or - for standard input"
    )
    import_verb.add_argument(
        "--from",
        dest="kind",
        choices=IMPORTERS,
        metavar="KIND",
        help=f"FILE is of another memory: {', '.join(IMPORTERS)}",
    )
    import_verb.add_argument(
        "--dry-run", action="store_true", help="with --from: print counts and problems only"
    )
