"""A user's projection in two versions: the rows of each from one log, and where they part.

Both fold the same events in memory, so neither needs to be registered in the store. Owns the
comparison of rows. Leaves out importing the classes, and the comparison of one version with its
saved rows (`cerata.replay.verify`). Writes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.reader import Reader, snapshot_of
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.registry import Registry
from cerata.projections.rows.row_fold import MakeOwn, OwnProjection, RowFold
from cerata.replay.feed import read_batches

from .replayed_life import Progress

_Rows: TypeAlias = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class RowChange(PlainValue):
    """A row that differs; a side without it has no value, and ``only`` names the side that has it.

    Key and values are plain values, with bytes in hexadecimal.
    """

    key: object
    only: str | None
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class ProjectionComparison(PlainValue):
    """The rows of two projections as of one basis.

    - ``before`` and ``after`` are name and version of the two.
    - ``first`` is an event with which equal rows became different, of the first 1,024 events that
      end with different rows; None if none do. Rows that part once have no other such event.
    - ``changes`` are the rows that differ at the basis, in order of the bytes of their
      keys.
    """

    before: str
    after: str
    basis: int
    first: int | None
    rows_before: int
    rows_after: int
    changes: tuple[RowChange, ...]

    @property
    def same(self) -> bool:
        """True if the rows are equal at the basis."""
        return not self.changes


def compare_projections(
    reader: Reader, before: MakeOwn, after: MakeOwn, progress: Progress | None = None
) -> ProjectionComparison:
    """Fold all events of a view with two projections, and compare their rows.

    Cost: two folds of the events, and a copy of the rows for every 1,024 events.

    Args:
        reader: A store or view without a scope.
        before: The class of the first, or a function that returns it.
        after: The class of the second; its name and version may be the same.
        progress: Called with the name of the pass, and how many of how many events are folded.

    Raises:
        InvalidInput: an argument is no projection.
        ProjectionFailed: the user's code raised.
        Unsupported: the reader has a scope; rows cover all scopes.
    """
    snapshot = snapshot_of(reader)
    if snapshot.reach is not None:
        raise Unsupported(
            "Rows of a projection cover all scopes, so a reader with a scope has none",
            remedy="Open the store without a scope.",
        )
    folds = [_fold(make) for make in (before, after)]
    states = [fold.snapshot() for fold in folds]
    first: int | None = None
    log, _, _ = snapshot.source
    for events in read_batches(log, 1, snapshot.basis):
        new = _over(folds, states, events)
        if first is None and not _are_equal(new):
            first = _parting(folds, states, events)
        states = new
        if progress is not None:
            progress("folding", events[-1].seq, snapshot.basis)
    one, other = _encoded(states)
    return ProjectionComparison(
        before=f"{states[0].name} {states[0].version}",
        after=f"{states[1].name} {states[1].version}",
        basis=snapshot.basis,
        first=first,
        rows_before=len(one),
        rows_after=len(other),
        changes=tuple(_changes(one, other)),
    )


def _fold(make: MakeOwn) -> RowFold:
    """Return an empty fold. Raises `InvalidInput` if it is no valid projection."""
    registry = Registry([make])
    fold = registry.make(registry.names[-1])
    if not isinstance(fold, RowFold):
        raise InvalidInput("A projection must have rows", remedy="Pass a cerata.RowProjection.")
    return fold


def _over(
    folds: Sequence[RowFold], states: Sequence[OwnProjection], events: EventBatch
) -> list[OwnProjection]:
    return [fold.over(state, events) for fold, state in zip(folds, states, strict=True)]


def _encoded(states: Sequence[OwnProjection]) -> tuple[_Rows, _Rows]:
    """Return the rows of each state as bytes, so that True is not 1."""
    one, other = (dict(state.rows.all_encoded()) for state in states)
    return one, other


def _are_equal(states: Sequence[OwnProjection]) -> bool:
    one, other = _encoded(states)
    return one == other


def _parting(folds: Sequence[RowFold], states: Sequence[OwnProjection], events: EventBatch) -> int:
    """Return an event with which the rows become different; they are equal before the events."""
    equal, different = 0, len(events)
    while different - equal > 1:
        middle = (equal + different) // 2
        if _are_equal(_over(folds, states, events[:middle])):
            equal = middle
        else:
            different = middle
    return events[different - 1].seq


def _changes(before: _Rows, after: _Rows) -> Iterator[RowChange]:
    for key in sorted({*before, *after}):
        one, other = before.get(key), after.get(key)
        if one != other:
            only = "before" if other is None else "after" if one is None else None
            yield RowChange(_decoded(key), only, _decoded(one), _decoded(other))


def _decoded(data: bytes | None) -> object:
    return None if data is None else msgspec.msgpack.decode(data)
