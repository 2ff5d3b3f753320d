"""The parser: options of every verb, and errors with the nearest valid name.

Leaves out what a verb does. No module of parsers loads the engine, so help, errors of usage and
completion answer at once; tests/cli/test_startup.py counts the modules.
"""

import argparse
import difflib
import math
import re
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from cerata.engine.errors import InvalidInput

Adding = Callable[..., "Parser"]
"""The function that adds a verb's parser: ``add_parser`` from argparse."""

_EPILOG: Final = """\
The file is -f FILE, else $CERATA_FILE, else the only *.cera in this folder.
Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 to 22 other errors.
"""

_MEANT: Final = {
    **dict.fromkeys(("forget", "remove", "rm", "hide"), ("delete", "retract")),
    **dict.fromkeys(("erase", "purge", "prune", "vacuum"), ("delete", "compact")),
    **dict.fromkeys(("undelete", "undo"), ("restore",)),
    **dict.fromkeys(("add", "save", "store", "note"), ("put", "remember")),
    **dict.fromkeys(("list", "ls"), ("frames", "facts")),
    **dict.fromkeys(("get", "cat", "read"), ("show",)),
    **dict.fromkeys(("find", "query", "ask"), ("recall", "search")),
    **dict.fromkeys(("edit", "replace"), ("supersede", "update")),
    "assert_fact": ("assert",),
    "changes": ("diff", "log"),
    "status": ("info",),
    "check": ("verify", "doctor"),
}
"""Names of other programs and of the tools of MCP, and the verbs that do their work.

The nearest spelling of "forget" is "correct".
"""

_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)


class Help(argparse.RawDescriptionHelpFormatter):
    """A help that keeps its lines; a narrow terminal gets them broken between words."""

    def format_help(self) -> str:
        # Argparse leaves two columns free.
        lines = (_broken(line, self._width + 2) for line in super().format_help().splitlines())
        return "".join(f"{line}\n" for parts in lines for line in parts)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def _broken(line: str, width: int) -> list[str]:
    """Return the parts of a line that fit a width; no word is broken."""
    indent = len(line) - len(line.lstrip())
    longest = max(map(len, line.split()), default=0)
    margin = max(0, min(indent and indent + 2, width - longest))
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * margin,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


class Parser(ArgumentParser):
    """A parser that raises Cerata's errors; argparse would print them and exit."""

    is_verb = False

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(
            self._fault(message),
            remedy=self._suggestion(message) + f"Run '{self.prog} --help'.",
        )

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        parsed: tuple[Namespace, list[str]] = super().parse_known_args(args, namespace)
        # A verb's parser runs last: no other parser knows its remaining arguments.
        if self.is_verb and parsed[1]:
            self.error(f"unrecognized arguments: {' '.join(parsed[1])}")
        return parsed

    def _fault(self, message: str) -> str:
        choice = _CHOICE.match(message)
        if choice is not None:
            name, value, _ = choice.groups()
            kind = "verb" if name == "VERB" else name
            return f"There is no {kind} {value!r}"
        return message[:1].upper() + message[1:]

    def _suggestion(self, message: str) -> str:
        """Return the likely name, or all valid names, with a space after it; or an empty text."""
        choice = _CHOICE.match(message)
        if choice is not None:
            names = re.findall(r"[\w-]+", choice[3])
            meant = _MEANT.get(choice[2], ()) if choice[1] == "VERB" else ()
            if meant:
                return f"Did you mean {' or '.join(map(repr, meant))}? "
            return _question(did_you_mean(choice[2], names)) or f"Use one of {', '.join(names)}. "
        if message.startswith("unrecognized arguments: "):
            option = message.split()[2].partition("=")[0]
            return _question(did_you_mean(option, self._option_string_actions))
        return ""


def did_you_mean(given: str, names: Iterable[str]) -> str | None:
    """Return the nearest name to a given text, if any is near enough; dashes in front do not count.

    >>> did_you_mean("serach", ["recall", "search"])
    'search'
    """
    bare = {name.lstrip("-"): name for name in names if name != given}
    near = difflib.get_close_matches(given.lstrip("-"), sorted(bare), n=1, cutoff=0.65)
    return bare[near[0]] if near else None


def _question(name: str | None) -> str:
    return "" if name is None else f"Did you mean {name!r}? "


def add_verb(
    adding: Adding,
    name: str,
    text: str,
    run: str,
    *,
    examples: Sequence[str],
    reads: bool = False,
    lists: bool = False,
    scoped: bool = True,
    writes: bool = False,
    reasons: bool = False,
) -> Parser:
    """Add a verb; ``reads`` gives it ``--at``, ``lists`` also ``--jsonl`` and paging.

    ``writes`` gives it ``--actor``, and ``reasons`` also ``--reason``.

    A verb has ``--scope`` unless ``scoped`` is False: such a verb opens no store.

    ``run`` names the function, such as ``search.run_recall``: its module is loaded when the verb
    runs, since it loads the engine.
    """
    commands = "".join(f"  cerata {example}\n" for example in examples)
    verb = adding(
        name,
        help=text,
        description=f"{text[:1].upper()}{text[1:]}.",
        epilog=f"examples:\n{commands}\n{_EPILOG}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    verb.is_verb = True
    # An option may precede the verb or follow it; without it after the verb, the first value holds.
    add_common(
        verb,
        file=argparse.SUPPRESS,
        as_json=argparse.SUPPRESS,
        lock_timeout=argparse.SUPPRESS,
        pages=argparse.SUPPRESS,
        pack=argparse.SUPPRESS,
    )
    if scoped:
        verb.add_argument(
            "--scope",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="read and write only within this scope; repeat for several names",
        )
        verb.add_argument(
            "--shared",
            action="store_true",
            help="with --scope: read what lacks its names, too, but not the tenant",
        )
    if reads or lists:
        verb.add_argument(
            "--at",
            metavar="BASIS",
            help="the state at a seq, a tag, HEAD~n, or a time: 2026-03-01, yesterday",
        )
    if lists:
        verb.add_argument("--jsonl", action="store_true", help="print one JSON object per item")
    if writes or reasons:
        verb.add_argument(
            "--actor", metavar="NAME", help="the writer, recorded in the log ($CERATA_ACTOR)"
        )
    if reasons:
        verb.add_argument("--reason", metavar="TEXT", help="the cause, recorded in the log")
    verb.set_defaults(run=run)
    return verb


def add_common(
    one: ArgumentParser,
    *,
    file: str | None,
    as_json: bool | str,
    lock_timeout: float | str,
    pages: bool | str,
    pack: list[str] | str,
) -> None:
    """Add the options of every verb, before its name and after it."""
    shared = one.add_argument_group("options of every verb")
    file_option = shared.add_argument(
        "-f", "--file", metavar="FILE", default=file, help="the memory's file"
    )
    file_option.completer = memories  # type: ignore[attr-defined]
    shared.add_argument(
        "--json", action="store_true", default=as_json, help="print one JSON object"
    )
    shared.add_argument(
        "--no-pager", dest="pages", action="store_false", default=pages, help="do not use a pager"
    )
    shared.add_argument(
        "--lock-timeout",
        type=seconds,
        metavar="SECONDS",
        default=lock_timeout,
        help="how long to wait for another writer (30)",
    )
    shared.add_argument(
        "--pack",
        action="append",
        metavar="MODULE",
        default=pack,
        help="a pack of yours, imported; repeat for several",
    )


def add_filters(verb: ArgumentParser, *, closed: bool) -> None:
    """Add the filters of frames; with ``closed`` also options for frames that are not current."""
    verb.add_argument(
        "--tag",
        action="append",
        default=[],
        type=some_name,
        help="only frames with this tag; repeat for several",
    )
    verb.add_argument("--kind", type=some_name, help="only frames of this structure")
    verb.add_argument("--role", type=some_name, help="only frames of this speaker")
    verb.add_argument(
        "--absent",
        action="append",
        default=[],
        type=some_name,
        metavar="NAME",
        help="only frames without this name in scope and metadata; repeat for several",
    )
    verb.add_argument(
        "--where",
        metavar="TESTS",
        help="only frames that pass: 'metadata.user.name:anna created:yesterday'",
    )
    if closed:
        verb.add_argument("--superseded", action="store_true", help="include superseded frames")
        verb.add_argument("--deleted", action="store_true", help="include deleted frames")


def add_embedder(verb: ArgumentParser) -> None:
    """Add the embedder of texts and questions."""
    verb.add_argument(
        "--embedder",
        metavar="NAME",
        help="a built-in embedder, such as minilm (the one that the file remembers)",
    )


def add_count(verb: ArgumentParser) -> None:
    """Add the number of items."""
    verb.add_argument("-n", type=int, default=20, metavar="COUNT", help="how many (20)")


def memories(prefix: str, **_: object) -> list[str]:
    """Return the memories in this folder, as arguments for ``--file``."""
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.cera"))]


def add_html(verb: Parser) -> None:
    """Add the file of a page."""
    verb.add_argument(
        "--html", metavar="FILE", help="also write a page of HTML, which needs no other file"
    )


def identifier(text: str) -> int:
    """Return the id of a frame, fact or link, written ``12`` or, as in every output, ``#12``."""
    digits = text.removeprefix("#")
    if not (digits.isascii() and digits.isdecimal()):
        raise argparse.ArgumentTypeError(f"an id is a number such as 12 or '#12', not {text!r}")
    return int(digits)


def some_name(text: str) -> str:
    """Return a name of a filter; an empty one, as of an unset variable, would select by chance."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"a name has a visible character, and {text!r} has none")
    return text


def seconds(text: str) -> float:
    """Return a time to wait; argparse names this function in its errors."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value
