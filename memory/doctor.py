"""The doctor: looks at a file, explains what is wrong, and says what to do. It never writes.

Owns the findings and what mends them. What it finds is what opening, verification and the log's
own checks report; it recomputes nothing itself. `cerata.memory.repair` does what it proposes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from cerata.engine.environment import Environment
from cerata.engine.errors import Corrupt
from cerata.engine.events import JsonValue
from cerata.engine.recovery import RecoveryReport

from .store import Store, open_store

if TYPE_CHECKING:
    from cerata.replay.verify import Verification

Progress = Callable[[str, int, int], None]

_PAGES_SIZE = 8192
"""Bytes of the two header pages, at the file's start."""


class Cure(StrEnum):
    """What mends a finding."""

    NOTHING = "nothing"
    """It is no fault."""
    OPENING = "opening"
    """Whoever next opens the file for writing mends it."""
    REBUILDING = "rebuilding"
    """A projection is folded anew from the log."""
    COPYING = "copying"
    """Every event is readable: a copy of them has everything."""
    LOSS = "loss"
    """Acknowledged events are unreadable: a backup has them, or nobody."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: what it is, what it means, and what mends it.

    ``projection`` is the one to rebuild, where that is the cure.
    """

    what: str
    why: str
    cure: Cure
    projection: str | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "what": self.what,
            "why": self.why,
            "cure": self.cure.value,
            "projection": self.projection,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the doctor found; ``readable`` of ``events`` come before the first damage.

    ``beyond`` are events after it that could still be read, with ``salvage=True``.
    """

    file: str
    events: int
    readable: int
    beyond: int
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return all(finding.cure is Cure.NOTHING for finding in self.findings)

    def of(self, cure: Cure) -> list[Finding]:
        """Return the findings that have one cure."""
        return [finding for finding in self.findings if finding.cure is cure]

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "file": self.file,
            "healthy": self.healthy,
            "events": self.events,
            "readable": self.readable,
            "beyond": self.beyond,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def diagnose(
    path: str,
    *,
    lock_timeout: float | None = 30.0,
    environment: Environment | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Look at a file with every check there is; writes nothing. Cost: that of `verify`.

    Raises:
        NotFound, Unsupported, StorageFailed: as opening it raises; only damage is diagnosed.
    """
    try:
        store = open_store(path, mode="r", lock_timeout=lock_timeout, environment=environment)
    except Corrupt as damage:
        return _of_damage(path, damage, lock_timeout, environment)
    with store:
        head = store.head.seq
        checked = store.verify(progress)
        readable, beyond = (head, 0) if checked.log.ok else _readable(store, head)
        found = [
            *_of_opening(store.report),
            *_of_log(checked, store.report, lost=readable < head),
            *_of_projections(checked),
            *(_of_kinds(store) if checked.log.ok else ()),
        ]
        return Diagnosis(path, head, readable, beyond, tuple(found))


def _of_damage(
    path: str, damage: Corrupt, lock_timeout: float | None, environment: Environment | None
) -> Diagnosis:
    """Say what is left of a file that cannot be opened."""
    with open_store(
        path, mode="r", lock_timeout=lock_timeout, environment=environment, salvage=True
    ) as store:
        head = store.head.seq
        readable, beyond = _readable(store, head)
    return Diagnosis(path, readable + beyond, readable, beyond, (_loss(str(damage)),))


def _readable(store: Store, head: int) -> tuple[int, int]:
    """Return the end of the last batch that can be read before damage, and how many come after."""
    readable = 0
    try:
        for event in store.view().events(1, head):
            if event.seq == event.header.last_seq:
                readable = event.seq
    except Corrupt:
        pass
    return readable, sum(1 for event in store.salvaged() if event.seq > readable)


def _loss(what: str) -> Finding:
    return Finding(
        what,
        "Acknowledged events cannot be read. Something changed bytes that were safe: a disk, a "
        "copy that was cut short, another program.",
        Cure.LOSS,
    )


def _of_opening(report: RecoveryReport) -> Iterator[Finding]:
    """Yield what opening found and passed by, since it only read."""
    for page in report.bad_pages:
        yield Finding(
            f"Header page {'AB'[page]} is damaged",
            "The other page is whole and serves; one more fault there would cost a long search.",
            Cure.OPENING,
        )
    for number in report.bad_witnesses:
        yield Finding(
            f"Witness {number} of the log's end is damaged",
            "A crash can tear it, and nothing is lost then. If damage reached to it from the "
            "newest batches, these are lost: compare the head with what was acknowledged.",
            Cure.OPENING,
        )
    if report.adopted_footer:
        yield Finding(
            "The header pages are older than the newest table of contents",
            "A writer was killed between the two; the newer one was found and is whole.",
            Cure.OPENING,
        )
    if report.rebuilt_toc:
        yield Finding(
            "The table of contents is unreadable",
            "The segments were found by a search of the file.",
            Cure.OPENING,
        )
    if report.cut_bytes:
        yield Finding(
            f"{report.cut_bytes:,} bytes follow the log that are no whole batch",
            "A writer was killed while it wrote, before anybody was told that it is safe. They "
            "are cut and kept aside.",
            Cure.OPENING,
        )


def _of_kinds(store: Store) -> Iterator[Finding]:
    """Yield what the log has of types and versions that this process cannot apply."""
    for kind in cast("list[dict[str, JsonValue]] | None", store.info()["unread"]) or ():
        yield Finding(
            f"{kind['events']:,} events are {kind['type']} of version {kind['version']}",
            "This program does not know them: they are kept and change no answer. A later Cerata, "
            "or the program that registers them, applies them.",
            Cure.NOTHING,
        )


def _of_log(found: "Verification", report: RecoveryReport, *, lost: bool) -> Iterator[Finding]:
    """Yield what recomputing every hash of the log found."""
    for problem in found.log.problems:
        at = problem.offset
        if at is not None and at < _PAGES_SIZE and at // (_PAGES_SIZE // 2) in report.bad_pages:
            continue  # Opening said so.
        if report.bad_witnesses and problem.text.startswith("Witness "):
            continue  # Opening said so.
        if any(str(problem) in note for note in found.notes if found.digests):
            continue  # It is a saved index, of which more is said below.
        if lost:
            yield _loss(str(problem))
            continue
        yield Finding(
            str(problem),
            "Every event is readable and the hashes are right; what is damaged is made of them.",
            Cure.COPYING,
        )


def _of_projections(found: "Verification") -> Iterator[Finding]:
    """Yield what a replay of every projection found."""
    for divergence in found.divergences:
        yield Finding(
            str(divergence),
            "The saved index is not what the events give; the log is right.",
            Cure.REBUILDING,
            divergence.projection,
        )
    for note in found.notes:
        name = note.partition(":")[0]
        if name in found.digests:
            yield Finding(
                note,
                "A saved index is damaged. Reads use one made from the log, so nothing is lost "
                "but time at opening.",
                Cure.REBUILDING,
                name,
            )
