"""Transactions of a task: the calls of its store join the open block, one after the other.

The block of a store is found by a context variable, which each call carries into its thread. Tasks
that are created in the block inherit it, and their calls join; a lock keeps two of them from
running at once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Context, ContextVar, copy_context
from types import MappingProxyType, TracebackType
from typing import Final

from cerata.memory.batch.transaction import Transaction

from .workers import Workers

_LOCKS: ContextVar[Mapping[object, threading.Lock]] = ContextVar(
    "locks", default=MappingProxyType({})
)
_UNSET: Final = object()


def lock_of(key: object) -> threading.Lock | None:
    """Return the lock of the open transaction of this task in a store; None without one."""
    return _LOCKS.get().get(key)


class AsyncTransaction(AbstractAsyncContextManager[Transaction]):
    """An ``async with store.transaction()`` block.

    Its begin and its end run to their end, also if the task is cancelled: the batch is written as a
    whole, or not at all.
    """

    def __init__(
        self, workers: Workers, key: object, block: AbstractContextManager[Transaction]
    ) -> None:
        self._workers = workers
        self._key = key
        self._block = block
        self._lock = threading.Lock()

    async def __aenter__(self) -> Transaction:
        context = copy_context()
        begun, interrupted = await self._workers.finish(self._block.__enter__, context)
        if interrupted is not None:
            if begun.exception() is None:
                await self._workers.finish(lambda: self._leave(interrupted), context)
            raise interrupted
        transaction = begun.result()
        _adopt(context)
        _LOCKS.set({**_LOCKS.get(), self._key: self._lock})
        return transaction

    async def __aexit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> bool | None:
        context = copy_context()
        locks = _LOCKS.get()
        _LOCKS.set({key: lock for key, lock in locks.items() if lock is not self._lock})
        ended, interrupted = await self._workers.finish(lambda: self._leave(error), context)
        _adopt(context)
        if interrupted is not None:
            # The cancelling counts: a failed end wrote nothing, or is repeated by its key.
            raise interrupted from ended.exception()
        return ended.result()

    def _leave(self, error: BaseException | None) -> bool | None:
        with self._lock:
            if error is None:
                return self._block.__exit__(None, None, None)
            return self._block.__exit__(type(error), error, error.__traceback__)


def _adopt(context: Context) -> None:
    """Give this task the variables that a call in a thread has set."""
    for variable, value in context.items():
        if variable.get(_UNSET) is not value:
            variable.set(value)
