"""Closing many frames: the batches that delete the frames of a condition.

Owns the choice of frames, once, and the attempts of each batch. Another writer may close frames
since; these are passed over. Through a narrower scope a filter that admits shared frames is
refused; a sweep leaves these frames to a store of their scope. A sweep closes no frame that has not
expired, of any scope, so it leaves a frame above one as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import ReadOnly
from cerata.engine.events import DeleteFrame, Draft

from ..batch.attempts import attempted
from ..batch.owner_rules import shared_error

if TYPE_CHECKING:
    from cerata.projections.frames.filters import Filter

    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Receipt

BATCH_FRAMES: Final = 1_000
"""Frames of a batch; each batch is durable before the next."""

EXPIRED: Final = "expired"
"""The reason of the events with which a sweep closes frames."""


def matching_frames(snapshot: Snapshot, where: Filter) -> list[int]:
    """Return the current frames that a filter admits, without chunks, oldest first.

    Raises:
        ReadOnly: a frame is shared, or above a shared frame.
    """
    layers = snapshot.layers
    frames = _roots(snapshot, [*layers.newest(layers.whole(layers.admitted(where)))][::-1])
    for frame in frames:
        if (error := _obstacle(snapshot, frame)) is not None:
            raise ReadOnly(
                error.what,
                remedy="Add a Filter with the store's scope, or open the store with the wider one.",
            )
    return frames


def expired_frames(snapshot: Snapshot) -> tuple[list[int], int]:
    """Return the expired frames to close, oldest first, and the count of those left as shared.

    Frames above a frame that has not expired are left too, and not counted.
    """
    expired = snapshot.layers.expired_open()
    own = [frame for frame in expired if not _obstacle(snapshot, frame)]
    frames = [frame for frame in own if not snapshot.layers.is_above_unexpired(frame)]
    return _roots(snapshot, frames), len(expired) - len(own)


def _may_sweep(snapshot: Snapshot, frame: int) -> bool:
    """Return whether closing an expired frame closes only expired frames, none of them shared."""
    return not (_obstacle(snapshot, frame) or snapshot.layers.is_above_unexpired(frame))


def _roots(snapshot: Snapshot, frames: Sequence[int]) -> list[int]:
    """Return the frames without those below another: closing a frame closes the frames below."""
    among = set(frames)
    return [frame for frame in frames if not snapshot.layers.is_below(frame, among)]


def _obstacle(snapshot: Snapshot, frame: int) -> ReadOnly | None:
    """Return the error of deleting a frame, if it or an open frame below is shared."""
    reach = snapshot.reach
    if reach is None or not reach.has_shared or frame < 0:
        return None
    return shared_error(snapshot.base.frames, frame, snapshot.basis, reach)


def delete_frames(
    session: WriteSession, frames: Sequence[int], *, is_sweep: bool = False
) -> Receipt:
    """Delete frames that are still open, in batches; return one receipt of all batches.

    A transaction takes all of them at once. A sweep passes frames over that it may no longer close;
    otherwise shared frames, and frames above shared frames, are an error.

    Raises:
        Conflict: other writers were first in every attempt of a batch.
        InvalidInput: a transaction would pass its limit of events.
        ReadOnly: a frame is shared, or above a shared frame.
    """
    size = max(1, len(frames)) if session.in_transaction else BATCH_FRAMES
    receipts = [
        receipt
        for first in range(0, len(frames), size)
        if (receipt := _delete(session, frames[first : first + size], is_sweep=is_sweep))
        is not None
    ]
    if not receipts:
        return session.unchanged(session.snapshot(), 0)
    return replace(
        receipts[-1],
        id=receipts[0].id,
        seqs=tuple(seq for receipt in receipts for seq in receipt.seqs),
        deleted=tuple(frame for receipt in receipts for frame in receipt.deleted),
    )


def _delete(session: WriteSession, frames: Sequence[int], *, is_sweep: bool) -> Receipt | None:
    def attempt(snapshot: Snapshot) -> Receipt | None:
        drafts = [
            Draft(DeleteFrame(frame=frame), scope)
            for frame in frames
            if snapshot.layers.closing_of(frame) is None
            and (scope := snapshot.layers.scope_of(frame)) is not None
            and (not is_sweep or _may_sweep(snapshot, frame))
        ]
        return session.write(drafts) if drafts else None

    return attempted(session, attempt)
