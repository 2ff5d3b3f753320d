"""Changing frames: the calls that append a new version, and that close expired frames.

Owns `update`, `history.restore` and `upkeep.sweep`. Leaves out the drafts of a version
(`versions`), and the batches that close frames (`closing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from cerata.engine.errors import Conflict, InvalidInput, number_text
from cerata.engine.late import late
from cerata.engine.salted_hashes import content_hash_of

from ..batch.writer import Writer
from ..values.arguments import full_scope
from ..values.frames import FrameId, Receipt, frame_id
from .drafts import frame_fields

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue, PutFrame
    from cerata.projections.columnar import times

    from ..batch import attempts as batch_attempts
    from ..batch import owner_rules
    from ..batch.session import WriteSession
    from ..snapshot.snapshot import Snapshot
    from . import closing as frame_closing
    from . import versions as frame_replacement
    from . import versions as frame_versions
    from .versions import NewVersion
else:
    times = late("cerata.projections.columnar.times")
    batch_attempts = late("cerata.memory.batch.attempts")
    owner_rules = late("cerata.memory.batch.owner_rules")
    frame_closing = late("cerata.memory.frames.closing")
    frame_replacement = late("cerata.memory.frames.versions")
    frame_versions = late("cerata.memory.frames.versions")


class VersionWriter(Writer):
    """The append of a new version."""

    def _write_version(
        self, session: WriteSession, frame: int, version_of: Callable[[Snapshot], NewVersion | None]
    ) -> Receipt:
        """Append a new version; find its frames again if another writer was first."""
        session.check_writable()

        def attempt(snapshot: Snapshot) -> Receipt:
            version = version_of(snapshot)
            if version is None:
                return session.unchanged(snapshot, frame)
            return session.write(version.drafts)

        return batch_attempts.attempted(session, attempt, where=f"frame {number_text(frame)}")


class VersionCommands(VersionWriter):
    """The call that changes a frame; it appends a durable batch, or joins the block."""

    def update(
        self,
        frame: FrameId,
        *,
        tags: Sequence[str] | UnsetType = UNSET,
        metadata: Mapping[str, JsonValue] | UnsetType = UNSET,
        title: str | None | UnsetType = UNSET,
        expires: date | str | None | UnsetType = UNSET,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Put a new version of a frame with other fields; content and vectors are carried over.

        The new version supersedes the frame and has a new id. Nothing is embedded again. A split
        document is put again with its chunks, and other current frames below the frame get new
        versions too; expired frames below close with the old version. Without a difference nothing
        is written, and ``added`` is False. Durable on return. Cost: the size of the frame, its
        chunks and the frames below, with their vectors.

        Args:
            frame: The frame to change, no chunk.
            tags: All tags of the new version; by default unchanged.
            metadata: All metadata of the new version; by default unchanged.
            title: The title, or None for none; by default unchanged.
            expires: The time of expiry, or None for never; by default unchanged.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: the frame does not exist.
            HistoryPruned: retention gave the content up.
            ReadOnly: the frame, or a frame below, is shared.
            Conflict: the frame is closed already.
            InvalidInput: a value cannot be stored, no field was passed, the frame is a chunk, the
                frame has expired and no ``expires`` was passed, ``expires`` is past, or frame,
                chunks and frames below need over 10,000 events.
        """
        arguments = {"tags": tags, "metadata": metadata, "title": title, "expires": expires}
        names = [name for name, value in arguments.items() if value is not UNSET]
        if not names:
            raise InvalidInput(
                "update needs at least one field",
                remedy="Pass tags=, metadata=, title= or expires=.",
            )
        checked = frame_fields(
            kind="text",
            tags=() if isinstance(tags, UnsetType) else tags,
            metadata=None if isinstance(metadata, UnsetType) else metadata,
            title=None if isinstance(title, UnsetType) else title,
            expires=None if isinstance(expires, UnsetType) else expires,
        )
        fields: dict[str, object] = {name: getattr(checked, name) for name in names}
        number = frame_id(frame)
        scope = full_scope(None, self._session.scope)
        self._session.record_call(scope, "update", number, sorted(fields.items()))

        def version_of(snapshot: Snapshot) -> NewVersion | None:
            body = _whole_frame(snapshot, number)
            changed = frame_versions.root_fields(body, fields)
            is_open = snapshot.layers.closing_of(number) is None
            if is_open and all(getattr(body, name) == changed[name] for name in names):
                return None
            version = frame_versions.NewVersion(snapshot, self._session.next_place())
            place = version.put_root(number, fields, parent=body.parent, closes=number)
            version.move(number, place)
            return version

        return self._write_version(self._session.by(actor, reason), number, version_of)


class RestoreCommands(VersionWriter):
    """The call that brings a frame back."""

    def restore(
        self,
        frame: FrameId,
        *,
        expires: date | str | None | UnsetType = UNSET,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Put the content of a closed frame again, as a new version with its fields and vectors.

        The new version supersedes the current version of the frame, if there is one; a deleted
        frame comes back as a new frame. Chunks of a document come back too. Other frames below the
        current version get new versions. The event names the restored frame as its cause. Durable
        on return.

        Args:
            frame: The closed frame, no chunk.
            expires: The time of expiry, or None for never; by default that of the frame.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: the frame does not exist.
            HistoryPruned: retention gave the content up.
            ReadOnly: the frame, or a frame below its current version, is shared.
            Conflict: the frame is current or was restored already, or another current frame of
                its scope has its URI.
            InvalidInput: the frame is a chunk, the frame has expired and no ``expires`` was passed,
                ``expires`` is past, or frame, chunks and frames below need over 10,000 events.
        """
        fields: dict[str, object] = {}
        if not isinstance(expires, UnsetType):
            fields["expires"] = None if expires is None else times.to_microseconds(expires)
        number = frame_id(frame)
        scope = full_scope(None, self._session.scope)
        self._session.record_call(scope, "restore", number, sorted(fields.items()))

        def version_of(snapshot: Snapshot) -> NewVersion:
            body = _whole_frame(snapshot, number)
            current = frame_versions.current_version(snapshot, number)
            _check_restorable(snapshot, number, current)
            parent = body.parent
            if parent is not None:
                parent = frame_versions.current_version(snapshot, parent) or parent
            version = frame_versions.NewVersion(snapshot, self._session.next_place())
            place = version.put_root(
                number, fields, parent=parent, closes=current, causation=number
            )
            if current is not None:
                version.move(current, place)
            return version

        return self._write_version(self._session.by(actor, reason), number, version_of)


class SweepCommands(Writer):
    """The call that closes expired frames."""

    def sweep(self, *, actor: str | None = None) -> Receipt:
        """Close the expired frames of the store's scope; they stay readable in the past.

        Shared frames, and frames above shared frames, are left to a store of the wider scope, and
        counted in ``notices``. A frame above a frame that has not expired, of any scope, stays open
        until that frame expires or closes; a document's chunks close with the document.

        Each is deleted by an event with the reason "expired". Batches of 1,000 frames are durable
        one by one; other writers may sweep at the same time, and a second call writes nothing.
        Reads of many frames do not change: they leave expired frames out already. Scores may, since
        statistics count a frame until it is closed.

        Returns the receipt of all batches; ``deleted`` are the frames, without their chunks.

        Args:
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            Conflict: other writers closed frames first in each of 1,000 attempts.
        """
        self._session.check_writable()
        scope = full_scope(None, self._session.scope)
        self._session.record_call(scope, "sweep")
        session = self._session.by(actor, frame_closing.EXPIRED)
        frames, left = frame_closing.expired_frames(self._snapshot())
        receipt = frame_closing.delete_frames(session, frames, is_sweep=True)
        if not left:
            return receipt
        noun = "frame" if left == 1 else "frames"
        line = f"not closed, since shared or above shared frames: {left:,} expired {noun}"
        return session.with_notices(receipt, (line,))


def _whole_frame(snapshot: Snapshot, number: int) -> PutFrame:
    """Return the body of a frame.

    Raises:
        InvalidInput: the frame is a chunk.
        NotFound: the frame does not exist within the scope.
        HistoryPruned: retention gave the content up.
        ReadOnly: the frame is shared.
    """
    body, scope = frame_versions.stored_frame(snapshot, number)
    owner_rules.check_own(f"The frame {number:,}", scope, snapshot.reach)
    if body.chunk_index is not None:
        raise InvalidInput(
            f"Frame {number:,} is a part of a document",
            remedy=f"Pass the document, frame {body.parent}.",
        )
    return body


def _check_restorable(snapshot: Snapshot, number: int, current: int | None) -> None:
    layers = snapshot.layers
    body, scope = frame_versions.stored_frame(snapshot, number)
    if current == number:
        is_expired = snapshot.frame_at(number).is_expired
        raise Conflict(
            f"Frame {number:,} {'has expired, and is not closed' if is_expired else 'is current'}",
            remedy="Call update(), with a later time or None as expires=."
            if is_expired
            else "Leave this call out; update() changes the fields of a current frame.",
        )
    hashed = None if current is not None else content_hash_of(body)
    copies = [] if hashed is None else layers.copies(hashed)
    for copy in copies:
        if (
            layers.event(copy).causation == number
            and frame_versions.current_version(snapshot, copy) is not None
        ):
            raise Conflict(
                f"Frame {number:,} was restored as frame {copy:,}",
                remedy=f"Pass frame {copy:,} instead.",
            )
    closed = () if current is None else (current,)
    same = [] if body.uri is None else frame_replacement.frames_of_uri(snapshot, body.uri, scope)
    for frame in same:
        if frame not in closed and not layers.is_below(frame, closed):
            raise Conflict(
                f"Frame {frame:,} is current, and has the URI of frame {number:,}",
                where=body.uri,
                remedy=f"Delete frame {frame:,} first, or change it with update().",
            )
