"""Verbs as data: a verb's group, arguments and examples, and the arguments that many verbs share.

Example: ``Verb("tour", "admin", "demonstrate", "tour:run_tour", (Arg("paths", "files", "*"),))``.

`parser` makes parsers, help and completion from this data, and tools/command_line_page.py makes a
page. Loads no engine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Final

Completer = Callable[..., list[str]]
"""A function that returns the words of a shell's completion, from the prefix as first argument."""


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument without a dash.

    - ``count`` is "?", "*" or "+" as in regular expressions; without it the argument is needed.
    - ``type`` converts a text, and raises `ValueError` or `ArgumentTypeError`.
    - ``choices`` are the only valid values.
    """

    name: str
    help: str
    count: str | None = None
    _: KW_ONLY
    metavar: str | None = None
    type: Callable[[str], Any] = str
    choices: Sequence[str] | None = None
    default: Any = None
    completer: Completer | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """An option; it takes a value if ``text`` names one, or if it has ``choices``.

    - ``text`` has the names and the values in capitals, such as ``-v --verbose``, ``--at BASIS``.
    - ``dest`` is the name of its value, by default that of the option.
    - ``repeats``: its values become a list. ``count`` is "+" for several values of one use.
    - Options with the same ``either`` exclude each other; if ``required``, one of them is needed.
    """

    text: str
    help: str
    _: KW_ONLY
    type: Callable[[str], Any] = str
    choices: Sequence[str] | None = None
    default: Any = None
    completer: Completer | None = None
    repeats: bool = False
    count: str | None = None
    dest: str | None = None
    required: bool = False
    either: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names, with their dashes."""
        return tuple(word for word in self.text.split() if word.startswith("-"))

    @property
    def values(self) -> tuple[str, ...]:
        """The names of its values."""
        return tuple(word for word in self.text.split() if not word.startswith("-"))


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command line.

    - ``run`` is a function ``(options, output)`` that returns the exit code, as ``module:name``;
      its module is one of this room.
    - ``examples`` are arguments: the name of the verb is put before each.
    - ``page`` is the place in docs/ that explains the verb.
    - If ``scoped`` is False, the verb opens no store, and has no ``--scope``.
    """

    name: str
    group: str
    summary: str
    run: str
    arguments: tuple[Arg | Option, ...] = ()
    examples: tuple[str, ...] = ("",)
    page: str = ""
    scoped: bool = True

    @property
    def words(self) -> str:
        """The words that call the verb: those of *everyday* need no group."""
        return self.name if self.group == EVERYDAY else f"{self.group} {self.name}"


EVERYDAY: Final = "everyday"

GROUPS: Final = {
    EVERYDAY: "store, ask, and read",
    "facts": "facts, and the graph that they make",
    "time": "earlier states, and their differences",
    "agents": "runs, slots, conversations and proposals of agents",
    "file": "checks, copies, upkeep and exchange",
    "admin": "servers, demonstrations and tests",
}


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


def memories(prefix: str, **_: object) -> list[str]:
    """Return the memories in this folder, as arguments for ``--file``."""
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.cera"))]


SCOPE: Final = (
    Option(
        "--scope NAME=VALUE",
        "read and write only within this scope; repeat for several names",
        repeats=True,
    ),
    Option("--shared", "with --scope: read what lacks its names, too, but not the tenant"),
)
AT: Final = Option(
    "--at BASIS", "the state at a seq, a tag, HEAD~n, or a time: 2026-03-01, yesterday"
)
LISTS: Final = (AT, Option("--jsonl", "print one JSON object per item"))
ACTOR: Final = Option("--actor NAME", "the writer, recorded in the log ($CERATA_ACTOR)")
REASONS: Final = (ACTOR, Option("--reason TEXT", "the cause, recorded in the log"))
FILTERS: Final = (
    Option(
        "--tag TAG", "only frames with this tag; repeat for several", repeats=True, type=some_name
    ),
    Option("--kind KIND", "only frames of this structure", type=some_name),
    Option("--role ROLE", "only frames of this speaker", type=some_name),
    Option(
        "--absent NAME",
        "only frames without this name in scope and metadata; repeat for several",
        repeats=True,
        type=some_name,
    ),
    Option("--where TESTS", "only frames that pass: 'metadata.user.name:anna created:yesterday'"),
)
SUPERSEDED: Final = Option("--superseded", "include superseded frames")
CLOSED: Final = (SUPERSEDED, Option("--deleted", "include deleted frames"))
"""Options for frames that are not current."""

EMBEDDER: Final = Option(
    "--embedder NAME", "a built-in embedder, such as minilm (the one that the file remembers)"
)
COUNT: Final = Option("-n COUNT", "how many (20)", type=int, default=20)
HTML: Final = Option("--html FILE", "also write a page of HTML, which needs no other file")
EVENTS: Final = (
    Option("--actor NAME", "only events that this actor wrote"),
    Option("--correlation ID", "only events of this request or run"),
    Option("--causation ID", "only what this event led to", type=identifier),
)
"""Options that select events."""
