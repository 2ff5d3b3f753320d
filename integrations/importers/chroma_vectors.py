"""Vectors of Chroma, which its client reads from a copy of the folder.

Owns the copy and the client. Chroma's client writes to the folder that it opens, so it never opens
the source. Without the client, or after it failed, records come without vectors, and a notice gives
the reason. No embedder of Chroma is called. Leaves out texts and metadata (`chroma`).
"""

import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from cerata.engine.errors import InvalidInput
from cerata.memory.values.vectors import vectors
from cerata.memory.values.words import counted
from cerata.retrieval.embedders.identity import EmbedderIdentity, Metric

from .records import Notice, StoredVector
from .sqlite_files import SqliteFile

FILE: Final = "chroma.sqlite3"
RecordKey = tuple[str, str]
"""The id of a collection, and the id of a record in it."""

_ABSENT: Final = "Chroma has none"
_INVALID: Final = "they are no finite numbers, or have too many dimensions"
_OLDEST: Final = 1
"""The first major version of Chroma that loads no pickles of the folder as code."""

_ID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SEARCHES: Final = (
    "CREATE VIRTUAL TABLE embedding_fulltext_search USING fts5(string_value, tokenize='trigram')",
    "CREATE VIRTUAL TABLE embedding_fulltext USING fts5(id, string_value)",
)
"""The virtual tables that Chroma makes itself, over texts of their own."""

_REVISION_LENGTH: Final = 8
"""Characters of the collection's id in the name of a space."""


class Collection(NamedTuple):
    """A collection by its name in a database; ids are unique in the folder."""

    id: str
    name: str
    tenant: str
    database: str


class OpenedCollection(NamedTuple):
    """A collection of the client; ``name``, ``revision`` and ``metric`` are of its spaces."""

    client: Any
    name: str
    revision: str
    metric: Metric


class ClientFailed(Exception):
    """Chroma's client cannot be used; the text is the reason."""


class ChromaVectors:
    """The vectors of a folder, by collection and id.

    - The copy is made for the first record, and removed by `close`.
    - After a failure of the client, or of a collection, it is not called again.
    """

    def __init__(self, file: SqliteFile, collections: Mapping[str, Collection]) -> None:
        self._file = file
        self._collections = collections
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._opened: dict[str, OpenedCollection] = {}
        self._failure: str | None = None
        self._failures: dict[str, str] = {}
        self._lacking: Counter[str] = Counter()

    def read(self, keys: Sequence[RecordKey]) -> dict[RecordKey, StoredVector | str]:
        """Return the vector of each record, or the reason for which there is none."""
        ids: dict[str, list[str]] = {}
        for collection, record in keys:
            ids.setdefault(collection, []).append(record)
        results: dict[RecordKey, StoredVector | str] = {}
        for collection, records in ids.items():
            reason = self._failure or self._failures.get(collection)
            values: Mapping[str, StoredVector | str] = {}
            if reason is None:
                try:
                    values = self._of_collection(collection, records)
                except ClientFailed as failure:
                    reason = self._failures[collection] = str(failure)
            for record in records:
                results[collection, record] = values.get(record, reason or _ABSENT)
        return results

    def count(self, reason: str) -> None:
        """Count an imported record without a vector."""
        self._lacking[reason] += 1

    def notices(self) -> Iterator[Notice]:
        """Yield a notice for each reason."""
        for reason, count in self._lacking.items():
            records = counted(count, "record")
            yield Notice(f"vectors of Chroma were not read for {records}: {reason}")

    def close(self) -> None:
        """Close the client, and remove the copy."""
        for client in self._clients.values():
            # Early versions have no close; the copy goes in any case.
            with suppress(Exception):
                client.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _of_collection(self, number: str, records: list[str]) -> dict[str, StoredVector | str]:
        """Raises `ClientFailed`."""
        if self._copy is None:
            try:
                self._copy = self._copied()
            except ClientFailed as failure:
                self._failure = str(failure)
                raise
        with _calls():
            if number not in self._opened:
                self._opened[number] = self._collection(number)
            collection = self._opened[number]
            answer = collection.client.get(ids=records, include=["embeddings"])
            embeddings = answer["embeddings"]
            if embeddings is None:
                return {}
            return {
                record: _stored(numbers, collection)
                for record, numbers in zip(answer["ids"], embeddings, strict=True)
                if numbers is not None
            }

    def _collection(self, number: str) -> OpenedCollection:
        place = self._collections.get(number)
        if place is None:
            raise ClientFailed("their collection is missing")
        client = self._client(place.tenant, place.database)
        collection = client.get_collection(place.name, embedding_function=None)
        if str(collection.id) != number:
            raise ClientFailed(f"another collection has the name {place.name!r:.60}")
        # Two folders may have collections of a name, with vectors of two embedders.
        revision = number[:_REVISION_LENGTH]
        return OpenedCollection(
            collection, f"chroma/{place.name}", revision, _metric_of(collection)
        )

    def _client(self, tenant: str, database: str) -> Any:
        if (tenant, database) not in self._clients:
            assert self._copy is not None
            chromadb = _chromadb()
            settings = import_module("chromadb.config").Settings(
                _env_file=None, anonymized_telemetry=False
            )
            self._clients[tenant, database] = chromadb.PersistentClient(
                path=self._copy.name, settings=settings, tenant=tenant, database=database
            )
        return self._clients[tenant, database]

    def _copied(self) -> "tempfile.TemporaryDirectory[str]":
        """Copy the tables first: the index may be newer than these, and not older.

        Raises:
            ClientFailed: chromadb is missing or old, or the copy cannot be written.
        """
        _chromadb()
        computed = [name for name, made in self._file.computed.items() if made not in _SEARCHES]
        if computed:
            raise ClientFailed(
                f"the file has {computed[0]!r:.60}, a view, a trigger or a virtual table, which "
                "would run in Chroma's client"
            )
        try:
            copy = tempfile.TemporaryDirectory(prefix="cerata-chroma-", ignore_cleanup_errors=True)
        except OSError as error:
            raise ClientFailed(f"a temporary copy cannot be written: {error}") from error
        try:
            self._file.copy_to(Path(copy.name) / FILE)
            for row in self._file.rows("segments", ("id",)):
                name = row.required("id")
                folder = Path(self._file.name).parent / name
                if _is_id(name) and folder.is_dir():
                    shutil.copytree(folder, Path(copy.name) / name)
        except (OSError, sqlite3.Error) as error:
            copy.cleanup()
            raise ClientFailed(f"a temporary copy cannot be written: {error}") from error
        except BaseException:
            copy.cleanup()
            raise
        return copy


def _chromadb() -> Any:
    """Return Chroma's package. Raises `ClientFailed`."""
    try:
        package: Any = import_module("chromadb")
        version = str(package.__version__)
    except ModuleNotFoundError as error:
        if error.name != "chromadb":
            raise ClientFailed(f"chromadb cannot be imported: {error}") from error
        raise ClientFailed("chromadb is not installed; install it, and import again") from error
    except Exception as error:
        raise ClientFailed(f"chromadb cannot be imported: {error}") from error
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < _OLDEST:
        raise ClientFailed(f"chromadb {version} is older than {_OLDEST}.0; install a newer one")
    return package


@contextmanager
def _calls() -> Generator[None]:
    """Turn each error of Chroma's client to `ClientFailed`."""
    try:
        yield
    except (ClientFailed, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    # A panic of Chroma's compiled code is no Exception.
    except BaseException as error:
        text = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {text:.200}"
        raise ClientFailed(f"Chroma's client failed with {reason}") from error


def _stored(numbers: Any, collection: OpenedCollection) -> StoredVector | str:
    """Return a vector in the space of its collection and dimension, or why there is none."""
    _, name, revision, metric = collection
    try:
        space = EmbedderIdentity(name, revision, len(numbers), metric).space
        [vector] = vectors([numbers], 1, space)
    except InvalidInput:
        return _INVALID
    return _ABSENT if vector is None else vector


def _metric_of(collection: Any) -> Metric:
    """Return the metric; Cerata has no Euclidean distance, in place of which it has the cosine."""
    configuration: dict[str, dict[str, object] | None] = collection.configuration
    indexes = (configuration.get(name) for name in ("hnsw", "spann"))
    is_product = any(index is not None and index.get("space") == "ip" for index in indexes)
    return "dot" if is_product else "cosine"


def _is_id(name: str) -> bool:
    """Return whether a name is an id, and so no path out of the folder."""
    return _ID.fullmatch(name) is not None
