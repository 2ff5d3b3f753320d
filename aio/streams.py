"""Asynchronous streams of events: the events of the log as they are written.

Reads run in the worker threads of the store; a thread of the stream waits for changes, so that
waiting streams take no worker. Leaves out the look for events (`cerata.engine.event_tail`).
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import Final, Generic, Self, TypeVar

from cerata.engine.event_tail import EventTail
from cerata.engine.events import Event
from cerata.memory.event_stream import EventStream, StreamFilter, stream_parts

# --- Asynchronous iteration over the results of a store's iterators -------------------------------


_Item = TypeVar("_Item")

STEP: Final = 64
"""Items of a step in a worker thread: a step costs more than an item."""

Run = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a call in a worker thread."""


class AsyncItems(AsyncIterator[_Item], Generic[_Item]):
    """The items of an iterator of a store, which is read in worker threads, some items at a time.

    A cancelled step loses no item: its thread keeps them for the next step.
    """

    def __init__(self, run: Run, start: Callable[[], Iterator[_Item]]) -> None:
        self._run = run
        self._start = start
        self._iterator: Iterator[_Item] | None = None
        self._items: deque[_Item] = deque()
        self._mutex = threading.Lock()
        self._is_complete = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _Item:
        if not self._items and not self._is_complete:
            await self._run(self._take)
        if not self._items:
            raise StopAsyncIteration
        return self._items.popleft()

    def _take(self) -> None:
        with self._mutex:
            if self._items or self._is_complete:
                # A cancelled step has taken them since.
                return
            if self._iterator is None:
                self._iterator = self._start()
            for item in islice(self._iterator, STEP):
                self._items.append(item)
            self._is_complete = not self._items


# --- Asynchronous streams of events: the events of the log as they are written --------------------


class AsyncEventStream(AsyncIterator[Event], AbstractAsyncContextManager["AsyncEventStream"]):
    """An endless iterator of events, returned by `stream.follow`; see `cerata.EventStream`.

    - It begins when its block is entered, or else with the first event that is awaited.
    - A cancelled step loses no event.
    - One task iterates it; `close` ends it.
    """

    def __init__(self, run: Run, start: Callable[[], EventStream]) -> None:
        self._run = run
        self._start = start
        self._parts: tuple[EventTail, StreamFilter, float | None] | None = None
        self._events: deque[Event] = deque()
        self._mutex = threading.Lock()
        self._waiters = ThreadPoolExecutor(1, "cerata-follow")
        self._waiting: Future[None] | None = None
        self._position = 0
        self._passed = 0
        self._is_closed = False

    @property
    def position(self) -> int:
        """The seq of the last event that was yielded or that the filters left out."""
        return self._position if self._events else max(self._position, self._passed)

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        await self._run(self._begin)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __anext__(self) -> Event:
        """Return the next event, and wait for it.

        Raises:
            StopAsyncIteration: the stream was closed, or no event came for ``timeout`` seconds.
            Closed: the store was closed.
            StorageFailed: the system refused a watch of the file.
        """
        clock = asyncio.get_running_loop().time
        deadline: float | None = None
        while not self._is_closed:
            if not self._events:
                await self._run(self._take)
            if self._events:
                event = self._events.popleft()
                self._position = event.seq
                return event
            assert self._parts is not None
            timeout = self._parts[2]
            if timeout is not None:
                deadline = clock() + timeout if deadline is None else deadline
                if clock() >= deadline:
                    break
            await self._wait(None if deadline is None else deadline - clock())
        raise StopAsyncIteration

    def _begin(self) -> None:
        with self._mutex:
            if self._parts is None:
                self._parts = stream_parts(self._start())
                self._passed = self._parts[0].position

    def _take(self) -> None:
        """Add events that are durable now; a cancelled step may have added some before."""
        self._begin()
        assert self._parts is not None
        tail, chosen, _ = self._parts
        with self._mutex:
            while not tail.is_ending and len(self._events) < STEP:
                event = tail.take()
                if event is None:
                    break
                if chosen.admits(event):
                    self._events.append(event)
                self._passed = event.seq

    async def _wait(self, seconds: float | None) -> None:
        """Wait for a change; the wait of a cancelled step goes on, and its report counts."""
        assert self._parts is not None
        if self._is_closed:
            # During the last look.
            return
        if self._waiting is None:
            self._waiting = self._waiters.submit(self._parts[0].wait, seconds)
        waiting = self._waiting
        await asyncio.wait([asyncio.wrap_future(waiting)], timeout=seconds)
        if waiting.done():
            self._waiting = None
            # A wait that failed at once would fail again for ever.
            waiting.result()

    async def close(self) -> None:
        """End the iteration; a second call does nothing. The store stays open."""
        self._is_closed = True
        if self._parts is None:
            return
        tail = self._parts[0]
        tail.end()
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            await asyncio.wait([asyncio.wrap_future(waiting)])
        with self._mutex:
            tail.release()
        self._waiters.shutdown(wait=False)

    def __del__(self) -> None:
        if self._parts is not None:
            self._parts[0].end()
