"""The parsers of log, audit, history, blame and diff."""

from .verb_parser import Adding, Parser, add_count, add_html, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add log, audit, history, blame and diff."""
    _add_log(adding)
    _add_audit(adding)
    _add_history(adding)
    _add_blame(adding)
    _add_diff(adding)


def _add_log(adding: Adding) -> None:
    log = add_verb(
        adding,
        "log",
        "list events, newest first",
        "history.run_log",
        lists=True,
        examples=(
            "log",
            "log --oneline -n 100",
            "log --actor anna --since yesterday",
            "log --at v1 --type putFrame --jsonl | jq .body.text",
        ),
    )
    add_count(log)
    log.add_argument("--oneline", action="store_true", help="print one event per line")
    log.add_argument("--reverse", action="store_true", help="print the oldest of them first")
    _add_selection(log)


def _add_audit(adding: Adding) -> None:
    audit = add_verb(
        adding,
        "audit",
        "report who changed what, when, on whose request",
        "audit.run_audit",
        lists=True,
        examples=(
            "audit --since yesterday",
            "audit --actor anna --json",
            "audit --at v1 --markdown > audit.md",
        ),
    )
    audit.add_argument("--markdown", action="store_true", help="print a page in Markdown")
    add_html(audit)
    _add_selection(audit)


def _add_history(adding: Adding) -> None:
    history = add_verb(
        adding,
        "history",
        "list the versions of a frame, or the events of a fact, entity or link",
        "thing_history.run_history",
        lists=True,
        examples=("history 12", "history anna", "history 12 --jsonl | jq .text"),
    )
    _add_thing(history)


def _add_blame(adding: Adding) -> None:
    blame = add_verb(
        adding,
        "blame",
        "print the event that set each field of a frame, fact, entity or link",
        "thing_history.run_blame",
        reads=True,
        examples=("blame 12", "blame anna", "blame 12 --at v1 --json"),
    )
    _add_thing(blame)


def _add_diff(adding: Adding) -> None:
    diff = add_verb(
        adding,
        "diff",
        "list the changes between two points",
        "history.run_diff",
        examples=(
            "diff HEAD~5",
            "diff 2026-03-01 2026-04-01",
            "diff before-the-move",
            "diff HEAD HEAD --valid-at 2025-01-01 2026-01-01",
            "diff v1 --query 'when does the team meet?'",
            "diff yesterday --html diff.html",
        ),
    )
    diff.add_argument("start", metavar="FROM", help="a seq, a tag, HEAD~n, or a time")
    diff.add_argument(
        "end", metavar="TO", nargs="?", default="HEAD", help="a point, written like FROM (HEAD)"
    )
    diff.add_argument(
        "--valid-at",
        nargs="+",
        metavar="TIME",
        help="only facts true at a time, or at one time for FROM and another for TO",
    )
    diff.add_argument("--query", metavar="TEXT", help="also the results that changed rank")
    diff.add_argument("-k", type=int, default=10, help="how many results to compare (10)")
    add_html(diff)


def _add_thing(verb: Parser) -> None:
    """Add the thing that a verb prints."""
    verb.add_argument(
        "id", metavar="ID", help="id of a frame, fact or link, or the name of an entity"
    )
    verb.add_argument("--entity", action="store_true", help="ID is a name, also if it is a number")


def _add_selection(verb: Parser) -> None:
    """Add the options that select events."""
    verb.add_argument("--type", metavar="TYPE", help="only events of this type, such as putFrame")
    verb.add_argument("--actor", metavar="NAME", help="only events that this actor wrote")
    verb.add_argument("--correlation", metavar="ID", help="only events of this request or run")
    verb.add_argument(
        "--causation", type=identifier, metavar="ID", help="only what this event led to"
    )
    verb.add_argument("--since", metavar="TIME", help="only events recorded from then on")
    verb.add_argument("--until", metavar="TIME", help="only events recorded before then")
