"""Verification: recompute everything from the log, and compare the result with the file.

Two parts: the log (`cerata.engine.verify`: every check, the chain, the tree), and the projections,
each replayed from the first event and compared with every saved chunk, every digest in the ledger
and the state that serves reads. A difference is traced to its first event: the range by its chunk,
then the event by bisection. Writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from cerata.engine.errors import Corrupt, ProjectionFailed
from cerata.engine.events import Event, JsonValue
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry, SavedProjection
from cerata.engine.log import Log
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.remembered import HeadCheck, RememberedHead
from cerata.engine.verify import LogVerification, verify_log
from cerata.projections.core.projection import Projection
from cerata.projections.core.ranges import Range
from cerata.projections.registry import projection_key
from cerata.projections.rows.row_fold import RowFold, differing_rows

from .checkpoint import chunk_refs, decode_chunk, is_named_rightly, ledger_of
from .feed import batches
from .fold import Fold, Progress, silent


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


@dataclass(frozen=True, slots=True)
class Verification(PlainValue):
    """The result of a verification.

    ``digests`` are those of a full replay, by projection; ``divergences`` has the first of each
    projection that differs from it; ``notes`` are damages that a replay repaired, and projections
    that could not be compared.
    """

    log: LogVerification
    digests: dict[str, bytes]
    divergences: tuple[Divergence, ...]
    notes: tuple[str, ...]

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
            **plain_fields(self, ("diverging", "divergences", "notes", "against")),
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
    )


@dataclass
class _Check:
    name: str
    replayed: Projection
    saved: SavedProjection
    ledger: list[LedgerEntry]
    sound: int = 0
    first: Divergence | None = None
    digest: bytes | None = None

    def diverges(self, after: int, through: int, text: str, seq: int | None = None) -> None:
        """Store the first divergence, and its event once that is known."""
        if self.first is None or (self.first.seq is None and seq is not None):
            self.first = Divergence(self.name, after, through, seq, text)


class _Replaying:
    """Replays every projection at once, and pauses at each saved state to compare."""

    def __init__(self, log: Log, fold: Fold, progress: Progress) -> None:
        self._log = log
        self._fold = fold
        self._progress = progress
        self._end = log.head.seq
        self.notes: list[str] = []
        toc = log.toc()
        self.checks = [
            _Check(name, fresh, saved, ledger_of(log.file, saved) or [])
            for name in fold.registry.names
            for fresh in [fold.registry.make(name)]
            for saved in [toc.saved(projection_key(fresh))]
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
                if check.replayed.seq == stop:
                    self._compare(check, stop)

    def _replay(self, after: int, through: int) -> None:
        for batch in batches(self._log.read(after + 1, through)):
            for check in self.checks:
                if check.replayed.seq == batch[0].seq - 1:
                    self._apply(check, batch)
            self._progress("projections", batch[-1].seq, self._end)

    def _apply(self, check: _Check, batch: "list[Event]") -> None:
        try:
            check.replayed.apply(batch)
        except ProjectionFailed as error:
            self.notes.append(str(error))

    def _compare(self, check: _Check, seq: int) -> None:
        digest = check.replayed.digest()
        sound = check.sound
        for entry in check.ledger:
            if entry.seq == seq and entry.digest != digest:
                check.diverges(sound, seq, "a checkpoint's digest is not that of its events")
        if seq == check.saved.seq:
            self._compare_chunks(check)
        if seq == self._end:
            check.digest = digest
            if self._fold.digest_at(check.name, seq) != digest:
                at = self._first_in_fold(check)
                check.diverges(sound, seq, "the state that serves is not that of its events", at)
        check.sound = seq

    # --- saved chunks ----------------------------------------------------------------------------

    def _compare_chunks(self, check: _Check) -> None:
        for ref, damage in chunk_refs(self._log.file, check.saved):
            after = ref.first_seq - 1
            through = ref.last_seq
            try:
                if damage is not None:
                    raise damage
                body = self._log.file.read_extent(ref, ExtentKind.CHUNK)
            except Corrupt:
                # The verification of the log has reported this damage.
                continue
            try:
                stored = decode_chunk(body, ref).data
                expected = check.replayed.chunk(after, through)
            except Corrupt as error:
                check.diverges(after, through, f"a chunk cannot be decoded ({error.what})")
                return
            except ValueError as error:
                check.diverges(after, through, f"a chunk covers other events ({error})")
                return
            if not is_named_rightly(body, stored):
                check.diverges(after, through, "a chunk has the id of other bytes")
                return
            if stored != expected:
                seq = self._first_in_chunk(check, (after, through), stored, expected)
                check.diverges(after, through, "a chunk is not what its events give", seq)
                return

    def _first_in_chunk(
        self, check: _Check, span: Range, stored: bytes, expected: bytes
    ) -> int | None:
        """Return the first event of a range whose effect differs in a stored chunk."""
        after, through = span
        if isinstance(check.replayed, RowFold):
            keys = differing_rows(stored, expected)
            return self._first_change(check.replayed.at_range(after), keys, through)
        loaded = self._fold.registry.make(check.name)
        try:
            if after:
                loaded.load(check.replayed.chunk(0, after))
            loaded.load(stored)
        except Corrupt:
            return None
        return _bisect(
            after, through, lambda n: loaded.chunk(after, n) == check.replayed.chunk(after, n)
        )

    def _first_change(self, fold: RowFold, keys: "frozenset[bytes]", through: int) -> int | None:
        """Return the first event that changes a row of ``keys``: the first possible fault."""
        values = {key: fold.value(key) for key in keys}
        for event in self._log.read(fold.seq + 1, through):
            fold.apply([event])
            if any(fold.value(key) != value for key, value in values.items()):
                return event.seq
        return None

    # --- the state that serves -------------------------------------------------------------------

    def _first_in_fold(self, check: _Check) -> int | None:
        """Return the first event after which the serving state has another digest.

        Rows have no digest at every event; for them, return the first event that may be at fault.
        """
        replayed = check.replayed
        if isinstance(replayed, RowFold):

            def compare(serving: Projection) -> "tuple[int, frozenset[bytes]] | None":
                if not isinstance(serving, RowFold) or serving.seq != self._end:
                    return None
                return replayed.compare(serving)

            differing = self._fold.using(check.name, self._end, compare)
            if differing is None:
                return None
            equal, keys = differing
            return self._first_change(replayed.at_range(equal), keys, self._end)
        return _bisect(
            0,
            self._end,
            lambda n: self._fold.digest_at(check.name, n) == check.replayed.digest_at(n),
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
