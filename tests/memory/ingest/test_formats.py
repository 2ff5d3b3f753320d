"""Extractors: what a file says, in sections that are its text; hostile files end in an error."""

import io
import json
import re
import sys
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.memory.ingest.formats import sandbox as isolated
from cerata.memory.ingest.formats.document import Document, Flaw
from cerata.memory.ingest.formats.registry import extract
from cerata.memory.ingest.formats.turns import BAD_TIME

DAY = 86_400_000_000


def of(name: str, content: str | bytes) -> Document:
    """The document of a file of this name, its sections checked."""
    found = extract(content.encode() if isinstance(content, str) else content, name)
    ends = [(one.start, one.end) for one in found.sections]
    assert ends[0][0] == 0
    assert ends[-1][1] == len(found.text)
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    return found


def parts(name: str, content: str | bytes) -> list[tuple[tuple[str, ...], str]]:
    """Headings and text of each section."""
    found = of(name, content)
    return [(one.headings, found.text[one.start : one.end]) for one in found.sections]


def turns(
    name: str, content: object
) -> list[tuple[str | None, str, str | None, int | None, object]]:
    """Role, text, kind, time and session of each turn."""
    text = content if isinstance(content, str) else json.dumps(content)
    found = of(name, text)
    return [
        (
            one.role,
            found.text[one.start : one.end].rstrip("\n"),
            one.kind,
            one.created,
            one.metadata.get("session"),
        )
        for one in found.sections
    ]


def pdf(*pages: bytes, title: str | None = None) -> bytes:
    """A PDF whose pages have these content streams."""
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for content in pages:
        page = writer.add_blank_page(600, 800)
        stream = DecodedStreamObject()
        stream.set_data(content)
        page[NameObject("/Contents")] = writer._add_object(stream)
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if title:
        writer.add_metadata({"/Title": title})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def line_of(text: str) -> bytes:
    return f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()


class TestText:
    def test_plain_text_is_itself(self) -> None:
        assert parts("a.txt", "one\r\n\r\ntwo") == [((), "one\r\n\r\ntwo")]
        assert parts("NAME", "\ufeffno suffix") == [((), "no suffix")]

    def test_markdown_comes_by_headings_and_names_itself(self) -> None:
        found = of("a.md", "# Top\nx\n## Below\ny\n")
        assert [one.headings for one in found.sections] == [("Top",), ("Top", "Below")]
        assert found.title == "Top"

    def test_python_comes_by_definitions(self) -> None:
        body = "    x = 1\n" * 80
        inner = "        x = 1\n" * 80
        source = (
            '"""Doc."""\nimport os\n\n\n# About f.\n@cache\ndef f():\n' + body + "\n\nclass A:\n"
            "    def one(self):\n" + inner + "    def two(self):\n" + inner * 2 + "\n\nEND = 1\n"
        )
        found = parts("a.py", source)
        assert "".join(text for _, text in found) == source
        assert [headings for headings, _ in found] == [
            (),
            ("f",),
            ("A",),
            ("A", "one"),
            ("A", "two"),
            (),
        ]
        assert found[1][1].startswith("# About f.\n@cache\n")
        assert found[-1][1] == "END = 1\n"

    def test_small_definitions_share_a_section(self) -> None:
        source = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(3))
        assert [headings for headings, _ in parts("a.py", source)] == [("f0, f1, f2",)]

    @pytest.mark.parametrize(
        "source", ["def (:\n", "-" * 50_000 + "1", "a+" * 50_000 + "b", "x = '\\d'\r\rdef f(): 1"]
    )
    def test_python_that_does_not_parse_is_text(self, source: str) -> None:
        assert "".join(text for _, text in parts("a.py", source)) == source

    @given(st.text(max_size=40), st.sampled_from(["py", "md", "c", "json", "jsonl", "txt"]))
    def test_any_text_is_its_sections(self, text: str, suffix: str) -> None:
        """What is read of these formats is the file, character by character."""
        try:
            found = of(f"a.{suffix}", text.encode(errors="replace"))
        except InvalidInput:
            assert not text.strip("\ufeff \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029") or (
                "\0" in text or not text.removeprefix("\ufeff").strip()
            )
        else:
            whole = text.encode(errors="replace").decode("utf-8-sig")
            assert found.text == re.sub("\0+", "\N{REPLACEMENT CHARACTER}", whole)
            assert bool(found.flaws) == found.is_extracted == ("\0" in whole)


class TestHtml:
    def test_a_page_is_its_reading_text_under_its_headings(self) -> None:
        page = """<!doctype html><title>The &amp; page</title><nav>Menu</nav>
        <script>var x = "<p>no</p>";</script><h1>One</h1><p>a <b>bold</b> word</p>
        <ul><li>first<li>second</ul><h2>Two</h2><pre>x  = 1
  y</pre><footer>Copyright</footer>"""
        found = of("a.html", page)
        assert found.title == "The & page"
        assert parts("a.html", page) == [
            (("One",), "One\n\na bold word\n\n- first\n- second\n\n"),
            (("One", "Two"), "Two\n\nx  = 1\n  y\n\n"),
        ]

    def test_main_is_what_counts_where_there_is_one(self) -> None:
        page = "<body><div>around</div><main><p>inside</p></main><div>after</div>"
        assert parts("a.htm", page) == [((), "inside\n\n")]

    def test_a_page_is_known_without_a_suffix(self) -> None:
        assert parts("page", "<!DOCTYPE html><p>x") == [((), "x\n\n")]

    def test_the_page_names_its_encoding(self) -> None:
        page = "<meta charset='iso-8859-1'><p>café</p>".encode("latin-1")
        assert parts("a.html", page) == [((), "café\n\n")]
        with pytest.raises(InvalidInput, match="UnicodeDecodeError"):
            of("a.html", b"<p>caf\xe9</p>")

    def test_a_row_of_a_table_is_a_line(self) -> None:
        """Rows were paragraphs, so nothing tied them to the names of the columns."""
        page = """<table><caption>Plans</caption><thead><tr> <th>name</th> <th> plan </th> </tr>
            <tbody><tr><td><p>Ada</p></td><td><h3>pro</h3><ul><li>a<li>b</ul></td></tr>
            <tr> <td>Bo <table><tr><td>1<td>2<tr></table> <td></td> </tr></table><p>end"""
        text = "Plans\n\nname\tplan\nAda\tpro - a - b\nBo 1 2\t\n\nend\n\n"
        assert parts("a.html", page) == [((), text)]
        layout = "<table><tr><td><h1>A</h1><p>b<p>c<table><tr><th>d<th>e<tr><td>1<td>2</table>"
        assert parts("b.html", layout) == [(("A",), "A\n\nb\n\nc\n\nd\te\n1\t2\n\n")]

    def test_a_page_nested_without_end_is_an_error_in_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """HTML's own algorithm takes quadratic time here, in any parser of it."""
        monkeypatch.setattr(isolated, "SECONDS_MAX", 1)
        with pytest.raises(InvalidInput, match=r"it takes too (long|much time)"):
            of("a.html", "<div>" * 400_000)


class TestPdf:
    def test_pages_are_sections(self) -> None:
        data = pdf(line_of("First page"), b"", line_of("Third page"), title="Named")
        assert parts("a.bin", data) == [
            (("page 1",), "First page\n\n"),
            (("page 3",), "Third page\n\n"),
        ]
        assert of("a.pdf", data).title == "Named"

    def test_a_pdf_without_text_says_so(self) -> None:
        with pytest.raises(InvalidInput, match="no text in it"):
            of("a.pdf", pdf(b""))

    @pytest.mark.parametrize("size", [9, 60, 300])
    def test_a_broken_pdf_is_a_typed_error(self, size: int) -> None:
        with pytest.raises(InvalidInput, match="PDF cannot be read"):
            of("a.pdf", pdf(line_of("x"))[:size])

    def test_a_page_that_unpacks_to_very_much_is_an_error(self) -> None:
        """A few kilobytes of PDF must not take gigabytes of memory."""
        plain = pdf(line_of("x"))
        bomb = zlib.compress(zlib.compress(b" " * 100_000_000, 9), 9)
        stream = line_of("x")
        packed = b"/Filter [/FlateDecode /FlateDecode]\n/Length %d" % len(bomb)
        data = plain.replace(b"/Length %d" % len(stream), packed).replace(stream, bomb)
        assert len(data) < 10_000
        with pytest.raises(InvalidInput, match=r"PDF cannot be read|no text"):
            of("a.pdf", data)

    @pytest.mark.parametrize(("name", "package"), [("pdf", "pypdf"), ("html", "selectolax")])
    def test_a_missing_package_names_its_extra(
        self, monkeypatch: pytest.MonkeyPatch, name: str, package: str
    ) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(Unsupported, match=rf"pip install '\.\[{name}\]'"):
            extract(b"%PDF-1.7" if name == "pdf" else b"<html>", f"a.{name}")


OPENAI = {
    "id": "run-1",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}, {"type": "image_url"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}],
        },
        {"role": "tool", "content": "Rain."},
    ],
}
ANTHROPIC = [
    {"role": "user", "content": "Weather?", "timestamp": 86_400},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "name": "weather", "input": {"city": "Bonn"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "content": [{"text": "Rain."}]}]},
]
CHATGPT = [
    {
        "title": "Rain",
        "conversation_id": "c1",
        "current_node": "b",
        "mapping": {
            "root": {"message": None, "parent": None},
            "b": {
                "parent": "a",
                "message": {
                    "author": {"role": "assistant"},
                    "create_time": 86_401.5,
                    "content": {"content_type": "text", "parts": ["Hi."]},
                },
            },
            "x": {
                "parent": "a",
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["Other."]}},
            },
            "a": {
                "parent": "root",
                "message": {"author": {"role": "user"}, "content": {"parts": ["Hello"]}},
            },
        },
    }
]
CLAUDE = [
    {
        "uuid": "u1",
        "name": "Rain",
        "chat_messages": [
            {"sender": "human", "text": "Hello", "created_at": "1970-01-02T00:00:00Z"},
            {"sender": "assistant", "text": "Hi.", "created_at": "1970-01-03T01:00:00+01:00"},
        ],
    }
]
SESSION = [
    {"type": "summary", "summary": "Rain"},
    {
        "type": "user",
        "sessionId": "s1",
        "timestamp": "1970-01-02T00:00:00.000Z",
        "message": {"role": "user", "content": "Hello"},
    },
    {
        "type": "assistant",
        "sessionId": "s1",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
    },
]
PLAIN: list[dict[str, object]] = [
    {"speaker": "Ann", "text": "Hello", "time": "1970-01-02 00:00", "thread": "t1"},
    {"speaker": "Bob", "text": "Hi.", "time": 172_800_000, "thread": "t1"},
]


class TestTranscripts:
    def test_openai_messages(self) -> None:
        assert turns("a.json", OPENAI) == [
            ("system", "Be kind.", "message", None, "run-1"),
            ("user", "Weather?\n\n[image_url]", "message", None, "run-1"),
            ("assistant", 'weather {"city": "Bonn"}', "tool_call", None, "run-1"),
            ("tool", "Rain.", "tool_result", None, "run-1"),
        ]

    def test_anthropic_blocks(self) -> None:
        assert turns("a.json", ANTHROPIC) == [
            ("user", "Weather?", "message", DAY, None),
            ("assistant", 'weather {"city":"Bonn"}', "tool_call", None, None),
            ("user", "Rain.", "tool_result", None, None),
        ]

    def test_an_export_of_chatgpt_follows_the_branch_that_was_kept(self) -> None:
        assert turns("a.json", CHATGPT) == [
            ("user", "Hello", "message", None, "c1"),
            ("assistant", "Hi.", "message", DAY + 1_500_000, "c1"),
        ]
        assert of("a.json", json.dumps(CHATGPT)).title == "Rain"

    def test_an_export_of_claude(self) -> None:
        assert turns("a.json", CLAUDE) == [
            ("user", "Hello", "message", DAY, "u1"),
            ("assistant", "Hi.", "message", 2 * DAY, "u1"),
        ]

    def test_a_session_log(self) -> None:
        lines = "\n".join(map(json.dumps, SESSION))
        assert turns("a.jsonl", lines) == [
            ("user", "Hello", "message", DAY, "s1"),
            ("assistant", "Hi.", "message", None, "s1"),
        ]

    def test_plain_turns_in_a_list_or_by_line(self) -> None:
        expected = [
            ("Ann", "Hello", "message", DAY, "t1"),
            ("Bob", "Hi.", "message", 172_800_000 * 1_000_000, "t1"),
        ]
        assert turns("a.json", PLAIN) == expected
        assert turns("a.jsonl", "\n".join(map(json.dumps, PLAIN)) + "\n\n") == expected

    def test_one_conversation_a_line(self) -> None:
        lines = "\n".join([json.dumps(OPENAI), json.dumps({**OPENAI, "id": "run-2"})])
        assert [turn[4] for turn in turns("a.jsonl", lines)] == ["run-1"] * 4 + ["run-2"] * 4

    @pytest.mark.parametrize(
        "text",
        [
            '{"name": "cerata", "messages": 3}',
            '{"messages": []}',
            "[1, 2]",
            "{broken",
            '[{"role": "admin"}]',
            "[" * 100_000,
            '{"a":' * 100_000,
            '[{"role": "user", "content": ' + "[" * 100_000 + "]" * 100_000 + "}]",
        ],
    )
    def test_other_json_is_its_text(self, text: str) -> None:
        assert parts("a.json", text) == [((), text)]
        assert parts("a.jsonl", text) == [((), text)]

    def test_a_line_cut_short_is_named(self) -> None:
        """A log that is being written costs its last line, not the log."""
        text = json.dumps(PLAIN[0]) + "\n" + json.dumps(PLAIN[1])[:20]
        assert [turn[1] for turn in turns("a.jsonl", text)] == ["Hello"]
        assert of("a.jsonl", text).flaws == (
            Flaw("skipped", "a line that is not JSON", 1, ("line 2",)),
        )

    @pytest.mark.parametrize("time", ["soon", 1e300, "9999-99-99", True, [1], -9e10, 10**400])
    def test_a_time_that_is_none_is_named(self, time: object) -> None:
        """The turn has no time, and the other turns keep theirs."""
        text = json.dumps([PLAIN[0], PLAIN[1] | {"time": time}])
        assert [turn[3] for turn in turns("a.json", text)] == [DAY, None]
        assert of("a.json", text).flaws == (Flaw("doubtful", BAD_TIME, 1, ("turn 2",)),)

    def test_links_that_run_in_a_circle_end(self) -> None:
        looped = json.loads(json.dumps(CHATGPT))
        looped[0]["mapping"]["a"]["parent"] = "b"
        assert [turn[1] for turn in turns("a.json", looped)] == ["Hello", "Hi."]


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.docx", b"PK\x03\x04rest", "zip archive"),
        ("a.txt", b"\x1f\x8b\x08", "gzip"),
        ("a.py", b"\x89PNG\r\n", "image"),
        ("a.txt", b"a\0b", "NUL"),
        ("a.txt", b"caf\xe9", "byte 3 is 0xe9"),
        ("a.txt", b" \n ", "no text"),
        ("a.json", b"x" * (16 * 1024 * 1024 + 1), "limit"),
    ],
)
def test_what_is_no_text_says_what_it_is(name: str, data: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        extract(data, name)
