"""The parser: what every verb shares, and errors that say what was probably meant."""

import argparse
import difflib
import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

from cerata.engine.errors import InvalidInput

from .opening import Verb, memories

Adding = Callable[..., "Parser"]
"""What adds a verb's parser: ``add_parser`` of the verbs' action."""

_EPILOG: Final = """\
The file is -f FILE, else $CERATA_FILE, else the one *.cera in this folder.
Exit codes: 0 done, 1 the answer is no, 2 wrong usage; more in docs/errors.md.
"""

_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)


class Parser(ArgumentParser):
    """A parser whose errors are ours: argparse prints them, in one form, and exits."""

    is_verb = False

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(
            self._said(message),
            where="arguments",
            remedy=self._meant(message) + f"'{self.prog} --help' says what can be given.",
        )

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        found: tuple[Namespace, list[str]] = super().parse_known_args(args, namespace)
        # A verb's parser is asked last: what it does not know, nobody does.
        if self.is_verb and found[1]:
            self.error(f"unrecognized arguments: {' '.join(found[1])}")
        return found

    def _said(self, message: str) -> str:
        choice = _CHOICE.match(message)
        if choice is not None:
            name, given, _ = choice.groups()
            what = "verb" if name == "VERB" else f"{name} of the name"
            return f"There is no {what} {given!r}"
        return message[:1].upper() + message[1:]

    def _meant(self, message: str) -> str:
        """Return what was probably meant, with a space after it, or nothing."""
        choice = _CHOICE.match(message)
        if choice is not None:
            names = re.findall(r"[\w-]+", choice[3])
            return _asked(did_you_mean(choice[2], names)) or f"There are {', '.join(names)}. "
        if message.startswith("unrecognized arguments: "):
            given = message.split()[2].partition("=")[0]
            return _asked(did_you_mean(given, self._option_string_actions))
        return ""


def did_you_mean(given: str, names: Iterable[str]) -> str | None:
    """Return the name that is nearest to what was given, if one is near enough.

    >>> did_you_mean("serach", ["recall", "search"])
    'search'
    """
    near = difflib.get_close_matches(given, sorted(set(names) - {given}), n=1, cutoff=0.6)
    return near[0] if near else None


def _asked(name: str | None) -> str:
    return "" if name is None else f"Did you mean {name!r}? "


def add_verb(
    adding: Adding,
    name: str,
    text: str,
    run: Verb,
    *,
    examples: Sequence[str],
    reads: bool = False,
    lists: bool = False,
) -> Parser:
    """Add a verb; ``reads`` gives it ``--at``, ``lists`` also ``--jsonl`` and paging."""
    shown = "".join(f"  cerata {example}\n" for example in examples)
    verb = adding(
        name,
        help=text,
        description=f"{text[:1].upper()}{text[1:]}.",
        epilog=f"examples:\n{shown}\n{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.is_verb = True
    # Before the verb or after it; not given after it, what stood before holds.
    add_common(
        verb,
        file=argparse.SUPPRESS,
        as_json=argparse.SUPPRESS,
        lock_timeout=argparse.SUPPRESS,
        pages=argparse.SUPPRESS,
    )
    if reads or lists:
        verb.add_argument("--at", metavar="BASIS", help="a seq, a tag, HEAD~n, or an ISO time")
    if lists:
        verb.add_argument("--jsonl", action="store_true", help="print one JSON object an item")
    verb.set_defaults(run=run)
    return verb


def add_common(
    one: ArgumentParser,
    *,
    file: str | None,
    as_json: bool | str,
    lock_timeout: float | str,
    pages: bool | str,
) -> None:
    """Add what every verb takes, before its name and after it."""
    shared = one.add_argument_group("options of every verb")
    named = shared.add_argument(
        "-f", "--file", metavar="FILE", default=file, help="the memory's file"
    )
    named.completer = memories  # type: ignore[attr-defined]
    shared.add_argument(
        "--json", action="store_true", default=as_json, help="print one JSON object"
    )
    shared.add_argument(
        "--no-pager", dest="pages", action="store_false", default=pages, help="print at once"
    )
    shared.add_argument(
        "--lock-timeout",
        type=seconds,
        metavar="SECONDS",
        default=lock_timeout,
        help="how long to wait for another writer (30)",
    )


def add_filters(verb: ArgumentParser, *, closed: bool) -> None:
    """Add which frames may come; with ``closed`` also those that are no longer current."""
    verb.add_argument("--tag", action="append", default=[], help="may be given again: all of them")
    verb.add_argument("--kind", help="what structure it has")
    verb.add_argument("--role", help="who speaks")
    if closed:
        verb.add_argument("--superseded", action="store_true", help="superseded frames too")
        verb.add_argument("--deleted", action="store_true", help="deleted frames too")


def add_count(verb: ArgumentParser) -> None:
    """Add how many items come."""
    verb.add_argument("-n", type=int, default=20, metavar="COUNT", help="how many (20)")


def seconds(text: str) -> float:
    """Return a time to wait; argparse names this function where it cannot."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value
