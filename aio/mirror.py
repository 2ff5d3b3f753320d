"""The mirror: an asynchronous method for each public name of a store or view, and their handles.

Owns the kinds of names and the calls in threads. The methods are made from the classes when
`handles` is imported, so none is missing; `handles.pyi` has their signatures for type checkers, and
``python -m tools.async_stub`` writes it.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from cerata.engine.handle import Handle
from cerata.memory.batch.transaction import Transaction
from cerata.memory.handles import StoreHandle, kind_of
from cerata.memory.store import Store, owns_file
from cerata.memory.values.frames import Hits, TimelinePage
from cerata.memory.values.renamed import moved_to
from cerata.memory.view import View, ViewHandle

from .streams import AsyncEventStream, AsyncItems
from .transactions import AsyncTransaction, lock_of
from .workers import Workers

PLAIN: Final = frozenset(("actor", "basis", "log_id", "path", "report", "scope", "shared"))
"""Properties that read nothing; each other property is a method that is awaited."""

ITERATED: Final = frozenset(("entities", "export_facts", "frames", "log", "salvaged"))
"""Methods that return an iterator; theirs is asynchronous, and the call itself is not awaited."""

OWN: Final = frozenset(("close", "follow", "scoped", "transaction"))
"""Methods that the classes here define."""


class AsyncHandle(Handle):
    """A store or view whose calls run in worker threads."""

    _instead: ClassVar[str] = "Pass the file's path, and open it there."

    def __init__(self, handle: Any, workers: Workers, key: object) -> None:
        self._handle = handle
        self._workers = workers
        self._key = key

    def __repr__(self) -> str:
        return repr(self._handle).replace("cerata.", "cerata.aio.Async", 1)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Name the new place of a call that moved."""
            raise AttributeError(moved_to(type(self).__name__, name), name=name, obj=self)

    @property
    def sync(self) -> Any:
        """The store or view behind this one, for calls in a thread: those of `run`."""
        return self._handle

    async def run(self, function: Callable[..., Any], *arguments: object, **named: object) -> Any:
        """Call a function in a worker thread: one that uses `sync`, or reads a value's bytes.

        Args:
            function: The function.
            *arguments: Its arguments.
            **named: Its arguments by name.
        """
        lock = lock_of(self._key)
        if lock is not None:
            return await self._workers.run(_locked, lock, function, *arguments, **named)
        return await self._workers.run(function, *arguments, **named)


class AsyncStoreBase(AsyncHandle):
    """The calls of a store that have no equal in form."""

    _handle: Store

    def scoped(self, *arguments: Any, **named: Any) -> Any:
        """Return a store with a scope, on the same file and threads; see `cerata.Store.scoped`."""
        return type(self)(self._handle.scoped(*arguments, **named), self._workers, object())

    def transaction(self, **named: Any) -> AsyncTransaction:
        """Collect the writes of this task into one batch; see `cerata.Store.transaction`."""
        block: AbstractContextManager[Transaction] = self._handle.transaction(**named)
        return AsyncTransaction(self._workers, self._key, block)

    async def close(self) -> None:
        """Wait for the calls that have begun, and close the file as `cerata.Store.close` does.

        The end of a cancelled close is awaited too. A store that `scoped` returned leaves the file
        and the threads as they are.
        """
        if owns_file(self._handle):
            await self._workers.close(self._handle.close)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncStreamBase(AsyncHandle):
    """The calls of `cerata.Store.stream` that have no equal in form."""

    def follow(self, after: Any = None, **named: Any) -> AsyncEventStream:
        """Return the events after a point, and each later event; see `Stream.follow`."""
        start = functools.partial(self._handle.follow, _sync_of(after), **named)
        return AsyncEventStream(self._workers.run, start)


_CLASSES: dict[type, type[AsyncHandle]] = {}


def mirrored(kind: type) -> Callable[[type], type]:
    """Decorate the asynchronous class of a store or view with the methods that it lacks."""

    def decorate(own: type) -> type:
        _mirror(kind, own)
        return own

    return decorate


def _mirror(kind: type, own: type) -> None:
    for name, member in public_members(kind):
        if name not in OWN:
            setattr(own, name, _method(name, member))
    _CLASSES[kind] = own


def mirror_of(kind: type) -> type[AsyncHandle]:
    """Return the asynchronous class of a store, a view, or a handle of them such as `Graph`."""
    return _CLASSES[kind]


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a class, and their functions and properties."""
    for name, member in inspect.getmembers_static(kind):
        if not name.startswith("_"):
            yield name, member


def _method(name: str, member: Any) -> Any:
    if isinstance(member, StoreHandle | ViewHandle):
        return _group(name, kind_of(member))
    if isinstance(member, property):
        return _plain(name, member) if name in PLAIN else _awaited_property(name, member)
    return _iterated(name, member) if name in ITERATED else _awaited(name, member)


def _group(name: str, kind: type) -> property:
    """Return a handle of calls, such as ``graph``, whose calls are awaited."""
    base = AsyncStreamBase if hasattr(kind, "follow") else AsyncHandle
    own = type(f"Async{kind.__name__}", (base,), {"__doc__": kind.__doc__})
    _mirror(kind, own)

    def get(handle: AsyncHandle) -> Any:
        return own(getattr(handle.sync, name), *threads_of(handle))

    return property(get, doc=kind.__doc__)


def _plain(name: str, member: property) -> property:
    return property(lambda handle: getattr(handle.sync, name), doc=member.__doc__)


def _awaited_property(name: str, member: property) -> Callable[..., Any]:
    async def read(self: AsyncHandle) -> Any:
        return await call_in_thread(self, getattr, self.sync, name)

    read.__name__ = name
    read.__doc__ = member.__doc__
    return read


def _iterated(name: str, member: Any) -> Callable[..., Any]:
    @functools.wraps(member)
    def iterate(self: AsyncHandle, /, *arguments: Any, **named: Any) -> AsyncItems[Any]:
        start = functools.partial(getattr(self.sync, name), *arguments, **named)
        return AsyncItems(self.run, start)

    return iterate


def _awaited(name: str, member: Any) -> Callable[..., Any]:
    @functools.wraps(member)
    async def call(self: AsyncHandle, /, *arguments: Any, **named: Any) -> Any:
        return await call_in_thread(self, getattr(self.sync, name), *arguments, **named)

    return call


async def call_in_thread(
    handle: AsyncHandle, function: Callable[..., Any], *arguments: Any, **named: Any
) -> Any:
    """Call a function of a store or view with arguments of either kind; return its result."""
    plain = [_sync_of(argument) for argument in arguments]
    plain_named = {name: _sync_of(value) for name, value in named.items()}
    return _wrapped(handle, await handle.run(_loaded, function, *plain, **plain_named))


def threads_of(handle: AsyncHandle) -> tuple[Workers, object]:
    """Return the threads of a handle, and the key of its transactions."""
    return handle._workers, handle._key  # pyright: ignore[reportPrivateUsage]


def _wrapped(handle: AsyncHandle, result: Any) -> Any:
    """Return a view or store as an asynchronous one; a new store has threads of its own."""
    if isinstance(result, View):
        return mirror_of(View)(result, *threads_of(handle))
    if isinstance(result, Store):
        return mirror_of(Store)(result, Workers(threads_of(handle)[0].count), object())
    return result


def _sync_of(value: Any) -> Any:
    return value.sync if isinstance(value, AsyncHandle) else value


def _locked(lock: Any, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    with lock:
        return function(*arguments, **named)


def _loaded(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function, and read the frames of its result in this thread."""
    result = function(*arguments, **named)
    if isinstance(result, Hits):
        for hit in result:
            for each in (hit, *hit.grouped):
                _ = each.frame
    elif isinstance(result, TimelinePage):
        for entry in result.entries:
            _ = entry.frame
    return result
