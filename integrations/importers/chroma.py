"""Chroma: the tables of ``chroma.sqlite3``, in the folder of a persistent client.

Owns the meaning of their rows: a record with a document is a frame with the record's metadata, and
its vector from the files of Chroma's own index.
"""

import os
import re
import shutil
import sqlite3
import stat
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from cerata.engine.errors import InvalidInput, StorageFailed
from cerata.engine.events import JsonValue
from cerata.engine.words import counted
from cerata.memory.ingest.formats.sandbox import ParserProcess, Unparsed, is_installed
from cerata.memory.values.vectors import vectors
from cerata.retrieval.embedders.identity import EmbedderIdentity

from ..chroma_client import Answer, Request
from .records import EmbeddedRecord, Entry, Notice, Problem, Skipped, StoredVector, version_of
from .sqlite_files import Row, SqliteFile, opened_sqlite

# --- Vectors of Chroma, which its client reads from a copy of the folder, in a child process ------
#
# Chroma's client writes to the folder that it opens, so it never opens the source. Without the
# client, or after it failed, records come without vectors, and a notice gives the reason.


FILE: Final = "chroma.sqlite3"
RecordKey = tuple[str, str]
"""The id of a collection, and the id of a record in it."""

_ABSENT: Final = "Chroma has none"
_INVALID: Final = "they are no finite numbers, or have too many dimensions"

SECONDS_MIN: Final = 30
SECONDS_PER_SIZE: Final = 2
"""Processor time of the client, and more of it for each MiB of the copy: a log of vectors that are
in no index takes 0.3 s for each. On the clock it has twice as much."""

MEMORY_MIN: Final = 1 << 30
MEMORY_PER_BYTE: Final = 4
"""Address space of the client, beyond its interpreter's 0.4 GiB, and more for each byte of the
copy: it takes 2."""

ENDS_MAX: Final = 3
"""Ends of the client, each at a collection of its own, after which it is not started again."""

_ID: Final = re.compile(b"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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


class ClientFailed(Exception):
    """Chroma's client cannot be used; the text is the reason."""


class ChromaVectors:
    """The vectors of a folder, by collection and id.

    - The copy is made for the first record, and removed by `close`.
    - After a failure of the client, or of a collection, it is not called again.
    - A collection that ends the client's process costs itself alone, `ENDS_MAX` times.
    """

    def __init__(self, file: SqliteFile, collections: Mapping[str, Collection]) -> None:
        self._file = file
        self._collections = collections
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._client: ParserProcess | None = None
        self._ends = 0
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
        """End the client, and remove the copy."""
        if self._client is not None:
            self._client.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _of_collection(self, number: str, records: list[str]) -> dict[str, StoredVector | str]:
        """Raises `ClientFailed`."""
        place = self._collections.get(number)
        if place is None:
            raise ClientFailed("their collection is missing")
        if self._copy is None:
            try:
                self._copy, self._client = self._copied()
            except ClientFailed as failure:
                self._failure = str(failure)
                raise
        assert self._client is not None
        request = Request(
            self._copy.name, place.tenant, place.database, place.name, number, records
        )
        try:
            answer = self._client.parse(msgspec.msgpack.encode(request), Answer)
        except (Unparsed, StorageFailed) as error:
            self._ends += 1
            reason = f"Chroma's client was ended: {error}"
            if self._ends == ENDS_MAX:
                self._failure = reason
            raise ClientFailed(reason) from error
        if answer.failure is not None:
            raise ClientFailed(answer.failure)
        return {
            record: _stored(row, place, answer)
            for record, row in zip(records, answer.rows, strict=True)
            if row is not None
        }

    def _copied(self) -> "tuple[tempfile.TemporaryDirectory[str], ParserProcess]":
        """Copy the tables first: the index may be newer than these, and not older.

        Raises:
            ClientFailed: chromadb is missing, or the copy cannot be written.
        """
        if not is_installed("chromadb"):
            raise ClientFailed("chromadb is not installed; install it, and import again")
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
            size = self._copy_to(Path(copy.name))
        except (OSError, sqlite3.Error) as error:
            copy.cleanup()
            raise ClientFailed(f"a temporary copy cannot be written: {error}") from error
        except BaseException:
            copy.cleanup()
            raise
        seconds = SECONDS_MIN + SECONDS_PER_SIZE * (size >> 20)
        return copy, ParserProcess(
            self._file.name,
            module="cerata.integrations.chroma_client",
            seconds=seconds,
            wall_seconds=2 * seconds,
            memory=MEMORY_MIN + MEMORY_PER_BYTE * size,
        )

    def _copy_to(self, target: Path) -> int:
        """Copy the tables and the index; return their size in bytes.

        Raises:
            OSError: a file cannot be read or written, or the copy takes more than half of the room.
            sqlite3.Error: the tables cannot be copied.
        """
        source = Path(self._file.name)
        names = {row.value("id") for row in self._file.rows("segments", ("id",))}
        folders = [
            source.parent / name.decode()
            for name in names
            if isinstance(name, bytes) and _is_id(name)
        ]
        # A link leads out of the folder, and a pipe or a device may never end.
        files = [
            file
            for folder in folders
            if folder.is_dir() and not folder.is_symlink()
            for file in folder.iterdir()
            if stat.S_ISREG(file.lstat().st_mode)
        ]
        size = sum(file.stat().st_size for file in (source, *files))
        free = shutil.disk_usage(target).free
        if size > free // 2:
            raise OSError(f"it has {size:,} bytes, and half of the {free:,} free bytes is the most")
        self._file.copy_to(target / FILE)
        for file in files:
            (target / file.parent.name).mkdir(exist_ok=True)
            shutil.copyfile(file, target / file.parent.name / file.name)
        return sum(file.stat().st_size for file in target.rglob("*") if file.is_file())


def _stored(row: bytes, collection: Collection, answer: Answer) -> StoredVector | str:
    """Return a vector in the space of its collection and dimension, or why there is none."""
    numbers = np.frombuffer(row, "<f4")
    # Two folders may have collections of a name, with vectors of two embedders.
    revision = collection.id[:_REVISION_LENGTH]
    name = f"chroma/{collection.name}"
    try:
        space = EmbedderIdentity(name, revision, len(numbers), answer.metric).space
        [vector] = vectors([numbers], 1, space)
    except InvalidInput:
        return _INVALID
    return _ABSENT if vector is None else vector


def _is_id(name: bytes) -> bool:
    """Return whether a name is an id, and so no path out of the folder."""
    return _ID.fullmatch(name) is not None


# --- Chroma: the tables of ``chroma.sqlite3``, in the folder of a persistent client ---------------


KIND: Final = "chroma"
_DOCUMENT: Final = "chroma:document"
_VALUES: Final = ("string_value", "int_value", "float_value", "bool_value")
_TABLES: Final = {
    "embeddings": ("id", "segment_id", "embedding_id", "created_at"),
    "embedding_metadata": ("id", "key", *_VALUES[:3]),
    "collections": ("id", "name"),
    "segments": ("id", "collection"),
}
_PLACES: Final = ("default_tenant", "default_database")
_PAGE_RECORDS: Final = 100
"""Records whose vectors are read at once."""

_SINGLE: Final = ("embedding_metadata",)
_ARRAYS: Final = "embedding_metadata_array"


@contextmanager
def opened(source: str | os.PathLike[str], _now: datetime) -> Generator["ChromaFile"]:
    """Open the folder of Chroma, or its file."""
    with opened_sqlite(source, within=FILE) as file:
        for table, columns in _TABLES.items():
            file.check(table, columns, "Chroma's", f"Pass the folder of the client, or its {FILE}.")
        records = ChromaFile(file)
        try:
            yield records
        finally:
            records.vectors.close()


class ChromaFile:
    """The records of all collections, then the notices about their vectors."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self.done = 0
        self.total = file.count("embeddings")
        collections = _collections_of(file)
        self._collections = {
            segment: collections.get(number, Collection(number, "", *_PLACES))
            for row in file.rows("segments", _TABLES["segments"])
            for segment, number in _keyed(row, "id", "collection")
        }
        """The collection of each segment. The records of an unusable row are refused."""
        self.vectors = ChromaVectors(file, collections)

    def __iter__(self) -> Iterator[Entry]:
        rows = self._file.rows("embeddings", _TABLES["embeddings"])
        while page := [*islice(rows, _PAGE_RECORDS)]:
            yield from self._records(page)
        yield from self.vectors.notices()

    def _records(self, page: Sequence[Row]) -> Iterator[Entry]:
        keys = [key for key in map(self._key, page) if key is not None]
        vectors = self.vectors.read(keys)
        for row in page:
            self.done += 1
            try:
                yield self._record(row, vectors)
            except InvalidInput as error:
                yield Problem.of(error, row.place)

    def _key(self, row: Row) -> RecordKey | None:
        try:
            return self._collection(row).id, row.required("embedding_id")
        except InvalidInput:
            # The record is refused in its turn.
            return None

    def _collection(self, row: Row) -> Collection:
        segment = row.required("segment_id")
        if segment not in self._collections:
            raise row.refusal(f"There is no segment {segment!r:.60}")
        return self._collections[segment]

    def _record(self, row: Row, vectors: Mapping[RecordKey, StoredVector | str]) -> Entry:
        collection = self._collection(row)
        number = row.required("embedding_id")
        metadata, doubts = self._metadata(row)
        document = metadata.pop(_DOCUMENT, None)
        if not isinstance(document, str) or not document:
            return Skipped("records without a document")
        created, times = row.time_or_doubt("created_at")
        vector = vectors[collection.id, number]
        if isinstance(vector, str):
            self.vectors.count(vector)
        return EmbeddedRecord(
            row.place,
            KIND,
            f"{collection.id}/{number}",
            version_of(document, metadata),
            document,
            fields={"created": created},
            metadata=metadata,
            source={"collection": collection.name},
            doubts=(*doubts, *times),
            vector=None if isinstance(vector, str) else vector,
        )

    def _metadata(self, row: Row) -> tuple[dict[str, JsonValue], list[str]]:
        """Return the metadata of a record, and the faults of values that are left out."""
        number = row.integer("id")
        metadata: dict[str, JsonValue] = {}
        doubts: list[str] = []
        for table in ("embedding_metadata", _ARRAYS) if _ARRAYS in self._file.tables else _SINGLE:
            arrays: dict[str, list[JsonValue]] = {}
            for each in self._file.rows_with(table, ("key", *_VALUES), "id", number):
                try:
                    key, value = each.required("key"), _value_of(each)
                except InvalidInput as error:
                    if each.value("key") in (_DOCUMENT, _DOCUMENT.encode()):
                        raise
                    doubts.append(f"metadata: {error.what}")
                else:
                    arrays.setdefault(key, []).append(value)
            metadata |= (
                arrays if table == _ARRAYS else {key: each[-1] for key, each in arrays.items()}
            )
        return metadata, doubts


def _keyed(row: Row, *columns: str) -> Iterator[tuple[str, ...]]:
    """Yield the texts of columns, unless one is unusable."""
    with suppress(InvalidInput):
        yield tuple(row.required(column) for column in columns)


def _collections_of(file: SqliteFile) -> dict[str, Collection]:
    databases: dict[str, tuple[str, str]] = {}
    if "databases" in file.tables:
        databases = {
            number: (tenant, name)
            for row in file.rows("databases", (), ("id", "name", "tenant_id"))
            for number, tenant, name in _keyed(row, "id", "tenant_id", "name")
        }
    return {
        number: Collection(number, name, *databases.get(database, _PLACES))
        for row in file.rows("collections", _TABLES["collections"], ("database_id",))
        for number, name in _keyed(row, "id", "name")
        for database in [next(_keyed(row, "database_id"), ("",))[0]]
    }


def _value_of(row: Row) -> JsonValue:
    if (text := row.text("string_value")) is not None:
        return text
    if (flag := row.value("bool_value")) is not None:
        return bool(flag)
    value = row.value("int_value")
    value = row.value("float_value") if value is None else value
    if isinstance(value, int | float):
        return value
    if value is None:
        return None
    raise row.refusal(f"a value of metadata is {value!r:.60}")
