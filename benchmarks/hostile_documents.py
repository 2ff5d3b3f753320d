"""Hostile documents for each parser: small rules that generate files of any size.

A document is a start, a repeated unit, and an end. No document is random, so that a figure with the
name of a document can be reproduced.
"""

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

_WRITE_SIZE: Final = 1 << 20


class Hostile(NamedTuple):
    """A document: the suffix of its name, and the parts of its bytes."""

    suffix: str
    unit: bytes
    start: bytes = b"x\n"
    end: bytes = b""
    size_max: int = 16 << 20
    """The limit of its parser, in bytes."""

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield about ``size`` bytes, 1 MiB at a time."""
        left = max(
            1, (min(size, self.size_max) - len(self.start) - len(self.end)) // len(self.unit)
        )
        yield self.start
        while left > 0:
            count = min(left, max(1, _WRITE_SIZE // len(self.unit)))
            yield self.unit * count
            left -= count
        yield self.end


_HTML: Final = 64 << 20
_TURN: Final = b'{"role":"u","text":"b"},'

DOCUMENTS: Final = {
    # Text, with and without headings.
    "newlines.md": Hostile(".md", b"\n"),
    "newlines.txt": Hostile(".txt", b"\n"),
    "carriage-returns.md": Hostile(".md", b"a\r"),
    "short-lines.md": Hostile(".md", b"a\n"),
    "blank-pairs.md": Hostile(".md", b" \n"),
    "headings.md": Hostile(".md", b"# a\n"),
    "headings-apart.md": Hostile(".md", b"# a\n" + b"word " * 25 + b"\n"),
    "headings-deep.md": Hostile(".md", b"# a\n## b\n### c\n#### d\n" + b"word " * 110 + b"\n"),
    "heading-long.md": Hostile(".md", b"# b\nx\n" + b"w " * 200, b"# " + b"a" * (4 << 20) + b"\n#"),
    "heading-marks.md": Hostile(".md", b"#", b"# "),
    "fences.md": Hostile(".md", b"```\n~~~\n"),
    "links.md": Hostile(".md", b"[a](b) "),
    "tables.md": Hostile(".md", b"|a|b|\n|-|-|\n"),
    "quotes.md": Hostile(".md", b"> "),
    "long-line.txt": Hostile(".txt", b"a"),
    "long-line-of-words.txt": Hostile(".txt", b"a "),
    "sentences.txt": Hostile(".txt", b". "),
    "spaces.txt": Hostile(".txt", b" "),
    "digits.txt": Hostile(".txt", b"0123456789"),
    "marks.txt": Hostile(".txt", b"!?;:"),
    "emoji.txt": Hostile(".txt", "\U0001f9e0".encode()),
    "one-emoji.txt": Hostile(".txt", b"word ", "\U0001f9e0\n".encode()),
    "accents.txt": Hostile(".txt", "a\u0301\u0300".encode()),
    "scripts.txt": Hostile(".txt", "東京ไทยمرحжшaहि".encode()),
    "nul.txt": Hostile(".txt", b"\0"),
    "invalid.txt": Hostile(".txt", b"\xff"),
    # Source code.
    "statements.py": Hostile(".py", b"a;"),
    "definitions.py": Hostile(".py", b"def a():0\n"),
    "definitions-small.py": Hostile(".py", b"def a():0\n", size_max=1 << 18),
    "statements-small.py": Hostile(".py", b"a;", size_max=1 << 18),
    "format-strings.py": Hostile(".py", b"{x}", b"f'", b"'", size_max=1 << 18),
    "brackets.py": Hostile(".py", b"(", size_max=1 << 18),
    "attributes.py": Hostile(".py", b".a", b"a", size_max=1 << 18),
    "comments.py": Hostile(".py", b"#\n"),
    "braces.c": Hostile(".c", b"{\n\n"),
    # JSON.
    "lists.json": Hostile(".json", b"[],", b"[", b"0]"),
    "lists-of-one.json": Hostile(".json", b"[0],", b"[", b"0]"),
    "objects.json": Hostile(".json", b'{"":0},', b"[", b"0]"),
    "numbers.json": Hostile(".json", b"1e9,", b"[", b"0]"),
    "nested.json": Hostile(".json", b"[", b""),
    "strings.json": Hostile(".json", b'"a",', b"[", b"0]"),
    "escapes.json": Hostile(".json", b"\\\\", b'["', b'"]'),
    "turns.json": Hostile(".json", _TURN, b"[", _TURN[:-1] + b"]"),
    "turns-long.json": Hostile(
        ".json", b'{"role":"user","text":"' + b"word " * 40 + b'"},', b"[", _TURN[:-1] + b"]"
    ),
    "turns-wide.json": Hostile(
        ".json",
        ('{"role":"user","text":"' + "\U0001f9e0w " * 40 + '"},').encode(),
        b"[",
        _TURN[:-1] + b"]",
    ),
    "session.json": Hostile(
        ".json", _TURN, b'{"session":"' + b"s" * (1 << 20) + b'","messages":[', _TURN[:-1] + b"]}"
    ),
    "numbers.jsonl": Hostile(".jsonl", b"0\n"),
    "newlines.jsonl": Hostile(".jsonl", b"\n", b"0\n"),
    "turns.jsonl": Hostile(".jsonl", _TURN[:-1] + b"\n", b""),
    "turn-and-objects.jsonl": Hostile(".jsonl", b"{}\n", _TURN[:-1] + b"\n"),
    "turn-and-lists.jsonl": Hostile(".jsonl", b"[],", _TURN[:-1] + b"\n["),
    # HTML, in a child process.
    "text.html": Hostile(".html", b"word ", b"<p>", size_max=_HTML),
    "newlines.html": Hostile(".html", b"\n", b"<pre>x", size_max=_HTML),
    "nested.html": Hostile(".html", b"<div>", size_max=_HTML),
    "nested-tables.html": Hostile(".html", b"<table><tr><td>", size_max=_HTML),
    "formatting.html": Hostile(".html", b"<b><i>", size_max=_HTML),
    "paragraphs.html": Hostile(".html", b"<p>a", size_max=_HTML),
    "headings.html": Hostile(".html", b"<h1>a</h1>b", size_max=_HTML),
    "heading-long.html": Hostile(
        ".html", b"<h2>b</h2>c", b"<h1>" + b"a" * (1 << 20) + b"</h1>", size_max=_HTML
    ),
    "links.html": Hostile(".html", b"<a href=b>a</a> ", size_max=_HTML),
    "attributes.html": Hostile(".html", b" a", b"<p", b">x", size_max=_HTML),
    "entities.html": Hostile(".html", b"&amp;", b"<p>", size_max=_HTML),
    "comments.html": Hostile(".html", b"<!---->", b"<p>x", size_max=_HTML),
    "open.html": Hostile(".html", b"<", b"<p>x", size_max=_HTML),
    "controls.html": Hostile(".html", b"\x01", b"<p>x", size_max=_HTML),
    # PDF, in a child process.
    "broken.pdf": Hostile(".pdf", b"0 0 obj ", b"%PDF-1.7\n", size_max=_HTML),
    "names.pdf": Hostile(".pdf", b"/a", b"%PDF-1.7\n1 0 obj <<", b">>\nstartxref\n9\n%%EOF"),
    "arrays.pdf": Hostile(".pdf", b"[", b"%PDF-1.7\n1 0 obj ", b"\nstartxref\n9\n%%EOF"),
    # Not text.
    "bytes.bin": Hostile(".bin", bytes(range(256)), b""),
}


def pdf_of(stream: bytes, pages: int = 1, filters: bytes = b"") -> bytes:
    """Return a PDF whose pages all have the same stream of operators."""
    head = b"/Filter " + filters if filters else b""
    kids = b" ".join([b"%d 0 R" % (5 + page) for page in range(pages)])
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (pages, kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), head, stream),
    ]
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R"
        b" /Resources << /Font << /F1 3 0 R >> >> >>"
    )
    objects += [page] * pages
    data = b"%PDF-1.7\n"
    places = list[int]()
    parts = [data]
    at = len(data)
    for number, content in enumerate(objects, 1):
        places.append(at)
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, content))
        at += len(parts[-1])
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    parts += [b"%010d 00000 n \n" % place for place in places]
    parts.append(
        b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, at)
    )
    return b"".join(parts)


def pdf_documents(size: int) -> dict[str, bytes]:
    """Return generated PDF files by name."""
    text = b"BT /F1 9 Tf (a) Tj ET\n" * max(1, size // 22)
    bomb = zlib.compress(zlib.compress(b" " * (size * 8), 9), 9)
    return {
        "operators.pdf": pdf_of(text),
        "packed-operators.pdf": pdf_of(zlib.compress(text, 9), filters=b"/FlateDecode"),
        "pages.pdf": pdf_of(b"BT /F1 9 Tf (a) Tj ET", pages=max(1, min(size // 200, 9_000))),
        "same-page.pdf": pdf_of(text[: 1 << 16], pages=max(1, min(size // 4_000, 2_000))),
        "bomb.pdf": pdf_of(bomb, filters=b"[/FlateDecode /FlateDecode]"),
    }
