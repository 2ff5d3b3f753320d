"""Passages: cutting a document into pieces for search and contexts.

Owns the rule. No passage crosses a heading or another border of stretches. A passage takes at most
400 tokens, and ends, in its second half, at the strongest pause: before an unindented line after a
blank line, at a blank line, a line's end, a sentence's, a word's. Each further passage of a stretch
begins with up to 40 tokens of the passage before, so that text around a cut is found whole. Another
`Chunking` has other limits; a store always uses these. Spans give the overlap: passages in order
cover the whole text. A table is cut between rows only; a passage that begins inside a table repeats
the table's header instead of an overlap.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, NamedTuple

from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import exact_fields

from .tables import Table, iter_tables, rows_of
from .tokenizer import Tokenizer, tokenizer

PASSAGE_TOKENS_MAX: Final = 400
OVERLAP_TOKENS_MAX: Final = 40
HEADER_TOKENS_MAX: Final = 200
"""Most tokens of a repeated table header; a longer header is not repeated."""

PARTS_MAX: Final = 131_072
"""Most passages of a document: each becomes a frame, so this limits time and size of an ingest."""

_PIECES_TOGETHER: Final = 4_096
_SPANS_TOGETHER: Final = 256
"""Pieces and passages in a single count of tokens."""

_PIECE_SIZE_MAX: Final = 100
"""Most characters of a piece, cut at a word's end if possible; at most 400 bytes, and tokens."""

_LINE_ENDS: Final = r"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters at which `str.splitlines` ends a line."""

_LINE_END = re.compile(rf"\r\n|[{_LINE_ENDS}]")

_MARKED = re.compile(
    rf"(?:#(?<![^{_LINE_ENDS}]#)#{{0,5}}[ \t]|`(?<![^{_LINE_ENDS} ]`)``|~(?<![^{_LINE_ENDS} ]~)~~)"
    rf"[^{_LINE_ENDS}]*"
)
"""A heading, or a possible code fence: at most three spaces may precede a fence in its line."""

_INDENTED = re.compile(rf"(?<![^{_LINE_ENDS}]) {{1,3}}\Z")

_HEADING = re.compile(r"(#{1,6})[ \t]+")
_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")


_WORD, _SENTENCE, _LINE, _BLANK, _TOP = range(5)
"""The strength of a pause."""

_LINES = re.compile(r"(\n{2,})|[^\n]*\n|[^\n]+")
"""A line, or the ends of a line and of the empty lines after it."""

SENTENCE_END = re.compile(r"[.!?。！？][\"')\]»”’]*[ \t]+|[。！？]")

PASSAGE_TOKENS_LEAST: Final = 20
"""Least tokens of a passage: a piece of 100 characters has about as many."""

PASSAGE_TOKENS_MOST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Chunking:
    """The sizes of passages, in tokens.

    Args:
        passage_tokens: most tokens of a passage, from 20 to 100,000
        overlap_tokens: most tokens that it repeats of the passage before, at most half of it

    Raises:
        InvalidInput: a number is out of range.
    """

    passage_tokens: int = PASSAGE_TOKENS_MAX
    overlap_tokens: int = OVERLAP_TOKENS_MAX

    def __post_init__(self) -> None:
        exact_fields(self, "passage_tokens", "overlap_tokens")
        size = self.passage_tokens
        _check_size("passage_tokens", size, PASSAGE_TOKENS_LEAST, PASSAGE_TOKENS_MOST)
        _check_size("overlap_tokens", self.overlap_tokens, 0, size // 2)

    @property
    def header_tokens(self) -> int:
        """Most tokens of a repeated table header."""
        return min(HEADER_TOKENS_MAX, self.passage_tokens // 2)


def _check_size(name: str, size: object, least: int, most: int) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or not least <= size <= most:
        raise InvalidInput(
            f"{name} must be a whole number from {least:,} to {most:,}, not {size!r:.60}",
            where="a chunking",
            remedy="Pass passage_tokens = 400 and overlap_tokens = 40, for example.",
        )


Stretch = tuple[int, int, tuple[str, ...]]
"""Characters [start, end) that belong together, and the headings above them."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text: characters [start, end), under these headings, outermost first.

    It may overlap the passage before it in the same stretch; ``stretch`` is the stretch's index.
    ``header`` is the place of the table header that the passage repeats, empty without one.
    """

    start: int
    end: int
    headings: tuple[str, ...]
    stretch: int = 0
    header: tuple[int, int] = (0, 0)

    def text_in(self, text: str) -> str:
        """Return the text of the passage, its repeated table header first.

        Args:
            text: the text that was split
        """
        return text[slice(*self.header)] + text[self.start : self.end]


class _Header(NamedTuple):
    """A table header to repeat, and its tokens."""

    start: int
    end: int
    tokens: int


_NO_HEADER: Final = _Header(0, 0, 0)


class _Break(NamedTuple):
    """A possible cut, and the strength of its pause.

    ``header`` is the place of the table header above the next row, empty if no row of the same
    table follows; ``is_row`` if a row ends here.
    """

    end: int
    pause: int
    header: tuple[int, int] = (0, 0)
    is_row: bool = False


class _Piece(NamedTuple):
    """Characters up to a break without another, and their tokens."""

    end: int
    tokens: int
    pause: int
    header: tuple[int, int]
    is_row: bool


class _Cut(NamedTuple):
    """A passage's characters [first, last), the start of its overlap, and its header."""

    lead: int
    first: int
    last: int
    header: _Header


def split_passages(
    text: str,
    stretches: Iterable[Stretch] | None = None,
    *,
    counter: Tokenizer | None = None,
    chunking: Chunking | None = None,
) -> list[Passage]:
    r"""Cut a text into passages; the default stretches are the sections of Markdown.

    Cost: O(length); 2 MB a second or more, less for lines of a few characters. Memory: the
    passages. A text of at most 400 bytes a stretch needs no tokenizer.

    >>> [p.headings for p in split_passages("# A\nx\n## B\ny\n")]
    [('A',), ('A', 'B')]

    Raises:
        InvalidInput: the text has more than `PARTS_MAX` passages.
    """
    passages: list[Passage] = []
    chunking = chunking or Chunking(PASSAGE_TOKENS_MAX, OVERLAP_TOKENS_MAX)
    for number, (start, end, headings) in enumerate(
        split_sections(text) if stretches is None else stretches
    ):
        for first, last, header in _spans(text, start, end, counter, chunking):
            if len(passages) == PARTS_MAX:
                raise too_many_parts()
            passages.append(Passage(first, last, headings, number, header))
    return passages


def too_many_parts() -> InvalidInput:
    """Return the error for a text with more parts than a document may have."""
    return InvalidInput(
        f"The text has more than {PARTS_MAX:,} parts",
        remedy="Split it into several files, or remove headings and turns of a few characters.",
    )


_Span = tuple[int, int, tuple[int, int]]
"""Characters [start, end) of a passage, and the place of the header that it repeats."""


def _spans(
    text: str, start: int, end: int, counter: Tokenizer | None, chunking: Chunking
) -> Iterator[_Span]:
    """Yield the characters of each passage of one stretch."""
    if start == end:
        return
    most = chunking.passage_tokens
    if end - start <= most and len(text[start:end].encode(errors="replace")) <= most:
        yield start, end, (0, 0)
        return
    counter = counter or tokenizer()
    spans = _cut(_pieces(text, start, end, counter), start, text, counter, chunking)
    scale = counter.tokens_a_word
    while group := list(islice(spans, _SPANS_TOGETHER)):
        counts = counter.count_many(
            text[cut.header.start : cut.header.end] + text[cut.lead : cut.last] for cut in group
        )
        shared = counter.count_many(text[cut.lead : cut.first] for cut in group)
        for cut, tokens, repeated in zip(group, counts, shared, strict=True):
            if tokens <= most * scale and repeated <= chunking.overlap_tokens * scale:
                yield cut.lead, cut.last, cut.header[:2]
            else:
                # Pieces may take more tokens together than apart, and a row more than a passage.
                yield from _fitting(text, cut, counter, most)


def _fitting(text: str, cut: _Cut, counter: Tokenizer, most: int) -> Iterator[_Span]:
    """Yield a span without its overlap, cut in two until each half fits."""
    _, start, end, header = cut
    whole = text[header.start : header.end] + text[start:end]
    if counter.count(whole) <= most * counter.tokens_a_word or end - start == 1:
        yield start, end, header[:2]
        return
    middle = (start + end) // 2
    if header.tokens or any(iter_tables(text, start, end)):
        # The end of a row, if the span has more than one.
        middle = text.rfind("\n", start, middle) + 1 or middle
    yield from _fitting(text, _Cut(start, start, middle, header), counter, most)
    yield from _fitting(text, _Cut(middle, middle, end, header), counter, most)


def _cut(
    pieces: Iterator[_Piece], start: int, text: str, counter: Tokenizer, chunking: Chunking
) -> Iterator[_Cut]:
    """Yield each passage; at most the pieces of two passages are in memory."""
    scale = counter.tokens_a_word
    most = chunking.passage_tokens * scale
    overlap = chunking.overlap_tokens * scale
    lead = start
    header = _NO_HEADER
    ahead: list[_Piece] = []
    while True:
        room = most - header.tokens if lead == start else most - overlap
        stop = 0
        tokens = 0
        best = 1
        pause = -1
        while _has(ahead, stop, pieces) and (tokens + ahead[stop].tokens <= room or stop == 0):
            tokens += ahead[stop].tokens
            stop += 1
            if tokens * 2 >= room and ahead[stop - 1].pause >= pause:
                best = stop
                pause = ahead[stop - 1].pause
        if not stop:
            return
        best = best if _has(ahead, stop, pieces) else stop
        last = ahead[best - 1]
        yield _Cut(lead, start, last.end, header)
        start = last.end
        header = _header_at(last.header, text, counter, chunking)
        # A row needs its header, not the rows before; rows without a header help no text after.
        lead = start if last.is_row else _lead(ahead, best, overlap, start)
        del ahead[:best]


def _header_at(
    place: tuple[int, int], text: str, counter: Tokenizer, chunking: Chunking
) -> _Header:
    """Return the header at a place, if it is short enough to repeat."""
    start, end = place
    tokens = counter.count(text[start:end]) if start < end else 0
    is_short = tokens <= chunking.header_tokens * counter.tokens_a_word
    return _Header(start, end, tokens) if is_short else _NO_HEADER


def _has(ahead: list[_Piece], at: int, pieces: Iterator[_Piece]) -> bool:
    """Return whether a piece is at an index, and fetch the next piece if necessary."""
    if at < len(ahead):
        return True
    following = next(pieces, None)
    if following is None:
        return False
    ahead.append(following)
    return True


def _lead(pieces: list[_Piece], cut: int, overlap: int, start: int) -> int:
    """Return the start of the overlap before a cut: whole pieces of the passage before."""
    lead = start
    tokens = 0
    for at in range(cut - 1, 0, -1):
        tokens += pieces[at].tokens
        if tokens > overlap or pieces[at].is_row:
            break
        lead = pieces[at - 1].end
    return lead


def _pieces(text: str, start: int, end: int, counter: Tokenizer) -> Iterator[_Piece]:
    """Yield the pieces of a stretch: lines, table rows, and sentences and words of longer lines."""
    breaks = _breaks(text, start, end)
    while group := list(islice(breaks, _PIECES_TOGETHER)):
        ends = [start, *(at.end for at in group)]
        counts = counter.count_many(text[first:last] for first, last in pairwise(ends))
        for at, tokens in zip(group, counts, strict=True):
            yield _Piece(at.end, tokens, at.pause, at.header, at.is_row)
        start = ends[-1]


def _breaks(text: str, start: int, end: int) -> Iterator[_Break]:
    """Yield each possible cut of a stretch; a table header and its first row stay together."""
    at = start
    for table in iter_tables(text, start, end):
        yield from _line_breaks(text, at, table.start, end)
        yield from _row_breaks(text, table, end)
        at = table.end
    yield from _line_breaks(text, at, end, end)


def _row_breaks(text: str, table: Table, end: int) -> Iterator[_Break]:
    header = table.start, table.body
    for first, last in rows_of(text, table):
        pause = _pause_after(text, first, last, end)
        yield _Break(last, pause, (0, 0) if last == table.end else header, is_row=True)


def _line_breaks(text: str, start: int, stop: int, end: int) -> Iterator[_Break]:
    """Yield the cuts from ``start`` to ``stop``, without tables, of a stretch up to ``end``."""
    for line in _LINES.finditer(text, start, stop):
        first, last = line.span()
        if line.lastindex:
            # All line ends within a run are equal pauses.
            yield from (_Break(at, _LINE) for at in range(first + 1, last))
            first = last - 1
        while last - first > _PIECE_SIZE_MAX:
            first, pause = _within(text, first, first + _PIECE_SIZE_MAX)
            if first == last:
                break
            yield _Break(first, pause)
        yield _Break(last, _pause_after(text, line.start(), last, end))


def _within(text: str, start: int, limit: int) -> tuple[int, int]:
    """Return the last end of a sentence before a limit, else of a word, else the limit."""
    sentence = [match.end() for match in SENTENCE_END.finditer(text, start, limit)]
    if sentence:
        return sentence[-1], _SENTENCE
    space = text.rfind(" ", start + 1, limit)
    return (space + 1, _WORD) if space > start else (limit, _WORD)


def _pause_after(text: str, start: int, end: int, last: int) -> int:
    if end == last or text[start:end].strip():
        return _LINE
    if text[end : end + 1] in "\r\n":
        return _LINE
    return _BLANK if text[end : end + 1] in " \t" else _TOP


def first_lines(text: str, count: int) -> str:
    """Return the first lines of a text, with line ends as in `str.splitlines`."""
    ends = islice(_LINE_END.finditer(text), count)
    at = len(text)
    for number, match in enumerate(ends, 1):
        at = match.end() if number == count else at
    return text[:at]


def split_sections(text: str) -> list[Stretch]:
    """Return (start, end, headings) of the stretches between headings; code fences are respected.

    Raises:
        InvalidInput: the text has more than `PARTS_MAX` stretches.
    """
    sections: list[Stretch] = []
    trail: list[tuple[int, str]] = []
    fence = ""
    start = 0
    for match in _MARKED.finditer(text):
        line = match[0]
        at = match.start()
        is_indented = line[0] != "#" and text[max(0, at - 1) : at] == " "
        if is_indented and _INDENTED.search(text, max(0, at - 4), at) is None:
            continue
        before = fence
        fence = _fence_after(line, fence)
        heading = None if before or fence else _HEADING.match(line)
        if heading:
            if len(sections) == PARTS_MAX:
                raise too_many_parts()
            if at > start:
                sections.append((start, at, tuple(title for _, title in trail)))
            level = len(heading.group(1))
            trail = [*((depth, name) for depth, name in trail if depth < level)]
            # Stripped by hand: a pattern takes quadratic time on a line of many marks.
            trail.append((level, line[heading.end() :].rstrip().rstrip("#").strip()))
            start = at
    if len(text) > start:
        sections.append((start, len(text), tuple(title for _, title in trail)))
    return sections


def _fence_after(line: str, fence: str) -> str:
    """Return the mark of the code fence that is open after a line; ``fence`` is open before it.

    A fence ends at a line of at least as many of its marks and nothing else (CommonMark 4.5).
    """
    match = _FENCE.match(line)
    if match is None:
        return fence
    mark, rest = match.groups()
    if not fence:
        return "" if mark[0] == "`" and "`" in rest else mark
    return "" if mark.startswith(fence) and not rest.strip() else fence
