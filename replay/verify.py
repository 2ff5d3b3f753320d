"""Verification: recompute everything from the log, and compare it with what the file says.

Two parts: the log itself (`cerata.engine.verify`: every check, the chain, the tree), and the
projections, each replayed from the first event and held against every saved chunk, every digest
in the ledger and the state that serves. Of what differs the first event is named: the range by
its chunk, then the event by bisection. Writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cerata.engine.errors import Corrupt, ProjectionFailed
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import LedgerEntry, SavedProjection
from cerata.engine.log import Log
from cerata.engine.remembered import HeadCheck, RememberedHead
from cerata.engine.verify import LogVerification, verify_log
from cerata.projections.projection import Projection
from cerata.projections.ranges import Range
from cerata.projections.registry import projection_key
from cerata.projections.row_fold import RowFold, differing_rows

from .checkpoint import chunk_refs, decode_chunk, is_named_rightly, ledger_of
from .events import batches
from .fold import Fold, Progress, silent

if TYPE_CHECKING:
    from cerata.engine.events import Event, JsonValue


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a projection is not what its events give.

    It is so after ``through``, and was not at ``after``. ``seq`` is the first event whose effect
    differs, or None where only the range is known.
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

    def to_dict(self) -> "dict[str, JsonValue]":
        return {
            "projection": self.projection,
            "after": self.after,
            "through": self.through,
            "seq": self.seq,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    ``digests`` are those of a full replay, by projection; ``divergences`` has the first one of
    each projection that differs from it; ``notes`` are damages that were mended by replay, and
    what could not be compared.
    """

    log: LogVerification
    digests: dict[str, bytes]
    divergences: tuple[Divergence, ...]
    notes: tuple[str, ...]

    @property
    def diverging(self) -> tuple[str, ...]:
        """The names of the projections whose state differs from their replay."""
        return tuple(found.projection for found in self.divergences)

    @property
    def ok(self) -> bool:
        """Whether the file is whole, every projection equals its replay, and a head agrees."""
        return self.log.ok and not (self.divergences or self.notes)

    @property
    def against(self) -> HeadCheck | None:
        """How the file compares with the head that was given; None if none was."""
        return self.log.against

    def to_dict(self) -> "dict[str, JsonValue]":
        return {
            "ok": self.ok,
            "log": self.log.to_dict(),
            "digests": {name: digest.hex() for name, digest in sorted(self.digests.items())},
            "diverging": list(self.diverging),
            "divergences": [found.to_dict() for found in self.divergences],
            "notes": list(self.notes),
            "against": None if self.against is None else self.against.to_dict(),
        }


def verify(
    log: Log,
    fold: Fold,
    progress: Progress | None = None,
    against: RememberedHead | None = None,
) -> Verification:
    """Verify the log and its projections; cost: two passes over all events."""
    found = verify_log(log, progress, against)
    replaying = _Replaying(log, fold, progress or silent)
    try:
        replaying.run()
    except Corrupt as error:
        # The log's own problems name the place; without its events nothing can be replayed.
        return Verification(found, {}, (), (f"projections not compared: {error}",))
    notes = [
        f"{name}: {text}"
        for name, report in sorted(fold.reports.items())
        for text in report.bad_chunks
    ]
    divergences = [one.first for one in replaying.checks if one.first is not None]
    return Verification(
        found,
        {one.name: one.digest for one in replaying.checks if one.digest is not None},
        tuple(sorted(divergences, key=lambda one: one.projection)),
        (*notes, *replaying.notes),
    )


@dataclass
class _Check:
    """One projection under verification."""

    name: str
    replayed: Projection
    saved: SavedProjection
    ledger: list[LedgerEntry]
    sound: int = 0
    first: Divergence | None = None
    digest: bytes | None = None

    def diverges(self, after: int, through: int, text: str, seq: int | None = None) -> None:
        """Keep the first divergence, and the place of it that is known best."""
        if self.first is None or (self.first.seq is None and seq is not None):
            self.first = Divergence(self.name, after, through, seq, text)


class _Replaying:
    """Replays every projection at once, stopping where something is there to be compared."""

    def __init__(self, log: Log, fold: Fold, progress: Progress) -> None:
        self._log = log
        self._fold = fold
        self._progress = progress
        self._end = log.head.seq
        self.notes: list[str] = []
        toc = log.toc()
        self.checks = [
            _Check(name, made, saved, ledger_of(log.file, saved) or [])
            for name in fold.registry.names
            for made in [fold.registry.make(name)]
            for saved in [toc.saved(projection_key(made))]
        ]

    def run(self) -> None:
        stops = {self._end}
        for one in self.checks:
            stops |= {one.saved.seq, *(entry.seq for entry in one.ledger)}
        at = 0
        for stop in sorted(stop for stop in stops if stop <= self._end):
            self._replay(at, stop)
            at = stop
            for one in self.checks:
                if one.replayed.seq == stop:
                    self._compare(one, stop)

    def _replay(self, after: int, through: int) -> None:
        for batch in batches(self._log.read(after + 1, through)):
            for one in self.checks:
                if one.replayed.seq == batch[0].seq - 1:
                    self._apply(one, batch)
            self._progress("projections", batch[-1].seq, self._end)

    def _apply(self, one: _Check, batch: "list[Event]") -> None:
        try:
            one.replayed.apply(batch)
        except ProjectionFailed as error:
            self.notes.append(str(error))

    def _compare(self, one: _Check, seq: int) -> None:
        """Hold against the replay what is known of a projection at ``seq``."""
        digest = one.replayed.digest()
        sound = one.sound
        for entry in one.ledger:
            if entry.seq == seq and entry.digest != digest:
                one.diverges(sound, seq, "a checkpoint's digest is not that of its events")
        if seq == one.saved.seq:
            self._compare_chunks(one)
        if seq == self._end:
            one.digest = digest
            if self._fold.digest_at(one.name, seq) != digest:
                at = self._first_in_fold(one)
                one.diverges(sound, seq, "the state that serves is not that of its events", at)
        one.sound = seq

    # --- saved chunks ----------------------------------------------------------------------------

    def _compare_chunks(self, one: _Check) -> None:
        for ref, damage in chunk_refs(self._log.file, one.saved):
            after, through = ref.first_seq - 1, ref.last_seq
            try:
                if damage is not None:
                    raise damage
                body = self._log.file.read_extent(ref, ExtentKind.CHUNK)
            except Corrupt:
                # The log's verification has told it.
                continue
            try:
                stored = decode_chunk(body, ref)
                expected = one.replayed.chunk(after, through)
            except Corrupt as error:
                one.diverges(after, through, f"a chunk cannot be decoded ({error.what})")
                return
            except ValueError as error:
                one.diverges(after, through, f"a chunk covers other events ({error})")
                return
            if not is_named_rightly(body, stored):
                one.diverges(after, through, "a chunk has the id of other bytes")
                return
            if stored != expected:
                seq = self._first_in_chunk(one, (after, through), stored, expected)
                one.diverges(after, through, "a chunk is not what its events give", seq)
                return

    def _first_in_chunk(
        self, one: _Check, span: Range, stored: bytes, expected: bytes
    ) -> int | None:
        """Return the first event of a range whose effect a stored chunk has otherwise."""
        after, through = span
        if isinstance(one.replayed, RowFold):
            keys = differing_rows(stored, expected)
            return self._first_change(one.replayed.at_range(after), keys, through)
        other = self._fold.registry.make(one.name)
        try:
            if after:
                other.load(one.replayed.chunk(0, after))
            other.load(stored)
        except Corrupt:
            return None
        return _bisect(
            after, through, lambda n: other.chunk(after, n) == one.replayed.chunk(after, n)
        )

    def _first_change(self, fold: RowFold, keys: "frozenset[bytes]", through: int) -> int | None:
        """Return the first event that changes one of these rows: the first that can be at fault."""
        values = {key: fold.value(key) for key in keys}
        for event in self._log.read(fold.seq + 1, through):
            fold.apply([event])
            if any(fold.value(key) != value for key, value in values.items()):
                return event.seq
        return None

    # --- the state that serves -------------------------------------------------------------------

    def _first_in_fold(self, one: _Check) -> int | None:
        """Return the first event after which the state that serves has another digest.

        Of rows, which have no digest at every event: the first that can be at fault.
        """
        replayed = one.replayed
        if isinstance(replayed, RowFold):

            def compare(serving: Projection) -> "tuple[int, frozenset[bytes]] | None":
                if not isinstance(serving, RowFold) or serving.seq != self._end:
                    return None
                return replayed.compare(serving)

            differing = self._fold.using(one.name, self._end, compare)
            if differing is None:
                return None
            equal, keys = differing
            return self._first_change(replayed.at_range(equal), keys, self._end)
        return _bisect(
            0,
            self._end,
            lambda n: self._fold.digest_at(one.name, n) == one.replayed.digest_at(n),
        )


def _bisect(low: int, high: int, is_equal: Callable[[int], bool]) -> int | None:
    """Return the first seq in (low, high] that is unequal; once unequal, always so."""
    if is_equal(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if is_equal(middle):
            low = middle
        else:
            high = middle
    return high
