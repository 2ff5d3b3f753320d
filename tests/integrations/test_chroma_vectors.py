"""Vectors of Chroma, by a client that answers as Chroma's: with their frames, or a notice."""

import math
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cerata
from cerata.integrations.importers import ImportedRecords, import_from, sqlite_files
from cerata.memory.store import Store

from ..embedders import Hashing
from .sources_of import source

Answer = Callable[[list[str]], dict[str, Any]]


def answer(ids: list[str]) -> dict[str, Any]:
    """Return what Chroma returns: the ids that it has, in an order of its own, as float64."""
    numbers = [[1.0, float(each.removeprefix("id"))] for each in reversed(ids)]
    return {"ids": ids[::-1], "embeddings": np.array(numbers)}


class Client:
    """A client of the copy that the import made."""

    def __init__(self, path: str, chroma: "Chroma") -> None:
        self._chroma = chroma
        with closing(sqlite3.connect(Path(path) / "chroma.sqlite3")) as connection:
            self._ids = dict(connection.execute("SELECT name, id FROM collections"))
            # Chroma's client changes the tables that it opens.
            connection.execute("CREATE TABLE changed (id)")
        chroma.paths.append(path)

    def get_collection(self, name: str, embedding_function: object) -> object:
        assert embedding_function is None

        def get(ids: list[str], include: list[str]) -> dict[str, Any]:
            assert include == ["embeddings"]
            self._chroma.calls += 1
            return self._chroma.answer(ids)

        metric = {"hnsw": {"space": self._chroma.metric}, "spann": None}
        return SimpleNamespace(id=self._ids[name], configuration=metric, get=get)

    def close(self) -> None:
        self._chroma.closed += 1


class Chroma:
    """The package; ``answer`` is its client's, ``paths`` are the folders that it opened."""

    def __init__(self) -> None:
        self.answer: Answer = answer
        self.metric = "l2"
        self.calls = self.closed = 0
        self.paths: list[str] = []
        self.package = SimpleNamespace(__version__="1.5.9", PersistentClient=self._client)
        self.config = SimpleNamespace(Settings=dict)

    def _client(self, path: str, settings: dict[str, object], tenant: str, database: str) -> Client:
        assert settings["anonymized_telemetry"] is False
        assert (tenant, database) == ("default_tenant", "default_database")
        return Client(path, self)


@pytest.fixture
def chroma(monkeypatch: pytest.MonkeyPatch) -> Chroma:
    package = Chroma()
    monkeypatch.setitem(sys.modules, "chromadb", package.package)
    monkeypatch.setitem(sys.modules, "chromadb.config", package.config)
    return package


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as store:
        yield store


def without_chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)


def vectors_of(store: Store) -> dict[str, list[float] | None]:
    """Return the vector of each text; there is a single space."""
    vectors = {frame.text: store.embedding(frame.id) for frame in store.frames()}
    return {
        text: None if vector is None else [float(number) for number in vector]
        for text, vector in vectors.items()
    }


def counts(imported: ImportedRecords) -> tuple[int, int, int]:
    return imported.added, imported.known, len(imported.notices)


WITH_VECTORS = {"The index is HNSW.": [1.0, 0.0], "Anna lives in Rome.": [1.0, 1.0]}


def test_vectors_come_with_their_frames(store: Store, chroma: Chroma, tmp_path: Path) -> None:
    """An event for each record; the source is unchanged, the copy gone, the client closed."""
    path = source("chroma-1.sqlite3", tmp_path)
    before = path.read_bytes()
    assert counts(import_from(store, "chroma", path, dry_run=True)) == (2, 0, 0)
    assert counts(import_from(store, "chroma", path)) == (2, 0, 0)
    assert store.head.seq == 2
    assert vectors_of(store) == WITH_VECTORS
    head = store.head
    assert counts(import_from(store, "chroma", path)) == (0, 2, 0)
    assert store.head == head
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, [path.name])
    assert not any(Path(path).exists() for path in chroma.paths)
    assert (len(chroma.paths), chroma.closed) == (3, 3)


@pytest.mark.parametrize(
    ("metric", "named"), [("l2", "cosine"), ("cosine", "cosine"), ("ip", "dot")]
)
def test_a_space_has_the_name_of_its_collection(
    store: Store, chroma: Chroma, tmp_path: Path, metric: str, named: str
) -> None:
    """And its id, dimension and metric, as the space of an embedder."""
    chroma.metric = metric
    import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path))
    [frame, _] = store.frames()
    number = (frame.uri or "").split(":")[2].split("/")[0]
    space = f"chroma/notes@{number[:8]}/2/{named}"
    assert store.embedding(frame.id, space) is not None
    hits = store.search(np.array([1.0, 1.0]), space=space)
    assert hits[0].frame.text == "Anna lives in Rome."


def test_vectors_are_read_in_pages(store: Store, chroma: Chroma, tmp_path: Path) -> None:
    """A hundred records at a time; each record has its own vector."""
    import_from(store, "chroma", source("chroma-5.sqlite3", tmp_path))
    assert chroma.calls == 6
    assert vectors_of(store) == {f"Reading {n}.": [1.0, float(n)] for n in range(600)}


def test_an_import_with_vectors_follows_one_without(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """Each unchanged frame gets its vector by an event, once; an edited one gets none."""
    path = source("chroma-1.sqlite3", tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        without_chroma(patch)
        imported = import_from(store, "chroma", path)
    [notice] = imported.notices
    assert notice.startswith("vectors of Chroma were not read for 2 records: chromadb is not inst")
    [rome] = [frame for frame in store.frames() if "Rome" in frame.text]
    store.supersede(rome, "Anna lives in Paris.")
    assert counts(import_from(store, "chroma", path, dry_run=True)) == (1, 1, 0)
    head = store.head
    assert counts(import_from(store, "chroma", path)) == (1, 1, 0)
    assert vectors_of(store) == {"The index is HNSW.": [1.0, 0.0], "Anna lives in Paris.": None}
    assert store.head.seq == head.seq + 1
    assert counts(import_from(store, "chroma", path)) == (0, 2, 0)


def test_importers_at_the_same_time_add_each_vector_once(chroma: Chroma, tmp_path: Path) -> None:
    """No rule of URIs watches over the vectors of stored frames, so their batch has a basis."""
    path = source("chroma-5.sqlite3", tmp_path)
    with cerata.open(tmp_path / "a.cera") as store, pytest.MonkeyPatch.context() as patch:
        without_chroma(patch)
        import_from(store, "chroma", path)

    def run_import(_: int) -> int:
        with cerata.open(tmp_path / "a.cera") as store:
            return import_from(store, "chroma", path).added

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(run_import, range(3))) == 600
    with cerata.open(tmp_path / "a.cera") as store:
        assert store.head.seq == 1_200


def test_the_embedder_of_the_store_embeds_too(chroma: Chroma, tmp_path: Path) -> None:
    """The store's questions find imported texts; Chroma's vectors are in a space beside."""
    embedder = Hashing()
    with cerata.open(":memory:", embedder=embedder) as store:
        path = source("chroma-1.sqlite3", tmp_path)
        assert counts(import_from(store, "chroma", path)) == (2, 0, 0)
        for frame in store.frames():
            number = (frame.uri or "").split(":")[2][:8]
            assert store.embedding(frame.id, embedder.identity.space) is not None
            vector = store.embedding(frame.id, f"chroma/notes@{number}/2/cosine")
            assert vector is not None
            assert [*vector] == WITH_VECTORS[frame.text]
        head = store.head
        assert counts(import_from(store, "chroma", path)) == (0, 2, 0)
        assert store.head == head


# --- bad input -----------------------------------------------------------------------------------


def notice_of(store: Store, folder: Path) -> str:
    """Import texts, and return the only notice."""
    imported = import_from(store, "chroma", source("chroma-1.sqlite3", folder))
    assert (imported.added, sorted(vectors_of(store))) == (2, sorted(WITH_VECTORS))
    [notice] = imported.notices
    return notice.removeprefix("vectors of Chroma were not read for ")


def test_vectors_of_several_dimensions_have_a_space_each(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """A space has one dimension."""
    chroma.answer = lambda ids: {"ids": ids, "embeddings": [[1.0], [1.0, 2.0]]}
    assert import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path)).notices == ()
    assert vectors_of(store) == {"The index is HNSW.": [1.0], "Anna lives in Rome.": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("embeddings", "reason"),
    [
        (None, "2 records: Chroma has none"),
        ([[1.0, 0.0], None], "1 record: Chroma has none"),
        ([[1.0, 0.0], [math.nan, 1.0]], "1 record: they are no finite numbers"),
        ([[1.0, 0.0], []], "1 record: they are no finite numbers"),
        ([[1.0, 0.0], [0.5] * 100_000], "1 record: they are no finite numbers"),
        ([[1.0, 0.0]], "2 records: Chroma's client failed with ValueError"),
    ],
)
def test_a_missing_or_bad_vector_leaves_the_text(
    store: Store, chroma: Chroma, tmp_path: Path, embeddings: object, reason: str
) -> None:
    """The text comes, the notice counts."""
    chroma.answer = lambda ids: {"ids": ids, "embeddings": embeddings}
    assert notice_of(store, tmp_path).startswith(reason)


def test_an_id_that_chroma_lacks_leaves_the_text(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """As after a write between the copy and the rows."""
    chroma.answer = lambda ids: {"ids": ids[:1], "embeddings": [[1.0, 0.0]]}
    assert notice_of(store, tmp_path) == "1 record: Chroma has none"


class Panic(BaseException):
    """As PyO3 raises it."""


@pytest.mark.parametrize("error", [RuntimeError("Error\nfinding id"), Panic("Error finding id")])
def test_a_failing_client_leaves_the_texts(
    store: Store, chroma: Chroma, tmp_path: Path, error: BaseException
) -> None:
    """The collection is not read again; the copy is gone."""

    def fail(_: list[str]) -> dict[str, Any]:
        raise error

    chroma.answer = fail
    reason = f"Chroma's client failed with {type(error).__name__}: Error finding id"
    assert notice_of(store, tmp_path) == f"2 records: {reason}"
    import_from(store, "chroma", source("chroma-5.sqlite3", tmp_path))
    assert chroma.calls == 2
    assert not any(Path(path).exists() for path in chroma.paths)


def test_an_interrupt_ends_the_import(store: Store, chroma: Chroma, tmp_path: Path) -> None:
    """It is no failure of the client."""

    def interrupt(_: list[str]) -> dict[str, Any]:
        raise KeyboardInterrupt

    chroma.answer = interrupt
    with pytest.raises(KeyboardInterrupt):
        import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path))
    assert chroma.closed == 1
    assert not any(Path(path).exists() for path in chroma.paths)


def test_a_copy_that_cannot_be_written_leaves_the_texts(
    store: Store, chroma: Chroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary folder without write permission, or a full disk."""

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "/tmp")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    assert "a temporary copy cannot be written: [Errno 13]" in notice_of(store, tmp_path)


def test_a_locked_file_is_not_copied_for_ever(
    store: Store, chroma: Chroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backup of SQLite has no end of its own."""
    path = source("chroma-1.sqlite3", tmp_path)
    copy_to = sqlite_files.SqliteFile.copy_to

    def locked(file: sqlite_files.SqliteFile, target: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            copy_to(file, target)

    monkeypatch.setattr(sqlite_files, "LOCK_SECONDS", 0.5)
    monkeypatch.setattr(sqlite_files.SqliteFile, "copy_to", locked)
    imported = import_from(store, "chroma", path)
    [notice] = imported.notices
    assert "a temporary copy cannot be written: " in notice
    assert "locked" in notice or "holds" in notice


@pytest.mark.parametrize("version", ["0.4.24", "next"])
def test_an_old_chroma_is_not_used(
    store: Store, chroma: Chroma, tmp_path: Path, version: str
) -> None:
    """Before 1.0 it loads pickles of the folder."""
    chroma.package.__version__ = version
    assert f"chromadb {version} is older than 1.0" in notice_of(store, tmp_path)
    assert chroma.paths == []


def test_a_segment_is_no_path_out_of_the_folder(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """Names of folders to copy come from the file."""
    (tmp_path / "a").mkdir()
    (tmp_path / "secret").mkdir()
    path = source("chroma-1.sqlite3", tmp_path / "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO segments VALUES ('../secret', 't', 'VECTOR', 'c')")
    assert import_from(store, "chroma", path).added == 2
    assert not (Path(chroma.paths[0]).parent / "secret").exists()


def test_the_client_opens_no_file_that_runs_queries(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """A trigger or a view without an end would run in Chroma's client, which has no limit."""
    path = source("chroma-1.sqlite3", tmp_path)
    trigger = "CREATE TRIGGER t AFTER DELETE ON embeddings BEGIN SELECT 1; END"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(trigger)
    imported = import_from(store, "chroma", path)
    assert counts(imported) == (2, 0, 1)
    assert "would run in Chroma's client" in imported.notices[0]
    assert chroma.paths == []
