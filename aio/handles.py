"""The asynchronous store and view, and the opening of a file; `handles.pyi` has the signatures."""

import functools
from typing import Any

from cerata.memory.store import Store
from cerata.memory.store import open_store as open_sync
from cerata.memory.view import View

from .mirror import AsyncHandle, AsyncStoreBase, mirrored
from .opening import Opening
from .workers import WORKERS, Workers


@mirrored(View)
class AsyncView(AsyncHandle):
    """The memory at one point, read-only: the asynchronous form of `cerata.View`."""


@mirrored(Store)
class AsyncStore(AsyncStoreBase):
    """A memory in one file, returned by `cerata.aio.open`: the asynchronous form of `cerata.Store`.

    - Each method has the name, arguments and errors of the method of `cerata.Store`, and is
      awaited; one that yields items is an asynchronous iterator.
    - All calls run in a few threads. A call that has begun runs to its end there, also if its task
      is cancelled: a write is then acknowledged or not, and never half.
    - `sync` is the store itself, for functions that `run` calls in a thread.
    """


def open_store(path: Any, *, workers: int = WORKERS, **named: Any) -> Opening[Any]:
    """Open the memory in a file: ``async with open(path) as store``, or ``await open(path)``.

    Args:
        path: The file; ``":memory:"`` opens a store without a file.
        workers: Calls that run at once, each in a thread; default 4.
        **named: The arguments of `cerata.open`.

    Raises:
        InvalidInput: ``workers`` is no whole number from 1 to 64.
    """

    def made(store: Store, threads: Workers) -> Any:
        return AsyncStore(store, threads, object())

    return Opening(Workers(workers), functools.partial(open_sync, path, **named), made)


# Errors of Python and help() name the function as users call it.
open_store.__name__ = open_store.__qualname__ = "open"
