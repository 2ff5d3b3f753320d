"""Handles: objects that belong to one process, since they hold its open file and its locks."""

from typing import ClassVar, NoReturn

from .errors import Unsupported


class Handle:
    """An object that cannot be pickled or copied; ``_instead`` is the remedy."""

    _instead: ClassVar[str] = "Pass the file's path, and open it there."

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            f"A {type(self).__name__} cannot be copied or pickled; it belongs to its process",
            remedy=self._instead,
        )
