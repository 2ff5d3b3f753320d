"""Chroma: the tables of ``chroma.sqlite3``, in the folder of a persistent client.

Owns the meaning of their rows: a record with a document is a frame with the record's metadata.
Leaves out vectors, which are in files of Chroma's own index (`chroma_vectors`).
"""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from .chroma_vectors import FILE, ChromaVectors, Collection, RecordKey
from .embedded_records import EmbeddedRecord
from .records import Entry, Problem, Skipped, StoredVector, version_of
from .sqlite_files import Row, SqliteFile, opened_sqlite

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
