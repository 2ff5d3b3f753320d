"""Drafts of frames: the events that put frames, from checked arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from cerata.engine.arguments import exact_string, expect_text, expect_type, is_unicode, wrong_type
from cerata.engine.errors import InvalidInput, NotFound, value_text
from cerata.engine.events import Attachment, Draft, Embedding, JsonValue, PutFrame, Scope
from cerata.engine.integrity import hash_bytes
from cerata.projections.columnar.times import to_microseconds

from ..values.arguments import (
    DOCUMENT_KIND,
    NO_ITEMS,
    SOURCE_HASH,
    SPAN,
    TABLE_HEADER,
    copied,
    listed,
    utf8_of,
)

if TYPE_CHECKING:
    from ..values.frames import Frame


def frame_fields(
    *,
    kind: str,
    role: str | None = None,
    uri: str | None = None,
    title: str | None = None,
    tags: Sequence[str] = (),
    labels: Sequence[str] = (),
    metadata: Mapping[str, JsonValue] | None = None,
    track: str | None = None,
    parent: int | None = None,
    content_dates: Sequence[date | str] = (),
    created: date | str | None = None,
    expires: date | str | None = None,
    search_text: str | None = None,
) -> PutFrame:
    """Return a frame without content from checked fields; ``metadata`` is copied.

    Raises:
        InvalidInput: a field has the wrong type; the message names the field.
    """
    # A fold takes these values from memory, so they have the types that the file gives back.
    texts: dict[str, str | None] = {}
    for name, value in (
        ("role", role),
        ("uri", uri),
        ("title", title),
        ("track", track),
        ("search_text", search_text),
    ):
        texts[name] = None if value is None else expect_text(name, value)
    if not isinstance(kind, str) or not kind:
        raise InvalidInput(
            "kind must be a non-empty string", remedy="Pass a name, such as kind='note'."
        )
    if metadata is not None:
        remedy = "Pass a dict from names to JSON values."
        expect_type("metadata", metadata, Mapping, "a mapping", remedy)
    return PutFrame(
        kind=kind if type(kind) is str else exact_string(kind),
        role=texts["role"],
        uri=texts["uri"],
        title=texts["title"],
        tags=() if tags is NO_ITEMS else _strings("tags", tags),
        labels=() if labels is NO_ITEMS else _strings("labels", labels),
        metadata={} if metadata is None else copied(metadata),
        track=texts["track"],
        parent=None if parent is None else int(parent),
        content_dates=() if content_dates is NO_ITEMS else _times("content_dates", content_dates),
        created=None if created is None else to_microseconds(created),
        expires=None if expires is None else to_microseconds(expires),
        search_text=texts["search_text"],
    )


def _times(name: str, values: Sequence[date | str]) -> tuple[int, ...]:
    return tuple(map(to_microseconds, listed(name, values)))


def _strings(name: str, values: Sequence[str]) -> tuple[str, ...]:
    items = listed(name, values)
    for value in items:
        if not isinstance(value, str):
            raise InvalidInput(
                f"{name} must hold strings only, and has {value_text(value)}",
                remedy="Pass strings.",
            )
        if not value:
            raise InvalidInput(
                f"{name} has an empty string", remedy=f"Leave it out, or pass {name}=[]."
            )
    return tuple(map(exact_string, items))


def check_not_empty(content: object) -> None:
    """Raise `InvalidInput` for an empty text: a lost value is more likely than a wish."""
    if content == "":
        raise InvalidInput(
            "The text is empty",
            remedy="Pass at least one word, or bytes with cerata.PutOptions(search_text=…).",
        )


def frame_draft(
    content: str | bytes,
    fields: PutFrame,
    scope: Scope,
    *,
    hashed: bytes | None = None,
    chunk_index: int | None = None,
    chunk_count: int | None = None,
    embedding: tuple[Embedding, bytes] | None = None,
    tokens: tuple[Embedding, bytes] | None = None,
) -> Draft:
    """Return the event that puts a frame with these fields.

    ``hashed`` is the content hash of a document, whose content is in its chunks; any other hash
    follows from the content. ``fields`` are of `frame_fields` or of a stored frame, ``embedding``
    of `vectors` and ``tokens`` of `stored_matrices`; these have checked and hashed them, so the
    append does not.

    Raises:
        InvalidInput: the content is neither str nor bytes, or has a lone surrogate.
    """
    attachments: tuple[bytes, ...] = ()
    text: str | None = None
    blob: Attachment | None = None
    if isinstance(content, str):
        text = exact_string(content)
        utf8_of(text)
    elif isinstance(content, bytes | bytearray | memoryview):
        data = bytes(content)
        attachments = (data,)
        blob = Attachment(hash_bytes(data), len(data))
    else:
        remedy = "Pass a pathlib.Path to remember() to store a file."
        raise wrong_type("content", "str or bytes", content, remedy)
    if embedding is not None:
        attachments = (*attachments, embedding[1])
    if tokens is not None:
        attachments = (*attachments, tokens[1])
    body = msgspec.structs.replace(
        fields,
        text=text,
        blob=blob,
        chunk_index=chunk_index,
        chunk_count=chunk_count,
        content_hash=hashed,
        embedding=None if embedding is None else embedding[0],
        token_embedding=None if tokens is None else tokens[0],
    )
    return Draft(body, scope, attachments=attachments, is_checked=True)


def text_drafts(
    texts: Sequence[str],
    fields: Sequence[PutFrame],
    scope: Scope,
    *,
    embeddings: Sequence[tuple[Embedding, bytes] | None],
    tokens: Sequence[tuple[Embedding, bytes] | None],
) -> list[Draft]:
    """Return the events of `frame_draft` for many texts, which are looked through as a column.

    Raises:
        InvalidInput: a text is neither str nor bytes, or has a lone surrogate.
    """
    if not _are_texts(texts):
        return [
            frame_draft(text, body, scope, embedding=row, tokens=matrix)
            for text, body, row, matrix in zip(texts, fields, embeddings, tokens, strict=True)
        ]
    drafts: list[Draft] = []
    for text, body, row, matrix in zip(texts, fields, embeddings, tokens, strict=True):
        attachments: tuple[bytes, ...] = () if row is None else row[1:]
        if matrix is not None:
            attachments += matrix[1:]
        frame = msgspec.structs.replace(
            body,
            text=text,
            embedding=None if row is None else row[0],
            token_embedding=None if matrix is None else matrix[0],
        )
        drafts.append(Draft(frame, scope, attachments=attachments, is_checked=True))
    return drafts


def _are_texts(texts: Sequence[object]) -> bool:
    """Return whether all are strings of the type `str` that have a UTF-8."""
    return {*map(type, texts)} == {str} and is_unicode("".join(map(str, texts)))


def inherited_fields(old: Frame) -> tuple[PutFrame, Scope]:
    """Return the fields and scope that a new version inherits from a frame.

    Raises:
        NotFound: the frame was erased.
    """
    if not old.scope:
        raise NotFound(
            f"Frame {old.id:,} was erased, and its scope is unknown",
            remedy="Put a new frame with put_frame().",
        )
    fields = PutFrame(
        kind="text" if old.kind == DOCUMENT_KIND else old.kind,
        role=old.role,
        uri=old.uri,
        title=old.title,
        tags=old.tags,
        labels=old.labels,
        track=old.track,
        # A chunk's new text is no part of its document.
        parent=None if old.chunk_index is not None else old.parent,
        metadata={
            name: value
            for name, value in old.metadata.items()
            # These describe the source of the old text.
            if name not in (SOURCE_HASH, SPAN, TABLE_HEADER)
        },
    )
    return fields, tuple(old.scope.items())


def replaced_uri(fields: PutFrame) -> str:
    """Return the URI that a frame replaces.

    Raises:
        InvalidInput: the frame has no URI, or is below another frame.
    """
    if fields.uri is None:
        raise InvalidInput(
            "replace=True needs a uri, which names the frame to replace",
            remedy="Pass uri=, or call supersede(frame, text).",
        )
    if fields.parent is not None:
        raise InvalidInput(
            "replace=True cannot be combined with parent: a chunk is replaced with its document",
            remedy="Replace the whole document with remember(text, uri=…), or leave out parent.",
        )
    return fields.uri
