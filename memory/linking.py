"""Writing links: the calls that link facts, and that take it back.

Owns what each call says in events. What is refused is `link_rules`' business, and what follows from
links `cerata.projections.labelling`'s.
"""

from collections.abc import Mapping

from cerata.engine.events import Draft, LinkFacts, PutFrame, Scope, ScopeValue, UnlinkFacts
from cerata.projections.scopes import by_name

from .asserting import FactWrites
from .drafting import full_scope
from .fact_values import FactId, fact_id
from .link_reading import Thing, kind_of, link_id, link_named, links_from, thing_named
from .link_values import Link, LinkId, LinkKindName, Target
from .values import Frame, Receipt
from .view import View


class LinkWrites(FactWrites):
    """The calls that write links; each is its own durable batch, or joins the open transaction."""

    def link(
        self,
        fact: FactId,
        kind: LinkKindName,
        target: Target,
        *,
        because: FactId | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
    ) -> Receipt:
        """Say how a fact stands to another, or to a frame; `unlink` of the receipt ends it.

        Read it as a sentence: "fact depends_on target". What it means for either is in
        docs/graph.md. A link that holds already, in the same scope, is not made again: its id
        comes back, with ``added`` False. Durable on return.

        Raises:
            NotFound: no such fact or frame. InvalidInput: no such kind, a fact linked to itself or
            to one of another tenant, or a frame where the kind takes none.
        """
        stamped = full_scope(scope, self._scope)
        name = kind_of(kind).name.lower()
        self._called(stamped, "link", fact_id(fact), name, _id(target))
        view = self.view().logged
        one, other = self._thing(view, fact), self._thing(view, target)
        held = self._held(view, one, name, other, stamped)
        if held is not None:
            return self._there_already(held.id, view)
        body = LinkFacts(
            fact=one.id,
            kind=name,
            target=None if other.is_frame else other.id,
            frame=other.id if other.is_frame else None,
        )
        cause = None if because is None else fact_id(because)
        return self.write([Draft(body, stamped, causation=cause)])

    def _thing(self, view: View, named: Target) -> Thing:
        """Return what a value names, in the log or among what the open transaction gathered."""
        number, transaction = _id(named), self._transaction.get()
        if number < 0 and transaction is not None and -number <= len(transaction.drafts):
            # What it turns out to be, such as the same fact again, is seen once it is appended.
            return Thing(number, isinstance(transaction.drafts[-number - 1].body, PutFrame))
        return thing_named(view, named)

    def _held(self, view: View, one: Thing, kind: str, other: Thing, scope: Scope) -> Link | None:
        """Return the link of the log that says the same, if it holds.

        Where one is gathered or ended in the open transaction the fold finds out.
        """
        transaction = self._transaction.get()
        drafts = [] if transaction is None else transaction.drafts
        gathered = any(isinstance(draft.body, LinkFacts | UnlinkFacts) for draft in drafts)
        if one.is_frame or min(one.id, other.id) < 0 or gathered:
            return None
        for link in links_from(view, one.id):
            is_same = (link.kind, link.target, link.is_frame) == (kind, *other)
            if is_same and by_name(tuple(link.scope.items())) == by_name(scope):
                return link
        return None

    def unlink(self, link: LinkId) -> Receipt:
        """End a link, by the id that it has; of one that has ended nothing is left to do.

        What followed from it follows no longer. Durable on return.

        Raises:
            NotFound: no such link.
        """
        stamped = full_scope(None, self._scope)
        number = link_id(link)
        self._called(stamped, "unlink", number)
        if number >= 0 or not self.in_transaction:
            view = self.view().logged
            found = link_named(view, number)
            number = found.seq
            if not view.labelling.links.holds(found.row):
                return self._there_already(number, view)
        return self.write([Draft(UnlinkFacts(link=number), stamped)])

    def _there_already(self, link: int, view: View) -> Receipt:
        head = None if self.in_transaction else view.head
        return Receipt(link, (link,), (), head, durable=head is not None, added=False)


def _id(named: Target) -> int:
    return named.id if isinstance(named, Frame) else fact_id(named)
