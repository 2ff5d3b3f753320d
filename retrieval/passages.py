"""Passages: cutting a document into pieces that are found and shown alone.

Owns the rule: cut at Markdown headings, join what follows at blank lines while it fits, and cut a
longer run at the last line end, space or character before the limit. Pieces in order are the
whole text, nothing added or lost.
"""

import re
from dataclasses import dataclass
from typing import Final

PASSAGE_SIZE_MAX: Final = 1_600
"""Most characters of one passage: about 400 tokens of English."""

_HEADING = re.compile(r"(#{1,6})[ \t]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text: characters [start, end), under these headings, outermost first."""

    start: int
    end: int
    headings: tuple[str, ...]


def split_passages(text: str, *, size_max: int = PASSAGE_SIZE_MAX) -> list[Passage]:
    r"""Cut a text into passages; together they are the text.

    >>> [p.headings for p in split_passages("# A\nx\n## B\ny\n")]
    [('A',), ('A', 'B')]
    """
    passages: list[Passage] = []
    for start, end, headings in split_sections(text):
        at = start
        while at < end:
            stop = _cut(text, at, end, size_max)
            passages.append(Passage(at, stop, headings))
            at = stop
    return passages


def split_sections(text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return (start, end, headings) of the stretches between headings, code fences respected."""
    sections: list[tuple[int, int, tuple[str, ...]]] = []
    trail: list[tuple[int, str]] = []
    fence = ""
    start = at = 0
    for line in text.splitlines(keepends=True):
        before, fence = fence, _fence_after(line, fence)
        heading = None if before or fence else _HEADING.match(line)
        if heading:
            if at > start:
                sections.append((start, at, tuple(title for _, title in trail)))
            level = len(heading.group(1))
            trail = [*((depth, name) for depth, name in trail if depth < level)]
            # Stripped by hand: a pattern for it takes quadratic time on a line of many marks.
            trail.append((level, line[heading.end() :].rstrip().rstrip("#").strip()))
            start = at
        at += len(line)
    if at > start:
        sections.append((start, at, tuple(title for _, title in trail)))
    return sections


def _fence_after(line: str, fence: str) -> str:
    """Return the mark of the code fence that is open after a line, given the one before it.

    A fence ends at a line of at least as many of its marks and nothing else (CommonMark 4.5).
    """
    found = _FENCE.match(line)
    if found is None:
        return fence
    mark, rest = found.groups()
    if not fence:
        return "" if mark[0] == "`" and "`" in rest else mark
    return "" if mark.startswith(fence) and not rest.strip() else fence


def _cut(text: str, start: int, end: int, size_max: int) -> int:
    """Return where a passage that starts at ``start`` ends: the best break that fits."""
    if end - start <= size_max:
        return end
    limit = start + size_max
    for separator in ("\n\n", "\n", " "):
        # A break in the first third would leave a sliver and a second cut soon after.
        at = text.rfind(separator, start + size_max // 3, limit)
        if at >= 0:
            stop = at + len(separator)
            while stop < end and text[stop] == "\n":
                stop += 1
            return stop
    return limit
