"""Checkpoints: the chunks of projections in the file, their index, and the choice of ranges.

Owns the stored form (a chunk's body is its id, the BLAKE3-256 of its canonical bytes, the places of
its vectors, and these bytes in one zstd frame; pages of at most 256 references to chunks; the
ledger of earlier digests) and `Plan`, the writes of a checkpoint. Leaves out folding (`fold`).
A range whose events have no effect on a projection has no chunk, so an empty state has none at all.

The ranges of chunks are a function of the seq (`cerata.projections.core.seal`); a partial range
follows only if the caller also saves the tail. So a checkpoint writes new events, and joins
complete ranges: each event's effects are written at most three times in all, and a checkpoint joins
at most 4,096 events.
"""

import re
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import zstandard

from cerata.engine.errors import Corrupt
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import (
    LEDGER_ENTRIES_MAX,
    MANIFEST_ENTRIES_MAX,
    LedgerEntry,
    Ref,
    SavedProjection,
    Section,
    Toc,
)
from cerata.engine.integrity import HASH_SIZE, hash_bytes
from cerata.engine.log import Log
from cerata.engine.log_file.file import Flip, LogFile, StateDraft
from cerata.projections.core.projection import Projection, is_idle
from cerata.projections.core.seal import RANGE_SEQS, Range, complete_ranges, layout

COMPRESSION_LEVEL: Final = 1
"""Level 3 takes twice as long on columns in planes, and saves nothing."""
COPY_LEVEL: Final = 15
"""The level of a compacted file, whose chunks are written once: a tenth smaller, for 9 us an event.
"""
_CHUNK_SIZE_MAX: Final = 1 << 32
_KEY: Final = re.compile(r"(?P<name>[^/]+)/(?P<version>[0-9]+)/[0-9a-f]{16}~?")
OUTLIVED_SEQS: Final = 32_768
"""Events by which an earlier version may lag before its entry is dropped."""
_PLACES_SIZE: Final = struct.Struct("<I")

Places: TypeAlias = Callable[[Projection, Range], bytes]
"""Returns the places of the vectors of a range; empty for other projections."""


def _no_places(_projection: Projection, _span: Range) -> bytes:
    return b""


class _Codecs(threading.local):
    """A decompressor per thread: a new one for each chunk costs more than a small chunk."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


# --- reading -------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    """A chunk's canonical bytes, the places of its vectors, and its stored id."""

    data: bytes
    places: bytes
    id: bytes

    @property
    def is_named_rightly(self) -> bool:
        """True if the stored id is the hash of the canonical bytes."""
        return self.id == hash_bytes(self.data)


def read_chunk(log_file: LogFile, ref: Ref) -> Chunk:
    """Return a chunk.

    The extent's check covers the stored bytes. Hashing the decoded bytes as well would take as long
    as decoding, and is left to verify.

    Raises:
        Corrupt: the extent is damaged, or contains no chunk.
    """
    return decode_chunk(log_file.read_extent(ref, ExtentKind.CHUNK), ref)


def decode_chunk(body: bytes, ref: Ref) -> Chunk:
    """Return a stored chunk. Raises `Corrupt`."""
    start = HASH_SIZE + _PLACES_SIZE.size
    places_size = _PLACES_SIZE.unpack_from(body, HASH_SIZE)[0] if len(body) >= start else 0
    places = body[start : start + places_size]
    content = memoryview(body)[start + places_size :]
    try:
        size = zstandard.frame_content_size(content)
        if not 0 <= size <= _CHUNK_SIZE_MAX:
            raise Corrupt("A projection's chunk has a wrong size", offset=ref.offset)
        data = _codecs.decompressor.decompress(content)
    except zstandard.ZstdError as error:
        raise Corrupt(
            f"A projection's chunk cannot be decoded: {error}", offset=ref.offset
        ) from error
    return Chunk(data, places, body[:HASH_SIZE])


def chunk_body(data: bytes, places: bytes = b"", level: int = COMPRESSION_LEVEL) -> bytes:
    """Return the stored form of a chunk with these canonical bytes and places."""
    content = zstandard.compress(data, level)
    return b"".join([hash_bytes(data), _PLACES_SIZE.pack(len(places)), places, content])


def chunk_refs(log_file: LogFile, saved: SavedProjection) -> Iterator[tuple[Ref, Corrupt | None]]:
    """Yield the chunks of a checkpoint in order; for a damaged page its reference and error."""
    for page in saved.chunks:
        try:
            refs = log_file.page(page)
        except Corrupt as error:
            yield page.extent, error
        else:
            for ref in refs:
                yield ref, None


class SavedRange(NamedTuple):
    """A range of a checkpoint: its chunk, the damage in place of a chunk, or neither if idle."""

    range: Range
    ref: Ref | None
    damage: Corrupt | None

    @property
    def is_idle(self) -> bool:
        """True if the events have no effect, so that there is no chunk."""
        return self.ref is None and self.damage is None


def saved_ranges(log_file: LogFile, saved: SavedProjection) -> list[SavedRange]:
    """Return the ranges of a checkpoint in order.

    A range is idle only if no page that may have named its chunk is damaged, and no chunk of other
    events overlaps it.
    """
    ranges = layout(saved.seq)
    if not saved.chunks:
        # An idle state: most states of a file have no event of their own.
        return [*map(SavedRange, ranges, repeat(None), repeat(None))]
    chunks = dict[Range, Ref]()
    damaged: list[tuple[Range, Corrupt]] = []
    for ref, damage in chunk_refs(log_file, saved):
        span = ref.first_seq - 1, ref.last_seq
        if damage is None:
            chunks[span] = ref
        else:
            damaged.append((span, damage))
    for span in chunks.keys() - {*ranges}:
        where = chunks[span].offset
        damaged.append((span, Corrupt("A projection's chunk covers no range", offset=where)))
    if not damaged:
        return [SavedRange(span, chunks.get(span), None) for span in ranges]

    def damage_of(span: Range) -> Corrupt | None:
        overlaps = (error for (start, end), error in damaged if start < span[1] and span[0] < end)
        return None if span in chunks else next(overlaps, None)

    return [SavedRange(span, chunks.get(span), damage_of(span)) for span in ranges]


def ledger_of(log_file: LogFile, saved: SavedProjection) -> list[LedgerEntry] | None:
    """Return the digests of checkpoints, oldest first; None if the ledger is damaged.

    An entry without a ledger has only the digest of its own checkpoint.
    """
    if saved.ledger is None:
        return [LedgerEntry(saved.seq, saved.digest)] if saved.seq else []
    try:
        return log_file.ledger(saved.ledger)
    except Corrupt:
        return None


# --- saving --------------------------------------------------------------------------------------


class Shared(NamedTuple):
    """The chunks of another entry of the TOC, by range, that equal those of a new checkpoint."""

    key: str
    refs: Mapping[Range, Ref]


_NOTHING_SHARED: Final = Shared("", {})


class Plan(msgspec.Struct, frozen=True):
    """A computed checkpoint of a projection: references to stored chunks, and new chunks.

    The plan is valid only while the TOC has the entry ``found`` (else another process has saved its
    checkpoint, which stays), and only while the TOC has the value ``erased`` under which the
    projection was folded (else the chunks may contain erased content). ``shared`` are the chunks
    that another entry of the TOC has, too; the plan is valid only while that entry has them (else a
    compaction may have moved them).
    """

    found: SavedProjection
    seq: int
    digest: bytes
    chunks: tuple[Ref | tuple[Range, bytes], ...]
    ledger: tuple[LedgerEntry, ...]
    pages: tuple[tuple[Ref, ...], ...]
    erased: int
    shared: Shared

    def is_valid(self, key: str, log_file: LogFile, toc: Toc) -> bool:
        """Return whether the TOC is still as the plan found it; ``key`` is that of the plan."""
        if toc.saved(key) != self.found or toc.erased != self.erased:
            return False
        refs = self.shared.refs
        return not refs or {*refs.values()} <= {
            *stored_chunks(log_file, toc.saved(self.shared.key)).values()
        }

    def draft(self, flip: Flip) -> StateDraft:
        """Add new chunks to a flip, and return the checkpoint without its new pages and ledger."""
        if not self.chunks:
            return StateDraft(self.seq, self.digest, ())
        refs: list[Ref] = []
        for chunk in self.chunks:
            if isinstance(chunk, Ref):
                refs.append(chunk)
            else:
                (after, through), body = chunk
                refs.append(flip.add(ExtentKind.CHUNK, body, after + 1, through))
        stored_pages = dict(zip(self.pages, self.found.chunks, strict=True))
        pages: list[Section | tuple[Ref, ...]] = []
        for page in in_pages(refs):
            pages.append(stored_pages.get(page, page))
        return StateDraft(self.seq, self.digest, pages, stored_ledger(self.ledger, refs))


def stored_ledger(ledger: Sequence[LedgerEntry], refs: Sequence[Ref]) -> Sequence[LedgerEntry]:
    """Return the ledger to store: none for a single digest, the entry's, or for an empty state.

    The digest of an empty state follows from the seq.
    """
    return ledger if len(ledger) > 1 and refs else ()


def plan_checkpoint(
    projection: Projection,
    log_file: LogFile,
    saved: SavedProjection,
    *,
    erased: int,
    tail: bool,
    bad: frozenset[int] = frozenset(),
    through: int | None = None,
    places: Places = _no_places,
    shared: Shared = _NOTHING_SHARED,
    level: int = COMPRESSION_LEVEL,
) -> Plan | None:
    """Return the checkpoint plan of a projection, or None if there is nothing to write.

    ``erased`` is `Log.erased` from before the fold of the projection. ``tail`` includes the events
    after the last complete range. ``bad`` are the first seqs of chunks to replace. ``through``, the
    end of a largest range, leaves out the events after it. Chunks of ``shared`` are named, not
    written again. ``level`` is that of the compression.

    Raises:
        StateDamaged: the state in memory differs from the result of the fold.
    """
    seq = projection.seq if through is None else min(projection.seq, through)
    end = seq - seq % RANGE_SEQS
    stored: dict[Range, Ref | None] = {}
    partial: Range | None = None
    for span, ref, hurt in saved_ranges(log_file, saved):
        if hurt is None and span[0] + 1 not in bad:
            stored[span] = ref
            if span[0] == end:
                partial = span
    spans = [*complete_ranges(seq)]
    if tail and end < seq:
        spans.append((end, seq))
    elif partial is not None and partial[1] <= seq:
        spans.append(partial)
    reached = spans[-1][1] if spans else 0
    ledger = ledger_of(log_file, saved)
    is_whole = ledger is not None and stored.keys() >= {*spans}
    if reached < saved.seq or (reached == saved.seq and is_whole):
        return None
    projection.check()
    if saved.seq and not bad:
        projection.check_digest(saved.seq, saved.digest)
    digest = saved.digest if reached == saved.seq else projection.digest_at(reached)
    chunks: list[Ref | tuple[Range, bytes]] = []
    for span in spans:
        ref = stored[span] if span in stored else shared.refs.get(span)
        if ref is not None:
            chunks.append(ref)
        elif span not in stored:
            data = projection.chunk(*span)
            if not is_idle(data):
                chunks.append((span, chunk_body(data, places(projection, span), level)))
    return Plan(
        found=saved,
        seq=reached,
        digest=digest,
        chunks=tuple(chunks),
        ledger=thinned(ledger or (), LedgerEntry(reached, digest)),
        pages=_pages(log_file, saved) if saved.chunks else (),
        erased=erased,
        shared=_named(shared, {*spans} - stored.keys()) if shared.refs else shared,
    )


def _named(shared: Shared, spans: Collection[Range]) -> Shared:
    """Return those shared chunks that a plan names, by their ranges."""
    return Shared(shared.key, {span: shared.refs[span] for span in spans if span in shared.refs})


def stored_chunks(log_file: LogFile, saved: SavedProjection) -> dict[Range, Ref]:
    """Return the chunks of a checkpoint by their ranges, without those of damaged pages."""
    return {
        (ref.first_seq - 1, ref.last_seq): ref for page in _pages(log_file, saved) for ref in page
    }


def extended_plan(
    log_file: LogFile,
    saved: SavedProjection,
    chunks: Sequence[tuple[Range, bytes | None]],
    shared: Shared,
    digest: bytes,
    erased: int,
) -> Plan:
    """Return the plan of a checkpoint with more chunks, which were folded in another process.

    Each new chunk is its range and its stored form, no bytes if it is ``shared``, None if the range
    is idle; ``digest`` is that at the end of the last.
    """
    pages = _pages(log_file, saved)
    seq = chunks[-1][0][1]
    shared = _named(shared, [span for span, body in chunks if body == b""])
    return Plan(
        found=saved,
        seq=seq,
        digest=digest,
        chunks=(
            *(ref for page in pages for ref in page),
            *(
                (span, body) if body else shared.refs[span]
                for span, body in chunks
                if body is not None
            ),
        ),
        ledger=thinned(ledger_of(log_file, saved) or (), LedgerEntry(seq, digest)),
        pages=pages,
        erased=erased,
        shared=shared,
    )


def _pages(log_file: LogFile, saved: SavedProjection) -> tuple[tuple[Ref, ...], ...]:
    """Return the references on each page of a checkpoint; none for a damaged page."""
    pages: list[tuple[Ref, ...]] = []
    for page in saved.chunks:
        try:
            pages.append(log_file.page(page))
        except Corrupt:
            pages.append(())
    return tuple(pages)


def in_pages(refs: Sequence[Ref]) -> list[tuple[Ref, ...]]:
    """Return references in groups that fill a manifest page."""
    size = MANIFEST_ENTRIES_MAX
    return [tuple(refs[start : start + size]) for start in range(0, len(refs), size)]


def thinned(ledger: Sequence[LedgerEntry], newest: LedgerEntry) -> tuple[LedgerEntry, ...]:
    """Return a ledger with one more entry, and one less at a length of 64.

    The dropped entry has the nearest neighbours relative to its age, so the ledger
    stays dense near the end and ever sparser towards the start.
    """
    if not ledger:
        return (newest,)
    entries: list[LedgerEntry] = []
    for entry in ledger:
        if entry.seq < newest.seq:
            entries.append(entry)
    entries.append(newest)
    if len(entries) > LEDGER_ENTRIES_MAX:
        seqs = [entry.seq for entry in entries]

        def loneliness(place: int) -> int:
            before = seqs[place - 1]
            after = seqs[place + 1]
            return ((after - before) << 32) // (newest.seq - before)

        del entries[min(range(1, len(entries) - 1), key=loneliness)]
    return tuple(entries)


def outlived(toc: Toc, seqs: Mapping[str, int]) -> list[str]:
    """Return the keys of earlier versions that no process saves any more.

    A process with an earlier version saves every 4,096 events; its entry is dropped when it lags by
    32,768. Later versions, other parameters and other names stay.

    Args:
        toc: The TOC before the save.
        seqs: The event of the save of each key.
    """
    others = toc.projections.keys() - seqs.keys()
    if not others:
        return []
    saves: dict[str, list[tuple[int, int]]] = {}
    for current in filter(None, map(_KEY.fullmatch, seqs)):
        saves.setdefault(current["name"], []).append((int(current["version"]), seqs[current[0]]))
    keys: list[str] = []
    for match in filter(None, map(_KEY.fullmatch, sorted(others))):
        version, end = int(match["version"]), toc.saved(match[0]).seq + OUTLIVED_SEQS
        if any(version < later and end <= seq for later, seq in saves.get(match["name"], ())):
            keys.append(match[0])
    return keys


def is_of_others(key: str, saved: Collection[str]) -> bool:
    """Return whether a key is of a projection that this process, which saves some, does not run.

    Unknown names, other parameters and later versions are; earlier versions, and the states of
    unfinished folds, are not.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        return True
    versions = dict[str, int]()
    for current in filter(None, map(_KEY.fullmatch, saved)):
        versions[current["name"]] = int(current["version"])
    version = versions.get(match["name"], 0)
    return key not in saved and not key.endswith("~") and int(match["version"]) >= version


_FIELDS: Final = frozenset(SavedProjection.__struct_fields__)


def _later_fields(toc: Toc, key: str) -> dict[str, Any]:
    """Return the fields of an entry that this version does not know."""
    entry = toc.projections.get(key, {})
    return {name: entry[name] for name in entry if name not in _FIELDS}


def publish(
    log: Log,
    plans: Mapping[str, Plan],
    moves: Mapping[str, str] | None = None,
    *,
    wait: bool = True,
) -> bool:
    """Write planned checkpoints, except plans that another process overtook.

    A plan from before an erasure that the file reflects is dropped, too.

    ``moves`` renames keys, and replaces any entries of the new names. Durable on return. Returns
    whether everything was written; an overtaken plan is dropped, and so is its move. Without
    ``wait``, raises `Locked` if another writer is active.
    """
    overtaken: set[str] = set()

    def build(flip: Flip, toc: Toc) -> dict[str, Mapping[str, Any] | None]:
        entries: dict[str, Mapping[str, Any] | None] = {}
        # Under the writer lock, so no erasure can intervene.
        log_file = log.file
        valid = {key: plan for key, plan in plans.items() if plan.is_valid(key, log_file, toc)}
        overtaken.update(plans.keys() - valid.keys())
        saved = flip.add_states({key: plan.draft(flip) for key, plan in valid.items()})
        seqs: dict[str, int] = {}
        for key, plan in valid.items():
            has_later = not _FIELDS.issuperset(toc.projections.get(key, ()))
            later = _later_fields(toc, key) if has_later else {}
            entries[key] = {**later, **saved[key].to_entry()}
            seqs[key] = plan.seq
        entries.update(dict.fromkeys(outlived(toc, seqs)))
        for key, name in (moves or {}).items():
            moved = entries.get(key, toc.projections.get(key))
            if moved is None or key in overtaken:
                overtaken.add(key)
            else:
                entries[name] = moved
                entries[key] = None
        return entries

    log.publish_projections(build, wait=wait)
    return not overtaken
