"""The append-only columns of a fold, as seals count and hash them."""

from typing import Protocol


class AppendOnly(Protocol):
    """A sequence of items to which a fold only appends."""

    def __len__(self) -> int: ...

    def bytes_from(self, start: int) -> bytes:
        """Return the bytes of the items from index ``start`` on.

        The bytes do not depend on the division of the items into appends.
        """
        ...
