"""Finding: the files to remember below named paths, and the files left out.

Owns the walk, the patterns and the default excludes. A named file is taken with any ending; below a
folder only files with known endings, or files that match ``include``. Patterns are those of the
shell: a pattern without ``/`` is compared with names at any depth; a pattern with ``/`` with the
path, both in full and relative to the named folder. ``**`` is any number of folders, ``{a,b}``
either.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.arguments import exact_string, wrong_type
from cerata.engine.errors import InvalidInput
from cerata.engine.loading import loading

from ..values.arguments import listed
from .formats.registry import KNOWN_SUFFIXES

if TYPE_CHECKING:
    from wcmatch.glob import WcMatcher

DEFAULT_EXCLUDED: Final = (
    *(".*", "__pycache__", "node_modules", "bower_components", "venv", "*.egg-info"),
    *("*.min.js", "*.min.css", "package-lock.json"),
)
"""Names left out below a folder by default: hidden names, caches, installed and packed files."""

_LINK: Final = "links to folders"
_OUTSIDE: Final = (
    "It is a link to a file outside of the folder. Name the link itself, or exclude it."
)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files to remember, in order of name, and the files left out.

    - ``excluded`` counts the files and folders that a pattern left out.
    - ``passed_over`` counts files with unknown endings, by ending.
    - ``unreadable`` has unreadable paths and links to files outside of their folder, each with a
      reason.
    """

    files: tuple[str, ...]
    excluded: int
    passed_over: Mapping[str, int]
    unreadable: tuple[tuple[str, str], ...]


def find_files(
    names: Iterable[str | Path],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    default_excludes: bool = True,
) -> FoundFiles:
    """Return the named files and the files below the named folders, each once.

    Below a folder, links to folders and to files outside of the folder are not followed; a link to
    a file inside of the folder counts as a further file. Only ``exclude`` leaves out a named file.

    Raises:
        InvalidInput: a pattern is unusable, or a name is not a path.
    """
    search = _Search(include, exclude, default_excludes=default_excludes)
    files: dict[PurePath, str] = {}  # a.md and ./a.md are the same file
    for name in names:
        path = _path_of(name)
        if os.path.isdir(path):
            search.root = os.path.realpath(path)
            for below in search.below(path, ""):
                files.setdefault(PurePath(below), below)
        elif search.is_wanted(PurePath(path)):
            files.setdefault(PurePath(path), path)
    passed_over = dict(sorted(search.passed_over.items()))
    return FoundFiles(tuple(files.values()), search.excluded, passed_over, tuple(search.unreadable))


def _path_of(name: object) -> str:
    # Neither bytes nor a number, which `os` would take for an open descriptor.
    try:
        path: object = os.fspath(cast("str", name))
    except TypeError:
        path = None
    if isinstance(path, str):
        return exact_string(path)
    remedy = "Pass the names of files and folders."
    raise wrong_type("Each of paths", "a string or a Path", name, remedy)


class _Search:
    def __init__(
        self, include: Sequence[str], exclude: Sequence[str], *, default_excludes: bool
    ) -> None:
        self._include = _matcher("include", include)
        self._exclude = _matcher("exclude", exclude)
        self._default = _matcher("exclude", DEFAULT_EXCLUDED if default_excludes else ())
        self.root = ""
        """The folder being searched, with links resolved."""
        self.excluded = 0
        self.passed_over: Counter[str] = Counter()
        self.unreadable: list[tuple[str, str]] = []

    def is_wanted(self, named: PurePath) -> bool:
        """Return whether neither the name nor the path of a named file is excluded."""
        is_excluded = _matches(self._exclude, named.as_posix(), named.name)
        self.excluded += is_excluded
        return not is_excluded

    def below(self, folder: str, inner: str) -> Iterator[str]:
        """Yield the files below a folder; ``inner`` is its path relative to the named folder."""
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self.unreadable.append((folder, f"Cannot list the folder: {error.strerror}"))
            return
        for entry in entries:
            path, inside = os.path.join(folder, entry.name), inner + entry.name
            if _matches(self._exclude, path, inside) or _matches(self._default, inside):
                self.excluded += 1
            elif entry.is_dir(follow_symlinks=False):
                yield from self.below(path, inside + "/")
            else:
                yield from self._taken(entry, path, inside)

    def _taken(self, entry: os.DirEntry[str], path: str, inside: str) -> Iterator[str]:
        """Yield the path of an entry if it is a file to remember; else count the entry."""
        try:
            # The entry is not a folder, so this is true only of a link to a folder.
            is_link = entry.is_dir()
            is_file = entry.is_file()
        except OSError as error:  # a link to itself, or to a place without permission
            self.unreadable.append((path, f"Cannot read: {error.strerror}"))
            return
        if is_link:
            self.passed_over[_LINK] += 1
        elif not is_file:
            self.passed_over["no files"] += 1
        elif not self._is_included(path, inside):
            self.passed_over[PurePath(entry.name).suffix.lower() or "no ending"] += 1
        elif entry.is_symlink() and not self._is_inside(path):
            self.unreadable.append((path, _OUTSIDE))
        else:
            yield path

    def _is_inside(self, path: str) -> bool:
        """Return whether a file, with links resolved, lies below the folder being searched."""
        return os.path.commonpath((self.root, os.path.realpath(path))) == self.root

    def _is_included(self, path: str, inside: str) -> bool:
        if self._include is not None:
            return _matches(self._include, path, inside)
        return PurePath(inside).suffix.lower() in KNOWN_SUFFIXES


def _matches(patterns: "WcMatcher[str] | None", *paths: str) -> bool:
    return patterns is not None and any(map(patterns.match, paths))


def _matcher(name: str, patterns: Sequence[str]) -> "WcMatcher[str] | None":
    stripped = [pattern.rstrip("/") for pattern in listed(name, patterns)]
    if not stripped:
        return None
    with loading("wcmatch"):
        from wcmatch import glob
        from wcmatch._wcparse import PatternLimitException  # pyright: ignore[reportPrivateUsage]

    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.MATCHBASE | glob.FORCEUNIX
    try:
        return glob.compile(stripped, flags=flags)
    except (ValueError, TypeError, PatternLimitException) as error:
        raise InvalidInput(
            f"{name} has an unusable pattern: {error}",
            remedy="Write patterns of the shell: '*.md', 'notes/**', '{a,b}'.",
        ) from error
