"""The fold that a built-in projection is: events into columns, and these into digests and chunks.

Owns what `frames` and `facts` share of what `projection` promises. Which columns there are, and
what an event appends to them, is theirs.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from cerata.engine.events import Scope

from .columns import AnyColumn, Columns, decode_columns, encode_columns
from .names import NO_NAME
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
)
from .seal import Kept, Seal, StateDamaged


class FoldedColumns(Protocol):
    """The columns of a projection, appended by one thread."""

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        ...

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return what a chunk holds of these events besides, so that loading need not derive it."""
        ...

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        ...

    def kept(self) -> Sequence[Kept]:
        """Return the things that the fold appends to, new ones last, but no derived columns."""
        ...

    @property
    def size_bytes(self) -> int: ...


class ScopedColumns(FoldedColumns, Protocol):
    """The columns of a projection that keeps where its events were written."""

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, a new one if event ``seq`` is the first to have it."""
        ...


ColumnsType = TypeVar("ColumnsType", bound=FoldedColumns)
ScopedType = TypeVar("ScopedType", bound=ScopedColumns)


class ColumnFold(ABC, Generic[ColumnsType]):
    """A projection whose state is columns in order of seq. One thread at a time may call it."""

    name: ClassVar[str]
    version: ClassVar[int]

    def __init__(self, columns: ColumnsType) -> None:
        self._seq = 0
        self._columns = columns
        self._digests = BlockDigests(salt_of(self.name, self.version, self.parameters))
        self._seal = Seal(columns.kept)

    @property
    def parameters(self) -> Parameters:
        return {}

    @property
    def seq(self) -> int:
        return self._seq

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        if not events:
            return
        check_follows(self._seq, events)
        self._seal.check_counts()
        start = 0
        while start < len(events):
            step = events[start : start + BLOCK_SEQS - self._seq % BLOCK_SEQS]
            self._fold(step)
            start += len(step)
            self._seq += len(step)
            self._seal.extend()
            if self._seq % BLOCK_SEQS == 0:
                self._seal.check()
                self._digests.complete(self._seq, self._columns.effects)
                self._seal.restart()

    @abstractmethod
    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        """Append what the next events say; never fails on a valid log."""

    def check(self) -> None:
        self._seal.check()

    def check_digest(self, seq: int, digest: bytes) -> None:
        if seq <= self._seq and self.digest_at(seq) != digest:
            raise StateDamaged("the state at the last checkpoint is another one in memory")

    # --- digest and chunks -----------------------------------------------------------------------

    def digest(self) -> bytes:
        return self._digests.root(self._seq, self._columns.effects)

    def digest_at(self, seq: int) -> bytes:
        """Return the digest at an earlier seq; O(one block of events)."""
        check_range(0, seq, self._seq)
        return self._digests.root(seq, self._columns.effects)

    def chunk(self, after: int, through: int | None = None) -> bytes:
        end = self._seq if through is None else through
        check_range(after, end, self._seq)
        self._digests.recheck(after, end, self._columns.effects)
        return encode_columns(
            {
                **chunk_head(self._digests.salt, after, end),
                "blocks": self._digests.leaves(after, end),
                **self._columns.effects(after, end),
                **self._columns.derived(after, end),
            }
        )

    def load(self, *chunks: bytes) -> None:
        self._seal.check_counts()
        parts, through = [decode_columns(chunk) for chunk in chunks], self._seq
        for part in parts:
            through = check_head(part, self._digests.salt, through)
        columns = Columns.end_to_end(parts)
        self._digests.check(columns.u8("blocks"), self._seq, through)
        self._columns.load(columns, self._seq, through)
        self._digests.load(columns.u8("blocks"))
        self._seq = through
        self._seal.restart()

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns."""
        return self._columns.size_bytes


class ScopedFold(ColumnFold[ScopedType], ABC):
    """A fold whose columns keep where its events were written."""

    def __init__(self, columns: ScopedType) -> None:
        super().__init__(columns)
        # The last scope seen and its code: neighbours mostly share one object.
        self._last_scope: tuple[Scope, int] = ((), 0)

    def _scope_code(self, scope: Scope | None, seq: int) -> int:
        """Return the code of a scope; `NO_NAME` for the unknown one of an erased event."""
        if scope is None:
            return NO_NAME
        last, code = self._last_scope
        if (scope is not last and scope != last) or not code:
            code = self._columns.scope_code(scope, seq)
            # True equals 1, and is another scope: only strings are what they are equal to.
            if all(isinstance(value, str) for _, value in scope):
                self._last_scope = (scope, code)
        return code
