"""Finding: which files below the named paths are remembered, and what is left out and why.

Owns the walk, the patterns and what is left out unless asked for. A file that is named is taken
whatever it is called; below a folder those whose endings are known, or that ``include`` names.
Patterns are those of the shell: one without ``/`` is held against a name at any depth, one with it
against the path, as it was given or from the named folder; ``**`` is any number of folders,
``{a,b}`` either.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.errors import InvalidInput
from cerata.engine.loading import loading

from .drafting import listed
from .extract.registry import KNOWN_SUFFIXES

if TYPE_CHECKING:
    from wcmatch.glob import WcMatcher

DEFAULT_EXCLUDED: Final = (
    *(".*", "__pycache__", "node_modules", "bower_components", "venv", "*.egg-info"),
    *("*.min.js", "*.min.css", "package-lock.json"),
)
"""What nobody means who names a folder: hidden names, caches, what was installed or packed."""

_LINK: Final = "links to folders"
_OUTSIDE: Final = (
    "It is a link to a file outside of the folder. Name the link itself, or exclude it."
)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files, in order of name, and what was left out.

    ``excluded`` counts what a pattern kept out, a folder as one; ``passed_over`` the files whose
    endings are not known, by ending, and those that are empty; ``unreadable`` has what cannot be
    looked at, or is a link to a file outside of its folder, and why.
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
    """Return the files that the named files and folders stand for, each once.

    Below a folder, links to folders and to files outside of it are not followed; a link to a file
    inside of it is one more file. What is named itself is left out by ``exclude`` alone.

    Raises:
        InvalidInput: a pattern cannot be understood, or a name is no path.
    """
    search = _Search(include, exclude, default_excludes=default_excludes)
    found: dict[PurePath, str] = {}  # a.md and ./a.md are one
    for name in names:
        path = _path_of(name)
        if os.path.isdir(path):
            search.root = os.path.realpath(path)
            for below in search.below(path, ""):
                found.setdefault(PurePath(below), below)
        elif search.is_wanted(PurePath(path)):
            found.setdefault(PurePath(path), path)
    passed_over = dict(sorted(search.passed_over.items()))
    return FoundFiles(tuple(found.values()), search.excluded, passed_over, tuple(search.unreadable))


def _path_of(name: object) -> str:
    # Not bytes or a number: `os` would take the latter for an open descriptor.
    try:
        path: object = os.fspath(cast("str", name))
    except TypeError:
        path = None
    if isinstance(path, str):
        return path
    raise InvalidInput(
        f"Each of paths must be a string or a Path, not {type(name).__name__}",
        remedy="Pass the names of files and folders.",
    )


class _Search:
    """One walk: its patterns, and what it has left out."""

    def __init__(
        self, include: Sequence[str], exclude: Sequence[str], *, default_excludes: bool
    ) -> None:
        self._include = _matcher("include", include)
        self._exclude = _matcher("exclude", exclude)
        self._default = _matcher("exclude", DEFAULT_EXCLUDED if default_excludes else ())
        self.root = ""
        """Where the folder that is searched really lies."""
        self.excluded = 0
        self.passed_over: Counter[str] = Counter()
        self.unreadable: list[tuple[str, str]] = []

    def is_wanted(self, named: PurePath) -> bool:
        """Tell whether a file that was named is not kept out, by its name or its path."""
        is_out = _matches(self._exclude, named.as_posix(), named.name)
        self.excluded += is_out
        return not is_out

    def below(self, folder: str, inner: str) -> Iterator[str]:
        """Yield the files below a folder; ``inner`` is its path from the one that was named."""
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
        """Yield the path of what is no folder, if it is wanted; count it if it is not."""
        try:
            is_link, is_file = entry.is_dir(), entry.is_file()
            is_empty = is_file and entry.stat().st_size == 0
        except OSError as error:  # a link to itself, or to where one may not look
            self.unreadable.append((path, f"Cannot read: {error.strerror}"))
            return
        if is_link:
            self.passed_over[_LINK] += 1
        elif not is_file:
            self.passed_over["no files"] += 1
        elif not self._is_included(path, inside):
            self.passed_over[PurePath(entry.name).suffix.lower() or "no ending"] += 1
        elif is_empty:
            self.passed_over["empty"] += 1
        elif entry.is_symlink() and not self._is_inside(path):
            self.unreadable.append((path, _OUTSIDE))
        else:
            yield path

    def _is_inside(self, path: str) -> bool:
        """Tell whether a file really lies below the folder that is searched."""
        return os.path.commonpath((self.root, os.path.realpath(path))) == self.root

    def _is_included(self, path: str, inside: str) -> bool:
        if self._include is not None:
            return _matches(self._include, path, inside)
        return PurePath(inside).suffix.lower() in KNOWN_SUFFIXES


def _matches(patterns: "WcMatcher[str] | None", *paths: str) -> bool:
    return patterns is not None and any(map(patterns.match, paths))


def _matcher(name: str, patterns: Sequence[str]) -> "WcMatcher[str] | None":
    """Return what tells whether a path is of one of the patterns; None if there are none."""
    wanted = [pattern.rstrip("/") for pattern in listed(name, patterns)]
    if not wanted:
        return None
    with loading("wcmatch"):
        from wcmatch import glob
        from wcmatch._wcparse import PatternLimitException  # pyright: ignore[reportPrivateUsage]

    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.MATCHBASE | glob.FORCEUNIX
    try:
        return glob.compile(wanted, flags=flags)
    except (ValueError, TypeError, PatternLimitException) as error:
        raise InvalidInput(
            f"{name} has a pattern that cannot be used: {error}",
            remedy="Write it as a shell does: '*.md', 'notes/**', '{a,b}'.",
        ) from error
