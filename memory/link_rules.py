"""Rules: what a link may join.

Owns the checks of links before an append. Leaves out that what they name is there (`references`),
and what they mean (`cerata.projections.labelling`).
"""

from collections.abc import Sequence

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import Draft, LinkFacts, Scope
from cerata.projections.fact_table import Facts
from cerata.projections.frame_table import Frames
from cerata.projections.link_columns import TO_FRAMES
from cerata.projections.scopes import tenant_in

from .link_reading import kind_of


class LinkRules:
    """The drafts of a batch that link something, from place ``first`` on.

    That what they name exists is `references`' business. Neither of two writers can spoil what the
    other links or ends: both say the same, so nothing is checked under the lock.
    """

    def __init__(self, drafts: Sequence[Draft], first: int = 1) -> None:
        self._drafts = drafts
        self._new = [draft for draft in drafts[first - 1 :] if isinstance(draft.body, LinkFacts)]

    def __bool__(self) -> bool:
        return bool(self._new)

    def check(self, facts: Facts, frames: Frames) -> None:
        """Refuse links that cannot be, by what is folded; that it is there was checked.

        Raises:
            InvalidInput: with the link, and why.
        """
        for draft in self._new:
            body = draft.body
            assert isinstance(body, LinkFacts)
            kind = kind_of(body.kind)
            if (body.target is None) == (body.frame is None):
                raise InvalidInput(
                    "A link needs a target or a frame, and not both", remedy="Pass one of the two."
                )
            if body.frame is not None and kind not in TO_FRAMES:
                raise InvalidInput(
                    f"A frame is no target of {body.kind}",
                    where=f"frame {body.frame:,}",
                    remedy="Name a fact; what a frame says is evidence.",
                )
            if body.target is not None and (
                facts.fact_named(body.fact) == facts.fact_named(body.target)
            ):
                raise InvalidInput(
                    f"Fact {body.fact:,} cannot be linked to itself",
                    remedy="Pass another fact as the target.",
                )
            fact_tenant = tenant_in(self._scope_of(body.fact, facts, frames))
            other = body.frame if body.target is None else body.target
            assert other is not None
            tenants = {fact_tenant, tenant_in(self._scope_of(other, facts, frames))}
            if tenants != {tenant_in(draft.scope)}:
                raise InvalidInput(
                    f"The link is of the tenant {tenant_in(draft.scope)}, and its ends are of "
                    + " and ".join(sorted(tenants)),
                    remedy="Tenants share nothing; give the link the scope of its ends.",
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
                f"The frame {end:,} was erased", remedy="Link the fact to a frame that is there."
            )
        return scope
