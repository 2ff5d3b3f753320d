"""Verification: recompute everything from the log, and compare the result with the file.

Two parts: the log (`cerata.engine.verify`: every check, the chain, the tree), and the projections,
each replayed from the first event and compared with every saved chunk, every digest in the ledger
and the state that serves reads. A difference is traced to its first event: the range by its chunk,
then the event by bisection. Writes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cerata.engine.errors import Corrupt, ProjectionFailed
from cerata.engine.events import JsonValue
from cerata.engine.log import Log
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.engine.remembered import HeadCheck, RememberedHead
from cerata.engine.verify import LogVerification, verify_log
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.registry import projection_key

from .checkpoint import is_of_others
from .feed import read_batches
from .fold import Fold, Progress, silent
from .parity import Divergence, Parity, Replayed


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
