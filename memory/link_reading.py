"""Reading links: which there are between facts, and from facts to frames.

Owns the read, for a view and for a store at its newest event. What follows from links for the
facts is worked out by `cerata.projections.labelling`.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from cerata.engine.errors import InvalidInput, NotFound
from cerata.projections.link_columns import LINK_KINDS, LinkKind
from cerata.projections.link_table import LinkRow
from cerata.projections.times import to_datetime

from .fact_showing import shown_seq
from .fact_values import Fact, Period, fact_id
from .link_values import KINDS, Link, LinkId, LinkKindName, Target
from .values import Frame, Receipt

if TYPE_CHECKING:
    from .view import View


class LinkReads(ABC):
    """The reads of links; ``view`` says of which state."""

    @abstractmethod
    def view(self) -> "View":
        """Return the memory that is read."""

    def links(
        self,
        thing: Target | None = None,
        kind: LinkKindName | None = None,
        *,
        include_unlinked: bool = False,
    ) -> list[Link]:
        """Return the links from or to a fact or frame, or all; oldest first.

        Those that were taken back come with ``include_unlinked`` only. A link is seen where it
        and both its ends are within the scope.

        Cost: a pass over the links.

        Raises:
            NotFound: no such fact or frame. InvalidInput: there is no such kind.
        """
        view = self.view()
        wanted = None if kind is None else kind_of(kind)
        named = None if thing is None else thing_named(view, thing)
        found: list[Link] = []
        for row in view.labelling.links.every(ended=include_unlinked):
            link = None if wanted not in (None, row.kind) else shown_link(view, row)
            if link is not None and (
                named is None
                or (named.is_frame == link.is_frame and named.id == link.target)
                or (not named.is_frame and named.id == link.fact)
            ):
                found.append(link)
        return found


class Thing(NamedTuple):
    """A fact or a frame, by its id in a view."""

    id: int
    is_frame: bool


def thing_named(view: "View", thing: Target) -> Thing:
    """Return what a value names. Raises `NotFound`, `InvalidInput`."""
    if isinstance(thing, Frame):
        return Thing(view.existing(thing), is_frame=True)
    number = fact_id(thing)
    row = view.facts_at.row_of(view.fact_seq(number))
    if row is not None:
        return Thing(shown_seq(view.facts_at.seq_of(row), view.basis), is_frame=False)
    if isinstance(thing, Fact) or not view.layers.has(number):
        raise NotFound(
            f"There is no fact or frame {number:,}",
            where=f"basis {view.basis:,}",
            remedy="Ids are shown by facts, frames and log.",
        )
    return Thing(number, is_frame=True)


def kind_of(kind: str) -> LinkKind:
    """Return a kind of link by its name. Raises `InvalidInput`."""
    found = LINK_KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise InvalidInput(
            f"There is no link {kind!r:.60}", remedy=f"There are {', '.join(KINDS)}."
        )
    return found


def shown_link(view: "View", link: LinkRow) -> Link | None:
    """Return a link as a view sees it, or None where it is not seen."""
    joined = view.labelling.joined(link)
    if joined is None:
        return None
    links, basis, facts = view.labelling.links, view.basis, view.facts_at
    ended = links.ended_by(link.row)
    target = link.target if joined.target is None else facts.seq_of(joined.target)
    made = to_datetime(links.birth(link.row).recorded)
    return Link(
        id=shown_seq(link.seq, basis),
        fact=shown_seq(facts.seq_of(joined.fact), basis),
        kind=link.kind.name.lower(),
        target=shown_seq(target, basis),
        is_frame=link.is_frame,
        known=Period(made, None if ended is None else to_datetime(ended[0])),
        scope=dict(links.scope_of(link.row)),
        unlinked_by=None if ended is None else shown_seq(ended[1], basis),
    )


def links_from(view: "View", fact: int) -> list[Link]:
    """Return the links that hold from a fact, by its own id; oldest first."""
    row = view.facts_at.row_of(view.fact_seq(fact))
    joined = [] if row is None else view.labelling.of([row])
    shown = [shown_link(view, one.link) for one in joined]
    return [link for link in shown if link is not None]


def link_id(value: LinkId) -> int:
    """Return the id that a value names. Raises `InvalidInput`."""
    number = value.id if isinstance(value, Receipt | Link) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidInput(
            f"A {type(number).__name__} names no link",
            remedy="Give its id, or the receipt or link that has it.",
        )
    return number


def link_named(view: "View", link: LinkId) -> LinkRow:
    """Return the link that a value names, held or not, whether or not it means anything.

    Raises:
        NotFound: there is none within the scope. InvalidInput: the value names none.
    """
    number = link_id(link)
    found = view.labelling.links.link(view.fact_seq(number))
    if found is None:
        raise NotFound(
            f"There is no link {number:,}",
            where=f"basis {view.basis:,}",
            remedy="Links are shown by why and log.",
        )
    return found
