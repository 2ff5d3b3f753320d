"""Rebuilding: a projection folded from scratch on the side, while the old state serves reads.

Progress is saved every 32,768 events beside the old state, under its key with a ``~``, so a
rebuild that was killed at any byte continues from there. When the state is complete, one flip
replaces the old state. If the key has no entry (a new version, other parameters), progress is saved
under it at once, as in any long fold; processes with the older version continue with its entry.
"""

from collections.abc import Mapping
from typing import Final

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.projections.core.projection import Projection
from cerata.projections.core.seal import StateDamaged
from cerata.projections.registry import projection_key

from .checkpoint import plan_checkpoint, publish
from .feed import apply_events, next_stop
from .fold import Fold, Progress, Undecodable, silent

REBUILDING: Final = "~"
"""Ends the key of a state that is being rebuilt beside the serving state. On disk."""


def rebuild(log: Log, fold: Fold, name: str, progress: Progress | None = None) -> None:
    """Fold a projection from the first event again, and replace the old state.

    Durable on return.

    Raises:
        NotFound: no projection has this name.
        ProjectionFailed: the projection raised.
        Corrupt: the log is damaged.
        ReadOnly: the log was opened for reading.
    """
    try:
        while not _rebuild(log, fold, name, progress or silent):
            # An erasure overtook the rebuild: the state may contain erased content.
            continue
    except StateDamaged as error:
        raise Corrupt(
            f"The state of the projection {name!r} changed while it was rebuilt: {error}",
            where=log.path,
            remedy="Test the memory of this machine, and rebuild again; nothing was saved.",
        ) from error


def _rebuild(log: Log, fold: Fold, name: str, report: Progress) -> bool:
    """Rebuild a projection, unless an erasure overtakes it; return whether it was rebuilt."""
    fresh = fold.registry.make(name)
    key = projection_key(fresh)
    log.refresh()
    erased = log.erased
    toc = log.toc()
    side = key + REBUILDING if key in toc.projections else key
    try:
        bad = fold.load(toc.saved(side), fresh).bad_seqs
    except Undecodable as error:
        raise error.damage from error
    while fresh.seq < (end := log.head.seq):
        stop = min(end, next_stop(fresh.seq))
        apply_events(fresh, log.read(fresh.seq + 1, stop))
        if stop < end:
            _save(log, fold, fresh, side, erased, bad)
        report(f"rebuilding {name}", fresh.seq, end)
    with fold.exclusive():
        apply_events(fresh, log.read(fresh.seq + 1, log.head.seq))
        moves = {} if side == key else {side: key}
        # Try again if another rebuild continued the side state, or finished, in between.
        while not _save(log, fold, fresh, side, erased, bad, moves, tail=True):
            if log.erased != erased:
                return False
        fold.replace(fresh)
    return True


def _save(
    log: Log,
    fold: Fold,
    fresh: Projection,
    side: str,
    erased: int,
    bad: frozenset[int],
    moves: Mapping[str, str] | None = None,
    *,
    tail: bool = False,
) -> bool:
    """Save the folded state, replacing chunks at ``bad`` seqs; return whether it was saved."""
    saved = log.toc().saved(side)
    try:
        plan = plan_checkpoint(
            fresh, log.file, saved, erased=erased, tail=tail, bad=bad, places=fold.places
        )
    except StateDamaged:
        if log.erased != erased:
            return False
        raise
    if plan is None and not moves:
        return True
    return publish(log, {} if plan is None else {side: plan}, moves)
