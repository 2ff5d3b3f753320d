"""Reading links between facts, and from facts to frames.

Owns the read, for a view and for a store at its newest event. Leaves out the consequences of links
for facts (`cerata.projections.links.labelling`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import NotFound, number_text
from cerata.engine.json_value import shown_id
from cerata.engine.late import late

from ..snapshot.reader import Reader
from ..values.frames import Frame, Receipt, id_in
from ..values.pending_ids import PendingIds

if TYPE_CHECKING:
    from cerata.projections.columnar import times
    from cerata.projections.links.reader import LinkRow

    from ..snapshot import fact_conversion
    from ..snapshot.snapshot import Snapshot
    from ..values import facts as fact_values
    from ..values import graph as link_values
    from ..values.graph import Link, LinkId, LinkKindName, Target
else:
    times = late("cerata.projections.columnar.times")
    fact_conversion = late("cerata.memory.snapshot.fact_conversion")
    fact_values = late("cerata.memory.values.facts")
    link_values = late("cerata.memory.values.graph")


class LinkReads(Reader):
    """The reads of links."""

    def links(
        self,
        thing: Target | None = None,
        kind: LinkKindName | None = None,
        *,
        include_unlinked: bool = False,
    ) -> list[Link]:
        """Return links, oldest first; a link and both its ends must be within the scope.

        Cost: a pass over the links.

        Args:
            thing: The fact or frame at one end of the links; default all links.
            kind: The kind of the links, such as "depends_on"; default all kinds.
            include_unlinked: Also return links that were removed; default False.

        Raises:
            NotFound: the fact or frame does not exist.
            InvalidInput: the kind is unknown.
        """
        snapshot = self._snapshot()
        link_kind = None if kind is None else link_values.kind_of(kind)
        end = None if thing is None else endpoint_of(snapshot, thing)
        links: list[Link] = []
        for row in snapshot.labelling.links.all_links(closed=include_unlinked):
            link = None if link_kind not in (None, row.kind) else to_link(snapshot, row)
            if link is not None and (
                end is None
                or (end.is_frame == link.is_frame and end.id == link.target)
                or (not end.is_frame and end.id == link.fact)
            ):
                links.append(link)
        return links


class Endpoint(NamedTuple):
    """A fact or a frame, by its id in a view."""

    id: int
    is_frame: bool


def endpoint_of(snapshot: Snapshot, target: Target) -> Endpoint:
    """Return the fact or frame that a value names. Raises `NotFound`, `InvalidInput`."""
    if isinstance(target, Frame):
        return Endpoint(snapshot.id_of(target), is_frame=True)
    number = fact_values.fact_id(target, snapshot.ids)
    row = snapshot.facts_at.row_of(snapshot.seq_of(number))
    if row is not None:
        return Endpoint(
            fact_conversion.id_of_seq(snapshot.facts_at.seq_of(row), snapshot.basis), is_frame=False
        )
    if isinstance(target, fact_values.Fact) or not snapshot.layers.has(number):
        raise NotFound(
            f"There is no fact or frame {number_text(number)}",
            where=f"basis {number_text(snapshot.basis)}",
            remedy="Find ids with facts, frames or log.",
        )
    return Endpoint(number, is_frame=True)


def to_link(snapshot: Snapshot, link: LinkRow) -> Link | None:
    """Return a link as a view sees it, or None if the scope hides the link."""
    joined = snapshot.labelling.joined(link)
    if joined is None:
        return None
    links, basis, facts = snapshot.labelling.links, snapshot.basis, snapshot.facts_at
    closing = links.closing_of(link.row)
    target = link.target if joined.target is None else facts.seq_of(joined.target)
    created = times.to_datetime(links.birth(link.row).recorded)
    return link_values.Link(
        id=shown_id(fact_conversion.id_of_seq(link.seq, basis)),
        fact=fact_conversion.id_of_seq(facts.seq_of(joined.fact), basis),
        kind=link.kind.name.lower(),
        target=fact_conversion.id_of_seq(target, basis),
        is_frame=link.is_frame,
        known=fact_values.Period(
            created, None if closing is None else times.to_datetime(closing[0])
        ),
        scope=dict(links.scope_of(link.row)),
        unlinked_by=None if closing is None else fact_conversion.id_of_seq(closing[1], basis),
    )


def links_from(snapshot: Snapshot, fact: int) -> list[Link]:
    """Return the links from a fact, by its id, that hold; oldest first."""
    row = snapshot.facts_at.row_of(snapshot.seq_of(fact))
    joined = [] if row is None else snapshot.labelling.of([row])
    links = [to_link(snapshot, pair.link) for pair in joined]
    return [link for link in links if link is not None]


def link_id(value: LinkId, inside: PendingIds | None = None) -> int:
    """Return the id that a value names; ``inside`` are the ids of the reader's transaction.

    Raises:
        InvalidInput: the value has no id.
        NotFound: the value is the receipt of a transaction that wrote nothing.
    """
    if isinstance(value, Receipt):
        return id_in(value, inside)
    number = value.id if isinstance(value, link_values.Link) else value
    remedy = "Pass the link's id, or a value that has the id."
    return expect_integer("A link", number, "an id, Receipt or Link", remedy)


def link_named(snapshot: Snapshot, link: LinkId) -> LinkRow:
    """Return the link that a value names, also a removed link or a link without effect.

    Raises:
        NotFound: the link does not exist within the scope. InvalidInput: the value has no id.
    """
    number = link_id(link, snapshot.ids)
    row = snapshot.labelling.links.link(snapshot.seq_of(number))
    if row is None:
        raise NotFound(
            f"There is no link {number_text(number)}",
            where=f"basis {number_text(snapshot.basis)}",
            remedy="Find the ids of links with links, why or log.",
        )
    return row
