"""Several processes on one file: nothing is lost, nobody sees time go back."""

import multiprocessing
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import cerata

FRAMES = 1_000


def write_frames(path: str, name: str) -> None:
    """Write frames one by one, each durable before the next."""
    with cerata.open(path) as store:
        for number in range(FRAMES):
            store.put_frame(f"{name} {number}", kind=name)


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Sequence[BaseProcess]]:
    """Two processes that write to one file, started."""
    context = multiprocessing.get_context("spawn")
    path = str(tmp_path / "memory.cera")
    found = [context.Process(target=write_frames, args=(path, name)) for name in ("a", "b")]
    for process in found:
        process.start()
    yield found
    for process in found:
        process.join()


def test_two_writers_and_a_reader_lose_nothing_and_never_go_back(
    tmp_path: Path, writers: Sequence[BaseProcess]
) -> None:
    """Each MCP client starts its own server; all of them share one memory."""
    path = tmp_path / "memory.cera"
    while not path.exists() and any(process.is_alive() for process in writers):
        pass
    seen = 0
    looks = 0
    with cerata.open(path, mode="r") as reader:
        while any(process.is_alive() for process in writers):
            head = reader.refresh()
            assert head.seq >= seen
            if head.seq > seen:
                newest = [event.seq for event in reader.at(head.seq).log(seen + 1)]
                assert newest == list(range(seen + 1, head.seq + 1))
                looks += 1
            seen = head.seq
        assert reader.refresh().seq == 2 * FRAMES
        by_kind: dict[str, list[str]] = {"a": [], "b": []}
        for frame in reader.frames():
            by_kind[frame.kind].append(frame.text)
        assert looks > 1
        for name, texts in by_kind.items():
            assert texts[::-1] == [f"{name} {number}" for number in range(FRAMES)]
        assert reader.verify().ok


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
            assert copy.digests() == store.digests()
            assert [hit.text for hit in copy.search("index")] == ["the index is HNSW"]
            assert [hit.text for hit in copy.at(old.id).search("index")] == ["the index is Annoy"]
            assert copy.verify().ok
