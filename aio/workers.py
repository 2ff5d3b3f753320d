"""The threads of a handle: calls run in them, each in the context of its task.

Owns the bound on the threads, cancellation, and the end. Leaves out the calls (`mirror`).
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from cerata.engine.arguments import is_integer
from cerata.engine.errors import Closed, InvalidInput

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

WORKERS: Final = 4
WORKERS_MAX: Final = 64
"""Threads of a handle."""


class Workers:
    """The threads of a handle.

    - A call that has begun runs to its end, also if its task is cancelled; a call that waits for
      a thread is dropped then.
    - After `close`, and in a child after fork, every call raises `Closed`.
    """

    def __init__(self, count: int) -> None:
        if not is_integer(count) or not 1 <= count <= WORKERS_MAX:
            raise InvalidInput(
                f"workers must be a whole number from 1 to {WORKERS_MAX}, not {count!r:.60}",
                remedy="Pass the number of calls that may run at once, such as workers=4.",
            )
        self.count = count
        self._executor = ThreadPoolExecutor(count, "cerata-aio")
        self._calls: set[Future[Any]] = set()
        self._end: Future[None] | None = None
        # A child after fork lacks the threads, so a call there would wait for ever.
        self._process = os.getpid()

    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result:
        """Return the result of a call. If the task is cancelled, a begun call goes on alone."""
        call = partial(function, *arguments, **named)
        return await asyncio.wrap_future(self._submit(call, copy_context()))

    async def finish(
        self, call: Callable[[], _Result], context: Context | None = None
    ) -> tuple[Future[_Result], asyncio.CancelledError | None]:
        """Run a call to its end, whatever cancels the task; return its future, and the cancelling.

        The caller raises the second, after it has undone the first.
        """
        future = self._submit(call, copy_context() if context is None else context)
        return future, await _end_of(future)

    def _submit(self, call: Callable[[], _Result], context: Context) -> Future[_Result]:
        if self._end is not None or os.getpid() != self._process:
            raise Closed("The store is closed", remedy="Open it again.")
        future = self._executor.submit(context.run, call)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    async def close(self, last: Callable[[], None]) -> None:
        """Wait for the calls, make a last one, and end the threads; a second call waits too."""
        if os.getpid() != self._process:
            return
        if self._end is None:
            # Calls before it in the queue have begun when it runs, so it waits for no waiting one.
            self._end = self._executor.submit(_wait_and_call, list(self._calls), last)
            self._executor.shutdown(wait=False)
        interrupted = await _end_of(self._end)
        if interrupted is not None:
            raise interrupted
        self._end.result()


def _wait_and_call(calls: list[Future[Any]], last: Callable[[], None]) -> None:
    wait(calls)
    last()


async def _end_of(future: Future[_Result]) -> asyncio.CancelledError | None:
    """Wait for the end of a begun call; return the first cancelling of the task meanwhile."""
    waiter = asyncio.wrap_future(future)
    interrupted: asyncio.CancelledError | None = None
    while not waiter.done():
        try:
            await asyncio.wait([waiter])
        except asyncio.CancelledError as error:
            interrupted = interrupted or error
    if not waiter.cancelled():
        # The caller reads it from the other future; an unread one would be reported.
        waiter.exception()
    return interrupted
