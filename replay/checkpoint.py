"""Checkpoints: projections' chunks in the file, what names them, and when they are worth it.

Owns the stored form (a chunk's body is its id, the BLAKE3-256 of its canonical bytes, and these
bytes in one zstd frame; pages of at most 256 references to chunks; the ledger of earlier digests)
and `Plan`, which decides what a checkpoint writes. Leaves out folding (`fold`).

Which ranges chunks cover is a function of the seq (`cerata.projections.ranges`); only where a
caller asked for the rest to be saved too, a partial range follows. So a checkpoint writes what is
new, and joins what is complete: each event's effects are written at most three times in all, and
one checkpoint joins 4,096 events of them at most.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import zstandard

from cerata.engine.errors import Corrupt
from cerata.engine.file import Flip, LogFile
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import (
    LEDGER_ENTRIES_MAX,
    MANIFEST_ENTRIES_MAX,
    LedgerEntry,
    Ref,
    SavedProjection,
    Toc,
    encode_ledger,
)
from cerata.engine.integrity import HASH_SIZE, hash_bytes
from cerata.engine.log import Log
from cerata.projections.projection import Projection
from cerata.projections.ranges import Range, complete_ranges, last_complete

_COMPRESSION_LEVEL: Final = 1
"""Of columns in planes, level 3 takes twice as long and saves nothing."""
_CHUNK_SIZE_MAX: Final = 1 << 32
_KEY: Final = re.compile(r"(?P<name>[^/]+)/(?P<version>[0-9]+)/[0-9a-f]{16}~?")
OUTLIVED_SEQS: Final = 32_768
"""Events that an earlier version may fall behind before its entry is dropped."""


# --- reading -------------------------------------------------------------------------------------


def read_chunk(log_file: LogFile, ref: Ref) -> bytes:
    """Return a chunk's canonical bytes.

    The extent's own check holds what is stored; hashing what it decodes to as well would take as
    long as decoding it, and is left to verify.

    Raises:
        Corrupt: the extent is damaged, or holds no chunk.
    """
    return decode_chunk(log_file.read_extent(ref, ExtentKind.CHUNK), ref)


def decode_chunk(body: bytes, ref: Ref) -> bytes:
    """Return the canonical bytes of a stored chunk, which starts with its id. Raises `Corrupt`."""
    try:
        size = zstandard.frame_content_size(body[HASH_SIZE:])
        if not 0 <= size <= _CHUNK_SIZE_MAX:
            raise Corrupt("A projection's chunk has a wrong size", offset=ref.offset)
        data = zstandard.ZstdDecompressor().decompress(body[HASH_SIZE:])
    except zstandard.ZstdError as error:
        raise Corrupt(
            f"A projection's chunk cannot be decoded: {error}", offset=ref.offset
        ) from error
    return data


def is_named_rightly(body: bytes, data: bytes) -> bool:
    """Tell whether a stored chunk's id is that of its canonical bytes."""
    return body[:HASH_SIZE] == hash_bytes(data)


def chunk_body(data: bytes) -> bytes:
    """Return what is stored of a chunk with these canonical bytes."""
    return hash_bytes(data) + zstandard.compress(data, _COMPRESSION_LEVEL)


def chunk_refs(log_file: LogFile, saved: SavedProjection) -> Iterator[tuple[Ref, Corrupt | None]]:
    """Yield the chunks of a checkpoint in order; in place of a damaged page's, it and its error."""
    for page in saved.chunks:
        try:
            refs = log_file.manifest(page)
        except Corrupt as error:
            yield page, error
        else:
            for ref in refs:
                yield ref, None


def ledger_of(log_file: LogFile, saved: SavedProjection) -> list[LedgerEntry] | None:
    """Return the digests of earlier checkpoints, oldest first; None where it is damaged."""
    if saved.ledger is None:
        return []
    try:
        return log_file.ledger(saved.ledger)
    except Corrupt:
        return None


# --- saving --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """A checkpoint of one projection, computed: chunks kept, and the bytes of new ones.

    It holds only while the TOC still has the entry ``found``: if another process saved its own
    meanwhile, that one stands. And only while the TOC has the value ``erased`` under which the
    projection was folded: else the chunks may hold content that is erased now.
    """

    found: SavedProjection
    seq: int
    digest: bytes
    chunks: tuple[Ref | tuple[Range, bytes], ...]
    ledger: tuple[LedgerEntry, ...]
    pages: tuple[tuple[Ref, ...], ...]
    erased: int

    def entry(self, flip: Flip) -> SavedProjection:
        """Add what is new to a flip, and return the entry that names it all."""
        refs = [
            chunk
            if isinstance(chunk, Ref)
            else flip.add(ExtentKind.CHUNK, chunk[1], chunk[0][0] + 1, chunk[0][1])
            for chunk in self.chunks
        ]
        known = dict(zip(self.pages, self.found.chunks, strict=True))
        ledger = flip.add(ExtentKind.LEDGER, encode_ledger(self.ledger), 1, self.seq)
        return SavedProjection(
            seq=self.seq,
            digest=self.digest,
            chunks=tuple(known.get(page) or flip.add_manifest(page) for page in _in_pages(refs)),
            ledger=ledger,
        )


def plan_checkpoint(
    projection: Projection,
    log_file: LogFile,
    saved: SavedProjection,
    *,
    erased: int,
    tail: bool,
    bad: frozenset[int] = frozenset(),
) -> Plan | None:
    """Return what a checkpoint of a projection would write, or None if nothing.

    ``erased`` is `Log.erased` from before the projection was folded. ``tail`` asks for the events
    after the last complete range too. ``bad`` are the first seqs of chunks that are to be made
    anew.

    Raises:
        StateDamaged: the state in memory is not what the fold left.
    """
    seq, end = projection.seq, last_complete(projection.seq)
    pages = _pages(log_file, saved)
    kept = {
        (ref.first_seq - 1, ref.last_seq): ref
        for page in pages
        for ref in page
        if ref.first_seq not in bad
    }
    wanted = complete_ranges(seq)
    partial = next((span for span in kept if span[0] == end), None)
    if tail and end < seq:
        wanted.append((end, seq))
    elif partial is not None and partial[1] <= seq:
        wanted.append(partial)
    reached = wanted[-1][1] if wanted else 0
    ledger = ledger_of(log_file, saved)
    is_whole = ledger is not None and all(span in kept for span in wanted)
    if reached < saved.seq or (reached == saved.seq and is_whole):
        return None
    projection.check()
    if saved.seq and not bad:
        projection.check_digest(saved.seq, saved.digest)
    digest = saved.digest if reached == saved.seq else projection.digest_at(reached)
    return Plan(
        found=saved,
        seq=reached,
        digest=digest,
        chunks=tuple(
            kept.get(span) or (span, chunk_body(projection.chunk(*span))) for span in wanted
        ),
        ledger=thinned(ledger or (), LedgerEntry(reached, digest)),
        pages=pages,
        erased=erased,
    )


def _pages(log_file: LogFile, saved: SavedProjection) -> tuple[tuple[Ref, ...], ...]:
    """Return the references on each page of a checkpoint; of a damaged page none."""
    found: list[tuple[Ref, ...]] = []
    for page in saved.chunks:
        try:
            found.append(log_file.manifest(page))
        except Corrupt:
            found.append(())
    return tuple(found)


def _in_pages(refs: Sequence[Ref]) -> Iterator[tuple[Ref, ...]]:
    for start in range(0, len(refs), MANIFEST_ENTRIES_MAX):
        yield tuple(refs[start : start + MANIFEST_ENTRIES_MAX])


def thinned(ledger: Sequence[LedgerEntry], newest: LedgerEntry) -> tuple[LedgerEntry, ...]:
    """Return a ledger with one more entry, and one less where there are 64.

    The one that goes is the one whose neighbours are nearest to each other for their age, so that
    what stays is dense near the end and ever sparser towards the start.
    """
    entries = [entry for entry in ledger if entry.seq < newest.seq]
    entries.append(newest)
    if len(entries) > LEDGER_ENTRIES_MAX:
        seqs = [entry.seq for entry in entries]

        def loneliness(place: int) -> int:
            before, after = seqs[place - 1], seqs[place + 1]
            return ((after - before) << 32) // (newest.seq - before)

        del entries[min(range(1, len(entries) - 1), key=loneliness)]
    return tuple(entries)


def outlived(toc: Toc, key: str, seq: int) -> Iterator[str]:
    """Yield the entries of earlier versions that nobody saves any more, given one saved at ``seq``.

    Who runs an earlier version saves every 4,096 events; its entry is dropped when it is 32,768
    behind. Later versions and other parameters stay, and other names: they are others' business.
    """
    own = _KEY.fullmatch(key)
    for other in toc.projections:
        found = _KEY.fullmatch(other)
        if own is None or found is None or own["name"] != found["name"]:
            continue
        is_earlier = int(found["version"]) < int(own["version"])
        if is_earlier and toc.saved(other).seq + OUTLIVED_SEQS <= seq:
            yield other


def publish(
    log: Log,
    plans: Mapping[str, Plan],
    moves: Mapping[str, str] | None = None,
    *,
    wait: bool = True,
) -> bool:
    """Write planned checkpoints, each unless another process has saved its own meanwhile.

    A plan from before an erasure that the file reflects is dropped, too.

    ``moves`` gives keys other names, in place of what had those. Durable on return. Returns
    whether all was done; a plan that another process overtook is left, and so is its move.
    Without ``wait`` it raises `Locked` where another writer is at work.
    """
    overtaken: set[str] = set()

    def build(flip: Flip, toc: Toc) -> dict[str, Mapping[str, Any] | None]:
        entries: dict[str, Mapping[str, Any] | None] = {}
        for key, plan in plans.items():
            # Under the writer lock, so that no erasure can come between.
            if toc.saved(key) == plan.found and toc.erased == plan.erased:
                entry = plan.entry(flip).to_entry()
                # Names of later versions stay.
                entries[key] = {**toc.projections.get(key, {}), **entry}
                entries.update(dict.fromkeys(outlived(toc, key, plan.seq)))
            else:
                overtaken.add(key)
        for key, name in (moves or {}).items():
            moved = entries.get(key, toc.projections.get(key))
            if moved is None or key in overtaken:
                overtaken.add(key)
            else:
                entries[name], entries[key] = moved, None
        return entries

    log.publish_projections(build, wait=wait)
    return not overtaken
