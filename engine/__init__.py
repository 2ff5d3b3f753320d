"""The engine: one append-only log of immutable events in one file.

Owns the events and their bytes, the ring and the segments, header pages and TOC, recovery, locks,
and the hashes that bind the log. Leaves out projections and the meaning of events. Start with `log`
(the operations), then `format/` (the layout of the file), `recovery`, `open`.
"""

from .environment import Clock, Environment, SystemClock
from .events import (
    DEFAULT_SCOPE,
    AssertFact,
    Attachment,
    DeleteFrame,
    Draft,
    Embedding,
    Erased,
    Event,
    EventBody,
    EventHeader,
    Gap,
    JsonValue,
    PutEmbedding,
    PutFrame,
    PutTag,
    RetractFact,
    Scope,
    SupersedeFrame,
    UnknownBody,
    event,
)
from .head import Appended, Head
from .log import Log
from .memory_storage import MemoryStorage
from .open import open_log
from .recovery import RecoveryReport
from .storage import LockName, OsStorage, Storage, StorageFile

__all__ = [
    "DEFAULT_SCOPE",
    "Appended",
    "AssertFact",
    "Attachment",
    "Clock",
    "DeleteFrame",
    "Draft",
    "Embedding",
    "Environment",
    "Erased",
    "Event",
    "EventBody",
    "EventHeader",
    "Gap",
    "Head",
    "JsonValue",
    "LockName",
    "Log",
    "MemoryStorage",
    "OsStorage",
    "PutEmbedding",
    "PutFrame",
    "PutTag",
    "RecoveryReport",
    "RetractFact",
    "Scope",
    "Storage",
    "StorageFile",
    "SupersedeFrame",
    "SystemClock",
    "UnknownBody",
    "event",
    "open_log",
]
