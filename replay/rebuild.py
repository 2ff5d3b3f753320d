"""Rebuilding: projections folded from scratch on the side, while the old states serve reads.

Progress is saved every 32,768 events beside the old state, under its key with a ``~``, so a
rebuild that was killed at any byte continues from there. The state is compared with the chunks of
the old state as it is folded, and at last with the state that serves; then one flip replaces the
old state. If the key has no entry (a new version, other parameters), progress is saved under it at
once, as in any long fold; processes with the older version continue with its entry.

Several projections are folded in one pass over the events. Worker processes fold ranges of events
(`range_workers`); the result is the same for any number of workers.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from cerata.engine.errors import Corrupt, ProjectionFailed
from cerata.engine.json_value import JsonValue
from cerata.engine.late import loading
from cerata.engine.log import Log
from cerata.engine.plain_value import PlainValue, plain_fields
from cerata.projections.core.seal import StateDamaged

from .feed import apply_events, next_stop, read_batches
from .fold import Fold, Progress, Undecodable, silent
from .side import Side, save_side, save_sides, side_of, stop_after
from .verify import Divergence, Parity, Replayed


@dataclass(frozen=True, slots=True)
class Rebuild(PlainValue):
    """The result of a rebuild.

    ``digests`` are those of the new states at event ``seq``, by projection. ``divergences`` has the
    first event from which an old state differed; ``unmatched`` names the projections without an
    old state.
    """

    seq: int
    digests: dict[str, bytes]
    divergences: tuple[Divergence, ...]
    unmatched: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """True if no old state differed from the new state."""
        return not self.divergences

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("seq", "equal", "divergences", "unmatched")),
            "digests": {name: digest.hex() for name, digest in sorted(self.digests.items())},
        }


def rebuild(
    log: Log,
    fold: Fold,
    names: Sequence[str],
    progress: Progress | None = None,
    workers: int = 1,
) -> Rebuild:
    """Fold projections from the first event again, and replace the old states.

    Durable on return. The projections are replaced in turn, each when it is complete.

    Raises:
        NotFound: no projection has one of the names.
        ProjectionFailed: a projection raised; the projections before it are replaced.
        Corrupt: the log is damaged.
        ReadOnly: the log was opened for reading.
    """
    report = progress or silent
    for name in names:
        fold.registry.make(name)
    log.refresh()
    sides = _sides_of(log, fold, names)
    if workers > 1:
        with loading("the workers of a rebuild"):
            from .range_workers import fold_ranges

        again = fold_ranges(log, fold, sides, workers, report)
        sides = {name: side for name, side in sides.items() if name not in again}
        sides |= _sides_of(log, fold, sorted(again))
    if len(names) > 1:
        _fold_together(log, fold, sides, report)
    parities: list[Replayed | None] = []
    for name in names:
        try:
            parities.append(_replaced(log, fold, name, sides.pop(name, None), report))
        except StateDamaged as error:
            raise _unstable(log, name, error) from error
        except Undecodable as error:
            raise error.damage from error
    compared = [parity for parity in parities if parity is not None]
    seq = log.head.seq
    return Rebuild(
        seq,
        {name: fold.digest_at(name, seq) for name in names},
        tuple(parity.first for parity in compared if parity.first is not None),
        tuple(name for name, parity in zip(names, parities, strict=True) if parity is None),
    )


def _unstable(log: Log, name: str, error: StateDamaged) -> Corrupt:
    return Corrupt(
        f"The state of the projection {name!r} changed while it was rebuilt: {error}",
        where=log.path,
        remedy="Test the memory of this machine, and rebuild again; nothing was saved.",
    )


def _sides_of(log: Log, fold: Fold, names: Sequence[str]) -> dict[str, Side]:
    """Return the rebuilds of projections, except those whose turn will raise `Undecodable`."""
    sides: dict[str, Side] = {}
    for name in names:
        with suppress(Undecodable):
            sides[name] = side_of(log, fold, name)
    return sides


def _fold_together(log: Log, fold: Fold, sides: dict[str, Side], report: Progress) -> None:
    """Fold several projections in one pass, up to the head.

    A projection with a fault is removed: its turn meets the fault again, and raises it.
    """
    end = log.head.seq
    parity = Parity(log, fold)
    at = min((side.fresh.seq for side in sides.values()), default=end)
    while at < end and sides:
        stop = stop_after(sides.values(), at, end)
        if not _apply_together(log, sides, at, stop):
            break
        at = stop
        _compare_together(parity, sides)
        if stop < end and stop == next_stop(stop - 1):
            _save_together(log, fold, sides)
        report("rebuilding", at, end)


def _apply_together(log: Log, sides: dict[str, Side], after: int, through: int) -> bool:
    """Fold events into all sides that lack them; return whether the log was read so far."""
    try:
        for batch in read_batches(log, after + 1, through):
            for name, side in [*sides.items()]:
                rest = batch[side.fresh.seq + 1 - batch.first_seq :]
                try:
                    side.fresh.apply(rest)
                except (Corrupt, ProjectionFailed, StateDamaged):
                    del sides[name]
    except Corrupt:
        # The states end before the damage; the turn of each reads on, and raises it.
        return False
    return True


def _compare_together(parity: Parity, sides: dict[str, Side]) -> None:
    for name, side in [*sides.items()]:
        try:
            _compare(parity, side)
        except StateDamaged:
            del sides[name]


def _compare(parity: Parity, side: Side) -> None:
    if side.replayed is not None:
        parity.compare_chunks(side.replayed)


def _save_together(log: Log, fold: Fold, sides: dict[str, Side]) -> None:
    try:
        save_sides(log, fold, sides.values())
    except StateDamaged:
        # The turn of each saves it, and meets the damage again.
        return


def _replaced(
    log: Log, fold: Fold, name: str, side: Side | None, report: Progress
) -> Replayed | None:
    """Fold the rest of a projection, compare it, and put it in the place of the old state.

    Return the comparison, None without an old state.
    """
    while True:
        try:
            return _finished(log, fold, side or side_of(log, fold, name), report)
        except _Overtaken:
            side = None


class _Overtaken(Exception):
    """An erasure overtook the rebuild, so its state may contain erased content."""


def _finished(log: Log, fold: Fold, side: Side, report: Progress) -> Replayed | None:
    fresh = side.fresh
    replayed = side.replayed
    parity = Parity(log, fold)
    label = f"rebuilding {side.name}"
    begun = fresh.seq
    _compare(parity, side)
    while fresh.seq < (end := log.head.seq):
        stop = stop_after([side], fresh.seq, end)
        apply_events(fresh, read_batches(log, fresh.seq + 1, stop))
        _compare(parity, side)
        if stop < end and stop == next_stop(stop - 1):
            save_side(log, fold, side)
        report(label, fresh.seq, end)
    if fresh.seq == begun:
        report(label, fresh.seq, end)
    with fold.exclusive():
        apply_events(fresh, read_batches(log, fresh.seq + 1, log.head.seq))
        if replayed is not None and log.erased == side.erased and fold.is_folded(side.name):
            # A state that is not in memory is that of the chunks that were compared.
            parity.compare_serving(replayed)
        moves = {} if replayed is None else {side.saved_as: side.key}
        # Try again if another rebuild continued the side state, or finished, in between.
        while not save_side(log, fold, side, moves, tail=True):
            if log.erased != side.erased:
                raise _Overtaken
        fold.replace(fresh)
    return replayed
