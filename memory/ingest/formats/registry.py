"""The registry of extractors: chooses by a file's suffix, else by its first bytes.

Owns the suffixes, and the formats that have no text. Leaves out the extractors.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from cerata.engine.errors import InvalidInput

from .document import Document
from .html import extract_html
from .pdf import extract_pdf
from .plain import extract_code, extract_markdown, extract_python, extract_text
from .transcripts import extract_json, extract_json_lines

Extractor = Callable[[bytes, str], Document]

SIZE_MAX: Final = 64 << 20
"""Most bytes of a file; its text has a smaller limit."""

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
"""Endings of files to read below a folder; a named file is read with any ending."""

_BULK_SUFFIXES: Final = frozenset(
    (".log", ".err", ".out", ".trace", ".csv", ".tsv", ".psv", ".json", ".jsonl", ".ndjson")
)
"""Endings of logs and tables, also before another ending: ``server.log.1``."""

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
"""The first bytes of files without text, and a description of each format."""


def extract(data: bytes, where: str) -> Document:
    """Return the document of a file's bytes; ``where`` is its name.

    Raises:
        InvalidInput: the file has no readable text; the message has the reason.
        Unsupported: a package is missing; the message names the extra that installs it.
    """
    if len(data) > SIZE_MAX:
        raise InvalidInput(
            f"The file is over the limit of {SIZE_MAX:,} bytes",
            where=where,
            remedy="Split the file into several files.",
        )
    for start, description in _MAGIC.items():
        if data.startswith(start):
            raise InvalidInput(
                f"Not text: it is {description}",
                where=where,
                remedy="Unpack or convert the file, or store its bytes with put_frame(data).",
            )
    document = extractor_of(data, where)(data, where)
    suffixes = {suffix.lower() for suffix in PurePath(where).suffixes}
    is_transcript = any(section.role is not None for section in document.sections)
    is_bulk = not (is_transcript or suffixes.isdisjoint(_BULK_SUFFIXES))
    return replace(document, is_bulk=True) if is_bulk else document


def extractor_of(data: bytes, where: str) -> Extractor:
    """Return the extractor for a file."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"%PDF-"):
        return extract_pdf
    extractor = _BY_SUFFIX.get(PurePath(where).suffix.lower())
    if extractor is not None:
        return extractor
    if start[:14].lower() == b"<!doctype html" or start[:5].lower() == b"<html":
        return extract_html
    return extract_text
