"""Hostile documents: what one takes, in memory and in the store, is bounded by what it has."""

import ast
import json
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from benchmarks.hostile_documents import DOCUMENTS
from cerata import Store
from cerata.engine.errors import InvalidInput
from cerata.engine.events import PutFrame
from cerata.memory.ingest.formats import foreign_json, transcripts, turns
from cerata.memory.ingest.formats.document import NAME_SIZE_MAX, Document, Flaw
from cerata.memory.ingest.formats.registry import SIZE_MAX, extract
from cerata.memory.ingest.formats.turns import BAD_NAME
from cerata.retrieval import chunking as passages
from cerata.retrieval.chunking import split_passages

IN_PROCESS = [name for name, one in DOCUMENTS.items() if one.suffix not in (".html", ".pdf")]


def of(name: str, content: str) -> Document:
    return extract(content.encode(), name)


def peak_of(text: str) -> int:
    """The most memory that cutting a text takes, in bytes."""
    split_passages("word " * 500)
    tracemalloc.start()
    try:
        split_passages(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", ["\n", "a\n", "a\r", "a ", "\U0001f9e0"])
def test_a_text_is_cut_in_memory_that_its_parts_take(unit: str) -> None:
    """Line ends took 244 MiB a MiB: each was held as a piece of its own."""
    assert peak_of(unit * (20_000 // len(unit))) < 5 << 19


@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_small_hostile_document_is_read_or_refused(name: str) -> None:
    document = DOCUMENTS[name]
    started = time.process_time()
    data = b"".join(document.pieces(15_000))
    with suppress(InvalidInput):
        found = extract(data, "a" + document.suffix)
        split_passages(found.text, [(one.start, one.end, one.headings) for one in found.sections])
    assert time.process_time() - started < 5


class TestParts:
    """A document has at most so many parts: each becomes a frame."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert passages.PARTS_MAX == 131_072
        for module in (passages, transcripts, turns):
            monkeypatch.setattr(module, "PARTS_MAX", 10)

    def test_headings(self) -> None:
        assert len(of("a.md", "# a\n" * 10).sections) == 10
        with pytest.raises(InvalidInput, match=r"10 parts \(a.md\). Split it"):
            of("a.md", "# a\n" * 12)

    def test_passages(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match="10 parts"):
            store.remember("word " * 5_000)
        assert len(store) == 0

    def test_turns(self) -> None:
        said = [{"role": "u", "text": "b"}] * 11
        lines = list(map(json.dumps, said))
        assert len(of("a.json", json.dumps(said[1:])).sections) == 10
        assert len(of("a.jsonl", "\n".join(lines[1:])).sections) == 10
        with pytest.raises(InvalidInput, match="10 parts"):
            of("a.json", json.dumps(said))
        with pytest.raises(InvalidInput, match="10 parts"):
            of("a.jsonl", "\n".join(lines))

    def test_such_a_file_stops_no_other(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "a.md").write_text("# a\n" * 12)
        (tmp_path / "b.md").write_text("b")
        (tmp_path / "c.txt").write_text("word " * 5_000)
        done = store.files.remember([tmp_path])
        assert [file.outcome for file in done.files] == ["skipped", "added", "skipped"]


class TestRepetition:
    """What stands once in a document is not stored with each part of it."""

    def test_a_long_heading(self, store: Store) -> None:
        text = f"# {'h' * 50_000}\n" + "## b\nx\n" * 5 + f"## {'i' * 50_000}\n" + "w " * 900
        receipt = store.remember(text)
        bodies = [event.body for event in store.log() if event.seq in receipt.ids]
        titles = [body.title or "" for body in bodies if isinstance(body, PutFrame)]
        assert len(titles) > 10
        assert max(map(len, titles)) <= 3 * (NAME_SIZE_MAX + len(" > "))

    def test_a_long_session(self) -> None:
        said = {"session": "s" * 201, "messages": [{"role": "u", "text": "b"}] * 2}
        document = of("a.json", json.dumps(said))
        assert [dict(section.metadata) for section in document.sections] == [{}, {}]
        assert document.flaws == (Flaw("doubtful", BAD_NAME, 2, ("turn 1", "turn 2")),)


class TestJson:
    def test_of_too_many_values_is_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """16 MiB of empty lists would be 400 MiB of them."""
        monkeypatch.setattr(foreign_json, "VALUES_SIZE_MAX", 1_000)
        monkeypatch.setattr(msgspec.json, "decode", None)
        monkeypatch.setattr(json, "loads", None)
        text = json.dumps([{"role": "u", "text": "b"}] * 10)
        assert of("a.json", text).text == text
        assert of("a.jsonl", text).text == text

    def test_signs_in_strings_are_no_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(foreign_json, "VALUES_SIZE_MAX", 1_000)
        turn = {"role": "u", "text": '{[,:"\\' * 1_000}
        assert of("a.json", json.dumps([turn])).sections[0].role == "u"

    def test_a_line_of_too_many_values_in_a_transcript(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(foreign_json, "VALUES_SIZE_MAX", 1_000)
        lines = [json.dumps({"role": "u", "text": "b"}), '{"a":[0' + ",0" * 99 + "]}"]
        document = of("a.jsonl", "\n".join(lines))
        assert len(document.sections) == 1
        assert document.flaws == (Flaw("skipped", "a line with too many values", 1, ("line 2",)),)


def test_long_python_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A syntax tree takes up to a thousand times its source, and some quadratic time."""
    monkeypatch.delattr(ast, "parse")
    assert len(of("a.py", "def a():0\n" * 27_000).sections) == 1


def test_a_file_over_64_mib_is_refused() -> None:
    assert SIZE_MAX == 64 << 20
    with pytest.raises(InvalidInput, match="67,108,864"):
        extract(bytes(SIZE_MAX + 1), "a.pdf")
