"""Handles: objects that belong to one process, since they hold its open file and its locks."""

from typing import ClassVar, NoReturn

from .errors import CerataError, OutcomeUnknown, StorageFailed, Unsupported


class Handle:
    """An object that cannot be pickled or copied; ``_instead`` is the remedy."""

    _instead: ClassVar[str] = "Pass the file's path, and open it there."

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            f"A {type(self).__name__} cannot be copied or pickled; it belongs to its process",
            remedy=self._instead,
        )


# --- Poison: the failure after which a handle refuses calls, since the disk's state is unknown ----
#
# Owned by one `Log` and shared with its `Writer`, so that neither references the other: a handle
# that is dropped without `close` frees its file at once, not at the next run of the cycle
# collector.


class Poison:
    """The reason why a handle refuses its calls; ``failure`` is None until then."""

    __slots__ = ("_path", "failure")

    def __init__(self, path: str) -> None:
        self._path = path
        self.failure: CerataError | None = None

    def take(self, error: StorageFailed) -> OutcomeUnknown:
        """Refuse every later call, and return the error to raise."""
        failure = OutcomeUnknown(
            f"The state of the disk is unknown: {error.what}",
            where=self._path,
            remedy="Open the file again; recovery shows which events survived.",
        )
        self.failure = failure
        return failure
