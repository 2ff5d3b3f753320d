"""Plain text and Markdown: the unchanged text; Markdown by its headings."""

from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.retrieval.chunking import first_lines, split_sections

from .document import Document, Section, decode_text

_TITLE_LINES_MAX: Final = 50
"""Lines at the start of a Markdown text that can hold its title."""


def extract_text(data: bytes, where: str) -> Document:
    """Return a text as one section."""
    text = decode_text(data, where)
    return Document(text, (Section(0, len(text)),), "text/plain")


def extract_markdown(data: bytes, where: str) -> Document:
    """Return a Markdown text by its headings; the first heading near the top is the title."""
    text = decode_text(data, where)
    return Document(text, markdown_sections(text, where), "text/markdown", markdown_title(text))


def markdown_sections(text: str, where: str | None = None) -> tuple[Section, ...]:
    """Return the stretches between a Markdown text's headings.

    Raises:
        InvalidInput: the text has more sections than a document may have.
    """
    try:
        return tuple(Section(start, end, above) for start, end, above in split_sections(text))
    except InvalidInput as error:
        raise InvalidInput(error.what, where=where, remedy=error.remedy) from error


def markdown_title(text: str) -> str | None:
    """Return the first Markdown heading in a text's first lines."""
    start = first_lines(text, _TITLE_LINES_MAX)
    names = (name for section in markdown_sections(start) for name in section.headings)
    return next(filter(None, names), None)
