"""Vectors of Chroma, by its own client."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cerata
from cerata.integrations.importers import import_from
from cerata.memory.ingest.formats import sandbox
from cerata.memory.store import Store

chromadb = pytest.importorskip("chromadb", reason="needs the extra sources")

pytestmark = pytest.mark.chromadb

# More than Chroma keeps in its tables: the rest is in the files of its index.
COUNT = 1_200


NO_NETWORK = """
import socket
def refuse(*_):
    raise AssertionError("the network is not used")
socket.socket.connect = refuse
"""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(sandbox, "_START", NO_NETWORK + sandbox._START)
    with cerata.open(":memory:") as store:
        yield store


def folder_of(path: Path, count: int = COUNT, **options: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Write a folder of Chroma, and return the vectors."""
    vectors = np.random.default_rng(7).random((count, 8), dtype=np.float32)
    client = chromadb.PersistentClient(path=str(path))
    notes = client.create_collection("notes", **options)
    for start in range(0, count, 400):
        numbers = range(start, min(count, start + 400))
        notes.add(
            ids=[f"id{number}" for number in numbers],
            documents=[f"Reading {number}." for number in numbers],
            embeddings=vectors[start : start + 400],
        )
    client.close()
    return vectors


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def check(store: Store, vectors: np.ndarray[Any, np.dtype[Any]]) -> None:
    for frame in store.frames():
        number = int(frame.text.removeprefix("Reading ").removesuffix("."))
        vector = store.embeddings.of(frame.id)
        assert vector is not None
        np.testing.assert_allclose(np.asarray(vector, np.float32), vectors[number], rtol=1e-5)


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_the_vectors_of_a_folder_are_imported(store: Store, tmp_path: Path, metric: str) -> None:
    """Those of the index and of its log; the default embedder is not called, no file changes."""
    vectors = folder_of(tmp_path / "chroma", metadata={"hnsw:space": metric})
    before = files_of(tmp_path / "chroma")
    imported = import_from(store, "chroma", tmp_path / "chroma")
    assert (imported.added, imported.notices) == (COUNT, ())
    check(store, vectors)
    assert files_of(tmp_path / "chroma") == before
    head = store.head
    again = import_from(store, "chroma", tmp_path / "chroma" / "chroma.sqlite3")
    assert (again.added, again.known, again.notices) == (0, COUNT, ())
    assert store.head == head


def test_collections_of_other_databases_are_read(store: Store, tmp_path: Path) -> None:
    """Two databases may have collections of a name."""
    folder = str(tmp_path / "chroma")
    vectors = folder_of(tmp_path / "chroma", 2)
    admin = chromadb.AdminClient(chromadb.Settings(is_persistent=True, persist_directory=folder))
    admin.create_database("second")
    client = chromadb.PersistentClient(path=folder, database="second")
    notes = client.create_collection("notes", embedding_function=None)
    notes.add(ids=["a"], documents=["Reading 1."], embeddings=vectors[1:])
    client.close()
    imported = import_from(store, "chroma", folder)
    assert (imported.added, imported.notices) == (3, ())
    check(store, vectors)


def test_a_folder_without_its_index_gives_texts(store: Store, tmp_path: Path) -> None:
    """As after a copy of the tables alone; the whole folder then adds the vectors."""
    vectors = folder_of(tmp_path / "chroma")
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "chroma" / "chroma.sqlite3", tmp_path / "copy")
    imported = import_from(store, "chroma", tmp_path / "copy")
    assert imported.added == COUNT
    [notice] = imported.notices
    assert "Chroma's client failed" in notice
    assert os.listdir(tmp_path / "copy") == ["chroma.sqlite3"]
    added = import_from(store, "chroma", tmp_path / "chroma").added
    assert added == COUNT
    check(store, vectors)


@pytest.mark.parametrize("name", ["header.bin", "length.bin", "link_lists.bin"])
def test_a_damaged_index_ends_no_import(store: Store, tmp_path: Path, name: str) -> None:
    """Compiled code reads it, and may crash, loop or take all memory."""
    folder_of(tmp_path / "chroma")
    [file] = (tmp_path / "chroma").glob(f"*/{name}")
    file.write_bytes(b"\xff" * file.stat().st_size)
    assert import_from(store, "chroma", tmp_path / "chroma").added == COUNT
