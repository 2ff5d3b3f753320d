"""Output: for people on a terminal, plain in a pipe, one JSON object, or one per item.

Leaves out styles (`styled_output`): a command whose answer goes into a pipe does not load them,
unless the answer has characters of another width than a cell.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from cerata.engine.late import loading

from .visible_text import CONTROLS, ONE_LINE, STRIPPED, TURNING, Part, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from rich.progress import Progress, TaskID
    from rich.text import Text

    from cerata.engine.errors import CerataError
    from cerata.engine.events import JsonValue

    from .styled_output import StyledOutput

_ESCAPED = re.compile(f"[\x7f-\x9f{TURNING}]")


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


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
        self._unreadable: list[str] = []
        self._pending: list[Callable[[], None]] | None = None
        self._is_terminal = _is_terminal(sys.stdout)
        self._is_styled = _is_styled(sys.stdout)

    @functools.cached_property
    def _styled(self) -> StyledOutput:
        with loading("rich"):
            from .styled_output import StyledOutput
        return StyledOutput(is_terminal=self._is_terminal)

    @property
    def is_styled(self) -> bool:
        """True if styles are shown: on a terminal, or on request."""
        return self._is_styled

    @property
    def width(self) -> int:
        """Columns of the terminal; in a pipe $COLUMNS or 80."""
        with loading("shutil"):
            import shutil
        return max(40, shutil.get_terminal_size().columns)

    def line(self, text: str | Text = "", *, style: str | None = None, wraps: bool = True) -> None:
        """Print a line for people; a terminal gets it broken between words.

        Without ``wraps`` it stays whole: a text to copy, such as a script.
        """
        if self.as_json:
            return
        # A tab ends at a column, which depends on the width of the characters before it.
        if isinstance(text, str) and not self._is_styled and (text.isascii() or "\t" not in text):
            plain = text.translate(STRIPPED).translate(CONTROLS).expandtabs()
            self._print(lambda: _write(plain, sys.stdout))
        else:
            clean = self._styled.clean(text)
            width = self.width if wraps and self._is_terminal else None
            self._print(lambda: self._styled.line(clean, style, width))

    def parts(self, *parts: Part) -> None:
        """Print parts as a line for people."""
        if self.as_json:
            return
        self.line(self._styled.joined(*parts) if self._is_styled else _text_of(parts))

    def _print(self, print_it: Callable[[], None]) -> None:
        """Print now, or after the progress bar, which would overwrite the text."""
        if self._pending is None:
            print_it()
        else:
            self._pending.append(print_it)

    def row(self, *parts: Part, indent: int = 0) -> None:
        """Print parts as one line that fits the terminal, with spaces for line ends."""
        if self.as_json:
            return
        if self._is_styled:
            self.line(self._styled.row(" " * indent, *parts, width=self.width))
            return
        line = f"{' ' * indent}{_text_of(parts)}".translate(STRIPPED).translate(ONE_LINE)
        self.line(_cut(line.translate(CONTROLS), self.width).rstrip())

    def paragraph(self, text: str | Text, *, indent: int, lines: int) -> None:
        """Print a text in at most ``lines`` lines, broken between words."""
        if self.as_json:
            return
        for line in self._styled.paragraph(text, self.width, indent=indent, lines=lines):
            self.line(line)

    def notice(self, *parts: Part, indent: int = 0, lines: int = 4) -> None:
        """Print parts as a paragraph."""
        if not self.as_json:
            self.paragraph(self._styled.joined(*parts), indent=indent, lines=lines)

    def field(self, label: str, value: str, *, lines: int | None) -> None:
        """Print a value behind its label, further lines aligned; without ``lines`` as one line."""
        if self.as_json:
            return
        for line in self._styled.field(label, value, self.width, lines=lines):
            self.line(line, wraps=False)

    def result(self, value: Mapping[str, JsonValue], *, items: str | None = None) -> None:
        """Print the verb's result as JSON, if requested; ``items`` names its list."""
        if not self.as_json:
            return
        self._answered = True
        if not self._as_lines or items is None:
            if self._unreadable:
                value = {**value, "unreadable": [*self._unreadable]}
            self.json_text(json.dumps(value, ensure_ascii=False, indent=2))
            return
        rows = value[items]
        assert isinstance(rows, list)
        for item in rows:
            self.json_text(json.dumps(item, ensure_ascii=False))

    def item(self, item: JsonValue) -> None:
        """Print an item of a list that has no end yet as a line of JSON, if requested, at once."""
        if self._as_lines:
            self._answered = True
            self.json_text(json.dumps(item, ensure_ascii=False))
            sys.stdout.flush()

    def json_text(self, text: str) -> None:
        """Print JSON; on a terminal steering characters are escaped, which keeps the value."""
        print(_ESCAPED.sub(_escaped, text) if self._is_terminal else text)

    def warn_unreadable(self, text: str) -> None:
        """Print an item that a list lacks, once; the JSON object names it, too."""
        if text not in self._unreadable:
            self._unreadable.append(text)
            self.warn(text)

    def warn(self, text: str) -> None:
        """Print a problem that did not stop the verb."""
        self._print(lambda: self._print_error("note: ", "yellow", text))

    def error(self, error: CerataError) -> None:
        """Print the fault, its place and the remedy.

        After a result this goes to standard error, since standard output has one object.
        """
        if self.as_json and not self._answered:
            indent = None if self._as_lines else 2
            self.json_text(json.dumps(error.to_dict(), ensure_ascii=False, indent=indent))
            return
        self._print_error("error: ", "bold red", str(error))

    def _print_error(self, label: str, style: str, text: str) -> None:
        """Print a line on standard error."""
        message = visible(text)
        if _is_styled(sys.stderr) or ("\t" in message and not message.isascii()):
            self._styled.error((label, style), message, wraps=_is_terminal(sys.stderr))
        else:
            _write(f"{label}{message}".expandtabs(), sys.stderr)

    @contextmanager
    def pages(self) -> Generator[None]:
        """Send output through the user's pager while entered, on a terminal."""
        if not (self._pages and self._is_terminal):
            yield
            return
        with loading("the pager"):
            from .styled_output import paged
        with paged() as into:
            if into is None:
                yield
                return
            with self._styled.through(into, self.width):
                yield

    @contextmanager
    def progress(self, what: str, total: int) -> Generator[Steps]:
        """Show a bar on a terminal during long work; nothing in a pipe.

        Output during the work is printed after it.
        """
        if self.as_json or not _is_terminal(sys.stderr):
            yield Steps()
            return
        self._pending = []
        try:
            with self._styled.bar() as progress:
                yield Steps(progress, progress.add_task(what, total=total))
        finally:
            pending = self._pending or []
            self._pending = None
            for print_it in pending:
                print_it()


def _is_terminal(stream: TextIO | None) -> bool:
    # None: the stream was closed before the start.
    return stream is not None and stream.isatty()


def _is_styled(stream: TextIO | None) -> bool:
    """Return whether a stream may show styles: a terminal, or a request in the environment."""
    return _is_terminal(stream) or any(name in os.environ for name in _FORCED)


def _write(line: str, stream: TextIO | None) -> None:
    """Print a line now, so that errors and answers keep their order."""
    if stream is not None:
        stream.write(f"{line}\n")
        stream.flush()


def _cut(line: str, width: int) -> str:
    """Return a line of at most a width in columns of a terminal."""
    # A character takes at most two columns, and of ASCII one.
    if 2 * len(line) <= width or (len(line) <= width and line.isascii()):
        return line
    if line.isascii():
        return f"{line[: width - 1]}…"
    with loading("rich"):
        from rich.cells import cell_len, set_cell_size
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…"


def _text_of(parts: tuple[Part, ...]) -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in parts)


_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables that give a pipe the styles of a terminal."""


class Steps:
    """The progress bar of a task, or none."""

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress = progress
        self._task = task
        self._part: str | None = None

    def done(self, count: int = 1) -> None:
        """Advance the bar."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, count)

    def stand(self, what: str, at: int, total: int) -> None:
        """Show the progress of one of several passes; each starts from 0."""
        if self._progress is not None and self._task is not None:
            if what != self._part:
                # The estimate of the remaining time is that of this pass alone.
                self._part = what
                self._progress.reset(self._task)
            self._progress.update(self._task, description=what, completed=at, total=total)
