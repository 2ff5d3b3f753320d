"""Calls from asyncio: each runs in a thread, and a call that has begun always finishes.

Owns cancellation: a cancelled task waits for its call, then raises `asyncio.CancelledError`. So a
write never goes on after its caller, as in openai-agents issue 1658. Leaves out the calls.
"""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def finished(
    call: Callable[_Arguments, _Result],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Result:
    """Return the result of a call in a thread, which runs to its end even if it is cancelled.

    Raises:
        asyncio.CancelledError: the task was cancelled; the call has ended.
    """
    run = partial(copy_context().run, call, *arguments, **named)
    future = asyncio.get_running_loop().run_in_executor(None, run)
    interrupted: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            interrupted = interrupted or error
    if interrupted is not None:
        # An exception that no one reads would be reported.
        future.exception()
        raise interrupted
    return future.result()
