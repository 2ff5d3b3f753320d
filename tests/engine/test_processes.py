"""Threads, forks and processes on one file: nothing lost, nothing seen before it is durable."""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cerata.engine.disk.storage import LockName, OsFile, OsStorage
from cerata.engine.errors import CerataError, Closed
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.mutation.mutate import Edit, Plant

from ..inside import state_of
from .words import RING, put, texts

WRITER = """
import sys
from cerata.engine.events import Draft, PutFrame
from cerata.engine.open import open_log
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.stdin.read()
with open_log(path, ring_bytes=65536) as log:
    for number in range(count):
        done = log.append([Draft(PutFrame(text=f"{name} {number}"))])
        assert done.durable
"""


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    """Start a process that appends once its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        text=True,
    )


def start(*children: "subprocess.Popen[str]") -> None:
    for child in children:
        assert child.stdin is not None
        child.stdin.close()


def test_two_processes_write_while_a_third_reads(tmp_path: Path) -> None:
    """1,000 each: all 2,000 are there, in each one's order, and the view never goes backwards."""
    path = tmp_path / "a.cera"
    open_log(str(path), ring_bytes=RING).close()
    children = [writer(path, name, 1000) for name in "ab"]
    with open_log(str(path), mode="r") as reader:
        start(*children)
        seen: list[str | None] = []
        while any(child.poll() is None for child in children):
            head = reader.refresh()
            new = texts(reader, len(seen) + 1)
            assert len(seen) + len(new) == head.seq
            seen += new
        assert [child.wait() for child in children] == [0, 0]
        reader.refresh()
        assert texts(reader)[: len(seen)] == seen
        assert reader.head.seq == 2000
        for name in "ab":
            own = [text for text in texts(reader) if str(text).startswith(name)]
            assert own == [f"{name} {number}" for number in range(1000)]
        assert verify_log(reader).problems == ()


def test_readers_opening_while_others_write_never_cry_damage(tmp_path: Path) -> None:
    """A walk could pass a place just before a record came there, and meet its proof later."""
    path = tmp_path / "a.cera"
    open_log(str(path), ring_bytes=RING).close()
    children = [writer(path, name, 400) for name in "ab"]
    start(*children)
    last = opened = 0
    while any(child.poll() is None for child in children):
        with open_log(str(path), mode="r") as log:
            assert log.head.seq >= last
            last, opened = log.head.seq, opened + 1
    assert [child.wait() for child in children] == [0, 0]
    assert opened > 10


def test_threads_append_and_readers_see_only_what_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight threads on one handle: every append durable, and shown no earlier than that."""
    path = str(tmp_path / "a.cera")
    flush = OsFile.sync

    def slow(self: OsFile) -> None:
        time.sleep(0.003)
        flush(self)

    monkeypatch.setattr(OsFile, "sync", slow)
    with open_log(path, ring_bytes=RING) as log:
        failures: list[BaseException] = []
        done = threading.Event()

        def append(name: int) -> None:
            try:
                for number in range(50):
                    appended = log.append([put(f"{name} {number}")])
                    assert appended.durable
                    assert log.head.seq >= appended.last_seq
            except BaseException as error:
                failures.append(error)
                raise

        def watch() -> None:
            last = 0
            while not done.is_set():
                head = log.head.seq
                assert last <= head <= state_of(log).durable
                assert [event.seq for event in log.read(last + 1, head)] == [
                    *range(last + 1, head + 1)
                ]
                last = head

        threads = [threading.Thread(target=append, args=(name,)) for name in range(8)]
        watching = threading.Thread(target=watch)
        for thread in (watching, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        watching.join()
        assert failures == []
        assert log.head.seq == 400
        for name in range(8):
            own = [text for text in texts(log) if str(text).startswith(f"{name} ")]
            assert own == [f"{name} {number}" for number in range(50)]


def syncs_of_eight_threads(path: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often eight appends were synced, of which all were written in the first sync."""
    syncs = 0
    flush = OsFile.sync
    with open_log(path, ring_bytes=RING) as log:

        def patient(self: OsFile) -> None:
            nonlocal syncs
            syncs += 1
            deadline = time.monotonic() + 60
            while state_of(log).head_seq < 8 and time.monotonic() < deadline:
                time.sleep(0.001)
            flush(self)

        with monkeypatch.context() as patch:
            patch.setattr(OsFile, "sync", patient)
            threads = [
                threading.Thread(target=log.append, args=([put(str(name))],)) for name in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert log.head.seq == 8
            return syncs


def test_threads_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread syncs what was written by then, the next what came meanwhile: all of it."""
    assert syncs_of_eight_threads(str(tmp_path / "a.cera"), monkeypatch) <= 2


def test_threads_that_do_not_share_sync_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sharing is what a thread does that finds its event durable when its turn comes."""
    plant = Plant(
        "every append syncs for itself",
        "stories",
        (
            Edit(
                "cerata.engine.log:Log._sync_through",
                "if state.durable < seq:",
                "if True:",
            ),
        ),
    )
    with plant.planted():
        assert syncs_of_eight_threads(str(tmp_path / "a.cera"), monkeypatch) == 8


def test_closing_while_threads_append_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """They get a typed error; what was acknowledged is there."""
    path = str(tmp_path / "a.cera")
    for _ in range(10):
        log = open_log(path, ring_bytes=RING)
        acknowledged: list[int] = []

        def append(log: Log = log, acknowledged: list[int] = acknowledged) -> None:
            try:
                while True:
                    size = 40_000 if random.random() < 0.1 else 10
                    acknowledged.append(log.append([put("x" * size)]).last_seq)
            except CerataError:
                return

        threads = [threading.Thread(target=append) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        log.close()
        for thread in threads:
            thread.join()
        with open_log(path) as log:
            assert log.head.seq >= max(acknowledged, default=0)
            assert verify_log(log).problems == ()


def forked(child: "object") -> int:
    """Run a callable in a forked child and return its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()  # type: ignore[operator]
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_cannot_use_its_parents_handle(tmp_path: Path) -> None:
    """Nor release its locks; it may open the file for itself."""
    path = str(tmp_path / "a.cera")
    with open_log(path, ring_bytes=RING) as log:
        log.append([put("parent")])

        def child() -> None:
            for call in (lambda: log.append([put("stolen")]), log.refresh, log.read, log.seal):
                with pytest.raises(Closed, match="inherited by fork"):
                    call()
            log.close()
            with open_log(path) as own:
                assert not own.report.alone
                own.append([put("child")])

        assert forked(child) == 0
        log.append([put("parent again")])
        assert texts(log) == ["parent", "child", "parent again"]
        other = OsStorage().open(path, mode="rw")
        assert not other.try_lock(LockName.PRESENCE, exclusive=True)
        other.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_draws_salts_of_its_own(tmp_path: Path) -> None:
    """They are drawn for several appends at a time; two processes must never use the same."""
    path = str(tmp_path / "a.cera")
    with open_log(path, ring_bytes=RING) as log:
        log.append([put("before the fork")])

        def child() -> None:
            with open_log(path) as own:
                own.append([put("child")])

        assert forked(child) == 0
        log.append([put("parent")])
        salts = [event.salt for event in log.read()]
        assert len(set(salts)) == len(salts) == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_does_not_keep_its_dead_parents_locks(tmp_path: Path) -> None:
    """An inherited descriptor would hold them for as long as the child lives."""
    path = str(tmp_path / "a.cera")
    log = open_log(path, ring_bytes=RING)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"here")
        time.sleep(60)
        os._exit(0)
    assert os.read(reading, 4) == b"here"
    log.close()
    with open_log(path) as log:
        assert log.report.alone
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
