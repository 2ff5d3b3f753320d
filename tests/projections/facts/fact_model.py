"""Facts by brute force: what docs/facts.md says, as plain lists and loops over the events.

It shares no code with the fold: its own ranges, its own Allen relations, its own scopes. Every
read looks at all facts, and a fact at all others, so it is slow, and short enough to be checked by
eye against the page. Times are microseconds since 1970 UTC; −∞ and ∞ are the open ends.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    AssertFact,
    EventBody,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    Scope,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)

EVER = float("inf")
STORED_BEGINNING = -(1 << 63) + 1
"""How an event says that a range has no beginning."""

Range = tuple[float, float]
Value = tuple[str, tuple[str, object]]
"""The kind of an object, and what stands for it with its type."""


@dataclass(frozen=True)
class ModelEvent:
    """What the model needs of an event; references are lifted."""

    seq: int
    recorded: int
    scope: Scope
    causation: int | None
    body: EventBody


@dataclass
class ModelFact:
    """A fact, from the events that assert it and the one that retracts it."""

    id: int
    scope: Scope
    stated: AssertFact
    recorded: int
    depth: int
    said: list[AssertFact]
    ids: list[int]
    retracted: tuple[int, int] | None = None
    """When, and by which event."""

    @property
    def value(self) -> Value:
        return value_of(self.stated.object_kind, self.stated.object)

    @property
    def range(self) -> Range:
        start: float = self.recorded if self.stated.valid_from is None else self.stated.valid_from
        end = EVER if self.stated.valid_to is None else self.stated.valid_to
        return (-EVER if start <= STORED_BEGINNING else start), end

    @property
    def tenant(self) -> object:
        return dict(self.scope)["tenant"]


@dataclass(frozen=True)
class ModelAnswer:
    """A fact as a view sees it."""

    fact: ModelFact
    subject: str
    value: Value
    valid: Range
    ended_by: int | None


@dataclass(frozen=True)
class ModelEntity:
    """An entity as a view sees it; names, its own first."""

    name: str
    kind: str | None
    aliases: tuple[str, ...]
    names: tuple[str, ...]
    first_seen: int
    mentions: int


def value_of(kind: str, stored: object) -> Value:
    """Return an object such that two are equal only where they are one object."""
    return kind, (type(stored).__name__, stored)


def folded(name: str) -> str:
    """Return a name as an alias is found: without case and accents, words by one space."""
    bare = "".join(
        one for one in unicodedata.normalize("NFKD", name) if one.isalnum() or one == " "
    )
    return " ".join(bare.casefold().split())


def allen(one: Range, other: Range) -> list[str]:
    """Return the relations of Allen in which one range is to another; neither is empty."""
    (a, b), (c, d) = one, other
    holds = {
        "precedes": b < c,
        "meets": b == c,
        "overlaps": a < c < b < d,
        "starts": a == c and b < d,
        "during": c < a and b < d,
        "finishes": c < a and b == d,
        "equals": a == c and b == d,
        "finished by": a < c and b == d,
        "contains": a < c and d < b,
        "started by": a == c and d < b,
        "overlapped by": c < a < d < b,
        "met by": d == a,
        "preceded by": d < a,
    }
    return [name for name, it_does in holds.items() if it_does]


def is_empty(one: Range) -> bool:
    return one[0] >= one[1]


def shares_an_instant(one: Range, other: Range) -> bool:
    return not is_empty(one) and not is_empty(other) and one[0] < other[1] and other[0] < one[1]


def is_seen(scope: Scope, wanted: Scope | None) -> bool:
    """Tell whether an event's scope has all that a view's has; True is not 1."""
    have = {(name, type(value), value) for name, value in scope}
    return all((name, type(value), value) in have for name, value in wanted or ())


@dataclass
class FactModel:
    """What a view of some events, in a scope or in all, must answer."""

    events: Sequence[ModelEvent]
    scope: Scope | None = None
    all_facts: Sequence[ModelFact] | None = None
    """What the events assert, where that is known already."""
    present: int = -(1 << 63)
    """The instant by which a fact may have ended."""

    @cached_property
    def facts_seen(self) -> list[ModelFact]:
        facts = told(self.events) if self.all_facts is None else self.all_facts
        return [fact for fact in facts if is_seen(fact.scope, self.scope)]

    @cached_property
    def merges(self) -> list[Any]:
        return self._holding(MergeEntities, UnmergeEntities, "merge")

    @cached_property
    def splits(self) -> list[Any]:
        return self._holding(SplitEntity, UnsplitEntity, "split")

    @cached_property
    def _answers(self) -> list[ModelAnswer]:
        return [self._answer(fact) for fact in self.facts_seen]

    # --- reads -----------------------------------------------------------------------------------

    def facts(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        value: Value | None = None,
        *,
        valid_at: int | None = None,
        overlapping: Range | None = None,
        relation: tuple[str, Range] | None = None,
        include_ended: bool = False,
        include_retracted: bool = False,
        include_invalid: bool = False,
    ) -> list[ModelAnswer]:
        is_any_time = (valid_at, overlapping, relation) == (None, None, None)
        found = list[ModelAnswer]()
        for one in self._answers:
            tenant, valid = one.fact.tenant, one.valid
            wanted = (
                (include_retracted or one.fact.retracted is None)
                and (include_invalid or one.fact.id not in self.fallen)
                and (include_ended or not is_any_time or valid[1] > self.present)
                and (subject is None or one.subject in self._readings(tenant, subject))
                and (predicate is None or one.fact.stated.predicate == predicate)
                and (value is None or one.value in self._accepted(tenant, value))
                and (valid_at is None or valid[0] <= valid_at < valid[1])
                and (overlapping is None or shares_an_instant(valid, overlapping))
                and (
                    relation is None
                    or (not is_empty(valid) and relation[0] in allen(valid, relation[1]))
                )
            )
            if wanted:
                found.append(one)
        return found

    def fact(self, number: int) -> ModelAnswer | None:
        for one in self._answers:
            if number in one.fact.ids:
                return one
        return None

    @cached_property
    def fallen(self) -> set[int]:
        """The known facts that are invalid by what they are linked to."""
        return set()

    def standing(self, fact: ModelFact) -> str:
        return "stands" if fact.retracted is None else "invalid"

    def contradictions(self) -> list[tuple[int, int, int]]:
        """Return what links say cannot both be true: two facts, and the link."""
        return []

    def conflicts(
        self, subject: str | None = None, predicate: str | None = None
    ) -> list[tuple[ModelAnswer, ModelAnswer, Range, int | None]]:
        found = list[tuple[ModelAnswer, ModelAnswer, Range, int | None]]()
        known = self.facts(subject, predicate, include_ended=True)
        asked = [one.fact.id for one in known]
        linked: dict[tuple[int, int], int] = {}
        for fact, other_fact, link in self.contradictions():
            linked.setdefault((min(fact, other_fact), max(fact, other_fact)), link)
        known += [
            one
            for one in self.facts(include_ended=True)
            if any(one.fact.id in pair for pair in linked)
        ]
        for one in known:
            for other in known:
                pair = one.fact.id, other.fact.id
                if (
                    pair[0] < pair[1]
                    and (pair[0] in asked or pair[1] in asked)
                    and (pair in linked or self._excludes(one.fact, other.fact))
                    and shares_an_instant(one.valid, other.valid)
                ):
                    shared = max(one.valid[0], other.valid[0]), min(one.valid[1], other.valid[1])
                    if (one, other, shared, linked.get(pair)) not in found:
                        found.append((one, other, shared, linked.get(pair)))
        return sorted(found, key=lambda pair: (pair[0].fact.id, pair[1].fact.id))

    def entities(self, kind: str | None = None) -> list[ModelEntity]:
        return [one for one in self._entities.values() if kind is None or one.kind == kind]

    @cached_property
    def _entities(self) -> dict[tuple[object, str], ModelEntity]:
        """The entities by tenant and name, in order."""
        first: dict[tuple[object, str], int] = {}
        for tenant, name, seq in sorted(self._namings(), key=lambda naming: naming[2]):
            first.setdefault((tenant, name), seq)
        groups: dict[tuple[object, str], list[str]] = {}
        for tenant, name in first:
            groups.setdefault((tenant, self.reading(tenant, name)), []).append(name)
        found: dict[tuple[object, str], ModelEntity] = {}
        for (tenant, name), named in groups.items():
            names = [name, *(other for other in named if other != name)]
            kind, aliases = self._said_of(tenant, names)
            mentions = sum(
                one.fact.tenant == tenant
                and one.fact.retracted is None
                and one.fact.id not in self.fallen
                and (one.subject == name or one.value == value_of("entity", name))
                for one in self._answers
            )
            found[tenant, name] = ModelEntity(
                name, kind, tuple(aliases), tuple(names), first[tenant, named[0]], mentions
            )
        return found

    def entity(self, name: str) -> ModelEntity | None:
        """Where several tenants have the name, the entity of the one that named it first.

        A name that no entity has is an alias, which must be of one entity of its tenant.
        """
        for tenant, named, _ in sorted(self._namings(), key=lambda naming: naming[2]):
            if named == name:
                return self._entities[tenant, self.reading(tenant, name)]
        for (tenant, first), entity in self._entities.items():
            names = self._of_alias(tenant, name)
            if first in names:
                if len(names) > 1:
                    raise InvalidInput("The name is an alias of several entities")
                return entity
        return None

    def resolve(self, name: str) -> list[str]:
        found = list[str]()
        for one in self.entities():
            called = {folded(other) for other in (*one.names, *one.aliases)}
            if (folded(name) in called or name in one.names) and one.name not in found:
                found.append(one.name)
        return found

    # --- who is who ------------------------------------------------------------------------------

    def reading(self, tenant: object, name: str) -> str:
        """Return the name that a name is read as, by the merges that hold."""
        for _ in self.merges:
            for merge in self.merges:
                if dict(merge.scope)["tenant"] == tenant and merge.body.entity == name:
                    name = merge.body.into
        return name

    def names_entity(self, name: str) -> bool:
        """Return whether an event names an entity so."""
        return any(named == name for _, named, _ in self._namings())

    def of_alias(self, name: str) -> list[tuple[object, str]]:
        """Return the entities with a name as an alias, in order of their first event."""
        return [
            (tenant, first)
            for tenant, first in self._entities
            if first in self._of_alias(tenant, name)
        ]

    def _of_alias(self, tenant: object, name: str) -> list[str]:
        """Return the names of the entities of a tenant that have a name as an alias."""
        alias = folded(name)
        return [
            entity.name
            for (holder, _), entity in self._entities.items()
            if alias and holder == tenant and alias in map(folded, entity.aliases)
        ]

    def _readings(self, tenant: object, name: str) -> list[str]:
        """Return the names that a question means by a name: the name's reading, and by alias."""
        if (tenant, name) not in self._asked:
            readings = [self.reading(tenant, name), *self._of_alias(tenant, name)]
            self._asked[tenant, name] = readings
        return self._asked[tenant, name]

    @cached_property
    def _asked(self) -> dict[tuple[object, str], list[str]]:
        return {}

    def meaning(self, fact: ModelFact, name: str) -> str:
        """Return what a fact means by a name: the split of that fact, then merges."""
        read = self.reading(fact.tenant, name)
        for split in reversed(self.splits):
            body = split.body
            if set(body.facts) & set(fact.ids) and self.reading(fact.tenant, body.entity) == read:
                return self.reading(fact.tenant, body.into)
        return read

    def _accepted(self, tenant: object, value: Value) -> list[Value]:
        """Return the values that a question for a value accepts: of a string, entities, too."""
        kind, (_, stored) = value
        accepted = [self._read_value(tenant, value)]
        if kind in ("string", "entity") and str(stored).strip():
            readings = self._readings(tenant, str(stored))
            accepted += [value_of("entity", name) for name in readings]
        return accepted

    def _read_value(self, tenant: object, value: Value) -> Value:
        kind, (_, stored) = value
        return value_of(kind, self.reading(tenant, str(stored))) if kind == "entity" else value

    def _value(self, fact: ModelFact) -> Value:
        if fact.stated.object_kind == "entity":
            return value_of("entity", self.meaning(fact, str(fact.stated.object)))
        return fact.value

    # --- one value at a time ---------------------------------------------------------------------

    def is_functional(self, tenant: object, predicate: str) -> bool:
        said = False
        for event in self.events:
            if (
                isinstance(event.body, PutPredicate)
                and is_seen(event.scope, self.scope)
                and dict(event.scope)["tenant"] == tenant
                and event.body.predicate == predicate
            ):
                said = event.body.functional
        return said

    def rivals(self, fact: ModelFact) -> list[ModelFact]:
        """Return the known facts with another value of the same subject and predicate."""
        subject = self.meaning(fact, fact.stated.subject)
        return [
            other
            for other in self.facts_seen
            if other.retracted is None
            and other.id not in self.fallen
            and not is_empty(other.range)
            and other.tenant == fact.tenant
            and other.stated.predicate == fact.stated.predicate
            and self.meaning(other, other.stated.subject) == subject
            and self._value(other) != self._value(fact)
        ]

    def _answer(self, fact: ModelFact) -> ModelAnswer:
        start, end = fact.range
        ended_by = None
        does_count = fact.retracted is None and fact.id not in self.fallen
        if does_count and self.is_functional(fact.tenant, fact.stated.predicate):
            has_end = fact.stated.valid_to is not None
            for other in self.rivals(fact):
                begins = other.range[0]
                if start < begins < end and (not has_end or fact.id < other.id):
                    end, ended_by = begins, other.id
        subject = self.meaning(fact, fact.stated.subject)
        return ModelAnswer(fact, subject, self._value(fact), (start, end), ended_by)

    def _excludes(self, one: ModelFact, other: ModelFact) -> bool:
        both_bools = one.stated.object_kind == other.stated.object_kind == "bool"
        return other in self.rivals(one) and (
            both_bools or self.is_functional(one.tenant, one.stated.predicate)
        )

    # --- entities --------------------------------------------------------------------------------

    def _namings(self) -> Iterable[tuple[object, str, int]]:
        """Yield each tenant, name of an entity, and event that names it."""
        for fact in self.facts_seen:
            yield fact.tenant, fact.stated.subject, fact.id
            if fact.stated.object_kind == "entity":
                yield fact.tenant, str(fact.stated.object), fact.id
        for event in [*self.merges, *self.splits]:
            tenant = dict(event.scope)["tenant"]
            yield tenant, event.body.entity, event.seq
            yield tenant, event.body.into, event.seq
        for event in self.events:
            if isinstance(event.body, PutEntity) and is_seen(event.scope, self.scope):
                yield dict(event.scope)["tenant"], event.body.entity, event.seq

    def _said_of(self, tenant: object, names: Sequence[str]) -> tuple[str | None, list[str]]:
        """Return the kind of the first that has one, the last said; and all aliases, in order."""
        kinds, aliases = list[str](), list[str]()
        for name in names:
            kind = None
            for event in self.events:
                body = event.body
                if (
                    isinstance(body, PutEntity)
                    and is_seen(event.scope, self.scope)
                    and (dict(event.scope)["tenant"], body.entity) == (tenant, name)
                ):
                    kind = body.kind or kind
                    aliases += [alias for alias in body.aliases if alias not in aliases]
            if kind is not None:
                kinds.append(kind)
        return (kinds[0] if kinds else None), aliases

    def _holding(self, kind: type[EventBody], ending: type[EventBody], name: str) -> list[Any]:
        ended = {getattr(one.body, name) for one in self.events if isinstance(one.body, ending)}
        return [
            one
            for one in self.events
            if isinstance(one.body, kind)
            and one.seq not in ended
            and is_seen(one.scope, self.scope)
        ]


# --- which facts there are -----------------------------------------------------------------------


def told(events: Sequence[ModelEvent]) -> list[ModelFact]:
    """Return the facts that events assert, each with the events that say it again."""
    facts = list[ModelFact]()
    for index, event in enumerate(events):
        body = event.body
        if isinstance(body, RetractFact):
            for fact in facts:
                if body.fact in fact.ids and fact.retracted is None:
                    fact.retracted = event.recorded, event.seq
        elif isinstance(body, AssertFact):
            same = _same(facts, event, events[:index])
            if same is None:
                depth = _depth(facts, events, event.causation)
                facts.append(
                    ModelFact(
                        event.seq, event.scope, body, event.recorded, depth, [body], [event.seq]
                    )
                )
            else:
                same.said.append(body)
                same.ids.append(event.seq)
    return facts


def _same(
    facts: Sequence[ModelFact], event: ModelEvent, before: Sequence[ModelEvent]
) -> ModelFact | None:
    """Return the known fact that an event asserts again, the newest where it could be several."""
    body = event.body
    assert isinstance(body, AssertFact)
    for fact in reversed(facts):
        stated = fact.stated
        if (
            fact.retracted is None
            and is_seen(fact.scope, event.scope)
            and is_seen(event.scope, fact.scope)
            and (stated.subject, stated.predicate) == (body.subject, body.predicate)
            and fact.value == value_of(body.object_kind, body.object)
            and (stated.valid_from, stated.valid_to) == (body.valid_from, body.valid_to)
            and not (body.valid_from is None and _was_succeeded(fact, event, before, facts))
        ):
            return fact
    return None


def _was_succeeded(
    fact: ModelFact,
    event: ModelEvent,
    before: Sequence[ModelEvent],
    facts: Sequence[ModelFact],
) -> bool:
    """Tell whether another value of a functional predicate has begun since a fact did.

    Another is one that is named otherwise, though it may be read as the same just now.
    """
    tenant = FactModel(before, (("tenant", dict(event.scope)["tenant"]),), facts)
    if not tenant.is_functional(fact.tenant, fact.stated.predicate):
        return False
    subject = tenant.meaning(fact, fact.stated.subject)
    return any(
        fact.range[0] < other.range[0] <= event.recorded
        and other.retracted is None
        and not is_empty(other.range)
        and other.stated.predicate == fact.stated.predicate
        and tenant.meaning(other, other.stated.subject) == subject
        and other.value != fact.value
        for other in tenant.facts_seen
    )


def _depth(facts: Sequence[ModelFact], events: Sequence[ModelEvent], causation: int | None) -> int:
    """Return one more than the depth of the fact that is the cause; a correction's is the same."""
    for cause in events:
        if cause.seq == causation:
            for fact in facts:
                if causation in fact.ids:
                    return fact.depth + 1
                if isinstance(cause.body, RetractFact) and cause.body.fact in fact.ids:
                    return fact.depth
    return 0
