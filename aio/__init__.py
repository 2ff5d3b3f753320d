"""Cerata for asyncio: a store whose calls are awaited, and run in a few threads of its own.

`open` returns an `AsyncStore`, with every public call of `cerata.Store` under the same name. Owns
the threads (`workers`), cancellation, asynchronous iteration (`streams`) and
transactions (`transactions`). Leaves out all work on the memory, which the store does. Read
`mirror` first.

>>> import asyncio
>>> import cerata.aio
>>> async def main() -> None:
...     async with cerata.aio.open(":memory:") as store:
...         await store.put_frame("The index is Annoy.")
...         print([hit.text for hit in await store.search("index")])
>>> asyncio.run(main())
['The index is Annoy.']
"""

from .handles import AsyncStore, AsyncView
from .handles import open_store as open  # noqa: A004 - the verb of the front door
from .opening import Opening
from .streams import AsyncEventStream

__all__ = ["AsyncEventStream", "AsyncStore", "AsyncView", "Opening", "open"]
