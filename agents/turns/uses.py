"""Accesses: how often frames were shown and used, and the call that records a use.

Owns the calls. Leaves out the counts (`cerata.memory.frames.access`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.events import AccessFrames, Draft
from cerata.engine.late import late
from cerata.memory.batch.writer import Writer, session_of
from cerata.memory.snapshot.reader import Reader, snapshot_of, store_call
from cerata.memory.values.arguments import full_scope
from cerata.memory.values.frames import FrameId, Receipt, frame_id

if TYPE_CHECKING:
    from cerata.memory.frames import access as frames_accesses
    from cerata.memory.frames.access import Access
else:
    frames_accesses = late("cerata.memory.frames.access")


@store_call
def access(memory: Reader, frame: FrameId) -> Access:
    """Return how often recorded recalls showed a frame, and how often it was used.

    Only events within the view's scope count. Cost: a copy of all counts and a pass over
    them for the first read of a state, then O(1).

    Args:
        memory: A store or view.
        frame: The frame's id, or a value that has the id.

    Raises:
        NotFound: no frame with this id exists at this basis within the scope.
    """
    snapshot = snapshot_of(memory)
    return frames_accesses.access_of(snapshot, snapshot.id_of(frame))


@store_call
def accesses(memory: Reader) -> list[Access]:
    """Return the counts of `access` for each frame that was shown or used, most used first.

    Frames used equally often are in order of how often they were shown, then newest first.
    """
    return frames_accesses.all_access(snapshot_of(memory))


@store_call
def record_access(
    store: Writer,
    *frames: FrameId,
    actor: str | None = None,
) -> Receipt:
    """Record that frames were used, for example opened or cited; `access` returns the counts.

    Durable on return.

    Args:
        store: The memory.
        *frames: The frames that were used, at least one.
        actor: Name of the writer; default that of the transaction, else of the store.

    Raises:
        NotFound: a frame does not exist.
        InvalidInput: no frame was passed.
    """
    if not frames:
        raise InvalidInput(
            "record_access needs at least one frame", remedy="Pass the frames that were used."
        )
    numbers = tuple(dict.fromkeys(map(frame_id, frames)))
    scope = full_scope(None, session_of(store).scope)
    session_of(store).record_call(scope, "record_access", numbers)
    return session_of(store).by(actor).write([Draft(AccessFrames(frames=numbers), scope)])
