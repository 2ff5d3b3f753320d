"""Folding: projections restored from checkpoints, brought up to the log, and saved again.

Owns when and over what the folds run; the folds themselves are pure (`cerata.projections`), and
what a checkpoint looks like is `checkpoint`'s. Nothing is folded until somebody asks: opening and
appending touch the log alone. Any chunk that does not verify is folded again from its own events.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from cerata.engine.errors import (
    Corrupt,
    InvalidInput,
    Locked,
    OutcomeUnknown,
    ProjectionFailed,
    StorageFailed,
)
from cerata.engine.format.toc import Ref, SavedProjection, Toc
from cerata.engine.log import Log
from cerata.projections.fact_table import Facts
from cerata.projections.fact_text import FactText, FactTextProjection
from cerata.projections.facts import FactsProjection
from cerata.projections.frame_table import Frames
from cerata.projections.frames import FramesProjection
from cerata.projections.fulltext import FulltextProjection
from cerata.projections.link_table import Links
from cerata.projections.links import LinksProjection
from cerata.projections.projection import FoldedEvent, Projection
from cerata.projections.ranges import RANGE_SEQS, RANGE_SEQS_MAX
from cerata.projections.ranking import Fulltext
from cerata.projections.registry import Registry, projection_key
from cerata.projections.row_fold import OwnProjection, RowFold
from cerata.projections.vector_columns import Key
from cerata.projections.vector_table import Space, Vectors
from cerata.projections.vectors import VectorsProjection

from .checkpoint import Plan, chunk_refs, plan_checkpoint, publish, read_chunk
from .events import apply_events, batches, hole, next_stop
from .stored_tokens import StoredTokens
from .stored_vectors import StoredVectors

_EVENTS_PER_MS: Final = 40
"""Events that a fold takes in a millisecond, for policy only: costs are estimated, not clocked."""
CLOSE_COST_MS: Final = 5
_CHUNKS_TOGETHER: Final = 32
"""Chunks that are held decompressed at once, about 25 MB, while they are loaded."""

_OWN_KEPT_MAX: Final = 8
"""States of users' own projections that are kept for whoever asks again."""

ProjectionType = TypeVar("ProjectionType", bound=Projection)

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many events are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class FoldReport:
    """How a projection got its state: what was restored, replayed, and could not be used."""

    restored_events: int
    replayed_events: int
    bad_chunks: tuple[str, ...]
    bad_seqs: frozenset[int] = frozenset()
    """The first seqs of these chunks."""


class Fold:
    """The projections of one open log. Any thread may ask; one folds at a time.

    ``last`` ends the log early: the fold is then that of the log as it was at that event.
    Without ``use_checkpoints`` every state comes from the events alone. What folds raises `Corrupt`
    where the log is damaged before the event that is asked for.
    """

    def __init__(
        self,
        log: Log,
        registry: Registry | None = None,
        *,
        last: int | None = None,
        use_checkpoints: bool = True,
    ) -> None:
        self._log = log
        self.registry = registry or Registry()
        self._last = last
        self._use_checkpoints = use_checkpoints
        self._mutex = threading.RLock()
        self._projections = {name: self.registry.make(name) for name in self.registry.names}
        self._restored: set[str] = set()
        self._failed: set[str] = set()
        self._seen: tuple[Toc | None, int] = None, 0
        # The head from which on an automatic save is tried.
        self._try_from = 0
        self._own: dict[tuple[str, int], OwnProjection] = {}
        self._last_facts: Facts | None = None
        self._last_links: Links | None = None
        self._stored: dict[Key, StoredVectors] = {}
        self._stored_tokens: dict[Key, StoredTokens] = {}
        self.reports: dict[str, FoldReport] = {}
        self.replaced: int = 0
        """How often a projection that was folded elsewhere took the place of one."""

    # --- reading ---------------------------------------------------------------------------------

    def frames(self, through: int | None = None) -> Frames:
        """Return frames folded at least through an event, by default the log's head."""
        with self._mutex:
            return self._folded_as(FramesProjection, through).snapshot()

    def fulltext(self, through: int | None = None) -> Fulltext:
        """Return the full text folded at least through an event, by default the log's head."""
        with self._mutex:
            return self._folded_as(FulltextProjection, through).snapshot()

    def fact_text(self, through: int | None = None) -> FactText:
        """Return the text of facts folded at least through an event, by default the log's head."""
        with self._mutex:
            return self._folded_as(FactTextProjection, through).fact_text()

    def fact_text_over(self, seq: int, events: Sequence[FoldedEvent]) -> FactText:
        """Return the text of the facts of event ``seq`` with events over it that are in no log yet.

        Cost, here and below: a copy of what is folded, and folding the events.
        """
        return self._over(FactTextProjection, seq, events).fact_text()

    def facts(self, through: int | None = None) -> Facts:
        """Return facts folded at least through an event, by default the log's head."""
        facts = self._last_facts
        if facts is None or through is None or facts.seq < through:
            with self._mutex:
                facts = self._last_facts = self._folded_as(FactsProjection, through).snapshot()
        return facts

    def facts_over(self, seq: int, events: Sequence[FoldedEvent]) -> Facts:
        """Return the facts of event ``seq`` with events over them that are in no log yet."""
        return self._over(FactsProjection, seq, events).snapshot()

    def links(self, through: int | None = None) -> Links:
        """Return links folded at least through an event, by default the log's head."""
        links = self._last_links
        if links is None or through is None or links.seq < through:
            with self._mutex:
                links = self._last_links = self._folded_as(LinksProjection, through).snapshot()
        return links

    def links_over(self, seq: int, events: Sequence[FoldedEvent]) -> Links:
        """Return the links of event ``seq`` with events over them that are in no log yet."""
        return self._over(LinksProjection, seq, events).snapshot()

    def vectors(self, through: int | None = None) -> Vectors:
        """Return vectors folded at least through an event, by default the log's head."""
        with self._mutex:
            return self._folded_as(VectorsProjection, through).snapshot()

    def _folded_as(self, kind: type[ProjectionType], through: int | None) -> ProjectionType:
        """Return a built-in projection folded at least through an event."""
        projection = self.folded(kind.name, through)
        assert isinstance(projection, kind)
        return projection

    def _over(
        self, kind: type[ProjectionType], seq: int, events: Sequence[FoldedEvent]
    ) -> ProjectionType:
        """Return a copy of a built-in projection at event ``seq``, with events folded over it."""
        with self._mutex:
            base = self._folded_as(kind, seq).chunk(0, seq)
        upper = kind()
        if seq:
            upper.load(base)
        upper.apply(events)
        return upper

    def stored_vectors(self, space: Space) -> StoredVectors:
        """Return the vectors of a space, as they are kept for all views."""
        with self._mutex:
            found = self._stored.get(space.key)
            if found is None or found.source is not space.rows:
                # After a rebuild the rows may be others; a view from before it has the old ones.
                found = self._stored[space.key] = StoredVectors(self._log, space.rows)
            return found

    def stored_tokens(self, space: Space) -> StoredTokens:
        """Return the token vectors of a space, as they are kept for all views."""
        with self._mutex:
            found = self._stored_tokens.get(space.key)
            if found is None or found.source is not space.rows:
                found = self._stored_tokens[space.key] = StoredTokens(self._log, space.rows)
            return found

    def own(self, name: str, seq: int) -> OwnProjection:
        """Return a user's own projection as it was at event ``seq``; its rows do not change.

        Cost: at the head a copy of its rows; in the past the rows of the ranges before ``seq``,
        and the events since the last of these, at most 4,096.

        Raises:
            NotFound: no projection has this name. ProjectionFailed: it raised before ``seq``.
            Corrupt: the log is damaged before ``seq``.
        """
        with self._mutex:
            found = self._own.pop((name, seq), None)
            if found is None:
                found = self._own_at(name, seq)
            self._own[name, seq] = found
            while len(self._own) > _OWN_KEPT_MAX:
                del self._own[next(iter(self._own))]
            return found

    def own_over(self, name: str, seq: int, events: Sequence[FoldedEvent]) -> OwnProjection:
        """Return `own` with events over it that are in no log yet. Cost: its rows, and these.

        Raises:
            As `own`; ProjectionFailed: it raised at one of these too.
        """
        with self._mutex:
            return self._row_fold(name, seq).over(self.own(name, seq), events)

    def _own_at(self, name: str, seq: int) -> OwnProjection:
        return self._row_fold_at(self._row_fold(name, seq), seq).snapshot()

    def _row_fold(self, name: str, seq: int) -> RowFold:
        projection = self.folded(name, seq)
        if not isinstance(projection, RowFold):
            raise InvalidInput(
                f"The projection {name!r} is a built-in one",
                remedy="Read it through search, frames and the like.",
            )
        return projection

    def _row_fold_at(self, projection: RowFold, seq: int) -> RowFold:
        if projection.seq > seq:
            projection = projection.at_range(seq)
            apply_events(projection, self._log.read(projection.seq + 1, seq))
        return projection

    def digests(self) -> dict[str, bytes]:
        """Return every projection's digest at the log's head.

        Raises:
            ProjectionFailed: a user's own raised on the way.
        """
        with self._mutex:
            self._advance_together()
            return {name: self.folded(name).digest() for name in self._projections}

    def digest_at(self, name: str, seq: int) -> bytes:
        """Return a projection's digest at an event; of a user's own in the past, by replay."""
        with self._mutex:
            projection = self.folded(name, seq)
            if isinstance(projection, RowFold):
                projection = self._row_fold_at(projection, seq)
            return projection.digest_at(seq)

    def folded(self, name: str, through: int | None = None) -> Projection:
        """Return a projection folded at least through an event, by default the head.

        Who holds it must be the only one who folds.
        """
        with self._mutex:
            projection = self._projections.get(name) or self.registry.make(name)
            self._advance(projection, through)
            return projection

    # --- restoring and folding -------------------------------------------------------------------

    @property
    def _end(self) -> int:
        """The last event that this fold goes by."""
        head = self._log.head.seq
        return head if self._last is None else min(head, self._last)

    def _advance(self, projection: Projection, through: int | None = None) -> None:
        """Fold to the end; a fault on the way is an error only if it lies before ``through``."""
        self._restore(projection)
        end = self._end
        wanted = end if through is None else through
        try:
            while projection.seq < end and projection.seq < wanted:
                stop = min(end, next_stop(projection.seq))
                apply_events(projection, self._log.read(projection.seq + 1, stop))
                if stop < end:
                    # A long way: what is folded need not be folded again if we are killed.
                    self._save_quietly([projection])
        except Corrupt as error:
            if projection.seq < wanted:
                raise hole(error, projection.seq) from error
        except ProjectionFailed:
            self._failed.add(projection.name)
            if projection.seq < wanted:
                raise

    def _advance_together(self) -> None:
        """Fold those that stand at one event in one pass over the log, which decodes it once."""
        every = list(self._projections.values())
        for projection in every:
            self._restore(projection)
        first = min(projection.seq for projection in every)
        together = [projection for projection in every if projection.seq == first]
        try:
            for batch in batches(self._log.read(first + 1, self._end)):
                for projection in list(together):
                    try:
                        projection.apply(batch)
                    except ProjectionFailed:
                        together.remove(projection)
        except Corrupt:
            # Whoever asks for what lies beyond is told.
            return

    def _restore(self, projection: Projection) -> None:
        """Load the projection's checkpoint, once."""
        if projection.name in self._restored:
            return
        if self._use_checkpoints:
            saved = self._log.toc().saved(projection_key(projection))
            self.reports[projection.name] = self.load(saved, projection)
        self._restored.add(projection.name)

    def load(self, saved: SavedProjection, projection: Projection) -> FoldReport:
        """Load a checkpoint's chunks; fold the events of those that cannot be used."""
        refs = [one for one in chunk_refs(self._log.file, saved) if one[0].last_seq <= self._end]
        # Many at once up to the first that cannot be used; from there on one by one.
        with suppress(Corrupt):
            for start in range(0, len(refs), _CHUNKS_TOGETHER):
                group = refs[start : start + _CHUNKS_TOGETHER]
                projection.load(*[self._chunk(*one) for one in group])
        bad: dict[int, str] = {}
        replayed = 0
        for ref, damage in refs:
            if ref.last_seq <= projection.seq:
                continue
            try:
                projection.load(self._chunk(ref, damage))
            except Corrupt as error:
                bad[ref.first_seq] = str(error)
                before = projection.seq
                try:
                    apply_events(projection, self._log.read(before + 1, ref.last_seq))
                except (Corrupt, ProjectionFailed):
                    # The log is damaged there too; whoever asks for what lies beyond is told.
                    break
                finally:
                    replayed += projection.seq - before
        restored = projection.seq - replayed
        return FoldReport(restored, replayed, tuple(bad.values()), frozenset(bad))

    def _chunk(self, ref: Ref, damage: Corrupt | None) -> bytes:
        if damage is not None:
            raise damage
        return read_chunk(self._log.file, ref)

    # --- saving ----------------------------------------------------------------------------------

    def pending_events(self) -> int:
        """Return how many events the next opener would have to fold."""
        return self._log.head.seq - self._saved_seq()

    def _saved_seq(self) -> int:
        """Return the seq that every projection is saved up to, those left out whose code raised."""
        toc = self._log.toc()
        if toc is not self._seen[0]:
            saved = [
                toc.saved(projection_key(projection)).seq
                for name, projection in self._projections.items()
                if name not in self._failed
            ]
            self._seen = toc, min(saved)
        return self._seen[1]

    def is_worth_saving(self) -> bool:
        """Tell whether folding what no checkpoint has would cost more than 5 ms."""
        return self.pending_events() > CLOSE_COST_MS * _EVENTS_PER_MS

    def is_due(self) -> bool:
        """Tell whether a largest range is complete and not saved: folding it takes about 100 ms."""
        return self._log.head.seq // RANGE_SEQS_MAX > self._saved_seq() // RANGE_SEQS_MAX

    def save(self) -> None:
        """Write a checkpoint of every projection at the head. Durable on return.

        Chunks are computed and compressed before the writer lock is taken. A projection whose
        code raised is saved up to there.
        """
        with self._mutex:
            self._log.refresh()
            self._save(self._all_folded(), tail=True)

    def save_if_due(self) -> bool:
        """Save the complete ranges of every projection, if it is due; return whether it was.

        It follows what was acknowledged already, so nothing that stands in its way is an error:
        neither a full disk, a lock or a damaged log, nor a user's code. Whoever reads is told.
        """
        if self._log.head.seq < self._try_from:
            return False
        try:
            if not self._may_save() or not self.is_due():
                return False
            with self._mutex:
                self._save(self._all_folded(), tail=False, wait=False)
        except Exception:  # noqa: BLE001 - some of the code is a user's
            # It may fail again, and had its cost: not with every append.
            self._try_from = self._log.head.seq + RANGE_SEQS
        return True

    def _all_folded(self) -> list[Projection]:
        self._advance_together()
        for projection in self._projections.values():
            try:
                self._advance(projection)
            except ProjectionFailed:
                # Whoever reads it is told; the others go on.
                continue
        return list(self._projections.values())

    def _may_save(self) -> bool:
        is_whole = self._use_checkpoints and self._last is None
        return is_whole and self._log.is_writable and self._log.is_open

    def _save_quietly(self, projections: Sequence[Projection]) -> None:
        """Save complete ranges where nobody asked for it: it must not fail what somebody did."""
        if not self._may_save():
            return
        try:
            self._save(projections, tail=False, wait=False)
        except (StorageFailed, Corrupt, Locked, OutcomeUnknown):
            # Nothing is lost by it. A poisoned handle says so at its next call.
            return

    def _save(self, projections: Sequence[Projection], *, tail: bool, wait: bool = True) -> None:
        toc, plans = self._log.toc(), dict[str, Plan]()
        for projection in projections:
            key = projection_key(projection)
            report = self.reports.get(projection.name)
            bad = frozenset[int]() if report is None else report.bad_seqs
            plan = plan_checkpoint(projection, self._log.file, toc.saved(key), tail=tail, bad=bad)
            if plan is not None:
                plans[key] = plan
        if plans:
            publish(self._log, plans, wait=wait)
            for projection in projections:
                self._forget_damage(projection.name)

    def _forget_damage(self, name: str) -> None:
        """What was damaged of a projection has been written anew."""
        if name in self.reports:
            self.reports[name] = replace(
                self.reports[name], bad_chunks=(), bad_seqs=frozenset[int]()
            )

    # --- for a rebuild ---------------------------------------------------------------------------

    def exclusive(self) -> AbstractContextManager[bool]:
        """Return what keeps every other thread from folding while it is entered."""
        return self._mutex

    def replace(self, fresh: Projection) -> None:
        """Let a projection that was folded elsewhere serve from here on."""
        self._projections[fresh.name] = fresh
        self.replaced += 1
        self._last_facts = self._last_links = None
        self._restored.add(fresh.name)
        self._failed.discard(fresh.name)
        self._own.clear()
        self._forget_damage(fresh.name)


def silent(doing: str, done: int, total: int) -> None:
    """Report nothing."""


def replay(log: Log, n: int | None = None, registry: Registry | None = None) -> Fold:
    """Return the state after the first ``n`` events, by default all, from these alone.

    No checkpoint is used. It folds when it is asked; `cerata.memory.view.View` reads it.
    """
    return Fold(log, registry, last=n, use_checkpoints=False)
