"""Records of other memories: what an importer reads, and how the memory gets each once.

Owns the records that are frames. A record has a name, which is its URI, and a version: the memory
has a record if any frame with the URI, current or closed, carries the version. So a record that was
replaced or deleted here after an import does not come back. Leaves out the batches (`run`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from cerata.engine.errors import CerataError
from cerata.engine.events import DEFAULT_SCOPE, Draft, Embedding, JsonValue, PutEmbedding
from cerata.engine.plain_value import PlainValue
from cerata.memory.batch.writer import session_of
from cerata.memory.frames.drafts import check_not_empty, frame_draft, frame_fields
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame

IMPORT: Final = "import"
"""The name in a frame's metadata of the source: kind, id and version."""

StoredVector: TypeAlias = tuple[Embedding, bytes]
"""A vector with its space, and its bytes."""


class MemoryAt:
    """A state of the memory, which an import compares with its records; exactly one scope."""

    def __init__(self, store: Store) -> None:
        self.view = store.history.view()
        self.snapshot = snapshot_of(self.view)
        self.scope = store.scope or DEFAULT_SCOPE
        self._session = session_of(store)
        self.role = self._session.role

    @property
    def has_embedder(self) -> bool:
        """True if texts that are put get vectors of the store's embedder."""
        return self._session.embedder is not None

    def frames(self, uri: str) -> list[Frame]:
        """Return the frames with a URI, current or closed, in order."""
        layers = self.snapshot.layers
        return [self.snapshot.frame_at(frame) for frame in layers.ever_of_uri(uri, self.scope)]

    def open_frames(self, uri: str) -> list[int]:
        """Return the ids of the current frames with a URI."""
        return self.snapshot.layers.whole_of_uri(uri, self.scope)


class Record(Protocol):
    """A record of a source.

    - Records of one ``name`` are versions of one thing, in their order.
    - ``doubts`` are parts of it that were left out, since they are unusable.
    - ``is_event`` returns True if the record is bare events, on which no rule of URIs watches.
    """

    @property
    def place(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def doubts(self) -> tuple[str, ...]: ...
    def is_event(self, memory: MemoryAt) -> bool: ...

    def is_known(self, memory: MemoryAt) -> bool:
        """Return whether the memory has the record, or had it and gave it up."""
        ...

    def draft(self, memory: MemoryAt) -> Draft | None:
        """Return the frame that the record is, to be put with those of the batch."""
        ...

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        """Write the rest of the record within the transaction that puts the frame."""
        ...


class Versions(NamedTuple):
    """Versions of one record, oldest first, which one batch takes: all of them, or none.

    So no import ends between a record and its deletion.
    """

    records: tuple[Record, ...]

    @property
    def name(self) -> str:
        return self.records[0].name

    @property
    def size(self) -> int:
        return sum(record.size for record in self.records)

    def new(self, memory: MemoryAt) -> tuple[Record, ...]:
        """Return the versions after the last that the memory has.

        A memory with a version had the earlier ones, although retention may have given them up.
        """
        new = self.records
        for count in range(len(self.records), 0, -1):
            if self.records[count - 1].is_known(memory):
                new = self.records[count:]
                break
        while new and isinstance(new[0], DeletionRecord) and not memory.frames(self.name):
            # There is nothing to delete.
            new = new[1:]
        return new


class Notice(NamedTuple):
    """A part of the source that was left out, and why."""

    text: str


class Skipped(NamedTuple):
    """A record that no memory takes, and why, in the plural: "records without text"."""

    reason: str


@dataclass(frozen=True, slots=True)
class Problem(PlainValue):
    """A record that cannot be imported.

    - ``where`` is its table and row, or its line; ``what`` the fault, ``remedy`` the next step.
    """

    where: str
    what: str
    remedy: str | None
    error: type[CerataError] = field(repr=False)
    _plain = ("where", "what", "remedy")

    @classmethod
    def of(cls, error: CerataError, place: str) -> "Problem":
        """Return the problem of a record at a place."""
        where = place
        if error.where is not None:
            where = error.where if place in error.where else f"{place}, {error.where}"
        return cls(where, error.what, error.remedy, type(error))

    def raised(self) -> CerataError:
        """Return the error of the problem."""
        return self.error(self.what, where=self.where, remedy=self.remedy)


Entry = Record | Versions | Skipped | Notice | Problem


class Source(Protocol):
    """The records of an open source, in order; ``done`` of ``total`` are read, 0 if unknown."""

    done: int
    total: int

    def __iter__(self) -> Iterator[Entry]: ...


def time_of(text: str) -> datetime | None:
    """Return the time of a text, None if that is empty; a time without a zone is in UTC.

    Raises:
        ValueError: the text is no time.
    """
    if not text:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def version_of(*parts: object) -> str:
    """Return a hash of values, equal for equal values in every run."""
    encoded = msgspec.json.encode(parts, order="deterministic")
    return blake2b(encoded, digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A text with metadata: a frame, which takes the place of the frame with its URI."""

    place: str
    kind: str
    id: str
    version: str
    text: str
    uri: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    source: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.uri or uri_of(self.kind, self.id)

    @property
    def size(self) -> int:
        return len(self.text)

    def is_event(self, memory: MemoryAt) -> bool:
        return False

    def is_known(self, memory: MemoryAt) -> bool:
        frames = memory.frames(self.name)
        is_among = self.version in map(imported_version, frames)
        return is_among or (bool(frames) and not memory.open_frames(self.name))

    def draft(self, memory: MemoryAt) -> Draft | None:
        return self.draft_with(memory, None)

    def draft_with(self, memory: MemoryAt, vector: StoredVector | None) -> Draft:
        """Return the frame with a vector, if any."""
        named = {"uri": self.name, "metadata": self._metadata(), **self.fields}
        return draft_of(self.text, memory, embedding=vector, **named)

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None: ...

    def _metadata(self) -> dict[str, JsonValue]:
        source: dict[str, JsonValue] = {
            "kind": self.kind,
            "id": self.id,
            "version": self.version,
            **self.source,
        }
        if IMPORT in self.metadata:
            # The source's own value of the name.
            source["value"] = self.metadata[IMPORT]
        return {**self.metadata, IMPORT: source}


@dataclass(frozen=True, slots=True)
class DeletionRecord:
    """The deletion of a record of the same source.

    The memory has it if a frame with the newest version was closed, also if that was restored or
    edited here since. With a ``reason`` it is skipped for it, in the plural, if the memory has it.
    """

    place: str
    kind: str
    id: str
    version: str
    size: int = 0
    doubts: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def name(self) -> str:
        return uri_of(self.kind, self.id)

    def is_event(self, memory: MemoryAt) -> bool:
        return False

    def is_known(self, memory: MemoryAt) -> bool:
        frames = memory.frames(self.name)
        newest = imported_version(frames[-1]) if frames else None
        return any(
            frame.closed is not None and imported_version(frame) == newest for frame in frames
        )

    def draft(self, memory: MemoryAt) -> Draft | None: ...

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        for old in memory.open_frames(self.name):
            store.delete(old)


def draft_of(
    text: str, memory: MemoryAt, *, embedding: StoredVector | None = None, **fields: Any
) -> Draft:
    """Return the event of a frame.

    Raises:
        InvalidInput: a field cannot be stored.
    """
    check_not_empty(text)
    kind = fields.pop("kind", "text")
    body = frame_fields(kind=kind, **fields)
    return frame_draft(text, body, memory.scope, embedding=embedding)


def uri_of(kind: str, record_id: str) -> str:
    """Return the URI of a record."""
    return f"import:{kind}:{record_id}"


def imported_version(frame: Frame) -> str | None:
    """Return the version of the record that became a frame, or None."""
    source = frame.metadata.get(IMPORT)
    return str(source.get("version")) if isinstance(source, dict) else None


# --- Records with vectors: frames that keep the vector that the other memory computed -------------


@dataclass(frozen=True, slots=True)
class EmbeddedRecord(FrameRecord):
    """A text with metadata, and its vector.

    A record whose frame is current and unchanged, and has no vector in the space, is not known: the
    frame gets the vector by an event.
    """

    vector: StoredVector | None = None

    def is_known(self, memory: MemoryAt) -> bool:
        return FrameRecord.is_known(self, memory) and self._frame_without_vector(memory) is None

    def is_event(self, memory: MemoryAt) -> bool:
        return FrameRecord.is_known(self, memory)

    def draft(self, memory: MemoryAt) -> Draft | None:
        if FrameRecord.is_known(self, memory):
            return None
        # The embedder of the store leaves out frames that have a vector.
        return self.draft_with(memory, None if memory.has_embedder else self.vector)

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        if self.vector is None:
            return
        if FrameRecord.is_known(self, memory):
            target = self._frame_without_vector(memory)
        else:
            # Without an embedder the frame has the vector.
            target = frame if memory.has_embedder else None
        if target is not None:
            embedding, data = self.vector
            body = PutEmbedding(frame=target, embedding=embedding)
            session_of(store).write([Draft(body, memory.scope, attachments=(data,))])

    def _frame_without_vector(self, memory: MemoryAt) -> int | None:
        """Return the current frame of this very text if it has no vector in the space."""
        if self.vector is None:
            return None
        space = self.vector[0].space
        for frame in memory.frames(self.name):
            is_same = imported_version(frame) == self.version and frame.text == self.text
            if (
                frame.closed is None
                and is_same
                and memory.view.embeddings.of(frame.id, space) is None
            ):
                return frame.id
        return None
