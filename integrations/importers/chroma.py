"""Chroma: the tables of ``chroma.sqlite3``, in the folder of a persistent client.

Owns the meaning of their rows: a record with a document is a frame with the record's metadata.
Vectors are in files of Chroma's own index, which Cerata never loads, so they stay behind.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from .records import Entry, FrameRecord, Problem, Skipped, version_of
from .sqlite_files import Row, SqliteFile, opened_sqlite

KIND: Final = "chroma"
FILE: Final = "chroma.sqlite3"
_DOCUMENT: Final = "chroma:document"
_VALUES: Final = ("string_value", "int_value", "float_value", "bool_value")
_TABLES: Final = {
    "embeddings": ("id", "segment_id", "embedding_id", "created_at"),
    "embedding_metadata": ("id", "key", *_VALUES[:3]),
    "collections": ("id", "name"),
    "segments": ("id", "collection"),
}
_ARRAYS: Final = "embedding_metadata_array"


@contextmanager
def opened(source: str | os.PathLike[str], _now: datetime) -> Generator["ChromaFile"]:
    """Open the folder of Chroma, or its file."""
    with opened_sqlite(source, within=FILE) as file:
        for table, columns in _TABLES.items():
            file.check(table, columns, "Chroma's", f"Pass the folder of the client, or its {FILE}.")
        yield ChromaFile(file)


class ChromaFile:
    """The records of all collections."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self.done = 0
        self.total = file.count("embeddings")
        names = {
            row.required("id"): row.required("name")
            for row in file.rows("collections", _TABLES["collections"])
        }
        self._collections = {
            row.required("id"): (collection, names.get(collection, ""))
            for row in file.rows("segments", _TABLES["segments"])
            for collection in [row.required("collection")]
        }
        """The id and the name of the collection of each segment."""

    def __iter__(self) -> Iterator[Entry]:
        for row in self._file.rows("embeddings", _TABLES["embeddings"]):
            self.done += 1
            try:
                yield self._record(row)
            except InvalidInput as error:
                yield Problem.of(error, row.place)

    def _record(self, row: Row) -> Entry:
        segment = row.required("segment_id")
        if segment not in self._collections:
            raise row.refusal(f"There is no segment {segment!r:.60}")
        collection, name = self._collections[segment]
        metadata = self._metadata(row)
        document = metadata.pop(_DOCUMENT, None)
        if not isinstance(document, str) or not document:
            return Skipped("records without a document")
        return FrameRecord(
            row.place,
            KIND,
            f"{collection}/{row.required('embedding_id')}",
            version_of(document, metadata),
            document,
            fields={"created": row.time("created_at")},
            metadata=metadata,
            source={"collection": name},
        )

    def _metadata(self, row: Row) -> dict[str, JsonValue]:
        number = row.integer("id")
        metadata: dict[str, JsonValue] = {}
        for each in self._file.rows_with("embedding_metadata", ("key", *_VALUES), "id", number):
            metadata[each.required("key")] = _value_of(each)
        if _ARRAYS in self._file.tables:
            arrays: dict[str, list[JsonValue]] = {}
            for each in self._file.rows_with(_ARRAYS, ("key", *_VALUES), "id", number):
                arrays.setdefault(each.required("key"), []).append(_value_of(each))
            metadata |= arrays
        return metadata


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
