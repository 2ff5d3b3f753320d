"""Writing frames: the calls that put, supersede, delete and append.

Owns the events of each call. Leaves out how they are appended (`batch.session`), and splitting
documents (`ingest.commands`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.arguments import expect_integer, expect_type
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import (
    AccessFrames,
    DeleteFrame,
    Draft,
    EventBody,
    JsonValue,
    ScopeValue,
    SupersedeFrame,
    UnknownBody,
)
from cerata.engine.late import late

from ..batch.writer import Writer, takes_scope
from ..values.arguments import full_scope, listed, scope_under, within_scope
from ..values.frames import FrameId, Receipt, frame_id
from .drafts import (
    check_not_empty,
    frame_draft,
    frame_fields,
    inherited_fields,
    replaced_uri,
    text_drafts,
)

if TYPE_CHECKING:
    from cerata.projections.frames import filters
    from cerata.projections.frames.filters import Filter

    from ..embeddings import drafts as embedded_drafts
    from ..values import token_vectors
    from ..values import vectors as vector_values
    from ..values.vectors import Vector, Vectors
    from . import closing as frame_closing
    from . import messages as frame_messages
    from . import replacement as frame_replacement
else:
    filters = late("cerata.projections.frames.filters")
    embedded_drafts = late("cerata.memory.embeddings.drafts")
    token_vectors = late("cerata.memory.values.token_vectors")
    vector_values = late("cerata.memory.values.vectors")
    frame_closing = late("cerata.memory.frames.closing")
    frame_messages = late("cerata.memory.frames.messages")
    frame_replacement = late("cerata.memory.frames.replacement")


class FrameCommands(Writer):
    """The calls that write; each appends a durable batch, or joins the open transaction."""

    @takes_scope
    def put_frame(
        self,
        content: str | bytes,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        track: str | None = None,
        parent: FrameId | None = None,
        content_dates: Sequence[date | str] | None = None,
        created: date | str | None = None,
        search_text: str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        embedding: Vector | None = None,
        space: str | None = None,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        key: str | None = None,
        replace: bool = False,
        actor: str | None = None,
        expires: date | str | None = None,
        because: int | None = None,
    ) -> Receipt:
        """Put one frame without splitting or deduplication. Durable on return.

        The frame is stored with its content hash, so `find_content` and `find_stored` find it.
        Without ``embedding`` and ``token_embedding`` the store's embedder computes the vectors that
        it supports (docs/embedders.md).

        Args:
            content: A str, or bytes, which are searched by ``search_text``, title and tags alone.
            kind: The structure of the frame, such as "message"; default "text".
            role: The speaker, such as "user"; default none.
            uri: The address of the content's source; default none.
            title: The title, which is searched too; default none.
            tags: Tags, which are searched and filtered by; default none.
            labels: Labels, which are filtered by; default none.
            metadata: Further names and JSON values, which are filtered by; default none.
            track: A named line of frames that the frame belongs to; default none.
            parent: The frame above this frame; default none.
            content_dates: Dates that the content names, as datetimes or ISO strings; default those
                that the text names ("yesterday", "8 May 2023"), relative to ``created``.
            created: When the content was created; default the time of recording.
            search_text: Text to search in place of the content, as for bytes; default none.
            scope: Names and values to add to the store's scope; default the store's scope.
            embedding: The vector of the content, (dimension,); default from the store's embedder.
            space: The name of the space of ``embedding``; its vectors have a single dimension.
            token_embedding: A vector for each token, (tokens, dimension), stored as int8.
            tokens_space: The name of the space of ``token_embedding``.
            key: An idempotency key: the same key and arguments return the first receipt.
            replace: Supersede the current frames with this ``uri`` in the same scope, also if other
                writers replace them at the same time: one remains. Default False.
            actor: Name of the writer; default that of the transaction, else of the store.
            expires: The time from which reads of many frames leave the frame out; default never.
            because: The event that led to the frame, recorded as its causation; default none.

        Raises:
            InvalidInput: a value cannot be stored; ``expires`` is past; ``replace`` without
                ``uri``, or with ``parent``.
            NotFound: the parent or ``because`` does not exist within the scope.
            Conflict: other writers replaced the URI first, in each of 1,000 attempts; or, in a
                transaction, before the end of the block.
            IdempotencyConflict: the key was used with other arguments.
            EmbedderFailed: the embedder failed; nothing was written.
        """
        check_not_empty(content)
        fields = frame_fields(
            kind=kind,
            role=role,
            uri=uri,
            title=title,
            tags=tags,
            labels=labels,
            metadata=metadata,
            track=track,
            parent=None if parent is None else frame_id(parent),
            content_dates=content_dates or (),
            created=created,
            expires=expires,
            search_text=search_text,
        )
        stamped = full_scope(scope, self._session.scope)
        vector = tokens = None
        # Numpy is not imported for a text without vectors.
        if embedding is not None or space is not None:
            [vector] = vector_values.vectors(None if embedding is None else [embedding], 1, space)
        if token_embedding is not None or tokens_space is not None:
            matrices = None if token_embedding is None else [token_embedding]
            [tokens] = token_vectors.stored_matrices(matrices, 1, tokens_space)
        session = self._session.by(actor)
        draft = frame_draft(content, fields, stamped, embedding=vector, tokens=tokens)
        if because is not None:
            draft = msgspec.structs.replace(draft, causation=expect_integer("because", because))
        finds_dates = content_dates is None
        if replace:
            replaced = replaced_uri(fields)
            session.record_call(stamped, "put_frame", "replace", drafts=[draft])
            return frame_replacement.put_replacing(
                session, draft, replaced, key, finds_dates=finds_dates
            )
        session.record_call(stamped, "put_frame", drafts=[draft])
        return embedded_drafts.put_embedded(session, [draft], key, finds_dates=finds_dates)

    @takes_scope
    def put_frames(
        self,
        texts: Sequence[str],
        *,
        metadata: Sequence[Mapping[str, JsonValue]] | None = None,
        embeddings: Vectors | None = None,
        space: str | None = None,
        token_embeddings: Sequence[Vectors] | None = None,
        tokens_space: str | None = None,
        kind: str = "text",
        tags: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
        expires: date | str | None = None,
    ) -> Receipt:
        """Put many frames as one batch: all of them or none. Durable on return.

        Without ``embeddings`` and ``token_embeddings`` the store's embedder computes the vectors
        that it supports.

        Args:
            texts: The texts, a frame for each; at most 10,000.
            metadata: A mapping of names and JSON values for each text; default none.
            embeddings: A vector for each text, (texts, dimension); default from the embedder.
            space: The name of the space of ``embeddings``.
            token_embeddings: An array (tokens, dimension) for each text; default from the embedder.
            tokens_space: The name of the space of ``token_embeddings``.
            kind: The structure of all frames; default "text".
            tags: The tags of all frames; default none.
            scope: Names and values to add to the store's scope; default the store's scope.
            key: An idempotency key: the same key and arguments return the first receipt.
            actor: Name of the writer; default that of the transaction, else of the store.
            expires: The time from which reads of many leave the frames out; default never.

        Raises:
            InvalidInput: a value cannot be stored, or an argument has another number of items.
            IdempotencyConflict: the key was used with other arguments.
            EmbedderFailed: the embedder failed; nothing was written.
        """
        texts = listed("texts", texts)
        if "" in texts:
            check_not_empty("")
        if metadata is not None and len(metadata := listed("metadata", metadata)) != len(texts):
            raise InvalidInput(
                f"metadata must have an item for each of {len(texts):,} texts, "
                f"not {len(metadata):,}",
                remedy="Pass a mapping for each text, or {} for a text without metadata.",
            )
        stamped = full_scope(scope, self._session.scope)
        fields = frame_fields(kind=kind, tags=tags, expires=expires)
        each = [fields] * len(texts)
        if metadata is not None:
            each = [
                frame_fields(kind=kind, tags=tags, metadata=entry, expires=expires)
                for entry in metadata
            ]
        rows = vector_values.vectors(embeddings, len(texts), space)
        matrices = token_vectors.stored_matrices(token_embeddings, len(texts), tokens_space)
        drafts = text_drafts(texts, each, stamped, embeddings=rows, tokens=matrices)
        self._session.record_call(stamped, "put_frames", drafts=drafts)
        return embedded_drafts.put_embedded(self._session.by(actor), drafts, key)

    @takes_scope
    def remember_messages(
        self,
        messages: Sequence[Mapping[str, JsonValue]],
        *,
        track: str | None = None,
        tags: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Put chat messages as one batch, a frame for each: all of them or none. Durable on return.

        A frame has the message's role and text, and the kind "message". The text of a content in
        parts is that of its parts; other members, such as calls of tools and images, stay in the
        metadata, and `messages` returns them.

        Args:
            messages: Mappings with ``role`` and ``content``, in their order; at most 10,000.
            track: The conversation; default none.
            tags: The tags of all frames; default none.
            scope: Names and values to add to the store's scope; default the store's scope.
            key: An idempotency key: the same key and arguments return the first receipt.
            actor: Name of the writer; default the transaction's, then the store's.

        Raises:
            InvalidInput: an item is no message, or cannot be stored; the error names its place.
            IdempotencyConflict: the key was used with other arguments.
            EmbedderFailed: the embedder failed; nothing was written.
        """
        stamped = full_scope(scope, self._session.scope)
        drafts = [
            frame_draft(
                text,
                frame_fields(
                    kind=frame_messages.MESSAGE_KIND,
                    role=role,
                    track=track,
                    tags=tags,
                    metadata=metadata,
                ),
                stamped,
            )
            for role, text, metadata in frame_messages.message_parts(messages)
        ]
        self._session.record_call(stamped, "remember_messages", drafts=drafts)
        return embedded_drafts.put_embedded(self._session.by(actor), drafts, key)

    def supersede(
        self,
        old: FrameId,
        new: str | FrameId,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Close a frame and put another in its place. Durable on return.

        The old frame, and the chunks below it, stay readable in the past. A new text takes over
        the old frame's scope, kind, role, URI, title, tags, labels, metadata, track and parent, and
        a turn its place in the conversation.

        Args:
            old: The frame to close.
            new: The text of a new frame, or a stored frame.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Returns:
            The receipt; its ``id`` is the frame that is now current.

        Raises:
            NotFound: a frame does not exist.
            Conflict: a frame is closed already.
            InvalidInput: the new text is empty.
        """
        session = self._session.by(actor, reason)
        old_id = frame_id(old)
        if not isinstance(new, str):
            scope = full_scope(None, session.scope)
            new_id = frame_id(new)
            session.record_call(scope, "supersede", old_id, new_id)
            receipt = session.write([Draft(SupersedeFrame(old=old_id, new=new_id), scope)])
            return replace(receipt, id=new_id)
        check_not_empty(new)
        fields, old_scope = inherited_fields(self._snapshot().frame_at(old_id))
        scope = scope_under(old_scope, session.scope)
        session.record_call(scope, "supersede", old_id, new)
        frame = frame_draft(new, fields, scope)
        place = session.next_place()
        return embedded_drafts.put_embedded(
            session, [frame, Draft(SupersedeFrame(old=old_id, new=-place), scope)]
        )

    def delete(
        self,
        frame: FrameId | None = None,
        *,
        where: Filter | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Close a frame, or the frames of a filter, and the chunks below; the past keeps them.

        A filter closes the current frames that it admits at the call, as `frames` yields them, in
        durable batches of 1,000; without a match nothing is written and ``added`` is False. The
        receipt is that of all batches; ``deleted`` are the frames. Durable on return.

        Args:
            frame: The frame to close.
            where: In place of ``frame``: the filter of the frames to close.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: the frame does not exist.
            Conflict: the frame is closed already.
            InvalidInput: neither or both arguments were passed, or ``where`` is no `Filter`, or it
                tests nothing, so that every frame would be closed.
            ReadOnly: a frame of the filter, or below a frame to close, is shared.
        """
        scope = full_scope(None, self._session.scope)
        if (frame is None) == (where is None):
            raise InvalidInput(
                "delete needs either a frame or where=", remedy="Pass one of the two."
            )
        if where is not None:
            expect_type("where", where, filters.Filter, "a Filter", "Pass a Filter.")
            if where.is_universal:
                raise InvalidInput(
                    "where admits every frame, since the filter tests nothing",
                    where="delete",
                    remedy="Pass a Filter with a test, or the ids of the frames.",
                )
            self._session.check_writable()
            self._session.record_call(scope, "delete", "where", where.to_dict())
            frames = frame_closing.matching_frames(self._snapshot(), where)
            return frame_closing.delete_frames(self._session.by(actor, reason), frames)
        assert frame is not None
        number = frame_id(frame)
        self._session.record_call(scope, "delete", number)
        return self._session.by(actor, reason).write([Draft(DeleteFrame(frame=number), scope)])

    def record_access(
        self,
        *frames: FrameId,
        actor: str | None = None,
    ) -> Receipt:
        """Record that frames were used, for example opened or cited; `access` returns the counts.

        Durable on return.

        Args:
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
        scope = full_scope(None, self._session.scope)
        self._session.record_call(scope, "record_access", numbers)
        return self._session.by(actor).write([Draft(AccessFrames(frames=numbers), scope)])

    def append(
        self,
        *events: EventBody | Draft,
        expect: int | None = None,
        key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Append events of any type as one batch. Durable on return.

        Args:
            *events: Event bodies or drafts; without a scope they get the store's scope.
            expect: The seq that the log's head must have; default any.
            key: An idempotency key: the same key and events return the first receipt.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            Conflict: the log is not at ``expect``, or a target is closed.
            InvalidInput: an event cannot be stored, or a draft's scope is outside the store's.
            NotFound: a reference names an event that does not exist.
            IdempotencyConflict: the key was used with other arguments.
            Unsupported: an event is an `UnknownBody`, whose rules this process does not know.
        """
        for event in events:
            remedy = "Pass event bodies or drafts."
            expect_type("events", event, Draft | EventBody, "event bodies or drafts", remedy)
            body = event.body if isinstance(event, Draft) else event
            if isinstance(body, UnknownBody):
                raise Unsupported(
                    f"Version {body.kind_version} of the event {body.kind!r:.80} cannot be written:"
                    " no pack of this process has it",
                    remedy="Open the store with its pack, open(packs=…), or upgrade Cerata.",
                )
        drafts = within_scope(
            [_unchecked(event) if isinstance(event, Draft) else Draft(event) for event in events],
            self._session.reach,
        )
        if drafts:
            self._session.record_call(drafts[0].scope, "append", drafts=drafts)
        return self._session.by(actor, reason).write(drafts, expect=expect, key=key)


def _unchecked(draft: Draft) -> Draft:
    """Return a caller's draft, of which every value is checked."""
    return msgspec.structs.replace(draft, is_checked=False) if draft.is_checked else draft
