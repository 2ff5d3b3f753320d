"""The answers of the memory tool, in the words of `BetaLocalFilesystemMemoryTool`.

Owns numbered lines, listings and sizes. Leaves out the files (`files`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cerata.retrieval.context.imitation import on_one_line

LINES_MAX: Final = 999_999
_NUMBER_WIDTH: Final = len(str(LINES_MAX))
_DEPTH_MAX: Final = 2
_CONTEXT_LINES: Final = 2
_UNITS: Final = "BKMG"


def numbered(lines: Sequence[str], first: int) -> str:
    """Return lines with their numbers, the first of which is given."""
    return "\n".join(
        f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start=first)
    )


def snippet(content: str, line: int) -> str:
    """Return the lines around a line, which is counted from 0."""
    lines = content.split("\n")
    start = max(0, line - _CONTEXT_LINES)
    return numbered(lines[start : line + _CONTEXT_LINES + 1], start + 1)


def shown_range(lines: Sequence[str], view_range: Sequence[int] | None) -> str:
    """Return the numbered lines of a range: first and last from 1, -1 for the end."""
    first, end = 1, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        end = len(lines) if view_range[1] == -1 else view_range[1]
    return numbered(lines[first - 1 : end], first)


def lines_with(content: str, text: str) -> list[int]:
    """Return the numbers, from 1, of the lines in which a text begins, also overlapping."""
    numbers: list[int] = []
    place = content.find(text)
    while place != -1:
        numbers.append(content.count("\n", 0, place) + 1)
        place = content.find(text, place + 1)
    return numbers


def listing(path: str, sizes: Mapping[str, int]) -> str:
    """Return the listing of a directory, two levels deep, without hidden names.

    Args:
        path: The directory.
        sizes: The bytes of each file below it, by the path relative to it.
    """
    total: dict[str, int] = {}
    for name, size in sizes.items():
        segments = name.split("/")
        for depth in range(1, min(len(segments), _DEPTH_MAX) + 1):
            if segments[depth - 1].startswith("."):
                break
            is_file = depth == len(segments)
            entry = "/".join(segments[:depth]) + ("" if is_file else "/")
            total[entry] = total.get(entry, 0) + size
    # A directory comes before the names in it, and both in the order of their segments.
    entries = sorted(total, key=lambda entry: entry.rstrip("/").split("/"))
    header = (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    )
    return "\n".join(_listed(header, path, sum(sizes.values()), entries, total))


def _listed(
    header: str, path: str, size: int, entries: Iterable[str], sizes: Mapping[str, int]
) -> Iterable[str]:
    yield header
    yield f"{_size_text(size)}\t{path}"
    for entry in entries:
        # A program, or an earlier version, may have put a file with any name.
        yield f"{_size_text(sizes[entry])}\t{path}/{on_one_line(entry)}"


def _size_text(size: int) -> str:
    """Return a size in the largest unit of 1,024.

    >>> [_size_text(size) for size in (0, 5, 1536, 4096)]
    ['0B', '5B', '1.5K', '4K']
    """
    unit = min((size.bit_length() - 1) // 10, len(_UNITS) - 1) if size else 0
    scaled = size / 1024**unit
    text = f"{int(scaled)}" if scaled == int(scaled) else f"{scaled:.1f}"
    return text + _UNITS[unit]
