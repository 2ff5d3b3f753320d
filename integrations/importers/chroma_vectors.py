"""Vectors of Chroma, which its client reads from a copy of the folder, in a child process.

Owns the copy, and the limits of the client. Chroma's client writes to the folder that it opens, so
it never opens the source. Without the client, or after it failed, records come without vectors, and
a notice gives the reason. Leaves out texts and metadata (`chroma`), and the calls of the client
(`cerata.integrations.chroma_client`).
"""

import re
import shutil
import sqlite3
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from cerata.engine.errors import InvalidInput, StorageFailed
from cerata.engine.words import counted
from cerata.memory.ingest.formats.sandbox import ParserProcess, Unparsed, is_installed
from cerata.memory.values.vectors import vectors
from cerata.retrieval.embedders.identity import EmbedderIdentity

from ..chroma_client import Answer, Request
from .records import Notice, StoredVector
from .sqlite_files import SqliteFile

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
