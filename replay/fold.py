"""Folding: projections restored from checkpoints, brought up to the log, and saved again.

Owns when and over what the folds run; the folds themselves are pure (`cerata.projections`).
Nothing is folded until somebody asks: opening and appending touch the log alone. A checkpoint is
a list of chunks whose sizes grow geometrically, so that it has O(log n) of them and saving costs
O(new events · log n) in all. Any chunk that does not verify is folded again from its own events.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import zstandard

from cerata.engine.errors import Corrupt
from cerata.engine.events import Event
from cerata.engine.file import Flip
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import Ref, Toc
from cerata.engine.integrity import HASH_SIZE, hash_bytes
from cerata.engine.log import Log
from cerata.projections.frame_table import Frames
from cerata.projections.frames import FramesProjection
from cerata.projections.fulltext import FulltextProjection
from cerata.projections.projection import Projection, salt_of
from cerata.projections.ranking import Fulltext

_STEP_EVENTS: Final = 4096
_COMPRESSION_LEVEL: Final = 3
_CHUNK_SIZE_MAX: Final = 1 << 32

_EVENTS_PER_MS: Final = 40
"""Events that a fold takes in a millisecond, for policy only: costs are estimated, not clocked."""
CLOSE_COST_MS: Final = 5
REPLAY_COST_MS: Final = 100


def projection_key(projection: Projection) -> str:
    """Return the name of a projection in the TOC: other parameters are another projection."""
    salt = salt_of(projection.name, projection.version, projection.parameters)
    return f"{projection.name}/{projection.version}/{salt[:8].hex()}"


def new_projections() -> tuple[FramesProjection, FulltextProjection]:
    """Return the projections of a store, with nothing folded."""
    return FramesProjection(), FulltextProjection()


@dataclass(frozen=True, slots=True)
class FoldReport:
    """How a projection got its state: what was restored, replayed, and could not be used."""

    restored_events: int
    replayed_events: int
    bad_chunks: tuple[str, ...]


class Fold:
    """The projections of one open log. Any thread may ask; one folds at a time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._mutex = threading.RLock()
        self._frames, self._fulltext = new_projections()
        self._restored: set[str] = set()
        self._bad_chunks: dict[str, set[int]] = {}
        self.reports: dict[str, FoldReport] = {}

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Every projection, folded or not."""
        return self._frames, self._fulltext

    def frames(self, through: int | None = None) -> Frames:
        """Return frames folded at least through an event, by default the log's head.

        Raises:
            Corrupt: the log is damaged before that event.
        """
        with self._mutex:
            self._advance(self._frames, through)
            return self._frames.snapshot()

    def fulltext(self, through: int | None = None) -> Fulltext:
        """Return the full text folded at least through an event, by default the log's head.

        Raises:
            Corrupt: the log is damaged before that event.
        """
        with self._mutex:
            self._advance(self._fulltext, through)
            return self._fulltext.snapshot()

    def digests(self) -> dict[str, bytes]:
        """Return every projection's digest at the log's head."""
        with self._mutex:
            for projection in self.projections:
                self._advance(projection)
            return {projection.name: projection.digest() for projection in self.projections}

    # --- restoring and folding -------------------------------------------------------------------

    def _advance(self, projection: Projection, through: int | None = None) -> None:
        """Fold to the head; damage on the way is an error only if it lies before ``through``."""
        if projection.name not in self._restored:
            self._restore(projection)
        head = self._log.head.seq
        wanted = head if through is None else through
        if projection.seq >= wanted:
            return
        try:
            apply_events(projection, self._log.read(projection.seq + 1, head))
        except Corrupt as error:
            if projection.seq < wanted:
                raise _hole(error, projection.seq) from error

    def _restore(self, projection: Projection) -> None:
        bad: list[str] = []
        replayed = 0
        for ref in saved_chunks(self._log.toc(), projection_key(projection)):
            try:
                projection.load(self._read_chunk(ref))
            except Corrupt as error:
                bad.append(str(error))
                self._bad_chunks.setdefault(projection.name, set()).add(ref.first_seq)
                before = projection.seq
                try:
                    apply_events(projection, self._log.read(before + 1, ref.last_seq))
                except Corrupt:
                    # The log is damaged there too; whoever asks for what lies beyond is told.
                    break
                finally:
                    replayed += projection.seq - before
        self._restored.add(projection.name)
        self.reports[projection.name] = FoldReport(projection.seq - replayed, replayed, tuple(bad))

    def _read_chunk(self, ref: Ref) -> bytes:
        body = self._log.file.read_extent(ref, ExtentKind.CHUNK)
        try:
            size = zstandard.frame_content_size(body[HASH_SIZE:])
            if not 0 <= size <= _CHUNK_SIZE_MAX:
                raise Corrupt("A projection's chunk has a wrong size", offset=ref.offset)
            data = zstandard.ZstdDecompressor().decompress(body[HASH_SIZE:])
        except zstandard.ZstdError as error:
            raise Corrupt(
                f"A projection's chunk cannot be decoded: {error}", offset=ref.offset
            ) from error
        if hash_bytes(data) != body[:HASH_SIZE]:
            raise Corrupt("A projection's chunk is not the one named", offset=ref.offset)
        return data

    # --- saving ----------------------------------------------------------------------------------

    def pending_events(self) -> int:
        """Return how many events the next opener would have to fold."""
        entries = self._log.toc().projections
        saved = min(
            (entries.get(projection_key(one), {}).get("seq", 0) for one in self.projections),
            default=0,
        )
        return int(self._log.head.seq - saved)

    def is_worth_saving(self, cost_ms: float) -> bool:
        """Tell whether folding what no checkpoint has would cost more than this."""
        return self.pending_events() > cost_ms * _EVENTS_PER_MS

    def save(self) -> None:
        """Write a checkpoint of every projection at the head. Durable on return.

        Chunks are computed and compressed before the writer lock is taken.
        """
        with self._mutex:
            self._log.refresh()
            toc = self._log.toc()
            plans = [self._plan(projection, toc) for projection in self.projections]

            def build(flip: Flip, toc: Toc) -> Mapping[str, Mapping[str, Any]]:
                return {
                    plan.key: plan.entry(flip)
                    for plan in plans
                    if plan.found == saved_chunks(toc, plan.key)
                }

            self._log.publish_projections(build)
            self._bad_chunks.clear()

    def _plan(self, projection: Projection, toc: Toc) -> "_Plan":
        """Make one chunk of the events since the last checkpoint and of smaller chunks before."""
        self._advance(projection)
        key = projection_key(projection)
        found = saved_chunks(toc, key)
        kept = list(found)
        bad = self._bad_chunks.get(projection.name, set())
        while bad and kept and kept[-1].last_seq >= min(bad):
            kept.pop()
        end = projection.seq
        start = min(kept[-1].last_seq if kept else 0, end)
        body = None
        if start < end:
            while kept and kept[-1].last_seq - kept[-1].first_seq + 1 <= 2 * (end - start):
                start = kept.pop().first_seq - 1
            data = projection.chunk(start, end)
            body = hash_bytes(data) + zstandard.compress(data, _COMPRESSION_LEVEL)
        return _Plan(key, found, kept, start + 1, end, projection.digest(), body)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A checkpoint of one projection: chunks kept, and the new one's bytes.

    It holds only while the TOC still names the chunks ``found``: if another process saved its
    own meanwhile, that one stands.
    """

    key: str
    found: list[Ref]
    kept: list[Ref]
    first_seq: int
    seq: int
    digest: bytes
    body: bytes | None

    def entry(self, flip: Flip) -> Mapping[str, Any]:
        refs = self.kept
        if self.body is not None:
            refs = [*refs, flip.add(ExtentKind.CHUNK, self.body, self.first_seq, self.seq)]
        return {"seq": self.seq, "digest": self.digest, "chunks": [list(ref) for ref in refs]}


def saved_chunks(toc: Toc, key: str) -> list[Ref]:
    """Return the chunks of a projection's checkpoint, oldest first."""
    return [Ref(*row) for row in toc.projections.get(key, {}).get("chunks", ())]


def apply_events(projection: Projection, events: Iterator[Event]) -> None:
    """Fold events in batches.

    Raises:
        Corrupt: reading met damage; every event before it is folded.
    """
    for batch in _batches(events):
        projection.apply(batch)


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    """Yield events in lists; where reading meets damage, first those read before it."""
    batch: list[Event] = []
    try:
        for event in events:
            batch.append(event)
            if len(batch) == _STEP_EVENTS:
                yield batch
                batch = []
    except Corrupt:
        yield batch
        raise
    yield batch


def _hole(error: Corrupt, last_seq: int) -> Corrupt:
    """Return the error of a read beyond damage in the log."""
    return Corrupt(
        f"The log is damaged after event {last_seq:,}: {error.what}",
        where=error.where,
        remedy=f"Read the memory before it with at({last_seq}); run 'cerata verify' for the rest.",
        offset=error.offset,
    )


def replayed_digests(log: Log, projections: Sequence[Projection] | None = None) -> dict[str, bytes]:
    """Fold the whole log from its first event, ignoring every checkpoint; return the digests.

    Cost: one pass over all events.
    """
    fresh = list(new_projections() if projections is None else projections)
    for batch in _batches(log.read()):
        for projection in fresh:
            projection.apply(batch)
    return {projection.name: projection.digest() for projection in fresh}
