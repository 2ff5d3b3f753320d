"""Importers: the records of files that the real packages wrote, each once, also after a kill."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Conflict, InvalidInput, Locked, NotFound
from cerata.integrations.importers import (
    ImportedRecords,
    import_from,
    json_lines,
    kinds,
    mem0,
    run,
    sqlite_files,
)
from cerata.memory.store import Store

from ..embedders import Hashing
from .sources_of import FILES, kind_of, source


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as store:
        yield store


def lines(*objects: object) -> BytesIO:
    return BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in objects))


def counts(imported: ImportedRecords) -> tuple[int, int]:
    return imported.added, imported.known


def texts(store: Store) -> list[str]:
    return sorted(frame.text for frame in store.frames())


def frames_of(store: Store) -> int:
    return len(texts(store))


# --- each record once ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_real_package_is_imported_once(name: str, store: Store, tmp_path: Path) -> None:
    """The second import appends nothing, and a dry run counts what the first adds."""
    path = source(name, tmp_path)
    planned = import_from(store, kind_of(name), path, dry_run=True)
    assert (planned.head, planned.problems) == (0, ())
    imported = import_from(store, kind_of(name), path)
    assert imported.added == planned.added > 0
    head = store.head
    again = import_from(store, kind_of(name), path)
    assert (again.added, store.head) == (0, head)
    assert again.known == imported.added + imported.known
    assert os.listdir(tmp_path) == [name]


def test_there_are_files_of_each_kind() -> None:
    """Five of each; JSON Lines come from no package."""
    assert Counter(map(kind_of, FILES)) == {kind: 5 for kind in kinds() if kind != "jsonl"}


KILLED = """
import os, signal, sys
import cerata
from cerata.integrations.importers import import_from, records, run
run.BATCH_RECORDS = 50
path, source, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
with cerata.open(path) as store:
    draft = records.FrameRecord.draft
    def counted(record, memory):
        global calls
        calls -= 1
        if not calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return draft(record, memory)
    records.FrameRecord.draft = counted
    import_from(store, "mem0", source)
"""


def test_a_killed_import_goes_on(tmp_path: Path) -> None:
    """A kill at any put leaves whole batches; the next run adds the rest, and nothing twice."""
    path = source("mem0-5.db", tmp_path)
    for number in (1, 30, 51, 120, 400):
        memory = tmp_path / f"{number}.cera"
        command = [sys.executable, "-c", KILLED, str(memory), str(path), str(number)]
        killed = subprocess.run(command, check=False, timeout=120)
        assert killed.returncode == -signal.SIGKILL
        with cerata.open(memory) as store:
            before = frames_of(store)
            # 300 memories have two versions, which are in one batch of 50.
            assert before % 25 == 0
            imported = import_from(store, "mem0", path)
            assert imported.added + imported.known == 700
            assert (frames_of(store), len(set(texts(store)))) == (400, 400)
            assert import_from(store, "mem0", path).added == 0


def test_a_batch_is_durable_before_the_next_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is called after each batch, with the bytes that were read."""
    monkeypatch.setattr(run, "BATCH_RECORDS", 2)
    calls: list[int] = []

    def show(_done: int, _total: int) -> None:
        calls.append(frames_of(store))

    objects = [{"text": f"note {number}"} for number in range(5)]
    import_from(store, "jsonl", lines(*objects), progress=show)
    assert calls == [2, 4, 5]


def test_records_that_were_changed_here_stay_as_they_are(store: Store, tmp_path: Path) -> None:
    """An import brings neither deleted nor edited records back."""
    path = source("mem0-1.db", tmp_path)
    import_from(store, "mem0", path)
    for memory, text in (("m1", "The index is exact."), ("m2", None)):
        frame = store.get(f"import:mem0:{memory}")
        assert frame is not None
        store.delete(frame) if text is None else store.supersede(frame, text)
    assert counts(import_from(store, "mem0", path)) == (0, 2)
    assert texts(store) == ["The index is exact."]


def test_a_source_that_grew_adds_its_new_records(store: Store, tmp_path: Path) -> None:
    """A version of a memory is a version of its frame."""
    path = source("mem0-1.db", tmp_path)
    import_from(store, "mem0", path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO history (id, memory_id, new_memory, event) "
            "VALUES ('x', 'm1', 'The index is HNSW.', 'UPDATE')"
        )
    assert counts(import_from(store, "mem0", path)) == (1, 2)
    frame = store.get("import:mem0:m1")
    assert frame is not None
    assert [version.text for version in store.history.of(frame)] == [
        "The index is Annoy.",
        "The index is HNSW.",
    ]


def test_two_scopes_import_a_file_each(store: Store, tmp_path: Path) -> None:
    """The scope of the store is that of the frames."""
    path = source("mem0-1.db", tmp_path)
    for tenant in ("acme", "zeta"):
        scoped = store.scoped({"tenant": tenant})
        assert counts(import_from(scoped, "mem0", path)) == (2, 0)
        assert counts(import_from(scoped, "mem0", path)) == (0, 2)


def test_the_embedder_gets_the_texts_of_a_batch_at_once(tmp_path: Path) -> None:
    """Imported frames have vectors like all frames of the store."""
    embedder = Hashing()
    with cerata.open(":memory:", embedder=embedder) as store:
        import_from(store, "mem0", source("mem0-1.db", tmp_path))
        assert (embedder.calls, len(embedder.asked)) == (1, 2)
        frame = store.get("import:mem0:m1")
        assert frame is not None
        assert store.embeddings.of(frame) is not None
        assert import_from(store, "mem0", source("mem0-1.db", tmp_path)).added == 0
        assert embedder.calls == 1


# --- mem0 ----------------------------------------------------------------------------------------


def test_a_history_of_mem0_is_versions_of_frames(store: Store, tmp_path: Path) -> None:
    """Recorded times are Cerata's, created times those of mem0."""
    import_from(store, "mem0", source("mem0-2.db", tmp_path))
    frame = store.get("import:mem0:m1")
    assert frame is not None
    assert [(version.text, version.created.day) for version in store.history.of(frame)] == [
        ("The index is Annoy.", 1),
        ("The index is HNSW.", 2),
        ("The index is flat.", 3),
    ]


def test_a_deletion_of_mem0_hides_the_frame(store: Store, tmp_path: Path) -> None:
    """Earlier states keep it."""
    import_from(store, "mem0", source("mem0-3.db", tmp_path))
    assert texts(store) == ["Lunch is at noon."]


def test_speaker_and_actor_of_mem0_stay(store: Store, tmp_path: Path) -> None:
    """The ids of the source are in the metadata."""
    import_from(store, "mem0", source("mem0-4.db", tmp_path))
    [frame] = store.frames()
    assert (frame.role, frame.metadata["actor_id"]) == ("anna", "anna")
    assert frame.metadata["import"]["id"] == "é✓"  # type: ignore[index,call-overload]


def test_retention_does_not_bring_an_earlier_version_back(tmp_path: Path) -> None:
    """A memory with a later version had the earlier ones, although their contents are gone."""
    path = source("mem0-2.db", tmp_path)
    with cerata.open(tmp_path / "a.cera") as store:
        import_from(store, "mem0", path)
        store.upkeep.compact(horizon="HEAD")
        assert counts(import_from(store, "mem0", path)) == (0, 3)
        assert texts(store) == ["The index is flat."]


def test_a_restored_memory_is_not_deleted_again(store: Store, tmp_path: Path) -> None:
    """Nor is one that was edited here before the source deleted it."""
    path = source("mem0-3.db", tmp_path)
    import_from(store, "mem0", path)
    store.history.restore(1)
    assert counts(import_from(store, "mem0", path)) == (0, 3)
    assert len(texts(store)) == 2


def history_of(path: Path, *rows: tuple[object, ...]) -> Path:
    """Write a history of mem0: id, memory_id, new_memory, event, updated_at, is_deleted."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE history (id, memory_id, new_memory, event, updated_at, is_deleted, "
            "created_at)"
        )
        connection.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, NULL)", rows)
    connection.close()
    return path


def test_no_end_of_an_import_leaves_a_deleted_memory_current(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory and its deletion are in one batch, however far apart their rows are."""
    monkeypatch.setattr(run, "BATCH_RECORDS", 3)
    monkeypatch.setattr(mem0, "_UNIT_RECORDS", 3)
    rows: list[tuple[object, ...]] = [("d1", "secret", "The code is 1.", "ADD", None, 0)]
    rows += [(f"i{number}", f"m{number}", "x", "ADD", None, 0) for number in range(10)]
    rows += [(f"d{n}", "secret", f"The code is {n}.", "UPDATE", None, 0) for n in range(2, 6)]
    rows += [(None, "secret", None, "DELETE", "no time", 1)]
    path = history_of(tmp_path / "mem0-1.db", *rows)
    seen: list[bool] = []

    def ended(_done: int, _total: int) -> None:
        seen.append(any("code" in text for text in texts(store)))

    imported = import_from(store, "mem0", path, progress=ended)
    assert len(seen) > 3
    assert not any(seen)
    assert imported.skipped == {"early versions of deleted memories that are too long": 3}
    assert (imported.added, imported.refused) == (13, 0)
    assert not store.search("code")
    assert import_from(store, "mem0", path).added == 0


@pytest.mark.parametrize("bad", [b"\xff", "REMOVE", None])
def test_a_deletion_needs_no_other_column(bad: object, store: Store, tmp_path: Path) -> None:
    """``is_deleted`` deletes, too, and so does a row whose memory is here from elsewhere."""
    path = history_of(tmp_path / "mem0-1.db", ("1", "m", "a", "ADD", None, 0))
    import_from(store, "mem0", path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM history")
        connection.execute("INSERT INTO history VALUES (?, 'm', ?, ?, ?, 1, ?)", (bad,) * 5)
    assert import_from(store, "mem0", path).refused == 0
    assert texts(store) == []
    assert counts(import_from(store, "mem0", path)) == (0, 1)


def test_a_memory_that_mem0_may_have_deleted_is_hidden(store: Store, tmp_path: Path) -> None:
    """An unknown action that is the last may be a deletion; an earlier one is refused alone."""
    rows = [
        ("1", "m", "The code is 1.", "ADD", None, 0),
        ("2", "m", None, "PURGE", None, 0),
        ("3", "n", "kept", "ADD", None, 0),
        ("4", "n", None, "PURGE", None, 0),
        ("5", "n", "kept on", "UPDATE", None, 0),
        ("6", "o", None, "PURGE", None, 0),
    ]
    path = history_of(tmp_path / "mem0-1.db", *rows)
    imported = import_from(store, "mem0", path)
    assert texts(store) == ["kept on"]
    assert (imported.added, imported.refused, imported.doubtful) == (4, 2, 1)
    [doubt] = imported.doubts
    assert doubt.where.endswith("row 2")
    assert "no action 'PURGE' of mem0, so the memory is hidden" in doubt.what
    assert import_from(store, "mem0", path).added == 0
    other = cerata.open(":memory:")
    import_from(other, "mem0", history_of(tmp_path / "mem0-2.db", rows[0]))
    assert texts(other) == ["The code is 1."]
    assert import_from(other, "mem0", path).added == 3
    assert texts(other) == ["kept on"]
    other.close()


def test_importers_at_the_same_time_add_each_record_once(tmp_path: Path) -> None:
    """Each batch is written by one of them."""
    path = source("graphiti-5.jsonl", tmp_path)

    def run_import(_: int) -> int:
        with cerata.open(tmp_path / "a.cera") as store:
            return import_from(store, "graphiti", path).added

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(run_import, range(3))) == 122
    with cerata.open(tmp_path / "a.cera") as store:
        assert len(store.facts()) == 120


# --- LangGraph -----------------------------------------------------------------------------------


def test_items_of_langgraph_are_those_of_the_store(store: Store, tmp_path: Path) -> None:
    """`CerataStore` finds them at their addresses."""
    import_from(store, "langgraph-sqlite", source("langgraph-sqlite-3.db", tmp_path))
    frame = store.get("lg:users/anna//prefs")
    assert frame is not None
    assert frame.metadata == {"theme": "dark", "sizes": [1, 2.5], "x": None}
    assert store.get("lg:users/anna//a%2Fb%25c") is not None
    assert frames_of(store) == 2


def test_expired_items_are_skipped(store: Store, tmp_path: Path) -> None:
    """The others keep their expiry."""
    path = source("langgraph-sqlite-4.db", tmp_path)
    imported = import_from(store, "langgraph-sqlite", path)
    assert imported.skipped == {"items that expired": 1}
    frame = store.get("lg:users/anna//prefs")
    assert frame is not None
    assert frame.expires is not None


@pytest.mark.parametrize("updated", ["2027-01-01 00:00:00", None])
def test_an_item_that_expired_takes_its_older_version(
    updated: str | None, store: Store, tmp_path: Path
) -> None:
    """A version of which the file does not say when it was made leaves what is here."""
    path = source("langgraph-sqlite-4.db", tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE store SET expires_at = NULL")
    added = import_from(store, "langgraph-sqlite", path).added
    before = frames_of(store)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE store SET expires_at = '2020-01-01', updated_at = ? "
            "WHERE rowid = (SELECT min(rowid) FROM store)",
            (updated,),
        )
    imported = import_from(store, "langgraph-sqlite", path)
    if updated is None:
        assert (imported.added, frames_of(store)) == (0, before)
    else:
        assert (imported.added, frames_of(store)) == (1, before - 1)
        assert (imported.known, imported.skipped) == (added - 1, {})
    again = import_from(store, "langgraph-sqlite", path)
    assert (again.added, again.skipped) == (0, {"items that expired": 1})


def test_a_thread_that_was_dropped_stays_dropped(store: Store, tmp_path: Path) -> None:
    """A deletion here is newer than the file."""
    from cerata.integrations.langgraph.events import DropCheckpoints, DroppedCheckpoints

    path = source("langgraph-sqlite-1.db", tmp_path)
    import_from(store, "langgraph-sqlite", path)
    store.append(DropCheckpoints(dropped=(DroppedCheckpoints("anna", None, None),)))
    head = store.head
    assert import_from(store, "langgraph-sqlite", path).added == 0
    assert store.head == head


def test_a_pickle_is_skipped_unread(store: Store, tmp_path: Path) -> None:
    """A pickle can run any code, so a thread with one loses it, and the count reports that."""
    path = source("langgraph-sqlite-1.db", tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle' WHERE thread_id = 'anna'")
    imported = import_from(store, "langgraph-sqlite", path)
    assert imported.skipped == {"checkpoints and writes in pickle, which is never read": 3}


# --- JSON Lines ----------------------------------------------------------------------------------


def test_a_line_has_the_fields_of_a_frame(store: Store) -> None:
    """An id, or else the hash of the line, names a record."""
    import_from(
        store,
        "jsonl",
        lines(
            {
                "text": "Ship on Friday.",
                "id": 7,
                "created": "2026-11-01T10:00:00Z",
                "kind": "message",
                "role": "user",
                "tags": ["plan"],
                "metadata": {"import": "own", "n": [1]},
            }
        ),
    )
    frame = store.get("import:jsonl:7")
    assert frame is not None
    assert (frame.text, frame.kind, frame.role, frame.tags) == (
        "Ship on Friday.",
        "message",
        "user",
        ("plan",),
    )
    assert frame.metadata["n"] == [1]
    assert frame.metadata["import"]["value"] == "own"  # type: ignore[index,call-overload]


def test_equal_lines_are_one_frame_and_a_uri_is_replaced(store: Store) -> None:
    """A later line with an id or URI takes the place of the earlier one."""
    objects: list[Any] = [{"text": "a"}, {"text": "a"}, {"text": "b", "uri": "x"}]
    objects += [{"text": "c", "uri": "x"}, {"text": "d", "id": "i"}, {"text": "e", "id": "i"}]
    assert counts(import_from(store, "jsonl", lines(*objects), dry_run=True)) == (5, 1)
    assert counts(import_from(store, "jsonl", lines(*objects))) == (5, 1)
    assert texts(store) == ["a", "c", "e"]
    assert counts(import_from(store, "jsonl", lines(*objects))) == (0, 6)


def test_a_bad_line_costs_only_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted and named, and its batch is written; the corrected file adds the rest."""
    monkeypatch.setattr(run, "BATCH_RECORDS", 3)
    good = [{"text": f"note {number}"} for number in range(4)]
    source = lines(*good[:3], {"text": ""}, {"txt": "x"}, good[3]).getvalue() + b'{"text": "cu'
    imported = import_from(store, "jsonl", BytesIO(source))
    assert (*counts(imported), imported.refused) == (4, 0, 3)
    assert sorted(problem.where for problem in imported.problems) == [
        "input, line 4",
        "input, line 5",
        "input, line 7",
    ]
    assert counts(import_from(store, "jsonl", lines(*good, {"text": "whole"}))) == (1, 4)


def test_a_bad_time_costs_only_the_time(store: Store, tmp_path: Path) -> None:
    """The text is whole; a doubtful record is counted and named. An empty time is none."""
    objects = [{"text": "a", "created": "n/a"}, {"text": "b", "created": ""}]
    imported = import_from(store, "jsonl", lines(*objects))
    assert (imported.added, imported.refused, imported.doubtful) == (2, 0, 1)
    assert [doubt.where for doubt in imported.doubts] == ["input, line 1"]
    path = source("mem0-1.db", tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE history SET created_at = '05/01/2024' WHERE memory_id = 'm2'")
    imported = import_from(store, "mem0", path)
    assert (imported.added, imported.doubtful) == (2, 1)
    assert imported.doubts[0].where == f"{path}, table history, row 2"
    assert "05/01/2024" in imported.doubts[0].what


def test_a_time_without_a_zone_is_in_utc_for_every_kind(store: Store) -> None:
    """One rule for all importers."""
    import_from(store, "jsonl", lines({"text": "a", "created": "2026-11-01T10:00:00", "id": 1}))
    frame = store.get("import:jsonl:1")
    assert frame is not None
    assert frame.created.isoformat() == "2026-11-01T10:00:00+00:00"


def test_a_line_over_the_limit_costs_only_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rest is not kept in memory."""
    monkeypatch.setattr(json_lines, "LINE_SIZE_MAX", 1_000)
    objects = [{"text": "a"}, {"text": "b" * 3_000_000}, {"text": "c"}]
    imported = import_from(store, "jsonl", lines(*objects))
    assert (texts(store), imported.refused) == (["a", "c"], 1)
    assert imported.problems[0].where == "input, line 2"


def test_a_dry_run_lists_every_problem(store: Store) -> None:
    """Bad records are listed with their places; the counts are of the rest."""
    objects: list[Any] = [{"text": "a"}, {"text": ""}, {"txt": "b"}, {"text": "c", "tags": [""]}]
    objects += [{"text": "d", "created": "2026-11-01T10:00:00"}]
    planned = import_from(store, "jsonl", lines(*objects), dry_run=True)
    assert (planned.added, planned.refused, store.head.seq) == (2, 3, 0)
    assert [problem.where for problem in planned.problems] == [
        "input, line 3",
        "input, line 2",
        "input, line 4",
    ]
    imported = import_from(store, "jsonl", lines(*objects))
    assert (imported.added, imported.problems) == (planned.added, planned.problems)


# --- bad input -----------------------------------------------------------------------------------

BAD_LINES = {
    "empty": (b"", "The file is empty"),
    "blank": (b"\n \n", "The file is empty"),
    "cut": (b'{"text": "b', "not JSON, or was cut off"),
    "array": (b'[{"text": "a"}]', "an array"),
    "UTF-16": ('{"text": "a"}'.encode("utf-16"), "UTF-16"),
    "Latin 1": ('{"text": "é"}'.encode("latin-1"), "not JSON"),
    "foreign field": (b'{"text": "a", "body": 1}', "unknown field"),
    "number": (b'{"text": 1}', "Expected `str`"),
    "deep": (b'{"text": "a", "metadata": {"a": ' + b"[" * 70 + b"]" * 70 + b"}}", "nests"),
    "NaN": (b'{"text": "a", "metadata": {"a": NaN}}', "not JSON"),
    "export": (b'{"type":"log","format":"cerata-events/1"}', "export of Cerata"),
    "surrogate": (b'{"text": "\\ud800"}', "not JSON"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_file_of_lines_is_refused_with_its_place(name: str, store: Store) -> None:
    """Nothing is written, and the error has a remedy."""
    data, what = BAD_LINES[name]
    with pytest.raises(InvalidInput, match="(?i)" + what) as caught:
        import_from(store, "jsonl", BytesIO(data))
    assert (caught.value.where or "").startswith("input")
    assert caught.value.remedy
    assert store.head.seq == 0


def refused_at(store: Store, path: Path) -> list[str]:
    """Import a file, and return the place of its refusal, if there is one."""
    try:
        import_from(store, kind_of(path.name), path)
    except InvalidInput as error:
        return [error.where or ""]
    return []


SQLITE_KINDS = ("chroma-5.sqlite3", "langgraph-sqlite-5.db", "mem0-5.db")


@pytest.mark.parametrize("name", SQLITE_KINDS)
def test_a_bad_file_of_sqlite_is_refused_with_its_place(
    name: str, store: Store, tmp_path: Path
) -> None:
    """Empty, no SQLite, cut off, a folder, missing, and another program's."""
    kind, path = kind_of(name), source(name, tmp_path)
    whole = path.read_bytes()
    for data, what in (
        (b"", "empty"),
        (b"hello" * 100, "not a SQLite file"),
        (whole[:50], "not a SQLite file"),
        (whole[: len(whole) // 2], "cut off"),
    ):
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match=what) as caught:
            import_from(store, kind, path)
        assert caught.value.where == str(path)
    with pytest.raises((InvalidInput, NotFound), match=r"folder|not exist"):
        import_from(store, kind, tmp_path)
    path.unlink()
    with pytest.raises(NotFound):
        import_from(store, kind, path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE history (id TEXT)")
        connection.execute("CREATE TABLE store (id TEXT)")
        connection.execute("CREATE TABLE embeddings (id TEXT)")
    with pytest.raises(InvalidInput, match="has no column"):
        import_from(store, kind, path)
    assert store.head.seq == 0


@pytest.mark.parametrize("name", SQLITE_KINDS)
def test_a_damaged_page_is_refused_and_whole_records_stay(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any page may be damaged: a typed error, or the same records as of the whole file."""
    monkeypatch.setattr(run, "BATCH_RECORDS", 50)
    path = source(name, tmp_path)
    whole = path.read_bytes()
    for start in range(4096, len(whole), 4096 * (1 + len(whole) // 4096 // 8)):
        path.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        with cerata.open(":memory:") as each:
            places = refused_at(each, path)
            assert all(place.startswith(str(path)) for place in places)
            each.verify()
    path.write_bytes(whole)
    assert import_from(store, kind_of(name), path).added


def test_a_locked_file_raises_locked(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the table, and a later call succeeds."""
    monkeypatch.setattr(sqlite_files, "LOCK_SECONDS", 0.1)
    path = source("mem0-1.db", tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Locked) as caught:
        import_from(store, "mem0", path)
    assert (caught.value.where or "").startswith(str(path))
    connection.rollback()
    connection.close()
    assert import_from(store, "mem0", path).added == 2


def test_a_file_in_use_is_read_with_its_write_ahead_log(store: Store, tmp_path: Path) -> None:
    """Rows that are only in the log count; no file is made or changed."""
    path = source("mem0-1.db", tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(
        "INSERT INTO history (id, memory_id, new_memory, event) VALUES ('x', 'm9', 'new', 'ADD')"
    )
    connection.commit()
    before = sorted(os.listdir(tmp_path))
    assert import_from(store, "mem0", path).added == 3
    assert sorted(os.listdir(tmp_path)) == before == ["mem0-1.db", "mem0-1.db-shm", "mem0-1.db-wal"]
    connection.close()
    assert os.listdir(tmp_path) == ["mem0-1.db"]
    assert import_from(store, "mem0", path).added == 0
    assert os.listdir(tmp_path) == ["mem0-1.db"]


def test_a_row_that_is_not_utf_8_is_named(store: Store, tmp_path: Path) -> None:
    """The problem has the table, the row and the column; the other rows are imported."""
    path = source("mem0-1.db", tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE history SET new_memory = CAST(x'ff' AS TEXT) WHERE memory_id = 'm2'"
        )
    imported = import_from(store, "mem0", path)
    [problem] = imported.problems
    assert "new_memory is not UTF-8" in problem.what
    assert problem.where == f"{path}, table history, row 2"
    assert (imported.added, imported.refused) == (1, 1)


def test_metadata_of_a_checkpoint_that_is_not_utf_8_is_named(store: Store, tmp_path: Path) -> None:
    path = source("langgraph-sqlite-1.db", tmp_path)
    whole = import_from(store, "langgraph-sqlite", path, dry_run=True).added
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE checkpoints SET metadata = x'227ba2' "
            "WHERE rowid = (SELECT min(rowid) FROM checkpoints)"
        )
    imported = import_from(store, "langgraph-sqlite", path)
    [problem] = imported.problems
    assert "metadata is not JSON" in problem.what
    assert (imported.added, imported.refused) == (whole - 1, 1)


def test_calls_that_cannot_run_are_refused(store: Store, tmp_path: Path) -> None:
    """Nothing is read."""
    with pytest.raises(InvalidInput, match="no kind"):
        import_from(store, "csv", tmp_path)
    with pytest.raises(InvalidInput, match="is a path"):
        import_from(store, "mem0", BytesIO())
    with store.transaction(), pytest.raises(Conflict):
        import_from(store, "jsonl", lines({"text": "a"}))


# --- Chroma --------------------------------------------------------------------------------------


def test_records_of_chroma_keep_their_metadata(store: Store, tmp_path: Path) -> None:
    """Numbers, flags, texts and lists; the collection is named beside the source."""
    import_from(store, "chroma", source("chroma-2.sqlite3", tmp_path))
    frames = {frame.text: frame.metadata for frame in store.frames()}
    described = {
        text: {name: value for name, value in metadata.items() if name != "import"}
        for text, metadata in frames.items()
    }
    assert described == {
        "one": {"page": 1, "rate": 1.5, "is_new": True, "by": "é"},
        "two": {"tags": ["a", "b"]},
    }
    assert frames["one"]["import"]["collection"] == "notes"  # type: ignore[index,call-overload]


def test_collections_of_chroma_may_share_ids(store: Store, tmp_path: Path) -> None:
    """A record without a document is skipped; a folder is as good as its file."""
    source("chroma-3.sqlite3", tmp_path).rename(tmp_path / "chroma.sqlite3")
    imported = import_from(store, "chroma", tmp_path)
    assert (imported.added, imported.skipped) == (4, {"records without a document": 1})


def test_the_newest_state_of_chroma_is_imported(store: Store, tmp_path: Path) -> None:
    """Chroma keeps no history; what it deleted is absent."""
    import_from(store, "chroma", source("chroma-4.sqlite3", tmp_path))
    assert texts(store) == ["kept", "new"]


def test_a_changed_record_of_chroma_is_a_new_version(store: Store, tmp_path: Path) -> None:
    """The same record with another document takes the place of the frame."""
    path = source("chroma-1.sqlite3", tmp_path)
    import_from(store, "chroma", path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE embedding_metadata SET string_value = 'The index is flat.' "
            "WHERE string_value = 'The index is HNSW.'"
        )
    assert counts(import_from(store, "chroma", path)) == (1, 1)
    assert texts(store) == ["Anna lives in Rome.", "The index is flat."]


# --- Graphiti ------------------------------------------------------------------------------------


def facts_of(store: Store) -> list[tuple[str, str, str]]:
    return [
        (str(fact), str(fact.valid.start)[:10], str(fact.valid.end)[:10])
        for fact in store.facts(include_ended=True)
    ]


def test_an_edge_of_graphiti_is_a_fact_with_evidence(store: Store, tmp_path: Path) -> None:
    """Its times are those in which it is true, its sentence the evidence."""
    import_from(store, "graphiti", source("graphiti-1.jsonl", tmp_path))
    assert facts_of(store) == [
        ("Anna · LIVES_IN · Rome", "2024-05-15", "2026-10-02"),
        ("Anna · LIVES_IN · Paris", "2026-10-02", "None"),
    ]
    [fact] = store.facts("Anna")
    assert [place.text for place in store.graph.evidence(fact)] == ["Anna lives in Paris."]
    assert "Anna is an engineer." in texts(store)


def test_an_expired_edge_is_retracted(store: Store, tmp_path: Path) -> None:
    """The log has the fact, the present does not."""
    import_from(store, "graphiti", source("graphiti-3.jsonl", tmp_path))
    assert [fact for fact, *_ in facts_of(store)] == ["Anna · LIVES_IN · Paris"]
    assert len(store.facts("Anna", include_ended=True, include_retracted=True)) == 2


def test_an_edge_that_expired_since_retracts_its_fact(store: Store, tmp_path: Path) -> None:
    """The new version of the edge takes the place of its frame, too."""
    path = source("graphiti-1.jsonl", tmp_path)
    import_from(store, "graphiti", path)
    *nodes, rome, paris = map(json.loads, path.read_text().splitlines())
    paris |= {"expired_at": "2026-11-20T00:00:00Z", "invalid_at": "2026-11-10T00:00:00Z"}
    path.write_bytes(lines(*nodes, rome, paris).getvalue())
    assert counts(import_from(store, "graphiti", path)) == (1, 3)
    assert [fact for fact, *_ in facts_of(store)] == ["Anna · LIVES_IN · Rome"]
    assert import_from(store, "graphiti", path).added == 0


@pytest.mark.parametrize(
    "change", [{"expired_at": "soon"}, {"valid_at": "2026-11-10", "invalid_at": "2026-11-09"}]
)
def test_an_edge_that_its_source_gave_up_leaves_no_fact(
    change: dict[str, str], store: Store, tmp_path: Path
) -> None:
    """Whether or not its times can be read, or make sense."""
    path = source("graphiti-1.jsonl", tmp_path)
    *nodes, rome, paris = map(json.loads, path.read_text().splitlines())
    import_from(store, "graphiti", path)
    path.write_bytes(lines(*nodes, rome, paris | change).getvalue())
    assert import_from(store, "graphiti", path).added == 1
    assert [fact for fact, *_ in facts_of(store)] == ["Anna · LIVES_IN · Rome"]
    assert import_from(store, "graphiti", path).added == 0
    with cerata.open(":memory:") as other:
        import_from(other, "graphiti", path)
        assert [fact for fact, *_ in facts_of(other)] == ["Anna · LIVES_IN · Rome"]


def test_lines_of_graphiti_that_no_memory_takes_are_counted(store: Store, tmp_path: Path) -> None:
    """Episodes, entities without a summary, and edges without a time."""
    imported = import_from(store, "graphiti", source("graphiti-4.jsonl", tmp_path))
    assert imported.skipped == {
        "lines that are neither entities nor edges between them": 1,
        "entities without a summary, of which only the name is used": 2,
        "edges that end before they begin": 1,
    }


def test_an_edge_without_its_node_is_refused(store: Store, tmp_path: Path) -> None:
    """The error names the line."""
    path = source("graphiti-1.jsonl", tmp_path)
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[1:]))
    problem, *_ = import_from(store, "graphiti", path).problems
    assert "has no node" in problem.what
    assert problem.where == f"{path}, line 4"
    head = store.head
    path.write_text('{"name": "a"}\n')
    with pytest.raises(InvalidInput, match="missing required field"):
        import_from(store, "graphiti", path)
    assert store.head == head
