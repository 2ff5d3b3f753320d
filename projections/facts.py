"""The fold that knows facts: what was asserted, what ended, and who is who.

Owns which events it handles, and the effects: *births* (a row per fact, its columns never change),
*repeats* (the same fact asserted again), their *evidence* and *assumptions*, *closings* (a
retraction), and *acts* (what was said of predicates and entities, and oddities). What an event adds
is `fact_fold`'s. Reading is `fact_table`'s, which also works out what follows from all of it, such
as where a value of a functional predicate ends.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from cerata.engine.events import (
    AssertFact,
    EventBody,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)

from .column_fold import ScopedFold
from .fact_columns import FactColumns
from .fact_fold import FactFold
from .fact_table import Facts
from .projection import FoldedEvent

_KINDS: Final[tuple[type[EventBody], ...]] = (
    AssertFact,
    RetractFact,
    PutPredicate,
    PutEntity,
    MergeEntities,
    UnmergeEntities,
    SplitEntity,
    UnsplitEntity,
)
FACT_EVENTS: Final = frozenset(kind.wire_name for kind in _KINDS)
"""The wire names of the events that it folds."""


class FactsProjection(ScopedFold[FactColumns]):
    """Folds assertions, retractions, and what is said of predicates and entities, into columns."""

    name: ClassVar[str] = "facts"
    version: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__(FactColumns())
        self._facts: Facts | None = None

    def snapshot(self) -> Facts:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._facts is None or self._facts.seq != self._seq:
            self._facts = Facts(self._columns, self._seq)
        return self._facts

    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        handled = [
            (event, self._scope_code(event.scope, event.seq))
            for event in events
            if event.type in FACT_EVENTS
        ]
        if handled:
            FactFold(self._columns).fold(handled)
