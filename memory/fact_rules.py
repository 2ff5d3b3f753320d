"""Rules: what a batch ends must hold, and what it merges must be nobody's yet.

Owns the checks of retractions, merges and what takes these back, before an append: against the
folded facts, and under the lock against what others appended since. Nothing folds under the lock.
That what is named exists is `references`' business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cerata.engine.errors import Conflict
from cerata.engine.events import (
    Draft,
    Event,
    MergeEntities,
    RetractFact,
    Scope,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.projections.fact_table import Facts
from cerata.projections.scopes import tenant_in

_ENDING = (RetractFact, MergeEntities, UnmergeEntities, UnsplitEntity)

_Name = tuple[str, str]
"""A tenant, and an entity's name."""


@dataclass
class Ended:
    """What a batch ends and merges so far; facts, merges and splits by seq, or −place."""

    targets: set[int] = field(default_factory=set[int])
    merged: dict[_Name, str] = field(default_factory=dict[_Name, str])
    """What it merges into what; empty where it ends a merge."""
    heads: set[_Name] = field(default_factory=set[_Name])
    """The entities that it merges another one into."""

    def copy(self) -> "Ended":
        return Ended(set(self.targets), dict(self.merged), set(self.heads))


class FactRules:
    """The drafts of a batch that end or merge something, from place ``first`` on.

    An entity is merged once in a tenant. An error names only merges within the scope ``within``.
    """

    def __init__(
        self, drafts: Sequence[Draft], first: int = 1, *, within: Scope | None = None
    ) -> None:
        self._drafts = drafts
        self._within = within
        self._new = [
            (place, draft)
            for place, draft in enumerate(drafts[first - 1 :], start=first)
            if isinstance(draft.body, _ENDING)
        ]

    def __bool__(self) -> bool:
        return bool(self._new)

    def check(self, facts: Facts, n: int, ended: Ended) -> None:
        """Refuse what cannot be ended or merged at event ``n``; what can is entered in ``ended``.

        Raises:
            Conflict: with what stands against it.
        """
        for _, draft in self._new:
            body = draft.body
            if isinstance(body, MergeEntities):
                self._check_merge(facts, n, tenant_in(draft.scope), body, ended)
            elif isinstance(body, RetractFact):
                self._end(facts.fact_named(body.fact), "Fact", ended)
                if facts.is_closed(body.fact, n):
                    raise Conflict(
                        f"Fact {body.fact:,} was retracted already", remedy="Leave this call out."
                    )
            elif isinstance(body, UnmergeEntities):
                self._end(body.merge, "Merge", ended)
                if body.merge > 0:
                    _check_holds(facts, n, body.merge, "Merge")
                    ended.merged[facts.merge_named(body.merge, n)] = ""
                else:
                    merge = self._drafts[-body.merge - 1]
                    assert isinstance(merge.body, MergeEntities)
                    ended.merged[tenant_in(merge.scope), merge.body.entity] = ""
            elif isinstance(body, UnsplitEntity):
                self._end(body.split, "Split", ended)
                if body.split > 0:
                    _check_holds(facts, n, body.split, "Split")

    def _end(self, target: int, what: str, ended: Ended) -> None:
        if target in ended.targets:
            raise Conflict(f"{what} {target:,} is ended twice in one batch", remedy="End it once.")
        ended.targets.add(target)

    def _check_merge(
        self, facts: Facts, n: int, tenant: str, body: MergeEntities, ended: Ended
    ) -> None:
        def into(name: str) -> str:
            own = ended.merged.get((tenant, name))
            return (facts.merged_into(tenant, name, n) or "") if own is None else own

        already = into(body.entity)
        here = ended.merged.get((tenant, body.entity))
        if (
            already
            and here is None
            and not facts.merged_into(tenant, body.entity, n, within=self._within)
        ):
            raise Conflict(
                f"{body.entity!r} is merged already, in another scope of the tenant",
                remedy="Open the file with the scope of the tenant alone, and unmerge it there.",
            )
        if already:
            raise Conflict(
                f"{body.entity!r} is merged into {already!r} already",
                remedy=f"Unmerge it first, or merge {already!r}.",
            )
        if not ended.merged:
            is_circle = facts.is_read_as(tenant, body.into, body.entity, n)
        elif (tenant, body.entity) in ended.heads or facts.is_head(tenant, body.entity, n):
            name = body.into
            while name and name != body.entity:
                name = into(name)
            is_circle = bool(name)
        else:
            is_circle = body.into == body.entity
        if is_circle:
            raise Conflict(
                f"{body.into!r} is read as {body.entity!r}; they would make a circle",
                remedy="Unmerge the other first.",
            )
        ended.merged[tenant, body.entity] = body.into
        ended.heads.add((tenant, body.into))

    def check_delta(self, facts: Facts, delta: Sequence[Event]) -> None:
        """Refuse to end what another writer ended just before, and any merge that raced with one.

        Raises:
            Conflict: with the event that came between.
        """
        targets = {facts.fact_named(_target(draft.body)) for _, draft in self._new} - {0}
        merging = any(isinstance(draft.body, MergeEntities) for _, draft in self._new)
        for event in delta:
            body = event.body
            raced = merging and isinstance(body, MergeEntities | UnmergeEntities)
            if raced or facts.fact_named(_target(body)) in targets:
                raise Conflict(
                    "Another writer ended or merged the same just before",
                    where=f"event {event.seq:,}",
                    remedy="Read again, and decide again.",
                )


def _target(body: object) -> int:
    """Return what a body ends; 0 where it ends nothing."""
    match body:
        case RetractFact():
            return body.fact
        case UnmergeEntities():
            return body.merge
        case UnsplitEntity():
            return body.split
        case _:
            return 0


def _check_holds(facts: Facts, n: int, seq: int, what: str) -> None:
    if not facts.holds(seq, n):
        raise Conflict(
            f"{what} {seq:,} has ended already, or never held",
            remedy="Leave this call out.",
        )
