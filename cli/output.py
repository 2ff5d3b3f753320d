"""Output: for people on a terminal, plain in a pipe, one JSON object, or one an item."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from cerata.engine.errors import CerataError
from cerata.engine.events import JsonValue

from .paging import paged

_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
"""Stored text must not steer the terminal that shows it; line ends and tabs are let through."""
del _CONTROLS[ord("\n")], _CONTROLS[ord("\t")]

_TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Bidirectional controls: with them a text shows its characters in another order."""
_BIDIRECTIONAL = re.compile(f"[{_TURNING}]")
_ESCAPED = re.compile(f"[\x7f-\x9f{_TURNING}]")


def visible(text: str) -> str:
    r"""Return a text that cannot steer the terminal that shows it.

    Control characters become one mark each, bidirectional controls their code.

    >>> visible("pay \u202eeve\x1b[2J").replace("\u2039", "<").replace("\u203a", ">")
    'pay <U+202E>eve�[2J'
    """
    return _BIDIRECTIONAL.sub(_named, text.translate(_CONTROLS))


def _named(found: re.Match[str]) -> str:
    return f"\u2039U+{ord(found[0]):04X}\u203a"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _plain(text: Text, *, is_terminal: bool) -> Text:
    """Return a styled text without control characters; it keeps its styles.

    Bidirectional controls are shown on a terminal, and stay elsewhere.
    """
    plain = text.copy()
    plain.plain = text.plain.translate(_CONTROLS)
    if not is_terminal or _BIDIRECTIONAL.search(plain.plain) is None:
        return plain
    ends = [at for found in _BIDIRECTIONAL.finditer(plain.plain) for at in found.span()]
    shown = Text(style=plain.style)
    for piece in plain.divide(ends):
        part = Text(visible(piece.plain))
        for span in piece.spans:
            # To the end: a control's name is longer than the control.
            part.stylize(span.style, span.start, span.end if span.end < len(piece) else None)
        shown.append_text(part)
    return shown


class _Terminal(Console):
    """A console that leaves a closed pipe to `main`, where rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Output:
    """Where a verb says what it did.

    With ``as_json`` only `result` reaches standard output, as one object; with ``as_lines`` only
    the items of its list, one object on a line each.
    """

    def __init__(self, *, as_json: bool, as_lines: bool = False, pages: bool = False) -> None:
        self.as_json = as_json or as_lines
        self._as_lines = as_lines
        self._pages = pages and not self.as_json
        self._answered = False
        self._held: list[Callable[[], None]] | None = None
        self._console = _Terminal(highlight=False, soft_wrap=True)
        # None: standard output was closed before us.
        self._is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def width(self) -> int:
        """Columns of the terminal; in a pipe $COLUMNS or 80."""
        return max(40, shutil.get_terminal_size().columns)

    def line(self, text: str | Text = "", *, style: str | None = None) -> None:
        """Print a line for people."""
        if not self.as_json:
            shown = self._shown(text)
            self._print(lambda: self._console.print(shown, style=style, markup=False))

    def _shown(self, text: str | Text) -> Text:
        plain = Text(text) if isinstance(text, str) else text
        return _plain(plain, is_terminal=self._is_terminal)

    def _print(self, print_it: Callable[[], None]) -> None:
        """Print now, or once the bar is gone that would be written over."""
        if self._held is None:
            print_it()
        else:
            self._held.append(print_it)

    def row(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """Print parts as one line that the terminal holds: line ends become spaces, the rest …."""
        line = Text.assemble(" " * indent, *parts)
        line.plain = line.plain.translate(_ONE_LINE)
        # Before it is cut: a character that is made visible takes more room.
        line = self._shown(line)
        line.truncate(self.width, overflow="ellipsis")
        line.rstrip()
        self.line(line)

    def paragraph(self, text: Text, *, indent: int, lines: int) -> None:
        """Print a text in at most so many lines, broken between words."""
        if self.as_json:
            return
        folded = self._shown(text).wrap(self._console, self.width - indent, no_wrap=False)
        for number, line in enumerate(folded[:lines]):
            line.rstrip()
            if number == lines - 1 and len(folded) > lines:
                line.truncate(self.width - indent - 2)
                line.append(" …", "dim")
            self.line(Text.assemble(" " * indent, line))

    def field(self, label: str, value: str, *, lines: int | None) -> None:
        """Print a value behind its label, its further lines below its first; None: in one line."""
        head = Text(label, "dim")
        if lines is None:
            self.line(Text.assemble(head, value))
            return
        width = self.width - len(label)
        folded = self._shown(value).wrap(self._console, width, no_wrap=False)
        for number, line in enumerate(folded[:lines]):
            line.rstrip()
            if number == lines - 1 and len(folded) > lines:
                line.truncate(width - 2)
                line.append(" …", "dim")
            self.line(Text.assemble(head if number == 0 else " " * len(label), line))

    def result(self, value: Mapping[str, JsonValue], *, items: str | None = None) -> None:
        """Print the verb's result as JSON, if that was asked for; ``items`` names its list."""
        if not self.as_json:
            return
        self._answered = True
        if not self._as_lines or items is None:
            self.json_text(json.dumps(value, ensure_ascii=False, indent=2))
            return
        found = value[items]
        assert isinstance(found, list)
        for item in found:
            self.json_text(json.dumps(item, ensure_ascii=False))

    def json_text(self, text: str) -> None:
        """Print JSON; on a terminal what could steer it is escaped, and the value is the same."""
        print(_ESCAPED.sub(_escaped, text) if self._is_terminal else text)

    def warn(self, text: str) -> None:
        """Say something that went wrong and did not stop the verb."""
        said = Text.assemble(("note: ", "yellow"), visible(text))
        self._print(lambda: self._errors.print(said))

    def error(self, error: CerataError) -> None:
        """Say what is wrong, where, and what to do.

        After a result it goes to standard error, for there is one object on standard output.
        """
        if self.as_json and not self._answered:
            indent = None if self._as_lines else 2
            self.json_text(json.dumps(error.to_dict(), ensure_ascii=False, indent=indent))
            return
        said = visible(str(error))
        self._errors.print(Text.assemble(("error: ", "bold red"), said))

    @contextmanager
    def pages(self) -> Generator[None]:
        """Send what is printed meanwhile through the user's pager, on a terminal."""
        with paged(wanted=self._pages) as into:
            if into is None:
                yield
                return
            before, self._console = self._console, self._through(into)
            try:
                yield
            finally:
                self._console = before

    def _through(self, into: IO[str]) -> _Terminal:
        colours = self._console.color_system
        return _Terminal(
            file=into,
            highlight=False,
            soft_wrap=True,
            force_terminal=colours is not None,
            no_color=self._console.no_color,
            width=self.width,
        )

    @contextmanager
    def progress(self, what: str, total: int) -> Generator["Steps"]:
        """Show a bar on a terminal while long work runs; nothing in a pipe.

        What is printed meanwhile comes after it.
        """
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        show = sys.stderr.isatty() and not self.as_json
        bar = Progress(*columns, console=self._errors, transient=True, disable=not show)
        self._held = [] if show else None
        try:
            with bar as progress:
                yield Steps(progress, progress.add_task(what, total=total))
        finally:
            held, self._held = self._held or [], None
            for print_it in held:
                print_it()


_ONE_LINE = {ord("\n"): " ", ord("\t"): " ", ord("\r"): " "}


class Steps:
    """The bar of one piece of work."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def done(self, count: int = 1) -> None:
        """Move on."""
        self._progress.advance(self._task, count)

    def stand(self, what: str, at: int, total: int) -> None:
        """Show how far one of several passes has come; each starts anew."""
        self._progress.update(self._task, description=what, completed=at, total=total)


def clipped(text: str, size: int) -> str:
    """Return a text on one line of at most ``size`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1].rstrip() + "…"


def counted(count: int, thing: str) -> str:
    """Return a count for people: ``1 frame``, ``2,000 frames``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def bytes_text(size: int) -> str:
    """Return a size for people: ``1.4 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
