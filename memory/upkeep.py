"""The care of the file: its sizes, its projections, and the events that are still readable.

Owns `upkeep.info`, `upkeep.rebuild`, `stream.digests`, `history.salvaged` and the calls that sync.
Leaves out their work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cerata.engine.arguments import is_integer
from cerata.engine.errors import Corrupt, InvalidInput, value_text
from cerata.engine.events import Event, JsonValue
from cerata.engine.head import Head
from cerata.engine.late import late, loading
from cerata.projections.columnar.scopes import Reach, admits, check_reach

from .batch.writer import Writer
from .points_in_time import Points
from .view import Basis

if TYPE_CHECKING:
    from cerata.engine.copies import salvage as salvage_module
    from cerata.replay import fold as replay_fold
    from cerata.replay.rebuild import Rebuild
else:
    salvage_module = late("cerata.engine.copies.salvage")
    replay_fold = late("cerata.replay.fold")

WORKERS_MAX: Final = 64
"""Processes of a rebuild, each with the folded state in memory."""


class SyncCommands(Writer):
    """The calls that read and sync new events, and the digests of the folded states."""

    def refresh(self) -> Head:
        """Load the events of other processes, as every read does, and return the head."""
        return self._log.refresh()

    def commit(self) -> None:
        """Sync the batches that a sync policy in bytes has not synced yet. Durable on return."""
        self._log.commit()

    def digests(self, *, replay: bool = False) -> dict[str, bytes]:
        """Return each projection's digest (32 bytes) at the head.

        Both ways of folding give equal digests.

        Args:
            replay: Fold from the log alone and ignore checkpoints; default checkpoint plus tail.
        """
        self._log.refresh()
        fold = replay_fold.replay(self._log, registry=self._fold.registry) if replay else self._fold
        return fold.digests()


class SalvageReads(Writer):
    """The read that goes past damage."""

    def salvaged(self) -> Iterator[Event]:
        """Yield every event that is still readable, also past damage, without the lost seqs.

        A store with a scope yields the events within its scope.

        Raises:
            InvalidInput: the store requires a scope and has none.
        """
        reach = self._session.reach
        check_reach(reach)
        events = salvage_module.salvaged_events(self._log)
        return (event for event in events if reach is None or _is_seen(event, reach))


class FileUpkeep(Points):
    """The state of the file, and its projections folded again."""

    def info(self, at: Basis | None = None) -> dict[str, JsonValue]:
        """Return the file's head, counts, sizes and checkpoints as plain values; folds frames.

        Args:
            at: The basis of head and frame counts, default the newest; sizes are always current.
        """
        with loading("the part that counts"):
            from .info import info

        state = self._session.state() if at is None else self._at(at)
        return info(self._log, state.of_file)

    def rebuild(
        self,
        projection: str | Sequence[str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        workers: int = 1,
    ) -> Rebuild:
        """Fold projections again from the log; reads use the old states until the new are complete.

        Each new state is compared with the old state, and then replaces it. The result names each
        old state that differed, and the first event from which it differed. A rebuild that was
        killed continues from its last saved chunk. Durable on return.

        Args:
            projection: The projection's name, or several names; default every projection.
            progress: Called with the name of a part, and how many of how many steps are complete.
            workers: Processes that fold built-in projections with a checkpoint, this one included;
                default 1. The new state does not depend on their number.

        Raises:
            NotFound: no projection has this name.
            InvalidInput: ``workers`` is no whole number from 1 to 64.
        """
        if not is_integer(workers) or not 1 <= workers <= WORKERS_MAX:
            raise InvalidInput(
                f"workers must be a whole number from 1 to {WORKERS_MAX}, "
                f"not {value_text(workers):.60}",
                remedy="Pass the number of processors, such as workers=2.",
            )
        with loading("the part that rebuilds"):
            from cerata.replay.rebuild import rebuild

        names = self._fold.registry.names if projection is None else projection
        if isinstance(names, str):
            names = (names,)
        return rebuild(self._log, self._fold, names, progress, workers)


def _is_seen(event: Event, reach: Reach) -> bool:
    """Return whether a reach admits a salvaged event; False if it cannot be decoded."""
    try:
        return admits(event.scope, reach)
    except Corrupt:
        return False
