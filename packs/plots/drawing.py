"""Drawing facts on both clocks, and the graph around an entity.

Owns the two calls over a view or a store. Leaves out the drawing (`bitemporal`, `graph`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.late import late, loading
from cerata.memory.snapshot.reader import Reader, snapshot_of
from cerata.memory.values.arguments import listed

if TYPE_CHECKING:
    from cerata.memory.values import facts as fact_values
    from cerata.memory.values.facts import Entity, Fact
    from cerata.projections.facts.graph import Direction

    from .canvas import Form
else:
    fact_values = late("cerata.memory.values.facts")


def draw_facts(
    reader: Reader, facts: Iterable[Fact], *, title: str = "Facts", form: Form = "svg"
) -> bytes:
    """Return a picture of facts: valid time across, known time upwards, as SVG or PNG.

    A fact is drawn as the region in which it was known and valid; other values, retractions
    and merges cut this region from when they were known. With one version of matplotlib, the
    same state gives the same bytes of SVG.

    Cost: a read of each fact as of each change of its subject and predicate, then about a
    second for 40 facts.

    Args:
        reader: A store or a view.
        facts: The facts, 1 to 200, as `facts` returns them.
        title: The title above the picture; default "Facts".
        form: "svg", the default, or "png".

    Raises:
        InvalidInput: ``facts`` has no item or more than 200, or the form is unknown.
        NotFound: a fact does not exist in this memory.
        Unsupported: matplotlib, the extra ``plot``, is not installed.
    """
    with loading("the part that draws"):
        from .bitemporal import picture_of_facts

    snapshot, items = snapshot_of(reader), listed("facts", facts)
    if not all(isinstance(item, fact_values.Fact) for item in items):
        raise InvalidInput(
            "facts must have only items of the type Fact",
            remedy="Pass facts that facts() returned.",
        )
    return picture_of_facts(
        snapshot,
        [snapshot.fact_at(fact_values.fact_id(item)) for item in items],
        title=title,
        form=form,
    )


def draw_graph(
    reader: Reader,
    entity: str | Entity,
    *,
    hops: int = 1,
    entities_max: int = 30,
    predicate: str | None = None,
    direction: Direction = "both",
    valid_at: date | str | None = None,
    form: Form = "svg",
) -> bytes:
    """Return a picture of the graph around an entity, as SVG or PNG.

    The picture has the best entities that `walk` finds within the hops, and every fact that
    joins two of these. A predicate whose facts have ended has the mark "(ended)", and the line
    is dashed if no other fact joins the pair. With ``valid_at`` the facts are those of then.

    Args:
        reader: A store or a view.
        entity: The entity in the middle, or a name of the entity.
        hops: Facts between the middle and the furthest entities; default 1.
        entities_max: Most entities of the picture, 2 to 150; default 30.
        predicate: Draw only facts with this predicate; default all.
        direction: Follow facts from subject to object "out", to subject "in", or "both".
        valid_at: The instant at which facts must be true; default the view's.
        form: "svg", the default, or "png".

    Raises:
        NotFound: no fact or event names the entity.
        InvalidInput: no fact joins the entity with another, or as `walk`.
        Unsupported: matplotlib, the extra ``plot``, is not installed.
    """
    with loading("the part that draws"):
        from .graph import picture_of_graph

    return picture_of_graph(
        snapshot_of(reader),
        entity.name if isinstance(entity, fact_values.Entity) else entity,
        hops=hops,
        entities_max=entities_max,
        predicate=predicate,
        direction=direction,
        valid_at=valid_at,
        form=form,
    )
