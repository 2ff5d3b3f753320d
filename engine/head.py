"""Heads: points of the log that a caller can keep, and what an append gives back."""

from typing import Protocol

import msgspec


class Hashes(Protocol):
    """What computes the hashes of a log's points."""

    @property
    def log_id(self) -> bytes: ...

    def chain_at(self, seq: int) -> bytes: ...

    def root_at(self, seq: int) -> bytes: ...


class Head(msgspec.Struct, frozen=True, eq=False):
    """A point of the log: what a reader can keep, and later hold the file against.

    ``chain`` and ``root`` are computed when asked for; ``recorded`` is microseconds since 1970.
    A struct, since every append makes one.
    """

    seq: int
    recorded: int
    _log: Hashes

    def __repr__(self) -> str:
        return f"Head(seq={self.seq}, recorded={self.recorded})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Head):
            return NotImplemented
        return (self.seq, self.recorded) == (other.seq, other.recorded)

    def __hash__(self) -> int:
        return hash((self.seq, self.recorded))

    @property
    def log_id(self) -> bytes:
        """The id of the log (16 bytes), which its backups share."""
        return self._log.log_id

    @property
    def chain(self) -> bytes:
        """The chain hash after event ``seq``."""
        return self._log.chain_at(self.seq)

    @property
    def root(self) -> bytes:
        """The Merkle root over the leaves of events 1 to ``seq``."""
        return self._log.root_at(self.seq)


class Appended(msgspec.Struct, frozen=True):
    """What an append did. ``replayed``: its idempotency key was there; nothing was written."""

    first_seq: int
    last_seq: int
    durable: bool
    head: Head
    replayed: bool = False
