"""Events on their way into a fold: in batches, up to damage, and what is said of that.

Owns how a projection is fed; which events it is given is `fold`'s to decide.
"""

from collections.abc import Iterator
from typing import Final

from cerata.engine.errors import Corrupt
from cerata.engine.events import Event
from cerata.projections.projection import Projection

_STEP_EVENTS: Final = 1024
"""Events decoded at once: enough to make columns pay, few enough to stay in cache."""
_SAVE_SEQS: Final = 32_768
"""Events of a long fold between two savings: about a second of folding."""


def next_stop(seq: int) -> int:
    """Return where a long fold may be saved next."""
    return seq - seq % _SAVE_SEQS + _SAVE_SEQS


def apply_events(projection: Projection, events: Iterator[Event]) -> None:
    """Fold events in batches.

    Raises:
        Corrupt: reading met damage; every event before it is folded.
        ProjectionFailed: the user's code raised; every event before that one is folded.
    """
    for batch in batches(events):
        projection.apply(batch)


def batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    """Yield events in lists; where reading meets damage, first those read before it."""
    batch: list[Event] = []
    try:
        for event in events:
            batch.append(event)
            if len(batch) == _STEP_EVENTS:
                yield batch
                batch = []
    except Corrupt:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def hole(error: Corrupt, last_seq: int) -> Corrupt:
    """Return the error of a read beyond damage in the log."""
    return Corrupt(
        f"The log is damaged after event {last_seq:,}: {error.what}",
        where=error.where,
        remedy=f"Read the memory before it with at({last_seq}); run 'cerata verify' for the rest.",
        offset=error.offset,
    )
