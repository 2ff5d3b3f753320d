"""Output: for people on a terminal, plain in a pipe, one JSON object, or one per item."""

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

from .pager import paged

_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
"""Stored text must not steer the terminal; line ends and tabs pass."""
del _CONTROLS[ord("\n")], _CONTROLS[ord("\t")]

_TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Bidirectional controls, which change the order of visible characters."""
_BIDIRECTIONAL = re.compile(f"[{_TURNING}]")
_ESCAPED = re.compile(f"[\x7f-\x9f{_TURNING}]")


def visible(text: str) -> str:
    r"""Return a text without characters that steer a terminal.

    Control characters become a mark each, bidirectional controls their code.

    >>> visible("pay \u202eeve\x1b[2J").replace("\u2039", "<").replace("\u203a", ">")
    'pay <U+202E>eve�[2J'
    """
    return _BIDIRECTIONAL.sub(_named, text.translate(_CONTROLS))


def _named(match: re.Match[str]) -> str:
    return f"\u2039U+{ord(match[0]):04X}\u203a"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _plain(text: Text, *, is_terminal: bool) -> Text:
    """Return a styled text without control characters; it keeps its styles.

    Bidirectional controls become visible on a terminal, and stay elsewhere.
    """
    plain = text.copy()
    plain.plain = text.plain.translate(_CONTROLS)
    if not is_terminal or _BIDIRECTIONAL.search(plain.plain) is None:
        return plain
    ends = [at for match in _BIDIRECTIONAL.finditer(plain.plain) for at in match.span()]
    clean = Text(style=plain.style)
    for piece in plain.divide(ends):
        part = Text(visible(piece.plain))
        for span in piece.spans:
            # To the end: a control's name is longer than the control.
            part.stylize(span.style, span.start, span.end if span.end < len(piece) else None)
        clean.append_text(part)
    return clean


class _Terminal(Console):
    """A console that leaves a closed pipe to `main`; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Output:
    """The output of a verb.

    With ``as_json`` only `result` reaches standard output, as one object; with ``as_lines`` only
    the items of its list, one object on a line each.
    """

    def __init__(self, *, as_json: bool, as_lines: bool = False, pages: bool = False) -> None:
        self.as_json = as_json or as_lines
        self._as_lines = as_lines
        self._pages = pages and not self.as_json
        self._answered = False
        self._pending: list[Callable[[], None]] | None = None
        self._console = _Terminal(highlight=False, soft_wrap=True)
        # None: standard output was closed before the start.
        self._is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def width(self) -> int:
        """Columns of the terminal; in a pipe $COLUMNS or 80."""
        return max(40, shutil.get_terminal_size().columns)

    def line(self, text: str | Text = "", *, style: str | None = None) -> None:
        """Print a line for people."""
        if not self.as_json:
            clean = self._clean(text)
            self._print(lambda: self._console.print(clean, style=style, markup=False))

    def _clean(self, text: str | Text) -> Text:
        plain = Text(text) if isinstance(text, str) else text
        return _plain(plain, is_terminal=self._is_terminal)

    def _print(self, print_it: Callable[[], None]) -> None:
        """Print now, or after the progress bar, which would overwrite the text."""
        if self._pending is None:
            print_it()
        else:
            self._pending.append(print_it)

    def row(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """Print parts as one line that fits the terminal, with spaces for line ends."""
        line = Text.assemble(" " * indent, *parts)
        line.plain = line.plain.translate(_ONE_LINE)
        # Before the cut: a control that is made visible takes more room.
        line = self._clean(line)
        line.truncate(self.width, overflow="ellipsis")
        line.rstrip()
        self.line(line)

    def paragraph(self, text: Text, *, indent: int, lines: int) -> None:
        """Print a text in at most ``lines`` lines, broken between words."""
        if self.as_json:
            return
        folded = self._clean(text).wrap(self._console, self.width - indent, no_wrap=False)
        for number, line in enumerate(folded[:lines]):
            line.rstrip()
            if number == lines - 1 and len(folded) > lines:
                line.truncate(self.width - indent - 2)
                line.append(" …", "dim")
            self.line(Text.assemble(" " * indent, line))

    def field(self, label: str, value: str, *, lines: int | None) -> None:
        """Print a value behind its label, further lines aligned; without ``lines`` as one line."""
        head = Text(label, "dim")
        if lines is None:
            self.line(Text.assemble(head, value))
            return
        width = self.width - len(label)
        folded = self._clean(value).wrap(self._console, width, no_wrap=False)
        for number, line in enumerate(folded[:lines]):
            line.rstrip()
            if number == lines - 1 and len(folded) > lines:
                line.truncate(width - 2)
                line.append(" …", "dim")
            self.line(Text.assemble(head if number == 0 else " " * len(label), line))

    def result(self, value: Mapping[str, JsonValue], *, items: str | None = None) -> None:
        """Print the verb's result as JSON, if requested; ``items`` names its list."""
        if not self.as_json:
            return
        self._answered = True
        if not self._as_lines or items is None:
            self.json_text(json.dumps(value, ensure_ascii=False, indent=2))
            return
        rows = value[items]
        assert isinstance(rows, list)
        for item in rows:
            self.json_text(json.dumps(item, ensure_ascii=False))

    def json_text(self, text: str) -> None:
        """Print JSON; on a terminal steering characters are escaped, which keeps the value."""
        print(_ESCAPED.sub(_escaped, text) if self._is_terminal else text)

    def warn(self, text: str) -> None:
        """Print a problem that did not stop the verb."""
        note = Text.assemble(("note: ", "yellow"), visible(text))
        self._print(lambda: self._errors.print(note))

    def error(self, error: CerataError) -> None:
        """Print the fault, its place and the remedy.

        After a result this goes to standard error, since standard output has one object.
        """
        if self.as_json and not self._answered:
            indent = None if self._as_lines else 2
            self.json_text(json.dumps(error.to_dict(), ensure_ascii=False, indent=indent))
            return
        message = visible(str(error))
        self._errors.print(Text.assemble(("error: ", "bold red"), message))

    @contextmanager
    def pages(self) -> Generator[None]:
        """Send output through the user's pager while entered, on a terminal."""
        with paged(wanted=self._pages) as into:
            if into is None:
                yield
                return
            before = self._console
            self._console = self._through(into)
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
        """Show a bar on a terminal during long work; nothing in a pipe.

        Output during the work is printed after it.
        """
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        show = sys.stderr.isatty() and not self.as_json
        bar = Progress(*columns, console=self._errors, transient=True, disable=not show)
        self._pending = [] if show else None
        try:
            with bar as progress:
                yield Steps(progress, progress.add_task(what, total=total))
        finally:
            pending = self._pending or []
            self._pending = None
            for print_it in pending:
                print_it()


_ONE_LINE = {ord("\n"): " ", ord("\t"): " ", ord("\r"): " "}


class Steps:
    """The progress bar of a task."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def done(self, count: int = 1) -> None:
        """Advance the bar."""
        self._progress.advance(self._task, count)

    def stand(self, what: str, at: int, total: int) -> None:
        """Show the progress of one of several passes; each starts from 0."""
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
