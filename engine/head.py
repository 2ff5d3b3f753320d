"""Heads: points of the log that a caller can store, and the result of an append."""

from typing import Protocol

import msgspec

from .errors import CerataError, Closed
from .log_file.lineage import Identity


class Hashes(Protocol):
    """Computes the hashes of a log's points."""

    @property
    def log_id(self) -> bytes: ...

    @property
    def identity(self) -> Identity: ...

    def chain_at(self, seq: int) -> bytes: ...

    def root_at(self, seq: int) -> bytes: ...


class Head(msgspec.Struct, frozen=True, eq=False):
    """A point of the log, which a reader can store and later compare with the file.

    ``chain`` and ``root`` are computed on access; ``recorded`` is microseconds since 1970. A
    struct, since every append creates one.
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

    def __ne__(self, other: object) -> bool:
        # A struct compares by identity here, and does not ask __eq__.
        return not self == other

    def __hash__(self) -> int:
        return hash((self.seq, self.recorded))

    def __reduce__(self) -> tuple[object, ...]:
        # The log stays in its process: a copy holds the hashes, or None if they are unavailable.
        try:
            hashes = HeadHashes(self.identity, self.chain, self.root)
        except CerataError:
            hashes = HeadHashes(self.identity, None, None)
        return Head, (self.seq, self.recorded, hashes)

    @property
    def log_id(self) -> bytes:
        """The id of the log (16 bytes), which its backups share."""
        return self._log.log_id

    @property
    def identity(self) -> Identity:
        """The log's id and that of its newest branch, by which forks differ."""
        return self._log.identity

    @property
    def chain(self) -> bytes:
        """The chain hash after event ``seq``."""
        return self._log.chain_at(self.seq)

    @property
    def root(self) -> bytes:
        """The Merkle root over the leaves of events 1 to ``seq``."""
        return self._log.root_at(self.seq)

    @property
    def text(self) -> str:
        """The head as text, ``SEQ:ROOT:LOG``, to store elsewhere and to pass to `Store.verify`."""
        return f"{self.seq}:{self.root.hex()}:{self.log_id.hex()}"


class HeadHashes(msgspec.Struct, frozen=True):
    """The hashes of a copied or pickled head; None if its log was closed at the time."""

    identity: Identity
    chain: bytes | None
    root: bytes | None

    @property
    def log_id(self) -> bytes:
        return self.identity.log_id

    def chain_at(self, seq: int) -> bytes:
        return self._require(self.chain, seq)

    def root_at(self, seq: int) -> bytes:
        return self._require(self.root, seq)

    def _require(self, value: bytes | None, seq: int) -> bytes:
        if value is None:
            raise Closed(
                f"The head at event {seq:,} was copied after its store was closed, without hashes",
                remedy=f"Open the file again and read at({seq}).head.",
            )
        return value


class Appended(msgspec.Struct, frozen=True):
    """The result of an append. ``replayed``: the idempotency key existed; nothing was written."""

    first_seq: int
    last_seq: int
    durable: bool
    head: Head
    replayed: bool = False
