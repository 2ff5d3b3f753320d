"""Following the log: each durable event once, in order, at once, from any process, at no cost."""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

import cerata
from cerata import Diverged, EventStream, InvalidInput, NotFound
from cerata.engine import event_tail
from cerata.engine.disk.environment import Environment, SystemClock
from cerata.engine.disk.inotify import FileWatch
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.disk.storage import OsStorage
from cerata.engine.disk.watch import PolledWatch
from cerata.events import PutFrame

from ..clocks import StandingClock
from ..inside import log_of, state_of

ALICE = {"tenant": "alice"}
BOB = {"tenant": "bob"}
DELAY_SECONDS_MAX = 0.5
"""25 times the goal: the machine may be busy. The look of the last resort comes after a second."""

IDLE_SHARE_MAX = 0.01
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this watch")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.cera"


@pytest.fixture
def store(path: Path) -> Iterator[cerata.Store]:
    with cerata.open(path) as store:
        yield store


def seqs(stream: EventStream) -> list[int]:
    return [event.seq for event in stream]


class Unwatched(OsStorage):
    """Files whose changes the system does not report."""

    def watch(self, path: str) -> None:
        return None


# --- which events --------------------------------------------------------------------------------


def test_a_stream_begins_after_its_point_and_continues(store: cerata.Store) -> None:
    receipts = [store.put_frame(text) for text in "abc"]
    later = store.stream.follow(timeout=0)
    assert seqs(store.stream.follow(0, timeout=0)) == [1, 2, 3]
    assert seqs(store.stream.follow(receipts[1], timeout=0)) == [3]
    assert seqs(store.stream.follow("HEAD~2", timeout=0)) == [2, 3]
    assert seqs(store.stream.follow(store.at(1), timeout=0)) == [2, 3]
    assert seqs(later) == []
    with store.transaction():
        store.put_frame("d")
        store.put_frame("e")
        # The log alone counts: drafts have no seq yet.
        assert seqs(later) == []
    assert seqs(later) == [4, 5]
    assert later.position == 5


def test_a_filtered_stream_passes_over_the_rest(store: cerata.Store) -> None:
    note = store.put_frame("a", options=cerata.PutOptions(actor="anna"))
    store.delete(note, actor="ben")
    store.history.tag("v1")
    assert seqs(store.stream.follow(0, types="putFrame", timeout=0)) == [1]
    assert seqs(store.stream.follow(0, types=[PutFrame, "putTag"], timeout=0)) == [1, 3]
    stream = store.stream.follow(0, actor="ben", timeout=0)
    assert seqs(stream) == [2]
    # Another stream need not read the left out event again.
    assert stream.position == 3


def test_a_scope_hides_the_events_of_others_and_the_erased(store: cerata.Store) -> None:
    alice, bob = store.scoped(ALICE), store.scoped(BOB)
    alice.put_frame("hers")
    bob.put_frame("his")
    bob.scoped({"user": "phone"}).put_frame("his phone's")
    assert seqs(alice.stream.follow(0, timeout=0)) == [1]
    assert seqs(store.stream.follow(0, scope=BOB, timeout=0)) == [2, 3]
    assert seqs(bob.stream.follow(0, scope={"user": "phone"}, timeout=0)) == [3]
    with pytest.raises(InvalidInput):
        alice.stream.follow(0, scope=BOB)


def test_a_position_of_another_log_is_refused(
    store: cerata.Store, path: Path, tmp_path: Path
) -> None:
    """A seq names no log: a consumer that keeps a head's text notices a replaced file."""
    store.put_frame("a")
    text = store.head.text
    store.put_frame("b")
    assert seqs(store.stream.follow(text, timeout=0)) == [2]
    with cerata.open(tmp_path / "other.cera") as other:
        other.put_frame("a")
        with pytest.raises(InvalidInput, match="another memory"):
            other.stream.follow(text)
        with pytest.raises(InvalidInput, match="another memory"):
            other.stream.follow(store.head)
    with store.upkeep.fork(1) as fork:
        fork.put_frame("c")
        fork.put_frame("d")
        assert seqs(fork.stream.follow(text, timeout=0)) == [2, 3, 4]
        with pytest.raises(Diverged) as caught:
            store.stream.follow(fork.at(2).head.text)
        assert caught.value.kind == "fork"
        with pytest.raises(Diverged) as caught:
            store.stream.follow(fork.head.text)
        assert caught.value.kind == "rollback"
        with pytest.raises(Diverged):
            store.stream.follow(fork.head)
    with pytest.raises(NotFound):
        store.stream.follow(3)


@pytest.mark.parametrize("named", [{"timeout": -1}, {"timeout": "1"}, {"types": [None]}])
def test_unusable_arguments_are_refused_at_once(
    store: cerata.Store, named: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        store.stream.follow(**cast("Any", named))


# --- the wait ------------------------------------------------------------------------------------


def delay_of(path: Path, environment: Environment | None) -> float:
    """Return the median seconds from the end of another handle's write to the delivery."""
    arrivals: list[float] = []
    with (
        cerata.open(path, mode="r", environment=environment) as reader,
        cerata.open(path) as writer,
        reader.stream.follow(timeout=5) as stream,
    ):

        def wait() -> None:
            next(stream)
            arrivals.append(time.monotonic())

        delays: list[float] = []
        for number in range(5):
            thread = threading.Thread(target=wait)
            thread.start()
            # The follower waits by then, in most of the rounds of a busy machine.
            time.sleep(0.1)
            writer.put_frame(f"note {number}")
            written = time.monotonic()
            thread.join()
            delays.append(arrivals[-1] - written)
    assert len(arrivals) == 5
    return statistics.median(delays)


def idle_share_of(path: Path, environment: Environment | None, seconds: float = 1.5) -> float:
    """Return the share of a core that a waiting stream uses."""
    with cerata.open(path, mode="r", environment=environment) as store:
        stream = store.stream.follow(timeout=seconds)
        started = time.thread_time()
        assert seqs(stream) == []
        return (time.thread_time() - started) / seconds


@needs_linux
def test_an_event_comes_at_once_and_an_idle_stream_costs_nothing(path: Path) -> None:
    """The system wakes the stream: neither a pause between looks nor a loop of looks."""
    cerata.open(path).close()
    assert delay_of(path, None) < DELAY_SECONDS_MAX
    assert idle_share_of(path, None) < IDLE_SHARE_MAX


@needs_linux
@pytest.mark.parametrize("plant", ["no watch", "busy polling"])
def test_the_rules_above_are_seen_failing(
    path: Path, monkeypatch: pytest.MonkeyPatch, plant: str
) -> None:
    """Without a watch the second's look alone finds events; without a pause a core is used up."""
    cerata.open(path).close()
    if plant == "no watch":
        monkeypatch.setattr(FileWatch, "wait", sleep_through)
        assert delay_of(path, None) > DELAY_SECONDS_MAX
    else:
        monkeypatch.setattr(FileWatch, "wait", return_at_once)
        for gap in ("_LOOK_GAP_SECONDS", "_SETTLE_SECONDS"):
            monkeypatch.setattr(event_tail, gap, 0)
        assert idle_share_of(path, None) > IDLE_SHARE_MAX


def sleep_through(_: FileWatch, seconds: float) -> None:
    time.sleep(seconds)


def return_at_once(_: FileWatch, seconds: float) -> None:
    return


def test_a_stream_without_a_watch_looks_in_short_pauses(path: Path) -> None:
    """Other systems, and a user who has used up the watches."""
    cerata.open(path).close()
    environment = Environment(storage=Unwatched())
    assert delay_of(path, environment) < DELAY_SECONDS_MAX
    assert idle_share_of(path, environment) < 10 * IDLE_SHARE_MAX


def test_the_pauses_are_those_of_the_clock_of_the_environment(path: Path) -> None:
    """The simulator's time passes while a stream waits."""
    clock = SleepingClock(1_772_355_600_000_000)
    environment = Environment(storage=MemoryUnwatched(), clock=clock)
    with cerata.open("m.cera", environment=environment) as store:
        store.put_frame("a")
        assert seqs(store.stream.follow(0, timeout=30)) == [1]
    assert 30 <= clock.slept < 31


class SleepingClock(StandingClock):
    """A clock that moves by its sleeps alone."""

    slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


class MemoryUnwatched(MemoryStorage):
    """Memory whose changes are not reported."""

    def watch(self, path: str) -> None:
        return None


def test_a_write_to_memory_wakes_its_stream() -> None:
    with cerata.open(":memory:") as store, store.stream.follow(timeout=5) as stream:
        threading.Timer(0.05, store.put_frame, ("a",)).start()
        started = time.monotonic()
        assert next(stream).seq == 1
        assert time.monotonic() - started < 0.9


@needs_linux
def test_a_stream_follows_the_file_that_replaces_its_file(path: Path, tmp_path: Path) -> None:
    """A compaction renames a new file over the old one: the watch must be of the new one."""
    path.write_bytes(b"old")
    watch = FileWatch(str(path))
    new = tmp_path / "new"
    new.write_bytes(b"new")
    os.replace(new, path)
    watch.wait(5)
    with path.open("ab", buffering=0) as file:
        started = time.monotonic()
        threading.Timer(0.05, file.write, (b"more",)).start()
        watch.wait(5)
        assert time.monotonic() - started < 2
    watch.close()
    watch.close()
    watch.wake()


@needs_linux
def test_a_symbolic_link_is_watched_at_its_target(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    cerata.open(folder / "m.cera").close()
    path.symlink_to(folder / "m.cera")
    assert delay_of(path, None) < DELAY_SECONDS_MAX


@needs_linux
def test_a_refused_watch_is_replaced_by_pauses(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user has 128 watches, and a process may lack a descriptor."""
    path.write_bytes(b"")

    def refuse(*_: object) -> int:
        raise OSError(24, "no descriptor")

    monkeypatch.setattr(os, "eventfd", refuse)
    before = len(os.listdir("/proc/self/fd"))
    assert isinstance(Environment().watch(str(path)), PolledWatch)
    assert isinstance(Environment().watch(str(path / "gone")), PolledWatch)
    assert len(os.listdir("/proc/self/fd")) == before


# --- the end -------------------------------------------------------------------------------------


def ended_by(end: Callable[[], object], stream: EventStream) -> float:
    """Return how long a waiting stream went on after a call in another thread."""
    threading.Timer(0.1, end).start()
    started = time.monotonic()
    assert seqs(stream) == []
    return time.monotonic() - started - 0.1


@pytest.mark.parametrize("kind", ["file", "memory", "unwatched"])
def test_close_ends_a_waiting_stream_and_releases_its_watch(path: Path, kind: str) -> None:
    environment = Environment(storage=Unwatched()) if kind == "unwatched" else None
    place = ":memory:" if kind == "memory" else path
    with cerata.open(place, environment=environment) as store:
        before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
        stream = store.stream.follow()
        assert ended_by(stream.close, stream) < DELAY_SECONDS_MAX
        assert seqs(stream) == []
        stream.close()
        if sys.platform == "linux":
            assert len(os.listdir("/proc/self/fd")) == before
        assert store.put_frame("a").seqs == (1,)


def test_a_signal_handler_may_close_a_stream(store: cerata.Store) -> None:
    """SIGTERM ends a consumer between two events; a lock here would wait for itself."""
    stream = store.stream.follow(timeout=20)

    def end(_: int, __: FrameType | None) -> None:
        stream.close()

    before = signal.signal(signal.SIGUSR1, end)
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        started = time.monotonic()
        assert seqs(stream) == []
        assert time.monotonic() - started < 5
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_end_of_the_store_ends_the_wait_with_closed(path: Path) -> None:
    cerata.open(path).close()
    store = cerata.open(path, mode="r")
    stream = store.stream.follow()
    threading.Timer(0.1, store.close).start()
    started = time.monotonic()
    with pytest.raises(cerata.Closed):
        next(stream)
    assert time.monotonic() - started < DELAY_SECONDS_MAX + 0.1


def stream_of(stream: EventStream) -> Iterator[int]:
    return (event.seq for event in stream)


def test_threads_share_a_stream(store: cerata.Store) -> None:
    """Each event goes to one of them."""
    stream = store.stream.follow(0)
    lists: list[list[int]] = [[], []]
    threads = [threading.Thread(target=rows.extend, args=(stream_of(stream),)) for rows in lists]
    for thread in threads:
        thread.start()
    for number in range(40):
        store.put_frame(f"note {number}")
    while stream.position < 40:
        time.sleep(0.01)
    stream.close()
    for thread in threads:
        thread.join()
    assert sorted(lists[0] + lists[1]) == list(range(1, 41))


def test_an_inherited_stream_raises_and_takes_nothing_from_its_parent(
    store: cerata.Store,
) -> None:
    stream = store.stream.follow(timeout=1)
    assert seqs(stream) == []
    child = os.fork()
    if not child:
        try:
            next(stream)
        except cerata.Closed:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store.put_frame("a")
    assert next(stream).seq == 1


# --- durable, once, whole ------------------------------------------------------------------------


def test_only_durable_events_come(path: Path) -> None:
    """Under a policy in bytes this store shows its own events before their sync."""
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 20)) as store:
        stream = store.stream.follow(0, timeout=0)
        assert not store.put_frame("a").durable
        assert state_of(log_of(store)).durable == 0
        assert seqs(stream) == [1]
        assert state_of(log_of(store)).durable == 1


def test_a_batch_of_a_killed_writer_comes_whole_or_not_at_all(path: Path) -> None:
    """A writer dies at any point; each event that it was told of comes, once, in order."""
    program = (
        "import cerata, sys\n"
        "with cerata.open(sys.argv[1]) as store:\n"
        "    for number in range(100_000):\n"
        "        receipt = store.put_frames([f'{number} {at}' for at in range(5)])\n"
        "        print(receipt.seqs[-1], flush=True)\n"
    )
    cerata.open(path).close()
    reader = cerata.open(path, mode="r")
    stream = reader.stream.follow(0)
    events: list[cerata.Event] = []
    thread = threading.Thread(target=lambda: events.extend(stream))
    thread.start()
    acknowledged = 0
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(10):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    with cerata.open(path) as store:
        head = store.head.seq
    deadline = time.monotonic() + 20
    while stream.position < head and time.monotonic() < deadline:
        time.sleep(0.01)
    stream.close()
    thread.join()
    reader.close()
    assert head >= acknowledged
    assert head % 5 == 0
    assert [event.seq for event in events] == list(range(1, head + 1))


def follow_all(path: Path, lines: Connection) -> None:
    """Send each event, and what a view of the first event reads then; runs in a child."""
    with cerata.open(path, mode="r") as store:
        view = store.at(1)
        for event in store.stream.follow(0):
            texts = [frame.text for frame in view.frames()]
            lines.send((event.seq, event.type, texts, store.head.seq >= event.seq))


def write_each(path: Path, texts: Connection) -> None:
    """Put each text that comes, and answer with its id, until None comes; runs in a child."""
    with cerata.open(path) as store:
        for text in iter(texts.recv, None):
            texts.send(store.put_frame(text).id)


@pytest.mark.usefixtures("any_size")
def test_a_follower_and_a_writer_in_other_processes_follow_a_compaction(path: Path) -> None:
    """The path names another file then; a stream of the old file would wait for ever.

    The processes are forks: two new interpreters took all the time of the test.
    """
    with cerata.open(path) as store:
        store.put_frame("first")
    fork = get_context("fork")
    lines, lines_sent = fork.Pipe(duplex=False)
    texts, texts_taken = fork.Pipe()
    follower = fork.Process(target=follow_all, args=(path, lines_sent), daemon=True)
    writer = fork.Process(target=write_each, args=(path, texts_taken), daemon=True)
    follower.start()
    writer.start()

    def written(text: str) -> int:
        texts.send(text)
        assert texts.poll(20)
        return int(texts.recv())

    with cerata.open(path) as store:
        seen: list[object] = []
        for number in range(3):
            inode = path.stat().st_ino
            assert written(f"{number} of the writer") == 2 * number + 2
            store.upkeep.compact()
            assert path.stat().st_ino != inode
            started_at = time.monotonic()
            store.put_frame(f"{number} of the compactor")
            while len(seen) < store.head.seq:
                assert lines.poll(20)
                seen.append(lines.recv())
            assert time.monotonic() - started_at < 10 * DELAY_SECONDS_MAX
        # The view of event 1 answers the same from each file.
        assert seen == [(seq, "putFrame", ["first"], True) for seq in range(1, 8)]
        assert written("the last") == 8
        texts.send(None)
        writer.join()
        follower.kill()
        follower.join()
    assert (writer.exitcode, follower.exitcode) == (0, -signal.SIGKILL)


def test_a_copied_file_continues_at_the_position(path: Path, tmp_path: Path) -> None:
    """A consumer on a restored backup reads on, or learns that the backup is older."""
    with cerata.open(path) as store:
        store.put_frame("a")
        store.backup(tmp_path / "b.cera")
        store.put_frame("b")
        position = store.head.text
    with cerata.open(tmp_path / "b.cera") as backup, pytest.raises(Diverged) as caught:
        backup.stream.follow(position)
    assert caught.value.kind == "rollback"
    shutil.copy(path, tmp_path / "c.cera")
    with cerata.open(tmp_path / "c.cera") as copy:
        copy.put_frame("c")
        assert seqs(copy.stream.follow(position, timeout=0)) == [3]


def test_the_clock_of_the_machine_is_the_default() -> None:
    """Guards the simulated clock above."""
    assert isinstance(Environment().clock, SystemClock)
