"""Writing links: the calls that link facts, and that remove links.

Owns the events of each call. Leaves out the checks (`batch.fact_rules`) and the consequences of
links (`cerata.projections.links.labelling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cerata.engine.events import Draft, LinkFacts, PutFrame, Scope, ScopeValue, UnlinkFacts
from cerata.engine.late import late
from cerata.projections.columnar.scopes import by_name

from ..batch.writer import Writer, takes_scope
from ..values.arguments import full_scope
from ..values.frames import Frame, Receipt, frame_id

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot
    from ..values import facts as fact_values
    from ..values import graph as link_values
    from ..values.facts import FactId
    from ..values.graph import Link, LinkId, LinkKindName, Target
    from . import reads as link_reads
    from .reads import Endpoint
else:
    fact_values = late("cerata.memory.values.facts")
    link_values = late("cerata.memory.values.graph")
    link_reads = late("cerata.memory.links.reads")


class LinkCommands(Writer):
    """The calls that write links; each appends a durable batch, or joins the open transaction."""

    @takes_scope
    def link(
        self,
        fact: FactId,
        kind: LinkKindName,
        target: Target,
        *,
        because: FactId | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Link a fact to another fact or a frame. Durable on return.

        The arguments read as a sentence: "fact depends_on target"; docs/graph.md defines the
        kinds. An equal link that holds in the same scope is not written again: the receipt has
        its id, with ``added`` False.

        Args:
            fact: The fact from which the link leads.
            kind: The kind of link, such as "depends_on".
            target: The fact or frame to which the link leads.
            because: The fact that caused the link, recorded as its causation; default none.
            scope: Names and values to add to the store's scope; default the store's scope.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            NotFound: a fact or frame does not exist.
            InvalidInput: the kind is unknown or takes no frame, or the target is the same fact or
                has another tenant.
        """
        session = self._session.by(actor)
        stamped = full_scope(scope, session.scope)
        name = link_values.kind_of(kind).name.lower()
        session.record_call(stamped, "link", fact_values.fact_id(fact), name, _id(target))
        snapshot = self._snapshot().log_only
        source = self._endpoint(snapshot, fact)
        end = self._endpoint(snapshot, target)
        equal = self._equal_link(snapshot, source, name, end, stamped)
        if equal is not None:
            return session.unchanged(snapshot, equal.id, (equal.id,))
        body = LinkFacts(
            fact=source.id,
            kind=name,
            target=None if end.is_frame else end.id,
            frame=end.id if end.is_frame else None,
        )
        cause = None if because is None else fact_values.fact_id(because)
        return session.write([Draft(body, stamped, causation=cause)])

    def _endpoint(self, snapshot: Snapshot, named: Target) -> Endpoint:
        number, block = _id(named), self._session.open_block
        if number < 0 and block is not None and -number <= len(block.drafts):
            # The append resolves a draft, for example a repetition of a known fact.
            return link_reads.Endpoint(number, isinstance(block.drafts[-number - 1].body, PutFrame))
        return link_reads.endpoint_of(snapshot, named)

    def _equal_link(
        self, snapshot: Snapshot, source: Endpoint, kind: str, end: Endpoint, scope: Scope
    ) -> Link | None:
        """Return a link of the log with the same content, if it holds.

        If the open transaction has drafts of links, the fold finds repetitions.
        """
        block = self._session.open_block
        drafts = [] if block is None else block.drafts
        has_link_drafts = any(isinstance(draft.body, LinkFacts | UnlinkFacts) for draft in drafts)
        if source.is_frame or min(source.id, end.id) < 0 or has_link_drafts:
            return None
        for link in link_reads.links_from(snapshot, source.id):
            is_same = (link.kind, link.target, link.is_frame) == (kind, *end)
            if is_same and by_name(tuple(link.scope.items())) == by_name(scope):
                return link
        return None

    def unlink(
        self,
        link: LinkId,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Remove a link, and with that its consequences. Durable on return.

        A removed link stays removed: the receipt has ``added`` False.

        Args:
            link: The link's id, or a value that has the id.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: the link does not exist.
        """
        session = self._session.by(actor, reason)
        stamped = full_scope(None, session.scope)
        number = link_reads.link_id(link)
        session.record_call(stamped, "unlink", number)
        if number >= 0 or not session.in_transaction:
            snapshot = self._snapshot().log_only
            row = link_reads.link_named(snapshot, number)
            number = row.seq
            if not snapshot.labelling.links.holds(row.row):
                return session.unchanged(snapshot, number, (number,))
        return session.write([Draft(UnlinkFacts(link=number), stamped)])


def _id(named: Target) -> int:
    return frame_id(named) if isinstance(named, Frame) else fact_values.fact_id(named)
