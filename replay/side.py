"""A projection that is rebuilt: its fold, its saved progress, its comparison with the old state.

Owns `Side` and its saves beside the old state. A chunk that equals a chunk of the old state is
named by the progress, not written again. Leaves out the fold (`rebuild`, `range_workers`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cerata.engine.log import Log
from cerata.projections.core.projection import Projection
from cerata.projections.core.seal import StateDamaged
from cerata.projections.registry import projection_key

from .checkpoint import Plan, Shared, plan_checkpoint, publish
from .feed import next_stop
from .fold import Fold
from .verify import Parity, Replayed

REBUILDING: Final = "~"
"""Ends the key of a state that is being rebuilt beside the serving state. On disk."""


@dataclass
class Side:
    """A projection that is rebuilt, and the key of its saved progress.

    ``erased`` is `Log.erased` from before its fold; ``bad`` are the first seqs of unusable chunks.
    ``replayed`` is the comparison with the old state, which serves until the rebuild ends; None
    without an old state.
    """

    fresh: Projection
    key: str
    saved_as: str
    erased: int
    bad: frozenset[int]
    replayed: Replayed | None

    @property
    def name(self) -> str:
        return self.fresh.name

    def plan(self, log: Log, fold: Fold, *, tail: bool = False) -> Plan | None:
        """Return the plan of a save of the folded state, which replaces chunks at bad seqs.

        Raises:
            StateDamaged: the state in memory differs from the result of the fold.
        """
        equal = {} if self.replayed is None else self.replayed.equal
        return plan_checkpoint(
            self.fresh,
            log.file,
            log.toc().saved(self.saved_as),
            erased=self.erased,
            tail=tail,
            bad=self.bad,
            places=fold.places,
            shared=Shared(self.key, equal),
        )


def side_of(log: Log, fold: Fold, name: str) -> Side:
    """Return a rebuild of a projection with the progress that is saved.

    Raises:
        Undecodable: a chunk is damaged, and so is the payload of one of its events.
    """
    fresh = fold.registry.make(name)
    key = projection_key(fresh)
    log.refresh()
    erased = log.erased
    toc = log.toc()
    replayed = None
    if key in toc.projections:
        replayed = Parity(log, fold).replayed(fresh, toc.saved(key))
    saved_as = key if replayed is None else key + REBUILDING
    bad = fold.load(toc.saved(saved_as), fresh).bad_seqs
    return Side(fresh, key, saved_as, erased, bad, replayed)


def stop_after(sides: Iterable[Side], seq: int, end: int) -> int:
    """Return the next event at which a fold saves, or at which an old state can be compared."""
    old_ends = [side.replayed.saved.seq for side in sides if side.replayed is not None]
    return min(end, next_stop(seq), *(old_end for old_end in old_ends if old_end > seq))


def save_sides(log: Log, fold: Fold, sides: Iterable[Side]) -> None:
    """Save the progress of several rebuilds at once, except rebuilds that another process overtook.

    Raises:
        StateDamaged: a state in memory differs from the result of the fold.
    """
    plans = {side.saved_as: side.plan(log, fold) for side in sides}
    whole = {key: plan for key, plan in plans.items() if plan is not None}
    if whole:
        publish(log, whole)


def save_side(
    log: Log,
    fold: Fold,
    side: Side,
    moves: Mapping[str, str] | None = None,
    *,
    tail: bool = False,
) -> bool:
    """Save the folded state; return whether it was saved.

    Raises:
        StateDamaged: the state in memory differs from the result of the fold.
    """
    try:
        plan = side.plan(log, fold, tail=tail)
    except StateDamaged:
        if log.erased != side.erased:
            return False
        raise
    if plan is None and not moves:
        return True
    is_saved = publish(log, {} if plan is None else {side.saved_as: plan}, moves)
    if not is_saved and side.replayed is not None:
        # The old state may be gone, and its chunks with it: write all of them at the next try.
        side.replayed.equal.clear()
    return is_saved
