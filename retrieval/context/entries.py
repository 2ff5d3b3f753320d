"""Entries: the parts of a context, and the form of each.

Owns the two forms of a context, the speaker before a text, the marks that keep remembered text from
passing for a source, and the three tiers of a text: whole, by its gist, in one line. Pure: the
written text is counted. Leaves out the choice of entries (`packing`), the turns below a shared
heading (`blocks`), and the choice of sentences (`extracts`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

from cerata.engine.late import late

from ..tables import Table, find_tables, rows_of, table_at
from ..tokenizer import Tokenizer
from .imitation import marked
from .policies import Tier

if TYPE_CHECKING:
    from . import extracts
    from . import extracts as spans
    from .extracts import Marks, Span
else:
    spans = late("cerata.retrieval.context.extracts")
    extracts = late("cerata.retrieval.context.extracts")

_TOKEN_SIZE_MAX: Final = 128
"""Characters of the longest token of the encoding, a run of spaces."""

_SEEN_SIZE: Final = 16
"""Characters that are read for each token around a span: text has about four."""

_SPAN_SHARE: Final = 0.6
"""The best span as a share of the room of a cut entry: the rest goes to the text around it.

Of XQuAD's answers in texts that are cut to 120 to 600 tokens, shares from .5 to .7 keep about as
many in each of five languages; a span of 300 characters keeps 107 in Chinese, .6 keeps 126.
"""

ELLIPSIS: Final = "…"

_ROWS_LEFT_OUT: Final = f"\n| {ELLIPSIS} |"
"""In place of omitted rows of Markdown: a row, so that the excerpt is still a table."""


class Entry(msgspec.Struct, frozen=True):
    """A frame's text and its source.

    A chunk of a document also has ``document``, and in ``start`` the place of its text there:
    neighbours in one context are joined. The first ``header`` characters of its text repeat the
    header of a table, and have no place. ``time`` is the time of the content, in microseconds since
    1970 UTC; ``tier`` is the longest tier that the policy allows. An entry that ``stands_for``
    something other than text, such as bytes, is no duplicate of an equal text. ``speaker`` comes
    before the text, if there is one. Turns of one ``session`` are written together, each run of
    equal ``heading`` below that heading; the heading is the source without the id, its date first.
    ``turn`` is the place in the session: the row of its first version, and its own.
    """

    id: int
    source: str
    text: str
    document: int | None = None
    start: int = 0
    time: int = 0
    tier: Tier = "full"
    stands_for: bool = False
    header: int = 0
    speaker: str = ""
    session: Hashable | None = None
    heading: str = ""
    turn: tuple[int, int] = (0, 0)

    @property
    def body(self) -> str:
        """The text without a repeated header."""
        return self.text[self.header :]

    @property
    def end(self) -> int:
        return self.start + len(self.body)


Form: TypeAlias = Literal["text", "markdown"]
"""How a context is written: each entry below its source in brackets, or quoted below a heading."""

MarksOf: TypeAlias = "Callable[[str], Marks]"
"""Returns the matches in a text; it is called only for a text that is cut."""

_MARKS: Final = re.compile(r"[\\`*_\[\]<]")


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]


FORMS: Final[tuple[Form, ...]] = ("text", "markdown")


def _head(source: str, form: Form) -> str:
    """Return the line of a source."""
    # A name such as __init__.py must not come out bold.
    return f"[{source}]\n" if form == "text" else f"### {_MARKS.sub(_escaped, source)}\n\n"


def _heading(heading: str, form: Form) -> str:
    """Return the line that turns share."""
    # Brackets would take a token more; "[#12" is of an entry alone.
    return f"{heading}:\n" if form == "text" else _head(heading, form)


def _quoted(text: str) -> str:
    """Return a text as a quotation of Markdown, which cannot swallow the entries after it."""
    return "\n".join([f"> {line}".rstrip() for line in text.splitlines()])


_TURN_GAPS: Final[Mapping[Form, str]] = {
    "text": "\n",
    # Without a blank line two quotes are one.
    "markdown": "\n\n",
}


class Written(NamedTuple):
    """A written entry: its lines with their tokens, and the place of the text in the lines.

    A turn of a ``session`` has its heading apart, since turns share it, and ``gap`` is what comes
    between two of them; any other entry has all of itself in ``lines``.
    """

    lines: str
    start: int
    tokens: int
    heading: str = ""
    heading_tokens: int = 0
    session: Hashable | None = None
    gap: str = ""


class _Lead(NamedTuple):
    """The heading of an entry, the name before its text, and the text of both.

    A turn has its id in the name.
    """

    heading: str
    name: str
    text: str
    is_turn: bool = False


def _lead(entry: Entry, form: Form, most: int, counter: Tokenizer) -> _Lead:
    """Return the lead of an entry: the fullest that takes at most half of the tokens."""
    speaker = entry.speaker
    if not speaker:
        heading = f"[{entry.source}]\n" if form == "text" else _head(entry.source, form)
        # No token is shorter than a byte, so a short heading need not be counted.
        if 2 * len(heading.encode()) > most and not _is_short(heading, most, counter):
            heading = _head(f"#{entry.id}", form)
        return _Lead(heading, "", heading)
    # A name may look like a source, too.
    speaker = marked(speaker, headings=True)
    speaker = _MARKS.sub(_escaped, speaker) if form == "markdown" else speaker
    is_turn = entry.session is not None
    heading = _heading(entry.heading, form) if is_turn else _head(entry.source, form)
    name = f"#{entry.id} {speaker}" if is_turn else speaker
    text = f"{heading}{name}: "
    if _is_short(text, most, counter):
        return _Lead(heading, name, text, is_turn)
    heading = _head(f"#{entry.id}", form)
    text = f"{heading}{speaker}: "
    if _is_short(text, most, counter):
        return _Lead(heading, speaker, text)
    return _Lead(heading, "", heading)


def _is_short(text: str, most: int, counter: Tokenizer) -> bool:
    # No token is shorter than a byte, so a short text need not be counted.
    return 2 * len(text.encode()) <= most or 2 * counter.count(text) <= most


class Writing:
    """One entry in at most ``most`` tokens: the line of its source, its speaker, and its text.

    A lead that would take more than half of them is replaced by a shorter one, in the end by the
    id. With ``has_rows`` an excerpt of a table is whole rows below the header. With ``has_turns``
    a line of the text that looks like a turn is marked. ``headings`` keeps the tokens of headings,
    which entries of a context share.
    """

    def __init__(
        self,
        entry: Entry,
        most: int,
        *,
        form: Form,
        counter: Tokenizer,
        headings: dict[str, int],
        has_rows: bool = True,
        has_turns: bool = False,
    ) -> None:
        self.entry = entry
        self.most = most
        self._has_rows = has_rows
        self._has_turns = has_turns
        self._counter = counter
        self._headings = headings
        self._form: Form = form
        self._lead = _lead(entry, form, most, counter)

    def written(self, text: str) -> Written:
        """Return the entry with this text, as a context has it."""
        lead, form = self._lead, self._form
        # Before the form is applied, so that no form can skip the marks.
        body = marked(text, headings=form == "markdown", turns=self._has_turns, dates=lead.is_turn)
        name = lead.name
        if name or form == "markdown":
            name, body = _named(name, body, form)
        lines = name + body
        if not lead.is_turn:
            lines = lead.heading + lines
            start = len(lead.heading) + len(name)
            return Written(lines, start, self._counter.count(lines))
        heading = lead.heading
        heading_tokens = self._headings.get(heading)
        if heading_tokens is None:
            heading_tokens = self._headings[heading] = self._counter.count(heading)
        tokens = self._counter.count(lines)
        session, gap = self.entry.session, _TURN_GAPS[form]
        return Written(lines, len(name), tokens, heading, heading_tokens, session, gap)

    def fitting(self, text: str) -> Written | None:
        """Return the entry with this text if there is room, else None."""
        # A text longer than that many of the longest tokens need not be counted.
        if len(text) > self.most * _TOKEN_SIZE_MAX:
            return None
        written = self.written(text)
        return written if written.heading_tokens + written.tokens <= self.most else None

    def fits(self, text: str) -> bool:
        """Return whether the entry has room for this text."""
        return self.fitting(text) is not None

    def _size(self, text: str) -> int:
        """Return the tokens of the entry with this text."""
        written = self.written(text)
        return written.heading_tokens + written.tokens

    def _tables(self, text: str) -> list[Table]:
        return find_tables(text) if self._has_rows else []

    def gist(self, marks: Marks) -> str:
        """Return the best sentences in their order, with ellipses for those between.

        Sentences are added by worth, up to the first without room.
        """
        text = self.entry.text.strip()
        tables = self._tables(text)
        chosen: list[Span] = []
        gist = ""
        for sentence in extracts.by_worth(text, _near(text, marks, tables), marks, tables):
            tried = sorted([*chosen, sentence])
            piece = _pieced(text, tried, tables)
            if not self.fits(piece):
                break
            chosen = tried
            gist = piece
        return gist or self.line(marks)

    def line(self, marks: Marks) -> str:
        """Return the best sentence, cut around the match if necessary."""
        text = self.entry.text.strip()
        tables = self._tables(text)
        sentence = next(extracts.by_worth(text, _near(text, marks, tables), marks, tables), (0, 0))
        piece = _pieced(text, [sentence], tables)
        if tables and not self.fits(piece):
            # There is no room for the header of the table.
            piece = _pieced(text, [sentence])
        if self.fits(piece):
            return piece
        start, end = sentence
        lead = piece.index(text[start:end]) - start
        inside = [(a + lead, b + lead) for a, b in marks if start <= a and b <= end]
        return self._cut(piece, self._best_span(piece, inside), ())

    def clipped(self, marks: Marks) -> str:
        """Return the text around its best span, as much as fits; in a table, the best rows."""
        text = self.entry.text.strip()
        tables = self._tables(text)
        span = self._best_span(text, marks, tables)
        table = table_at(tables, span[0])
        if table is not None:
            rows = self._best_rows(text, table, marks, span)
            if len(rows) == sum(1 for _ in rows_of(text, table)):
                span = table.start, table.end
            elif rows:
                return _pieced(text, rows, tables)
            elif self.fits(piece := _pieced(text, [span])):
                return piece
        return self._cut(text, span, tables)

    def _best_span(self, text: str, marks: Marks, tables: Sequence[Table] = ()) -> Span:
        """Return the best span of the size for which the entry has room, with some text around."""
        # A token of Thai or Chinese is a character, one of English four.
        sample = text[: self.most * _SEEN_SIZE]
        size = _SPAN_SHARE * self.most * len(sample) / max(self._counter.count(sample), 1)
        return spans.best_span(text, marks, tables, size=max(int(size), 1))

    def _best_rows(self, text: str, table: Table, marks: Marks, best: Span) -> list[Span]:
        """Return the rows of a table that fit below its header: the best, then the nearest."""
        reach = self.most * _SEEN_SIZE
        rows = [
            (rank, span)
            for span, rank in spans.ranked_rows(text, marks, table)
            if abs(span[0] - best[0]) <= reach
        ]
        rows.sort(key=lambda row: (-row[0][0], -row[0][1], abs(row[1][0] - best[0]), row[1]))

        def first_rows(count: int) -> list[Span]:
            return sorted(span for _, span in rows[:count])

        fitting = bisect_left(
            range(1, len(rows) + 1),
            True,
            key=lambda count: not self.fits(_pieced(text, first_rows(count), [table])),
        )
        return first_rows(fitting)

    def _cut(self, text: str, span: Span, tables: Sequence[Table]) -> str:
        most = self.most
        counter = self._counter
        room = most - counter.count(self._lead.text)
        if room <= 0:
            return ""
        start, end = span
        spare = max(0, room - counter.count(text[start:end])) // 2
        # The tokenizer cannot cut backwards from an end: bisect for the beginning.
        low = max(0, start - most * _SEEN_SIZE)
        high = start
        while low < high:
            middle = (low + high) // 2
            if counter.count(text[middle:start]) <= spare:
                high = middle
            else:
                low = middle + 1
        table = table_at(tables, low)
        if table is not None and table.end <= start and low > table.start:
            # Rows without their header mislead.
            low = table.end
        stop = start + most * _SEEN_SIZE
        piece = text[low:stop].lstrip()
        if low:
            # In the line of a header the mark would be a part of it.
            begins = any(text.startswith(piece, table.start) for table in tables)
            piece = ELLIPSIS + ("\n" if begins else "") + piece
        piece = piece.rstrip()
        clipped = piece + (ELLIPSIS if text[stop:].strip() else "")
        size = counter.cut(piece, room)
        over = self._size(clipped) - most
        while over > 0:
            if size <= 0:
                return ""
            # Marks and seams take further tokens, each of at least a character.
            clipped = _ended(piece, size) if tables else piece[:size].rstrip() + ELLIPSIS
            over = self._size(clipped) - most
            size -= max(over, 1)
        return clipped


def _named(name: str, text: str, form: Form) -> tuple[str, str]:
    """Return the name before a text, and the text, in a form.

    A text of several lines begins below the name, since its first line may be that of a table.
    """
    body = text if form == "text" else _quoted(text)
    if not name:
        return "", body
    if len(text.splitlines()) > 1:
        return (f"> {name}:\n>\n" if form == "markdown" else f"{name}:\n"), body
    name = f"> {name}:" if form == "markdown" else f"{name}:"
    return (
        (f"{name} ", body.removeprefix("> ") if form == "markdown" else body)
        if text
        else (
            name,
            "",
        )
    )


def _ended(piece: str, size: int) -> str:
    """Return the longest prefix, up to a size, that cuts no row of a table, and the mark.

    A piece that is only part of a row is cut anywhere. In the line of a row the mark would be a
    part of it, so it comes below the table.
    """
    tables = find_tables(piece)
    table = table_at(tables, size)
    if table is not None:
        ends = [end for _, end in rows_of(piece, table) if end <= size]
        size = (ends[-1] if ends else table.start) or size
    prefix = piece[:size].rstrip()
    table = table_at(tables, len(prefix) - 1)
    line_end = piece[len(prefix) :].partition("\n")[0]
    is_row = table is not None and len(prefix) > table.body and not line_end.strip()
    return prefix + ("\n\n" if is_row else "") + ELLIPSIS


def _near(text: str, marks: Marks, tables: Sequence[Table]) -> list[Span]:
    return extracts.sentences(text, spans.best_span(text, marks, tables)[0], tables)


def _pieced(text: str, spans: Sequence[Span], tables: Sequence[Table] = ()) -> str:
    """Return pieces of a text as one, with an ellipsis for each omitted part.

    Pieces of ``tables`` are whole rows: their header comes before the first.
    """
    pieced = ""
    at = 0
    before: Table | None = None
    for start, end in spans:
        table = table_at(tables, start)
        if table is None or table is not before:
            if before is not None:
                pieced += _rows_between(text, at, before.end, before)
                at = before.end
            begin = start if table is None else table.start
            seam = _seam(text[at:begin], is_first=not pieced, after=before, table=table)
            if seam.endswith(" ") and "|" in text[start:end] and "\n" in text[at:begin]:
                # In the line of another text it would be a row of a table above that text.
                seam = seam.removesuffix(" ") + "\n"
            pieced += seam
            if table is not None:
                pieced += text[table.start : table.body].rstrip()
                at = table.body
        if table is not None:
            pieced += _rows_between(text, at, start, table) + "\n"
        pieced += text[start:end]
        at = end
        before = table
    if before is not None:
        pieced += _rows_between(text, at, before.end, before)
        at = before.end
    seam = " " if before is None else "\n\n"
    return (pieced + (f"{seam}{ELLIPSIS}" if text[at:].strip() else "")).strip()


def _seam(between: str, *, is_first: bool, after: Table | None, table: Table | None) -> str:
    """Return the text in place of ``between``, the characters between two pieces."""
    is_omitted = bool(between.strip())
    if after is None and table is None:
        if is_omitted:
            return f" {ELLIPSIS} "
        return "" if is_first else "\n" if "\n" in between else " "
    # A line after a row would be another row.
    gap = "\n" if after is None else "\n\n"
    return f"{gap}{ELLIPSIS}\n" if is_omitted else gap


def _rows_between(text: str, start: int, end: int, table: Table) -> str:
    """Return the mark of the rows of a table between two places; empty without any."""
    mark = f"\n{ELLIPSIS}" if table.delimiter else _ROWS_LEFT_OUT
    return mark if text[start:end].strip() else ""
