"""The import of events into another log: new seqs, times and salts, references remapped.

Owns the choice of the events that another log takes, and the seq that each has there. A batch
begins with an `importBatch` event, whose idempotency key names the exported log and the batch: so a
repeated import skips the batch, and content that was erased since is not imported again. Leaves out
the rewriting of references (`values.moved_references`) and the checks of an append
(`batch.validation`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from msgspec.structs import replace

from cerata.engine.codec import tenant_of
from cerata.engine.errors import Conflict, InvalidInput, NotFound, Unsupported
from cerata.engine.events import (
    AccessFrames,
    AssertFact,
    Draft,
    Event,
    EventBody,
    Evidence,
    ImportBatch,
    PutFrame,
    PutTag,
    RecallContext,
    ScopeValue,
    SplitEntity,
    UnknownBody,
    named_by,
    reference_in,
)
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.engine.packs import Owned, of_packs
from cerata.engine.segments.reader import wire_event
from cerata.projections.columnar.scopes import admits, tenant_key

from ..batch.transaction import block_of
from ..facts.drafts import quoted
from ..values.arguments import full_scope
from ..values.moved_references import attachments_in, moved_body, with_moved_ids
from ..values.owners import owners_of_frame, table
from .event_batches import EventBatches, ReadBatch
from .event_lines import DIALECT

if TYPE_CHECKING:
    from ..batch.session import WriteSession
    from .event_batches import Counts


@of_packs
def _skipped() -> frozenset[str]:
    """Return the types of events that belong to their own log."""
    owned = (row.events for row in table() if not row.is_copied)
    return frozenset({"signHead", "putKey", "importBatch"}.union(*owned))


_SCORE_SIZE: Final = 8
"""Bytes of one of `RecallContext.reranked_scores`."""


def import_into_other(
    session: WriteSession,
    batches: EventBatches,
    counts: Counts,
    progress: Callable[[int], None],
) -> None:
    """Append each batch of an export as new events. A batch is durable before the next.

    Raises:
        Unsupported: an event has a type that this process does not know.
        InvalidInput, Conflict, NotFound: a line is refused, or a rule of the log refuses its batch.
    """
    work = _Remapping(session, batches, counts)
    for read in batches:
        for part in _halves(read):
            with _at_line(read.line):
                work.take(part)
        progress(batches.lines)
    progress(batches.lines)


class _Part(NamedTuple):
    """Events of one batch that become one batch, and the last event of their batch."""

    events: Sequence[Event]
    last: int


def _halves(read: ReadBatch) -> Iterator[_Part]:
    """Yield the events of a batch; a batch of the most events in halves.

    The `importBatch` event in front takes a place. The cut does not depend on the content, so that
    a repeated import finds the same keys.
    """
    batch = read.batch
    events = [wire_event(batch, index, wire) for index, wire in enumerate(batch.events)]
    half = len(events) if len(events) < BATCH_EVENTS_MAX else len(events) // 2
    for at in range(0, len(events), half):
        yield _Part(events[at : at + half], batch.last_seq)


@contextmanager
def _at_line(number: int) -> Generator[None]:
    try:
        yield
    except (Conflict, InvalidInput, NotFound, Unsupported) as error:
        where = f"the batch that ends in line {number:,}"
        if error.where is not None:
            where = f"{where}, {error.where}"
        raise type(error)(error.what, where=where, remedy=error.remedy) from error


class _Remapping:
    """The state of an import into another log.

    - ``_seqs`` has the seq in this log of each event of the export, 0 for one that was left out.
    - ``_ends`` are the ends of the exported batches, and ``_heads`` those of their batches here.
    """

    def __init__(self, session: WriteSession, batches: EventBatches, counts: Counts) -> None:
        self._session = session
        self._log_id = batches.start.log_id
        self._before = batches.start.seq
        self._counts = counts
        self._scope = full_scope(None, session.scope)
        self._reach = None if session.reach is None else session.reach.private
        self._seqs = array("q")
        self._ends: list[int] = []
        self._heads: list[int] = []

    def take(self, part: _Part) -> None:
        """Write a batch, unless the log has it."""
        chosen = self._chosen(part.events, erased=False)
        self._check(chosen)
        first = part.events[0].seq
        key = f"{DIALECT}/{self._log_id.hex()}/{first}"
        seqs = self._stored(key, part.events, chosen)
        if seqs is None:
            seqs = self._written(key, part.events, chosen)
            self._counts.added += len(chosen)
        else:
            self._counts.known += len(chosen)
        self._note(part, seqs)

    def _note(self, part: _Part, seqs: dict[int, int]) -> None:
        """Note the seqs of a batch, by the exported seqs; a batch without events has none."""
        for event in part.events:
            self._seqs.append(seqs.get(event.seq, 0))
            if event.seq not in seqs:
                owned = _owner_kept_from_copies(event)
                reason = event.type if owned is None else f"{event.type} of {owned.name}"
                self._counts.skipped[reason] = self._counts.skipped.get(reason, 0) + 1
        if seqs:
            end = self._session.log.event(max(seqs.values())).header.last_seq
            self._ends.append(part.events[-1].seq)
            self._heads.append(end)

    def _seq_of(self, seq: int) -> int:
        """Return the seq in this log of an exported event, 0 for none."""
        place = seq - self._before - 1
        return self._seqs[place] if 0 <= place < len(self._seqs) else 0

    def _head_of(self, seq: int) -> int:
        """Return the end of the last batch in this log of the exported events up to a seq."""
        place = bisect_right(self._ends, seq)
        return self._heads[place - 1] if place else 0

    # --- the choice ------------------------------------------------------------------------------

    def _chosen(self, events: Sequence[Event], *, erased: bool) -> list[Event]:
        """Return the events of a batch that another log takes.

        With ``erased``, also those whose content is erased: an earlier export may have had it.
        """
        chosen: list[Event] = []
        present = set[int]()
        for event in events:
            if event.type in _skipped() or _owner_kept_from_copies(event) is not None:
                continue
            is_kept = erased if event.payload_bytes is None else self._has_all(event, present)
            if is_kept:
                present.add(event.seq)
                chosen.append(event)
        return chosen

    def _has_all(self, event: Event, present: Collection[int]) -> bool:
        """Return whether each event that an event requires is in this log, or in its batch."""
        body = event.body
        if isinstance(body, UnknownBody):
            raise Unsupported(
                f"Event {event.seq:,} has the type {body.kind!r}, which no pack of this process "
                "has, so its references cannot be remapped",
                remedy="Open the store with its pack, open(packs=…), or import into a new file.",
            )
        assert isinstance(body, EventBody)
        if isinstance(body, PutTag):
            return self._head_of(body.at) > 0
        there = [(name, seq in present or self._seq_of(seq) > 0) for name, _, seq in named_by(body)]
        lists = {name for name in body.references if isinstance(getattr(body, name), tuple)}
        if not all(is_there for name, is_there in there if name not in lists):
            return False
        if isinstance(body, AccessFrames | SplitEntity):
            return any(is_there for name, is_there in there if name in lists)
        return True

    def _check(self, events: Sequence[Event]) -> None:
        """Refuse events outside the scope of the store."""
        for event in events if self._reach is not None else ():
            if not admits(event.scope, self._reach):
                raise InvalidInput(
                    f"Event {event.seq:,} is not within the scope of the store",
                    remedy="Open the store without a scope, or with that of the events.",
                )

    # --- batches that the log has ----------------------------------------------------------------

    def _stored(
        self, key: str, events: Sequence[Event], chosen: Sequence[Event]
    ) -> dict[int, int] | None:
        """Return the seqs of a batch that an earlier import wrote, by the exported seqs."""
        log = self._session.log
        scopes = [self._scope, *(event.scope for event in chosen), (("tenant", "default"),)]
        tenants: dict[str, ScopeValue] = {}
        for scope in scopes:
            if scope is not None:
                tenants.setdefault(tenant_key(tenant_of(scope)), tenant_of(scope))
        # Any tenant: the batch may have been imported without a scope.
        uses = (log.find_key(key, tenant) for tenant in tenants.values())
        use = next((use for use in uses if use is not None), None)
        if use is None:
            return None
        stored = list(log.read(use.appended.first_seq + 1, use.appended.last_seq))
        for candidate in (chosen, self._chosen(events, erased=True)):
            types = [event.type for event in stored[: len(candidate)]]
            rest = {event.type for event in stored[len(candidate) :]}
            if types == [event.type for event in candidate] and rest <= {"useEmbedder"}:
                return {event.seq: copy.seq for event, copy in zip(candidate, stored, strict=False)}
        raise Conflict(
            f"The batch of events {events[0].seq:,} to {events[-1].seq:,} was imported from an "
            "export in which other events of it were erased",
            where=f"event {use.appended.first_seq:,}",
            remedy="Import an export that begins after it.",
        )

    # --- batches that the log lacks --------------------------------------------------------------

    def _written(
        self, key: str, events: Sequence[Event], chosen: Sequence[Event]
    ) -> dict[int, int]:
        """Write a batch, and return its seqs by the exported seqs."""
        if not chosen:
            return {}
        places = {event.seq: -place for place, event in enumerate(chosen, start=2)}
        session = self._session
        with session.transaction(key=key) as transaction:
            block = block_of(transaction)
            block.look_up(tenant_of(self._scope))
            block.record_call(key)
            if block.first is None:
                body = ImportBatch(
                    dialect=DIALECT, count=len(events), log=self._log_id, first=events[0].seq
                )
                drafts = [Draft(body, self._scope)]
                for event in chosen:
                    draft = self._draft(event, places)
                    if isinstance(draft.body, AssertFact) and draft.body.evidence:
                        # The quote needs the salt of its frame, which the block may hold.
                        if drafts:
                            session.write(drafts)
                        drafts = [quoted(session.snapshot, draft)]
                    else:
                        drafts.append(draft)
                session.write(drafts)
        seqs = transaction.receipt.seqs
        return {event.seq: seq for event, seq in zip(chosen, seqs[1:], strict=False)}

    def _draft(self, event: Event, places: dict[int, int]) -> Draft:
        body = event.body
        scope = event.scope
        assert isinstance(body, EventBody)
        assert scope is not None

        def moved(seq: int) -> int:
            return places.get(seq) or self._seq_of(seq)

        cause = event.causation
        return Draft(
            self._moved(body, moved),
            scope,
            event.actor,
            event.correlation,
            None if cause is None else moved(cause) or None,
            tuple(event.attached(each) for each in attachments_in(body)),
            reason=event.reason,
        )

    def _moved(self, body: EventBody, moved: Callable[[int], int]) -> EventBody:
        if isinstance(body, PutTag):
            return replace(body, at=self._head_of(body.at))
        if isinstance(body, RecallContext):
            body = replace(body, basis=self._head_of(body.basis))
        body = moved_body(_without_missing(body, moved), moved)
        # An event of the same batch has no seq yet.
        return with_moved_ids(body, lambda seq: self._seq_of(seq) or None)


def _owner_kept_from_copies(event: Event) -> Owned | None:
    """Return the owner of a frame that no other log takes, None for any other event."""
    body = None if event.payload_bytes is None else event.body
    owners = owners_of_frame(body.kind, body.uri) if isinstance(body, PutFrame) else ()
    return next((owned for owned in owners if not owned.is_copied), None)


def _without_missing(body: EventBody, moved: Callable[[int], int]) -> EventBody:
    """Return a body whose lists of references lack the events that were left out."""
    changes: dict[str, Any] = {}
    for name in body.references:
        value: object = getattr(body, name)
        if not isinstance(value, tuple):
            continue
        items = cast("tuple[int | Evidence, ...]", value)
        kept = [place for place, item in enumerate(items) if moved(reference_in(item))]
        if len(kept) < len(items):
            changes[name] = tuple(items[place] for place in kept)
            if name == "reranked" and isinstance(body, RecallContext):
                changes["reranked_scores"] = _scores(body.reranked_scores, kept)
    return replace(body, **changes) if changes else body


def _scores(scores: bytes | None, places: Sequence[int]) -> bytes | None:
    """Return the scores of the frames at some places."""
    if scores is None:
        return None
    cuts = (slice(_SCORE_SIZE * place, _SCORE_SIZE * (place + 1)) for place in places)
    return b"".join(scores[cut] for cut in cuts)
