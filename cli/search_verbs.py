"""The parsers of recall and search."""

from argparse import ArgumentParser

from .choices import ORDERS, POLICIES, PROFILES
from .verb_parser import Adding, add_embedder, add_filters, add_verb


def add_verbs(adding: Adding) -> None:
    """Add recall and search."""
    _add_recall(adding)
    _add_search(adding)


def _add_recall(adding: Adding) -> None:
    verb = add_verb(
        adding,
        "recall",
        "print a context for a model about a question",
        "search.run_recall",
        writes=True,
        reads=True,
        examples=(
            "recall 'which index did we choose?'",
            "recall deploys --max-tokens 500 --format markdown",
            "recall deploys --format messages | jq '.[0].content'",
            "recall deploys --at 2026-03-01 --tag decision",
            "recall deploys --policy tiered --order time --framing --record",
        ),
    )
    verb.add_argument("query", nargs="+")
    verb.add_argument(
        "--max-tokens",
        type=int,
        default=1500,
        metavar="N",
        help="most tokens of the context (1500)",
    )
    verb.add_argument(
        "--entry-tokens", type=int, default=600, metavar="N", help="most tokens of an entry (600)"
    )
    verb.add_argument(
        "--format",
        choices=("text", "markdown", "json", "messages"),
        default="text",
        help="messages: in the form of chat interfaces (text)",
    )
    verb.add_argument(
        "--policy", metavar="NAME", help=f"length of the entries: {', '.join(POLICIES)}"
    )
    verb.add_argument(
        "--order", choices=ORDERS, default="score", help="time: the earliest first (score)"
    )
    verb.add_argument(
        "--framing",
        action="store_true",
        help="begin with instructions to the model, within the budget",
    )
    verb.add_argument(
        "--record", action="store_true", help="record the context in the log; not with --at"
    )
    verb.add_argument(
        "--neighbours",
        type=int,
        default=0,
        metavar="N",
        help="parts or turns beside each hit to show too (0)",
    )
    verb.add_argument("--superseded", action="store_true", help="include superseded frames")
    verb.add_argument(
        "--no-floor", action="store_true", help="show the closest entries to any question"
    )
    _add_how(verb)
    add_filters(verb, closed=False)


def _add_search(adding: Adding) -> None:
    verb = add_verb(
        adding,
        "search",
        "find frames by their words and meaning",
        "search.run_search",
        lists=True,
        examples=(
            "search harbour bridge",
            "search --full '\"harbour bridge\" AND open*' -k 3",
            "search bridge --explain -k 1",
            "search bridge -k 20 --offset 20 --group",
            "search bridge --jsonl | jq .frame.uri",
        ),
    )
    verb.add_argument("query", nargs="+")
    verb.add_argument("-k", type=int, default=10, help="how many to print (10)")
    verb.add_argument(
        "--min-cosine", type=float, metavar="X", help="only hits with a vector at least this close"
    )
    verb.add_argument("--min-score", type=float, metavar="X", help="only hits with this score")
    verb.add_argument("--offset", type=int, default=0, metavar="N", help="hits to skip (0)")
    verb.add_argument(
        "--group",
        action="store_true",
        help="print the best hit of each document, and name the rest",
    )
    verb.add_argument(
        "--explain", action="store_true", help="explain each score: lanes, words, exclusions"
    )
    _add_how(verb)
    add_filters(verb, closed=True)


def _add_how(verb: ArgumentParser) -> None:
    """Add how the words are read and the lanes are ranked."""
    verb.add_argument(
        "--full", action="store_true", help='use the full language: "a b", inde*, tag:x, OR, NOT'
    )
    verb.add_argument(
        "--when",
        metavar="TIME",
        help="only frames about a time: 2026-03, 'last week'; question: as the question names it",
    )
    verb.add_argument(
        "--profile",
        metavar="NAME",
        help=f"weights of the lanes: {', '.join(PROFILES)}, or a file from tune",
    )
    add_embedder(verb)
