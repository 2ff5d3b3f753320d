"""Batches from the lines of an export, each verified before it is passed on.

Owns the order of lines, the parts of large contents, and the chain hash of each batch. So a batch
that was changed, cut or mixed with another is refused with its line, and nothing of it is written.
Leaves out the lines (`line_blocks`) and the place for the batches (`importing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from cerata.engine.codec import Batch, WireEvent
from cerata.engine.draft_validation import check_key, check_scope
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.events import UNDECODABLE, EventHeader, Payload, Scope
from cerata.engine.format.page import READ_FEATURES
from cerata.engine.integrity import HASH_SIZE, SALT_SIZE, chain_start, chain_through
from cerata.engine.limits import (
    BATCH_EVENTS_MAX,
    BLOB_SIZE_MAX,
    EVENT_ATTACHMENTS_MAX,
    NAME_SIZE_MAX,
    RECORDED_MAX,
)
from cerata.engine.segments.reader import leaves_of

from .event_lines import (
    FORMAT,
    PART_SIZE,
    EndLine,
    EventLine,
    Item,
    LogLine,
    PartLine,
    Parts,
)
from .line_blocks import LineBlocks, refusal

LOG_ID_SIZE: Final = 16
_SEQ_MAX: Final = 2**63 - 1


class ReadBatch(NamedTuple):
    """A verified batch, the chain hash after it, and the number of its last line."""

    batch: Batch
    chain: bytes
    line: int


class Start(NamedTuple):
    """The log of an export, and the point before its first event."""

    log_id: bytes
    created: int
    seq: int
    chain: bytes


class EventBatches:
    """The batches of an export, to be iterated once.

    - ``start`` is read at once; the iteration yields whole batches only.
    - ``is_whole`` is True once the ``end`` line was read; a file without it was cut off.
    - ``lines`` counts the lines that were read.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.is_whole = False
        self.lines = 0
        self.root = b""
        """The Merkle root after the last event, as the ``end`` line has it."""
        self._blocks = iter(LineBlocks(read))
        self._pending = next(self._blocks, None)
        first = self._pending.lines[0] if self._pending and self._pending.lines else None
        if not isinstance(first, LogLine):
            raise refusal(1, "The file does not begin with the line of a log")
        self.start = _start(first)
        self._chain = self.start.chain
        self._next = self.start.seq + 1
        self._recorded: int | None = None
        self._contents = _Contents()

    def __iter__(self) -> Iterator[ReadBatch]:
        """Yield the batches in order.

        Raises:
            InvalidInput: a line is refused; ``where`` has its number.
        """
        events: list[WireEvent] = []
        first: EventHeader | None = None
        block = self._pending
        skipped = 1
        while block is not None:
            for number, line in enumerate(block.lines[skipped:], start=block.number + skipped):
                self.lines = number
                if self.is_whole:
                    raise refusal(number, "A line follows the end line")
                if type(line) is EventLine:
                    header = line.header
                    if first is None:
                        self._check_first(header, number)
                        first = header
                    self._check_header(header, first, len(events), number)
                    events.append(self._event(line, number))
                    if len(events) == first.count:
                        yield self._batch(events, first, line.chain, number)
                        events, first = [], None
                    elif line.chain is not None:
                        raise refusal(number, "An event inside a batch has a chain hash")
                elif type(line) is PartLine:
                    self._contents.add(line, self._next + len(events), number)
                elif type(line) is EndLine:
                    self._end(line, number, is_inside=bool(events))
                else:
                    raise refusal(number, "A second line of a log follows")
            skipped = 0
            block = next(self._blocks, None)

    def _check_first(self, header: EventHeader, number: int) -> None:
        """Check the fields that the events of a batch share."""
        last = self._recorded
        if not 1 <= header.count <= BATCH_EVENTS_MAX:
            raise refusal(number, f"A batch has {header.count:,} events")
        if not (-_SEQ_MAX if last is None else last + 1) <= header.recorded <= RECORDED_MAX:
            raise refusal(number, "The recorded time of a batch is not after that of the last")
        if header.clock is not None and not -_SEQ_MAX <= header.clock <= _SEQ_MAX:
            raise refusal(number, "The clock of a batch is out of range")

    def _check_header(
        self, header: EventHeader, first: EventHeader, index: int, number: int
    ) -> None:
        seq = self._next + index
        if header.seq != seq:
            raise refusal(number, f"The event has seq {header.seq:,} in place of {seq:,}")
        if (header.index, header.count) != (index, first.count):
            raise refusal(number, f"Event {seq:,} has another place in its batch")
        if (header.recorded, header.clock) != (first.recorded, first.clock):
            raise refusal(number, f"Event {seq:,} has another time than its batch")
        cause = header.causation
        if cause is not None and not -_SEQ_MAX <= cause <= _SEQ_MAX:
            raise refusal(number, f"The causation of event {seq:,} is out of range")
        if not header.type or len(header.type.encode()) > NAME_SIZE_MAX:
            raise refusal(number, f"The type of event {seq:,} is empty or too long")
        if not 0 <= header.version <= _SEQ_MAX:
            raise refusal(number, f"The version of event {seq:,} is out of range")

    def _event(self, line: EventLine, number: int) -> WireEvent:
        header = line.header
        kind, version, cause = header.type, header.version, header.causation
        salt, payload = line.salt, line.payload
        if line.commitment is not None:
            if salt is not None or payload is not None or line.attachments or self._contents:
                raise refusal(number, f"Event {header.seq:,} is erased, and has content")
            if len(line.commitment) != HASH_SIZE:
                raise refusal(number, f"A commitment must be {HASH_SIZE} bytes")
            return WireEvent(kind, version, cause, None, line.commitment)
        if salt is None or len(salt) != SALT_SIZE or payload is None:
            raise refusal(number, f"Event {header.seq:,} lacks its salt, or its payload")
        attachments: tuple[bytes, ...] = ()
        if line.attachments or type(payload) is not bytes or self._contents:
            payload, *items = self._contents.take((payload, *line.attachments), number)
            attachments = tuple(items)
        check_payload(payload, number)
        return WireEvent(kind, version, cause, salt, payload, attachments)

    def _batch(
        self, events: list[WireEvent], first: EventHeader, chain: str | None, number: int
    ) -> ReadBatch:
        batch = Batch(first.seq, first.count, first.recorded, first.clock, tuple(events))
        self._chain = chain_through(self._chain, leaves_of(batch, events))
        if chain != self._chain.hex():
            raise refusal(
                number,
                f"The batch of events {batch.first_seq:,} to {batch.last_seq:,} does not have the "
                "chain hash of its last line, so it was changed",
            )
        self._next = batch.last_seq + 1
        self._recorded = batch.recorded
        return ReadBatch(batch, self._chain, number)

    def _end(self, line: EndLine, number: int, *, is_inside: bool) -> None:
        count = self._next - 1 - self.start.seq
        if is_inside or self._contents:
            raise refusal(number, "The end line is inside a batch")
        if line.count != count or line.chain != self._chain.hex():
            raise refusal(number, f"The end line contradicts the {count:,} events before it")
        self.root = hash_of("root", line.root, number)
        self.is_whole = True


class _Contents:
    """The parts of the next event that came before its line."""

    def __init__(self) -> None:
        self._parts: dict[str | int, list[bytes]] = {}
        self._size: dict[str | int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, line: PartLine, seq: int, number: int) -> None:
        parts = self._parts.setdefault(line.item, [])
        if line.seq != seq or line.part != len(parts):
            raise refusal(number, f"The part does not continue those of event {seq:,}")
        if isinstance(line.item, int) and not 0 <= line.item < EVENT_ATTACHMENTS_MAX:
            raise refusal(number, f"An event has at most {EVENT_ATTACHMENTS_MAX} attachments")
        size = self._size[line.item] = self._size.get(line.item, 0) + len(line.data)
        if len(line.data) > PART_SIZE or size > BLOB_SIZE_MAX:
            raise refusal(number, f"The parts of an item are over {BLOB_SIZE_MAX:,} bytes")
        parts.append(line.data)

    def take(self, items: tuple[Item, ...], number: int) -> list[bytes]:
        """Return the bytes of payload and attachments."""
        if len(items) - 1 > EVENT_ATTACHMENTS_MAX:
            raise refusal(number, f"An event has at most {EVENT_ATTACHMENTS_MAX} attachments")
        contents: list[bytes] = []
        for place, item in enumerate(items):
            if isinstance(item, Parts):
                parts = self._parts.pop(place - 1 if place else "payload", [])
                item_bytes = b"".join(parts)
                if (len(parts), len(item_bytes)) != (item.parts, item.size):
                    raise refusal(number, "The event lacks a part of its content")
                contents.append(item_bytes)
            else:
                contents.append(item)
        if self._parts:
            raise refusal(number, "The event does not name a part that came before it")
        self._size.clear()
        return contents


def hash_of(name: str, text: str, number: int, size: int = HASH_SIZE) -> bytes:
    """Return a hash in hexadecimal as bytes."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) != size:
        raise refusal(number, f"{name} must be {2 * size} hexadecimal digits")
    return data


def _start(line: LogLine) -> Start:
    """Return the start of an export.

    Raises:
        Unsupported: the export is of a newer Cerata.
        InvalidInput: the line contradicts itself.
    """
    if line.format != FORMAT or line.crypt is not None or line.features.read & ~READ_FEATURES:
        raise Unsupported(
            f"The file has the format {line.format!r:.60} with features that this Cerata does not "
            f"know; it reads {FORMAT} without encryption",
            where="line 1",
            remedy="Upgrade Cerata.",
        )
    if not -_SEQ_MAX <= line.created <= _SEQ_MAX:
        raise refusal(1, "created is out of range")
    log_id = hash_of("log_id", line.log_id, 1, LOG_ID_SIZE)
    before = line.before
    if isinstance(before, msgspec.UnsetType):
        return Start(log_id, line.created, 0, chain_start(log_id))
    if not 1 <= before.seq < _SEQ_MAX:
        raise refusal(1, "before.seq is out of range")
    return Start(log_id, line.created, before.seq, hash_of("before.chain", before.chain, 1))


# --- Payloads of lines: the checks that the chain hash does not replace, and their scope ----------


_PAYLOAD: Final = msgspec.msgpack.Decoder(Payload[msgspec.Raw])


def scope_of(payload: bytes) -> Scope:
    """Return the scope of a checked payload."""
    return _PAYLOAD.decode(payload).scope


def check_payload(payload: bytes, number: int) -> None:
    """Refuse a payload that no writer makes: the chain covers its bytes, not their meaning.

    Raises:
        InvalidInput: with the number of its line.
    """
    try:
        envelope = _PAYLOAD.decode(payload)
    except UNDECODABLE as error:
        raise refusal(number, f"The payload cannot be decoded: {error}") from error
    scope = envelope.scope
    if len(scope) == 1 and scope[0][0] == "tenant" and envelope.key is None:
        # Most payloads: the decoder has checked the types.
        return
    try:
        check_scope(scope)
        if envelope.key is not None:
            check_key(envelope.key)
    except InvalidInput as error:
        raise refusal(number, error.what) from error


# --- The counts of an import of events, which its parts add to ------------------------------------


@dataclass(slots=True)
class Counts:
    """The counts of an import so far; see `importing.ImportedEvents`."""

    added: int = 0
    known: int = 0
    erased: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
