"""Graphiti: lines of JSON, each an `EntityNode` or an `EntityEdge` as pydantic writes it.

Owns the meaning of the lines. An edge is a fact whose evidence is the frame of its sentence; a
node's summary is a frame. The file is read twice: an edge may precede the nodes that it names.
"""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.events import Draft, JsonValue
from cerata.memory.store import Store
from cerata.memory.values.facts import OPEN, Entity, Fact

from .json_lines import Lines, decoded, opened_lines
from .records import (
    DeletionRecord,
    Entry,
    FrameRecord,
    MemoryAt,
    Problem,
    Skipped,
    time_of,
    version_of,
)

KIND: Final = "graphiti"
_FACT: Final = "fact"
"""The name in the metadata of an edge's frame of the fact: subject, predicate, object."""


class GraphLine(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of nodes and edges that an import reads; embeddings are not among them."""

    uuid: str
    group_id: str
    name: str | None = None
    created_at: str | None = None
    # Of a node.
    labels: tuple[str, ...] | None = None
    summary: str | None = None
    attributes: dict[str, Any] = {}
    # Of an edge.
    source_node_uuid: str | None = None
    target_node_uuid: str | None = None
    fact: str | None = None
    episodes: tuple[str, ...] = ()
    valid_at: str | None = None
    invalid_at: str | None = None
    expired_at: str | None = None

    @property
    def is_edge(self) -> bool:
        """Return whether this is an `EntityEdge`."""
        return self.fact is not None and None not in (
            self.name,
            self.source_node_uuid,
            self.target_node_uuid,
        )

    @property
    def is_node(self) -> bool:
        """Return whether this is an `EntityNode`."""
        has_summary = self.summary is not None and self.labels is not None
        return has_summary and self.source_node_uuid is None and self.name is not None


_DECODER: Final = msgspec.json.Decoder(GraphLine)


@contextmanager
def opened(source: str | os.PathLike[str], _now: datetime) -> Generator["GraphLines"]:
    """Open a file of nodes and edges."""
    names: dict[str, str] = {}
    with opened_lines(source) as lines:
        for place, line in lines:
            try:
                node = decoded(_DECODER, line, place)
            except InvalidInput:
                continue  # the second pass reports the line
            if node.is_node and node.name is not None:
                names[node.uuid] = node.name
    with opened_lines(source) as lines:
        yield GraphLines(lines, names)


class GraphLines:
    """The lines as records."""

    def __init__(self, lines: Lines, names: Mapping[str, str]) -> None:
        self._lines = lines
        self._names = names
        self.total = lines.total
        self.done = 0

    def __iter__(self) -> Iterator[Entry]:
        for place, text in self._lines:
            self.done = self._lines.done
            try:
                entry = self._entry(place, decoded(_DECODER, text, place))
            except InvalidInput as error:
                entry = Problem.of(error, place)
            yield entry

    def _entry(self, place: str, line: GraphLine) -> Entry:
        metadata: dict[str, JsonValue] = {"group_id": line.group_id}
        if line.attributes:
            metadata["attributes"] = line.attributes
        if line.is_edge:
            return self._edge(place, line, metadata)
        if not line.is_node:
            return Skipped("lines that are neither entities nor edges between them")
        if not line.summary:
            return Skipped("entities without a summary, of which only the name is used")
        metadata["labels"] = [*(line.labels or ())]
        version = version_of(line.name, line.summary, metadata)
        created, doubts = _time_or_fault(line, "created_at", place)
        fields = {"title": line.name, "created": created}
        return FrameRecord(
            place, KIND, line.uuid, version, line.summary, None, fields, metadata, doubts=doubts
        )

    def _edge(self, place: str, line: GraphLine, metadata: dict[str, JsonValue]) -> Entry:
        valid, invalid = (_time_of(line, name, place) for name in ("valid_at", "invalid_at"))
        expired, fault = _time_or_fault(line, "expired_at", place)
        if valid is not None and invalid is not None and valid >= invalid:
            reason = "edges that end before they begin"
            return EndedEdge(place, KIND, line.uuid, "", reason=reason)
        subject, target = (
            self._name_of(uuid, place) for uuid in (line.source_node_uuid, line.target_node_uuid)
        )
        predicate = line.name or ""
        metadata["episodes"] = [*line.episodes]
        metadata[_FACT] = {"subject": subject, "predicate": predicate, "object": target}
        # An expiry that is no time is one, too: the source gave the edge up.
        end = line.expired_at if fault else expired and expired.isoformat()
        times = [*(time and time.isoformat() for time in (valid, invalid)), end]
        version = version_of(line.fact, metadata, times)
        created, doubts = _time_or_fault(line, "created_at", place)
        frame = FrameRecord(
            place,
            KIND,
            line.uuid,
            version,
            line.fact or predicate,
            fields={"created": created},
            metadata=metadata,
            doubts=doubts + fault,
        )
        is_expired = expired is not None or bool(fault)
        return EdgeRecord(frame, subject, predicate, target, valid, invalid, is_expired)

    def _name_of(self, uuid: str | None, place: str) -> str:
        if uuid is None or uuid not in self._names:
            raise InvalidInput(
                f"The file has no node {uuid!r:.60}",
                where=place,
                remedy="Write the nodes of all edges to the file, too.",
            )
        return self._names[uuid]


def _time_of(line: GraphLine, name: str, place: str) -> datetime | None:
    text: str | None = getattr(line, name)
    try:
        return None if text is None else time_of(text)
    except ValueError as error:
        raise InvalidInput(
            f"{name} is no time: {text!r:.60}",
            where=place,
            remedy="Write it as 2026-11-01T09:00:00+00:00.",
        ) from error


def _time_or_fault(
    line: GraphLine, name: str, place: str
) -> tuple[datetime | None, tuple[str, ...]]:
    """Return a time of a line, and the fault of one that is left out."""
    try:
        return _time_of(line, name, place), ()
    except InvalidInput as error:
        return None, (error.what,)


@dataclass(frozen=True, slots=True)
class EdgeRecord:
    """An edge: the frame of its sentence, and the fact, which a new version replaces.

    An expired edge is a fact that is retracted at once: the log has it, the present does not.
    """

    frame: FrameRecord
    subject: str
    predicate: str
    target: str
    valid: datetime | None
    invalid: datetime | None
    is_expired: bool

    @property
    def place(self) -> str:
        return self.frame.place

    @property
    def name(self) -> str:
        return self.frame.name

    @property
    def version(self) -> str:
        return self.frame.version

    @property
    def size(self) -> int:
        return self.frame.size

    def is_event(self, memory: MemoryAt) -> bool:
        return False

    def is_known(self, memory: MemoryAt) -> bool:
        return self.frame.is_known(memory)

    @property
    def doubts(self) -> tuple[str, ...]:
        return self.frame.doubts

    def draft(self, memory: MemoryAt) -> Draft | None:
        return self.frame.draft(memory)

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        outdated = _facts_of(self.name, memory)
        if outdated:
            store.graph.retract_many(outdated)
        receipt = store.assert_fact(
            self.subject,
            self.predicate,
            Entity(self.target),
            valid_from=self.valid or OPEN,
            valid_to=self.invalid or OPEN,
            evidence=[frame],
        )
        if self.is_expired and receipt.id < 0:
            # A fact that another edge states too has a number of the log, and stays.
            store.retract_fact(receipt.id)


@dataclass(frozen=True, slots=True)
class EndedEdge(DeletionRecord):
    """An edge that is never true: it takes the fact and the sentence of its earlier versions."""

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        outdated = _facts_of(self.name, memory)
        if outdated:
            store.graph.retract_many(outdated)
        # Not super(): slots make another class.
        DeletionRecord.write(self, store, memory, frame)


def _facts_of(name: str, memory: MemoryAt) -> list[Fact]:
    """Return the facts of an edge's versions that no other frame states."""
    frames = memory.frames(name)
    versions = {frame.id for frame in frames}
    outdated: dict[int, Fact] = {}
    for frame in frames:
        named = frame.metadata.get(_FACT)
        if not isinstance(named, dict):
            continue
        subject, predicate, target = (str(named.get(part)) for part in _PARTS)
        facts = memory.view.facts(subject, predicate, Entity(target), include_ended=True)
        for fact in facts:
            if {place.frame for place in fact.evidence} <= versions:
                outdated[fact.id] = fact
    return [*outdated.values()]


_PARTS: Final = ("subject", "predicate", "object")
