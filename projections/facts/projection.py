"""The facts projection: assertions, retractions, predicates and entities.

Owns the list of handled events. Effects are *births* (a row per fact, whose columns never change),
*repeats* (the same fact asserted again), their *evidence* and *assumptions*, *closings* (a
retraction), and *acts* (declarations of predicates and entities, and anomalies). Leaves out the
effects of an event (`fold`), and reading and inference, such as the end of a value of a
functional predicate (`reader`).
"""

from typing import TYPE_CHECKING, ClassVar, Final

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
from cerata.engine.late import late

from ..core.column_fold import ForkableFold
from ..core.event_batch import EventBatch
from .columns import FactColumns
from .history import Facts

if TYPE_CHECKING:
    from . import fold as fact_fold
else:
    fact_fold = late("cerata.projections.facts.fold")

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
"""The wire names of the handled events."""


class FactsProjection(ForkableFold[FactColumns]):
    """Folds assertions, retractions, and acts on predicates and entities into columns."""

    name: ClassVar[str] = "facts"
    version: ClassVar[int] = 4

    def __init__(self) -> None:
        super().__init__(FactColumns())
        self._facts: Facts | None = None

    def snapshot(self) -> Facts:
        """Return an immutable reader of the state at ``seq``; O(1), any thread may use it."""
        if self._facts is None or self._facts.seq != self.seq:
            self._facts = Facts(self._columns, self.seq)
        return self._facts

    def _fold(self, events: EventBatch) -> None:
        handled = events.of_types(FACT_EVENTS)
        if handled:
            scopes = [event.scope for event in handled]
            codes = self._scope_codes(scopes, [event.seq for event in handled])
            fact_fold.FactFold(self._columns).fold([*zip(handled, codes, strict=True)])
