"""The result of `cerata.aio.open`: awaited for a store, or entered as a block that closes it."""

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

from cerata.memory.store import Store

from .workers import Workers


class Closing(Protocol):
    """An object with an awaited end."""

    async def close(self) -> None: ...


_Handle = TypeVar("_Handle", bound=Closing)


class Opening(AbstractAsyncContextManager[_Handle], Generic[_Handle]):
    """A file that is opened by ``await`` or by ``async with``, once."""

    def __init__(
        self,
        workers: Workers,
        opened: Callable[[], Store],
        made: Callable[[Store, Workers], _Handle],
    ) -> None:
        self._workers = workers
        self._opened = opened
        self._made = made
        self._handle: _Handle | None = None

    def __await__(self) -> Generator[object, None, _Handle]:
        return self._open().__await__()

    async def _open(self) -> _Handle:
        opened, interrupted = await self._workers.finish(self._opened)
        failure = opened.exception()
        if interrupted is None and failure is None:
            return self._made(opened.result(), self._workers)
        # No caller gets the store, so it is closed here.
        await self._workers.close(_nothing if failure is not None else opened.result().close)
        if interrupted is not None:
            raise interrupted
        return self._made(opened.result(), self._workers)

    async def __aenter__(self) -> _Handle:
        self._handle = await self._open()
        return self._handle

    async def __aexit__(self, *_: object) -> None:
        if self._handle is not None:
            await self._handle.close()


def _nothing() -> None:
    return
