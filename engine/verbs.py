"""Verbs of the command line as data: a verb's group, arguments and examples, and its additions.

Example: ``Verb("tour", "admin", "demonstrate", "cerata.cli.tour:run_tour", (Arg("paths", "files",
"*"),))``.

Owns the data, and the arguments that verbs of several rooms share. Leaves out the parser
(`cerata.cli.parser`). Loads nothing: `packs` reads the verbs of packs with each start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .late import loading

Completer = Callable[..., list[str]]
"""A function that returns the words of a shell's completion, from the prefix as first argument."""

Converter = Callable[[str], Any]
"""A function that converts the text of an argument; it raises `ValueError` for a wrong one."""

Choices = Sequence[str] | Callable[[], Sequence[str]]
"""The only valid values of an argument, or a function that returns these."""

EVERYDAY: Final = "everyday"
"""The group of the verbs that are called without their group."""


class Arg(NamedTuple):
    """An argument without a dash.

    - ``times`` is "?", "*" or "+" as in regular expressions; without it the argument is needed.
    - ``type`` converts a text; a function of another module is named as ``module:name``.
    """

    name: str
    help: str
    times: str | None = None
    metavar: str | None = None
    type: Converter | str = str
    choices: Choices | None = None
    default: Any = None
    completer: Completer | str | None = None


class Option(NamedTuple):
    """An option; it takes a value if ``text`` names one, or if it has ``choices``.

    - ``text`` has the names and the values in capitals, such as ``-v --verbose``, ``--at BASIS``.
    - ``help`` may have ``{choices}``, where the choices are listed.
    - ``type`` converts a text; a function of another module is named as ``module:name``.
    - ``dest`` is the name of its value, by default that of the option.
    - ``repeats``: its values become a list. ``times`` is "+" for several values of one use.
    - Options with the same ``either`` exclude each other; if ``required``, one of them is needed.
    """

    text: str
    help: str
    type: Converter | str = str
    choices: Choices | None = None
    default: Any = None
    completer: Completer | str | None = None
    repeats: bool = False
    times: str | None = None
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

    @property
    def place(self) -> str:
        """The name of its value among the parsed options."""
        return self.dest or self.names[-1].lstrip("-").replace("-", "_")


class Verb(NamedTuple):
    """A verb of the command line.

    - ``run`` is a function ``(options, output)`` that returns the exit code, as ``module:name``.
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


class Addition(NamedTuple):
    """Options of a pack for a verb of the command line.

    Example: a pack of plots adds ``--plot FILE`` to ``facts list``. With that option its function
    runs in place of the verb's.

    - ``verb`` has the words of the verb.
    - ``run`` is a function as a verb has it. It runs if the first of ``options`` is passed; the
      rest of them then has a meaning, and else each is an error.
    - ``summary`` follows that of the verb.
    """

    verb: str
    run: str
    options: tuple[Option, ...]
    examples: tuple[str, ...] = ()
    summary: str = ""


def identifier(text: str) -> int:
    """Return the id of a frame, fact or link, written ``12`` or, as in every output, ``#12``."""
    digits = text.removeprefix("#")
    if not (digits.isascii() and digits.isdecimal()):
        with loading("argparse"):
            from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"an id is a number such as 12 or '#12', not {text!r}")
    return int(digits)


def seconds(text: str) -> float:
    """Return a time to wait; argparse names this function in its errors."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


AT: Final = Option(
    "--at BASIS", "the state at a seq, a tag, HEAD~n, or a time: 2026-03-01, yesterday"
)
LISTS: Final = (AT, Option("--jsonl", "print one JSON object per item"))
ACTOR: Final = Option("--actor NAME", "the writer, recorded in the log ($CERATA_ACTOR)")
EMBEDDER: Final = Option(
    "--embedder NAME", "a built-in embedder, such as minilm (the one that the file remembers)"
)
