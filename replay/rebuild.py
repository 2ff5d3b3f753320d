"""Rebuilding: a projection folded anew on the side, while the old one serves.

What is done is saved every 32,768 events beside the old state, under its key with a ``~``, so a
rebuild that was killed at any byte goes on from there. When it is whole, one flip puts it in the
old one's place. Where nothing stands under the key (a new version, other parameters), it is saved
there at once, as any fold of a long way is; those who run the older version go on with its entry.
"""

from collections.abc import Mapping
from typing import Final

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.projections.projection import Projection
from cerata.projections.registry import projection_key
from cerata.projections.seal import StateDamaged

from .checkpoint import plan_checkpoint, publish
from .events import apply_events, next_stop
from .fold import Fold, Progress, Undecodable, silent

REBUILDING: Final = "~"
"""Ends the key of a state that is being rebuilt beside one that serves. On disk."""


def rebuild(log: Log, fold: Fold, name: str, progress: Progress | None = None) -> None:
    """Fold a projection anew from the first event, and put it in the old one's place.

    Durable on return.

    Raises:
        NotFound: no projection has this name. ProjectionFailed: it raised.
        Corrupt: the log is damaged. ReadOnly: the log was opened for reading.
    """
    try:
        while not _rebuild(log, fold, name, progress or silent):
            # An erasure overtook it: the state may hold content that is erased now.
            continue
    except StateDamaged as error:
        raise Corrupt(
            f"The state of the projection {name!r} changed while it was rebuilt: {error}",
            where=log.path,
            remedy="Nothing of it was saved. Test the memory of this machine; rebuild again.",
        ) from error


def _rebuild(log: Log, fold: Fold, name: str, report: Progress) -> bool:
    """Rebuild a projection, unless an erasure overtakes it; return whether it was rebuilt."""
    fresh = fold.registry.make(name)
    key = projection_key(fresh)
    log.refresh()
    erased, toc = log.erased, log.toc()
    side = key + REBUILDING if key in toc.projections else key
    try:
        bad = fold.load(toc.saved(side), fresh).bad_seqs
    except Undecodable as error:
        raise error.damage from error
    while fresh.seq < (end := log.head.seq):
        stop = min(end, next_stop(fresh.seq))
        apply_events(fresh, log.read(fresh.seq + 1, stop))
        if stop < end:
            _save(log, fresh, side, erased, bad)
        report(f"rebuilding {name}", fresh.seq, end)
    with fold.exclusive():
        apply_events(fresh, log.read(fresh.seq + 1, log.head.seq))
        moves = {} if side == key else {side: key}
        # Again where another rebuild went on with the side, or finished, meanwhile.
        while not _save(log, fresh, side, erased, bad, moves, tail=True):
            if log.erased != erased:
                return False
        fold.replace(fresh)
    return True


def _save(
    log: Log,
    fresh: Projection,
    side: str,
    erased: int,
    bad: frozenset[int],
    moves: Mapping[str, str] | None = None,
    *,
    tail: bool = False,
) -> bool:
    """Save what is folded, and return whether it was; chunks at the seqs ``bad`` are made anew."""
    saved = log.toc().saved(side)
    try:
        plan = plan_checkpoint(fresh, log.file, saved, erased=erased, tail=tail, bad=bad)
    except StateDamaged:
        if log.erased != erased:
            return False
        raise
    if plan is None and not moves:
        return True
    return publish(log, {} if plan is None else {side: plan}, moves)
