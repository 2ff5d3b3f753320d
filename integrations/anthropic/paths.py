"""Paths of the memory tool: their checks.

A path is "/memories", or begins with "/memories/". It has no empty segment, no "." or "..", so each
file has one path; and no character that ends a line or changes its direction, so that no path is a
row of a listing.
"""

from typing import Final

from cerata.engine.arguments import is_unicode
from cerata.retrieval.context.imitation import has_one_line

from .refusal import RefusedCommand

ROOT: Final = "/memories"

_PLAIN: Final = 'Write a path such as "/memories/notes.txt".'


def checked_path(path: object) -> str:
    """Return a path.

    Raises:
        RefusedCommand: it is no path below "/memories"; the text says what is wrong.
    """
    if not isinstance(path, str) or not is_unicode(path):
        raise RefusedCommand(f"Path must be a text, got: {path!r:.60}", remedy=_PLAIN)
    where = repr(path[:200])
    if not has_one_line(path):
        raise RefusedCommand(
            f"Path has a control character or a line end, got: {path!r:.200}",
            where=where,
            remedy=_PLAIN,
        )
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise RefusedCommand(f"Path must start with /memories, got: {path}", where=where)
    segments = path.split("/")[1:]
    if ".." in segments:
        raise RefusedCommand(
            f"Path {path} would escape /memories directory", where=where, remedy=_PLAIN
        )
    for segment, fault in (("", "an empty segment"), (".", 'a segment "."')):
        if segment in segments:
            raise RefusedCommand(f"Path {path} has {fault}. {_PLAIN}", where=where, remedy=_PLAIN)
    return path


def parents_of(path: str) -> list[str]:
    """Return the directories above a path and below the root.

    >>> parents_of("/memories/a/b/c")
    ['/memories/a/b', '/memories/a']
    """
    parents: list[str] = []
    while (path := path.rpartition("/")[0]) != ROOT:
        parents.append(path)
    return parents
