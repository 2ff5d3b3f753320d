"""Files in the memory: whole, in chunks that overlap, and each turn by its own words."""

import json
from pathlib import Path
from typing import cast

import pytest

import cerata
from cerata.memory.batch.session import WriteSession
from cerata.memory.ingest import document as ingest
from cerata.memory.values.arguments import SPAN
from cerata.retrieval import chunking as passages
from cerata.retrieval.tokenizer import tokenizer

SENTENCES = [f"The number of the room on floor {n} is {n * 7}. " for n in range(300)]


def test_chunks_overlap_and_the_document_reads_back_as_it_was(tmp_path: Path) -> None:
    """What stands at a cut is found whole, and nothing is in the text twice."""
    text = "".join(SENTENCES)
    with cerata.open(":memory:") as store:
        receipt = store.remember(text)
        document = store.frame(receipt)
        assert document.text == text
        chunks = [
            store.frame(one) for one in store.history.view().files.chunks(document.id).values()
        ]
        spans = [cast("list[int]", chunk.metadata[SPAN]) for chunk in chunks]
        assert [text[start:end] for start, end in spans] == [chunk.text for chunk in chunks]
        assert sum(len(chunk.text) for chunk in chunks) > len(text)
        for n in (0, 150, 299):
            assert any(SENTENCES[n] in hit.text for hit in store.search(f"room floor {n}", k=3))


def test_a_transcript_is_a_frame_a_turn(tmp_path: Path) -> None:
    """A turn is found by who said it, when, and in which session."""
    path = tmp_path / "chat.jsonl"
    lines = [
        {"role": "user", "content": "Which index?", "time": "2026-03-01T10:00:00Z", "session": "s"},
        {"role": "assistant", "content": "HNSW.", "time": "2026-03-01T10:00:05Z", "session": "s"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    with cerata.open(":memory:") as store:
        receipt = store.remember(path)
        turns = [store.frame(one) for one in store.history.view().files.chunks(receipt.id).values()]
        assert [(turn.role, turn.kind, turn.text.strip()) for turn in turns] == [
            ("user", "message", "Which index?"),
            ("assistant", "message", "HNSW."),
        ]
        assert [turn.created.isoformat() for turn in turns] == [
            "2026-03-01T10:00:00+00:00",
            "2026-03-01T10:00:05+00:00",
        ]
        assert [turn.metadata["session"] for turn in turns] == ["s", "s"]
        found = store.search("index HNSW", where=cerata.Filter(role="assistant"))
        assert [hit.id for hit in found] == [turns[1].id]


def test_source_code_is_found_by_the_name_of_a_definition(tmp_path: Path) -> None:
    path = tmp_path / "tide.py"
    path.write_text("".join(f"def part_{n}():\n" + "    x = 1\n" * 62 for n in range(3)))
    with cerata.open(":memory:") as store:
        store.remember(path)
        best = store.search("part_2", k=1)[0].frame
        assert best.title == "tide.py > part_2"
        assert best.text.startswith("def part_2():")


def test_a_document_that_was_cut_otherwise_and_never_finished_is_put_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chunks of two cuts in one document would be a text that nobody wrote."""
    text = "".join(SENTENCES * 60)
    with cerata.open(":memory:") as store:
        writes = iter(range(2))
        write = WriteSession.write

        def stop_after_two(*args: object, **kwargs: object) -> object:
            if next(writes, None) is None:
                raise KeyboardInterrupt
            return write(*args, **kwargs)  # type: ignore[arg-type]

        with monkeypatch.context() as broken:
            broken.setattr(WriteSession, "write", stop_after_two)
            broken.setattr(passages, "PASSAGE_TOKENS_MAX", 300)
            with pytest.raises(KeyboardInterrupt):
                store.remember(text, uri="a")
        first = next(store.frames()).id
        receipt = store.remember(text, uri="a")
        assert receipt.added
        assert store.frame(receipt).text == text
        assert not store.frame(first).active
        assert [frame.id for frame in store.frames()] == [receipt.id]
        assert not store.remember(text, uri="a").added


HEADER = "| service | port |\n|---|---:|\n"
TABLE = HEADER + "".join(f"| service{n} | {5400 + n} |\n" for n in range(200))


def test_the_names_of_columns_help_each_row_of_a_table_file(tmp_path: Path) -> None:
    """The names were in the first passage alone, which came first for a question with a name."""
    path = tmp_path / "people.csv"
    people = [f"Person{n},{('free', 'team', 'pro')[n % 3]},Lyon" for n in range(200)]
    path.write_bytes("\r\n".join(["name,plan,city", *people]).encode())
    with cerata.open(":memory:") as store:
        receipt = store.remember(path)
        assert len(receipt.ids) > 4
        assert store.frame(receipt).text.encode() == path.read_bytes()
        for row in people[::9]:
            question = f"which plan does {row.partition(',')[0]} have?"
            assert row in store.search(question)[0].text
            for max_tokens in (60, 1_500):
                lines = store.recall(question, max_tokens=max_tokens).text.splitlines()
                assert "name,plan,city" in lines
                assert row in lines


def test_parts_of_a_table_repeat_its_header_and_the_document_does_not() -> None:
    """A row without the names of its columns answers nothing."""
    text = f"Ports:\n\n{TABLE}\nEnd.\n"
    with cerata.open(":memory:") as store:
        receipt = store.remember(text, uri="ports.md", metadata={"table_header": 3})
        document = store.frame(receipt)
        assert document.text == text
        assert [
            stored.id
            for stored in store.files.stored(
                cerata.content_hash(text), chunk_count=document.chunk_count
            )
        ] == [receipt.id]
        chunks = [
            store.frame(chunk) for chunk in store.history.view().files.chunks(document.id).values()
        ]
        assert len(chunks) > 3
        assert "table_header" not in chunks[0].metadata
        for chunk in chunks[1:]:
            assert chunk.text.startswith(HEADER)
            assert chunk.metadata["table_header"] == len(HEADER)
        (hit,) = store.search("port of service163", k=1)
        assert hit.text[slice(*hit.span)] == "| service163 | 5563 |"
        assert not store.remember(text, uri="ports.md").added
        newer = store.supersede(chunks[1].id, "no table")
        assert "table_header" not in store.frame(newer).metadata


def test_a_document_in_the_parts_of_an_earlier_version_is_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another cut is no other content."""
    with cerata.open(":memory:") as store:
        with monkeypatch.context() as earlier:
            earlier.setattr(passages, "PASSAGE_TOKENS_MAX", 500)
            first = store.remember(TABLE, uri="ports.md")
        parts = len(store.history.view().files.chunks(first.id))
        again = store.remember(TABLE, uri="ports.md")
        assert (again.added, again.id) == (False, first.id)
        other = store.remember(TABLE, uri="other.md")
        assert len(store.history.view().files.chunks(other.id)) != parts
        assert store.frame(other).text == store.frame(first).text == TABLE


def test_a_recall_counts_its_tokens_and_joins_what_stands_together() -> None:
    """The count is that of the text as it is given, by a tokenizer that is named."""
    with cerata.open(":memory:") as store:
        store.remember("".join(SENTENCES))
        # No source is cut, so the smallest budget has no room for an entry.
        smallest = store.recall("room on floor 150", max_tokens=1)
        assert (smallest.text, smallest.items, smallest.tokens) == ("", (), 0)
        assert "no entry fits max_tokens=1" in smallest.notices[0]
        for budget in (7, 60):
            small = store.recall("room on floor 150", max_tokens=budget)
            assert small.items
            assert small.tokens == tokenizer().count(small.text) <= budget
        context = store.recall("room on floor 150", max_tokens=1500)
        assert context.tokens == tokenizer().count(context.text) <= 1500
        assert context.tokenizer == tokenizer().name
        assert "The number of the room on floor 150 is 1050." in context.text
        assert context.text.count("on floor 150 ") == 1
        last = str(context).splitlines()[-1]
        shown = sum(1 + len(item.joined) for item in context.items)
        found = shown + len(context.omitted)
        assert last == (
            f"{shown} of {found} shown, {context.tokens:,} of 1,500 tokens, basis {store.head.seq}"
        )
        assert context.to_messages() == [{"role": "user", "content": context.text}]
        assert json.loads(json.dumps(context.to_dict()))["tokens"] == context.tokens


def test_a_file_that_is_there_is_not_cut_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same folder again costs reading it, whatever its files take to be understood."""
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf" + "".join(SENTENCES).encode())
    with cerata.open(":memory:") as store:
        first = store.remember(path)
        with monkeypatch.context() as broken:
            broken.setattr(ingest, "extract", None)
            again = store.remember(path)
            assert (again.id, again.ids, again.added) == (first.id, first.ids, False)
            with pytest.raises(TypeError):
                store.remember(path, uri="elsewhere")
            with pytest.raises(TypeError):
                store.remember(path, options=cerata.PutOptions(scope={"user_id": "u"}))
        store.delete(first)
        assert store.remember(path).added
        path.write_text("Another text altogether.")
        changed = store.remember(path)
        assert changed.added
        assert [frame.id for frame in store.frames()] == [changed.id]


def test_new_tags_of_stored_content_are_refused() -> None:
    """The call returned without a word, and the tags were lost."""
    with cerata.open(":memory:") as store:
        stored = store.remember("Buy milk.", tags=["home"])
        assert not store.remember("Buy milk.").added
        assert not store.remember("Buy milk.", tags=["home"]).added
        with pytest.raises(cerata.Conflict, match=r"without the tags new .*update\(1, tags="):
            store.remember("Buy milk.", tags=["home", "new"])
        with pytest.raises(cerata.Conflict, match="without the labels urgent"):
            store.remember("Buy milk.", options=cerata.PutOptions(labels=["urgent"]))
        assert store.head.seq == stored.head.seq  # type: ignore[union-attr]
        store.update(stored, tags=["home", "new"])
        assert not store.remember("Buy milk.", tags=["new"]).added
