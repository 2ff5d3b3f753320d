"""Writing frames: the calls that put, supersede, delete and append.

Owns the events of each call. Leaves out how they are appended (`batch.session`), and splitting
documents (`ingest.commands`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Never, cast

import msgspec

from cerata.engine.arguments import expect_integer, expect_type
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    EventBody,
    JsonValue,
    SupersedeFrame,
    UnknownBody,
)
from cerata.engine.late import late

from ..batch.writer import Writer, takes_scope
from ..values.arguments import full_scope, listed, scope_under, within_scope
from ..values.frames import FrameId, Receipt, frame_id
from ..values.options import NO_VECTORS, PUT, PutOptions, Vectors, check_unused, checked
from ..values.renamed import refuse
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
    from . import closing as frame_closing
    from . import versions as frame_replacement
else:
    filters = late("cerata.projections.frames.filters")
    embedded_drafts = late("cerata.memory.embeddings.drafts")
    token_vectors = late("cerata.memory.values.token_vectors")
    vector_values = late("cerata.memory.values.vectors")
    frame_closing = late("cerata.memory.frames.closing")
    frame_replacement = late("cerata.memory.frames.versions")


_OF_ONE_FRAME: Final = ("because", "content_dates", "embed_limit", "replace", "search_text")
"""Options that belong to a single frame or to a file."""
_OF_FILES: Final = ("embed_limit",)
_OF_QUESTIONS: Final = ("token_weights", "approximate", "min_cosine")
"""Fields of vectors that belong to a question."""


class FrameCommands(Writer):
    """The calls that write; each appends a durable batch, or joins the open transaction."""

    @takes_scope
    def put_frame(
        self,
        /,
        content: str | bytes,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        vectors: Vectors = NO_VECTORS,
        options: PutOptions = PUT,
        **_moved: Never,
    ) -> Receipt:
        """Put one frame without splitting or deduplication. Durable on return.

        The frame is stored with its content hash, so `files.by_content` and `files.stored` find it.
        Without ``vectors`` the store's embedder computes them (docs/embedders.md).

        Args:
            content: A str, or bytes, which are searched by `PutOptions.search_text`, title and tags
                alone.
            kind: The structure of the frame, such as "message"; default "text".
            role: The speaker, such as "user"; default none.
            uri: The address of the content's source; default none.
            title: The title, which is searched too; default none.
            tags: Tags, which are searched and filtered by; default none.
            metadata: Further names and JSON values, which are filtered by; default none.
            vectors: Vectors of the content; default from the store's embedder.
            options: Labels, times, relations, and where the write goes.

        Raises:
            InvalidInput: a value cannot be stored; ``expires`` is past; ``replace`` without
                ``uri``, or with ``parent``.
            NotFound: the parent or ``because`` does not exist within the scope.
            Conflict: other writers replaced the URI first, in each of 1,000 attempts; or, in a
                transaction, before the end of the block.
            IdempotencyConflict: the key was used with other arguments.
            EmbedderFailed: the embedder failed; nothing was written.
        """
        if _moved:
            refuse("put_frame", _moved)
        check_not_empty(content)
        if options is not PUT:
            checked("options", options, PutOptions)
            check_unused("put_frame", options, _OF_FILES)
        if vectors is not NO_VECTORS:
            checked("vectors", vectors, Vectors)
            check_unused("put_frame", vectors, _OF_QUESTIONS)
        fields = frame_fields(
            kind=kind,
            role=role,
            uri=uri,
            title=title,
            tags=tags,
            labels=options.labels,
            metadata=metadata,
            track=options.track,
            parent=None if options.parent is None else frame_id(options.parent),
            content_dates=options.content_dates or (),
            created=options.created,
            expires=options.expires,
            search_text=options.search_text,
        )
        stamped = full_scope(options.scope, self._session.scope)
        vector = tokens = None
        # Numpy is not imported for a text without vectors.
        if vectors.dense is not None or vectors.space is not None:
            rows = None if vectors.dense is None else [vectors.dense]
            [vector] = vector_values.vectors(cast("Any", rows), 1, vectors.space)
        if vectors.tokens is not None or vectors.tokens_space is not None:
            matrices = None if vectors.tokens is None else [vectors.tokens]
            [tokens] = token_vectors.stored_matrices(cast("Any", matrices), 1, vectors.tokens_space)
        session = self._session.by(options.actor)
        draft = frame_draft(content, fields, stamped, embedding=vector, tokens=tokens)
        if options.because is not None:
            cause = expect_integer("because", options.because)
            draft = msgspec.structs.replace(draft, causation=cause)
        finds_dates = options.content_dates is None
        if options.replace:
            replaced = replaced_uri(fields)
            session.record_call(stamped, "put_frame", "replace", drafts=[draft])
            return frame_replacement.put_replacing(
                session, draft, replaced, options.key, finds_dates=finds_dates
            )
        session.record_call(stamped, "put_frame", drafts=[draft])
        return embedded_drafts.put_embedded(session, [draft], options.key, finds_dates=finds_dates)

    @takes_scope
    def put_frames(
        self,
        /,
        texts: Sequence[str],
        *,
        kind: str = "text",
        tags: Sequence[str] = (),
        metadata: Sequence[Mapping[str, JsonValue]] | None = None,
        vectors: Vectors = NO_VECTORS,
        options: PutOptions = PUT,
        **_moved: Never,
    ) -> Receipt:
        """Put many frames as one batch: all of them or none. Durable on return.

        Without ``vectors`` the store's embedder computes them.

        Args:
            texts: The texts, a frame for each; at most 10,000.
            kind: The structure of all frames; default "text".
            tags: The tags of all frames; default none.
            metadata: A mapping of names and JSON values for each text; default none.
            vectors: A vector for each text, (texts, dimension), and an array (tokens, dimension)
                for each; default from the store's embedder.
            options: Labels, times and relations of all frames, and where the write goes.

        Raises:
            InvalidInput: a value cannot be stored, or an argument has another number of items.
            IdempotencyConflict: the key was used with other arguments.
            EmbedderFailed: the embedder failed; nothing was written.
        """
        if _moved:
            refuse("put_frames", _moved)
        checked("options", options, PutOptions)
        checked("vectors", vectors, Vectors)
        check_unused("put_frames", options, _OF_ONE_FRAME)
        check_unused("put_frames", vectors, _OF_QUESTIONS)
        texts = listed("texts", texts)
        if "" in texts:
            check_not_empty("")
        if metadata is not None and len(metadata := listed("metadata", metadata)) != len(texts):
            raise InvalidInput(
                f"metadata must have an item for each of {len(texts):,} texts, "
                f"not {len(metadata):,}",
                remedy="Pass a mapping for each text, or {} for a text without metadata.",
            )
        stamped = full_scope(options.scope, self._session.scope)
        fields = frame_fields(
            kind=kind,
            tags=tags,
            labels=options.labels,
            track=options.track,
            parent=None if options.parent is None else frame_id(options.parent),
            created=options.created,
            expires=options.expires,
        )
        each = [fields] * len(texts)
        if metadata is not None:
            named = [frame_fields(kind=kind, metadata=entry).metadata for entry in metadata]
            each = [msgspec.structs.replace(fields, metadata=entry) for entry in named]
        dense, tokens = cast("Any", vectors.dense), cast("Any", vectors.tokens)
        rows = vector_values.vectors(dense, len(texts), vectors.space)
        matrices = token_vectors.stored_matrices(tokens, len(texts), vectors.tokens_space)
        drafts = text_drafts(texts, each, stamped, embeddings=rows, tokens=matrices)
        self._session.record_call(stamped, "put_frames", drafts=drafts)
        session = self._session.by(options.actor)
        return embedded_drafts.put_embedded(session, drafts, options.key)

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
            where.check_plain()
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
