"""The verbs of the command line, by group: those of the kernel, then those of the packs.

Example: ``verb_named("file", "export")`` has the options of the kernel and the additions of packs.

A module of the kernel is imported when its verb is asked for, since help and errors need few. Owns
the packs that ``--pack`` names. Loads no engine without such a pack.
"""

from __future__ import annotations

import os
import re
import sys
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import CerataError, InvalidInput
from cerata.engine.late import loading
from cerata.engine.packs import Addition, Pack, of_packs, packs
from cerata.engine.verbs import EVERYDAY, Arg, Option, Verb

if TYPE_CHECKING:
    from argparse import Namespace

_GROUPS: Final = {
    EVERYDAY: "store, ask, and read",
    "facts": "facts, and the graph that they make",
    "time": "earlier states, and their differences",
    "file": "checks, copies, upkeep and exchange",
    "admin": "servers, demonstrations and tests",
}

_MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    EVERYDAY: {
        "put": "writes",
        "remember": "writes",
        "recall": "search",
        "search": "search",
        "show": "frames",
        "list": "frames",
        "update": "writes",
        "delete": "writes",
        "log": "log",
        "info": "log",
    },
    "facts": {
        **dict.fromkeys(("list", "assert", "retract"), "facts"),
        **dict.fromkeys(("link", "why", "graph", "extract"), "links"),
    },
    "time": {
        **dict.fromkeys(("diff", "history"), "history"),
        **dict.fromkeys(("bisect", "fork"), "points"),
        "tag": "writes",
        "follow": "log",
        "restore": "writes",
        "explain": "explain",
    },
    "file": {
        **dict.fromkeys(("verify", "backup"), "upkeep"),
        **dict.fromkeys(("export", "import"), "exchange"),
        **dict.fromkeys(("maintain", "compact", "doctor"), "upkeep"),
    },
    "admin": {"tour": "tour", "completion": "admin"},
}
"""The verbs of the kernel in each group, in the order of the help, and the module of each."""

_RENAMED: Final[Mapping[str, str]] = {
    "access": "list --by access",
    "audit": "log --who",
    "bench": "python -m benchmarks",
    "blame": "time history --by-field",
    "checkpoint": "file maintain --only checkpoint",
    "correct": "facts assert --instead",
    "embed": "file maintain --only embed",
    "frames": "list",
    "head": "info --head",
    "rebuild": "file maintain --only rebuild",
    "repair": "file doctor --repair",
    "supersede": "update --text",
    "sweep": "file maintain --only sweep",
    "timeline": "list --by content",
    "unlink": "facts link --remove",
    "values": "list --by",
}
"""Names of earlier builds, and their words now; a verb that only got a group is not here."""

MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("forget", "remove", "rm", "hide"), ("delete", "facts retract")),
    **dict.fromkeys(("erase", "purge", "prune", "vacuum"), ("delete", "file compact")),
    **dict.fromkeys(("undelete", "undo"), ("time restore",)),
    **dict.fromkeys(("add", "save", "store", "note"), ("put", "remember")),
    "ls": ("list", "facts list"),
    **dict.fromkeys(("get", "cat", "read"), ("show",)),
    **dict.fromkeys(("find", "query", "ask"), ("recall", "search")),
    **dict.fromkeys(("edit", "replace"), ("update",)),
    "assert_fact": ("facts assert",),
    "changes": ("time diff", "log"),
    "status": ("info",),
    "check": ("file verify", "file doctor"),
}
"""Names of other programs and of the tools of MCP, and the verbs that do their work.

The nearest spelling of "forget" is "correct".
"""


@of_packs
def groups() -> Mapping[str, str]:
    """Return a few words on each group, by its name."""
    return dict(chain(_GROUPS.items(), *(pack.groups.items() for pack in packs())))


@of_packs
def renamed_verbs() -> Mapping[str, str]:
    """Return the words that do the work of a verb of an earlier build, by its name."""
    return ChainMap(*({**pack.renamed} for pack in packs()), {**_RENAMED})


@of_packs
def _of_packs() -> Mapping[tuple[str, str], Verb]:
    return {(verb.group, verb.name): verb for pack in packs() for verb in pack.verbs}


@of_packs
def names_in(group: str) -> tuple[str, ...]:
    """Return the names of the verbs of a group, in the order of the help."""
    return (*_MODULES.get(group, ()), *(name for of, name in _of_packs() if of == group))


@of_packs
def verb_named(group: str, name: str) -> Verb:
    """Return a verb with the additions of packs; the module of a kernel's verb is imported."""
    verb = _of_packs().get((group, name)) or _kernel_verb(group, name)
    additions = additions_of(verb)
    return verb._replace(
        summary="; ".join([verb.summary, *(each.summary for each in additions if each.summary)]),
        arguments=(*verb.arguments, *(option for each in additions for option in each.options)),
        examples=(*verb.examples, *(words for each in additions for words in each.examples)),
    )


def _kernel_verb(group: str, name: str) -> Verb:
    module = import_module(f"{__package__}.{_MODULES[group][name]}")
    verbs: tuple[Verb, ...] = module.VERBS
    return next(verb for verb in verbs if (verb.group, verb.name) == (group, name))


def additions_of(verb: Verb) -> list[Addition]:
    """Return the additions of packs to a verb."""
    return [
        addition for pack in packs() for addition in pack.additions if addition.verb == verb.words
    ]


def verbs_of(group: str) -> list[Verb]:
    """Return the verbs of a group, in the order of the help."""
    return [verb_named(group, name) for name in names_in(group)]


@of_packs
def verb_words() -> list[str]:
    """Return the words that call each verb, such as ``show`` and ``facts list``."""
    return [
        name if group == EVERYDAY else f"{group} {name}"
        for group in groups()
        for name in names_in(group)
    ]


def renamed(name: str) -> list[str]:
    """Return the words for a verb of an earlier build, or for a verb without its group."""
    words = [new for old, new in renamed_verbs().items() if old.partition(" ")[0] == name]
    return words or [words for words in verb_words() if words.partition(" ")[2] == name]


def function_of(options: Namespace) -> str:
    """Return the function of the parsed words, as ``module:name``: the verb's or an addition's.

    Raises:
        InvalidInput: an option of an addition is passed without the first option of the addition.
    """
    verb: Verb | None = options.verb
    run: str = options.run
    for addition in () if verb is None else additions_of(verb):
        first, *rest = addition.options
        if _is_passed(options, first):
            run = addition.run
            continue
        for option in rest:
            if _is_passed(options, option):
                name = option.names[-1]
                raise InvalidInput(
                    f"{name} goes with {first.names[-1]}", remedy=f"Leave out {name}."
                )
    return run


def _is_passed(options: Namespace, option: Option) -> bool:
    value = vars(options)[option.place]
    return value is not False and value not in ([], option.default)


# --- packs of users ------------------------------------------------------------------------------


def add_current_folder() -> None:
    """Let modules be imported from the current folder, after all installed ones.

    The folder may hold files of strangers: none of them takes the place of an installed module.
    """
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)


def packs_named(names: Iterable[str]) -> list[Pack]:
    """Return the packs of ``--pack``: the value `PACK` of each module.

    Raises:
        InvalidInput: a module cannot be imported, or has no pack.
    """
    chosen: list[Pack] = []
    for name in names:
        add_current_folder()
        try:
            with loading(name):
                pack = import_module(name).PACK
        except (MemoryError, CerataError):
            raise
        except (Exception, SystemExit) as error:
            raise InvalidInput(
                f"--pack {name} names no pack: {error}",
                remedy="Name a module that can be imported and has a value PACK.",
            ) from error
        chosen.append(pack)
    return chosen


def add_packs_in(words: Sequence[str]) -> None:
    """Add the packs that a command line names to this process, so that it knows their verbs.

    Raises:
        InvalidInput: a module names no pack, a part of a pack is wrong, or a verb is taken.
    """
    if names := list(_pack_names(words)):
        from cerata.engine.own_packs import add_packs, checked_packs

        checked = checked_packs(packs_named(names))
        for pack in checked:
            if pack not in packs():
                _check(pack, checked)
        add_packs(checked)


def _pack_names(words: Sequence[str]) -> Iterator[str]:
    """Yield the values of ``--pack``, before or after the verb."""
    unread = iter(words)
    for word in unread:
        option, sign, value = word.partition("=")
        if word == "--":
            return
        if option == "--pack":
            name = value if sign else next(unread, "")
            if name:
                yield name


_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,40}")


def _check(pack: Pack, beside: Iterable[Pack]) -> None:
    """Raise `InvalidInput` for a verb, a group or an option that the kernel or a pack has."""
    where = f"pack {pack.name!r:.80}"
    names = {*groups(), *(group for each in beside for group in each.groups)}
    for group in pack.groups:
        if group in _GROUPS or group in names_in(EVERYDAY) or not _NAME.fullmatch(group):
            raise _taken("group", group, where)
    for verb in pack.verbs:
        if verb.name in _MODULES.get(verb.group, ()) or not _NAME.fullmatch(verb.name):
            raise _taken("verb", verb.words, where)
        if verb.group == EVERYDAY and verb.name in names:
            raise _taken("verb", verb.words, where)
        if verb.group not in names:
            raise InvalidInput(
                f"There is no group {verb.group!r:.60}",
                where=where,
                remedy=f"Use one of {', '.join(names)}, or add it to groups.",
            )
        _check_places(verb.arguments, set(_COMMON), verb.words, where)
    for addition in pack.additions:
        _check_addition(addition, where)


def _check_addition(addition: Addition, where: str) -> None:
    if addition.verb not in verb_words() or not addition.options:
        raise InvalidInput(
            f"There is no verb {addition.verb!r:.60} that takes options",
            where=where,
            remedy="Name a verb with its group, such as 'facts list', and at least one option.",
        )
    group, _, name = addition.verb.rpartition(" ")
    verb = verb_named(group or EVERYDAY, name)
    taken = {name for each in verb.arguments if isinstance(each, Option) for name in each.names}
    taken |= {"--file", "--help", "--json", "--lock-timeout", "--no-pager", "--pack", "--scope"}
    taken |= {"--shared", "--version", "-f", "-h"}
    for option in addition.options:
        if reused := sorted(taken.intersection(option.names)):
            raise _taken("option", f"{verb.words} {reused[0]}", where)
    places = {each.place for each in verb.arguments if isinstance(each, Option)}
    places |= {each.name for each in verb.arguments if isinstance(each, Arg)}
    _check_places(addition.options, places | _COMMON, verb.words, where)


_COMMON: Final = frozenset(
    {"file", "json", "lock_timeout", "pack", "pages", "scope", "shared", "verb"}
)
"""The names of values that each verb has."""


def _check_places(
    arguments: Iterable[Arg | Option], taken: Collection[str], words: str, where: str
) -> None:
    """Refuse an option whose value would be stored in place of the value of another option."""
    for argument in arguments:
        if isinstance(argument, Option) and argument.names and argument.place in taken:
            raise InvalidInput(
                f"The value {argument.place!r} of {words} {argument.names[-1]} "
                "is that of another option",
                where=where,
                remedy="Give the option another dest.",
            )


def _taken(kind: str, name: str, where: str) -> InvalidInput:
    return InvalidInput(
        f"The {kind} {name!r:.80} is taken, or is no name",
        where=where,
        remedy="Choose another, of lower-case letters, digits and '-'.",
    )
