"""Parsers, help and completion of all verbs, from their data; and errors with the nearest name.

Example: ``parser(["file", "verify"])`` has one verb, and ``parser()`` all verbs, which takes far
longer. Leaves out the table of verbs (`verbs`), and their functions. Loads no engine, so help,
errors of usage and completion answer at once; tests/cli/test_startup.py counts the modules.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from cerata import __version__
from cerata.engine.errors import CerataError, InvalidInput
from cerata.engine.packs import target
from cerata.engine.verbs import EVERYDAY, Arg, Option, Verb, seconds

from .shared_options import SCOPE
from .verbs import (
    MEANT,
    add_packs_in,
    groups,
    names_in,
    renamed,
    renamed_verbs,
    verb_named,
    verb_words,
    verbs_of,
)

_DESCRIPTION: Final = "The memory of AI agents, in one file."
_FILE: Final = "The file is -f FILE, else $CERATA_FILE, else the only *.cera in this folder.\n"
_CODES: Final = "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 to 22 other errors.\n"
_FLAGS: Final = frozenset({"--json", "--no-pager"})
_VALUED: Final = frozenset({"-f", "--file", "--lock-timeout", "--pack"})
"""The options that may precede the verb: without a value, and with one."""

_CHOICE: Final = re.compile(
    r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL
)


# --- parsers -------------------------------------------------------------------------------------


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
        line, width, subsequent_indent=" " * margin, break_long_words=False, break_on_hyphens=False
    ) or [""]


class Parser(ArgumentParser):
    """A parser that raises Cerata's errors; argparse would print them and exit."""

    verb: Verb | None = None

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(
            self._fault(message), remedy=self._suggestion(message) + f"Run '{self.prog} --help'."
        )

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        parsed: tuple[Namespace, list[str]] = super().parse_known_args(args, namespace)
        # A verb's parser runs last: no other parser knows its remaining arguments.
        if self.verb is not None and parsed[1]:
            self.error(f"unrecognized arguments: {' '.join(parsed[1])}")
        return parsed

    def _fault(self, message: str) -> str:
        choice = _CHOICE.match(message)
        if choice is None:
            return message[:1].upper() + message[1:]
        name, value, _ = choice.groups()
        if name != "VERB":
            return f"There is no {name} {value!r}"
        if self.prog == "cerata" and renamed(value):
            return f"The verb {value!r} has a new name"
        return f"There is no verb {value!r}" + self.prog.removeprefix("cerata").replace(" ", " of ")

    def _suggestion(self, message: str) -> str:
        """Return the likely name, or all valid names, with a space after it; or an empty text."""
        choice = _CHOICE.match(message)
        if choice is not None:
            names = re.findall(r"[\w-]+", choice[3])
            if choice[1] == "VERB":
                return self._verbs_for(choice[2], names)
            return _question(did_you_mean(choice[2], names)) or f"Use one of {', '.join(names)}. "
        if message.startswith("unrecognized arguments: "):
            option = message.split()[2].partition("=")[0]
            return _question(did_you_mean(option, self._option_string_actions))
        if message == "the following arguments are required: VERB":
            return f"Use one of {', '.join(names_in(self.prog.partition(' ')[2]))}. "
        return ""

    def _verbs_for(self, name: str, names: Sequence[str]) -> str:
        """Return the verbs that a wrong name may mean, as words of the command line."""
        if self.prog != "cerata":
            # 'cerata facts anna' listed the facts of anna in earlier builds.
            return _question(did_you_mean(name, names)) or f"Use one of {', '.join(names)}. "
        if words := renamed(name):
            commands = (new if new.startswith("python") else f"cerata {new}" for new in words)
            return f"Use {' or '.join(map(repr, commands))}. "
        if name in MEANT:
            return f"Did you mean {' or '.join(map(repr, MEANT[name]))}? "
        last = {words.rpartition(" ")[2]: words for words in reversed(verb_words())}
        near = did_you_mean(name, [*last, *(old for old in renamed_verbs() if " " not in old)])
        if near is None:
            return f"Use one of {', '.join(names)}. "
        return _question(renamed_verbs().get(near, last.get(near, near)))


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


def parser(words: Sequence[str] = ()) -> Parser:
    """Return the parser of a command line: that of its verb, of its group, or of all verbs.

    Args:
        words: the words of the command line; by default none.
    """
    top = Parser(
        prog="cerata",
        description=_DESCRIPTION,
        epilog=_top_epilog(),
        formatter_class=Help,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"cerata {__version__}")
    top.set_defaults(run="cerata.cli.log:run_welcome", verb=None, jsonl=False, scope=[])
    _add_common(top, _COMMON_DEFAULTS)
    verbs = top.add_subparsers(title="everyday verbs", metavar="VERB")
    group, name = _call_of(words)
    for known in groups() if group is None else (group,):
        if known == EVERYDAY:
            _add_verbs(verbs, known, name)
        elif words[:1] not in (["--help"], ["-h"]):
            # The help lists the verbs of groups by name alone.
            _add_group(verbs, known, name)
    return top


def _call_of(words: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the group and the verb of a command line; None for each that is not known yet.

    The version is printed before any verb is read, so any verb will do.
    """
    if "--version" in words[:1]:
        return EVERYDAY, "info"
    plain = list(_verb_words_in(words))
    if plain and plain[0] in names_in(EVERYDAY):
        return EVERYDAY, plain[0]
    if plain and plain[0] in groups() and plain[0] != EVERYDAY:
        name = plain[1] if len(plain) > 1 and plain[1] in names_in(plain[0]) else None
        return plain[0], name
    return None, None


def _verb_words_in(words: Sequence[str]) -> Iterator[str]:
    """Yield the words before the first option that may not precede a verb."""
    unread = iter(words)
    for word in unread:
        if word in _VALUED:
            next(unread, None)
        elif word.startswith("-") and word not in _FLAGS:
            return
        elif not word.startswith("-"):
            yield word


def _add_group(adding: Any, group: str, name: str | None) -> None:
    """Add a group's parser: with a name that of one verb."""
    one: Parser = adding.add_parser(
        group,
        description=f"Verbs of {group}: {groups()[group]}.",
        epilog=f"'cerata {group} VERB --help' has examples.\n{_FILE}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    _add_common(one)
    verbs = one.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_verbs(verbs, group, name)


def _add_verbs(adding: Any, group: str, name: str | None) -> None:
    for verb in verbs_of(group) if name is None else [verb_named(group, name)]:
        _add_verb(adding, verb)


def _top_epilog() -> str:
    rows = (
        f"  {group:<8} {', '.join(names_in(group))}\n" for group in groups() if group != EVERYDAY
    )
    return (
        "more verbs, called with their group, such as 'cerata facts list':\n"
        f"{''.join(rows)}\n{_FILE}"
        "Every verb takes --json, and 'cerata VERB --help' has examples.\n"
        f"Documentation: {Path(__file__).parents[1] / 'docs' / 'index.md'}\n"
    )


def _add_verb(adding: Any, verb: Verb) -> None:
    commands = "".join(
        f"  cerata {verb.words} {example}".rstrip() + "\n" for example in verb.examples
    )
    one: Parser = adding.add_parser(
        verb.name,
        help=_plain(verb.summary),
        description=f"{verb.summary[:1].upper()}{verb.summary[1:]}.",
        epilog=f"examples:\n{commands}\n{_FILE}{_CODES}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    one.verb = verb
    _add_common(one)
    try:
        _add_arguments(one, verb)
    except (argparse.ArgumentError, TypeError, ValueError) as error:
        # A pack of a user has data that argparse refuses, such as an option of two packs.
        raise InvalidInput(
            f"An argument of the verb {verb.words!r} cannot be used: {error}",
            remedy="Change it in the pack that brings it.",
        ) from error
    one.set_defaults(run=verb.run, verb=verb)


def _add_arguments(one: Parser, verb: Verb) -> None:
    groups: dict[str, Any] = {}
    for argument in (*verb.arguments, *(SCOPE if verb.scoped else ())):
        if isinstance(argument, Arg):
            _add_argument(one, argument)
            continue
        place: Any = one
        if argument.either is not None:
            place = groups.get(argument.either)
            if place is None:
                place = one.add_mutually_exclusive_group(required=argument.required)
                groups[argument.either] = place
        _add_option(place, argument)


def _add_argument(one: ArgumentParser, argument: Arg) -> None:
    added = one.add_argument(
        argument.name,
        help=_plain(argument.help),
        nargs=argument.times,
        metavar=argument.metavar,
        type=_function(argument.type) or str,
        choices=_choices(argument),
        default=argument.default,
    )
    added.completer = _function(argument.completer)  # type: ignore[attr-defined]


def _add_option(place: Any, option: Option) -> None:
    choices = _choices(option)
    listed = option.help.replace("{choices}", ", ".join(choices or ()))
    named: dict[str, Any] = {"help": _plain(listed)}
    if option.dest is not None:
        named["dest"] = option.dest
    if not (option.values or choices):
        place.add_argument(*option.names, action="store_true", **named)
        return
    if option.repeats:
        named.update(action="append", default=[])
    else:
        several = len(option.values) if option.values[1:] else option.times
        named.update(default=option.default, nargs=several)
    added = place.add_argument(
        *option.names,
        type=_function(option.type),
        choices=choices,
        metavar=option.values if option.values[1:] else "".join(option.values) or None,
        required=option.required and option.either is None,
        **named,
    )
    added.completer = _function(option.completer)


def _plain(text: str) -> str:
    """Return words that argparse prints as they are: it would replace ``%`` and what follows."""
    return text.replace("%", "%%")


def _choices(argument: Arg | Option) -> Sequence[str] | None:
    return argument.choices() if callable(argument.choices) else argument.choices


def _function(named: Callable[..., Any] | str | None) -> Callable[..., Any] | None:
    """Return a function of a pack, whose module is imported with the first call, or a function."""
    if not isinstance(named, str):
        return named

    def called(*words: Any, **more: Any) -> Any:
        return target(named)(*words, **more)

    # Argparse puts the name into its errors.
    called.__name__ = named.rpartition(":")[2]
    return called


def memories(prefix: str, **_: object) -> list[str]:
    """Return the memories in this folder, as arguments for ``--file``."""
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.cera"))]


_COMMON_DEFAULTS: Final[Mapping[str, Any]] = {
    "file": None,
    "json": False,
    "lock_timeout": 30.0,
    "pages": True,
    "pack": [],
}


def _add_common(one: ArgumentParser, defaults: Mapping[str, Any] | None = None) -> None:
    """Add the options of every verb, before its name and after it.

    Without ``defaults`` an option that is not passed leaves the value of the words before.
    """
    values = defaults or dict.fromkeys(_COMMON_DEFAULTS, argparse.SUPPRESS)
    shared = one.add_argument_group("options of every verb")
    file = shared.add_argument(
        "-f", "--file", metavar="FILE", default=values["file"], help="the memory's file"
    )
    file.completer = memories  # type: ignore[attr-defined]
    shared.add_argument(
        "--json", action="store_true", default=values["json"], help="print one JSON object"
    )
    shared.add_argument(
        "--no-pager",
        dest="pages",
        action="store_false",
        default=values["pages"],
        help="do not use a pager",
    )
    shared.add_argument(
        "--lock-timeout",
        type=seconds,
        metavar="SECONDS",
        default=values["lock_timeout"],
        help="how long to wait for another writer (30)",
    )
    shared.add_argument(
        "--pack",
        action="append",
        metavar="MODULE",
        default=values["pack"],
        help="a pack of yours, imported; repeat for several",
    )


# --- completion ----------------------------------------------------------------------------------


def is_shell_asking() -> bool:
    """Return True if a shell asks for completions; the words are then in its variables."""
    return "_ARGCOMPLETE" in os.environ


def answer_shell() -> None:
    """Print completions and exit: a shell asks for them."""
    # Imported here: only a shell's question needs it.
    import argcomplete
    from argcomplete.completers import FilesCompleter

    with suppress(CerataError):
        # A line that is not complete yet may name a part of a module.
        add_packs_in(os.environ.get("COMP_LINE", "").split())
    argcomplete.autocomplete(parser(), default_completer=FilesCompleter())
