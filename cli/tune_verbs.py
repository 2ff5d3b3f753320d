"""The parser of tune."""

from .verb_parser import Adding, add_embedder, add_verb


def add_verbs(adding: Adding) -> None:
    """Add tune."""
    verb = add_verb(
        adding,
        "tune",
        "learn the weights of a profile from judged queries",
        "tune.run_tune",
        reads=True,
        examples=(
            "tune judged.jsonl",
            "tune judged.jsonl --to mine.json",
            "tune --recalls --to mine.json",
        ),
    )
    verb.add_argument(
        "judgements",
        nargs="?",
        metavar="JUDGEMENTS",
        help="queries with their relevant frames as JSON Lines, or - for standard input",
    )
    verb.add_argument(
        "--recalls",
        action="store_true",
        help="learn from recorded recalls whose frames were used later",
    )
    verb.add_argument("--to", metavar="FILE", help="write the profile into a new file if it gains")
    verb.add_argument(
        "--anyway", action="store_true", help="with --to: write the profile without a gain, too"
    )
    verb.add_argument("--name", default="tuned", help="the name of the learned profile (tuned)")
    verb.add_argument(
        "--profile", metavar="NAME", help="the profile in use, by name or file (that of the memory)"
    )
    add_embedder(verb)
