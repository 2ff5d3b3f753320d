"""Verification: recompute everything from the log, and compare the result with the file.

Two parts: the log (`cerata.engine.verify`: every check, the chain, the tree), and the projections,
each replayed from the first event and compared with every saved chunk, every digest in the ledger
and the state that serves reads. A difference is traced to its first event: the range by its chunk,
then the event by bisection. Writes nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cerata.engine.errors import Corrupt, ProjectionFailed
from cerata.engine.events import JsonValue
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry, Ref, SavedProjection
from cerata.engine.log import Log
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.remembered import HeadCheck, RememberedHead
from cerata.engine.verify import LogVerification, verify_log
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.core.projection import Projection, is_idle
from cerata.projections.core.seal import RANGE_SEQS, Range
from cerata.projections.registry import projection_key
from cerata.projections.rows.row_fold import RowFold, differing_rows

from .checkpoint import SavedRange, decode_chunk, is_of_others, ledger_of, saved_ranges
from .feed import read_batches
from .fold import Fold, Progress, silent

# --- Parity: a projection that was folded again, compared with its saved and its serving state ----
#
# Writes nothing.


@dataclass(frozen=True, slots=True)
class Divergence(PlainValue):
    """A difference between a projection and the replay of its events.

    The difference exists after ``through`` and not at ``after``. ``seq`` is the first event with
    another effect, or None if only the range is known.
    """

    projection: str
    after: int
    through: int
    seq: int | None
    text: str

    def __str__(self) -> str:
        place = f"events {self.after + 1:,} to {self.through:,}"
        if self.seq is not None:
            place = f"event {self.seq:,}"
        return f"{self.projection}: {self.text}, from {place} on"


@dataclass
class Replayed:
    """A projection that was folded again, and its checkpoint.

    - ``chunks`` are the saved ranges that `Parity.compare_chunks` has not compared yet.
    - ``equal`` are the chunks that equal the replay, by range.
    - ``sound`` is the last equal seq.
    """

    name: str
    projection: Projection
    saved: SavedProjection
    ledger: list[LedgerEntry]
    chunks: deque[SavedRange]
    equal: dict[Range, Ref] = field(default_factory=dict[Range, Ref])
    sound: int = 0
    first: Divergence | None = None
    digest: bytes | None = None

    def skip(self, through: int) -> None:
        """Leave out the chunks up to event ``through``, which another process compared."""
        while self.chunks and self.chunks[0].range[1] <= through:
            self.chunks.popleft()

    def diverges(self, after: int, through: int, text: str, seq: int | None = None) -> None:
        """Store the first divergence, and its event once that is known."""
        if self.first is None or (self.first.seq is None and seq is not None):
            self.first = Divergence(self.name, after, through, seq, text)


class Parity:
    """Compares replayed projections with the checkpoints and the serving state of a fold."""

    def __init__(self, log: Log, fold: Fold) -> None:
        self._log = log
        self._fold = fold

    def replayed(
        self, projection: Projection, saved: SavedProjection, *, with_ledger: bool = False
    ) -> Replayed:
        """Return a projection that is folded again, to be compared with its checkpoint."""
        log_file = self._log.file
        ledger = (ledger_of(log_file, saved) or []) if with_ledger else []
        chunks = deque(saved_ranges(log_file, saved))
        return Replayed(projection.name, projection, saved, ledger, chunks)

    # --- saved chunks ----------------------------------------------------------------------------

    def compare_chunks(self, replayed: Replayed) -> None:
        """Compare the saved chunks up to the first that differs, as far as the replay has come.

        A chunk that is damaged is left to the verification of the log.

        Raises:
            StateDamaged: a chunk differs, and the replay's state changed in memory.
        """
        chunks = replayed.chunks
        while chunks:
            (after, through), _, damage = chunk = chunks[0]
            seq = replayed.projection.seq
            is_part = (through - after) % RANGE_SEQS != 0
            if through > seq:
                return
            chunks.popleft()
            if (
                damage is None
                and not (is_part and through < seq)
                and not self._is_equal(replayed, chunk)
            ):
                # A replay beyond a partial range has no chunk of it.
                chunks.clear()

    def _is_equal(self, replayed: Replayed, saved: SavedRange) -> bool:
        """Return whether a saved chunk is damaged or equals the replay; note a difference."""
        span = after, through = saved.range
        ref = saved.ref
        projection = replayed.projection
        if ref is None:
            if not is_idle(projection.chunk(after, through)):
                replayed.diverges(after, through, "the chunk of events with an effect is missing")
                return False
            return True
        try:
            body = self._log.file.read_extent(ref, ExtentKind.CHUNK)
        except Corrupt:
            return True
        try:
            chunk = decode_chunk(body, ref)
            is_equal = projection.has_chunk(after, through, chunk.data)
        except Corrupt as error:
            replayed.diverges(after, through, f"a chunk cannot be decoded ({error.what})")
            return False
        except ValueError as error:
            replayed.diverges(after, through, f"a chunk covers other events ({error})")
            return False
        if not chunk.is_named_rightly:
            replayed.diverges(after, through, "a chunk has the id of other bytes")
            return False
        if not is_equal:
            expected = projection.chunk(after, through)
            event = self._first_in_chunk(replayed, span, chunk.data, expected)
            replayed.diverges(after, through, "a chunk is not what its events give", event)
            return False
        if chunk.places == self._fold.places(projection, span):
            replayed.equal[span] = ref
        return True

    def _first_in_chunk(
        self, replayed: Replayed, span: Range, stored: bytes, expected: bytes
    ) -> int | None:
        """Return the first event of a range whose effect differs in a stored chunk."""
        after, through = span
        projection = replayed.projection
        if isinstance(projection, RowFold):
            keys = differing_rows(stored, expected)
            return self._first_change(projection.at_range(after), keys, through)
        loaded = self._fold.registry.make(replayed.name)
        try:
            if after:
                loaded.load(projection.chunk(0, after))
            loaded.load(stored)
        except Corrupt:
            return None
        return _bisect(
            after, through, lambda n: loaded.chunk(after, n) == projection.chunk(after, n)
        )

    def _first_change(self, fold: RowFold, keys: frozenset[bytes], through: int) -> int | None:
        """Return the first event that changes a row of ``keys``: the first possible fault."""
        values = {key: fold.value(key) for key in keys}
        for event in self._log.read(fold.seq + 1, through):
            fold.apply([event])
            if any(fold.value(key) != value for key, value in values.items()):
                return event.seq
        return None

    # --- the state that serves -------------------------------------------------------------------

    def compare_serving(self, replayed: Replayed) -> bytes:
        """Compare the serving state at the replay's last event; return the replay's digest."""
        seq = replayed.projection.seq
        digest = replayed.digest = replayed.projection.digest()
        if self._fold.digest_at(replayed.name, seq) != digest:
            event = self._first_in_fold(replayed)
            text = "the state that serves is not that of its events"
            replayed.diverges(replayed.sound, seq, text, event)
        return digest

    def _first_in_fold(self, replayed: Replayed) -> int | None:
        """Return the first event after which the serving state has another digest.

        Rows have no digest at every event; for them, return the first event that may be at fault.
        """
        projection = replayed.projection
        end = projection.seq
        if isinstance(projection, RowFold):

            def compare(serving: Projection) -> tuple[int, frozenset[bytes]] | None:
                if not isinstance(serving, RowFold) or serving.seq != end:
                    return None
                return projection.compare(serving)

            differing = self._fold.using(replayed.name, end, compare)
            if differing is None:
                return None
            equal, keys = differing
            return self._first_change(projection.at_range(equal), keys, end)
        return _bisect(
            0,
            end,
            lambda n: self._fold.digest_at(replayed.name, n) == projection.digest_at(n),
        )


def _bisect(low: int, high: int, is_equal: Callable[[int], bool]) -> int | None:
    """Return the first seq in (low, high] that is unequal; every later seq is unequal, too."""
    if is_equal(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if is_equal(middle):
            low = middle
        else:
            high = middle
    return high


# --- Verification: recompute everything from the log, and compare the result with the file --------


@dataclass(frozen=True, slots=True)
class Verification(PlainValue):
    """The result of a verification.

    ``digests`` are those of a full replay, by projection; ``divergences`` has the first of each
    projection that differs from it; ``notes`` are damages that a replay repaired, and projections
    that could not be compared. ``missing`` are the saved states that this process cannot recompute,
    since it lacks their pack or projection; the file carries them unchanged.
    """

    log: LogVerification
    digests: dict[str, bytes]
    divergences: tuple[Divergence, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def diverging(self) -> tuple[str, ...]:
        """The names of the projections whose state differs from their replay."""
        return tuple(divergence.projection for divergence in self.divergences)

    @property
    def ok(self) -> bool:
        """True if the file is whole, every projection equals its replay, and any head agrees."""
        return self.log.ok and not (self.divergences or self.notes)

    @property
    def against(self) -> HeadCheck | None:
        """The comparison of the file with the given head; None without a head."""
        return self.log.against

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "ok": self.ok,
            "log": self.log.to_dict(),
            "digests": {name: digest.hex() for name, digest in sorted(self.digests.items())},
            **plain_fields(self, ("diverging", "divergences", "notes", "missing", "against")),
        }


def verify(
    log: Log, fold: Fold, progress: Progress | None = None, against: RememberedHead | None = None
) -> Verification:
    """Verify the log and its projections. Cost: two passes over all events."""
    verified = verify_log(log, progress, against)
    replaying = _Replaying(log, fold, progress or silent)
    try:
        replaying.run()
    except Corrupt as error:
        # The problems of the log name the place; a replay needs all events.
        return Verification(verified, {}, (), (f"projections not compared: {error}",))
    notes = [
        f"{name}: {text}"
        for name, report in sorted(fold.reports.items())
        for text in report.bad_chunks
    ]
    divergences = [check.first for check in replaying.checks if check.first is not None]
    return Verification(
        verified,
        {check.name: check.digest for check in replaying.checks if check.digest is not None},
        tuple(sorted(divergences, key=lambda divergence: divergence.projection)),
        (*notes, *replaying.notes),
        tuple(_missing(log, fold)),
    )


def _missing(log: Log, fold: Fold) -> Iterator[str]:
    """Yield a line for each saved state that the store has no projection for."""
    saved = [fold.registry.key(name) for name in fold.registry.names]
    for key in sorted(log.toc().projections):
        name = key.partition("/")[0]
        if name not in fold.registry.names and is_of_others(key, saved):
            yield f"{name}: not recomputed: pack or projection {name} is missing"


class _Replaying:
    """Replays every projection at once, and pauses at each saved state to compare."""

    def __init__(self, log: Log, fold: Fold, progress: Progress) -> None:
        self._log = log
        self._fold = fold
        self._progress = progress
        self._parity = Parity(log, fold)
        self._end = log.head.seq
        self.notes: list[str] = []
        toc = log.toc()
        self.checks = [
            self._parity.replayed(fresh, toc.saved(projection_key(fresh)), with_ledger=True)
            for fresh in map(fold.registry.make, fold.registry.names)
        ]

    def run(self) -> None:
        stops = {self._end}
        for check in self.checks:
            stops |= {check.saved.seq, *(entry.seq for entry in check.ledger)}
        at = 0
        for stop in sorted(stop for stop in stops if stop <= self._end):
            self._replay(at, stop)
            at = stop
            for check in self.checks:
                if check.projection.seq == stop:
                    self._compare(check, stop)

    def _replay(self, after: int, through: int) -> None:
        for batch in read_batches(self._log, after + 1, through):
            for check in self.checks:
                if check.projection.seq == batch.first_seq - 1:
                    self._apply(check, batch)
            self._progress("projections", batch.last_seq, self._end)

    def _apply(self, check: Replayed, batch: EventBatch) -> None:
        try:
            check.projection.apply(batch)
        except ProjectionFailed as error:
            self.notes.append(str(error))

    def _compare(self, check: Replayed, seq: int) -> None:
        digest = check.projection.digest()
        for entry in check.ledger:
            if entry.seq == seq and entry.digest != digest:
                text = "a checkpoint's digest is not that of its events"
                check.diverges(check.sound, seq, text)
        if seq == check.saved.seq:
            self._parity.compare_chunks(check)
        if seq == self._end:
            self._parity.compare_serving(check)
        check.sound = seq
