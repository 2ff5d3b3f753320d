"""The files of the memory tool as frames, and its commands.

Owns what each command reads and writes, and `undo`. Leaves out the tool's classes (`tool`). A file
is a frame of kind ``anthropic.file`` whose URI is its path; an edit is a version that supersedes
it. A directory is there while a file is below it.
"""

# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from anthropic.lib.tools import ToolError

from cerata.engine.arguments import is_integer, is_unicode
from cerata.engine.errors import InvalidInput
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame
from cerata.memory.values.options import PutOptions
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter
from cerata.retrieval.context.imitation import has_one_line, on_one_line

from ..frames_of_scope import FramesOfScope
from .pack import ROLE

# --- Paths of the memory tool: their checks -------------------------------------------------------
#
# A path is "/memories", or begins with "/memories/". It has no empty segment, no "." or "..", so
# each file has one path; and no character that ends a line or changes its direction, so that no
# path is a row of a listing.


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


# --- The error of a command of the memory tool that cannot be done --------------------------------


_LOOK: Final = 'View "/memories" to see the files.'


class RefusedCommand(InvalidInput, ToolError):
    """A command that cannot be done; nothing was written.

    ``content`` is the text for the model, as `ToolError` has it.
    """

    def __init__(self, text: str, *, where: str | None = None, remedy: str = _LOOK) -> None:
        """Refuse with a text, in the words of `BetaLocalFilesystemMemoryTool` if it has some."""
        super().__init__(text.removesuffix("."), where=where, remedy=remedy)
        self.content: Any = text


# --- The files of the memory tool as frames, and its commands -------------------------------------


FILE: Final = "anthropic.file"

_EMPTY: Final = "empty"
"""The metadata of a file without text: a frame has content, so its frame has a byte."""

_RESTORES: Final = "restores"
"""The metadata of a version that `undo` wrote: the version whose content it has."""


class MemoryFiles:
    """The files of exactly one scope. Each command is one durable batch, or writes nothing."""

    def __init__(self, store: object) -> None:
        """Keep the files in a store. Raises `InvalidInput` if it is no store."""
        self._frames = FramesOfScope(store, FILE, ROLE)

    @property
    def store(self) -> Store:
        return self._frames.of_scope

    # --- reading ---------------------------------------------------------------------------------

    def view(self, path: object, view_range: Any) -> str:
        """Return a file with line numbers, or the listing of a directory."""
        name = checked_path(path)
        if view_range is not None and not (
            isinstance(view_range, Sequence) and all(map(is_integer, view_range))
        ):
            raise RefusedCommand(
                f"view_range must be two line numbers, got: {view_range!r:.60}",
                remedy="Pass view_range=[1, 20], or [1, -1] for all.",
            )
        view = self.store.history.view()
        frame = self._frames.current(view, name)
        if frame is None:
            if not self._is_directory(view, name):
                raise _missing(name)
            below = self._frames.below(view, f"{name}/")
            sizes = {_path_of(each)[len(name) + 1 :]: _size_of(each) for each in below}
            return listing(name, sizes)
        lines = _content_of(frame).split("\n")
        if len(lines) > LINES_MAX:
            raise RefusedCommand(f"File {name} exceeds maximum line limit of {LINES_MAX:,} lines.")
        shown = shown_range(lines, view_range)
        return f"Here's the content of {name} with line numbers:\n{shown}"

    # --- writing ---------------------------------------------------------------------------------

    def create(self, path: object, text: object) -> str:
        name, content = checked_path(path), _checked_text("file_text", text)

        def create(view: View) -> None:
            if self._exists(view, name):
                raise RefusedCommand(f"File {name} already exists")
            self._check_parents(view, name)
            self._put(view, name, content)

        # A directory and a file with its path are no frames that conflict.
        self._frames.write(create, is_alone=True)
        return f"File created successfully at: {name}"

    def str_replace(self, path: object, old_str: object, new_str: object) -> str:
        name = checked_path(path)
        old, new = _checked_text("old_str", old_str), _checked_text("new_str", new_str)

        def replaced(content: str) -> tuple[str, str]:
            count = content.count(old)
            if count == 0:
                raise RefusedCommand(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{name}."
                )
            if count > 1:
                places = ", ".join(map(str, lines_with(content, old)))
                raise RefusedCommand(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                    f"lines: {places}. Please ensure it is unique"
                )
            changed = content.replace(old, new)
            return changed, snippet(changed, content.count("\n", 0, content.find(old)))

        shown = self._edit(name, replaced)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line "
            f"numbers):\n{shown}"
        )

    def insert(self, path: object, line: Any, text: object) -> str:
        name, addition = checked_path(path), _checked_text("insert_text", text)

        def inserted(content: str) -> tuple[str, str]:
            lines = content.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not is_integer(line) or not 0 <= line <= len(lines):
                raise RefusedCommand(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range "
                    f"[0, {len(lines)}]."
                )
            lines.insert(line, addition.rstrip("\n"))
            changed = "\n".join(lines)
            return (changed if changed.endswith("\n") else f"{changed}\n"), ""

        self._edit(name, inserted)
        return f"The file {name} has been edited."

    def delete(self, path: object) -> str:
        name = checked_path(path)
        if name == ROOT:
            raise RefusedCommand("Cannot delete the /memories directory itself")

        def delete(view: View) -> None:
            frames = self._at_or_below(view, name)
            if not frames:
                raise RefusedCommand(f"The path {name} does not exist")
            for frame in frames:
                self._frames.store.delete(frame)

        self._frames.write(delete)
        return f"Successfully deleted {name}"

    def rename(self, old_path: object, new_path: object) -> str:
        old, new = checked_path(old_path), checked_path(new_path)
        if old == ROOT:
            raise RefusedCommand("Cannot rename the /memories directory itself")

        def rename(view: View) -> None:
            if self._exists(view, new):
                raise RefusedCommand(f"The destination {new} already exists")
            frames = self._at_or_below(view, old)
            if not frames:
                raise RefusedCommand(f"The path {old} does not exist")
            if new.startswith(f"{old}/"):
                raise RefusedCommand(f"Cannot rename {old} to a path below it")
            self._check_parents(view, new)
            renamed: dict[str, Any] = {}
            for frame in frames:
                path = new + _path_of(frame)[len(old) :]
                if path not in renamed:
                    renamed[path] = self._put(view, path, _content_of(frame))
                self._frames.store.supersede(frame, renamed[path])

        self._frames.write(rename, is_alone=True)
        return f"Successfully renamed {old} to {new}"

    def clear(self) -> str:
        def clear(view: View) -> None:
            for frame in self._frames.below(view, f"{ROOT}/"):
                self._frames.store.delete(frame)

        self._frames.write(clear)
        return "All memory cleared"

    def undo(self, path: object) -> str:
        """Write the version before the last edit again; see `CerataMemoryTool.undo`."""
        name = checked_path(path)

        def undo(view: View) -> str:
            frame = self._frames.current(view, name)
            if frame is None:
                version = self._deleted(view, name)
                if version is None:
                    raise _missing(name)
                if self._exists(view, name):
                    raise RefusedCommand(f"The path {name} is not a file.")
            else:
                version = self._before(view, frame)
                if version is None:
                    raise RefusedCommand(
                        f"There is no version of {name} before this one",
                        remedy="Delete the file to undo its creation.",
                    )
            target = _path_of(version)
            if target != name and self._exists(view, target):
                raise RefusedCommand(f"The destination {target} already exists")
            self._check_parents(view, target)
            new = self._put(view, target, _content_of(version), restores=version.id)
            if frame is not None and target != name:
                self._frames.store.supersede(frame, new)
            return target

        target = self._frames.write(undo, is_alone=True)
        return f"Successfully restored {target}"

    # --- helpers ---------------------------------------------------------------------------------

    def _put(self, view: View, path: str, text: str, *, restores: int | None = None) -> Any:
        self._frames.check_free(view, path, "Pass another path.")
        metadata: dict[str, Any] = {} if text else {_EMPTY: True}
        if restores is not None:
            metadata[_RESTORES] = restores
        return self._frames.store.put_frame(
            text or b"\0", kind=FILE, uri=path, metadata=metadata, options=PutOptions(replace=True)
        )

    def _edit(self, path: str, change: Callable[[str], tuple[str, str]]) -> str:
        """Write the changed content of a file, and return the second part of the change."""

        def edit(view: View) -> str:
            frame = self._frames.current(view, path)
            if frame is None:
                if self._is_directory(view, path):
                    raise RefusedCommand(f"The path {path} is not a file.")
                raise _missing(path)
            content, shown = change(_content_of(frame))
            self._put(view, path, content)
            return shown

        return self._frames.write(edit)

    def _is_directory(self, view: View, path: str) -> bool:
        return path == ROOT or next(self._frames.below(view, f"{path}/"), None) is not None

    def _exists(self, view: View, path: str) -> bool:
        return self._frames.current(view, path) is not None or self._is_directory(view, path)

    def _check_parents(self, view: View, path: str) -> None:
        for parent in parents_of(path):
            if self._frames.current(view, parent) is not None:
                raise RefusedCommand(f"The path {parent} is not a directory.")

    def _at_or_below(self, view: View, path: str) -> list[Frame]:
        """Return the file with a path, or the files of a directory; of each the newest first."""
        frames = self._frames.all_current(view, path)
        return frames or list(self._frames.below(view, f"{path}/"))

    def _deleted(self, view: View, path: str) -> Frame | None:
        """Return the version of a file that was deleted last, if it was not moved."""
        frames = view.frames(Filter(kind=FILE, uri_prefix=path, include_deleted=True))
        versions = (each for each in frames if each.uri == path and self._frames.is_own(each))
        return next(versions, None)

    def _before(self, view: View, frame: Frame) -> Frame | None:
        """Return the version before one, or before the version that an `undo` restored."""
        while (restored := frame.metadata.get(_RESTORES)) is not None:
            frame = view.frame(cast("int", restored))
        own = filter(self._frames.is_own, map(view.frame, frame.supersedes))
        return next(own, None)


def _checked_text(name: str, text: object) -> str:
    if not isinstance(text, str) or not is_unicode(text):
        raise RefusedCommand(f"{name} must be a text, got: {text!r:.60}", remedy="Pass a string.")
    return text


def _missing(path: str) -> RefusedCommand:
    return RefusedCommand(f"The path {path} does not exist. Please provide a valid path.")


def _path_of(frame: Frame) -> str:
    return cast("str", frame.uri)


def _content_of(frame: Frame) -> str:
    return "" if frame.metadata.get(_EMPTY) else frame.text


def _size_of(frame: Frame) -> int:
    return 0 if frame.metadata.get(_EMPTY) else frame.size


# --- The answers of the memory tool, in the words of `BetaLocalFilesystemMemoryTool` --------------


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
