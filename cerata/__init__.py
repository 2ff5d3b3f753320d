"""Cerata: the memory of AI agents, in one file that is an append-only log.

This package is the front door and nothing else; the rooms behind it are `cerata.engine`,
`cerata.projections`, `cerata.replay`, `cerata.retrieval`, `cerata.memory`, `cerata.cli` and
`cerata.fault_injection`. Start reading at docs/index.md.

>>> import cerata
>>> with cerata.open(":memory:") as store:
...     note = store.remember("We chose Annoy: it fits in memory.", tags=["decision"])
...     change = store.supersede(note, "We chose HNSW: recall under 5 ms.")
...     print(store.search("which index did we choose?")[0].text)
...     print(store.at(note).search("which index did we choose?")[0].text)
We chose HNSW: recall under 5 ms.
We chose Annoy: it fits in memory.
"""

from cerata.engine.environment import Environment
from cerata.engine.errors import (
    CerataError,
    Closed,
    Conflict,
    Corrupt,
    HistoryPruned,
    IdempotencyConflict,
    InvalidInput,
    Locked,
    NotFound,
    OutcomeUnknown,
    QuerySyntaxError,
    ReadOnly,
    StorageFailed,
    Unsupported,
)
from cerata.engine.events import Draft, Event, EventBody, event
from cerata.engine.log import Head
from cerata.memory.store import Store
from cerata.memory.store import open_store as open  # noqa: A004 - the front door's own verb
from cerata.memory.transaction import Transaction
from cerata.memory.values import Context, ContextItem, Frame, Hit, Receipt
from cerata.memory.view import View

__all__ = [
    "CerataError",
    "Closed",
    "Conflict",
    "Context",
    "ContextItem",
    "Corrupt",
    "Draft",
    "Environment",
    "Event",
    "EventBody",
    "Frame",
    "Head",
    "HistoryPruned",
    "Hit",
    "IdempotencyConflict",
    "InvalidInput",
    "Locked",
    "NotFound",
    "OutcomeUnknown",
    "QuerySyntaxError",
    "ReadOnly",
    "Receipt",
    "StorageFailed",
    "Store",
    "Transaction",
    "Unsupported",
    "View",
    "__version__",
    "event",
    "open",
]

__version__ = "0.1.0"
