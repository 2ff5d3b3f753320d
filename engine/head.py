"""Heads: points of the log that a caller can keep, and what an append gives back."""

from dataclasses import dataclass, field
from typing import Protocol


class Hashes(Protocol):
    """What computes the hashes of a log's points."""

    def chain_at(self, seq: int) -> bytes: ...

    def root_at(self, seq: int) -> bytes: ...


@dataclass(frozen=True)
class Head:
    """A point of the log: what a reader can keep, and later hold the file against.

    ``chain`` and ``root`` are computed when asked for; ``recorded`` is microseconds since 1970.
    """

    seq: int
    recorded: int
    _log: Hashes = field(repr=False, compare=False)

    @property
    def chain(self) -> bytes:
        """The chain hash after event ``seq``."""
        return self._log.chain_at(self.seq)

    @property
    def root(self) -> bytes:
        """The Merkle root over the leaves of events 1 to ``seq``."""
        return self._log.root_at(self.seq)


@dataclass(frozen=True)
class Appended:
    """What an append did. ``replayed``: its idempotency key was there; nothing was written."""

    first_seq: int
    last_seq: int
    durable: bool
    head: Head
    replayed: bool = False
