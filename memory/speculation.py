"""Speculation: a state with events that are not in the log.

Owns the checks of speculative drafts, as of an append at the state's basis, and the state that has
them. Leaves out how reads see drafts (`cerata.memory.snapshot.pending`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.arguments import expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, EventBody
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.projections.columnar.scopes import check_reach

from .batch.embedder_use import EmbedderUse
from .batch.validation import BatchChecks
from .values.arguments import within_scope
from .values.pending_ids import PendingIds

if TYPE_CHECKING:
    from .snapshot.snapshot import Snapshot


def speculated(snapshot: Snapshot, events: Sequence[EventBody | Draft]) -> Snapshot:
    """Return a state with events after it, as if they were the next batch; writes nothing.

    The events follow the drafts of the state, so their ids go on from these. A reference of −k
    names the k-th draft. They count as recorded
    1 µs after the basis, or now.

    Cost: folds all drafts of the state again at the first read.

    Raises:
        InvalidInput, NotFound, Conflict: an append at the basis would be refused.
    """
    check_reach(snapshot.reach)
    remedy = "Pass event bodies or drafts."
    for event in events:
        expect_type("events", event, Draft | EventBody, "event bodies or drafts", remedy)
    new = [_checkable(event) for event in events]
    if not new:
        return snapshot
    drafted = snapshot.drafts
    if len(drafted) + len(new) > BATCH_EVENTS_MAX:
        raise InvalidInput(
            f"The view would have more than {BATCH_EVENTS_MAX:,} speculative events",
            remedy="Speculate with fewer events; they count as one batch.",
        )
    log, fold, reach = snapshot.source
    checks = BatchChecks(log, fold, reach, {}, EmbedderUse(fold))
    drafts = [*drafted, *checks.salted(within_scope(new, reach))]
    # The drafts are one batch, so they are checked together, as an append checks its batch.
    checks.take(drafts, 1, snapshot.basis)
    recorded = snapshot.drafts_recorded
    state = msgspec.structs.replace(snapshot, now_us=recorded)
    ids = PendingIds(lambda: False, is_speculative=True)
    return state.with_pending(state.pending_builder(recorded, ids).through(drafts))


def _checkable(event: EventBody | Draft) -> Draft:
    """Return an event of a caller as a draft of which everything is checked."""
    if not isinstance(event, Draft):
        return Draft(event)
    if event.salt is not None:
        raise InvalidInput(
            "A draft must have no salt, since a shared salt survives the erasure of one event",
            remedy="Leave salt=None; the store draws one for each event.",
        )
    return msgspec.structs.replace(event, is_checked=False) if event.is_checked else event
