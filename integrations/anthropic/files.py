# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The files of the memory tool as frames, and its commands.

Owns what each command reads and writes, and `undo`. Leaves out the tool's classes (`tool`), paths
(`paths`) and answers (`texts`). A file is a frame of kind ``anthropic.file`` whose URI is its path;
an edit is a version that supersedes it. A directory is there while a file is below it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from cerata.engine.arguments import is_integer, is_unicode
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame
from cerata.memory.values.options import PutOptions
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter

from ..frames_of_scope import FramesOfScope
from .pack import ROLE
from .paths import ROOT, checked_path, parents_of
from .refusal import RefusedCommand
from .texts import LINES_MAX, lines_with, listing, shown_range, snippet

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
