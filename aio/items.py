"""Asynchronous iteration over the results of a store's iterators."""

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import islice
from typing import Final, Generic, Self, TypeVar

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
