"""Repair: does what the doctor proposes, and nothing that it did not.

What can be made from the log is made again, in place. A file that has lost acknowledged events is
left as it is: what can be read of it goes into a new one, and only when the caller says that the
rest may be dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cerata.engine.environment import Environment
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.events import JsonValue

from .doctor import Cure, Diagnosis, Progress, diagnose
from .store import Store, open_store


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done, in words, and how the file, or the new one, is now."""

    done: tuple[str, ...]
    before: Diagnosis
    after: Diagnosis

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "done": list(self.done),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }


def repair(
    path: str,
    *,
    to: str | None = None,
    drop_damaged: bool = False,
    lock_timeout: float | None = 30.0,
    environment: Environment | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Mend a file in place; with ``to``, copy what is readable into a new file instead.

    ``drop_damaged`` says that events which cannot be read, and all after them, may be missing
    from the new file: the ids of those before stay. The old file is then not touched.

    Raises:
        Corrupt: events are lost, and nothing said that they may be. InvalidInput:
        ``drop_damaged`` without ``to``. Conflict: something is at ``to``.
    """
    if drop_damaged and to is None:
        raise InvalidInput(
            "What is dropped is dropped from a copy", remedy="Name the new file as well: to=."
        )

    def look(at: str) -> Diagnosis:
        return diagnose(at, lock_timeout=lock_timeout, environment=environment, progress=progress)

    before = look(path)
    lost = before.of(Cure.LOSS)
    if lost and not drop_damaged:
        raise Corrupt(
            f"{lost[0].what}; {before.readable:,} of {before.events:,} events come before it",
            where=path,
            remedy="Restore a backup; or keep what comes before, in a new file: "
            "'cerata repair --to NEW.cera --drop-damaged'.",
        )
    if to is not None:
        with open_store(
            path,
            mode="r",
            lock_timeout=lock_timeout,
            environment=environment,
            salvage=bool(lost),
        ) as store:
            store.backup(to, through=before.readable)
        after = look(to)
        return Repair((f"copied {after.events:,} events into {to}",), before, after)
    if before.healthy:
        return Repair((), before, before)
    with open_store(path, lock_timeout=lock_timeout, environment=environment) as store:
        done = tuple(_mend(store, before, progress))
    return Repair(done, before, look(path))


def _mend(store: Store, found: Diagnosis, progress: Progress | None) -> Iterator[str]:
    """Do what mends each finding; opening for writing has done the first kind."""
    for finding in found.of(Cure.OPENING):
        yield f"mended by opening it: {finding.what[:1].lower()}{finding.what[1:]}"
    names = dict.fromkeys(finding.projection for finding in found.of(Cure.REBUILDING))
    for name in names:
        store.rebuild(name, progress)
        yield f"rebuilt {name} from the log"
