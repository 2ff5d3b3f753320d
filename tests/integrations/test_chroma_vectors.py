"""Vectors of Chroma, by a client that answers as Chroma's: with their frames, or a notice."""

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cerata
from cerata.integrations.importers import ImportedRecords, import_from, sqlite_files
from cerata.integrations.importers import chroma as chroma_vectors
from cerata.memory.ingest.formats import sandbox
from cerata.memory.store import Store

from ..embedders import Hashing
from .sources_of import source

CLIENT = '''
"""A client of the copy that the import made; it answers as Chroma's, in a process of its own."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ROOT = Path(__file__).parent.parent
__version__, metric, work = json.loads((ROOT / "behaviour").read_text())


def note(kind, value):
    with open(ROOT / "notes", "a") as notes:
        notes.write(json.dumps([kind, value]) + chr(10))


def answer(ids):
    """Return the ids that it has, in an order of its own, and float64."""
    numbers = [[1.0, float(each.removeprefix("id"))] for each in reversed(ids)]
    return {"ids": ids[::-1], "embeddings": np.array(numbers)}


class PersistentClient:
    def __init__(self, path, settings, tenant, database):
        assert settings == {"_env_file": None, "anonymized_telemetry": False}
        assert (tenant, database) == ("default_tenant", "default_database")
        with closing(sqlite3.connect(Path(path) / "chroma.sqlite3")) as connection:
            self.ids = dict(connection.execute("SELECT name, id FROM collections"))
            # Chroma's client changes the tables that it opens.
            connection.execute("CREATE TABLE IF NOT EXISTS changed (id)")
        print("A line on standard output")
        global path_of
        path_of = Path(path).joinpath
        note("path", path)
        note("files", sorted(os.listdir(path)))
        note("process", os.getpid())

    def get_collection(self, name, embedding_function):
        assert embedding_function is None

        def get(ids, include):
            assert include == ["embeddings"]
            note("call", name)
            return eval(work)

        indexes = {"hnsw": {"space": metric}, "spann": None}
        return SimpleNamespace(id=self.ids[name], configuration=indexes, get=get)
'''


class Chroma:
    """The package in a folder, by a client whose answer is a Python expression over ``ids``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "chromadb").mkdir()
        (folder / "chromadb" / "__init__.py").write_text(CLIENT)
        (folder / "chromadb" / "config.py").write_text("Settings = dict")
        self.behaves()

    def behaves(
        self, answer: str = "answer(ids)", *, metric: str = "l2", version: str = "1.5.9"
    ) -> None:
        behaviour = json.dumps([version, metric, answer])
        (self._folder / "behaviour").write_text(behaviour)

    def notes(self, kind: str) -> list[Any]:
        """Return what the clients wrote down: their paths, processes, calls, or files."""
        path = self._folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [value for key, value in map(json.loads, lines) if key == kind]

    def has_gone(self) -> bool:
        """Return whether each copy and each process is gone; a zombie would answer."""
        for process in self.notes("process"):
            with suppress(ProcessLookupError):
                os.kill(process, 0)
                return False
        return not any(Path(path).exists() for path in self.notes("path"))


@pytest.fixture
def chroma(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Chroma:
    folder = tmp_path_factory.mktemp("packages")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return Chroma(folder)


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as store:
        yield store


def without_chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)


def vectors_of(store: Store) -> dict[str, list[float] | None]:
    """Return the vector of each text; there is a single space."""
    vectors = {frame.text: store.embeddings.of(frame.id) for frame in store.frames()}
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
    assert len({*chroma.notes("path")}) == len({*chroma.notes("process")}) == 3
    assert os.getpid() not in chroma.notes("process")
    assert chroma.has_gone()


@pytest.mark.parametrize(
    ("metric", "named"), [("l2", "cosine"), ("cosine", "cosine"), ("ip", "dot")]
)
def test_a_space_has_the_name_of_its_collection(
    store: Store, chroma: Chroma, tmp_path: Path, metric: str, named: str
) -> None:
    """And its id, dimension and metric, as the space of an embedder."""
    chroma.behaves(metric=metric)
    import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path))
    [frame, _] = store.frames()
    number = (frame.uri or "").split(":")[2].split("/")[0]
    space = f"chroma/notes@{number[:8]}/2/{named}"
    assert store.embeddings.of(frame.id, space) is not None
    hits = store.search(np.array([1.0, 1.0]), vectors=cerata.Vectors(space=space))
    assert hits[0].frame.text == "Anna lives in Rome."


def test_vectors_are_read_in_pages(store: Store, chroma: Chroma, tmp_path: Path) -> None:
    """A hundred records at a time; each record has its own vector."""
    import_from(store, "chroma", source("chroma-5.sqlite3", tmp_path))
    assert len(chroma.notes("call")) == 6
    assert len(chroma.notes("process")) == 1
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
            assert store.embeddings.of(frame.id, embedder.identity.space) is not None
            vector = store.embeddings.of(frame.id, f"chroma/notes@{number}/2/cosine")
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
    chroma.behaves("{'ids': ids, 'embeddings': [[1.0], [1.0, 2.0]]}")
    assert import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path)).notices == ()
    assert vectors_of(store) == {"The index is HNSW.": [1.0], "Anna lives in Rome.": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("embeddings", "reason"),
    [
        ("None", "2 records: Chroma has none"),
        ("[[1.0, 0.0], None]", "1 record: Chroma has none"),
        ("[[1.0, 0.0], [float('nan'), 1.0]]", "1 record: they are no finite numbers"),
        ("[[1.0, 0.0], [1e300, 1.0]]", "1 record: they are no finite numbers"),
        ("[[1.0, 0.0], []]", "1 record: they are no finite numbers"),
        ("[[1.0, 0.0], ['1', '2']]", "1 record: they are no finite numbers"),
        ("[[1.0, 0.0], [0.5] * 100_000]", "1 record: they are no finite numbers"),
        ("[[1.0, 0.0]]", "2 records: Chroma's client failed with ValueError"),
    ],
)
def test_a_missing_or_bad_vector_leaves_the_text(
    store: Store, chroma: Chroma, tmp_path: Path, embeddings: str, reason: str
) -> None:
    """The text comes, the notice counts."""
    chroma.behaves(f"{{'ids': ids, 'embeddings': {embeddings}}}")
    assert notice_of(store, tmp_path).startswith(reason)


def test_an_id_that_chroma_lacks_leaves_the_text(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """As after a write between the copy and the rows."""
    chroma.behaves("{'ids': ids[:1], 'embeddings': [[1.0, 0.0]]}")
    assert notice_of(store, tmp_path) == "1 record: Chroma has none"


PANIC = "type('Panic', (BaseException,), {})('Error finding id')"
"""As PyO3 raises it."""


@pytest.mark.parametrize("error", ["RuntimeError('Error\\nfinding id')", PANIC])
def test_a_failing_client_leaves_the_texts(
    store: Store, chroma: Chroma, tmp_path: Path, error: str
) -> None:
    """The collection is not read again; the copy is gone."""
    chroma.behaves(f"(_ for _ in ()).throw({error})")
    kind = "Panic" if error is PANIC else "RuntimeError"
    reason = f"Chroma's client failed with {kind}: Error finding id"
    assert notice_of(store, tmp_path) == f"2 records: {reason}"
    import_from(store, "chroma", source("chroma-5.sqlite3", tmp_path))
    assert len(chroma.notes("call")) == 2
    assert chroma.has_gone()


ASLEEP = "__import__('time').sleep(300)"
STUCK = "__import__('re').match('(a+)+$', 'a' * 40 + 'b')"
"""It never ends, and no other thread of its process runs meanwhile."""


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (ASLEEP, "it takes too much time on the clock"),
        (STUCK, "it takes too much time"),
        ("[bytearray(1 << 20) for _ in iter(int, 1)]", "it takes too much memory"),
        ("os._exit(7)", "crashes its parser (exit code 7)"),
        ("os.abort()", f"crashes its parser (exit code -{int(signal.SIGABRT)})"),
        ("os.kill(os.getpid(), 9)", "it takes too much time, or the system ended its parser"),
        ("os.close(3) or os.closerange(4, 99) or os._exit(0)", "(exit code 0)"),
        ("exit()", "failed with SystemExit: None"),
        ("[__import__('sys').stdin.read(), answer([])][1] or exit()", "Chroma has none"),
    ],
)
def test_a_client_has_limits(
    store: Store,
    chroma: Chroma,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: str,
    reason: str,
) -> None:
    """A crafted index may loop, fill the memory or crash compiled code; the texts come."""
    if sys.platform != "linux" and "bytearray" in work:
        pytest.skip("only Linux limits address space so")
    monkeypatch.setattr(chroma_vectors, "SECONDS_MIN", 1)
    monkeypatch.setattr(chroma_vectors, "MEMORY_MIN", 64 << 20)
    chroma.behaves(work)
    started = time.monotonic()
    notice = notice_of(store, tmp_path)
    assert notice.startswith("2 records: Chroma")
    assert reason in notice
    assert time.monotonic() - started < 20
    assert len(chroma.notes("call")) == 1
    assert chroma.has_gone()


def with_collections(path: Path, count: int) -> list[str]:
    """Give each record a collection; return the names."""
    names = [f"notes{number}" for number in range(count)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TEMP TABLE made AS SELECT * FROM collections LIMIT 1")
        for number, name in enumerate(names):
            connection.execute("UPDATE made SET id = ?, name = ?", (f"c{number}", name))
            connection.execute("INSERT INTO collections SELECT * FROM made")
            segment = f"s{number}", f"c{number}"
            connection.execute("INSERT INTO segments VALUES (?, 't', 'METADATA', ?)", segment)
        connection.execute("UPDATE embeddings SET segment_id = 's' || (id % ?)", (count,))
    return names


def test_a_collection_that_ends_the_client_costs_itself_alone(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """The client starts again for the next collection, and keeps the others."""
    path = source("chroma-5.sqlite3", tmp_path)
    with_collections(path, 4)
    chroma.behaves("os._exit(7) if name == 'notes1' else answer(ids)")
    imported = import_from(store, "chroma", path)
    assert imported.added == 600
    [notice] = imported.notices
    assert "150 records: Chroma's client was ended: " in notice
    assert sum(vector is not None for vector in vectors_of(store).values()) == 450
    assert chroma.notes("call").count("notes1") == 1
    assert len(chroma.notes("process")) == 2


def test_a_client_that_always_ends_is_not_started_for_ever(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """Many collections, each of which takes all of its time, would take hours."""
    path = source("chroma-5.sqlite3", tmp_path)
    with_collections(path, 50)
    chroma.behaves("os._exit(7)")
    imported = import_from(store, "chroma", path)
    assert counts(imported) == (600, 0, 1)
    assert len(chroma.notes("process")) == chroma_vectors.ENDS_MAX


def test_limits_grow_with_the_copy(
    store: Store, chroma: Chroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constant would refuse a large collection of an honest program."""
    started: list[dict[str, Any]] = []

    class Watched(sandbox.ParserProcess):
        def __init__(self, where: str, **limits: Any) -> None:
            started.append(limits)
            super().__init__(where, **limits)

    monkeypatch.setattr(chroma_vectors, "ParserProcess", Watched)
    path = source("chroma-1.sqlite3", tmp_path)
    import_from(store, "chroma", path, dry_run=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        [[segment]] = connection.execute("SELECT id FROM segments WHERE scope = 'VECTOR'")
    (tmp_path / segment).mkdir()
    (tmp_path / segment / "data_level0.bin").write_bytes(bytes(10 << 20))
    import_from(store, "chroma", path, dry_run=True)
    first, second = started
    assert second["seconds"] - first["seconds"] == 20
    assert second["wall_seconds"] - first["wall_seconds"] == 40
    assert second["memory"] - first["memory"] == 40 << 20
    assert segment in chroma.notes("files")[1]


@pytest.mark.parametrize("work", [ASLEEP, STUCK])
def test_an_interrupt_ends_the_import(
    store: Store, chroma: Chroma, tmp_path: Path, work: str
) -> None:
    """At once, with the client and its copy; it is no failure of the client."""
    chroma.behaves(f"(os.kill(os.getppid(), {int(signal.SIGINT)}), {work})")
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path))
    assert time.monotonic() - started < 10
    assert chroma.has_gone()


def test_an_interrupt_that_the_program_handles_leaves_the_client(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """A terminal sends Ctrl-C to the client, too; the program alone decides what ends."""
    chroma.behaves(f"(os.kill(os.getpid(), {int(signal.SIGINT)}), answer(ids))[1]")
    import_from(store, "chroma", source("chroma-1.sqlite3", tmp_path))
    assert vectors_of(store) == WITH_VECTORS


def test_files_without_an_end_are_not_copied(store: Store, chroma: Chroma, tmp_path: Path) -> None:
    """A link to a device fills the disk, and a pipe waits; a link may lead out of the folder."""
    path = source("chroma-1.sqlite3", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        [[segment]] = connection.execute("SELECT id FROM segments WHERE scope = 'VECTOR'")
    folder = tmp_path / segment
    folder.mkdir()
    (folder / "header.bin").write_bytes(b"x")
    (folder / "data_level0.bin").symlink_to("/dev/zero")
    os.mkfifo(folder / "length.bin")
    (folder / "deep").mkdir()
    chroma.behaves(f"note('index', os.listdir(path_of('{segment}'))) or answer(ids)")
    import_from(store, "chroma", path)
    assert vectors_of(store) == WITH_VECTORS
    assert chroma.notes("index") == [["header.bin"]]


def test_a_copy_leaves_room_on_the_disk(
    store: Store, chroma: Chroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with holes says a size that no disk has."""

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1_000)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert "half of the 1,000 free bytes is the most" in notice_of(store, tmp_path)
    assert chroma.notes("path") == []


def test_a_segment_without_an_id_costs_itself(store: Store, chroma: Chroma, tmp_path: Path) -> None:
    """It has no folder of an index."""
    path = source("chroma-1.sqlite3", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO segments VALUES (NULL, 't', 'VECTOR', 'c')")
        connection.execute("INSERT INTO segments VALUES (x'ff', 't', 'VECTOR', 'c')")
    import_from(store, "chroma", path)
    assert vectors_of(store) == WITH_VECTORS


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
    chroma.behaves(version=version)
    assert f"chromadb {version} is older than 1.0" in notice_of(store, tmp_path)
    assert chroma.notes("path") == []


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
    assert chroma.notes("files") == [["chroma.sqlite3"]]
    assert not (Path(chroma.notes("path")[0]).parent / "secret").exists()


def test_the_client_opens_no_file_that_runs_queries(
    store: Store, chroma: Chroma, tmp_path: Path
) -> None:
    """A trigger or a view without an end would run in Chroma's client."""
    path = source("chroma-1.sqlite3", tmp_path)
    trigger = "CREATE TRIGGER t AFTER DELETE ON embeddings BEGIN SELECT 1; END"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(trigger)
    imported = import_from(store, "chroma", path)
    assert counts(imported) == (2, 0, 1)
    assert "would run in Chroma's client" in imported.notices[0]
    assert chroma.notes("path") == []
