"""The export of events: each batch of a log, read with every check, as lines.

Owns the lines of a range of the log. Leaves out files (`line_files`) and the format
(`event_lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from cerata.engine.errors import Corrupt, InvalidInput, number_text
from cerata.engine.events import UNDECODABLE, EventHeader, Payload, is_known
from cerata.engine.instants import to_datetime
from cerata.engine.integrity import Tree, chain_through
from cerata.engine.plain_value import PlainValue
from cerata.engine.segments.reader import leaves_of
from cerata.engine.unreadable import COPY_BEFORE_DAMAGE, stopped, whole_batches

from .event_lines import (
    FORMAT,
    PART_SIZE,
    Before,
    EndLine,
    EventLine,
    Features,
    Item,
    LogLine,
    PartLine,
    Parts,
    Point,
)
from .line_blocks import nests_deeply

if TYPE_CHECKING:
    from cerata.engine.codec import Batch, WireEvent
    from cerata.engine.log import Log
    from cerata.engine.segments.reader import Snapshot

ExportProgress: TypeAlias = Callable[[int, int], None]
"""Called with the count of exported events, and how many there are to export."""

_GROUP_EVENTS: Final = 512
_GROUP_SIZE: Final = 4 << 20
"""Events, and bytes of their contents, after which lines are written."""

_ENCODER: Final = msgspec.json.Encoder()
_PAYLOAD: Final = msgspec.msgpack.Decoder(Payload[Any])
_SCOPE: Final = msgspec.msgpack.Decoder(Payload[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ExportedEvents(PlainValue):
    """The result of an export.

    - ``first`` and ``last`` are the seqs of the first and the last event; ``count`` their number.
    """

    first: int
    last: int
    count: int


def export_events(
    log: Log, file: IO[bytes], first: int, last: int, progress: ExportProgress | None = None
) -> ExportedEvents:
    """Write the batches that end at event ``last``, from the one that holds ``first`` on.

    Raises:
        InvalidInput: ``last`` lies inside a batch, or ``first`` after ``last``.
        Corrupt: an event is damaged; the lines end before its batch.
    """
    snapshot = log.snapshot
    try:
        first = _checked_first(log, first, last)
        chain, tree = snapshot.reader.chain_and_tree(snapshot, first - 1)
        end = Point(seq=last, chain=log.chain_at(last).hex(), root=log.root_at(last).hex())
    except Corrupt as error:
        place = f"the hashes of event {last:,}"
        raise stopped(error, "The export", place, COPY_BEFORE_DAMAGE) from error
    file.write(_line(_log_line(snapshot, first, tree, chain, end)))
    total = last - first + 1
    count = 0
    for batch in whole_batches(snapshot, first, "The export") if total else ():
        chain = chain_through(chain, leaves_of(batch, batch.events))
        for events in _groups(batch):
            file.write(_encoded(list(_lines(batch, events, chain))))
        count += batch.count
        if progress is not None:
            progress(count, total)
        if batch.last_seq >= last:
            # The next batch may be unreadable.
            break
    if chain.hex() != end.chain:
        raise Corrupt(
            "The hashes of the exported events differ from the log's",
            where=log.path,
            remedy="Run 'cerata file verify' to list the damage.",
        )
    file.write(_line(EndLine(count=count, chain=chain.hex(), root=end.root)))
    return ExportedEvents(first, last, count)


def _checked_first(log: Log, first: int, last: int) -> int:
    """Return the first event of the batch that holds ``first``."""
    if last:
        end = log.event(last).header
        if end.last_seq != last:
            raise InvalidInput(
                f"Event {last:,} lies inside the batch of events {end.first_seq:,} to "
                f"{end.last_seq:,}",
                remedy=f"Export at {end.first_seq - 1} or at {end.last_seq}.",
            )
    if not 1 <= first <= max(last, 1):
        raise InvalidInput(
            f"The first event must be from 1 to {max(last, 1):,}, not {number_text(first)}",
            remedy="Pass the seq of an event of the export.",
        )
    return log.event(first).header.first_seq if last else 1


def _line(line: object) -> bytes:
    return _ENCODER.encode(line) + b"\n"


def _log_line(snapshot: Snapshot, first: int, tree: Tree, chain: bytes, head: Point) -> LogLine:
    page = snapshot.page
    before: Before | UnsetType = UNSET
    if first > 1:
        peaks = tuple(peak.hex() for peak in tree.peaks)
        before = Before(seq=first - 1, chain=chain.hex(), peaks=peaks)
    return LogLine(
        format=FORMAT,
        log_id=page.log_id.hex(),
        created=page.created,
        head=head,
        features=Features(read=page.read_features, write=page.write_features),
        before=before,
    )


def _groups(batch: Batch) -> Iterator[list[tuple[int, WireEvent]]]:
    """Yield the events of a batch with their seqs, a few thousand bytes or more at a time."""
    group: list[tuple[int, WireEvent]] = []
    size = 0
    for seq, event in enumerate(batch.events, start=batch.first_seq):
        group.append((seq, event))
        size += len(event.payload)
        for data in event.attachments:
            size += len(data)
        if len(group) >= _GROUP_EVENTS or size >= _GROUP_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _lines(
    batch: Batch, events: list[tuple[int, WireEvent]], chain: bytes
) -> Iterator[EventLine | PartLine]:
    first, count, recorded, clock = batch.first_seq, batch.count, batch.recorded, batch.clock
    time = to_datetime(recorded).isoformat()
    for seq, event in events:
        index = seq - first
        kind, version = event.type, event.version
        header = EventHeader(seq, recorded, clock, kind, version, index, count, event.causation)
        after = chain.hex() if index == count - 1 else None
        if event.salt is None:
            yield EventLine(header=header, commitment=event.payload, chain=after, time=time)
            continue
        content = event.payload
        payload: Item = content
        attachments: tuple[Item, ...] = ()
        scope: dict[str, Any] | None = None
        body: Any = None
        if event.attachments or len(content) > PART_SIZE:
            items, parts = _inline(seq, event)
            yield from parts
            payload = items[0]
            attachments = tuple(items[1:])
        if payload is content:
            scope, body = _readable(content, kind, version)
        yield EventLine(
            header=header,
            salt=event.salt,
            payload=payload,
            attachments=attachments,
            chain=after,
            time=time,
            scope=scope,
            body=body,
        )


def _encoded(lines: list[EventLine | PartLine]) -> bytes:
    """Return lines as bytes, without each body that nests deeper than a line may."""
    block: bytes = _ENCODER.encode_lines(lines)
    if any(map(nests_deeply, block.splitlines())):
        lines = [
            replace(line, body=None)
            if isinstance(line, EventLine) and nests_deeply(_ENCODER.encode(line))
            else line
            for line in lines
        ]
        block = _ENCODER.encode_lines(lines)
    return block


def _inline(seq: int, event: WireEvent) -> tuple[list[Item], list[PartLine]]:
    """Return payload and attachments as their event's line has them, and the lines before it.

    A line holds at most `PART_SIZE` bytes of them, so that it stays within its limit.
    """
    items: list[Item] = []
    lines: list[PartLine] = []
    size = 0
    for number, data in enumerate((event.payload, *event.attachments)):
        size += len(data)
        if size <= PART_SIZE:
            items.append(data)
            continue
        size -= len(data)
        pieces = [data[at : at + PART_SIZE] for at in range(0, len(data), PART_SIZE)]
        items.append(Parts(parts=len(pieces), size=len(data)))
        lines += [
            PartLine(seq=seq, item=number - 1 if number else "payload", part=part, data=piece)
            for part, piece in enumerate(pieces)
        ]
    return items, lines


def _readable(payload: bytes, kind: str, version: int) -> tuple[dict[str, Any] | None, Any]:
    """Return scope and body for people; a body of an unknown type may be no JSON."""
    try:
        if is_known(kind, version):
            envelope = _PAYLOAD.decode(payload)
            return dict(envelope.scope), envelope.body
        return dict(_SCOPE.decode(payload).scope), None
    except UNDECODABLE:
        return None, None
