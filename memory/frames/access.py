"""Access: which frames models were shown and used.

Owns the counts of a frame as of a view. Counts change a ranking
only if a profile has an importance, and then only the counts of uses: a frame that is shown more
often is not more useful for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.times import to_datetime
from cerata.projections.rows.built_in import NEVER, Counts
from cerata.retrieval.base_level_activation import Use, days_between

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Access(PlainValue):
    """How often recorded recalls showed a frame, how often it was used, and when last.

    - The counts cover events within the view's scope, up to its basis.
    - A time before the first event is unset (None).
    """

    frame: int
    shown: int
    last_shown: datetime | None
    used: int
    last_used: datetime | None


def access_of(snapshot: Snapshot, frame: int) -> Access:
    """Return the counts of a frame. Cost: O(1); the first call of a state reads all rows."""
    shown_count, last_shown, used_count, last_used = _counts_of(snapshot, frame)
    return Access(frame, shown_count, _time(last_shown), used_count, _time(last_used))


def use_of(snapshot: Snapshot, frame: int, now: int) -> Use:
    """Return how often a frame was used, and when, in days before ``now`` in microseconds.

    ``now`` is the recorded time of the view's last event, not the clock's, so the same basis gives
    the same result at any time.
    """
    _, _, used, last_used = _counts_of(snapshot, frame)
    age = days_between(snapshot.layers.created(frame), now)
    return Use(age, used, days_between(last_used, now))


def uses_among(snapshot: Snapshot, frames: Iterable[int]) -> dict[int, Use]:
    """Return the uses of the frames that were used, by id.

    Cost: a look-up for each frame; the first of a state as `access_of`.
    """
    now = snapshot.head.recorded
    uses = {frame: use_of(snapshot, frame, now) for frame in frames if snapshot.counts_of(frame)}
    return {frame: use for frame, use in uses.items() if use.count}


def all_access(snapshot: Snapshot) -> list[Access]:
    """Return the counts of all frames that were shown or used, the most used first.

    Ties go to the frame shown most often, then to the newest. Cost: a pass over all counts.
    """
    accesses = (access_of(snapshot, frame) for frame in snapshot.accessed_frames())
    counted = (access for access in accesses if access.shown or access.used)
    return sorted(
        counted,
        key=lambda access: (-access.used, -access.shown, -snapshot.layers.moment(access.frame)),
    )


def _counts_of(snapshot: Snapshot, frame: int) -> Counts:
    shown_count, last_shown, used_count, last_used = NEVER
    for row in snapshot.counts_of(frame):
        shown_count, last_shown = shown_count + row[0], max(last_shown, row[1])
        used_count, last_used = used_count + row[2], max(last_used, row[3])
    return shown_count, last_shown, used_count, last_used


def _time(recorded: int) -> datetime | None:
    return to_datetime(recorded) if recorded else None
