"""Pending ids: the ids −1, −2, … of drafts: those of a transaction become seqs with its batch."""

from collections.abc import Callable

from cerata.engine.errors import NotFound


class PendingIds:
    """The ids of one block, shared by all values that calls and reads in the block return.

    - In the open block an id is valid as it is; after the block it means an event of the batch.
    - Elsewhere, and after a block that wrote nothing, the ids mean nothing.
    - The ids of speculative drafts mean nothing but in the view that has the drafts.
    """

    __slots__ = ("_is_inside", "_is_speculative", "batch")

    def __init__(
        self,
        is_inside: Callable[[], bool],
        batch: tuple[int, int] | None = None,
        *,
        is_speculative: bool = False,
    ) -> None:
        self._is_inside = is_inside
        self._is_speculative = is_speculative
        self.batch = batch
        """The first and the last seq of the batch, once it is written."""

    def id_of(self, number: int) -> int:
        """Return the id that a number from the block has for the caller, now.

        Raises:
            NotFound: the block has written nothing, and the caller is not in it.
        """
        if number >= 0:
            return number
        if self.batch is not None:
            return self.batch[0] - number - 1
        if self._is_inside():
            return number
        if self._is_speculative:
            raise NotFound(
                f"The id {number:,} belongs to speculative events, which are not in the log",
                remedy="Use it with the view that has the events, or append them.",
            )
        raise NotFound(
            f"The id {number:,} belongs to a transaction that has written nothing",
            remedy="Use it inside its block, or after the block has ended without an error.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_speculative if self._is_speculative else _elsewhere), (self.batch,)


def _elsewhere(batch: tuple[int, int] | None) -> PendingIds:
    """Return a copy for another process, in which the block is never open."""
    return PendingIds(lambda: False, batch)


def _speculative(batch: tuple[int, int] | None) -> PendingIds:
    """Return a copy of the ids of speculative drafts for another process."""
    return PendingIds(lambda: False, batch, is_speculative=True)
