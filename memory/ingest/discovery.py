"""Finding: the files to remember below named paths, and the files left out.

Owns the walk, the patterns and the default excludes. A named file is taken with any ending; below a
folder only files with known endings, or files that match ``include``. Patterns are those of the
shell: a pattern without ``/`` is compared with names at any depth; a pattern with ``/`` with the
path, both in full and relative to the named folder. ``**`` is any number of folders, ``{a,b}``
either.
"""

import codecs
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.arguments import exact_string, wrong_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import PutFrame, Scope
from cerata.engine.late import loading

from ..snapshot.snapshot import Snapshot
from ..values.arguments import SOURCE_HASH, content_hash, listed
from ..values.frames import Receipt
from .formats.document import NAME_SIZE_MAX
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


# --- The names of files: the shortest end of a path that is different for each file ---------------


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


# --- Detection of files that are stored already, by their bytes alone -----------------------------
#
# So remembering an unchanged folder again costs little more than reading its files.


def file_uri(path: str | Path) -> str:
    """Return the URI of a file: its absolute path.

    So ``notes.md`` in two folders gives two URIs, and the current folder does not matter. Links are
    not followed, because their targets may change from day to day.
    """
    return Path(os.path.abspath(path)).as_posix()


def find_unchanged(snapshot: Snapshot, data: bytes, uri: str, scope: Scope) -> Receipt | None:
    """Return the receipt of a file that is stored completely under this URI and scope, or None.

    This needs no extraction or splitting. A file of plain text is found by the hash of its content;
    HTML, PDF and transcripts, by the hash of the source that their frame stores.
    """
    source = source_hash(data)
    for number in snapshot.layers.find_content(content_hash(data.removeprefix(codecs.BOM_UTF8))):
        receipt = _whole(snapshot, number, uri, scope, None)
        if receipt is not None:
            return receipt
    for number in snapshot.layers.find_uri(uri):
        receipt = _whole(snapshot, number, uri, scope, source)
        if receipt is not None:
            return receipt
    return None


def source_hash(data: bytes) -> str:
    """Return the hash by which a file that needs extraction is recognised.

    The hash depends on the version of the extractors, so a new version reads the files again.
    """
    return content_hash(b"extracted, version 3\0" + data).hex()


def is_read_as_text(body: PutFrame) -> bool:
    """Return whether a frame is searched by the words of its text, not of ``search_text``."""
    return body.text is not None and body.search_text is None


def _whole(
    snapshot: Snapshot, number: int, uri: str, scope: Scope, source: str | None
) -> Receipt | None:
    """Return the receipt of a complete document with this URI, scope and source, or None."""
    # Read a single event, not the text of the frame, which may have many chunks.
    event = next(snapshot.events(number, number), None)
    if event is None or not isinstance(event.body, PutFrame) or event.body.chunk_index is not None:
        return None
    body = event.body
    if body.uri != uri or event.scope != scope or not is_read_as_text(body):
        return None
    if source is not None and body.metadata.get(SOURCE_HASH) != source:
        return None
    # Chunks have the scope of their document, so the scope check of `files.chunks` is not needed.
    chunks = {} if body.chunk_count is None else snapshot.layers.chunks(number)
    if len(chunks) != (body.chunk_count or 0):
        return None
    ids = (number, *chunks.values())
    return Receipt(number, ids, (), snapshot.head, durable=True, added=False)
