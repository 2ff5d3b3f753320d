"""The fold around a user's projection: chunks, digests, past states, and errors.

Owns `RowFold`, which implements `cerata.projections.core.projection` for a `RowProjection`. A chunk
holds the rows that differ between the two ends of each 512 events of its range, with their last
value. So chunks are small if few rows change, and all chunks together give the state at their end.

The digest at n is H(salt ‖ n u64 ‖ s), where s is the sum mod 2^512 of BLAKE3-512(row) over all
rows, little-endian. The digest does not depend on the history of the rows. Cost: O(changed rows).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
from blake3 import blake3

from cerata.engine.errors import ProjectionFailed, Unsupported
from cerata.engine.events import Erased, UnknownBody
from cerata.engine.late import late

from ..columnar.columns import AnyColumn, Columns, damaged, decode_columns, encode_columns, require
from ..columnar.string_table import joined
from ..core.event_batch import EventBatch
from ..core.projection import (
    FoldedEvent,
    Parameters,
    check_follows,
    check_head,
    check_range,
    chunk_head,
    salt_of,
    steps_of,
)
from ..core.seal import RANGE_SEQS, RANGE_SEQS_MAX, Range, StateDamaged, is_range
from .row_projection import Key, RowProjection

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

OwnProjection: TypeAlias = RowProjection[Any, Any]
MakeOwn: TypeAlias = Callable[[], OwnProjection]

_SUM_SIZE = 64
_MODULUS = 1 << (8 * _SUM_SIZE)


class _Saved(msgspec.Struct, frozen=True):
    """A complete range: its changed rows, and the sum over all rows at its end."""

    range: Range
    rows: Mapping[bytes, bytes]
    total: int


class RowFold:
    """Folds the events that a user's projection handles; created by `row_fold`.

    - ``_saved`` has the ranges of the layout at ``seq``; ``_before`` marks the rows at their end.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    def __init__(self, make: MakeOwn) -> None:
        self._make = make
        self._own = make()
        self._handled = frozenset(
            kind if isinstance(kind, str) else kind.wire_name for kind in self._own.handles
        )
        self._salt = salt_of(self.name, self.version, self.parameters)
        self.seq = 0
        self._saved: list[_Saved] = []
        self._before = self._own.rows.mark()
        self._last_unsaved: _Saved | None = None
        """The events since the last range as the last digest had them, for their chunk."""
        # The sum over all rows, updated by each step, to check the result of `_total`.
        self._sum = 0

    @property
    def parameters(self) -> Parameters:
        return self._own.parameters

    def snapshot(self) -> OwnProjection:
        """Return the user's projection with the rows at ``seq``, frozen; O(1)."""
        projection = self._make()
        projection.rows.copy_of(self._own.rows)
        projection.rows.freeze()
        return projection

    @property
    def is_by_tenant(self) -> bool:
        """True if the keys begin with a tenant."""
        return self._own.tenant_first

    def within(self, own: OwnProjection, prefix: tuple[Key, ...]) -> OwnProjection:
        """Return a frozen snapshot of the rows whose keys begin with ``prefix``; O(1)."""
        projection = self._make()
        projection.rows.copy_of(own.rows)
        projection.rows.narrow(prefix)
        return projection

    def over(self, own: OwnProjection, events: Sequence[FoldedEvent]) -> OwnProjection:
        """Return a frozen snapshot with more events folded; the events are not in the log yet.

        Raises:
            ProjectionFailed: the user's code raised.
        """
        fold = type(self)(self._make)
        fold._own.rows.copy_of(own.rows)
        fold._fold(EventBatch.of(events))
        return fold.snapshot()

    def at_range(self, seq: int) -> "RowFold":
        """Return a fold at the end of the last range that ends at or before ``seq``.

        Cost: O(rows that the earlier ranges changed).
        """
        earlier = type(self)(self._make)
        for saved in self._saved:
            if saved.range[1] <= seq:
                earlier._take(saved)
        return earlier

    # --- folding ---------------------------------------------------------------------------------

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        batch = events if isinstance(events, EventBatch) else EventBatch(events)
        if not batch.size:
            return
        self._last_unsaved = None
        if (batch.first_seq, batch.last_seq) != (self.seq + 1, self.seq + batch.size):
            check_follows(self.seq, batch.first_seq, batch.last_seq, batch.size)
        is_step = batch.size <= RANGE_SEQS - self.seq % RANGE_SEQS
        for step in (batch,) if is_step else steps_of(self.seq, batch, RANGE_SEQS):
            self._fold(step)
            if self.seq % RANGE_SEQS == 0:
                self._complete()

    def _fold(self, events: EventBatch) -> None:
        """Fold events of a range; if the user's code raises, fold those before the failing event.

        Raises:
            ProjectionFailed: the user's code raised, or an event could not be lifted.
        """
        fault: tuple[FoldedEvent, BaseException] | None
        handled, fault = self._for_user(events)
        if handled and self._try(handled) is not None:
            for event in handled:
                error = self._try([event])
                if error is not None:
                    fault = event, error
                    break
        if fault is not None:
            event, error = fault
            self.seq = event.seq - 1
            until = f"; until then read it at({event.seq - 1})" if event.seq > 0 else ""
            raise ProjectionFailed(
                f"The projection {self.name!r} cannot fold event {event.seq:,} "
                f"({event.type}): {type(error).__name__}: {error}",
                remedy=f"Fix its apply(){until}.",
                projection=self.name,
                seq=event.seq,
            ) from error
        self.seq = events.last_seq

    def _for_user(
        self, events: EventBatch
    ) -> tuple[list[FoldedEvent], tuple[FoldedEvent, Exception] | None]:
        """Return the events for the user's code, up to the first that cannot be lifted."""
        handled: list[FoldedEvent] = []
        for event in events.of_types(self._handled):
            try:
                body = event.body
            except Unsupported as error:
                return handled, (event, error)
            if not isinstance(body, Erased | UnknownBody):
                handled.append(event)
        return handled, None

    def _try(self, events: Sequence[FoldedEvent]) -> BaseException | None:
        """Let the user's code fold events; on an error restore the rows and return the error.

        `KeyboardInterrupt`, `SystemExit` and `MemoryError` are no faults of the code and propagate.
        """
        rows = self._own.rows
        before = rows.mark()
        try:
            self._own.apply(events)
            total = self._sum
            for key, then, now in rows.changes(before):
                total += _row_hash(key, now) - _row_hash(key, then)
            if self._own.tenant_first:
                rows.check_tenants(before)
            self._sum = total % _MODULUS
        except BaseException as error:
            rows.undo(before)
            if isinstance(error, MemoryError) or not isinstance(error, Exception):
                raise
            return error
        finally:
            rows.unmark(before)
        return None

    def _complete(self) -> None:
        """Close a range of 512 events, and join eight of them if they fill a large range."""
        self._append(self._unsaved())
        self._remark()

    def _unsaved(self) -> _Saved:
        """Return the events since the last complete range as a range."""
        changes = self._own.rows.changes(self._before)
        rows = {key: now for key, _, now in changes} if changes else {}
        base = self._saved[-1].range[1] if self._saved else 0
        return _Saved((base, self.seq), rows, self._total(changes))

    def _append(self, saved: _Saved) -> None:
        """Store a range; if small ranges fill a large range, replace them by the large range."""
        self._saved.append(saved)
        through = saved.range[1]
        if through % RANGE_SEQS_MAX == 0:
            after = through - RANGE_SEQS_MAX
            rows = dict[bytes, bytes]()
            parts = [part for part in self._saved if part.range[0] >= after]
            for part in parts:
                rows.update(part.rows)
            self._saved[-len(parts) :] = [_Saved((after, through), rows, saved.total)]

    def _remark(self) -> None:
        self._own.rows.unmark(self._before)
        self._before = self._own.rows.mark()

    def check(self) -> None:
        if self._total(self._own.rows.changes(self._before)) != self._sum:
            raise StateDamaged(f"a row of {self.name!r} changed in memory after its last step")

    def check_digest(self, seq: int, digest: bytes) -> None:
        if seq in (self.seq, self._base) and self.digest_at(seq) != digest:
            raise StateDamaged(f"the rows of {self.name!r} differ from the last checkpoint")

    # --- digest ----------------------------------------------------------------------------------

    def digest(self) -> bytes:
        unsaved = self._last_unsaved = self._unsaved()
        return self._digest(self.seq, unsaved.total)

    def digest_at(self, seq: int) -> bytes:
        if seq == self.seq:
            return self.digest()
        totals = {0: 0, **{saved.range[1]: saved.total for saved in self._saved}}
        if seq not in totals:
            raise ValueError(f"no digest at seq {seq:,}: the fold is at seq {self.seq:,}")
        return self._digest(seq, totals[seq])

    def _digest(self, seq: int, total: int) -> bytes:
        data = self._salt + seq.to_bytes(8, "little") + total.to_bytes(_SUM_SIZE, "little")
        return blake3(data).digest()

    def _total(self, changes: Sequence[tuple[bytes, bytes, bytes]]) -> int:
        """Return the sum over all rows, from the changes since the last complete range."""
        total = self._saved[-1].total if self._saved else 0
        for key, then, now in changes:
            total += _row_hash(key, now) - _row_hash(key, then)
        return total % _MODULUS

    @property
    def _base(self) -> int:
        return self._saved[-1].range[1] if self._saved else 0

    # --- chunks ----------------------------------------------------------------------------------

    def chunk(self, after: int, through: int | None = None) -> bytes:
        last = self.seq if through is None else through
        if not 0 <= after <= last <= self.seq:
            check_range(after, last, self.seq)
        for saved in self._saved:
            if saved.range == (after, last):
                return self._encode(saved)
        unsaved, self._last_unsaved = self._last_unsaved, None
        if unsaved is None or unsaved.range[1] != self.seq:
            unsaved = self._unsaved()
        if (after, last) != unsaved.range:
            raise ValueError(
                f"events {after + 1:,} to {last:,} are no range of a fold at seq {self.seq:,}"
            )
        return self._encode(unsaved)

    def has_chunk(self, after: int, through: int, data: bytes) -> bool:
        return self.chunk(after, through) == data

    def skip(self, through: int) -> None:
        self._take(_Saved((self.seq, through), {}, self._sum))

    def _encode(self, saved: _Saved) -> bytes:
        keys = sorted(saved.rows)
        columns: dict[str, AnyColumn] = {
            **chunk_head(self._salt, *saved.range),
            "sum": np.frombuffer(saved.total.to_bytes(_SUM_SIZE, "little"), np.uint8),
        }
        values = [*map(saved.rows.__getitem__, keys)]
        for name, pieces in (("keys", keys), ("values", values)):
            columns[f"{name}.sizes"], columns[f"{name}.bytes"] = joined(pieces)
        return encode_columns(columns)

    def load(self, *chunks: bytes) -> None:
        for chunk in chunks:
            self._load(chunk)

    def _load(self, chunk: bytes) -> None:
        columns = decode_columns(chunk)
        through = check_head(columns, self._salt, self.seq)
        total = columns.raw("sum")
        keys = _read(columns, "keys")
        values = _read(columns, "values")
        require(
            is_range(self.seq, through),
            f"its events, after {self.seq:,} to {through:,}, are no range",
        )
        require(len(total) == _SUM_SIZE, "the size of its sum is wrong")
        require(len(keys) == len(values), "its keys and values differ in count")
        require(all(map(bytes.__lt__, keys, keys[1:])), "its keys do not ascend")
        saved = _Saved(
            (self.seq, through),
            dict(zip(keys, values, strict=True)),
            int.from_bytes(total, "little"),
        )
        try:
            self._take(saved)
        except (ValueError, msgspec.DecodeError, RecursionError) as error:
            raise damaged(f"a row cannot be decoded ({error})") from error
        if self.seq % RANGE_SEQS:
            # Later steps add to this sum; verify compares the sums of complete ranges.
            self._sum = self._total(self._own.rows.changes(self._before))

    def _take(self, saved: _Saved) -> None:
        """Take over the rows of the next range."""
        self._own.rows.take(saved.rows)
        self.seq = saved.range[1]
        self._sum = saved.total
        if self.seq % RANGE_SEQS == 0:
            self._append(saved)
            self._remark()

    def compare(self, other: "RowFold") -> tuple[int, frozenset[bytes]]:
        """Return the last range end at which two folds were equal, and the keys that differ now.

        Cost: O(rows of both folds).
        """
        equal = 0
        for mine, theirs in zip(self._saved, other._saved, strict=False):
            if (mine.range, mine.total) != (theirs.range, theirs.total):
                break
            equal = mine.range[1]
        rows, rows_of_other = (dict(fold._own.rows.all_encoded()) for fold in (self, other))
        keys = {key for key, value in rows.items() if rows_of_other.get(key) != value}
        return equal, frozenset(keys | (rows_of_other.keys() - rows.keys()))

    def value(self, key: bytes) -> bytes:
        """Return the encoded value of an encoded key; empty if no row has the key."""
        return self._own.rows.encoded(key)


def row_fold(make: MakeOwn) -> RowFold:
    """Return the fold around the projection that ``make`` returns."""
    projection = make()

    class Named(RowFold):
        name = projection.name
        version = projection.version

    return Named(make)


def differing_rows(one: bytes, other: bytes) -> frozenset[bytes]:
    """Return the encoded keys whose rows differ between two chunks. Raises `Corrupt`."""
    rows = [
        set(zip(_read(columns, "keys"), _read(columns, "values"), strict=True))
        for columns in map(decode_columns, (one, other))
    ]
    return frozenset(key for key, _ in rows[0] ^ rows[1])


def _row_hash(key: bytes, value: bytes) -> int:
    """Return 512 bits of BLAKE3 over a row, or 0 for a missing row."""
    if not value:
        return 0
    data = len(key).to_bytes(4, "little") + key + value
    return int.from_bytes(blake3(data).digest(_SUM_SIZE), "little")


def _read(columns: Columns, name: str) -> list[bytes]:
    bounds = [0, *accumulate(columns.integers(f"{name}.sizes", "<u4"))]
    data = columns.raw(f"{name}.bytes")
    require(bounds[-1] == len(data), f"the sizes of its {name} do not fill their bytes")
    return [data[start:end] for start, end in pairwise(bounds)]
