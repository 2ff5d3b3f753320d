"""Seals: what the columns of a fold held when its last step was complete.

Owns a check that is independent of the digest. After each step of a fold the seal counts the items
of every effect column and hashes those that are new; before a digest or a chunk is made, the
columns are counted and hashed again from memory. A step that stopped half way, a change of an item
that was folded already, and a fault of memory all show as a difference, so that no checkpoint saves
them. Complete blocks of 4,096 events are held against the leaf of the digest that was computed when
the block ended; the seal covers what follows them.

Cost: a count for each column and step; a hash of each item when it is folded, and one of the items
since the last complete block when a digest or chunk is made.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from blake3 import blake3


class StateDamaged(Exception):
    """A fold's state in memory is not what its last complete step left."""


class Kept(Protocol):
    """Items that a fold only appends to."""

    def __len__(self) -> int: ...

    def bytes_from(self, start: int) -> bytes:
        """Return the bytes of the items from one on, the same however they were appended."""
        ...


class Seal:
    """The counts and hashes of what a fold keeps, as of its last complete step.

    - ``kept`` returns the same things in the same order each time, new ones last.
    - ``_starts`` are the counts at the end of the last complete block, ``_counts`` those after the
      last step, ``_hashers`` have taken the items in between.
    """

    def __init__(self, kept: Callable[[], Sequence[Kept]]) -> None:
        self._kept = kept
        self._starts: list[int] = []
        self._counts: list[int] = []
        self._hashers: list[blake3] = []

    def extend(self) -> None:
        """Take in what a complete step appended."""
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

    def replaced(self, empty: Kept) -> None:
        """Start anew with the first of the things kept, which is another, empty one now."""
        assert not len(empty)
        self._starts[:1] = self._counts[:1] = [0]
        self._hashers[:1] = [blake3()]

    def restart(self) -> None:
        """Start anew at the end of a block, whose items the leaf of the block covers."""
        counts = [len(items) for items in self._kept()]
        self._starts, self._counts = counts, [*counts]
        self._hashers = [blake3() for _ in counts]

    def check_counts(self) -> None:
        """Raise `StateDamaged` if anything was appended or lost since the last complete step."""
        counts = [len(items) for items in self._kept()]
        if counts[: len(self._counts)] != self._counts or any(counts[len(self._counts) :]):
            raise StateDamaged("the columns of a fold have other lengths than its last step left")

    def check(self) -> None:
        """Raise `StateDamaged` if the items since the last complete block are others."""
        self.check_counts()
        for items, start, hasher in zip(self._kept(), self._starts, self._hashers, strict=False):
            if blake3(items.bytes_from(start)).digest() != hasher.digest():
                raise StateDamaged("an item that was folded is another one in memory")
