"""The contract of projections, and the digest that proves their state.

Owns the `Projection` protocol, the salt that separates versions, and `BlockDigests`. Leaves out
files: a store decides when to fold, where chunks are stored, and which thread folds (a single
thread at a time).

A projection at seq n is a pure function of events 1 … n. It turns each event into *effects*, which
are only appended, so the state at an earlier seq is a prefix of the state at a later seq:

    leaf_b   = H(0x00 ‖ salt ‖ b u64 ‖ effects of events 4096·b + 1 … 4096·(b + 1))
    digest_n = H(salt ‖ n u64 ‖ Merkle root of the leaves, the last possibly partial)

H is BLAKE3-256; the tree is `cerata.engine.integrity.Tree`, whose nodes are SHA-256. No float
enters a digest.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar, cast

import msgspec
from blake3 import blake3

from cerata.engine.events import Erased, Event, EventBody, Scope
from cerata.engine.integrity import HASH_SIZE, Tree
from cerata.engine.late import late

from ..columnar.columns import (
    U8,
    AnyColumn,
    Column,
    Columns,
    encode_columns,
    has_items,
    require,
)
from .seal import StateDamaged

if TYPE_CHECKING:
    import numpy as np

    from ..columnar.scopes import Reach
else:
    np = late("numpy")

BLOCK_SEQS: Final = 4096
"""Events under one leaf of the digest. On disk: never change."""

_WITHOUT_EFFECT: Final = frozenset({"salt", "range", "blocks", "sum"})
"""The columns that a chunk without an effect has, too."""

Parameter: TypeAlias = str | int | bool
Parameters: TypeAlias = Mapping[str, Parameter]


class EventParts(Protocol):
    """The parts of an event that a projection may read."""

    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def recorded(self) -> int: ...
    @property
    def scope(self) -> Scope | None:
        """None for an erased event, which lies within no scope."""
        ...

    @property
    def causation(self) -> int | None: ...
    @property
    def body(self) -> EventBody | Erased: ...


FoldedEvent: TypeAlias = Event | EventParts
"""An event of the log, or any object with its parts. `Event` has these parts, but pyright does not
accept its cached property as a property."""


class Projection(Protocol):
    """A pure fold of the log.

    - A single thread at a time may call it; any thread may use snapshots.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def parameters(self) -> Parameters:
        """The settings that determine the state, too; other parameters mean another projection."""
        ...

    @property
    def seq(self) -> int:
        """The last event folded."""
        ...

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold the events ``seq + 1``, ``seq + 2``, …; never fails on a valid log.

        Raises:
            ValueError: the events do not follow ``seq``.
            ProjectionFailed: a user's code raised; every event before the failure is folded.
        """
        ...

    def digest(self) -> bytes:
        """Return a 32-byte hash of the state at ``seq``; O(events since the last call)."""
        ...

    def digest_at(self, seq: int) -> bytes:
        """Return the digest at the last complete range (see `seal`), or at ``seq``."""
        ...

    def check(self) -> None:
        """Compare the state in memory with the seals of the fold's steps; see `seal`.

        `chunk` compares the complete blocks that it covers.

        Raises:
            StateDamaged: they differ; no chunk may be saved from this state.
        """
        ...

    def check_digest(self, seq: int, digest: bytes) -> None:
        """Compare the state at the last checkpoint with the saved digest.

        A fold of rows compares them only if that state is in memory.

        Raises:
            StateDamaged: they differ.
        """
        ...

    def chunk(self, after: int, through: int | None = None) -> bytes:
        """Return the canonical bytes of the effects of events ``after + 1`` … ``through``.

        ``through`` is by default ``seq``. The events must be a range of the layout at ``seq`` (see
        `seal`), or those after its last range. The bytes depend on the events alone, never on the
        steps of the fold. Loading the chunks in order restores the state.
        """
        ...

    def has_chunk(self, after: int, through: int, data: bytes) -> bool:
        """Return whether `chunk` gives these bytes; the blocks are not compared with the digest.

        Raises:
            ValueError: the events are no such range.
        """
        ...

    def skip(self, through: int) -> None:
        """Take over the range of events after ``seq`` up to ``through``, which have no effect.

        The state is then that after a load of their chunk, of which `is_idle` is true.
        """
        ...

    def load(self, *chunks: bytes) -> None:
        """Append the effects of chunks; the first chunk starts after ``seq``.

        Raises:
            Corrupt: the bytes are damaged, are of another projection, or do not follow ``seq``.
                The state is then unchanged, or that at the end of a chunk.
        """
        ...


class Forkable(Projection, Protocol):
    """A projection that an open transaction forks, to fold its drafts over the log's events."""

    def fork(self, seq: int) -> Self:
        """Return an independent projection at ``seq`` that shares the state so far."""
        ...


ReaderType = TypeVar("ReaderType")
ReaderType_co = TypeVar("ReaderType_co", covariant=True)


class Readers(Protocol[ReaderType_co]):
    """A state of columns; immutable, for any thread."""

    def at(self, n: int, reach: "Reach | None") -> ReaderType_co:
        """Return a reader of the state at event ``n``, of the scopes that ``reach`` admits."""
        ...


class Readable(Projection, Protocol[ReaderType_co]):
    """A projection of columns that a snapshot reads by its class.

    - ``drafted`` are wire names. If a transaction has a draft of such an event, a read in the
      transaction has the drafts, too; the projection is then `Forkable`. Else it has the log alone.
    """

    drafted: ClassVar[frozenset[str]]

    def snapshot(self) -> Readers[ReaderType_co]:
        """Return the state at ``seq``, which no later event changes."""
        ...


def salt_of(name: str, version: int, parameters: Parameters) -> bytes:
    """Return a 32-byte hash of a name, version and parameters."""
    identity = [name, version, sorted(parameters.items())]
    return blake3(msgspec.msgpack.encode(identity)).digest()


def check_follows(seq: int, first: int, last: int, count: int) -> None:
    """Raise `ValueError` unless ``count`` events, ``first`` to ``last``, run from ``seq + 1``."""
    if first != seq + 1 or last != seq + count:
        raise ValueError(
            f"the fold is at seq {seq:,}; {count:,} events from {first:,} to {last:,} do not follow"
        )


Events = TypeVar("Events", bound=Sequence[FoldedEvent])


def steps_of(seq: int, events: Events, size: int) -> list[Events]:
    """Return the events after ``seq`` in steps that end at each multiple of ``size``."""
    count = len(events)
    start = 0
    end = size - seq % size
    steps: list[Events] = []
    while start < count:
        # A slice of a list is a list, and that of a batch a batch.
        steps.append(events if not start and count <= end else cast("Events", events[start:end]))
        start = end
        end += size
    return steps


class BlockDigests:
    """Digests of complete blocks, and the root over them.

    - The first ``count`` blocks are complete and hashed.
    """

    def __init__(self, salt: bytes) -> None:
        self.salt = salt
        self._leaves = Column(np.uint8)
        self._tree = Tree()

    @property
    def count(self) -> int:
        return self._tree.size

    def leaf(self, block: int, effects: Mapping[str, AnyColumn]) -> bytes:
        """Return the leaf of a block with these effects."""
        data = encode_columns(effects)
        return blake3(b"\x00" + self.salt + block.to_bytes(8, "little") + data).digest()

    def complete(self, seq: int, effects: Callable[[int, int], Mapping[str, AnyColumn]]) -> None:
        """Hash the blocks that end at or before ``seq``.

        ``effects(after, through)`` returns the columns of a range of events.
        """
        while ((block := self._tree.size) + 1) * BLOCK_SEQS <= seq:
            after = block * BLOCK_SEQS
            leaf = self.leaf(block, effects(after, after + BLOCK_SEQS))
            self._extend(np.frombuffer(leaf, np.uint8))

    def root(self, seq: int, effects: Callable[[int, int], Mapping[str, AnyColumn]]) -> bytes:
        """Return the digest at ``seq``, any seq up to the last folded event."""
        blocks = seq // BLOCK_SEQS
        if self._tree.size < blocks:
            self.complete(seq, effects)
        tree = self._tree
        if blocks < tree.size:
            tree = Tree().extend(self._leaf_list(0, blocks))
        if seq % BLOCK_SEQS:
            after = blocks * BLOCK_SEQS
            tree = tree.extend([self.leaf(blocks, effects(after, seq))])
        return blake3(self.salt + seq.to_bytes(8, "little") + tree.root()).digest()

    def recheck(
        self, after: int, through: int, effects: Callable[[int, int], Mapping[str, AnyColumn]]
    ) -> None:
        """Raise `StateDamaged` unless the blocks within a range still hash to their leaves.

        Cost: a hash of these blocks.
        """
        first = -(-after // BLOCK_SEQS)
        end = min(through // BLOCK_SEQS, self._tree.size)
        if first >= end:
            return
        for block, leaf in enumerate(self._leaf_list(first, end), start=first):
            start = block * BLOCK_SEQS
            if self.leaf(block, effects(start, start + BLOCK_SEQS)) != leaf:
                raise StateDamaged(f"the effects of block {block} in memory differ from its digest")

    def share(self, digests: "BlockDigests", seq: int) -> None:
        """Become the digests of another fold's blocks up to ``seq``."""
        count = min(digests.count, seq // BLOCK_SEQS)
        self._leaves.share(digests._leaves, count * HASH_SIZE)
        self._tree = Tree().extend(self._leaf_list(0, count))

    def leaves(self, after: int, through: int) -> U8:
        """Return the concatenated leaves of the blocks that end in (after, through]."""
        start = after // BLOCK_SEQS
        end = through // BLOCK_SEQS
        return self._leaves.buffer[start * HASH_SIZE : end * HASH_SIZE]

    def load(self, leaves: U8) -> None:
        """Append the leaves of a chunk that `check` accepted."""
        self._extend(leaves)

    def check(self, leaves: U8, after: int, through: int) -> None:
        """Raise `Corrupt` unless a chunk has a leaf for each block that ends in its range."""
        expected = through // BLOCK_SEQS - after // BLOCK_SEQS
        require(len(leaves) == expected * HASH_SIZE, "its block digests do not match its range")

    def _leaf_list(self, start: int, end: int) -> list[bytes]:
        data = self._leaves.view()[start * HASH_SIZE : end * HASH_SIZE].tobytes()
        return [data[i : i + HASH_SIZE] for i in range(0, len(data), HASH_SIZE)]

    def _extend(self, leaves: U8) -> None:
        start = self.count
        self._leaves.extend(leaves)
        self._tree = self._tree.extend(self._leaf_list(start, len(self._leaves) // HASH_SIZE))


def chunk_head(salt: bytes, after: int, through: int) -> dict[str, AnyColumn]:
    """Return the first columns of every chunk: the projection's salt, and the range of events."""
    return {"salt": np.frombuffer(salt, np.uint8), "range": np.array([after, through], np.int64)}


def is_idle(chunk: bytes) -> bool:
    """Return whether a chunk that this process encoded has no effect."""
    return not has_items(chunk, but=_WITHOUT_EFFECT)


def check_head(columns: Columns, salt: bytes, seq: int) -> int:
    """Return the last seq of a chunk.

    Raises:
        Corrupt: the chunk is of another projection, or does not follow ``seq``.
    """
    require(columns.raw("salt") == salt, "it belongs to another projection or version")
    span = [*columns.integers("range", "<i8")]
    require(
        len(span) == 2 and span[0] == seq and span[1] > seq,
        f"its range {span} does not follow seq {seq:,}",
    )
    return span[1]


def check_range(after: int, through: int, seq: int) -> None:
    """Raise `ValueError` unless 0 ≤ after ≤ through ≤ seq."""
    if not 0 <= after <= through <= seq:
        raise ValueError(f"events {after:,} to {through:,} are no range of a fold at seq {seq:,}")
