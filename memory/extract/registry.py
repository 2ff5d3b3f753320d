"""Which extractor reads a file: by its suffix, and where that says nothing, by its first bytes."""

from collections.abc import Callable
from pathlib import PurePath
from typing import Final

from cerata.engine.errors import InvalidInput

from .code import extract_code, extract_python
from .document import Document
from .html import extract_html
from .pdf import extract_pdf
from .plain import extract_markdown, extract_text
from .transcripts import extract_json, extract_json_lines

Extractor = Callable[[bytes, str], Document]

SIZE_MAX: Final = 64 << 20
"""Bytes of a file that is read at all; its text has a limit of its own."""

_CODE: Final = (
    "c h cc cpp cxx hpp hh m mm cs java kt kts scala go rs swift rb php pl pm lua r jl dart ex exs"
    " erl hs clj cljs ml mli fs fsx js jsx mjs cjs ts tsx vue svelte sh bash zsh fish ps1 sql tf"
    " proto thrift graphql css scss less zig nim d pas f90 asm s cmake gradle groovy el lisp scm"
)

_BY_SUFFIX: Final[dict[str, Extractor]] = {
    **dict.fromkeys((f".{name}" for name in _CODE.split()), extract_code),
    **dict.fromkeys((".py", ".pyi", ".pyw"), extract_python),
    **dict.fromkeys((".md", ".markdown", ".mdx", ".mkd"), extract_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), extract_html),
    **dict.fromkeys((".json",), extract_json),
    **dict.fromkeys((".jsonl", ".ndjson"), extract_json_lines),
    ".pdf": extract_pdf,
}

KNOWN_SUFFIXES: Final = frozenset((*_BY_SUFFIX, ".txt", ".text", ".rst"))
"""What a folder is searched for; a file that is named is read whatever its name."""

_MAGIC: Final = {
    b"PK\x03\x04": "a zip archive or an office document",
    b"\x1f\x8b": "compressed (gzip)",
    b"BZh": "compressed (bzip2)",
    b"\xfd7zXZ": "compressed (xz)",
    b"(\xb5/\xfd": "compressed (zstd)",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x89PNG": "an image (PNG)",
    b"\xff\xd8\xff": "an image (JPEG)",
    b"GIF8": "an image (GIF)",
    b"\x7fELF": "a program or library",
    b"SQLite format 3\0": "a SQLite database",
}
"""How files start that have no text to remember, and what they are."""


def extract(data: bytes, where: str) -> Document:
    """Return the document of a file's bytes; ``where`` is its name.

    Raises:
        InvalidInput: it has no text that can be read; says why. Unsupported: a package is
        missing; names the extra that has it.
    """
    if len(data) > SIZE_MAX:
        raise InvalidInput(
            f"It is over the limit of {SIZE_MAX:,} bytes",
            where=where,
            remedy="Split it into several files.",
        )
    for start, what in _MAGIC.items():
        if data.startswith(start):
            raise InvalidInput(
                f"Not text: it is {what}",
                where=where,
                remedy="Unpack or convert it, or store its bytes with put_frame(data).",
            )
    return extractor_of(data, where)(data, where)


def extractor_of(data: bytes, where: str) -> Extractor:
    """Return the extractor for a file."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"%PDF-"):
        return extract_pdf
    found = _BY_SUFFIX.get(PurePath(where).suffix.lower())
    if found is not None:
        return found
    if start[:14].lower() == b"<!doctype html" or start[:5].lower() == b"<html":
        return extract_html
    return extract_text
