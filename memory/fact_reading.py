"""Reading facts: what was known and true, what contradicts what, and who is who.

Owns the reads of facts and entities, for a view and for a store at its newest event. Leaves out
how the facts of a basis are found (`cerata.projections.fact_table`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import (
    AssertFact,
    EventBody,
    MergeEntities,
    PutEntity,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.engine.loading import loading
from cerata.projections.entity_table import Entities, EntityRow
from cerata.projections.fact_spans import FactSpan
from cerata.projections.fact_table import FactsAt
from cerata.projections.fact_values import ObjectKind
from cerata.projections.intervals import BEGINNING, ENDLESS, Allen, Interval, relation
from cerata.projections.scopes import is_within
from cerata.projections.times import to_microseconds

from .evidence import evidence_text
from .fact_search import FactHit, search_facts
from .fact_showing import shown, shown_seq
from .fact_values import (
    OPEN,
    Contradiction,
    Entity,
    EntityInfo,
    EvidenceText,
    Fact,
    FactId,
    FactObject,
    Period,
    checked_name,
    fact_id,
    period_of,
    stored_object,
)

if TYPE_CHECKING:
    from .view import View

PeriodLike = Period | tuple[datetime | str | None, datetime | str | None]


class FactReads(ABC):
    """The reads of facts; ``view`` says of which state."""

    @abstractmethod
    def view(self) -> "View":
        """Return the memory that is read."""

    def facts(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        object: FactObject | None = None,  # noqa: A002 - the word of the field
        *,
        valid_at: datetime | str | None = None,
        overlapping: PeriodLike | None = None,
        allen: tuple[Allen | str, PeriodLike] | None = None,
        include_retracted: bool = False,
        include_invalid: bool = False,
    ) -> list[Fact]:
        """Return the facts with what is given, oldest first.

        ``valid_at`` leaves those that are true at an instant, by default that of the view, or all
        where it has none; "now" is the view's. ``overlapping`` leaves those true at some time of a
        period; ``allen`` those whose period lies so to another, as ``("during", (start, end))``.
        What was retracted comes with ``include_retracted`` only, and what is known but invalid, by
        what it is linked to, with ``include_invalid``; both with the period that was stated.

        Cost: that of the facts with the same subject, or object; otherwise a pass over all.

        Raises:
            InvalidInput: a name, object, time or relation that cannot be.
        """
        view = self.view()
        instant = view.valid_instant(valid_at)
        facts, rows = _find(
            view,
            subject,
            predicate,
            object,
            closed=include_retracted,
            invalid=include_invalid,
            instant=instant,
        )
        spans = _spans(facts, rows) if include_retracted else facts.spans(rows)
        if instant is not None:
            spans = [span for span in spans if span.valid.start <= instant < span.valid.end]
        if overlapping is not None:
            period = _interval(overlapping)
            spans = [span for span in spans if span.valid.overlaps(period)]
        if allen is not None:
            spans = _related(spans, allen)
        return [shown(facts, span, view.basis) for span in spans]

    def fact(self, fact: FactId) -> Fact:
        """Return a fact by its id, retracted or not, as this view sees it.

        The id of an event that asserted it again names it too.

        Raises:
            NotFound: no fact with this id at this basis, or it is outside the scope.
        """
        view, number = self.view(), fact_id(fact)
        row = view.facts_at.row_of(view.fact_seq(number))
        if row is None:
            raise NotFound(
                f"There is no fact {number:,}",
                where=f"basis {view.basis:,}",
                remedy="Fact ids are shown by facts and log.",
            )
        return view.fact_in(row)

    def fact_history(self, subject: str, predicate: str | None = None) -> list[Fact]:
        """Return every fact of a subject, retracted and invalid ones too, as they were learned.

        With both clocks of each: when it was true, and when that was known.
        """
        view = self.view().true_at(None)
        return view.facts(subject, predicate, include_retracted=True, include_invalid=True)

    def evidence(self, fact: FactId) -> list[EvidenceText]:
        """Return where a fact is said, with the text, in order of the events that say so.

        Cost: a read of each frame.

        Raises:
            NotFound: no fact with this id at this basis, or it is outside the scope.
        """
        view = self.view()
        return [evidence_text(view, place) for place in view.fact(fact).evidence]

    def conflicts(
        self, subject: str | None = None, predicate: str | None = None
    ) -> list[Contradiction]:
        """Return the known facts that cannot both be true, with when; in order of id.

        Two values of a functional predicate at the same time, True and False of any, and two of
        which a link says that they contradict each other. What is invalid contradicts nothing.
        """
        view = self.view()
        facts, rows = _find(view, subject, predicate, None, closed=False)
        found = {(pair[0].row, pair[1].row): pair for pair in _contradictions(facts, rows)}
        links = dict[tuple[int, int], int]()
        among = None if subject is None and predicate is None else frozenset(rows)
        for one, other, link in view.labelling.contradictions():
            if among is not None and one not in among and other not in among:
                continue
            overlapping = _overlapping(facts, one, other)
            if overlapping is not None:
                found.setdefault((one, other), overlapping)
                links.setdefault((one, other), link)
        return [
            Contradiction(
                shown(facts, one, view.basis),
                shown(facts, other, view.basis),
                period_of(shared),
                shown_seq(links[pair], view.basis) if pair in links else None,
            )
            for pair, (one, other, shared) in sorted(found.items())
        ]

    def export_facts(self, *, history: bool = False) -> Iterator[str]:
        """Yield what is said of facts and entities as JSON Lines, without line ends.

        `Store.import_facts` of them says the same in another memory (docs/facts.md). With
        ``history`` the facts that were retracted come too. Cost: a pass over the log.

        Raises:
            InvalidInput: the view has what an open transaction gathered.
        """
        with loading("the part that exports facts"):
            from .fact_export import export_facts

        return export_facts(self.view(), history=history)

    def search_facts(
        self, query: str, *, k: int = 10, valid_at: datetime | str | None = None
    ) -> list[FactHit]:
        """Return the best ``k`` facts for a question in plain language, best first.

        First those of the entities that it names, by a name or an alias, those that name more of
        them first; then those that share its words. ``valid_at`` leaves those true at an instant,
        by default the view's, if it has one. Cost: a pass over the columns of facts.

        Raises:
            InvalidInput: the question is no string, or k is not positive.
        """
        view = self.view()
        if valid_at is not None:
            view = view.true_at(valid_at)
        return search_facts(view, query, k)

    # --- entities --------------------------------------------------------------------------------

    def resolve(self, name: str) -> list[str]:
        """Return the entities with a name or alias, in order of their first event.

        Names are exact or folded as aliases are: case, accents, punctuation and spaces do not
        count. Of entities that were merged comes the one that they are read as.
        """
        return Entities(self.view().facts_at).resolve(checked_name("A name", name))

    def entity(self, name: str) -> EntityInfo:
        """Return an entity by its exact name, or that of one that is read as it.

        Raises:
            NotFound: nothing names it at this basis.
        """
        entities = Entities(self.view().facts_at)
        found = entities.find(checked_name("An entity's name", name))
        if found is None:
            raise _no_entity(entities, name)
        return self._entity_info(found)

    def entities(self, kind: str | None = None) -> Iterator[EntityInfo]:
        """Yield the entities, in order of their first event; those of a kind if one is given.

        Cost: a pass over the facts, and a look-up for each.
        """
        for found in Entities(self.view().facts_at).all():
            info = self._entity_info(found)
            if kind is None or info.kind == kind:
                yield info

    def _entity_info(self, found: EntityRow) -> EntityInfo:
        seen = shown_seq(found.first_seq, self.view().basis)
        return EntityInfo(*found._replace(first_seq=seen))


def check_entities(view: "View", names: Iterable[str]) -> None:
    """Raise `NotFound` unless each name is of an entity in a view.

    Cost: look-ups of the names; of one that the log does not have, a pass over what the open
    transaction gathered. Facts are folded anew only if that ended a merge or split, which may have
    been all that named an entity.
    """
    drafts = view.layers.drafts
    ends = any(isinstance(draft.body, UnmergeEntities | UnsplitEntity) for draft in drafts)
    entities = Entities(view.facts_at if ends else view.logged.facts_at)
    for name in names:
        checked_name("An entity's name", name)
        if not entities.has(name) and (ends or not _is_gathered(view, name)):
            raise _no_entity(Entities(view.facts_at), name)


def _is_gathered(view: "View", name: str) -> bool:
    """Tell whether the open transaction names an entity so within the scope of a view."""
    scope = view.scope
    return any(
        name in _entities_of(draft.body) and (scope is None or is_within(draft.scope, scope))
        for draft in view.layers.drafts
    )


def _entities_of(body: EventBody) -> tuple[object, ...]:
    if isinstance(body, AssertFact):
        is_entity = body.object_kind == ObjectKind.ENTITY.name.lower()
        return (body.subject, body.object) if is_entity else (body.subject,)
    if isinstance(body, PutEntity):
        return (body.entity,)
    return (body.entity, body.into) if isinstance(body, MergeEntities | SplitEntity) else ()


def _no_entity(entities: Entities, name: str) -> NotFound:
    near = entities.resolve(name)
    remedy = f"Did you mean {near[0]!r}?" if near else "A fact or put_entity makes one."
    return NotFound(f"There is no entity {name!r}", remedy=remedy)


def shown_row(facts: FactsAt, row: int, basis: int) -> Fact:
    """Return the fact of a row, known or not, in a view of the log at ``basis``."""
    return shown(facts, _spans(facts, [row])[0], basis)


def _find(
    view: "View",
    subject: str | None,
    predicate: str | None,
    object_: FactObject | None,
    *,
    closed: bool,
    invalid: bool = False,
    instant: int | None = None,
) -> tuple[FactsAt, list[int]]:
    """Return the facts of a view, and the rows with what is given."""
    if subject is not None:
        checked_name("The subject", subject)
    if predicate is not None:
        checked_name("The predicate", predicate)
    facts = view.facts_at
    stored = None if object_ is None else stored_object(object_)
    rows = facts.find(subject, predicate, stored, closed=closed, invalid=invalid, instant=instant)
    return facts, rows


def _spans(facts: FactsAt, rows: Sequence[int]) -> list[FactSpan]:
    """Return when rows are true; of what was retracted, when it was said to be."""
    known = [row for row in rows if facts.is_known(row)]
    if len(known) == len(rows):
        return facts.spans(rows)
    spans = {span.row: span for span in facts.spans(known)}
    return [spans[row] if row in spans else facts.stated(row) for row in rows]


def _interval(given: PeriodLike) -> Interval:
    """Return a caller's period in microseconds. Raises `InvalidInput` where it is empty."""
    if isinstance(given, Period):
        interval = given.interval
    elif isinstance(given, tuple) and len(given) == 2:
        start, end = given
        interval = Interval(
            BEGINNING if start is None or start == OPEN else to_microseconds(start),
            ENDLESS if end is None or end == OPEN else to_microseconds(end),
        )
    else:
        raise InvalidInput(
            f"A period cannot be {given!r:.60}", remedy="Give (start, end), or a cerata.Period."
        )
    if interval.start >= interval.end:
        raise InvalidInput(
            "The period is empty or inverted", remedy="Its end must come after its start."
        )
    return interval


def _related(spans: Iterable[FactSpan], allen: tuple[Allen | str, PeriodLike]) -> list[FactSpan]:
    if not isinstance(allen, tuple) or len(cast("tuple[object, ...]", allen)) != 2:
        raise InvalidInput(
            f"A relation cannot be {allen!r:.60}",
            remedy='Give its name and a period, such as ("during", (start, end)).',
        )
    name, given = allen
    try:
        wanted = Allen(name)
    except ValueError as error:
        raise InvalidInput(
            f"{name!r} is no relation of periods", remedy=f"There are {', '.join(Allen)}."
        ) from error
    period = _interval(given)
    return [
        span
        for span in spans
        if span.valid.start < span.valid.end and relation(span.valid, period) is wanted
    ]


def _contradictions(
    facts: FactsAt, rows: Sequence[int]
) -> Iterator[tuple[FactSpan, FactSpan, Interval]]:
    """Yield pairs of known facts that cannot both be true, and when; in order of their starts.

    Cost: a sort, and the pairs that overlap in values of one functional predicate or in bools.
    """
    for group in facts.groups(rows).values():
        spans = facts.spans(group.rows, group.rows)
        if not group.functional:
            spans = [one for one in spans if facts.value_key(one.row)[0] == ObjectKind.BOOL]
        spans.sort(key=lambda one: one.valid)
        for place, one in enumerate(spans, start=1):
            for following in range(place, len(spans)):
                other = spans[following]
                if other.valid.start >= one.valid.end:
                    # Nor has what begins later anything in common with it.
                    break
                shared = Interval(other.valid.start, min(one.valid.end, other.valid.end))
                differ = facts.value_key(one.row) != facts.value_key(other.row)
                if differ and shared.start < shared.end:
                    first, second = sorted((one, other))
                    yield first, second, shared


def _overlapping(
    facts: FactsAt, one: int, other: int
) -> tuple[FactSpan, FactSpan, Interval] | None:
    """Return when two rows are both true, if they are at any time."""
    first, second = facts.spans([one, other])
    start = max(first.valid.start, second.valid.start)
    shared = Interval(start, min(first.valid.end, second.valid.end))
    is_real = all(span.valid.start < span.valid.end for span in (first, second))
    return (first, second, shared) if is_real and shared.start < shared.end else None


def as_named(view: "View", fact: Fact) -> tuple[str, FactObject]:
    """Return the subject and object of a fact by the names that they had before any merge."""
    facts = view.facts_at
    row = facts.row_of(view.fact_seq(fact.id))
    assert row is not None
    subject, entity = facts.named_by(row)
    return subject, fact.object if entity is None else Entity(entity)
