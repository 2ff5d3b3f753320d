"""Export: the facts and entities of a basis, as lines for an import.

Owns the choice of the events that become lines. Lines keep the order of the log: a line names only
earlier lines, and the order decides when a value of a functional predicate ends. Events without
effect at the basis are left out; an entity that only such an event named gets a line of its type in
that place, so that entities keep their order, too. Leaves out the format of lines (`jsonl`)
and their import (`importing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    DEFAULT_SCOPE,
    AssertFact,
    Event,
    MergeEntities,
    PutEntity,
    PutFrame,
    PutPredicate,
    Scope,
    ScopeValue,
    SplitEntity,
)
from cerata.engine.unreadable import event_place, frame_place, readable
from cerata.projections.columnar.scopes import by_name
from cerata.projections.columnar.times import ENDLESS, Interval, to_datetime
from cerata.projections.facts.objects import ObjectKind
from cerata.projections.facts.projection import FACT_EVENTS

from ..snapshot.readable_events import readable_events
from ..values.arguments import content_hash
from ..values.facts import period_of, shown_object
from .jsonl import (
    EntityLine,
    EvidencePart,
    ExportLine,
    FactLine,
    MergeLine,
    PeriodPart,
    PredicateLine,
    RetractionLine,
    SaidLine,
    SplitLine,
    encode,
    plain,
)

if TYPE_CHECKING:
    from cerata.projections.facts.reader import EvidencePlace

    from ..snapshot.snapshot import Snapshot

_FRAMES_KEPT: Final = 1024
"""Frames whose hashes are cached, since evidence in the same frame often comes together."""


def export_facts(snapshot: Snapshot, *, history: bool = False) -> Iterator[str]:
    """Yield the lines of a view's facts and entities, first the line that names their source.

    With ``history`` retracted facts get lines, too. A fact that is never true, since it had ended
    before it was recorded, gets none. Cost: a pass over the log, and a read of each frame that is
    evidence.

    Raises:
        InvalidInput: the view has pending events of an open transaction.
    """
    if snapshot.unsalted_drafts:
        raise InvalidInput(
            "The view has pending events of an open transaction",
            remedy="Call interchange.export_facts() after the block.",
        )
    return _lines(snapshot, history=history)


def _lines(snapshot: Snapshot, *, history: bool) -> Iterator[str]:
    head = ExportLine(
        log_id=snapshot.log_id.hex(),
        basis=snapshot.basis,
        recorded=to_datetime(snapshot.head.recorded).isoformat(),
        history=history,
    )
    yield encode(head)
    export = _Export(snapshot, history=history)
    for event in readable_events(snapshot, 1, None):
        if event.type in FACT_EVENTS:
            for line in export.lines(event):
                yield encode(line)


class _Export:
    """A pass over a log's events.

    - ``_named`` are the entities that a line named, each with the line's scope.
    - ``_ended`` are the seqs of the retractions that got a line.
    """

    def __init__(self, snapshot: Snapshot, *, history: bool) -> None:
        self._snapshot = snapshot
        self._facts = snapshot.facts_at
        self._history = history
        self._named = set[tuple[Scope, str]]()
        self._ended = set[int]()
        self._content = lru_cache(_FRAMES_KEPT)(self._content_of)

    def lines(self, event: Event) -> Iterator[SaidLine]:
        """Yield the lines of an event, in order."""
        body = event.body
        if event.scope is None:
            return
        scope = by_name(event.scope)
        if isinstance(body, AssertFact):
            yield from self._fact(event, body, scope)
        elif isinstance(body, PutPredicate):
            yield PredicateLine(
                predicate=body.predicate, functional=body.functional, scope=_said(scope)
            )
        elif isinstance(body, PutEntity):
            self._named.add((scope, body.entity))
            yield EntityLine(
                entity=body.entity, kind=body.kind, aliases=body.aliases, scope=_said(scope)
            )
        elif isinstance(body, MergeEntities) and self._facts.roles.holds(event.seq):
            self._named |= {(scope, body.entity), (scope, body.into)}
            yield MergeLine(entity=body.entity, into=body.into, scope=_said(scope))
        elif isinstance(body, SplitEntity) and self._facts.roles.holds(event.seq):
            yield from self._split(body, scope)

    def _fact(self, event: Event, body: AssertFact, scope: Scope) -> Iterator[SaidLine]:
        facts, row = self._facts, self._facts.row_of(event.seq)
        if row is None or facts.seq_of(row) != event.seq:
            # The event has no readable object, or repeats the fact of an earlier line.
            return
        kind, value = facts.object_of(row)
        names = [body.subject]
        if kind is ObjectKind.ENTITY:
            # The name in the event, not the entity that a merge or split reads for it.
            value = str(body.object)
            names.append(value)
        if not self._is_exported(row):
            yield from self._entities(names, scope)
            return
        self._named |= {(scope, name) for name in names}
        recorded, retracted, by = facts.known_period_of(row)
        confidence, source = facts.last_assertion_of(row)
        kind_name, plain_value = plain(shown_object(kind, value))
        yield FactLine(
            id=event.seq,
            subject=body.subject,
            predicate=body.predicate,
            object=plain_value,
            object_kind=kind_name,
            valid=_period(facts.stated(row).valid),
            confidence=confidence,
            source=source,
            evidence=tuple(self._evidence(facts.evidence_of(row))),
            assumptions=tuple(facts.assumptions_of(row)),
            because=self._cause(event),
            known=_period(Interval(recorded, ENDLESS if retracted is None else retracted)),
            scope=_said(scope),
        )
        if by is not None:
            # At once, because a later assertion of the same statement is another fact, and stays.
            self._ended.add(by)
            yield RetractionLine(id=by, fact=event.seq, scope=_said(scope))

    def _is_exported(self, row: int) -> bool:
        valid = self._facts.stated(row).valid
        return valid.start < valid.end and (self._history or self._facts.is_known(row))

    def _exported_id(self, fact: int) -> int | None:
        """Return the id of a fact's line, by the seq of an event that asserted the fact."""
        row = self._facts.row_of(fact)
        if row is None or not self._is_exported(row):
            return None
        asserted = self._facts.seq_of(row)
        # A fact whose event cannot be read has no line.
        read = readable([asserted], self._snapshot.event_of, event_place)
        return None if next(read, None) is None else asserted

    def _cause(self, event: Event) -> int | None:
        """Return the id of the line that led to a fact; None without a cause that has a line."""
        cause = event.causation
        if cause is None or cause >= event.seq:
            return None
        return cause if cause in self._ended else self._exported_id(cause)

    def _split(self, body: SplitEntity, scope: Scope) -> Iterator[SaidLine]:
        ids = dict.fromkeys(map(self._exported_id, body.facts))
        facts = tuple(number for number in ids if number is not None)
        if not facts:
            yield from self._entities((body.entity, body.into), scope)
            return
        self._named |= {(scope, body.entity), (scope, body.into)}
        yield SplitLine(entity=body.entity, into=body.into, facts=facts, scope=_said(scope))

    def _entities(self, names: Iterable[str], scope: Scope) -> Iterator[EntityLine]:
        """Yield a line for each entity that no line named, since later lines depend on it."""
        for name in names:
            if (scope, name) not in self._named:
                self._named.add((scope, name))
                yield EntityLine(entity=name, scope=_said(scope))

    # --- evidence --------------------------------------------------------------------------------

    def _evidence(self, places: Iterable[EvidencePlace]) -> Iterator[EvidencePart]:
        """Yield evidence by content, without frames that are erased, hidden or missing."""
        for place in places:
            part = self._content(place.frame)
            if part is not None:
                yield msgspec.structs.replace(part, start=place.start, end=place.end)

    def _content_of(self, frame: int) -> EvidencePart | None:
        body = self._frame(frame)
        if body is None:
            return None
        uri = UNSET if body.uri is None else body.uri
        document = None if body.chunk_index is None else self._frame(body.parent or 0)
        if document is None or body.chunk_index is None:
            return EvidencePart(content=hash_of(body).hex(), uri=uri)
        return EvidencePart(
            content=hash_of(body).hex(),
            document=hash_of(document).hex(),
            chunk=body.chunk_index,
            uri=UNSET if document.uri is None else document.uri,
        )

    def _frame(self, frame: int) -> PutFrame | None:
        if not self._snapshot.layers.has(frame):
            return None
        read = readable([frame], self._snapshot.layers.event, frame_place)
        return next((each.body for each in read if isinstance(each.body, PutFrame)), None)


def hash_of(body: PutFrame) -> bytes:
    """Return the hash of a frame's content; for a document, of its whole text."""
    if body.content_hash is not None:
        return body.content_hash
    return content_hash(body.text or "") if body.blob is None else body.blob.hash[:16]


def _said(scope: Scope) -> dict[str, ScopeValue] | UnsetType:
    return UNSET if scope == DEFAULT_SCOPE else dict(scope)


def _period(interval: Interval) -> PeriodPart:
    period = period_of(interval)
    return PeriodPart(
        None if period.start is None else period.start.isoformat(),
        None if period.end is None else period.end.isoformat(),
    )
