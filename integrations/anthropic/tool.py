# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""`CerataMemoryTool` and its async twin: Claude's memory tool over a memory.

Owns the SDK's classes. Leaves out the commands (`files`).
"""

from typing import Any, Final

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from cerata.memory.store import Store

from ..threads import finished
from .files import MemoryFiles, RefusedCommand

COMMANDS: Final = ("view", "create", "str_replace", "insert", "delete", "rename")


class CerataMemoryTool(BetaAbstractMemoryTool):
    """Keeps the files of Claude's memory tool in a memory; any thread may use it.

    - Reads and writes exactly the scope of its store.
    - Each command is one durable batch, and each edit a version, which `undo` takes back.
    - Changed and deleted files stay in the log, and in earlier views.
    """

    def __init__(self, store: Store, *, cache_control: Any = None) -> None:
        """Keep the files in a store.

        Args:
            store: An open store; a `scoped` store for the files of a tenant or user.
            cache_control: The SDK's cache control of the tool's definition; default none.

        Raises:
            InvalidInput: ``store`` is no store.
        """
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(store)

    @property
    def store(self) -> Store:
        """The memory that keeps the files."""
        return self._files.store

    def execute(self, command: Any) -> Any:
        _check_command(command)
        return super().execute(command)

    def view(self, command: Any) -> str:
        return self._files.view(_argument(command, "path"), _argument(command, "view_range"))

    def create(self, command: Any) -> str:
        return self._files.create(_argument(command, "path"), _argument(command, "file_text"))

    def str_replace(self, command: Any) -> str:
        return self._files.str_replace(
            _argument(command, "path"), _argument(command, "old_str"), _argument(command, "new_str")
        )

    def insert(self, command: Any) -> str:
        return self._files.insert(
            _argument(command, "path"),
            _argument(command, "insert_line"),
            _argument(command, "insert_text"),
        )

    def delete(self, command: Any) -> str:
        return self._files.delete(_argument(command, "path"))

    def rename(self, command: Any) -> str:
        return self._files.rename(_argument(command, "old_path"), _argument(command, "new_path"))

    def clear_all_memory(self) -> str:
        return self._files.clear()

    def undo(self, path: str) -> str:
        """Write the version before the last edit of a file again, as a new version.

        Each further call goes back by one version. A deleted file comes back, and a renamed file
        gets its former path. Durable on return.

        Args:
            path: The path of the file.

        Raises:
            RefusedCommand: there is no earlier version, or its path is taken.
        """
        return self._files.undo(path)


class CerataAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The async twin of `CerataMemoryTool`; commands run in threads, and end once begun."""

    def __init__(self, store: Store, *, cache_control: Any = None) -> None:
        """Keep the files in a store; as for `CerataMemoryTool`."""
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(store)

    @property
    def store(self) -> Store:
        """The memory that keeps the files."""
        return self._files.store

    async def execute(self, command: Any) -> Any:
        _check_command(command)
        return await super().execute(command)

    async def view(self, command: Any) -> str:
        return await finished(
            self._files.view, _argument(command, "path"), _argument(command, "view_range")
        )

    async def create(self, command: Any) -> str:
        return await finished(
            self._files.create, _argument(command, "path"), _argument(command, "file_text")
        )

    async def str_replace(self, command: Any) -> str:
        replace = self._files.str_replace
        return await finished(
            replace,
            _argument(command, "path"),
            _argument(command, "old_str"),
            _argument(command, "new_str"),
        )

    async def insert(self, command: Any) -> str:
        insert = self._files.insert
        return await finished(
            insert,
            _argument(command, "path"),
            _argument(command, "insert_line"),
            _argument(command, "insert_text"),
        )

    async def delete(self, command: Any) -> str:
        return await finished(self._files.delete, _argument(command, "path"))

    async def rename(self, command: Any) -> str:
        return await finished(
            self._files.rename, _argument(command, "old_path"), _argument(command, "new_path")
        )

    async def clear_all_memory(self) -> str:
        return await finished(self._files.clear)

    async def undo(self, path: str) -> str:
        """Write the version before the last edit again; as `CerataMemoryTool.undo`."""
        return await finished(self._files.undo, path)


def _check_command(command: object) -> None:
    name = getattr(command, "command", None)
    if name not in COMMANDS:
        raise RefusedCommand(f"Unknown command: {name}", remedy=f"Use {', '.join(COMMANDS)}.")


def _argument(command: object, name: str) -> Any:
    """Return an argument; None for one that the model left out, which its check refuses."""
    return getattr(command, name, None)
