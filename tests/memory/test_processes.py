"""Several processes on one file: nothing is lost, nobody sees time go back."""

import multiprocessing
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

import cerata
from cerata.engine.disk.storage import Buffer, OsFile

from ..crash.mutants import BY_NAME

FRAMES = 1_000


def write_frames(
    path: str, name: str, count: int, plant: str | None, pause: float, start: Barrier
) -> None:
    """Write frames one by one, each durable before the next; with a bug planted, and slowly."""
    write = OsFile.write_at

    def write_later(self: OsFile, offset: int, data: Buffer) -> None:
        # Between reading where the log ends and writing there: what the lock is held for.
        time.sleep(pause)
        write(self, offset, data)

    if pause:
        OsFile.write_at = write_later  # type: ignore[method-assign]
    with nullcontext() if plant is None else BY_NAME[plant].planted(), cerata.open(path) as store:
        start.wait(60)
        for number in range(count):
            store.put_frame(f"{name} {number}", kind=name)


def two_writers_and_a_reader(
    path: Path, count: int, *, plant: str | None = None, pause: float = 0.0
) -> None:
    """Write from two processes while this one reads; raises where anything is lost or goes back."""
    context = multiprocessing.get_context("spawn")
    cerata.open(path).close()
    start = context.Barrier(2)
    writers = [
        context.Process(target=write_frames, args=(str(path), name, count, plant, pause, start))
        for name in ("a", "b")
    ]
    for process in writers:
        process.start()
    try:
        _read_while_they_write(path, count, writers)
    finally:
        for process in writers:
            process.join()


def _read_while_they_write(path: Path, count: int, writers: Sequence[BaseProcess]) -> None:
    seen = 0
    looks = 0
    with cerata.open(path, mode="r") as reader:
        while any(process.is_alive() for process in writers):
            head = reader.stream.refresh()
            assert head.seq >= seen
            if head.seq > seen:
                newest = [event.seq for event in reader.at(head.seq).log(seen + 1)]
                assert newest == list(range(seen + 1, head.seq + 1))
                looks += 1
            seen = head.seq
        assert reader.stream.refresh().seq == 2 * count
        by_kind: dict[str, list[str]] = {"a": [], "b": []}
        for frame in reader.frames():
            by_kind[frame.kind].append(frame.text)
        assert looks > 1
        for name, texts in by_kind.items():
            assert texts[::-1] == [f"{name} {number}" for number in range(count)]
        assert reader.verify().ok


def test_two_writers_and_a_reader_lose_nothing_and_never_go_back(tmp_path: Path) -> None:
    """Each MCP client starts its own server; all of them share one memory."""
    two_writers_and_a_reader(tmp_path / "memory.cera", FRAMES)


def test_without_the_writer_lock_two_writers_overwrite_each_other(tmp_path: Path) -> None:
    """The lock alone keeps them apart: the same, as slow, goes well with it."""
    two_writers_and_a_reader(tmp_path / "with.cera", 50, pause=0.002)
    with pytest.raises((AssertionError, cerata.CerataError)):
        two_writers_and_a_reader(
            tmp_path / "without.cera", 50, plant="write without the writer lock", pause=0.002
        )


def test_threads_share_a_store(tmp_path: Path) -> None:
    """An agent's tools run in threads: each sees its own writes, and nobody's half a batch."""
    failures: list[BaseException] = []

    def work(store: cerata.Store, name: str) -> None:
        try:
            for number in range(30):
                receipt = store.put_frames([f"{name} {number} left", f"{name} {number} right"])
                found = {hit.id for hit in store.search(f"{name} {number}", k=200)}
                assert set(receipt.ids) <= found
                assert len(list(store.at(receipt).frames())) % 2 == 0
        except BaseException as error:
            failures.append(error)
            raise

    with cerata.open(tmp_path / "memory.cera") as store:
        threads = [
            threading.Thread(target=work, args=(store, f"name{index}")) for index in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store) == 4 * 30 * 2
        assert store.verify().ok


def test_a_backup_answers_as_the_original(tmp_path: Path) -> None:
    """It is made while the store is open, and keeps what was known when."""
    with cerata.open(tmp_path / "memory.cera") as store:
        old = store.put_frame("the index is Annoy")
        store.supersede(old, "the index is HNSW")
        store.backup(tmp_path / "copy.cera")
        with pytest.raises(cerata.Conflict):
            store.backup(tmp_path / "copy.cera")
        with cerata.open(tmp_path / "copy.cera", mode="r") as copy:
            assert (copy.head.chain, copy.head.root) == (store.head.chain, store.head.root)
            assert copy.stream.digests() == store.stream.digests()
            assert [hit.text for hit in copy.search("index")] == ["the index is HNSW"]
            assert [hit.text for hit in copy.at(old.id).search("index")] == ["the index is Annoy"]
            assert copy.verify().ok
