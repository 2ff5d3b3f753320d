"""The parser of bisect."""

from .verb_parser import Adding, add_html, add_verb


def add_verbs(adding: Adding) -> None:
    """Add bisect."""
    verb = add_verb(
        adding,
        "bisect",
        "find the first event that changed an answer",
        "bisect.run_bisect",
        examples=(
            "bisect --query 'which index?' --expect Annoy",
            "bisect --query 'who pays?' --forbid anna --good v1 --bad yesterday",
            "bisect --run './check.sh' --good HEAD~100 | tee bisect.log",
            "bisect --run './check.sh' --good HEAD~100 --resume bisect.log",
        ),
    )
    verb.add_argument("--query", metavar="TEXT", help="the memory is good by its answer to this")
    verb.add_argument(
        "--expect", metavar="TEXT", help="with --query: good if the context has this text"
    )
    verb.add_argument(
        "--forbid", metavar="TEXT", help="with --query: good if the context lacks this text"
    )
    verb.add_argument(
        "--run",
        dest="command",
        metavar="COMMAND",
        help="good by the exit code of a shell command: 0 good, 125 skip, other bad; it has "
        "$CERATA_FILE and $CERATA_BASIS",
    )
    verb.add_argument("--good", metavar="BASIS", default="0", help="a good point (0: empty)")
    verb.add_argument("--bad", metavar="BASIS", default="HEAD", help="a later bad point (HEAD)")
    verb.add_argument("--batches", action="store_true", help="test only the ends of batches")
    verb.add_argument(
        "--checks",
        type=int,
        default=0,
        metavar="N",
        help="further tests on each side, to see that the answer changes once (0)",
    )
    verb.add_argument("--resume", metavar="FILE", help="take the verdicts of a printed log over")
    add_html(verb)
