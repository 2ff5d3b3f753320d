"""PDF: the text of each page, by pypdf, in a child process. A scanned page has no text."""

import io
from typing import Final

from .document import NAME_SIZE_MAX, Document
from .isolated import Parsed, parse_isolated

PAGES_MAX: Final = 10_000


def extract_pdf(data: bytes, where: str) -> Document:
    """Return the document of a PDF file. Raises: as `parse_isolated`."""
    return parse_isolated(data, where, module="pdf", package="pypdf", media_type="application/pdf")


def parse(data: bytes) -> Parsed:
    """Parse a file: its title and the text of its pages."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return Parsed(error="it is encrypted; save a copy without a password")
    if len(reader.pages) > PAGES_MAX:
        return Parsed(error=f"it has over {PAGES_MAX:,} pages")
    sections: list[tuple[tuple[str, ...], str]] = []
    for number, page in enumerate(reader.pages, 1):
        text = page.extract_text().encode(errors="replace").decode().replace("\0", "").strip()
        if text:
            sections.append(((f"page {number}",), f"{text}\n\n"))
    if not sections:
        return Parsed(error="there is no text in it; scanned pages need recognition first")
    title = None if reader.metadata is None else reader.metadata.title
    return Parsed((title or "").strip()[:NAME_SIZE_MAX] or None, sections)
