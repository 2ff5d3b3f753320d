"""Seals: counts and hashes of the columns of a fold, as its last complete step left them.

Owns a check that is independent of the digest. After each step of a fold the seal counts the items
of every effect column and hashes those that are new; before a checkpoint is planned, the
columns are counted and hashed again from memory. A step that stopped half way, a change of an item
that was folded already, and a fault of memory all show as a difference, so that no checkpoint saves
them. A seal covers the items since the last complete block of 4,096 events, or since the last load.
Complete blocks are compared with the leaf that was hashed when the block ended, loaded items with
the digest that stands beside the checkpoint (`cerata.replay.checkpoint`).

Cost: a count for each column and step; a hash of each item when it is folded, and one of the items
that the seal covers when a checkpoint is planned.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from blake3 import blake3


class StateDamaged(Exception):
    """A fold's state in memory differs from the one that its last complete step left."""


class Kept(Protocol):
    """Items that a fold only appends to."""

    def __len__(self) -> int: ...

    def bytes_from(self, start: int) -> bytes:
        """Return the bytes of the items from one on, the same however they were appended."""
        ...


class Seal:
    """The counts and hashes of the items that a fold keeps, as of its last complete step.

    - ``kept`` returns the same things in the same order each time, new ones last.
    - ``_starts`` are the counts at the last `restart`, ``_counts`` those after the last step;
      ``_hashers`` have taken the items in between.
    """

    def __init__(self, kept: Callable[[], Sequence[Kept]]) -> None:
        self._kept = kept
        self._starts: list[int] = []
        self._counts: list[int] = []
        self._hashers: list[blake3] = []

    def extend(self) -> None:
        """Take in the items that a complete step appended."""
        kept = self._kept()
        for _ in range(len(self._counts), len(kept)):
            self._starts.append(0)
            self._counts.append(0)
            self._hashers.append(blake3())
        for place, items in enumerate(kept):
            count = len(items)
            if count != self._counts[place]:
                self._hashers[place].update(items.bytes_from(self._counts[place]))
                self._counts[place] = count

    def restart(self) -> None:
        """Start anew, at the end of a block or after a load; see the module."""
        counts = [len(items) for items in self._kept()]
        self._starts, self._counts = counts, [*counts]
        self._hashers = [blake3() for _ in counts]

    def check_counts(self) -> None:
        """Raise `StateDamaged` if items were appended or lost since the last complete step."""
        counts = [len(items) for items in self._kept()]
        if counts[: len(self._counts)] != self._counts or any(counts[len(self._counts) :]):
            raise StateDamaged("the columns of a fold have other lengths than its last step left")

    def check(self) -> None:
        """Raise `StateDamaged` if the items since the last `restart` are others."""
        self.check_counts()
        for items, start, hasher in zip(self._kept(), self._starts, self._hashers, strict=False):
            if blake3(items.bytes_from(start)).digest() != hasher.digest():
                raise StateDamaged("an item that was folded is another one in memory")
