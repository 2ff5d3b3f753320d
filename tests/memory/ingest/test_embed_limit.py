"""Logs and tables: few passages get vectors, and a line counts the rest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import EmbedderFailed, InvalidInput, Store
from cerata.memory.ingest.formats.registry import extract

from ...embedders import Hashing

LINE = "2026-05-01T10:00:{:02}Z worker {} finished a job of the harbour bridge in {} seconds\n"
LOG = "".join(LINE.format(at % 60, at, at % 7) for at in range(120))
REST = "'cerata file maintain --only embed', or embeddings.fill(), embeds the rest"
ONE = f"1 passage of a log or table has no vector; {REST}"


@pytest.fixture
def embedder() -> Hashing:
    return Hashing()


@pytest.fixture
def store(embedder: Hashing) -> Iterator[Store]:
    with cerata.open(":memory:", embedder=embedder) as opened:
        yield opened


def written(folder: Path, name: str, text: str = LOG) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def chunks_of(store: Store, path: Path) -> int:
    [document] = [frame for frame in store.frames() if frame.uri == path.as_posix()]
    return len(store.files.chunks(document.id))


def test_a_log_gets_vectors_for_its_first_passages(
    store: Store, embedder: Hashing, tmp_path: Path
) -> None:
    path = written(tmp_path, "server.log")
    receipt = store.remember(path, options=cerata.PutOptions(embed_limit=3))
    left = len(receipt.ids) - 1 - 3
    assert left > 3
    assert len(embedder.asked) == 3
    [line] = receipt.notices
    assert line.startswith(
        f"{left} passages of logs and tables have no vector; 'cerata file maintain --only embed'"
    )
    assert store.embeddings.fill().frames == left
    assert store.embeddings.fill().frames == 0


def test_all_passages_are_found_by_words(store: Store, tmp_path: Path) -> None:
    store.remember(written(tmp_path, "server.log"), options=cerata.PutOptions(embed_limit=1))
    assert "worker 119 " in (store.search("worker 119")[0].text or "")


@pytest.mark.parametrize("limit", [None, 256, 10_000])
def test_a_limit_that_is_not_reached_leaves_no_line(
    store: Store, embedder: Hashing, tmp_path: Path, limit: int | None
) -> None:
    receipt = store.remember(
        written(tmp_path, "server.log"), options=cerata.PutOptions(embed_limit=limit)
    )
    assert receipt.notices == ()
    assert len(embedder.asked) == len(receipt.ids) - 1


def test_other_files_have_no_limit(store: Store, embedder: Hashing, tmp_path: Path) -> None:
    path = written(tmp_path, "notes.md")
    assert store.remember(path, options=cerata.PutOptions(embed_limit=0)).notices == ()
    assert len(embedder.asked) == chunks_of(store, path)


@pytest.mark.parametrize(
    ("name", "is_bulk"),
    [
        *[(name, True) for name in ("a.log", "A.LOG", "a.log.1", "a.csv", "a.tsv", "a.json")],
        *[(name, False) for name in ("a.md", "a.txt", "log", "a.py", "catalog", "a.logic")],
    ],
)
def test_bulk_is_by_name(name: str, *, is_bulk: bool) -> None:
    assert extract(b"1,2,3\n", f"folder/{name}").is_bulk == is_bulk


def test_a_transcript_is_no_bulk() -> None:
    turn = b'{"role": "user", "content": "The boat is yellow."}\n'
    assert not extract(turn, "chat.jsonl").is_bulk


def test_a_folder_has_one_line_for_all_of_its_files(store: Store, tmp_path: Path) -> None:
    for name in ("a.log", "b.csv", "c.md"):
        written(tmp_path, name, LOG.replace("worker", name))
    remembered = store.files.remember(
        [tmp_path], include=["*"], options=cerata.PutOptions(embed_limit=2)
    )
    left = [file.unembedded for file in remembered.files]
    assert (left[0] > 1, left[1] > 1, left[2]) == (True, True, 0)
    [line] = remembered.notices
    assert line.startswith(f"{sum(left)} passages of logs and tables")
    assert (
        store.files.remember(
            [tmp_path], include=["*"], options=cerata.PutOptions(embed_limit=2)
        ).notices
        == ()
    )


def test_a_single_passage_is_counted_as_one(store: Store, tmp_path: Path) -> None:
    receipt = store.remember(
        written(tmp_path, "a.log", "one line\n"), options=cerata.PutOptions(embed_limit=0)
    )
    assert receipt.notices == (ONE,)


def test_without_an_embedder_there_is_no_line(tmp_path: Path) -> None:
    with cerata.open(":memory:") as store:
        assert (
            store.remember(
                written(tmp_path, "a.log"), options=cerata.PutOptions(embed_limit=0)
            ).notices
            == ()
        )


def test_a_new_version_keeps_the_vectors_that_its_passages_have(
    store: Store, embedder: Hashing, tmp_path: Path
) -> None:
    """The rest of a log was embedded once: a longer log takes these vectors from the memory."""
    store.remember(written(tmp_path, "a.log"), options=cerata.PutOptions(embed_limit=1))
    store.embeddings.fill()
    embedder.asked.clear()
    path = written(tmp_path, "a.log", LOG + LOG.replace("worker", "clerk"))
    receipt = store.remember(path, options=cerata.PutOptions(embed_limit=1))
    assert embedder.asked == []
    [line] = receipt.notices
    assert 0 < int(line.split()[0]) < chunks_of(store, path)


def test_a_block_has_the_line_too(store: Store, tmp_path: Path) -> None:
    with store.transaction() as block:
        store.remember(
            written(tmp_path, "a.log", "one line\n"), options=cerata.PutOptions(embed_limit=0)
        )
    assert block.receipt is not None
    assert ONE in block.receipt.notices


def test_a_failed_embedder_writes_nothing(store: Store, embedder: Hashing, tmp_path: Path) -> None:
    embedder.says = RuntimeError("no")
    with pytest.raises(EmbedderFailed):
        store.remember(written(tmp_path, "a.log"), options=cerata.PutOptions(embed_limit=1))
    assert len(store) == 0


@pytest.mark.parametrize("limit", [-1, 1.5, "all", True, float("nan")])
def test_a_limit_is_a_whole_number_or_none(store: Store, tmp_path: Path, limit: Any) -> None:
    path = written(tmp_path, "a.log")
    message = "embed_limit must be a number of passages from 0"
    with pytest.raises(InvalidInput, match=message):
        store.remember(path, options=cerata.PutOptions(embed_limit=limit))
    with pytest.raises(InvalidInput, match=message):
        store.files.remember([path], options=cerata.PutOptions(embed_limit=limit))
    assert len(store) == 0
