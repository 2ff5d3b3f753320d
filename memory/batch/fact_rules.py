"""Rules of facts: a batch ends a fact, merge or split only once, and merges an entity only once.

Owns the checks of retractions, merges, and the ends of merges and splits before an append: against
the folded facts, and under the writer lock against the events that other writers appended since.
No check folds under the lock. Leaves out whether the named facts exist (`reference_rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import (
    Draft,
    Event,
    LinkFacts,
    MergeEntities,
    RetractFact,
    Scope,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.engine.late import late
from cerata.projections.columnar.scopes import tenant_in

from .rule import Rule, State, drafts_of

if TYPE_CHECKING:
    from cerata.engine.log import Validate
    from cerata.projections.facts.history import Facts
    from cerata.projections.frames.reader import Frames
    from cerata.projections.links import reader as link_columns

    from ..values import graph as link_values
else:
    link_columns = late("cerata.projections.links.reader")
    link_values = late("cerata.memory.values.graph")


_ENDING = (RetractFact, MergeEntities, UnmergeEntities, UnsplitEntity)

_Name = tuple[str, str]
"""A tenant, and an entity's name."""


@dataclass
class Ended:
    """The facts, merges and splits that a batch ended, by seq or −place, and its merges."""

    targets: set[int] = field(default_factory=set[int])
    merged: dict[_Name, str] = field(default_factory=dict[_Name, str])
    """The target of each merged entity; empty if the batch ended the merge."""
    heads: set[_Name] = field(default_factory=set[_Name])
    """The targets of the batch's merges."""

    def copy(self) -> Ended:
        return Ended(set(self.targets), dict(self.merged), set(self.heads))


class FactRules(Rule):
    """The drafts of a batch that end a fact, merge or split, or merge.

    - An entity has at most one merge in a tenant.
    - An error names only merges that the store sees.
    """

    kinds = _ENDING

    _ended = Ended()
    """The effects of earlier calls; replaced, never changed."""

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._drafts = drafts
        self._new_ended = self._ended
        self._new = drafts_of(drafts[first - 1 :], _ENDING)
        return bool(self._new)

    def check(self, state: State) -> Validate:
        facts, n = state.facts(), state.n
        ended = self._new_ended = self._ended.copy()
        for draft in self._new:
            body = draft.body
            if isinstance(body, MergeEntities):
                self._check_merge(facts, state, tenant_in(draft.scope), body, ended)
            elif isinstance(body, RetractFact):
                self._end(facts.fact_named(body.fact), "Fact", ended)
                if facts.is_closed(body.fact, n):
                    raise Conflict(
                        f"Fact {body.fact:,} is retracted already",
                        remedy="Leave this call out, or assert the fact again.",
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
        return partial(self._check_delta, facts)

    def keep(self) -> None:
        self._ended = self._new_ended

    def _end(self, target: int, kind: str, ended: Ended) -> None:
        if target in ended.targets:
            raise Conflict(
                f"The batch ends {kind.lower()} {target:,} twice",
                remedy="Leave out the second call.",
            )
        ended.targets.add(target)

    def _check_merge(
        self, facts: Facts, state: State, tenant: str, body: MergeEntities, ended: Ended
    ) -> None:
        n = state.n

        def into(name: str) -> str:
            target = ended.merged.get((tenant, name))
            return (facts.merged_into(tenant, name, n) or "") if target is None else target

        already = into(body.entity)
        here = ended.merged.get((tenant, body.entity))
        if (
            already
            and here is None
            and not facts.merged_into(tenant, body.entity, n, within=state.reach)
        ):
            raise Conflict(
                f"{body.entity!r} is merged already, in another scope of the tenant",
                remedy="Open the file with only the tenant as its scope, and unmerge the entity.",
            )
        if already:
            raise Conflict(
                f"{body.entity!r} is merged into {already!r} already",
                remedy=f"Unmerge {body.entity!r} first, or merge {already!r}.",
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
                f"{body.into!r} is read as {body.entity!r}, so the merge would close a circle",
                remedy=f"Pass another entity, or unmerge {body.into!r} first.",
            )
        ended.merged[tenant, body.entity] = body.into
        ended.heads.add((tenant, body.into))

    def _check_delta(self, facts: Facts, delta: Sequence[Event]) -> None:
        """Check that no event in ``delta`` ended a target of the batch, or raced with its merges.

        Raises:
            Conflict: another writer's event came between; ``where`` names the event.
        """
        targets = {facts.fact_named(_target(draft.body)) for draft in self._new} - {0}
        merging = any(isinstance(draft.body, MergeEntities) for draft in self._new)
        for event in delta:
            body = event.body
            raced = merging and isinstance(body, MergeEntities | UnmergeEntities)
            if raced or facts.fact_named(_target(body)) in targets:
                raise Conflict(
                    "Another writer ended or merged the same facts or entities just before",
                    where=f"event {event.seq:,}",
                    remedy="Read the facts again before a new attempt.",
                )


def _target(body: object) -> int:
    """Return the seq of the fact, merge or split that a body ends; 0 for other bodies."""
    match body:
        case RetractFact():
            return body.fact
        case UnmergeEntities():
            return body.merge
        case UnsplitEntity():
            return body.split
        case _:
            return 0


def _check_holds(facts: Facts, n: int, seq: int, kind: str) -> None:
    if not facts.holds(seq, n):
        raise Conflict(
            f"{kind} {seq:,} has ended already, or never had an effect",
            remedy="Leave this call out.",
        )


# --- Rules: which facts and frames a link may join ------------------------------------------------


class LinkRules(Rule):
    """The links among the drafts of a batch.

    `reference_rules` checks that their ends exist. Nothing is checked under the lock, because no
    event of another writer can make a valid link invalid.
    """

    kinds = (LinkFacts,)

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._drafts = drafts
        self._new = drafts_of(drafts[first - 1 :], (LinkFacts,))
        return bool(self._new)

    def check(self, state: State) -> None:
        facts, frames = state.facts(), state.frames()
        for draft in self._new:
            body = draft.body
            assert isinstance(body, LinkFacts)
            kind = link_values.kind_of(body.kind)
            if (body.target is None) == (body.frame is None):
                raise InvalidInput(
                    "A link must have either a target or a frame", remedy="Pass one of the two."
                )
            if body.frame is not None and kind not in link_columns.TO_FRAMES:
                raise InvalidInput(
                    f"The target of {body.kind} must be a fact, not a frame",
                    where=f"frame {body.frame:,}",
                    remedy="Pass a fact; assert_fact takes frames as evidence=.",
                )
            if body.target is not None and (
                facts.fact_named(body.fact) == facts.fact_named(body.target)
            ):
                raise InvalidInput(
                    f"Fact {body.fact:,} cannot be linked to itself",
                    remedy="Pass another fact as the target.",
                )
            fact_tenant = tenant_in(self._scope_of(body.fact, facts, frames))
            target = body.frame if body.target is None else body.target
            assert target is not None
            tenants = {fact_tenant, tenant_in(self._scope_of(target, facts, frames))}
            if tenants != {tenant_in(draft.scope)}:
                raise InvalidInput(
                    f"The link has the tenant {tenant_in(draft.scope)}, and its ends have "
                    + " and ".join(sorted(tenants)),
                    remedy="Pass the scope of both ends; facts of two tenants cannot be linked.",
                )

    def _scope_of(self, end: int, facts: Facts, frames: Frames) -> Scope:
        """Return the scope of a fact or frame, of the log or of this batch."""
        if end < 0:
            return self._drafts[-end - 1].scope
        scope = facts.scope_of_fact(end)
        if scope is None:
            row = frames.frame(end)
            assert row is not None
            scope = row.scope
        if scope is None:
            raise NotFound(
                f"The frame {end:,} was erased", remedy="Link the fact to another frame."
            )
        return scope
