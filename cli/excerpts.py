"""Excerpts: a few lines of a text around a match, as the text has them.

Code and lists keep their lines, and a paragraph is one line; rows of a table come below the names
of the columns.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from cerata.retrieval.tables import find_tables, table_at

_BEFORE: Final = 60
"""Characters before the match, in a line longer than that."""

_REACH: Final = 2_000
"""Characters that are read around the start of the match."""

_LINE_SIZE: Final = 400

_WRAPPED: Final = 50
"""Characters of a line before which a paragraph is not wrapped."""

_BLANKS: Final = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")

_PROSE: Final = re.compile(r"[^\W_]+[,.:;!?)]* [^\W_]|[\"'(`\u201c][^\W_][^\n]* [^\W_]")
_CODE: Final = re.compile(
    r"[{}=]|[;(\[\\]\s*$|^(?:from|import|def|class|return|if|for|let|const|var|use|package)\b"
)

Span = tuple[int, int]


def excerpt(text: str, span: Span, marks: Sequence[Span], *, lines: int) -> Text:
    """Return up to ``lines`` lines of a text from the start of a span on, without blank lines.

    Args:
        text: the text
        span: characters [start, end) of the best part; (0, 0) for the beginning
        marks: characters [start, end) to mark, ascending and apart
        lines: most lines; a line may be long
    """
    at = span[0]
    table = table_at(find_tables(text), at)
    spans: list[Span] = []
    if table is not None:
        spans = _lines_from(text, table.start, table.body, 1)
        at = max(at, table.body)
    begin = text.rfind("\n", 0, at) + 1
    if at - begin > _BEFORE:
        begin = at - _BEFORE
        begin = (text.find(" ", begin, at) + 1) or begin
    spans += _lines_from(text, begin, len(text), lines - len(spans))
    if spans and table is None and text[begin - 1 : begin] in ("", "\n"):
        spans = _lines_before(text, begin, lines - len(spans)) + spans
    margin = min((_indent(text[start:end]) for start, end in spans), default=0)
    result = Text()
    for number, (start, end) in enumerate(spans):
        if number:
            is_one = table is None and _are_one(text, spans[number - 1], (start, end))
            result.append(" " if is_one else "\n")
        is_cut = text[start - 1 : start] not in ("", "\n")
        result.append("…" if is_cut else "")
        result.append_text(_marked(text, start if is_cut else start + margin, end, marks))
    if spans and text[spans[-1][1] : spans[-1][1] + _REACH].strip():
        result.append(" …", "dim")
    return result


def _lines_from(text: str, start: int, stop: int, count: int) -> list[Span]:
    """Return the next lines with any text, each up to a size."""
    spans: list[Span] = []
    limit = min(stop, start + _REACH)
    while start < limit and len(spans) < count:
        line_end = text.find("\n", start, limit)
        line_end = limit if line_end < 0 else line_end
        if text[start:line_end].strip():
            spans.append((start, min(line_end, start + _LINE_SIZE)))
        start = line_end + 1
    return spans


def _lines_before(text: str, stop: int, count: int) -> list[Span]:
    """Return the lines with any text right before a line."""
    spans: list[Span] = []
    limit = max(0, stop - _REACH)
    while stop > limit and len(spans) < count:
        start = text.rfind("\n", 0, stop - 1) + 1
        if text[start:stop].strip() and start >= limit:
            spans.append((start, min(stop - 1, start + _LINE_SIZE)))
        stop = start
    return spans[::-1]


def _are_one(text: str, first: Span, second: Span) -> bool:
    """Return whether two lines are of one paragraph, which is wrapped to the terminal."""
    is_wrapped = first[1] - first[0] >= _WRAPPED and text[first[1] : second[0]] == "\n"
    return is_wrapped and _is_prose(text[slice(*first)]) and _is_prose(text[slice(*second)])


def _is_prose(line: str) -> bool:
    """Return whether a line may be part of a paragraph: no code, list, table or heading."""
    return _PROSE.match(line) is not None and _CODE.search(line) is None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _marked(text: str, start: int, end: int, marks: Sequence[Span]) -> Text:
    """Return one line without its end; the marks in it are bold."""
    line = Text(text[start:end].translate(_BLANKS).rstrip())
    for first, last in marks[bisect_left(marks, (start, 0)) :]:
        if first >= end:
            break
        line.stylize("bold green", first - start, min(last, end) - start)
    return line
