"""Verification: recompute everything from the log, and compare it with what the file says.

Two parts: the log itself (`cerata.engine.verify`: every check, the chain, the tree), and the
projections (a full replay against checkpoint plus tail). Writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.engine.verify import LogVerification, verify_log

from .fold import Fold, replayed_digests

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many events are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    ``digests`` are those of a full replay, by projection; ``diverging`` names the projections
    whose state differs from it; ``notes`` are damages that were mended by replay.
    """

    log: LogVerification
    digests: dict[str, bytes]
    diverging: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the file is whole and every projection equals its replay."""
        return not (self.log.problems or self.diverging or self.notes)

    def to_dict(self) -> "dict[str, JsonValue]":
        return {
            "ok": self.ok,
            "log": self.log.to_dict(),
            "digests": {name: digest.hex() for name, digest in sorted(self.digests.items())},
            "diverging": list(self.diverging),
            "notes": list(self.notes),
        }


def verify(log: Log, fold: Fold, progress: Progress | None = None) -> Verification:
    """Verify the log and its projections; cost: two passes over all events."""
    found = verify_log(log, progress)
    try:
        replayed = replayed_digests(log)
        folded = fold.digests()
    except Corrupt as error:
        # The log's own problems name the place; without its events nothing can be replayed.
        return Verification(found, {}, (), (f"projections not compared: {error}",))
    diverging = tuple(sorted(name for name, digest in replayed.items() if folded[name] != digest))
    notes = tuple(
        f"{name}: {text}"
        for name, report in sorted(fold.reports.items())
        for text in report.bad_chunks
    )
    return Verification(found, replayed, diverging, notes)
