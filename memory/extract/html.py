"""HTML: the readable text of a page, under its headings.

Owns the parser, which runs selectolax (Lexbor, the HTML5 algorithm) in a child process. Drops
scripts, styles, forms, navigation, asides and footers, and everything outside of ``main`` if the
page has that element.
"""

import codecs
import re
from typing import TYPE_CHECKING, Final

from .document import NAME_SIZE_MAX, Document
from .isolated import Parsed, parse_isolated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborNode

_DROPPED_TAGS: Final = (
    "script style noscript template svg math canvas iframe object head nav aside footer form button"
    " select input textarea dialog"
)
_BLOCK_TAGS: Final = (
    "address article blockquote body br caption center dd details div dl dt fieldset figcaption"
    " figure h1 h2 h3 h4 h5 h6 header hr li main menu ol p pre section summary table tbody tfoot"
    " thead tr ul"
)
_APART_TAGS: Final = "p pre blockquote table ul ol dl h1 h2 h3 h4 h5 h6 section article"

_DROPPED: Final = frozenset(_DROPPED_TAGS.split())
_BLOCKS: Final = frozenset(_BLOCK_TAGS.split())
_APART: Final = frozenset(_APART_TAGS.split())
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_CHARSET: Final = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE
)
_SPACE: Final = re.compile(r"[ \t\r\n\f]+")
_BLANK: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def extract_html(data: bytes, where: str) -> Document:
    """Return the document of an HTML file. Raises: as `parse_isolated`."""
    return parse_isolated(data, where, module="html", package="selectolax", media_type="text/html")


def parse(data: bytes) -> Parsed:
    """Parse a page: its title and its text by headings."""
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(_decode(data))
    title = page.css_first("title")
    root = page.css_first("main") or page.body
    if root is None:
        return Parsed()
    writer = _Writer()
    _write(root, writer)
    name = None if title is None else _SPACE.sub(" ", title.text()).strip()
    return Parsed((name or "")[:NAME_SIZE_MAX] or None, writer.finish())


def _decode(data: bytes) -> str:
    """Decode a page by its byte order mark or meta element, else as UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    named = _CHARSET.search(data[:2048])
    name = named[1].decode("ascii").lower() if named else "utf-8"
    # Browsers decode these names as cp1252 (WHATWG Encoding Standard, 4.2).
    name = "cp1252" if name in ("iso-8859-1", "latin1", "ascii", "us-ascii") else name
    if name.startswith("utf"):
        name = "utf-8-sig"
    return data.decode(name)


class _Writer:
    """Collects text, and starts a section at each heading."""

    def __init__(self) -> None:
        self._sections: list[tuple[tuple[str, ...], str]] = []
        self._trail: list[tuple[int, str]] = []
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        self._parts.append(text)

    def open_heading(self) -> None:
        self._close()

    def close_heading(self, level: int) -> None:
        """Use the text since the heading opened as its name."""
        name = _SPACE.sub(" ", "".join(self._parts)).strip()
        self._trail = [*((depth, above) for depth, above in self._trail if depth < level)]
        if name:
            self._trail.append((level, name[:NAME_SIZE_MAX]))
        self._parts = [f"{name}\n\n"] if name else []

    def _close(self) -> None:
        text = _BLANK.sub("\n\n", "".join(self._parts)).lstrip("\n")
        if text.strip():
            headings = tuple(name for _, name in self._trail)
            self._sections.append((headings, text.rstrip() + "\n\n"))
        self._parts = []

    def finish(self) -> list[tuple[tuple[str, ...], str]]:
        self._close()
        return self._sections


def _write(root: "LexborNode", writer: _Writer) -> None:
    """Write a tree without recursion, since pages nest without limit."""
    pre = 0
    for node, opens in _walk(root):
        tag = node.tag or ""
        if tag == "-text" and opens:
            text = node.text_content or ""
            writer.write(text if pre else _SPACE.sub(" ", text))
        elif tag in _HEADINGS:
            if opens:
                writer.open_heading()
            else:
                writer.close_heading(_HEADINGS[tag])
        elif tag in _BLOCKS and (opens or tag != "li"):
            writer.write("\n\n" if tag in _APART else "\n")
            if tag == "pre":
                pre += 1 if opens else -1
            if tag == "li":
                writer.write("- ")
        elif tag in ("td", "th") and not opens:
            writer.write("\t")


def _walk(root: "LexborNode") -> "Iterator[tuple[LexborNode, bool]]":
    """Yield each node when it opens and when it closes, without dropped nodes."""
    open_nodes = [root]
    yield root, True
    child = root.child
    while open_nodes:
        if child is None:
            node = open_nodes.pop()
            yield node, False
            child = node.next if open_nodes else None
        elif child.tag in _DROPPED:
            child = child.next
        else:
            yield child, True
            open_nodes.append(child)
            child = child.child
