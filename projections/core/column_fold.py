"""The base of the built-in folds: events into columns, columns into digests and chunks.

Owns the part of the `projection` contract that all built-in folds but those of rows share. Leaves
out the columns themselves and the effects of an event, which each projection defines.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypeVar, cast

from cerata.engine.events import Scope
from cerata.engine.late import late

from ..columnar.columns import (
    AnyColumn,
    AppendOnly,
    Column,
    Columns,
    decode_columns,
    encode_columns,
)
from ..columnar.names import NO_NAME
from .event_batch import EventBatch
from .projection import (
    BLOCK_SEQS,
    BlockDigests,
    FoldedEvent,
    Parameters,
    check_follows,
    check_head,
    check_range,
    chunk_head,
    salt_of,
    steps_of,
)
from .seal import Seal, StateDamaged

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")


class FoldedColumns(Protocol):
    """The columns of a projection, appended by one thread."""

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        ...

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the derived columns that a chunk stores to make loading cheaper."""
        ...

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` before any change."""
        ...

    def effect_columns(self) -> Sequence[AppendOnly]:
        """Return the collections that the fold appends to, in a stable order, none derived."""
        ...

    @property
    def size_bytes(self) -> int: ...


class ScopedColumns(FoldedColumns, Protocol):
    """The columns of a projection that stores the scope of its events."""

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, a new code if event ``seq`` is the first in that scope."""
        ...


class ForkableColumns(ScopedColumns, Protocol):
    """The columns of a projection that an open transaction forks."""

    def share(self, columns: Self, through: int) -> None:
        """Become the columns at event ``through`` of a fold, and leave that fold as it is.

        Only for new columns. Buffers are shared until an append; derived columns, in which the
        fold overwrites items, are computed again.
        """
        ...


ColumnsType = TypeVar("ColumnsType", bound=FoldedColumns)
ScopedType = TypeVar("ScopedType", bound=ScopedColumns)
ForkableType = TypeVar("ForkableType", bound=ForkableColumns)


class BlockFold(ABC):
    """A projection with effects in columns, hashed in blocks. One thread at a time may call it."""

    name: ClassVar[str]
    version: ClassVar[int]

    def __init__(self, effect_columns: Callable[[], Sequence[AppendOnly]]) -> None:
        """Create a fold; see `FoldedColumns.effect_columns`."""
        self.seq = 0
        self._digests = BlockDigests(salt_of(self.name, self.version, self.parameters))
        self._seal = Seal(effect_columns)
        self._sealed_after = 0
        """The event after which the seal covers all items."""
        self._last_digest: tuple[int, bytes] | None = None
        self._kept: tuple[int, int, dict[str, AnyColumn]] | None = None
        """The effects of the last digest, for the chunk of the same events."""
        self._expected = 0

    def expect(self, through: int) -> None:
        """Announce that chunks up to event ``through`` are loaded next, so that columns have room.

        Without room each load may copy all that was loaded before.
        """
        self._expected = through

    @property
    def parameters(self) -> Parameters:
        return {}

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        batch = events if isinstance(events, EventBatch) else EventBatch(events)
        if not batch.size:
            return
        self._kept = None
        seq = self.seq
        if (batch.first_seq, batch.last_seq) != (seq + 1, seq + batch.size):
            check_follows(seq, batch.first_seq, batch.last_seq, batch.size)
        self._seal.check_counts()
        is_step = batch.size <= BLOCK_SEQS - seq % BLOCK_SEQS
        for step in (batch,) if is_step else steps_of(seq, batch, BLOCK_SEQS):
            self._fold(step)
            self.seq += step.size
            self._seal.extend()
            if self.seq % BLOCK_SEQS == 0:
                self._end_block()

    def _end_block(self) -> None:
        self._seal.check()
        self._digests.complete(self.seq, self._effects)
        self._restart_seal()

    def _restart_seal(self) -> None:
        """Begin to seal after the last event folded."""
        self._seal.restart()
        self._sealed_after = self.seq

    @abstractmethod
    def _fold(self, events: EventBatch) -> None:
        """Append the effects of the next events; never fails on a valid log."""

    @abstractmethod
    def _effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""

    @abstractmethod
    def _stored(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of these events in a chunk."""

    @abstractmethod
    def load(self, *chunks: bytes) -> None: ...

    def check(self) -> None:
        self._seal.check()

    def check_digest(self, seq: int, digest: bytes) -> None:
        if seq > self.seq:
            return
        # If the seal covers the whole block, the block is that of which the digest was computed.
        is_sealed = self._sealed_after <= seq - seq % BLOCK_SEQS
        last = self._last_digest if is_sealed else None
        known = last[1] if last is not None and last[0] == seq else self.digest_at(seq)
        if known != digest:
            raise StateDamaged("the state in memory differs from the last checkpoint")

    # --- digest and chunks -----------------------------------------------------------------------

    def digest(self) -> bytes:
        return self._digests.root(self.seq, self._effects)

    def digest_at(self, seq: int) -> bytes:
        """Return the digest at an earlier seq; O(one block of events)."""
        if not 0 <= seq <= self.seq:
            check_range(0, seq, self.seq)
        digest = self._digests.root(seq, self._keep_effects)
        self._last_digest = seq, digest
        return digest

    def chunk(self, after: int, through: int | None = None) -> bytes:
        end = self.seq if through is None else through
        if not 0 <= after <= end <= self.seq:
            check_range(after, end, self.seq)
        if end - after >= BLOCK_SEQS:
            self._digests.recheck(after, end, self._effects)
        return self._encoded(after, end)

    def _keep_effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        effects = self._effects(after, through)
        self._kept = after, through, effects
        return effects

    def _kept_effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return `_effects`, those of the last digest if the events are the same."""
        kept = self._kept
        # The arrays keep the buffers of the columns.
        self._kept = None
        if kept is not None and kept[:2] == (after, through):
            return kept[2]
        return self._effects(after, through)

    def has_chunk(self, after: int, through: int, data: bytes) -> bool:
        check_range(after, through, self.seq)
        return self._encoded(after, through) == data

    def skip(self, through: int) -> None:
        self._seal.check_counts()
        while self.seq < through:
            self.seq = min(through, self.seq - self.seq % BLOCK_SEQS + BLOCK_SEQS)
            self._seal.extend()
            if self.seq % BLOCK_SEQS == 0:
                self._end_block()

    def _encoded(self, after: int, through: int) -> bytes:
        return encode_columns(
            {
                **chunk_head(self._digests.salt, after, through),
                "blocks": self._digests.leaves(after, through),
                **self._stored(after, through),
            }
        )


class ColumnFold(BlockFold, Generic[ColumnsType]):
    """A fold whose state is columns in order of seq."""

    def __init__(self, columns: ColumnsType) -> None:
        super().__init__(columns.effect_columns)
        self._columns = columns

    def _growing(self) -> Sequence[AppendOnly]:
        """Return the columns that grow with the log."""
        return self._columns.effect_columns()

    def _reserve(self) -> None:
        """Make room for the expected events, at the items an event that are loaded so far."""
        share = self._expected / self.seq - 1
        for column in self._growing() if share > 0 else ():
            count = column.size
            if isinstance(column, Column):
                column.reserve(int(count * share) + 1)

    def _effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        return self._columns.effects(after, through)

    def _stored(self, after: int, through: int) -> dict[str, AnyColumn]:
        columns = self._columns
        return {**self._kept_effects(after, through), **columns.derived(after, through)}

    def load(self, *chunks: bytes) -> None:
        self._seal.check_counts()
        parts = [decode_columns(chunk) for chunk in chunks]
        through = self.seq
        for part in parts:
            through = check_head(part, self._digests.salt, through)
        blocks = np.concatenate([part.u8("blocks") for part in parts])
        self._digests.check(blocks, self.seq, through)
        self._columns.load(Columns.end_to_end(parts), self.seq, through)
        self._digests.load(blocks)
        self.seq = through
        self._reserve()
        self._restart_seal()

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns."""
        return self._columns.size_bytes


class ScopedFold(ColumnFold[ScopedType], ABC):
    """A fold whose columns store the scope of its events."""

    def __init__(self, columns: ScopedType) -> None:
        super().__init__(columns)
        # The last scope and its code: consecutive events mostly share one scope object.
        self._last_scope: tuple[Scope, int] = ((), 0)

    def _scope_code(self, scope: Scope | None, seq: int) -> int:
        """Return the code of a scope; `NO_NAME` for None, the unknown scope of an erased event."""
        return self._scope_codes((scope,), (seq,))[0]

    def _scope_codes(self, scopes: Sequence[Scope | None], seqs: Sequence[int]) -> list[int]:
        """Return the code of each event's scope, in order of seq."""
        if len(scopes) > 1 and len({*map(id, scopes)}) == 1:
            return [self._scope_code(scopes[0], seqs[0])] * len(scopes)
        last, last_code = self._last_scope
        if last_code and scopes.count(last) == len(scopes):
            return [last_code] * len(scopes)
        codes: list[int] = []
        for scope, seq in zip(scopes, seqs, strict=True):
            if last_code and scope == last:
                codes.append(last_code)
            elif scope is None:
                codes.append(NO_NAME)
            else:
                code = self._columns.scope_code(scope, seq)
                # True == 1, but they are different scopes: compare only scopes of strings by ==.
                if all(isinstance(value, str) for _, value in scope):
                    last, last_code = self._last_scope = scope, code
                codes.append(code)
        return codes


class ForkableFold(ScopedFold[ForkableType], ABC):
    """A fold of which an open transaction takes a fork, to fold its drafts over the log."""

    def fork(self, seq: int) -> Self:
        """Return an independent fold at ``seq``, up to this fold's, that shares the state so far.

        Folding either of the two changes nothing in the other.
        """
        check_range(0, seq, self.seq)
        # Subclasses create their columns, so they take no argument.
        fork = cast("Callable[[], Self]", type(self))()
        fork._columns.share(self._columns, seq)
        fork._digests.share(self._digests, seq)
        fork.seq = seq
        fork._restart_seal()
        return fork
