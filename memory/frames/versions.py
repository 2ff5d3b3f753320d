"""New versions: the drafts that carry a frame's content and vectors over to a new frame.

Owns the drafts of `update` and `history.restore`: the new frame, the frames below it, their
vectors, and the closings. No text is embedded again: the vectors of the log are appended as they
are. Leaves out the calls (`version_commands`).

- The chunks of a document are put again below the new document; their old frames close with it.
- Other frames below move along: each gets a new version, so none is closed by its parent.
- Expired frames below are left out, and close with the frame above them. A frame below a frame that
  is left out, or closed, moves below the next frame above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Draft, Erased, PutEmbedding, PutFrame, Scope, SupersedeFrame
from cerata.engine.log_file.horizon import content_pruned
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.columns import ClosingKind

from ..batch.attempts import attempted
from ..batch.conditional_draft import conditional
from ..batch.owner_rules import check_own
from ..batch.session import WriteSession, contents_of
from ..batch.text_dates import with_text_dates
from ..embeddings.drafts import noted, notices_of, text_vectors, with_vectors
from ..values.arguments import SOURCE_HASH, SPAN, arguments_hash

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Receipt


Fields = Mapping[str, object]
"""New values of fields of a `PutFrame`, by name."""

_TITLE_SEPARATOR = " > "


class NewVersion:
    """The drafts of the new version of a frame, from place ``first`` of a batch on."""

    def __init__(self, snapshot: Snapshot, first: int) -> None:
        self._snapshot = snapshot
        self._first = first
        self._puts: list[Draft] = []
        self._vectors: list[Draft] = []
        self._closings: list[Draft] = []
        self._places: dict[int, int] = {}
        """The −place of the new version of each frame that has one."""
        self._sources = set[int]()
        """The frames that are carried over or closed, also the frames that are left out."""
        self._now = snapshot.layers.now

    @property
    def drafts(self) -> list[Draft]:
        """The events in order: frames, vectors, and closings from the bottom up."""
        root, *below = self._puts
        root = conditional(
            root,
            # A frame that comes back must not stand beside another of its URI.
            only_of_uri=root.causation is not None and _uri_of(root) is not None,
            sources=tuple(sorted(frame for frame in self._sources if frame > 0)),
            basis=self._snapshot.basis,
        )
        return [root, *below, *self._vectors, *reversed(self._closings)]

    def put_root(
        self,
        frame: int,
        fields: Fields,
        *,
        parent: int | None,
        closes: int | None,
        causation: int | None = None,
    ) -> int:
        """Add the new version of a frame and of its chunks; return its −place; see `_put`.

        Raises:
            InvalidInput: the frame has expired, and ``fields`` has no other time.
        """
        body, _ = stored_frame(self._snapshot, frame)
        if "expires" not in fields and self._is_expired(body, fields):
            expires, now = (to_datetime(time) for time in (body.expires or 0, self._now))
            raise InvalidInput(
                f"Frame {frame:,} expires at {expires.isoformat()}, which is not after "
                f"{now.isoformat()}, the time of the write",
                remedy="Pass expires=, a later time or None for never.",
            )
        changed = root_fields(body, fields)
        place = self._put(frame, changed, parent=parent, closes=closes, causation=causation)
        self._put_chunks(frame, place, body, fields)
        return place

    def move(self, frame: int, new: int) -> None:
        """Add new versions of the open frames below a frame, which get a place below ``new``."""
        snapshot = self._snapshot
        above = [(frame, new)]
        # The list grows in the loop; a recursion would be too deep for a long conversation.
        for parent, place in above:
            below = snapshot.visible(snapshot.layers.children(parent))
            self._sources.update(below)
            above += [(child, self._moved(child, place)) for child in below]

    def _moved(self, frame: int, parent: int) -> int:
        """Add the new version of a frame, if it has one; return the place for frames below.

        Raises:
            ReadOnly: the frame is shared.
        """
        if frame in self._places:
            return self._places[frame]
        if self._snapshot.layers.closing_of(frame) is not None:
            return parent
        body, scope = stored_frame(self._snapshot, frame)
        check_own(f"The frame {frame:,}, below the frame to change,", scope, self._snapshot.reach)
        if body.chunk_index is not None or self._is_expired(body, {}):
            return parent
        place = self._put(frame, {}, parent=parent, closes=frame)
        self._put_chunks(frame, place, body, {})
        return place

    def _put(
        self,
        frame: int,
        fields: Fields,
        *,
        parent: int | None,
        closes: int | None = None,
        causation: int | None = None,
    ) -> int:
        """Add a new version of a frame without those below; return its −place.

        Args:
            frame: The frame whose content and vectors are carried over.
            fields: The values that differ.
            parent: The frame above the new version.
            closes: The frame that the new version supersedes, if any.
            causation: The event that the new version follows from, if any.
        """
        body, scope = stored_frame(self._snapshot, frame)
        event = self._snapshot.layers.event(frame)
        created = event.recorded if body.created is None else body.created
        new = msgspec.structs.replace(body, **{"created": created, **fields, "parent": parent})
        attachments = tuple(
            self._snapshot.attachment(frame, attachment)
            for attachment in (body.blob, *(embedding.data for embedding in body.embeddings))
            if attachment is not None
        )
        self._puts.append(Draft(new, scope, causation=causation, attachments=attachments))
        place = -(self._first + len(self._puts) - 1)
        for embedding, data in self._snapshot.later_embeddings(frame):
            body_of_vector = PutEmbedding(frame=place, embedding=embedding)
            self._vectors.append(Draft(body_of_vector, scope, attachments=(data,)))
        self._sources.add(frame)
        if closes is not None:
            self._sources.add(closes)
            self._closings.append(Draft(SupersedeFrame(old=closes, new=place), scope))
        self._places[frame] = place
        return place

    def _put_chunks(self, document: int, new: int, old: PutFrame, fields: Fields) -> None:
        """Add the chunks of a document below its new version."""
        for chunk in self._snapshot.layers.chunks(document).values():
            body, _ = stored_frame(self._snapshot, chunk)
            if not self._is_expired(body, fields):
                self._put(chunk, _of_chunk(body, old, fields), parent=new)

    def _is_expired(self, body: PutFrame, fields: Fields) -> bool:
        expires = fields.get("expires", body.expires)
        return isinstance(expires, int) and expires <= self._now


def _uri_of(draft: Draft) -> str | None:
    return draft.body.uri if isinstance(draft.body, PutFrame) else None


def stored_frame(snapshot: Snapshot, frame: int) -> tuple[PutFrame, Scope]:
    """Return the body and scope of a frame.

    Raises:
        HistoryPruned: retention gave the content up.
        NotFound: its event is of a later version.
    """
    event = snapshot.layers.event(frame)
    if isinstance(event.body, Erased):
        raise content_pruned(frame)
    if not isinstance(event.body, PutFrame) or event.scope is None:
        raise NotFound(
            f"The content of frame {frame:,} is of a later version",
            remedy="Upgrade Cerata, or put a new frame with put_frame().",
        )
    return event.body, event.scope


def root_fields(old: PutFrame, fields: Fields) -> dict[str, object]:
    """Return the new values of a frame; metadata about its source stays."""
    new = dict(fields)
    metadata = new.get("metadata")
    if isinstance(metadata, dict):
        source = {name: old.metadata[name] for name in (SOURCE_HASH, SPAN) if name in old.metadata}
        new["metadata"] = {**metadata, **source}
    return new


def _of_chunk(chunk: PutFrame, old: PutFrame, fields: Fields) -> Fields:
    """Return the new values of a chunk, whose title and metadata also name its section."""
    new = dict(fields)
    metadata = new.get("metadata")
    if isinstance(metadata, dict):
        absent = object()
        of_section = {
            name: value
            for name, value in chunk.metadata.items()
            if name == SPAN or old.metadata.get(name, absent) != value
        }
        new["metadata"] = {**metadata, **of_section}
    if "title" in new:
        title = new["title"]
        names = [title] if isinstance(title, str) and title else []
        new["title"] = _TITLE_SEPARATOR.join([*names, *_headings(chunk, old)]) or None
    return new


def _headings(chunk: PutFrame, old: PutFrame) -> list[str]:
    """Return the headings in a chunk's title, after the document's title or its beginning."""
    if not chunk.title:
        return []
    parts = chunk.title.split(_TITLE_SEPARATOR)
    for count in range(len(parts), 0, -1):
        if (old.title or "").startswith(_TITLE_SEPARATOR.join(parts[:count])):
            return parts[count:]
    return parts


def current_version(snapshot: Snapshot, frame: int) -> int | None:
    """Return the current frame that a frame's chain of versions ends with, or None if it ended."""
    closing = snapshot.layers.closing_of(frame)
    while closing is not None:
        if closing.kind is not ClosingKind.SUPERSEDE or closing.by is None:
            return None
        frame = closing.by
        closing = snapshot.layers.closing_of(frame)
    return frame if snapshot.layers.has(frame) else None


def standing_version(snapshot: Snapshot, frame: int) -> int | None:
    """Return `current_version`, or the document's for a frame that closed with a document."""
    layers = snapshot.layers
    while (closing := layers.closing_of(frame)) is not None:
        by = closing.by if closing.kind is ClosingKind.SUPERSEDE else None
        if closing.kind is ClosingKind.WITH_SUPERSEDED:
            by = layers.parent_of(frame)
        if by is None:
            return None
        frame = by
    return frame if layers.has(frame) else None


# --- Replacing a URI: one new frame takes the place of the current frames with its URI ------------
#
# The frames are found and the payloads encoded before the lock; under the lock the batch is refused
# if another writer changed the frames of the URI (`batch.frame_rules`), and tried again.


def frames_of_uri(snapshot: Snapshot, uri: str, scope: Scope) -> list[int]:
    """Return the current frames with a URI and exactly a scope: no chunk, none below another."""
    frames = snapshot.layers.whole_of_uri(uri, scope)
    # Closing a frame closes the frames below, and a frame cannot be closed twice.
    return [frame for frame in frames if not snapshot.layers.is_below(frame, frames)]


def put_replacing(
    session: WriteSession, draft: Draft, uri: str, key: str | None, *, finds_dates: bool = True
) -> Receipt:
    """Append a frame, and close the current frames with its URI in its scope.

    Unless ``finds_dates`` is False, the frame gets the dates that its text names.

    Raises:
        Conflict: other writers were first in every attempt; or, in a transaction, before the end
            of the block.
    """
    arguments = None if key is None else arguments_hash(contents_of([draft]), "replace")
    if finds_dates:
        [draft] = with_text_dates(session, [draft])
    [draft] = with_vectors(session, [draft], text_vectors(session), key)
    replacing = conditional(draft, only_of_uri=True)

    def attempt(newest: Snapshot) -> Receipt:
        snapshot = newest.within(draft.scope)
        place = session.next_place()
        closing = [
            Draft(SupersedeFrame(old=old, new=-place), draft.scope)
            for old in frames_of_uri(snapshot, uri, draft.scope)
        ]
        notices = notices_of(session, [replacing])
        receipt = session.write([replacing, *closing], key=key, arguments=arguments)
        return noted(session, receipt, notices)

    return attempted(session, attempt, where=uri, in_line=True)


def put_all_replacing(session: WriteSession, drafts: Sequence[Draft]) -> Receipt:
    """Append frames with different URIs in one batch, and close the current frames with these.

    The embedder gets all texts at once. Frames without content dates get the dates in their texts.

    Raises:
        Conflict: other writers were first in every attempt; or, in a transaction, before the end
            of the block.
    """
    drafts = with_text_dates(session, drafts)
    drafts = with_vectors(session, drafts, text_vectors(session))
    replacing = [conditional(draft, only_of_uri=True) for draft in drafts]

    def attempt(newest: Snapshot) -> Receipt:
        first = session.next_place()
        closing = [
            Draft(SupersedeFrame(old=old, new=-first - index), draft.scope)
            for index, draft in enumerate(drafts)
            if isinstance(draft.body, PutFrame) and draft.body.uri is not None
            for old in frames_of_uri(newest.within(draft.scope), draft.body.uri, draft.scope)
        ]
        notices = notices_of(session, replacing)
        return noted(session, session.write([*replacing, *closing]), notices)

    return attempted(session, attempt, in_line=True)
