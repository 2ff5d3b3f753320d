"""Styled output: colours, widths of characters, wrapped paragraphs and the progress bar, by rich.

Owns every use of rich. Leaves out the choice of the stream and of the form (`output`).
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from .visible_text import BIDIRECTIONAL, CONTROLS, ONE_LINE, Part, visible


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

    def line(self, text: Text, style: str | None) -> None:
        """Print a clean text."""
        self._console.print(text, style=style, markup=False)

    def error(self, *parts: Part) -> None:
        """Print parts as a line on standard error."""
        self._errors.print(Text.assemble(*parts))

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
        folded = self.clean(text).wrap(self._console, width - indent, no_wrap=False)
        for number, line in enumerate(folded[:lines]):
            line.rstrip()
            if number == lines - 1 and len(folded) > lines:
                line.truncate(width - indent - 2)
                line.append(" …", "dim")
            yield Text.assemble(" " * indent, line)

    def field(self, label: str, value: str, width: int, *, lines: int | None) -> Iterator[Text]:
        """Yield a value behind its label, further lines aligned; without ``lines`` as one line."""
        head = Text(label, "dim")
        if lines is None:
            yield Text.assemble(head, value)
            return
        room = width - len(label)
        folded = self.clean(value).wrap(self._console, room, no_wrap=False)
        for number, line in enumerate(folded[:lines]):
            line.rstrip()
            if number == lines - 1 and len(folded) > lines:
                line.truncate(room - 2)
                line.append(" …", "dim")
            yield Text.assemble(head if number == 0 else " " * len(label), line)

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
