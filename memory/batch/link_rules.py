"""Rules: which facts and frames a link may join.

Owns the checks of links before an append. Leaves out the existence of their ends
(`reference_rules`) and the meaning of links (`cerata.projections.links.labelling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Draft, LinkFacts, Scope
from cerata.engine.late import late
from cerata.projections.columnar.scopes import tenant_in

from .rule import Rule, State, drafts_of

if TYPE_CHECKING:
    from cerata.projections.facts.history import Facts
    from cerata.projections.frames.reader import Frames
    from cerata.projections.links import columns as link_columns

    from ..values import links as link_values
else:
    link_columns = late("cerata.projections.links.columns")
    link_values = late("cerata.memory.values.links")


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
