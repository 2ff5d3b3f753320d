"""Activities of a snapshot."""

from cerata.memory.snapshot.snapshot import Snapshot

from .projection import ActivitiesProjection
from .reader import ActivitiesAt


def activities_at(snapshot: Snapshot) -> ActivitiesAt:
    """Return the activities of a snapshot: those of the log and of a transaction's drafts."""
    return snapshot.columns(ActivitiesProjection)
