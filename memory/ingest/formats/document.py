"""Documents: the result of every extractor, and the decoding of bytes as text."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.limits import STRING_SIZE_MAX

from .flaws import Flaw

NAME_SIZE_MAX: Final = 200
"""Most characters of a heading in a title, since each part of a document stores its headings."""


@dataclass(frozen=True, slots=True)
class Section:
    """Characters [start, end) of a document that belong together, under their headings.

    - A section of a transcript is a turn: its ``role``, ``created`` (microseconds since 1970 UTC),
      ``kind``, and in ``metadata`` its session.
    - Without ``kind`` the section has the document's kind.
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
    """A text and its sections, which cover the text without gaps.

    The text of plain text, Markdown, source code and data equals the file's, character by
    character; the text of HTML, PDF and transcripts is the readable text.
    """

    text: str
    sections: tuple[Section, ...]
    media_type: str
    title: str | None = None
    is_extracted: bool = False
    """True if the text differs from the decoded bytes of the file."""
    flaws: tuple[Flaw, ...] = ()
    """The parts of the file that the text lacks, or has with a doubt."""


_BLANK: Final = re.compile(r"[\s\ufeff]*")
_START_SIZE: Final = 4_096


def is_blank(data: bytes) -> bool:
    """Return whether a file has no bytes, or only a byte order mark and white space."""
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if utf_16 else "utf-8"
    if not _BLANK.fullmatch(data[:_START_SIZE].decode(encoding, errors="ignore")):
        return False
    try:
        return _BLANK.fullmatch(data.decode(encoding)) is not None
    except UnicodeDecodeError:
        return False


def decode_text(data: bytes, where: str) -> str:
    """Return the text of a file or of the input, without a byte order mark.

    Raises:
        InvalidInput: the data is over the limit, not UTF-8, has a NUL, or is empty.
    """
    if len(data) > STRING_SIZE_MAX:
        raise too_large(where)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Not UTF-8 text: byte {error.start:,} is 0x{data[error.start]:02x}",
            where=where,
            remedy="Convert the file to UTF-8, or store its bytes with put_frame(data).",
        ) from error
    if "\0" in text:
        raise InvalidInput(
            f"Not text: it has a NUL at character {text.index(chr(0)):,}",
            where=where,
            remedy="Store its bytes with put_frame(data).",
        )
    return some_text(text, where)


def some_text(text: str, where: str | None) -> str:
    """Return the text; raise `InvalidInput` if the text is blank, or over the limit of a string."""
    # A character has at most four bytes of UTF-8, so most texts need not be encoded.
    if len(text) > STRING_SIZE_MAX // 4 and len(text.encode(errors="replace")) > STRING_SIZE_MAX:
        raise too_large(where)
    if not text.strip():
        raise InvalidInput(
            "There is no text to remember",
            where=where,
            remedy="Store its bytes with put_frame(data).",
        )
    return text


def too_large(where: str | None) -> InvalidInput:
    """Return the error for a text over the limit of a string."""
    return InvalidInput(
        f"The text is over the limit of {STRING_SIZE_MAX:,} bytes",
        where=where,
        remedy="Split the text, and remember each part.",
    )
