"""The parsers of export and import."""

from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add export and import."""
    export = add_verb(
        adding,
        "export",
        "write facts and entities as JSON Lines",
        "import_export.run_export",
        reads=True,
        examples=(
            "export --facts facts.jsonl",
            "export --facts --history --at before-the-move | jq .subject",
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
    export.add_argument(
        "--facts", action="store_true", required=True, help="export facts and entities"
    )
    export.add_argument("--history", action="store_true", help="include retracted facts")

    import_verb = add_verb(
        adding,
        "import",
        "import the lines of an export, each once",
        "import_export.run_import",
        writes=True,
        examples=("import facts.jsonl -f new.cera", "import - < facts.jsonl"),
    )
    import_verb.add_argument(
        "source", metavar="FILE", help="a file from export, or - for standard input"
    )
