"""Styled output: colours, widths of characters, paragraphs, the progress bar, and the pager.

Owns every use of rich. Leaves out the choice of the stream and of the form (`output`). The pager is
$CERATA_PAGER, else $PAGER, else less, with options to show colours, to quit at once if the text
fits on one screen, and not to clear the screen. An empty value or ``cat`` means no pager.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from .visible_text import BIDIRECTIONAL, CONTROLS, ONE_LINE, visible

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import IO

    from .visible_text import Part


def pager_command() -> list[str]:
    """Return the pager and its arguments; empty without a pager."""
    import shlex
    import shutil

    setting = os.environ.get("CERATA_PAGER", os.environ.get("PAGER", "less"))
    try:
        command = shlex.split(setting)
    except ValueError:
        return []
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return []
    return command


@contextmanager
def paged() -> Generator[IO[str] | None]:
    """Yield the pager's input; None without a pager. Standard output is a terminal."""
    import signal
    import subprocess

    command = pager_command()
    if not command:
        yield None
        return
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    ) as child:
        assert child.stdin is not None
        try:
            yield child.stdin
        finally:
            # A pager that quit has closed its end; the rest of the text is not needed.
            with suppress(BrokenPipeError):
                child.stdin.close()
            # Leave Ctrl-C to the pager, which restores the terminal when it quits.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                child.wait()
            finally:
                signal.signal(signal.SIGINT, before)


def _plain(text: Text, *, is_terminal: bool) -> Text:
    """Return a styled text without control characters; it keeps its styles.

    Bidirectional controls become visible on a terminal, and stay elsewhere.
    """
    plain = text.copy()
    plain.plain = text.plain.translate(CONTROLS)
    if not is_terminal or BIDIRECTIONAL.search(plain.plain) is None:
        return plain
    ends = [at for match in BIDIRECTIONAL.finditer(plain.plain) for at in match.span()]
    clean = Text(style=plain.style)
    for piece in plain.divide(ends):
        part = Text(visible(piece.plain))
        for span in piece.spans:
            # To the end: a control's name is longer than the control.
            part.stylize(span.style, span.start, span.end if span.end < len(piece) else None)
        clean.append_text(part)
    return clean


_WORD = re.compile(r"(\S+)\s*")

_HANG = 2
"""Columns by which the further lines of an indented line are indented more."""


def _room(text: Text, width: int, indent: int) -> int:
    """Return the columns beside an indent: more if a word of the text would not fit there."""
    sizes = (cell_len(word) for word in text.plain.split())
    longest = max((size for size in sizes if size <= width), default=0)
    return max(longest, width - indent, 1)


def _breaks(text: str, room: int) -> list[int]:
    """Return the places where lines of a text start, after the first line.

    A word that is longer than a line stays whole, so that it is copied whole from a terminal.
    """
    starts: list[int] = []
    column = 0
    for word in _WORD.finditer(text):
        if column and column + cell_len(word[1]) > room:
            starts.append(word.start())
            column = 0
        column += cell_len(word[0])
    return starts


def _elided(line: Text, room: int) -> Text:
    """Return the last line of a cut text: whole words, and a mark."""
    if cell_len(line.plain) > room - 2:
        line.truncate(room - 2)
        whole, blank, _ = line.plain.rpartition(" ")
        if blank and whole.strip():
            line.right_crop(len(line) - len(whole))
        line.rstrip()
    return line.append(" …", "dim")


class _Terminal(Console):
    """A console that leaves a closed pipe to `main`; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class StyledOutput:
    """Prints styled lines on standard output and standard error."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._console = _Terminal(highlight=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)

    @staticmethod
    def joined(*parts: Part) -> Text:
        """Return parts as one text."""
        return Text.assemble(*parts)

    def clean(self, text: str | Text) -> Text:
        """Return a text without characters that steer a terminal."""
        plain = Text(text) if isinstance(text, str) else text
        return _plain(plain, is_terminal=self._is_terminal)

    def line(self, text: Text, style: str | None, width: int | None = None) -> None:
        """Print a clean text; with a width, broken between words."""
        for line in (text,) if width is None else self._broken(text, width):
            self._console.print(line, style=style, markup=False)

    def error(self, *parts: Part, wraps: bool) -> None:
        """Print parts as a line on standard error, or as lines that fit the terminal."""
        text = Text.assemble(*parts)
        for line in self._broken(text, self._errors.width) if wraps else (text,):
            self._errors.print(line)

    @staticmethod
    def _broken(text: Text, width: int) -> Iterator[Text]:
        """Yield the lines of a text; a line that is longer than a width becomes several.

        These are broken between words, never inside a word.
        """
        for line in text.split("\n", allow_blank=True):
            line.expand_tabs(8)
            if cell_len(line.plain) <= width:
                yield line
                continue
            indent = len(line) - len(line.plain.lstrip(" "))
            hang = indent + _HANG if indent else 0
            room = _room(line, width, hang)
            margin = min(width - room, indent), width - room
            body = line[indent:]
            for number, part in enumerate(body.divide(_breaks(body.plain, room))):
                part.rstrip()
                yield Text.assemble(" " * margin[number > 0], part)

    def row(self, *parts: Part, width: int) -> Text:
        """Return parts as one line that fits a width, with spaces for line ends."""
        line = Text.assemble(*parts)
        line.plain = line.plain.translate(ONE_LINE)
        # Before the cut: a control that is made visible takes more room.
        line = self.clean(line)
        line.truncate(width, overflow="ellipsis")
        line.rstrip()
        return line

    def paragraph(self, text: str | Text, width: int, *, indent: int, lines: int) -> Iterator[Text]:
        """Yield a text as at most ``lines`` lines, broken between words."""
        clean = self.clean(text)
        room = _room(clean, width, indent)
        for line in self._folded(clean, room, lines):
            yield Text.assemble(" " * min(width - room, indent), line)

    def _folded(self, text: Text, room: int, lines: int) -> Iterator[Text]:
        folded = text.wrap(self._console, room, no_wrap=False)
        for number, line in enumerate(folded[:lines], 1):
            line.rstrip()
            yield _elided(line, room) if number == lines < len(folded) else line

    def field(self, label: str, value: str, width: int, *, lines: int | None) -> Iterator[Text]:
        """Yield a value behind its label, further lines aligned; without ``lines`` as one line."""
        head = Text(label, "dim")
        if lines is None:
            yield Text.assemble(head, value)
            return
        clean = self.clean(value)
        room = _room(clean, width, len(label))
        margin = Text(" " * (width - room))
        if len(margin) < len(label):
            yield head
            head = margin
        for line in self._folded(clean, room, lines):
            yield Text.assemble(head, line)
            head = margin

    @contextmanager
    def through(self, into: IO[str], width: int) -> Generator[None]:
        """Print into another stream while entered, with the colours of the terminal."""
        before = self._console
        colours = before.color_system
        self._console = _Terminal(
            file=into,
            highlight=False,
            soft_wrap=True,
            force_terminal=colours is not None,
            no_color=before.no_color,
            width=width,
        )
        try:
            yield
        finally:
            self._console = before

    def bar(self) -> Progress:
        """Return a progress bar on standard error, with the estimated time that remains."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        return Progress(*columns, console=self._errors, transient=True)
