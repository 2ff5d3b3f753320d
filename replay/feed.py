"""Events for a fold: in batches, up to damage, and the error for reads beyond it.

Owns the steps of a fold; `fold` chooses the events.
"""

from collections.abc import Iterator
from typing import Final

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.core.projection import Projection

_STEP_EVENTS: Final = 1024
"""Events decoded at once: enough for efficient columns, few enough to stay in cache."""
_SAVE_SEQS: Final = 32_768
"""Events of a long fold between two saves: about a second of folding."""


def next_stop(seq: int) -> int:
    """Return the seq of the next save in a long fold."""
    return seq - seq % _SAVE_SEQS + _SAVE_SEQS


def apply_events(projection: Projection, pieces: Iterator[EventBatch]) -> None:
    """Fold batches of events.

    Raises:
        Corrupt: the log is damaged; every event before the damage is folded.
        ProjectionFailed: the user's code raised; every event before that event is folded.
    """
    for batch in pieces:
        projection.apply(batch)


def read_batches(log: Log, first: int, last: int) -> Iterator[EventBatch]:
    """Yield events of the file in batches; at damage, yield the events before it, then raise."""
    return map(EventBatch, log.read_in_sequences(first, last, _STEP_EVENTS))


def recent_batches(log: Log, first: int, last: int) -> Iterator[EventBatch]:
    """Yield the same, the events that this handle appended last from memory."""
    return map(EventBatch, log.recent_in_sequences(first, last, _STEP_EVENTS))


def hole(error: Corrupt, last_seq: int) -> Corrupt:
    """Return the error of a read beyond damage in the log."""
    return Corrupt(
        f"The log is damaged after event {last_seq:,}: {error.what}",
        where=error.where,
        remedy=f"Read the state before the damage with at({last_seq}), and run "
        "'cerata file verify'.",
        offset=error.offset,
    )
