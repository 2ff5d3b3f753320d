"""Remembering: the calls that split and store texts and files, each content once.

Leaves out their work (`document`, `folder`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Never

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.late import late, loading

from ..batch.writer import Writer, takes_scope
from ..values.arguments import full_scope, listed
from ..values.frames import Receipt, frame_id
from ..values.options import PUT, PutOptions, check_unused, checked
from ..values.renamed import refuse

if TYPE_CHECKING:
    from ..frames import drafts as frame_drafts
    from .folder import Remembered, Report
    from .formats.document import Document
else:
    frame_drafts = late("cerata.memory.frames.drafts")


_NOT_INGESTED: Final = ("because", "key", "replace", "search_text")
"""Options without a meaning for contents that are stored once."""
_NOT_OF_FILES: Final = (*_NOT_INGESTED, "content_dates", "created", "expires", "parent", "track")


class IngestCommands(Writer):
    """The calls that remember; each appends durable batches, or joins the open transaction."""

    @takes_scope
    def remember(
        self,
        /,
        text: str | Path | Document,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        options: PutOptions = PUT,
        **_moved: Never,
    ) -> Receipt:
        """Remember a text, or the file at a path: split into passages, stored once.

        Content that is stored under the same URI is not stored again (``added`` is False); other
        content under a URI supersedes the old. A long document takes several batches, its document
        frame first; after a crash the same call continues with the missing chunks.

        Args:
            text: A str is text, plain or Markdown; a file at a `Path` is read by its format.
            kind: The structure of the frame or chunks; default "text".
            role: The speaker; default none.
            uri: The address of the source; default for a file its absolute path.
            title: The title, which is searched too; default for a file its title or short name.
            tags: Tags, which are searched and filtered by; default none.
            metadata: Further names and JSON values, which are filtered by; default none.
            options: Labels, times, relations, and where the write goes. Without `content_dates`
                each passage has the dates that it names, relative to ``created``; in a file without
                ``created``, only those with a year. `expires` is not applied to content that is
                stored already; `update` changes it. Most passages of a log or table that get a
                vector: `embed_limit`, default 256. A notice counts the rest, which
                `embeddings.fill` embeds.

        Raises:
            InvalidInput: ``text`` is no text or path, the file's content is no text, or ``expires``
                is past.
            NotFound: the file does not exist.
            StorageFailed: the file cannot be read.
        """
        with loading("the part that reads files"):
            from .document import remember

        if _moved:
            refuse("remember", _moved)
        checked("options", options, PutOptions)
        check_unused("remember", options, _NOT_INGESTED)
        fields = frame_drafts.frame_fields(
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
        )
        stamped = full_scope(options.scope, self._session.scope)
        source = str(text) if isinstance(text, Path) else text
        self._session.record_call(stamped, "remember", source, fields, stamped)
        finds_dates = options.content_dates is None
        return remember(
            self._session.by(options.actor),
            text,
            fields,
            stamped,
            finds_dates=finds_dates,
            embed_limit=options.embed_limit,
        )


class FileCommands(Writer):
    """The call that remembers files; each is a durable batch."""

    @takes_scope
    def remember(
        self,
        /,
        paths: Sequence[str | Path],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        default_excludes: bool = True,
        tags: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        dry_run: bool = False,
        report: Report | None = None,
        options: PutOptions = PUT,
        **_moved: Never,
    ) -> Remembered:
        """Remember files and folders, each file once, and return the outcome of each.

        Each file is durable before the next: after a crash the same call continues. A file that
        cannot be read is skipped.

        Args:
            paths: Files, and folders to search with all folders below them.
            include: Patterns of files below folders; default the known suffixes (docs/ingest.md).
            exclude: Patterns of files and folders to skip; default none.
            default_excludes: Also skip hidden, installed and packed files; default True.
            tags: The tags of all frames; default none.
            metadata: Names and JSON values for all frames; default none.
            dry_run: Write nothing, and return the outcomes of a real call; default False.
            report: Called after each file with its outcome, its number from 1, and the count.
            options: The labels of all frames, where the writes go, and `embed_limit`, as for
                `remember`.

        Raises:
            InvalidInput: a pattern cannot be used, or a transaction is open.
        """
        with loading("the part that reads files"):
            from .discovery import find_files
            from .folder import remember_files

        if _moved:
            refuse("files.remember", _moved)
        checked("options", options, PutOptions)
        check_unused("files.remember", options, _NOT_OF_FILES)
        if self._session.in_transaction:
            raise InvalidInput(
                "files.remember writes a batch for each file and cannot join a transaction",
                remedy="Call files.remember outside the transaction, or remember() for each file.",
            )
        named = listed("paths", paths)
        files = find_files(
            named, include=include, exclude=exclude, default_excludes=default_excludes
        )
        fields = frame_drafts.frame_fields(
            kind="text", tags=tags, labels=options.labels, metadata=metadata
        )
        stamped = full_scope(options.scope, self._session.scope)
        return remember_files(
            self._session.by(options.actor),
            files,
            fields,
            stamped,
            dry_run=dry_run,
            report=report,
            embed_limit=options.embed_limit,
        )
