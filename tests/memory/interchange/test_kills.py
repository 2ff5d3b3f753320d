"""Kills during an import: the file holds whole batches, and the next import goes on at its head."""

import os
import signal
import time
from itertools import count
from pathlib import Path
from random import Random
from unittest import mock

import cerata
from cerata.memory.interchange import importing


def _import_in_child(path: Path, lines: Path, seconds: float) -> None:
    """Import in a child process, and kill it after some seconds of the import."""
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # Small groups, so that a kill finds some of them written.
            importing.GROUP_EVENTS = 50  # type: ignore[misc]
            with cerata.open(path) as store:
                os.write(begun, b"!")
                store.interchange.import_events(lines)
        finally:
            os._exit(0)
    os.read(ready, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(begun)


def test_an_import_that_was_killed_goes_on(tmp_path: Path, seed: int) -> None:
    lines, path = tmp_path / "events.jsonl.zst", tmp_path / "copy.cera"
    with cerata.open(tmp_path / "log.cera") as store:
        for number in range(400):
            store.put_frames([f"note {number} {place} {'x' * 50}" for place in range(7)])
        store.interchange.export_events(lines)
        expected = store.head.log_id, store.head.seq, store.head.chain, store.head.root
    drawn = Random(seed)
    heads: list[int] = []
    for _ in range(6):
        _import_in_child(path, lines, drawn.uniform(0, 0.15))
        with cerata.open(path, mode="r") as copy:
            heads.append(copy.head.seq)
            assert copy.verify().ok
    assert all(head % 7 == 0 for head in heads)
    assert heads == sorted(heads)
    with cerata.open(path) as copy:
        result = copy.interchange.import_events(lines)
        # An opener for writing may find one more group than a reader.
        assert result.known % 7 == 0
        assert result.known >= heads[-1]
        assert (copy.head.log_id, copy.head.seq, copy.head.chain, copy.head.root) == expected
        assert copy.verify().ok
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "copy.cera",
        "events.jsonl.zst",
        "log.cera",
    ]


def _import_up_to(path: Path, lines: Path, calls: int) -> bool:
    """Import in a child that dies before a write; return whether it died."""
    child = os.fork()
    if child == 0:
        write, numbers = os.pwrite, count(1)

        def counted(descriptor: int, data: bytes, offset: int) -> int:
            if next(numbers) == calls:
                os._exit(7)
            return write(descriptor, data, offset)

        try:
            with mock.patch.object(os, "pwrite", counted), cerata.open(path) as store:
                store.interchange.import_events(lines)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 7


def test_a_copy_that_died_before_each_of_its_writes_verifies(tmp_path: Path) -> None:
    """An opener took the TOC that gave the log another id, which no header page had yet."""
    lines = tmp_path / "events.jsonl.zst"
    with cerata.open(tmp_path / "log.cera") as store:
        store.put_frames(["one", "two"])
        store.interchange.export_events(lines)
    calls = 1
    while _import_up_to(path := tmp_path / f"copy-{calls}.cera", lines, calls):
        with cerata.open(path) as copy:
            assert copy.verify().log.problems == (), calls
        with cerata.open(path, mode="r") as copy:
            assert copy.verify().ok, calls
        calls += 1
    assert calls > 10
