"""Vectors by Chroma's own client, from a copy of a folder; `parse` runs in a child process.

Owns the use of the client, which reads an index in compiled code, without a limit. It has no
embedder and no telemetry. Leaves out the copy, the limits and the names of spaces
(`importers.chroma`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np

from cerata.engine.limits import EMBEDDING_DIMENSION_MAX

Metric: TypeAlias = Literal["dot", "cosine"]

_OLDEST: Final = 1
"""The first major version of Chroma that loads no pickles of the folder as code."""


class Request(msgspec.Struct, frozen=True):
    """The ids of records in a collection of a folder."""

    folder: str
    tenant: str
    database: str
    name: str
    id: str
    records: list[str]


class Answer(msgspec.Struct, frozen=True):
    """A row of float32 for each record: None if Chroma has none, empty if it is unusable.

    ``failure`` is the reason for which the client cannot be used.
    """

    rows: list[bytes | None] = []
    metric: Metric = "cosine"
    failure: str | None = None
    error: str | None = None


_clients: Final[dict[tuple[str, str], Any]] = {}
_opened: Final[dict[str, Any]] = {}
"""The clients by tenant and database, and the collections by id, of the folder of this process."""


def parse(data: bytes) -> Answer:
    """Answer a `Request`, in msgpack."""
    request = msgspec.msgpack.decode(data, type=Request)
    try:
        chromadb = import_module("chromadb")
        version = str(chromadb.__version__)
    except Exception as error:  # noqa: BLE001 - the package runs its code
        return Answer(failure=f"chromadb cannot be imported: {_text_of(error)}")
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < _OLDEST:
        return Answer(failure=f"chromadb {version} is older than {_OLDEST}.0; install a newer one")
    try:
        return _answer(chromadb, request)
    except MemoryError:
        raise
    # A panic of Chroma's compiled code is no Exception.
    except BaseException as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {_text_of(error)}"
        return Answer(failure=f"Chroma's client failed with {reason}")


def _answer(chromadb: Any, request: Request) -> Answer:
    if request.id not in _opened:
        client = _client(chromadb, request)
        _opened[request.id] = client.get_collection(request.name, embedding_function=None)
    collection = _opened[request.id]
    if str(collection.id) != request.id:
        return Answer(failure=f"another collection has the name {request.name!r:.60}")
    answer = collection.get(ids=request.records, include=["embeddings"])
    rows: dict[str, bytes | None] = {}
    if answer["embeddings"] is not None:
        rows = {
            record: None if numbers is None else _row(numbers)
            for record, numbers in zip(answer["ids"], answer["embeddings"], strict=True)
        }
    return Answer([rows.get(record) for record in request.records], _metric_of(collection))


def _client(chromadb: Any, request: Request) -> Any:
    place = request.tenant, request.database
    if place not in _clients:
        settings = import_module("chromadb.config").Settings(
            _env_file=None, anonymized_telemetry=False
        )
        _clients[place] = chromadb.PersistentClient(
            path=request.folder,
            settings=settings,
            tenant=request.tenant,
            database=request.database,
        )
    return _clients[place]


def _row(numbers: Any) -> bytes:
    row = np.asarray(numbers)
    if row.dtype.kind not in "fiu" or row.ndim != 1 or row.size > EMBEDDING_DIMENSION_MAX:
        return b""
    # A number too large for float32 becomes infinite, which the caller refuses.
    with np.errstate(over="ignore"):
        return row.astype("<f4").tobytes()


def _metric_of(collection: Any) -> Metric:
    """Return the metric; Cerata has no Euclidean distance, in place of which it has the cosine."""
    configuration: dict[str, dict[str, object] | None] = collection.configuration
    indexes = (configuration.get(name) for name in ("hnsw", "spann"))
    is_product = any(index is not None and index.get("space") == "ip" for index in indexes)
    return "dot" if is_product else "cosine"


def _text_of(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
