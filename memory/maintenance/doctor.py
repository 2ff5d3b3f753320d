"""The doctor: examines a file, explains each fault, and names the cure. It never writes.

Owns the findings and their cures. Findings come from the reports of opening, of verification and of
the log's checks; the doctor recomputes nothing. Leaves out the cures
(`cerata.memory.maintenance.doctor`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from cerata.engine.copies.backup import back_up
from cerata.engine.disk.environment import Environment
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.log_file.recovery import RecoveryReport
from cerata.engine.open import path_name
from cerata.engine.plain_value import PlainValue

from ..batch.writer import session_of
from ..store import Store, open_store
from ..values.options import OpenOptions

if TYPE_CHECKING:
    from cerata.replay.verify import Verification


Progress = Callable[[str, int, int], None]

_PAGES_SIZE = 8192
"""Bytes of the two header pages, at the file's start."""


class Cure(StrEnum):
    """The cure of a finding."""

    NOTHING = "nothing"
    """No fault."""
    OPENING = "opening"
    """The next opening for writing repairs the file."""
    REBUILDING = "rebuilding"
    """A projection must be folded again from the log."""
    COPYING = "copying"
    """Every event is readable, so a copy of the events loses nothing."""
    LOSS = "loss"
    """Acknowledged events are unreadable; only a backup can have them."""


@dataclass(frozen=True, slots=True)
class Finding(PlainValue):
    """A finding: description, meaning and cure.

    ``projection`` is the projection to rebuild, if that is the cure.
    """

    what: str
    why: str
    cure: Cure
    projection: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis(PlainValue):
    """The doctor's findings, and the counts of readable events.

    - ``readable`` of ``events`` come before the first damage.
    - ``beyond`` come after the damage, and can be read with ``salvage=True``.
    """

    _plain = ("file", "healthy", "events", "readable", "beyond", "findings")

    file: str
    events: int
    readable: int
    beyond: int
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """True if no finding needs a cure."""
        return all(finding.cure is Cure.NOTHING for finding in self.findings)

    def of(self, cure: Cure) -> list[Finding]:
        """Return the findings with a cure."""
        return [finding for finding in self.findings if finding.cure is cure]


def diagnose(
    path: str,
    *,
    lock_timeout: float | None = 30.0,
    environment: Environment | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Examine a file with every check; write nothing. Cost: that of `verify`.

    Raises:
        NotFound, Unsupported, StorageFailed: opening fails; only damage is diagnosed.
    """
    try:
        store = open_store(
            path, mode="r", environment=environment, options=OpenOptions(lock_timeout=lock_timeout)
        )
    except Corrupt as damage:
        return _of_damage(path, damage, lock_timeout, environment)
    with store:
        head = store.head.seq
        checked = store.verify(progress)
        readable, beyond = (head, 0) if checked.log.ok else _readable(store, head)
        findings = [
            *_of_opening(store.report),
            *_of_log(checked, store.report, lost=readable < head),
            *_of_projections(checked),
            *(_of_kinds(store) if checked.log.ok else ()),
        ]
        return Diagnosis(path, head, readable, beyond, tuple(findings))


def _of_damage(
    path: str, damage: Corrupt, lock_timeout: float | None, environment: Environment | None
) -> Diagnosis:
    with open_store(
        path,
        mode="r",
        environment=environment,
        options=OpenOptions(lock_timeout=lock_timeout, salvage=True),
    ) as store:
        head = store.head.seq
        readable, beyond = _readable(store, head)
    return Diagnosis(path, readable + beyond, readable, beyond, (_loss(str(damage)),))


def _readable(store: Store, head: int) -> tuple[int, int]:
    """Return the end of the last readable batch before damage, and the count of events after it."""
    readable = 0
    log = session_of(store).log
    try:
        for event in log.read(1, head):
            log.check_whole(event)
            if event.seq == event.header.last_seq:
                readable = event.seq
    except Corrupt:
        pass
    return readable, sum(1 for event in store.history.salvaged() if event.seq > readable)


def _loss(damage: str) -> Finding:
    return Finding(
        damage,
        "Acknowledged events cannot be read. A disk, a copy that was cut short, or another program "
        "changed bytes that were safe.",
        Cure.LOSS,
    )


def _of_opening(report: RecoveryReport) -> Iterator[Finding]:
    """Yield the faults that opening reported and, being read-only, did not repair."""
    for page in report.bad_pages:
        yield Finding(
            f"Header page {'AB'[page]} is damaged",
            "The other page is intact and in use. Damage to that page, too, would cost a long "
            "search of the file.",
            Cure.OPENING,
        )
    for number in report.bad_witnesses:
        yield Finding(
            f"Witness {number} of the log's end is damaged",
            "A crash can tear a witness without loss. If the damage reaches to the newest batches, "
            "these are lost: compare the head with the last acknowledged head.",
            Cure.OPENING,
        )
    if report.adopted_footer:
        yield Finding(
            "The header pages are older than the newest table of contents",
            "A writer was killed between the two writes. The newer table is intact and in use.",
            Cure.OPENING,
        )
    if report.rebuilt_toc:
        yield Finding(
            "The table of contents is unreadable",
            "A search of the file located the segments.",
            Cure.OPENING,
        )
    if report.cut_bytes:
        yield Finding(
            f"{report.cut_bytes:,} bytes after the log are not a whole batch",
            "A writer was killed before it acknowledged the write. The next opening for writing "
            "cuts the bytes and sets them aside.",
            Cure.OPENING,
        )


def _of_kinds(store: Store) -> Iterator[Finding]:
    for kind in cast("list[dict[str, JsonValue]] | None", store.upkeep.info()["unread"]) or ():
        yield Finding(
            f"{kind['events']:,} events are {kind['type']} of version {kind['version']}",
            "This program does not know their type or version. The events stay in the log and "
            "change no result; a later Cerata, or the program that registers them, applies them.",
            Cure.NOTHING,
        )


def _of_log(
    verification: "Verification", report: RecoveryReport, *, lost: bool
) -> Iterator[Finding]:
    """Yield the problems that recomputing every hash of the log reported."""
    for problem in verification.log.problems:
        at = problem.offset
        if at is not None and at < _PAGES_SIZE and at // (_PAGES_SIZE // 2) in report.bad_pages:
            continue  # Opening reported the page.
        if report.bad_witnesses and problem.text.startswith("Witness "):
            continue  # Opening reported the witness.
        if any(str(problem) in note for note in verification.notes if verification.digests):
            continue  # `_of_projections` reports the saved index.
        if lost:
            yield _loss(str(problem))
            continue
        yield Finding(
            str(problem),
            "Every event is readable and the hashes match; only data derived from the events is "
            "damaged.",
            Cure.COPYING,
        )


def _of_projections(verification: "Verification") -> Iterator[Finding]:
    for divergence in verification.divergences:
        yield Finding(
            str(divergence),
            "The saved index differs from a replay of the events; the log is intact.",
            Cure.REBUILDING,
            divergence.projection,
        )
    for note in verification.notes:
        name = note.partition(":")[0]
        if name in verification.digests:
            yield Finding(
                note,
                "A saved index is damaged. Reads use an index rebuilt from the log, so nothing is "
                "lost but time at opening.",
                Cure.REBUILDING,
                name,
            )


# --- Repair: carries out the cures that the doctor proposes, and no other -------------------------
#
# A file that has lost acknowledged events is never changed; the copy needs the caller's consent to
# drop the rest.


@dataclass(frozen=True, slots=True)
class Repair(PlainValue):
    """The repairs as sentences, and the diagnosis before and after (the copy's, with ``to``)."""

    done: tuple[str, ...]
    before: Diagnosis
    after: Diagnosis


def repair(
    path: str,
    *,
    to: str | None = None,
    drop_damaged: bool = False,
    lock_timeout: float | None = 30.0,
    environment: Environment | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Repair a file in place; with ``to``, copy the readable events into a new file instead.

    With ``drop_damaged`` the copy ends before the first unreadable event, and a `branch` event
    follows; the ids of the copied events stay, and the old file is not changed.

    Raises:
        Corrupt: events are lost, and ``drop_damaged`` is False.
        InvalidInput: ``drop_damaged`` without ``to``.
        Conflict: a file exists at ``to``.
    """
    if drop_damaged and to is None:
        raise InvalidInput(
            "drop_damaged needs a new file and never changes the damaged one",
            remedy="Name the new file as well: to=.",
        )

    def diagnosis_of(at: str) -> Diagnosis:
        return diagnose(at, lock_timeout=lock_timeout, environment=environment, progress=progress)

    before = diagnosis_of(path)
    lost = before.of(Cure.LOSS)
    if lost and not drop_damaged:
        raise Corrupt(
            f"{lost[0].what}; {before.readable:,} of {before.events:,} events come before it",
            where=path,
            remedy="Restore a backup, or copy the events before the loss into a new file with "
            "'cerata file doctor --repair --to NEW.cera --drop-damaged'.",
        )
    if to is not None:
        with open_store(
            path,
            mode="r",
            environment=environment,
            options=OpenOptions(lock_timeout=lock_timeout, salvage=bool(lost)),
        ) as store:
            back_up(session_of(store).log, path_name(to), through=before.readable, lossy=bool(lost))
        after = diagnosis_of(to)
        return Repair((f"copied {before.readable:,} events into {to}",), before, after)
    if before.healthy:
        return Repair((), before, before)
    with open_store(
        path, environment=environment, options=OpenOptions(lock_timeout=lock_timeout)
    ) as store:
        repairs = tuple(_repaired(store, before, progress))
    return Repair(repairs, before, diagnosis_of(path))


def _repaired(store: Store, before: Diagnosis, progress: Progress | None) -> Iterator[str]:
    """Repair each finding and yield a sentence; opening has repaired the first kind already."""
    for finding in before.of(Cure.OPENING):
        yield f"repaired by opening the file: {finding.what[:1].lower()}{finding.what[1:]}"
    names = dict.fromkeys(finding.projection for finding in before.of(Cure.REBUILDING))
    for name in names:
        store.upkeep.rebuild(name, progress)
        yield f"rebuilt {name} from the log"
