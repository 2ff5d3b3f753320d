"""The parser of follow."""

from .verb_parser import Adding, add_verb, identifier, seconds


def add_verbs(adding: Adding) -> None:
    """Add follow."""
    follow = add_verb(
        adding,
        "follow",
        "print events as they are written",
        "follow.run_follow",
        examples=(
            "follow",
            "follow --after 120 --jsonl | jq .body",
            "follow --after 0 --type putFrame --type supersede --timeout 0",
        ),
    )
    follow.add_argument(
        "--after",
        metavar="POSITION",
        help="the last known event: a seq, HEAD~n, a tag, a time, or a head (the newest)",
    )
    follow.add_argument("--jsonl", action="store_true", help="print one JSON object per event")
    follow.add_argument("-n", dest="count", type=int, metavar="COUNT", help="end after this many")
    follow.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="end after this time without an event"
    )
    follow.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="TYPE",
        help="only this type; repeatable",
    )
    follow.add_argument("--actor", metavar="NAME", help="only events that this actor wrote")
    follow.add_argument("--correlation", metavar="ID", help="only events of this request or run")
    follow.add_argument(
        "--causation", type=identifier, metavar="ID", help="only what this event led to"
    )
