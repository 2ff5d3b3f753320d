"""Writers: the base of every group of commands.

A group (`frames.commands`, `facts.commands`, …) writes through the session that it holds.
"""

from cerata.engine.handle import Handle

from ..snapshot.reader import Reader
from ..snapshot.snapshot import Snapshot
from .session import WriteSession


class Writer(Reader, Handle):
    """A handle that writes, and reads the newest state."""

    def __init__(self, session: WriteSession) -> None:
        self._session = session
        self._log = session.log
        self._fold = session.fold

    def _snapshot(self) -> Snapshot:
        return self._session.snapshot()


def session_of(writer: Writer) -> WriteSession:
    """Return the session through which a handle writes."""
    return writer._session  # pyright: ignore[reportPrivateUsage]
