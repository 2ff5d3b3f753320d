"""Repair: carries out the cures that the doctor proposes, and no other.

Owns repair in place, of state that is derived from the log, and the copy of readable events into a
new file. A file that has lost acknowledged events is never changed; the copy needs the caller's
consent to drop the rest. Leaves out the findings (`doctor`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cerata.engine.backup import back_up
from cerata.engine.environment import Environment
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.open import path_name
from cerata.engine.plain_value import PlainValue

from ..batch.writer import session_of
from ..store import Store, open_store
from ..values.options import OpenOptions
from .doctor import Cure, Diagnosis, Progress, diagnose


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
