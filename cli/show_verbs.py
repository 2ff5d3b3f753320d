"""The parsers of show, frames and timeline."""

from .verb_parser import Adding, add_count, add_filters, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add show, frames and timeline."""
    show = add_verb(
        adding,
        "show",
        "print whole frames",
        "show.run_show",
        lists=True,
        examples=("show 12", "show 12 --at HEAD~1", "show 12 13 --jsonl | jq .metadata"),
    )
    show.add_argument(
        "ids", nargs="+", type=identifier, metavar="ID", help="ids of frames, as in search and log"
    )

    frames = add_verb(
        adding,
        "frames",
        "list current frames, newest first",
        "show.run_frames",
        lists=True,
        examples=("frames --tag decision", "frames -n 1000000 --jsonl | wc -l"),
    )
    add_count(frames)
    frames.add_argument("--chunks", action="store_true", help="include the parts of documents")
    add_filters(frames, closed=True)

    timeline = add_verb(
        adding,
        "timeline",
        "list frames by the time of their content",
        "show.run_timeline",
        lists=True,
        examples=("timeline --since 2026-01-01 --until 2026-02-01", "timeline --by recorded -n 5"),
    )
    add_count(timeline)
    timeline.add_argument(
        "--by", choices=("content", "recorded"), default="content", help="time to sort by (content)"
    )
    timeline.add_argument("--since", metavar="TIME", help="only frames from this time on")
    timeline.add_argument("--until", metavar="TIME", help="only frames before this time")
    timeline.add_argument("--oldest-first", action="store_true", help="print the oldest first")
    timeline.add_argument(
        "--after",
        type=_part_of_place,
        nargs=2,
        metavar=("TIME", "ID"),
        help="continue after a page, as printed at its end",
    )
    add_filters(timeline, closed=True)


def _part_of_place(text: str) -> int:
    return int(text.removeprefix("#"))
