"""Source code: Python by its definitions; other languages as text, cut at blank lines.

Owns the sections of source code. Leaves out the cutting of sections (`cerata.retrieval.chunking`).
"""

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from .document import Document, Section, decode_text

_PARSED_SIZE_MAX: Final = 1 << 18
"""Most characters of Python to parse: a syntax tree takes up to a thousand times the size of its
source, and formatted strings take quadratic time."""

_JOINED_SIZE: Final = 1_200
"""Most characters of a section that joins small definitions in a row."""

_LARGE_SIZE: Final = 1_600
"""Characters above which a class is cut at its methods."""

_LINE_END: Final = re.compile(r"\r\n|\r|\n")

_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_Start = tuple[int, tuple[str, ...]]


def extract_code(data: bytes, where: str) -> Document:
    """Return source code as one section."""
    text = decode_text(data, where)
    return Document(text, (Section(0, len(text)),), "text/x-source")


def extract_python(data: bytes, where: str) -> Document:
    """Return Python by its definitions; a file that does not parse is one section."""
    text = decode_text(data, where)
    starts = list(_definitions(text)) if len(text) <= _PARSED_SIZE_MAX else []
    return Document(text, tuple(_sections(text, starts)), "text/x-python")


def _definitions(text: str) -> Iterator[_Start]:
    """Yield the start of each definition, and its names from the outermost inward."""
    try:
        with warnings.catch_warnings():
            # The file is only read, so Python's warnings about its style are noise.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    offsets = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    yield from _of_body(text, tree.body, (), offsets)


def _of_body(
    text: str, body: list[ast.stmt], above: tuple[str, ...], offsets: list[int]
) -> Iterator[_Start]:
    ended = False
    for node in body:
        if not isinstance(node, _DEFINITIONS):
            if ended:
                # Statements after a definition are not part of it.
                yield _offset(text, node.lineno, offsets), above
            ended = False
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        start = _offset(text, first, offsets)
        names = (*above, node.name)
        yield start, names
        size = offsets[min(node.end_lineno or first, len(offsets) - 1)] - start
        if isinstance(node, ast.ClassDef) and size > _LARGE_SIZE:
            yield from _of_body(text, node.body, names, offsets)
        ended = True


def _offset(text: str, line: int, offsets: list[int]) -> int:
    """Return the start of a line, or of the comments right above the line."""
    at = line - 1
    while at > 0 and text[offsets[at - 1] : offsets[at]].lstrip().startswith("#"):
        at -= 1
    return offsets[at]


def _sections(text: str, starts: list[_Start]) -> Iterator[Section]:
    """Yield sections from each start to the next; small neighbours of one parent are joined."""
    begin = 0
    names = list[tuple[str, ...]]()
    for (start, name), (end, after) in pairwise([(0, ()), *starts, (len(text), ())]):
        # A class that is cut at its methods starts a section; else definitions on a level join.
        is_cut = after[: len(name)] == name and len(after) > len(name)
        kin = bool(names and name) and not is_cut and names[-1][:-1] == name[:-1]
        kin = kin and len(names[-1]) == len(name)
        if start > begin and not (kin and end - begin <= _JOINED_SIZE):
            yield Section(begin, start, _heading(names))
            begin, names = start, []
        if name:
            names.append(name)
    yield Section(begin, len(text), _heading(names))


def _heading(names: list[tuple[str, ...]]) -> tuple[str, ...]:
    if not names:
        return ()
    return (*names[0][:-1], ", ".join(name[-1] for name in names))
