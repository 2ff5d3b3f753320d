"""Poison: what makes a handle refuse every later call once nobody knows what the disk holds.

Owned by one `Log` and shared with its `Writer`, so that neither holds the other: a handle that is
dropped without `close` frees its file at once, not when a collector finds the cycle.
"""

from .errors import CerataError, OutcomeUnknown, StorageFailed


class Poison:
    """Why a handle refuses its calls; ``failure`` is None while it does not."""

    __slots__ = ("_path", "failure")

    def __init__(self, path: str) -> None:
        self._path = path
        self.failure: CerataError | None = None

    def take(self, error: StorageFailed) -> OutcomeUnknown:
        """Refuse every later call, and return what to raise: nobody knows what the disk holds."""
        failure = OutcomeUnknown(
            f"It is not known what the disk holds: {error.what}",
            where=self._path,
            remedy="Open the file again; it recovers, and shows which events survived.",
        )
        self.failure = failure
        return failure
