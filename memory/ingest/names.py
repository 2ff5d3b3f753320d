"""The names of files: the shortest end of a path that is different for each file."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from .formats.document import NAME_SIZE_MAX

_COMMON_NAMES: Final = (
    "__init__ __main__ changelog conf config conftest index init license main mod package readme"
    " setup tests utils"
)
_COMMON: Final = frozenset(_COMMON_NAMES.split())
"""Names that many folders have, so that they need their folder."""


def short_names(uris: Sequence[str]) -> dict[str, str]:
    """Return the name of each file: its last parts, as many as no other of the files shares.

    A common name, such as ``__init__.py``, always has its folder. Cost: O(files)
    for each further part.

    Args:
        uris: absolute paths, with ``/``

    >>> short_names(["/lib/html/__init__.py", "/lib/ast.py", "/a/x/notes.md", "/a/y/notes.md"])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'/lib/html/__init__.py': 'html/__init__.py', '/lib/ast.py': 'ast.py',
     '/a/x/notes.md': 'x/notes.md', '/a/y/notes.md': 'y/notes.md'}
    """
    same_name: dict[str, list[str]] = defaultdict(list)
    for uri in dict.fromkeys(uris):
        same_name[PurePosixPath(uri).name].append(uri)
    names = dict.fromkeys(uris, "")
    for name, alike in same_name.items():
        parts = 2 if PurePosixPath(name).stem.lower() in _COMMON else 1
        while alike:
            ends = {uri: _end_of(uri, parts) for uri in alike}
            counts = Counter(ends.values())
            for uri, end in ends.items():
                if counts[end] == 1 or end == uri:
                    names[uri] = end[-NAME_SIZE_MAX:]
            alike = [uri for uri in alike if not names[uri]]
            parts += 1
    return names


def _end_of(uri: str, parts: int) -> str:
    """Return the last parts of a path; the whole path if it has no more."""
    pieces = uri.split("/")
    return uri if parts >= len(pieces) else "/".join(pieces[-parts:])
