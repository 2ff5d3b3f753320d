"""Documents: what every extractor returns, and how bytes become text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.limits import STRING_SIZE_MAX

NAME_SIZE_MAX: Final = 200
"""Characters of a heading that a part's title keeps: a long one would be stored with each part."""


@dataclass(frozen=True, slots=True)
class Section:
    """Characters [start, end) of a document that belong together, under these headings.

    Of a transcript it is one turn: who spoke, when (microseconds since 1970 UTC), what kind of
    turn, and the session or whatever else the file says of it. ``kind`` None is the document's.
    """

    start: int
    end: int
    headings: tuple[str, ...] = ()
    role: str | None = None
    created: int | None = None
    kind: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its sections, which follow each other and together are the text.

    Of plain text, Markdown, source code and data the text is the file's, character by character;
    of HTML, PDF and transcripts it is what a person would read.
    """

    text: str
    sections: tuple[Section, ...]
    media_type: str
    title: str | None = None
    is_extracted: bool = False
    """Whether the text is another than that of the file's bytes."""


def decode_text(data: bytes, where: str) -> str:
    """Return the text of a file or of the input, without a byte order mark.

    Raises:
        InvalidInput: it is over the limit, not UTF-8, has a NUL, or is empty.
    """
    if len(data) > STRING_SIZE_MAX:
        raise too_large(where)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Not UTF-8 text: byte {error.start:,} is 0x{data[error.start]:02x}",
            where=where,
            remedy="Convert it to UTF-8, or store its bytes with put_frame.",
        ) from error
    if "\0" in text:
        raise InvalidInput(
            f"Not text: it has a NUL at character {text.index(chr(0)):,}",
            where=where,
            remedy="Store its bytes with put_frame(data).",
        )
    return some_text(text, where)


def some_text(text: str, where: str | None) -> str:
    """Return the text, or raise `InvalidInput` if there is nothing but space in it."""
    if not text.strip():
        raise InvalidInput(
            "There is no text to remember",
            where=where,
            remedy="Store its bytes with put_frame(data).",
        )
    return text


def too_large(where: str) -> InvalidInput:
    """Return the error for more text than one string may hold."""
    return InvalidInput(
        f"It is over the limit of {STRING_SIZE_MAX:,} bytes", where=where, remedy="Split it."
    )
