"""The asynchronous store: threads, cancellation, transactions of a task, streams, the end."""

import asyncio
import os
import pickle
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cerata
import cerata.aio
from cerata import Closed, Conflict, InvalidInput, NotFound, StorageFailed
from cerata.aio import AsyncStore, AsyncView
from cerata.aio.workers import Workers
from cerata.engine.disk.watch import Watch
from cerata.engine.log import Log

from .cancellations import run as run_cancellations

ALICE = {"tenant": "alice"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.cera"


def in_store(
    body: Callable[[AsyncStore], Awaitable[None]], path: Path | str = ":memory:", **named: Any
) -> None:
    """Run a test's coroutine on an open store."""

    async def main() -> None:
        async with cerata.aio.open(path, **named) as store:
            await body(store)

    asyncio.run(main())


# --- calls ----------------------------------------------------------------------------------------


def test_calls_are_those_of_the_store() -> None:
    async def body(store: AsyncStore) -> None:
        note = await store.put_frame("The index is Annoy.", tags=["plan"])
        await store.supersede(note, "The index is HNSW.")
        [hit] = await store.search("index")
        assert (hit.text, store.path, store.scope) == ("The index is HNSW.", ":memory:", None)
        view = await store.at(note)
        assert isinstance(view, AsyncView)
        assert [frame.text async for frame in view.frames()] == ["The index is Annoy."]
        assert len(await store.diff(view, "HEAD")) == 1
        assert (await store.at(view)).basis == view.basis == (await view.head()).seq
        assert [event.seq async for event in store.log()] == [1, 2, 3]
        async with store.scoped(ALICE) as hers:
            assert await hers.count() == (0, 0)
        # The end of a scoped store leaves the file and the threads.
        async with await store.upkeep.fork() as fork:
            await fork.put_frame("in the fork")
            assert len((await store.history.compare(fork)).there) == 1
        with pytest.raises(NotFound):
            await store.frame(99)
        assert await store.run(lambda: store.sync.head.root) == (await store.head()).root

    in_store(body)


def test_results_are_read_in_the_thread(path: Path) -> None:
    """A hit reads its frame on first use: the event loop would wait for the disk."""

    async def body(store: AsyncStore) -> None:
        await store.put_frame("The index is Annoy.")
        hits = await store.search("index")
        assert "frame" in vars(hits[0])
        page = await store.history.timeline()
        assert all("frame" in vars(entry) for entry in page.entries)

    in_store(body, path)


def test_at_most_so_many_calls_run_at_once() -> None:
    running: list[int] = []
    most: list[int] = []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()

    async def body(store: AsyncStore) -> None:
        await asyncio.gather(*(store.run(work) for _ in range(20)))

    in_store(body, workers=3)
    assert max(most) == 3
    for workers in (0, 65, True, "4"):
        with pytest.raises(InvalidInput, match="workers"):
            cerata.aio.open(":memory:", workers=workers)  # type: ignore[arg-type]


def test_the_event_loop_goes_on_during_a_call() -> None:
    async def body(store: AsyncStore) -> None:
        gate = threading.Event()
        call = asyncio.ensure_future(store.run(gate.wait, 10))
        await asyncio.sleep(0.01)
        gate.set()
        assert await call

    in_store(body)


def test_callbacks_run_in_the_thread_with_the_store_itself() -> None:
    async def body(store: AsyncStore) -> None:
        await store.put_frame("a")
        threads: set[str] = set()

        def is_empty(view: cerata.View) -> bool:
            threads.add(threading.current_thread().name)
            return not len(view)

        assert (await store.history.bisect(is_empty)).seq == 1
        assert all(name.startswith("cerata-aio") for name in threads)

    in_store(body)


# --- the handle -----------------------------------------------------------------------------------


def test_open_is_awaited_or_entered_and_close_ends_both(path: Path) -> None:
    async def main() -> None:
        store = await cerata.aio.open(path)
        await store.put_frame("a")
        await store.close()
        await store.close()
        with pytest.raises(Closed):
            await store.count()
        with pytest.raises(NotFound):
            await cerata.aio.open(path.with_name("none.cera"), mode="r")
        async with cerata.aio.open(path, mode="r") as store:
            assert await store.count() == (1, 0)

    asyncio.run(main())
    deadline = time.monotonic() + 10
    while any(thread.name.startswith("cerata-aio") for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "a thread outlives its store"
        time.sleep(0.01)


def test_close_waits_for_the_calls_that_have_begun(path: Path) -> None:
    async def main() -> None:
        store = await cerata.aio.open(path)
        gate = threading.Event()

        def slow() -> None:
            gate.wait(10)
            store.sync.put_frame("written during close")

        call = asyncio.ensure_future(store.run(slow))
        await asyncio.sleep(0.02)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        # A cancelled close goes on to its end, too.
        closing.cancel()
        await asyncio.sleep(0.02)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await call

    asyncio.run(main())
    with cerata.open(path, mode="r") as store:
        assert len(store) == 1


def test_a_cancelled_open_leaves_no_open_file(path: Path) -> None:
    async def main() -> None:
        for number in range(20):
            opening = asyncio.ensure_future(_entered(path))
            await asyncio.sleep(number / 2_000)
            opening.cancel()
            try:
                await (await opening).close()
            except asyncio.CancelledError:
                continue

    async def _entered(path: Path) -> AsyncStore:
        return await cerata.aio.open(path)

    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    asyncio.run(main())
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_handle_is_not_pickled_and_ends_in_a_child(path: Path) -> None:
    """A child lacks the threads: its call would wait for ever."""

    async def body(store: AsyncStore) -> None:
        await store.put_frame("a")
        with pytest.raises(cerata.Unsupported):
            pickle.dumps(store)
        child = os.fork()
        if not child:
            coroutine = store.count()
            try:
                coroutine.send(None)
            except Closed:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7  # noqa: ASYNC222
        assert await store.count() == (1, 0)

    in_store(body, path)


# --- transactions ---------------------------------------------------------------------------------


def test_a_transaction_belongs_to_its_task() -> None:
    async def body(store: AsyncStore) -> None:
        inside, outside = asyncio.Event(), asyncio.Event()

        async def another() -> int:
            await inside.wait()
            receipt = await store.put_frame("of another task")
            outside.set()
            return receipt.seqs[0]

        task = asyncio.ensure_future(another())
        async with store.transaction(actor="anna") as transaction:
            first = await store.put_frame("a")
            assert first.id == -1
            inside.set()
            await outside.wait()
            # Tasks that begin in the block join it, one call after the other.
            await asyncio.gather(*(store.put_frame(f"b{number}") for number in range(9)))
            assert await store.count() == (11, 0)
        assert await task == 1
        assert transaction.receipt.seqs == tuple(range(2, 12))
        assert (await store.put_frame("after")).seqs == (12,)

    in_store(body)


def test_an_exception_in_the_block_writes_nothing() -> None:
    async def body(store: AsyncStore) -> None:
        with suppress(ZeroDivisionError):
            async with store.transaction():
                await store.put_frame("a")
                raise ZeroDivisionError
        with pytest.raises(Conflict):
            async with store.transaction(expect=5):
                await store.put_frame("a")
        with pytest.raises(Conflict, match="open already"):
            async with store.transaction(), store.transaction():
                pass
        assert await store.count() == (0, 0)
        assert (await store.put_frame("b")).seqs == (1,)

    in_store(body)


def test_a_cancelled_block_writes_nothing() -> None:
    async def body(store: AsyncStore) -> None:
        async def block() -> None:
            async with store.transaction():
                await store.put_frame("a")
                await asyncio.sleep(10)

        task = asyncio.ensure_future(block())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.count() == (0, 0)

    in_store(body)


# --- cancellation ---------------------------------------------------------------------------------


def test_a_call_that_waits_for_a_thread_is_dropped_and_a_begun_one_ends(path: Path) -> None:
    async def body(store: AsyncStore) -> None:
        gate = threading.Event()

        def slow() -> None:
            gate.wait(10)
            store.sync.put_frame("begun")

        begun = asyncio.ensure_future(store.run(slow))
        await asyncio.sleep(0.02)
        waiting = asyncio.ensure_future(store.put_frame("waiting"))
        await asyncio.sleep(0.02)
        for task in (begun, waiting):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        gate.set()
        assert await store.count() == (1, 0)

    in_store(body, path, workers=1)
    with cerata.open(path, mode="r") as store:
        assert [frame.text for frame in store.frames()] == ["begun"]


def test_a_timeout_is_kept_while_the_call_goes_on() -> None:
    async def body(store: AsyncStore) -> None:
        gate = threading.Event()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await store.run(gate.wait, 10)
        gate.set()

    in_store(body)


def test_cancellations_lose_and_double_nothing(path: Path, seed: int) -> None:
    """`python -m tests.aio.cancellations --rounds 1000` is the long run."""
    outcome = asyncio.run(run_cancellations(path, 60, seed))
    assert outcome.cancelled >= 60


def test_a_doubled_write_is_seen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule above, seen failing: a cancelled call that is tried again."""
    once = Workers.run

    async def twice(self: Workers, function: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return await once(self, function, *arguments, **named)
        except asyncio.CancelledError:
            await once(self, function, *arguments, **named)
            raise

    monkeypatch.setattr(Workers, "run", twice)
    with pytest.raises(AssertionError, match="doubled"):
        asyncio.run(run_cancellations(path, 150, 1))


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_wakes_its_task(path: Path) -> None:
    async def body(store: AsyncStore) -> None:
        async with store.stream.follow() as events:
            step = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0.1)
            started = time.monotonic()
            with cerata.open(path) as other:
                other.put_frame("a")
                assert (await step).seq == 1
                assert time.monotonic() - started < 0.9
            assert events.position == 1
        assert [event.seq async for event in store.stream.follow(0, timeout=0)] == [1]
        assert [event async for event in store.stream.follow(timeout=0.05)] == []
        assert [event async for event in store.stream.follow(0, types="putTag", timeout=0)] == []
        with pytest.raises(NotFound):
            await anext(store.stream.follow(99))

    in_store(body, path)


def test_waiting_streams_take_no_thread_of_the_calls(path: Path) -> None:
    async def body(store: AsyncStore) -> None:
        streams = [store.stream.follow(0) for _ in range(3)]
        steps = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.1)
        await store.put_frame("a")
        assert [event.seq for event in await asyncio.gather(*steps)] == [1, 1, 1]
        for stream in streams:
            await stream.close()

    in_store(body, path, workers=1)


def test_a_cancelled_step_loses_no_event_and_no_report(path: Path) -> None:
    async def body(store: AsyncStore) -> None:
        async with store.stream.follow() as events:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.02)
            await store.put_frame("a")
            started = time.monotonic()
            assert (await anext(events)).seq == 1
            assert time.monotonic() - started < 0.9

    in_store(body, path)


def test_close_ends_a_waiting_stream_and_the_store_too(path: Path) -> None:
    async def body(store: AsyncStore) -> None:
        stream = store.stream.follow()
        step = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.05)
        await stream.close()
        with pytest.raises(StopAsyncIteration):
            await step
        last = asyncio.ensure_future(anext(store.stream.follow()))
        await asyncio.sleep(0.05)
        await store.close()
        with pytest.raises(Closed):
            await last

    in_store(body, path)


def test_a_wait_that_fails_ends_the_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream tried again at once, without end: a task that never returned, at a whole core."""
    tries: list[int] = []

    def refuse(_: Log) -> Watch:
        tries.append(1)
        raise StorageFailed("Cannot watch the file", where=str(path), remedy="Close files.")

    async def body(store: AsyncStore) -> None:
        async with store.stream.follow() as events:
            with monkeypatch.context() as patch:
                patch.setattr(Log, "watch", refuse)
                with pytest.raises(StorageFailed, match="Cannot watch"):
                    await asyncio.wait_for(anext(events), 5)
            assert len(tries) == 1
            await store.put_frame("a")
            assert (await anext(events)).seq == 1

    in_store(body, path)
