"""Writing segments: events into compressed blocks, attachments into columns, and the index.

Owns the encoding of SEGMENT and SPILL bodies. Leaves out the place of extents and the time of
sealing (`log_file.file`, `log_file.writer`); the layout is in `segment_index`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import msgspec

from ..codec import Batch, WireEvent, seeded_salts
from ..draft_validation import DTYPE_SIZES
from ..events import (
    UNDECODABLE,
    Attachment,
    Embedding,
    EventBody,
    Payload,
    PutEmbedding,
    PutFrame,
)
from ..format.checksums import CHECK_SIZE_BLOCK, TAG_BLOCK, TAG_INDEX, check
from ..format.extent import EXTENT_HEADER_SIZE
from ..integrity import SALT_SIZE, Tree, hash_bytes
from ..late import late
from ..limits import BLOCK_SIZE_TARGET
from ..salted_hashes import CHECK_SIZE, without_hash
from .segment_index import (
    COLUMN_ALIGNMENT,
    SEGMENT_PREFIX,
    BatchRow,
    BlockRow,
    ColumnKey,
    ColumnRow,
    CutRow,
    PlacedColumn,
    SegmentIndex,
    codecs,
    encode_index,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")


class SegmentDraft:
    """A segment or spill encoded except for its place: blocks are already compressed.

    ``chain`` and ``tree`` are those after the last event; a spill has none. ``bodies`` are those of
    the events of a batch that is not written yet: with them no payload is decoded for its column.
    ``placed`` has the columns of embeddings where the last `encode` put them.
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        chain: bytes = b"",
        tree: Tree | None = None,
        bodies: Sequence[EventBody] | None = None,
    ) -> None:
        events = [event for batch in batches if batch.spill is None for event in batch.events]
        self._batches = batches
        self._events = events
        self._columns, payloads, self._cuts = _gathered(events, bodies)
        sizes = [len(payload) for payload in payloads]
        self._sizes = sizes
        self._chain = chain
        self._peaks = list(tree.peaks) if tree else []
        self._seeds = [_seed_of(batch) for batch in batches]
        self._salts = [
            b"" if seed else event.salt or bytes(SALT_SIZE)
            for batch, seed in zip(batches, self._seeds, strict=True)
            if batch.spill is None
            for event in batch.events
        ]
        self._blocks = list(_compressed_blocks(payloads, sizes))
        self.placed: dict[ColumnKey, PlacedColumn] = {}

    def encode(self, key: bytes, offset: int) -> bytes:
        """Return the body for an extent at file offset ``offset``."""
        base = offset + EXTENT_HEADER_SIZE
        index, pieces = self._laid_out(key, base)
        raw = encode_index(index)
        stored = codecs.compressor.compress(raw)
        at = SEGMENT_PREFIX.size + sum(map(len, pieces))
        digest = check(key, TAG_INDEX, base + at, stored)
        return b"".join([SEGMENT_PREFIX.pack(len(stored), len(raw), digest), *pieces, stored])

    def _laid_out(self, key: bytes, base: int) -> tuple[SegmentIndex, list[bytes]]:
        """Return the index, and the pieces between prefix and index.

        ``base`` is the file offset of the body's first byte.
        """
        pieces = [b"".join(self._salts)]
        at = SEGMENT_PREFIX.size + len(pieces[0])
        rows: list[BlockRow] = []
        for block in self._blocks:
            salts = b"".join(self._salts[block.first : block.stop])
            digest = check(key, TAG_BLOCK, base + at, block.data, salts, size=CHECK_SIZE_BLOCK)
            rows.append(BlockRow(block.first, at, len(block.data), block.raw_size, digest))
            pieces.append(block.data)
            at += len(block.data)
        columns: list[ColumnRow] = []
        attached = _Attached()
        offsets: list[int] = []
        sizes: list[int] = []
        for column_key, column in self._columns:
            if column_key != _NO_COLUMN:
                padding = -(base + at) % COLUMN_ALIGNMENT
                pieces.append(bytes(padding))
                at += padding
                row_size = len(column.data[0])
                columns.append(ColumnRow(*column_key, at, row_size, len(sizes), len(column.data)))
                self.placed[column_key] = PlacedColumn(column.events, base + at)
            attached.events += column.events
            attached.ordinals += column.ordinals
            attached.checks += column.checks
            pieces += column.data
            column_sizes = [*map(len, column.data)]
            ends = [*accumulate(column_sizes, initial=at)]
            at = ends.pop()
            offsets += ends
            sizes += column_sizes
        types: dict[tuple[str, int], int] = {}
        events = self._events
        codes = [types.setdefault((event.type, event.version), len(types)) for event in events]
        index = SegmentIndex(
            batches=[
                BatchRow(batch.count, batch.recorded, batch.clock, batch.spill, seed)
                for batch, seed in zip(self._batches, self._seeds, strict=True)
            ],
            types=list(types),
            type_codes=np.array(codes, "<u4").tobytes(),
            payload_sizes=np.array(self._sizes, "<u4").tobytes(),
            causations=[
                (row, event.causation)
                for row, event in enumerate(events)
                if event.causation is not None
            ],
            erased=[(row, event.payload) for row, event in enumerate(events) if event.salt is None],
            blocks=rows,
            attachment_events=_packed(attached.events, "<u4"),
            attachment_ordinals=_packed(attached.ordinals, "<u4"),
            attachment_offsets=_packed(offsets, "<u8"),
            attachment_sizes=_packed(sizes, "<u8"),
            columns=columns,
            cuts=self._cuts,
            attachment_checks=b"".join(attached.checks),
            chain=self._chain,
            peaks=self._peaks,
        )
        return index, pieces


def _seed_of(batch: Batch) -> bytes | None:
    """Return the seed that gives the salts of a batch.

    None if an event has another salt or none: the seed would give the salt of an erased event back,
    so the salts of the batch are stored one by one.
    """
    if batch.seed is None or batch.spill is not None:
        return None
    salts = [event.salt for event in batch.events]
    return batch.seed if salts == seeded_salts(batch.seed, len(salts)) else None


@dataclass(slots=True)
class _Attached:
    """Attachments of a segment being encoded: their events, places in these, checks and bytes."""

    events: list[int] = field(default_factory=list[int])
    ordinals: list[int] = field(default_factory=list[int])
    checks: list[bytes] = field(default_factory=list[bytes])
    data: list[bytes] = field(default_factory=list[bytes])


def _gathered(
    events: Sequence[WireEvent], bodies: Sequence[EventBody] | None
) -> tuple[list[tuple[ColumnKey, _Attached]], list[bytes], list[CutRow]]:
    """Return the attachments of events by column, in the order of the file, and the payloads.

    The payloads are those to store, without the hashes that the rows name; empty for an erased
    event.
    """
    alike = None if bodies is None else _gathered_alike(events, bodies)
    if alike is not None:
        return alike
    columns: dict[ColumnKey, _Attached] = {}
    payloads: list[bytes] = []
    cuts: list[CutRow] = []
    last: int | None = None
    for index, event in enumerate(events):
        payload = b"" if event.salt is None else event.payload
        after: int | None = None
        if event.attachments:
            embedding = _embedding_in(event, None if bodies is None else bodies[index])
            place = None if embedding is None else _place_of(embedding.data, event.attachments)
            for ordinal, data in enumerate(event.attachments):
                key = _NO_COLUMN
                check_of = _NO_CHECK
                if embedding is not None and ordinal == place:
                    key = embedding.space, embedding.dtype, embedding.dimension
                    named = embedding.data.hash
                    # The bodies of drafts are checked: their hashes are those of the attachments.
                    if bodies is not None or hash_bytes(data) == named:
                        payload, after = without_hash(payload, named)
                        check_of = named[:CHECK_SIZE]
                column = columns.get(key)
                if column is None:
                    column = columns[key] = _Attached()
                column.events.append(index)
                column.ordinals.append(ordinal)
                column.checks.append(check_of)
                column.data.append(data)
        payloads.append(payload)
        if after != last and event.salt is not None:
            cuts.append(CutRow(index, after))
            last = after
    return sorted(columns.items()), payloads, cuts


def _gathered_alike(
    events: Sequence[WireEvent], bodies: Sequence[EventBody]
) -> tuple[list[tuple[ColumnKey, _Attached]], list[bytes], list[CutRow]] | None:
    """Return the result of `_gathered` if each event is a frame with a vector of one space.

    None if not, or if a frame has another attachment.
    """
    vectors: list[Embedding] = []
    for body in bodies:
        if type(body) is not PutFrame or body.embedding is None:
            return None
        vectors.append(body.embedding)
    attachments = [event.attachments for event in events]
    data = [attached[0] for attached in attachments if len(attached) == 1]
    shapes = {(named.space, named.dtype, named.dimension, named.data.size) for named in vectors}
    if len(shapes) != 1 or len(data) < len(events):
        return None
    [(space, dtype, dimension, size)] = shapes
    if DTYPE_SIZES.get(dtype, 0) * dimension != size or {*map(len, data)} != {size}:
        return None
    hashes = [named.data.hash for named in vectors]
    cut = [without_hash(event.payload, each) for event, each in zip(events, hashes, strict=True)]
    cuts = [
        CutRow(index, after)
        for index, (_, after) in enumerate(cut)
        if after != (cut[index - 1][1] if index else None)
    ]
    checks = [each[:CHECK_SIZE] for each in hashes]
    numbers = [*range(len(events))]
    column = _Attached(numbers, [0] * len(events), checks, data)
    return [((space, dtype, dimension), column)], [payload for payload, _ in cut], cuts


class _Vectors(msgspec.Struct, frozen=True, gc=False):
    """The field of a body that determines an attachment's column."""

    embedding: Embedding | None = None


_VECTORS = msgspec.msgpack.Decoder(_Vectors)
_PAYLOAD = msgspec.msgpack.Decoder(Payload[msgspec.Raw])
_EMBEDDED: Final = (PutFrame, PutEmbedding)
_NO_CHECK: Final = bytes(CHECK_SIZE)
_NO_COLUMN: Final[ColumnKey] = ("", "", 0)


def columns_of(event: WireEvent) -> Iterator[tuple[ColumnKey, bytes]]:
    """Pair an event's attachments with their columns."""
    columns, _, _ = _gathered([event], None)
    for key, column in columns:
        for data in column.data:
            yield key, data


def _place_of(named: Attachment, attachments: Sequence[bytes]) -> int | None:
    """Return the index of a named attachment; the first match, as a blob may have the same bytes.

    The body names only attachments that are present, so a single match by size needs no hash.
    """
    if len(attachments) == 1:
        return 0 if len(attachments[0]) == named.size else None
    sized = [place for place, data in enumerate(attachments) if len(data) == named.size]
    if len(sized) < 2:
        return sized[0] if sized else None
    return next((place for place in sized if hash_bytes(attachments[place]) == named.hash), None)


def _embedding_in(event: WireEvent, body: EventBody | None) -> Embedding | None:
    """Return an event's embedding if its values fill a row of a column."""
    if event.salt is None:
        return None
    if isinstance(body, _EMBEDDED):
        embedding = body.embedding
    else:
        # A body of another kind, or of a later version, may hold any value under this name.
        embedding = None
        with suppress(*UNDECODABLE):
            embedding = _VECTORS.decode(_PAYLOAD.decode(event.payload).body).embedding
    if embedding is None:
        return None
    row_size = DTYPE_SIZES.get(embedding.dtype, 0) * embedding.dimension
    return embedding if 0 < row_size == embedding.data.size else None


def _packed(numbers: Sequence[int], dtype: str) -> bytes:
    return np.array(numbers, dtype).tobytes()


class _Block(msgspec.Struct, frozen=True, gc=False):
    """Compressed payloads of events ``first`` to before ``stop``, those in spills not counted."""

    first: int
    stop: int
    data: bytes
    raw_size: int


def _compressed_blocks(payloads: Sequence[bytes], sizes: Sequence[int]) -> Iterator[_Block]:
    """Gather payloads into blocks of about 16 KiB, cut between events, and compress them."""
    compress = codecs.compressor.compress
    first = 0
    while first < len(payloads):
        stop = first
        raw_size = 0
        count = len(payloads)
        while stop < count and (raw_size == 0 or raw_size + sizes[stop] <= BLOCK_SIZE_TARGET):
            raw_size += sizes[stop]
            stop += 1
        yield _Block(first, stop, compress(b"".join(payloads[first:stop])), raw_size)
        first = stop
