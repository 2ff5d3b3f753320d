"""Writing: the calls that put, remember, supersede, delete, tag and append.

Owns what each call says in events. Leaves out how they are appended (`appending`), and cutting
documents (`ingest`).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    AccessFrames,
    DeleteFrame,
    Draft,
    EventBody,
    JsonValue,
    PutTag,
    RecallContext,
    ScopeValue,
    SupersedeFrame,
)
from cerata.engine.loading import loading

from .drafting import frame_draft, frame_fields, full_scope, listed, within_scope
from .embedding import Embeds
from .gaining import FactGains
from .linking import LinkWrites
from .spaces import Vector, Vectors, vectors
from .token_vectors import stored_matrices
from .values import Context, FrameId, Receipt, frame_id
from .view import Basis, View

if TYPE_CHECKING:
    from .extract.document import Document
    from .files import Remembered, Report


class Writes(FactGains, LinkWrites, Embeds):
    """The calls that write; each is its own durable batch, or joins the open transaction."""

    @abstractmethod
    def at(self, basis: Basis) -> View:
        """Return the memory as it was at a basis."""

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
        content_dates: Sequence[datetime | str] = (),
        created: datetime | str | None = None,
        search_text: str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        embedding: Vector | None = None,
        space: str | None = None,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Put one frame as it is: no splitting, no deduplication. Durable on return.

        Its content hash goes with it, so that `find_content` and `find_stored` find it.
        A str is searched by its words; of bytes only ``search_text``, title and tags are.
        ``embedding`` is its vector, recorded with it, and ``space`` the name of what made it: all
        vectors of a space have one dimension. ``token_embedding``, (tokens, dimension), has a
        vector for each token, stored as int8, and ``tokens_space`` names its maker. Without them
        the store's embedder makes what it can (docs/embedders.md). ``key`` makes the call
        idempotent.

        Raises:
            InvalidInput: a value that cannot be stored. NotFound: no such parent.
            IdempotencyConflict: the key was used with other arguments. EmbedderFailed.
        """
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
            content_dates=content_dates,
            created=created,
            search_text=search_text,
        )
        stamped = full_scope(scope, self._scope)
        [vector] = vectors(None if embedding is None else [embedding], 1, space)
        given = None if token_embedding is None else [token_embedding]
        [tokens] = stored_matrices(given, 1, tokens_space)
        drafts = [frame_draft(content, fields, stamped, embedding=vector, tokens=tokens)]
        self._called(stamped, "put_frame", drafts=drafts)
        return self._put(drafts, key)

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
    ) -> Receipt:
        """Put many frames as one batch: all of them or none. Durable on return.

        ``metadata`` has one mapping a text, ``embeddings`` one row, which ``space`` names the
        maker of, and ``token_embeddings`` one matrix, which ``tokens_space`` does; without them the
        store's embedder makes what it can. At most 10,000 texts.
        """
        texts = listed("texts", texts)
        if metadata is not None and len(metadata := listed("metadata", metadata)) != len(texts):
            raise InvalidInput(
                f"{len(texts):,} texts came with {len(metadata):,} metadata",
                remedy="Pass a map of metadata for each text, or a single one for all.",
            )
        stamped = full_scope(scope, self._scope)
        fields = frame_fields(kind=kind, tags=tags)
        each = [fields] * len(texts)
        if metadata is not None:
            each = [frame_fields(kind=kind, tags=tags, metadata=own) for own in metadata]
        rows = vectors(embeddings, len(texts), space)
        matrices = stored_matrices(token_embeddings, len(texts), tokens_space)
        drafts = [
            frame_draft(text, own, stamped, embedding=row, tokens=matrix)
            for text, own, row, matrix in zip(texts, each, rows, matrices, strict=True)
        ]
        self._called(stamped, "put_frames", drafts=drafts)
        return self._put(drafts, key)

    def remember(
        self,
        text: "str | Path | Document",
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
        content_dates: Sequence[datetime | str] = (),
        created: datetime | str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
    ) -> Receipt:
        """Remember a text, or the file at a path: split into passages, stored once.

        A str is always text, of Markdown or without any marks; a file is read by what it is
        (docs/ingest.md). What is there already, under the same URI, is not stored again
        (``added`` is False); other text under a URI supersedes the old. A long document takes
        several batches, its document frame first; called again after a crash, it goes on where
        it stopped.

        Raises:
            InvalidInput: not text. NotFound: no such file. StorageFailed: it cannot be read.
        """
        with loading("the part that reads files"):
            from .ingest import remember

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
            content_dates=content_dates,
            created=created,
        )
        stamped = full_scope(scope, self._scope)
        source = str(text) if isinstance(text, Path) else text
        self._called(stamped, "remember", source, fields, stamped)
        return remember(self, text, fields, stamped)

    def remember_files(
        self,
        paths: "Sequence[str | Path]",
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        default_excludes: bool = True,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        dry_run: bool = False,
        report: "Report | None" = None,
    ) -> "Remembered":
        """Remember files and folders, each file once, and say what became of each.

        Every file is its own call of `remember`, durable before the next: killed, the same call
        goes on where it stopped. One that cannot be read is skipped, and stops no other. With
        ``dry_run`` nothing is written, and what would be is said. ``include`` and ``exclude`` are
        patterns (docs/ingest.md); ``report`` is told of each file as it is done.

        Raises:
            InvalidInput: a pattern that cannot be used; inside a transaction.
        """
        with loading("the part that reads files"):
            from .files import remember_files
            from .finding import find_files

        if self.in_transaction:
            raise InvalidInput(
                "Files are remembered one by one, not in a transaction",
                remedy="Call remember_files outside it, or remember for each file.",
            )
        named = listed("paths", paths)
        found = find_files(
            named, include=include, exclude=exclude, default_excludes=default_excludes
        )
        fields = frame_fields(kind="text", tags=tags, labels=labels, metadata=metadata)
        stamped = full_scope(scope, self._scope)
        return remember_files(self, found, fields, stamped, dry_run=dry_run, report=report)

    def supersede(self, old: FrameId, new: str | FrameId) -> Receipt:
        """Put ``new``, a text or a frame already there, in the place of ``old``.

        The old frame, and the chunks below it, stay readable in the past. A new text takes over
        the old frame's scope, kind, role, URI, title, tags, labels and metadata. Durable on
        return.

        Raises:
            NotFound: no such frame. Conflict: one of them is closed already.
        """
        old_id = frame_id(old)
        if not isinstance(new, str):
            scope = full_scope(None, self._scope)
            new_id = frame_id(new)
            self._called(scope, "supersede", old_id, new_id)
            return self.write([Draft(SupersedeFrame(old=old_id, new=new_id), scope)])
        fields, scope = self._fields_of(old_id)
        self._called(scope, "supersede", old_id, new)
        frame = frame_draft(new, fields, scope)
        place = self.next_place()
        return self._put([frame, Draft(SupersedeFrame(old=old_id, new=-place), scope)])

    def delete(self, frame: FrameId) -> Receipt:
        """Close a frame, and the chunks below it; it stays readable in the past.

        Raises:
            NotFound: no such frame. Conflict: it is closed already.
        """
        scope = full_scope(None, self._scope)
        number = frame_id(frame)
        self._called(scope, "delete", number)
        return self.write([Draft(DeleteFrame(frame=number), scope)])

    def tag(self, name: str, at: Basis = "HEAD") -> Receipt:
        """Name the end of a batch, by default the newest, for good; `at` takes the name.

        A name starts with a letter and is never used again. Inside a transaction it names what
        is in the log. Durable on return.

        Raises:
            Conflict: the name is taken. InvalidInput: it cannot be a name, or ``at`` lies inside a
            batch. NotFound: the log does not reach that far.
        """
        scope = full_scope(None, self._scope)
        view = self.at(at)
        if view.gathered:
            raise InvalidInput(
                "The view has what a transaction has gathered, which is not in the log",
                remedy="Tag it after the transaction.",
            )
        seq = view.basis
        self._called(scope, "tag", name, at if isinstance(at, str | datetime) else seq)
        return self.write([Draft(PutTag(tag=name, at=seq), scope)])

    def record_access(self, *frames: FrameId) -> Receipt:
        """Say that frames were used: opened, cited, or whatever you count; `access` counts it.

        Durable on return.

        Raises:
            NotFound: no such frame. InvalidInput: no frame was given.
        """
        if not frames:
            raise InvalidInput("No frame was given", remedy="Name those that were used.")
        numbers = tuple(dict.fromkeys(map(frame_id, frames)))
        scope = full_scope(None, self._scope)
        self._called(scope, "record_access", numbers)
        return self.write([Draft(AccessFrames(frames=numbers), scope)])

    def _recorded(self, context: Context, said: RecallContext) -> Context:
        scope = full_scope(None, self._scope)
        # What was asked, and not what came of it: what a block puts has another day when it is
        # run again.
        asked = msgspec.structs.replace(
            said, basis=0, context=b"", frames=(), facts=(), omitted=(), omitted_facts=()
        )
        self._called(scope, "recall", asked)
        receipt = self.write([Draft(said, scope)])
        return replace(context, recorded=receipt.seqs[0])

    def append(
        self, *events: EventBody | Draft, expect: int | None = None, key: str | None = None
    ) -> Receipt:
        """Append events of any kind as one batch. Durable on return.

        ``expect`` is the seq of the head that the caller saw; if the log moved on it is refused.
        A body, and a draft without a scope of its own, get the store's scope.

        Raises:
            Conflict: the log is not at ``expect``, or a target is closed. InvalidInput: an event
            that cannot be stored, or a draft's scope outside the store's. NotFound.
        """
        for one in events:
            if not isinstance(one, Draft | EventBody):
                raise InvalidInput(
                    f"A {type(one).__name__} is no event", remedy="Pass event bodies or drafts."
                )
        drafts = within_scope(
            [one if isinstance(one, Draft) else Draft(one) for one in events], self._scope
        )
        if drafts:
            self._called(drafts[0].scope, "append", drafts=drafts)
        return self.write(drafts, expect=expect, key=key)
