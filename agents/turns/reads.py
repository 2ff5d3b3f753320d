"""Messages of a snapshot."""

from cerata.memory.snapshot.snapshot import Snapshot

from .projection import MessagesProjection
from .reader import MessagesAt


def messages_at(snapshot: Snapshot) -> MessagesAt:
    """Return the messages of the log as of a snapshot, closed ones too."""
    return snapshot.columns(MessagesProjection)
