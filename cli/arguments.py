"""The verbs and their arguments."""

import argparse
import math
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import cerata
from cerata.engine.errors import InvalidInput

from .history import run_log
from .opening import Verb
from .reads import run_frames, run_recall, run_search, run_show, run_timeline
from .tour import run_tour
from .upkeep import run_info, run_verify, run_welcome
from .writes import run_put, run_remember, run_tag

_Add = Callable[..., ArgumentParser]

_EPILOG: Final = """\
The file is -f FILE, else $CERATA_FILE, else the one *.cera in this folder.
Every verb takes --json. Exit codes: docs/errors.md.
"""


class _Parser(ArgumentParser):
    """A parser whose errors are ours: argparse prints them, in one form, and exits."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(
            message[:1].upper() + message[1:],
            where="arguments",
            remedy=f"'{self.prog} --help' says what can be given.",
        )


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    top = _Parser(
        prog="cerata",
        description="The memory of AI agents, in one file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"cerata {cerata.__version__}")
    top.set_defaults(run=run_welcome)
    _common(top, file=None, as_json=False, lock_timeout=30.0)
    top.set_defaults(jsonl=False)
    adding = top.add_subparsers(title="verbs", metavar="VERB")
    added: _Add = adding.add_parser

    remember = _verb(added, "remember", "remember files: text and Markdown", run_remember)
    remember.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a folder, or - for input"
    )
    remember.add_argument("--tag", action="append", default=[], help="may be given again")

    put = _verb(added, "put", "put one text as it is", run_put)
    put.add_argument("text", nargs="+")
    put.add_argument("--title")
    put.add_argument("--tag", action="append", default=[], help="may be given again")

    tag = _verb(added, "tag", "name a point in time, or list the names", run_tag, lists=True)
    tag.add_argument("name", nargs="?", metavar="NAME", help="starts with a letter")

    search = _verb(added, "search", "find frames by their words", run_search, lists=True)
    search.add_argument("query", nargs="+")
    search.add_argument("-k", type=int, default=10, help="how many (10)")
    _asking(search)
    _filters(search, closed=True)

    recall = _verb(added, "recall", "what to tell a model", run_recall, reads=True)
    recall.add_argument("query", nargs="+")
    recall.add_argument("--max-tokens", type=int, default=1500, help="the budget (1500)")
    _asking(recall)
    _filters(recall, closed=False)

    show = _verb(added, "show", "show frames whole", run_show, lists=True)
    show.add_argument("ids", nargs="+", type=int, metavar="ID", help="as search and log show it")

    frames = _verb(added, "frames", "what there is, newest first", run_frames, lists=True)
    _count(frames)
    frames.add_argument("--chunks", action="store_true", help="the parts of documents too")
    _filters(frames, closed=True)

    timeline = _verb(added, "timeline", "frames by when they are about", run_timeline, lists=True)
    _count(timeline)
    timeline.add_argument(
        "--by", choices=("content", "recorded"), default="content", help="which time (content)"
    )
    timeline.add_argument("--since", metavar="TIME", help="from this time on")
    timeline.add_argument("--until", metavar="TIME", help="before this time")
    timeline.add_argument("--oldest-first", action="store_true")
    timeline.add_argument(
        "--after", type=int, nargs=2, metavar=("TIME", "ID"), help="the next of the page before"
    )
    _filters(timeline, closed=True)

    _count(_verb(added, "log", "what happened, newest first", run_log, lists=True))

    _verb(added, "info", "what is in the file", run_info, reads=True)
    _verb(added, "verify", "recompute every hash and index, and compare", run_verify)

    tour = _verb(added, "tour", "see it work: remember, ask, kill, correct, rebuild", run_tour)
    tour.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="your files, not the docs"
    )
    return top


def _verb(
    added: _Add,
    name: str,
    text: str,
    run: Verb,
    *,
    reads: bool = False,
    lists: bool = False,
) -> ArgumentParser:
    verb = added(name, help=text, description=text.capitalize() + ".", epilog=_EPILOG)
    # Before the verb or after it; not given after it, what stood before holds.
    _common(
        verb,
        file=argparse.SUPPRESS,
        as_json=argparse.SUPPRESS,
        lock_timeout=argparse.SUPPRESS,
    )
    if reads or lists:
        verb.add_argument("--at", metavar="BASIS", help="a seq, a tag, HEAD~n, or an ISO time")
    if lists:
        verb.add_argument("--jsonl", action="store_true", help="print one JSON object an item")
    verb.set_defaults(run=run)
    return verb


def _asking(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--full", action="store_true", help='the full language: "a b", inde*, tag:x, OR, NOT'
    )


def _filters(verb: ArgumentParser, *, closed: bool) -> None:
    verb.add_argument("--tag", action="append", default=[], help="may be given again: all of them")
    verb.add_argument("--kind", help="what structure it has")
    verb.add_argument("--role", help="who speaks")
    if closed:
        verb.add_argument("--superseded", action="store_true", help="superseded frames too")
        verb.add_argument("--deleted", action="store_true", help="deleted frames too")


def _count(verb: ArgumentParser) -> None:
    verb.add_argument("-n", type=int, default=20, metavar="COUNT", help="how many (20)")


def _common(
    one: ArgumentParser, *, file: str | None, as_json: bool | str, lock_timeout: float | str
) -> None:
    one.add_argument("-f", "--file", metavar="FILE", default=file, help="the memory's file")
    one.add_argument("--json", action="store_true", default=as_json, help="print one JSON object")
    one.add_argument(
        "--lock-timeout",
        type=seconds,
        metavar="SECONDS",
        default=lock_timeout,
        help="how long to wait for another writer (30)",
    )


def seconds(text: str) -> float:
    """Return a time to wait; argparse names this function where it cannot."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value
