"""Folding: projections restored from checkpoints, brought up to the log, and saved again.

Owns the schedule and the input of folds; the folds themselves are pure (`cerata.projections`), and
`checkpoint` owns the form of a checkpoint. Folding is lazy: opening and appending touch the log
alone. If a chunk does not verify, its events are folded again.

An exception may strike at any bytecode of a fold (Ctrl-C, MemoryError, an alarm). So a projection
is removed from the table of settled states before any change, and is put back by one assignment
after the last change. An interrupted fold leaves no entry: the next read restores the projection
and folds it again.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from cerata.engine.errors import (
    Corrupt,
    InvalidInput,
    Locked,
    NotFound,
    OutcomeUnknown,
    ProjectionFailed,
    StorageFailed,
)
from cerata.engine.format.toc import SavedProjection, Toc
from cerata.engine.late import late
from cerata.engine.log import Log
from cerata.engine.log_file.file import LogFile
from cerata.projections.core.column_fold import BlockFold
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.core.projection import (
    FoldedEvent,
    Forkable,
    Projection,
    Readable,
    Readers,
    ReaderType,
)
from cerata.projections.core.seal import RANGE_SEQS, Range, StateDamaged
from cerata.projections.registry import BUILT_IN, Registry, projection_key

from .checkpoint import (
    COMPRESSION_LEVEL,
    Chunk,
    Plan,
    SavedRange,
    plan_checkpoint,
    publish,
    read_chunk,
    saved_ranges,
)
from .feed import apply_events, hole, next_stop, read_batches, recent_batches
from .gradual_checkpoint import GradualCheckpoint

if TYPE_CHECKING:
    from cerata.projections.facts import projection as facts_projection
    from cerata.projections.facts import text_projection as fact_text_projection
    from cerata.projections.facts.history import Facts
    from cerata.projections.facts.text_projection import FactText
    from cerata.projections.frames import projection as frames_projection
    from cerata.projections.frames.reader import Frames
    from cerata.projections.fulltext import projection as fulltext_projection
    from cerata.projections.fulltext.bm25 import Fulltext
    from cerata.projections.links import projection as links_projection
    from cerata.projections.links.reader import Links
    from cerata.projections.rows import built_in as embedder_rows
    from cerata.projections.rows import row_fold as rows_fold
    from cerata.projections.rows.built_in import UsedEmbedders
    from cerata.projections.rows.row_fold import OwnProjection, RowFold
    from cerata.projections.rows.row_projection import Key as RowKey
    from cerata.projections.vectors import projection as vectors_projection
    from cerata.projections.vectors.columns import Key
    from cerata.projections.vectors.reader import Space, Vectors

    from . import vector_places as place_directories
    from . import vector_store
    from . import vector_store as token_vector_store
    from .vector_places import PlaceDirectory
    from .vector_store import StoredTokens, StoredVectors
else:
    facts_projection = late("cerata.projections.facts.projection")
    fact_text_projection = late("cerata.projections.facts.text_projection")
    frames_projection = late("cerata.projections.frames.projection")
    fulltext_projection = late("cerata.projections.fulltext.projection")
    links_projection = late("cerata.projections.links.projection")
    embedder_rows = late("cerata.projections.rows.built_in")
    rows_fold = late("cerata.projections.rows.row_fold")
    vectors_projection = late("cerata.projections.vectors.projection")
    place_directories = late("cerata.replay.vector_places")
    token_vector_store = late("cerata.replay.vector_store")
    vector_store = late("cerata.replay.vector_store")


_EVENTS_PER_MS: Final = 40
"""Events folded in a millisecond, for policy only: costs are estimated, not clocked."""
CLOSE_COST_MS: Final = 5
_CHUNKS_TOGETHER: Final = 32
"""Chunks in memory at once during a load, decompressed: about 25 MB."""

_CHUNKS_OF_STEP: Final = 4
"""Chunks that a step of a gradual checkpoint loads: about 10 ms."""

NOT_FOLDED: Final = -1
"""In place of the erasure that a fold reflects; no file has this value, so no plan is published."""

_TOGETHER_MAX: Final = 16
"""New events that are decoded once for all projections, which are read after one write or a few."""

_NO_EVENTS: Final = (0, 0), ()

_OWN_KEPT_MAX: Final = 8
"""Cached states of user projections."""

_TRIES: Final = 3
"""Times that a state is folded again after damage in memory."""

ProjectionType = TypeVar("ProjectionType", bound=Projection)
ForkableType = TypeVar("ForkableType", bound=Forkable)
Result = TypeVar("Result")


class _Reader(Protocol):
    """A reader of a state at any point through ``seq``."""

    seq: int


KeptType = TypeVar("KeptType", bound=_Reader)

Progress = Callable[[str, int, int], None]
"""Called with the name of the task, the number of processed events, and the total."""


@dataclass(frozen=True, slots=True)
class FoldReport:
    """The source of a projection's state: restored and replayed events, and unusable chunks."""

    restored_events: int
    replayed_events: int
    bad_chunks: tuple[str, ...]
    bad_seqs: frozenset[int] = frozenset()
    """The first seqs of the unusable chunks."""


class _Save(NamedTuple):
    """The checkpoints to plan.

    - ``tail`` includes the events after the last complete range; ``through`` leaves out those after
      it, and None saves to the head.
    - A state that is folded to ``head`` needs no further look at the log.
    """

    toc: Toc
    log_file: LogFile
    tail: bool = False
    through: int | None = None
    head: int | None = None


class Fold:
    """The projections of an open log. Any thread may read; one thread folds at a time.

    ``last`` ends the log early: the fold is then that of the log as of that event. Without
    ``use_checkpoints`` every state comes from the events alone. Methods that fold raise `Corrupt`
    if the log is damaged before the requested event.
    """

    def __init__(
        self,
        log: Log,
        registry: Registry | None = None,
        *,
        last: int | None = None,
        use_checkpoints: bool = True,
        level: int = COMPRESSION_LEVEL,
    ) -> None:
        self._log = log
        self._level = level
        self.registry = registry or Registry()
        self._last = last
        self._use_checkpoints = use_checkpoints
        self._mutex = threading.RLock()
        # Whole states only, never a projection in the middle of a change.
        self._settled: dict[str, Projection] = {}
        # Projections that the steps of a checkpoint have restored in part, and their checkpoints.
        self._partial: dict[str, tuple[SavedProjection, Projection]] = {}
        # The first event with an undecodable payload, once a fold has met it.
        self._undecodable: int | None = None
        self._failed: set[str] = set()
        self._keys: dict[str, str] = {}
        self._seen: tuple[Toc | None, int] = None, 0
        # The head from which automatic saves are tried.
        self._try_from = 0
        self._own: dict[tuple[str, int], OwnProjection] = {}
        self._together: tuple[tuple[int, int], tuple[EventBatch, ...]] = _NO_EVENTS
        """A range of a few new events, and these events."""
        self._kept: dict[str, Any] = {}
        """The last readers of frames, facts, links and vectors, by the name of the projection."""
        self._stored: dict[Key, StoredVectors] = {}
        self._stored_tokens: dict[Key, StoredTokens] = {}
        self._place_directory: PlaceDirectory | None = None
        self.reports: dict[str, FoldReport] = {}
        self._replaced = 0
        self._erased = NOT_FOLDED
        self._gradual = GradualCheckpoint(log, self)

    @property
    def replaced(self) -> int:
        """The number of times that folded state was replaced, by a rebuild or after an erasure."""
        self._drop_all_if_erased()
        return self._replaced

    def _drop_all_if_erased(self) -> None:
        """Drop all folded state if the file reflects another erasure than the state.

        `_erased` is set before anything is folded. So a state that an erasure overtakes has the
        older value: its checkpoint is refused, and the next call here drops it.
        """
        try:
            erased = self._log.erased
        except Corrupt:
            # Without the TOC no sealed event can be read and no checkpoint written.
            return
        if erased == self._erased:
            return
        with self._mutex:
            if self._erased != NOT_FOLDED:
                for states in (
                    self._settled,
                    self._partial,
                    self._failed,
                    self._own,
                    self.reports,
                ):
                    states.clear()
                for stored in (self._stored, self._stored_tokens):
                    stored.clear()
                self._place_directory = None
                self._undecodable = None
                self._together = _NO_EVENTS
                self._kept.clear()
                self._seen = (None, 0)
                self._try_from = 0
                self._replaced += 1
                self._log.forget()
            # Last, so that an interrupt leaves the older value, and all is dropped again.
            self._erased = erased

    # --- reading ---------------------------------------------------------------------------------

    def check_whole(self, point: int) -> None:
        """Refuse a point whose contents retention gave up, maybe since the caller chose it.

        Raises:
            HistoryPruned: the point lies before the horizon and had no tag.
        """
        self._log.horizon().check(point)

    def frames(self, through: int | None = None) -> Frames:
        """Return frames folded through at least an event, by default the log's head."""
        kind = frames_projection.FramesProjection
        return self._kept_reader(kind, kind.snapshot, through)

    def fulltext(self, through: int | None = None) -> Fulltext:
        """Return the full text folded through at least an event, by default the log's head."""
        return self._using_kind(
            fulltext_projection.FulltextProjection,
            through,
            fulltext_projection.FulltextProjection.snapshot,
        )

    def fact_text(self, through: int | None = None) -> FactText:
        """Return the text of facts folded through at least an event, by default the log's head."""
        return self._using_kind(
            fact_text_projection.FactTextProjection,
            through,
            fact_text_projection.FactTextProjection.fact_text,
        )

    def facts(self, through: int | None = None) -> Facts:
        """Return facts folded through at least an event, by default the log's head."""
        kind = facts_projection.FactsProjection
        return self._kept_reader(kind, kind.snapshot, through)

    def folded_facts(self) -> Facts:
        """Return facts through the last event that they are folded to; folds no event."""
        return self._using_kind(
            facts_projection.FactsProjection, 0, facts_projection.FactsProjection.snapshot
        )

    def links(self, through: int | None = None) -> Links:
        """Return links folded through at least an event, by default the log's head."""
        kind = links_projection.LinksProjection
        return self._kept_reader(kind, kind.snapshot, through)

    def has_no_links(self, through: int) -> bool:
        """Return whether no event through at least ``through`` created a link.

        An erasure adds no link, so links that were read before it give the answer, too.
        """
        links = self._kept.get(links_projection.LinksProjection.name)
        if links is None or links.seq < through or not links.is_empty:
            links = self.links(through)
        return bool(links.is_empty)

    def _kept_reader(
        self,
        kind: type[ProjectionType],
        read: Callable[[ProjectionType], KeptType],
        through: int | None,
    ) -> KeptType:
        """Return the reader that was made last, if it reads through an event, else a new one."""
        self._drop_all_if_erased()
        reader: KeptType | None = self._kept.get(kind.name)
        if reader is None or through is None or reader.seq < through:
            with self._mutex:
                reader = self._using_kind(kind, through, read)
                self._kept[kind.name] = reader
        return reader

    def columns(
        self, kind: type[Readable[ReaderType]], through: int | None = None
    ) -> Readers[ReaderType]:
        """Return the readers of a projection folded through at least an event, by default the head.

        ``kind`` is a projection of columns of a pack.
        """
        return self._using_kind(kind, through, kind.snapshot)

    def vectors(self, through: int | None = None) -> Vectors:
        """Return vectors folded through at least an event, by default the log's head."""
        kind = vectors_projection.VectorsProjection
        return self._kept_reader(kind, kind.snapshot, through)

    def embedders(self, through: int) -> UsedEmbedders:
        """Return the used embedders folded through at least an event; the rows are few."""
        rows = self.using(
            embedder_rows.UsedEmbedders.name, through, lambda fold: _row_fold(fold).snapshot()
        )
        assert isinstance(rows, embedder_rows.UsedEmbedders)
        return rows

    def _using_kind(
        self,
        kind: type[ProjectionType],
        through: int | None,
        read: Callable[[ProjectionType], Result],
    ) -> Result:
        def read_kind(projection: Projection) -> Result:
            assert isinstance(projection, kind)
            return read(projection)

        return self.using(kind.name, through, read_kind)

    def fork(self, kind: type[ForkableType], seq: int) -> ForkableType:
        """Return a fork of a built-in projection at event ``seq``, for the caller to fold on."""
        return self._using_kind(kind, seq, lambda projection: projection.fork(seq))

    def stored_vectors(self, space: Space) -> StoredVectors:
        """Return the vectors of a space, cached for all views."""
        with self._mutex:
            stored = self._stored.get(space.key)
            if stored is None or stored.source is not space.rows:
                # A later fold has other rows; earlier views keep the old rows.
                places = self._directory().places(space.rows)
                stored = self._stored[space.key] = vector_store.StoredVectors(
                    self._log, space.rows, places
                )
                for each in self._stored.values():
                    each.size_max = self._log.caches.vectors // len(self._stored)
            return stored

    def stored_tokens(self, space: Space) -> StoredTokens:
        """Return the token vectors of a space, cached for all views."""
        with self._mutex:
            stored = self._stored_tokens.get(space.key)
            if stored is None or stored.source is not space.rows:
                stored = self._stored_tokens[space.key] = token_vector_store.StoredTokens(
                    self._log, space.rows
                )
                for each in self._stored_tokens.values():
                    each.size_max = self._log.caches.tokens // len(self._stored_tokens)
            return stored

    def own(self, name: str, seq: int) -> OwnProjection:
        """Return a user's projection as of event ``seq``; its rows do not change.

        Cost: at the head O(1); in the past the rows of the ranges before ``seq``, and the events
        since the last range, at most 4,096.

        Raises:
            NotFound: no projection has this name.
            ProjectionFailed: the projection raised before ``seq``.
            Corrupt: the log is damaged before ``seq``.
        """
        with self._mutex:
            self._drop_all_if_erased()
            state = self._own.pop((name, seq), None)
            if state is None:
                state = self.using(name, seq, lambda fold: self._rows_at(fold, seq).snapshot())
            self._own[name, seq] = state
            while len(self._own) > _OWN_KEPT_MAX:
                del self._own[next(iter(self._own))]
            return state

    def own_over(self, name: str, seq: int, events: Sequence[FoldedEvent]) -> OwnProjection:
        """Return `own` with pending events folded over it. Cost: these events.

        Raises:
            As `own`; also ProjectionFailed: the projection raised at a pending event.
        """
        base = self.own(name, seq)
        return _row_fold(self.registry.make(name)).over(base, events)

    def is_by_tenant(self, name: str) -> bool:
        """Return whether the keys of a user's projection begin with a tenant; folds nothing.

        Raises:
            NotFound: no projection has this name.
        """
        return _row_fold(self.registry.make(name)).is_by_tenant

    def rows_within(self, own: OwnProjection, prefix: tuple[RowKey, ...]) -> OwnProjection:
        """Return the rows of `own` whose keys begin with some items. Cost: O(1)."""
        return _row_fold(self.registry.make(own.name)).within(own, prefix)

    def _rows_at(self, projection: Projection, seq: int) -> RowFold:
        """Return a fold of rows at event ``seq``: the projection, or an earlier copy of it."""
        fold = _row_fold(projection)
        if fold.seq > seq:
            fold = fold.at_range(seq)
            apply_events(fold, read_batches(self._log, fold.seq + 1, seq))
        return fold

    def digests(self) -> dict[str, bytes]:
        """Return every projection's digest at the log's head.

        Raises:
            ProjectionFailed: a user's projection raised before the head.
        """
        with self._mutex:
            self._settle_all(self._taken_together())
            return {name: self.using(name, None, _digest) for name in self.registry.names}

    def digest_at(self, name: str, seq: int) -> bytes:
        """Return a projection's digest at an event; a user's projection in the past is replayed."""

        def digest(projection: Projection) -> bytes:
            if isinstance(projection, rows_fold.RowFold):
                projection = self._rows_at(projection, seq)
            return projection.digest_at(seq)

        return self.using(name, seq, digest)

    def using(self, name: str, through: int | None, read: Callable[[Projection], Result]) -> Result:
        """Return the result of ``read`` on a projection folded through at least an event.

        Without ``through`` it is folded to the head. ``read`` must keep no reference to the
        projection, which a later call changes. If ``read`` raises, the state is dropped.

        Raises:
            NotFound: no projection has this name.
            Corrupt: the log is damaged before the event.
            ProjectionFailed: the user's code raised before the event.
        """
        with self._mutex:
            self._drop_all_if_erased()
            projection, fault = self._advanced(name, through)
            if fault is None:
                result = read(projection)
                self._settled[name] = projection
                return result
            self._settled[name] = projection
            raise fault

    # --- restoring and folding -------------------------------------------------------------------

    @property
    def _end(self) -> int:
        head = self._log.head.seq
        return head if self._last is None else min(head, self._last)

    def _take(self, name: str) -> Projection:
        """Remove a projection from the settled states, or restore it; the caller puts it back.

        Raises:
            NotFound: no projection has this name.
        """
        projection = self._settled.pop(name, None)
        while projection is None:
            fresh = self.registry.make(name)
            if self._use_checkpoints:
                saved = self._log.toc().saved(projection_key(fresh))
                of, partial = self._partial.pop(name, (saved, fresh))
                fresh = partial if of == saved else fresh
                try:
                    self.reports[name] = self.load(saved, fresh)
                except Undecodable as error:
                    # The fold in place of a bad chunk is incomplete: load again, up to that event.
                    self._undecodable = error.seq
                    continue
            projection = fresh
        return projection

    def _advanced(
        self, name: str, through: int | None
    ) -> tuple[Projection, Corrupt | ProjectionFailed | None]:
        """Take a projection and fold it; return it, and any fault that ended the fold too early."""
        damage: StateDamaged | None = None
        if name not in BUILT_IN and self._is_folding(name):
            raise InvalidInput(
                f"apply() of the projection {name!r} reads that projection from the store",
                remedy="Read self.rows in apply(), not the store.",
            )
        for _ in range(_TRIES):
            projection = self._take(name)
            try:
                return projection, self._advance(projection, through)
            except Undecodable as error:
                # The step at that payload is incomplete: fold again, up to that event.
                self._undecodable = error.seq
                self._together = _NO_EVENTS
            except StateDamaged as error:
                damage = error
                self._forget_reads()
        raise self._unstable(name, damage)

    def _is_folding(self, name: str) -> bool:
        """Return whether a caller further up folds a projection, so that its code reads itself.

        The answer comes from the stack, since a flag could outlive an interrupt.
        """
        current = inspect.currentframe()
        frame = current and current.f_back and current.f_back.f_back
        while frame is not None:
            if frame.f_code is Fold._advanced.__code__:
                caller = frame.f_locals
                if caller.get("self") is self and caller.get("name") == name:
                    return True
            frame = frame.f_back
        return False

    def _forget_reads(self) -> None:
        """Drop all values read from a state that turned out to be damaged."""
        self._replaced += 1
        self._kept.clear()
        self._own.clear()

    def _batches(self, name: str, first: int, last: int) -> Iterator[EventBatch]:
        """Return the events of a range; a few new events are decoded once for all projections.

        The code of a user's projection may change what it reads, so it gets events of its own.
        """
        if last - first >= _TOGETHER_MAX or name not in BUILT_IN:
            return recent_batches(self._log, first, last)
        span, batches = self._together
        if span != (first, last):
            try:
                batches = (*recent_batches(self._log, first, last),)
            except Corrupt:
                # The fold takes the events before the damage.
                return recent_batches(self._log, first, last)
            self._together = (first, last), batches
        return iter(batches)

    def _advance(
        self, projection: Projection, through: int | None = None
    ) -> Corrupt | ProjectionFailed | None:
        """Fold to the end; return a fault if it lies before ``through``.

        The state is whole on return, fault or not.
        """
        # Read once: another thread may append.
        last = self._end
        undecodable = self._undecodable
        bad = None if undecodable is None else self._damage_of_payload(undecodable)
        if bad is None:
            # The payload can be decoded now: the file was repaired or replaced.
            self._undecodable = undecodable = None
        target = last if through is None else through
        end = last if undecodable is None else min(last, undecodable - 1)
        damage: Corrupt | None = None
        try:
            while projection.seq < min(end, target) and damage is None:
                stop = min(end, next_stop(projection.seq))
                batches = self._batches(projection.name, projection.seq + 1, stop)
                damage = _fold_events(projection, batches)
                if damage is not None:
                    self._together = _NO_EVENTS
                if stop < end and damage is None:
                    # A long fold: save progress, so that a killed process need not repeat it.
                    self._save_quietly(projection)
        except ProjectionFailed as error:
            self._failed.add(projection.name)
            return error if projection.seq < target else None
        if damage is None and end < last:
            damage = bad
        return None if damage is None or projection.seq >= target else hole(damage, projection.seq)

    def _damage_of_payload(self, seq: int) -> Corrupt | None:
        """Return the error of decoding an event's payload, or None without an error."""
        try:
            _ = self._log.event(seq).body
        except Corrupt as error:
            return error
        except NotFound:
            return None
        return None

    def _taken_together(self) -> list[Projection]:
        """Take every projection; fold those at the earliest event in one pass, to decode once."""
        self._drop_all_if_erased()
        taken: dict[str, Projection] = {}
        for name in self.registry.names:
            # As `_take` begins: most states are in memory.
            settled = self._settled
            taken[name] = settled.pop(name) if name in settled else self._take(name)
        first = min(map(attrgetter("seq"), taken.values()))
        together = [projection for projection in taken.values() if projection.seq == first]
        pieces = recent_batches(self._log, first + 1, self._end)
        with suppress(Corrupt):
            # A later read past the damage raises it.
            for batch in _decodable(pieces):
                for projection in list(together):
                    try:
                        projection.apply(batch)
                    except ProjectionFailed:
                        together.remove(projection)
                    except StateDamaged:
                        together.remove(projection)
                        del taken[projection.name]
                        self._forget_reads()
                if not together:
                    break
        return list(taken.values())

    def _settle_all(self, taken: Sequence[Projection]) -> None:
        for projection in taken:
            self._settled[projection.name] = projection

    def load(self, saved: SavedProjection, projection: Projection) -> FoldReport:
        """Load a checkpoint's chunks; fold the events of unusable chunks."""
        ranges = self._ranges_after(saved, projection.seq, self._end)
        _expect(projection, ranges)
        # Many at once up to the first unusable chunk; from there on singly.
        with suppress(Corrupt):
            self._load_ranges(projection, ranges)
        bad: dict[int, str] = {}
        replayed = 0
        for each in ranges:
            after, through = each.range
            if through <= projection.seq:
                continue
            try:
                self._load_ranges(projection, [each])
            except Corrupt as error:
                bad[after + 1] = str(error)
                before = projection.seq
                hurt: Corrupt | ProjectionFailed | None
                try:
                    stop = min(through, (self._undecodable or through + 1) - 1)
                    hurt = _fold_events(projection, read_batches(self._log, before + 1, stop))
                except ProjectionFailed as failure:
                    hurt = failure
                replayed += projection.seq - before
                if hurt is not None or projection.seq < through:
                    # A read past this place continues the fold, and raises the error.
                    break
        restored = projection.seq - replayed
        # The chunks of a damaged page have one error.
        return FoldReport(restored, replayed, tuple(dict.fromkeys(bad.values())), frozenset(bad))

    def _ranges_after(self, saved: SavedProjection, seq: int, end: int) -> list[SavedRange]:
        """Return the ranges of a checkpoint from ``seq`` on that end at or before ``end``."""
        ranges = saved_ranges(self._log.file, saved)
        return [each for each in ranges if seq < each.range[1] <= end]

    def _load_ranges(self, projection: Projection, ranges: Sequence[SavedRange]) -> None:
        """Load chunks, many at once, and skip ranges without effects.

        Raises:
            Corrupt: a chunk is damaged; the state ends after a range before.
        """
        for is_idle, group in groupby(ranges, attrgetter("is_idle")):
            for together in _parts(group, 1 if is_idle else _CHUNKS_TOGETHER):
                if is_idle:
                    projection.skip(together[0].range[1])
                else:
                    projection.load(*[self._chunk(each) for each in together])

    def load_saved(self, name: str, projection: Projection, through: int) -> None:
        """Load the saved chunks of the events after a projection's last, up to ``through``.

        Raises:
            Corrupt: a chunk is damaged, or the chunks do not end there.
        """
        saved = self._log.toc().saved(self._key(name))
        ranges = self._ranges_after(saved, projection.seq, through)
        _expect(projection, ranges)
        self._load_ranges(projection, ranges)
        if projection.seq != through:
            raise Corrupt(f"No saved chunk of {name!r} ends at event {through:,}")

    def saved_chunks(self, name: str, after: int, through: int) -> dict[Range, Chunk | None]:
        """Return the saved chunks of a range of events; None for those without effects.

        Raises:
            Corrupt: a chunk is damaged.
        """
        saved = self._log.toc().saved(self._key(name))
        return {
            each.range: None if each.ref is None else read_chunk(self._log.file, each.ref)
            for each in self._ranges_after(saved, after, through)
            if each.damage is None
        }

    def _chunk(self, saved: SavedRange) -> bytes:
        if saved.damage is not None:
            raise saved.damage
        assert saved.ref is not None
        log_file = self._log.file
        chunk = read_chunk(log_file, saved.ref)
        if chunk.places:
            self._directory().add(chunk.places, log_file)
        return chunk.data

    def places(self, projection: Projection, span: Range) -> bytes:
        """Return the places of the vectors of a range of events, to be saved with its chunk."""
        if not isinstance(projection, vectors_projection.VectorsProjection):
            return b""
        return self._directory().encoded(projection.snapshot(), span)

    def _key(self, name: str) -> str:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = self.registry.key(name)
        return key

    def _directory(self) -> PlaceDirectory:
        directory = self._place_directory
        if directory is None:
            directory = self._place_directory = place_directories.PlaceDirectory(self._log)
        return directory

    # --- saving ----------------------------------------------------------------------------------

    def pending_events(self) -> int:
        """Return the number of events that the next opener would have to fold."""
        return self._log.head.seq - self._saved_seq()

    def _saved_seq(self) -> int:
        """Return the seq through which all projections are saved, except failed projections."""
        toc = self._log.toc()
        if toc is not self._seen[0]:
            # An entry names the seq of its state, 0 if it has none.
            saved: list[int] = []
            for name in self.registry.names:
                if name not in self._failed:
                    key = self._keys.get(name) or self._key(name)
                    saved.append(toc.saved(key).seq)
            self._seen = toc, min(saved)
        return self._seen[1]

    def is_worth_saving(self) -> bool:
        """Return whether a later opener would fold the events after the checkpoints for 5 ms."""
        return self._log.is_lasting and self.pending_events() > CLOSE_COST_MS * _EVENTS_PER_MS

    def save(self) -> None:
        """Write a checkpoint of every projection at the head. Durable on return.

        Chunks are computed and compressed before the writer lock is taken. A projection whose code
        raised is saved up to that event.
        """
        with self._mutex:
            self._log.refresh()
            self._save_all(tail=True)
            self._gradual.saved()

    def save_gradually(self, appended: int) -> bool:
        """Take the checkpoint steps that an append owes; return whether any was taken.

        A step follows an acknowledged append, so an obstacle is not an error of the append: neither
        a full disk, a lock or a damaged log, nor a user's code. A later read raises the error. If
        another thread folds, no step is taken.
        """
        # First, since most appends owe no step.
        due = max(self._try_from, self._gradual.next_due)
        if self._log.head.seq < due or not self._may_save():
            return False
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            replaced = self._replaced
            self._drop_all_if_erased()
            if replaced != self._replaced:
                self._gradual.drop()
            return self._gradual.take_steps(appended)
        except BaseException as error:
            # A failed step is expensive and may fail again: do not repeat it with every append.
            self._try_from = self._log.head.seq + RANGE_SEQS
            if not isinstance(error, Exception):
                raise
            return False
        finally:
            self._mutex.release()

    # --- the steps of a gradual checkpoint, with the mutex ----------------------------------------

    @property
    def names(self) -> Sequence[str]:
        return [name for name in self.registry.names if name not in self._failed]

    def saved_seq(self) -> int:
        return self._saved_seq()

    def folded_seq(self) -> int:
        settled = self._settled
        return min(
            (settled[name].seq if name in settled else -1 for name in self.names),
            default=self._log.head.seq,
        )

    def fold_slice(self, through: int) -> bool:
        for name in self.names:
            if name not in self._settled and self._restore_some(name):
                return True
        before = self.folded_seq()
        taken = {name: self._settled.pop(name) for name in self.names}
        with suppress(Corrupt):
            # A later read past the damage raises it.
            for batch in _decodable(recent_batches(self._log, before + 1, through)):
                for name in list(taken):
                    if not self._apply_rest(taken[name], batch):
                        del taken[name]
        self._settle_all([*taken.values()])
        return self.folded_seq() != before

    def _restore_some(self, name: str) -> bool:
        """Restore a projection, or load its next chunks; return whether this was a step's work."""
        saved = self._log.toc().saved(self._key(name))
        of, partial = self._partial.pop(name, (saved, None))
        if partial is None or of != saved:
            partial = self.registry.make(name)
        # Damage is left to the load of the rest.
        ranges = self._ranges_after(saved, partial.seq, saved.seq)
        chunks = [each for each in ranges if not each.is_idle]
        if len(chunks) > _CHUNKS_OF_STEP:
            end = chunks[_CHUNKS_OF_STEP].range[0]
            _expect(partial, ranges)
            with suppress(Corrupt):
                self._load_ranges(partial, [each for each in ranges if each.range[1] <= end])
                self._partial[name] = saved, partial
                return True
        self._partial[name] = saved, partial
        projection = self._settled[name] = self._take(name)
        return projection.seq > RANGE_SEQS

    def _apply_rest(self, projection: Projection, batch: EventBatch) -> bool:
        """Fold the events of a batch that a projection lacks; return whether its state is whole."""
        first = batch.first_seq
        if not first - 1 <= projection.seq < batch.last_seq:
            return True
        try:
            projection.apply(batch[projection.seq + 1 - first :])
        except ProjectionFailed:
            self._failed.add(projection.name)
        except StateDamaged:
            self._forget_reads()
            return False
        return True

    def plan(self, name: str, through: int) -> Plan | None:
        return self._plan_of(name, _Save(self._log.toc(), self._log.file, through=through))

    def publish_plans(self, plans: dict[str, Plan]) -> None:
        self._publish(plans, wait=False)

    # --- saving at once --------------------------------------------------------------------------

    def _may_save(self) -> bool:
        is_whole = self._use_checkpoints and self._last is None and not self._log.is_moving
        return is_whole and self._log.is_writable and self._log.is_open

    def _save_quietly(self, projection: Projection) -> None:
        """Save the complete ranges of a taken projection; a failure must not fail the read."""
        if not self._may_save():
            return
        try:
            plan = self._planned(projection, _Save(self._log.toc(), self._log.file))
            self._publish({} if plan is None else {projection.name: plan}, wait=False)
        except (StorageFailed, Corrupt, Locked, OutcomeUnknown):
            # The failure loses nothing. The next call of a poisoned handle raises.
            return

    def _save_all(self, *, tail: bool) -> None:
        """Fold every projection to the head, and save it. Needs the mutex."""
        self._settle_all(self._taken_together())
        save = _Save(self._log.toc(), self._log.file, tail=tail, head=self._end)
        plans = dict[str, Plan]()
        for name in self.registry.names:
            plan = self._plan_of(name, save)
            if plan is not None:
                plans[name] = plan
        self._publish(plans, wait=True)

    def _plan_of(self, name: str, save: _Save) -> Plan | None:
        """Return the checkpoint plan of a projection; a damaged state is folded again.

        Raises:
            Corrupt: the state was damaged in memory at every try.
        """
        damage: StateDamaged | None = None
        for _ in range(_TRIES):
            settled = self._settled.get(name)
            if settled is not None and settled.seq == save.head:
                projection = self._settled.pop(name)
            else:
                projection, _fault = self._advanced(name, save.through)
            try:
                plan = self._planned(projection, save)
            except StateDamaged as error:
                damage = error
                self._forget_reads()
                continue
            self._settled[name] = projection
            return plan
        raise self._unstable(name, damage)

    def _unstable(self, name: str, damage: StateDamaged | None) -> Corrupt:
        return Corrupt(
            f"The state of the projection {name!r} changed in memory after the fold: {damage}",
            where=self._log.path,
            remedy="Run 'cerata file maintain --only rebuild', and test this machine's memory; "
            "nothing was saved.",
        )

    def _planned(self, projection: Projection, save: _Save) -> Plan | None:
        report = self.reports.get(projection.name)
        bad = frozenset[int]() if report is None else report.bad_seqs
        name = projection.name
        saved = save.toc.saved(self._keys.get(name) or self._key(name))
        return plan_checkpoint(
            projection,
            save.log_file,
            saved,
            erased=self._erased,
            tail=save.tail,
            bad=bad,
            through=save.through,
            places=self.places,
            level=self._level,
        )

    def _publish(self, plans: Mapping[str, Plan], *, wait: bool) -> None:
        if plans:
            # A plan has made the key of its projection.
            keys = self._keys
            publish(self._log, {keys[name]: plan for name, plan in plans.items()}, wait=wait)
            for name in plans.keys() & self.reports.keys():
                self._forget_damage(name)
            if len(self._settled) == len(self.registry.names):
                # No fold needs these events again, and the seal has their hashes.
                self._together = _NO_EVENTS
                self._log.drop_recent(min(map(attrgetter("seq"), self._settled.values())))

    def _forget_damage(self, name: str) -> None:
        """Clear the report of unusable chunks, which have been replaced."""
        if name in self.reports:
            self.reports[name] = replace(
                self.reports[name], bad_chunks=(), bad_seqs=frozenset[int]()
            )

    # --- for a rebuild ---------------------------------------------------------------------------

    def is_folded(self, name: str) -> bool:
        """Return whether the state of a projection is in memory, in whole or in part."""
        return name in self._settled or name in self._partial

    def exclusive(self) -> AbstractContextManager[bool]:
        """Return a context manager that keeps other threads from folding."""
        return self._mutex

    def replace(self, fresh: Projection) -> None:
        """Replace a projection by a state that was folded elsewhere."""
        # Drop values of the old state first, so that none outlives an interrupt.
        self._replaced += 1
        self._kept.clear()
        self._own.clear()
        self._failed.discard(fresh.name)
        self._forget_damage(fresh.name)
        self._partial.pop(fresh.name, None)
        self._settled[fresh.name] = fresh


def _expect(projection: Projection, ranges: Sequence[SavedRange]) -> None:
    """Announce ranges, which are loaded next."""
    if ranges and isinstance(projection, BlockFold):
        projection.expect(ranges[-1].range[1])


def _parts(ranges: Iterable[SavedRange], size: int) -> Iterator[list[SavedRange]]:
    """Yield ranges in lists of at most ``size``."""
    rest = iter(ranges)
    while part := [*islice(rest, size)]:
        yield part


class Undecodable(Exception):
    """A step met event ``seq`` with an undecodable payload; ``damage`` is the error."""

    def __init__(self, seq: int, damage: Corrupt) -> None:
        super().__init__(seq)
        self.seq = seq
        self.damage = damage


def _fold_events(projection: Projection, pieces: Iterator[EventBatch]) -> Corrupt | None:
    """Fold events in batches; return damage of the log, with every event before it folded.

    Raises:
        ProjectionFailed: the user's code raised; every event before that event is folded.
        Undecodable: a payload cannot be decoded; the state is half changed.
    """
    while True:
        try:
            batch = next(pieces, None)
        except Corrupt as damage:
            return damage
        if batch is None:
            return None
        try:
            projection.apply(batch)
        except Corrupt as error:
            place = batch.first_undecodable()
            if place is None:
                # An attachment cannot be read; every event before it is folded.
                return error
            raise Undecodable(batch[place].seq, error) from error


def _decodable(pieces: Iterator[EventBatch]) -> Iterator[EventBatch]:
    """Yield batches up to the first event with an undecodable payload."""
    for batch in pieces:
        place = batch.first_undecodable()
        if place is not None:
            if place:
                yield batch[:place]
            return
        yield batch


def _row_fold(projection: Projection) -> RowFold:
    if not isinstance(projection, rows_fold.RowFold):
        raise InvalidInput(
            f"The projection {projection.name!r} is built-in and has no rows",
            remedy="Use search(), frames() or another read.",
        )
    return projection


def _digest(projection: Projection) -> bytes:
    return projection.digest()


def silent(doing: str, done: int, total: int) -> None:
    """Report nothing."""


def replay(log: Log, n: int | None = None, registry: Registry | None = None) -> Fold:
    """Return the state after the first ``n`` events, by default all, from the events alone.

    No checkpoint is used. Folding is lazy; a snapshot (`cerata.memory.snapshot`) reads the state.
    """
    return Fold(log, registry, last=n, use_checkpoints=False)
