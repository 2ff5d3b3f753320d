"""Rules of owners: a role writes, changes and hides only frames and events that are free or its.

Owns the check of a call's drafts against the table (`values.owners`), before they join a batch.
Kind, URI and parent of a frame never change, so nothing is checked under the lock. A frame below an
owned frame, such as a chunk or a recorded result, has its owner. Leaves out the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cerata.engine.errors import Refused
from cerata.engine.events import DeleteFrame, Draft, PutFrame, SupersedeFrame, named_by
from cerata.engine.packs import Owned, Role

from ..values.owners import FREE_EVENTS, owner_of_event, owners_of_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..snapshot.layers import Layers
    from ..snapshot.snapshot import Snapshot


def check_owners(
    role: Role,
    drafts: Sequence[Draft],
    first: int,
    snapshot: Callable[[], Snapshot],
    own: Sequence[int] = (),
) -> None:
    """Refuse drafts of a call that write, change or hide what its role may not.

    Args:
        role: The role of the handle.
        drafts: The drafts of the call.
        first: The place of the first draft in its batch, from 1.
        snapshot: Returns the state with the earlier drafts of the batch; called if a draft names
            a frame.
        own: Frames that are known to be the role's.

    Raises:
        Refused: with the owner, and the frame if there is one.
    """
    _Check(role, first, snapshot, own).run(drafts)


class _Check:
    def __init__(
        self, role: Role, first: int, snapshot: Callable[[], Snapshot], own: Sequence[int]
    ) -> None:
        self._role = role
        self._first = first
        self._snapshot = snapshot
        self._of_frames: dict[int, Owned | None] = dict.fromkeys(own)
        self._layers: Layers | None = None

    def run(self, drafts: Sequence[Draft]) -> None:
        # The changes first: a refusal of a correction names the frame to correct.
        bodies = [draft.body for draft in drafts]
        for body in bodies:
            self._check_event(body.wire_name)
            names = body.changes
            for name, kind, target in named_by(body) if names else ():
                if name in names and kind == PutFrame.wire_name:
                    self._check_change(target)
            if isinstance(body, DeleteFrame):
                self._check_below(body.frame)
            elif isinstance(body, SupersedeFrame):
                self._check_below(body.old)
        for body in bodies:
            if isinstance(body, PutFrame):
                self._check_put(body)

    def _check_put(self, body: PutFrame) -> None:
        for owned in owners_of_frame(body.kind, body.uri):
            if not owned.admits(self._role):
                raise self._refused(f"write a frame of kind {body.kind!r:.40}", owned, body.uri)
        if body.parent is not None:
            self._check_change(body.parent)
        if body.uri is not None and body.chunk_index is None:
            # A newer frame with the URI would be read in place of the owned frame.
            for frame in self._frames().find_uri(body.uri):
                self._check_change(frame)

    def _check_event(self, wire_name: str) -> None:
        if wire_name in FREE_EVENTS:
            return
        owned = owner_of_event(wire_name)
        if self._role is not Role.COPY if owned is None else not owned.admits(self._role):
            raise self._refused(f"write {wire_name} events", owned, None)

    def _check_change(self, frame: int) -> None:
        owned = self._owner_of(frame)
        if owned is not None and not owned.admits(self._role):
            raise self._refused(f"change frame {frame:,}", owned, None)

    def _check_below(self, frame: int) -> None:
        """Refuse to close a frame together with an owned frame below."""
        for below in self._below(frame):
            self._check_change(below)

    def _below(self, frame: int) -> Iterator[int]:
        if self._is_of_call(frame):
            return
        layers = self._frames()
        left = [frame]
        while left:
            children = [
                child
                for child in layers.children(left.pop())
                if layers.has(child) and layers.closing_of(child) is None
            ]
            yield from children
            left += children

    def _owner_of(self, frame: int) -> Owned | None:
        """Return the owner of a frame, or of the nearest owned frame above; None if it is free.

        A frame that does not exist within the scope has none: `ReferenceRules` refuses it.
        """
        if frame in self._of_frames:
            return self._of_frames[frame]
        owned = None
        if not self._is_of_call(frame):
            layers = self._frames()
            row = layers.row(frame) if layers.has(frame) else None
            if row is not None:
                owners = [*owners_of_frame(row.kind, row.uri)]
                owned = next((each for each in owners if not each.admits(self._role)), None)
                owned = owned or next(iter(owners), None)
                above = None if owned is not None else layers.parent_of(frame)
                if above is not None:
                    owned = self._owner_of(above)
        self._of_frames[frame] = owned
        return owned

    def _is_of_call(self, frame: int) -> bool:
        """Return whether a frame is a draft of this call, of which each is checked itself."""
        return frame <= -self._first

    def _frames(self) -> Layers:
        if self._layers is None:
            self._layers = self._snapshot().layers
        return self._layers

    def _refused(self, act: str, owned: Owned | None, where: str | None) -> Refused:
        owner = "no table of owners" if owned is None else owned.name
        reason = (
            f"which belongs to {owner}" if owned is not None else "which its role does not have"
        )
        return Refused(f"{self._role.subject} cannot {act}, {reason}", where=where)
