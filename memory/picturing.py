"""Drawing what is read: facts on both clocks, and the graph around an entity.

Owns the two calls of a view and of a store. Leaves out the drawing (`pictures`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from cerata.engine.errors import InvalidInput
from cerata.engine.loading import loading
from cerata.projections.fact_graph import Direction

from .drafting import listed
from .fact_values import Entity, Fact

if TYPE_CHECKING:
    from .pictures.canvas import Form
    from .view import View


class PictureReads(ABC):
    """The pictures of what a view has; ``view`` says of which state."""

    @abstractmethod
    def view(self) -> "View":
        """Return the memory that is read."""

    def draw_facts(
        self, facts: Iterable[Fact], *, title: str = "Facts", form: "Form" = "svg"
    ) -> bytes:
        """Return a picture of facts: valid time across, known time upwards, as SVG or PNG.

        Each is the region in which it was held true: what other values, retractions and merges
        have made of it as they were learned. Needs the extra ``plot``. The same state gives the
        same bytes of SVG, with one version of matplotlib.

        Cost: a look at each fact from each change of its subject and predicate, then a second or
        so for 40 facts.

        Raises:
            InvalidInput: none are given, more than 200, or the form is none. NotFound: one is not
                of this memory. Unsupported: matplotlib is not installed.
        """
        with loading("the part that draws"):
            from .pictures.facts import draw_facts

        view, given = self.view(), listed("facts", facts)
        if not all(isinstance(one, Fact) for one in given):
            raise InvalidInput("Only facts can be drawn", remedy="Give what facts() returns.")
        return draw_facts(view, [view.fact(one) for one in given], title=title, form=form)

    def draw_graph(
        self,
        entity: str | Entity,
        *,
        hops: int = 1,
        entities_max: int = 30,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: datetime | str | None = None,
        form: "Form" = "svg",
    ) -> bytes:
        """Return a picture of the graph around an entity, as SVG or PNG.

        It has what `walk` finds within the hops, the best of it up to ``entities_max``, 150 at
        most, and every fact that joins two of these. Needs the extra ``plot``.

        Raises:
            NotFound: nothing names the entity. InvalidInput: no fact joins it with another, or as
                `walk`. Unsupported: matplotlib is not installed.
        """
        with loading("the part that draws"):
            from .pictures.graph import draw_graph

        return draw_graph(
            self.view(),
            entity.name if isinstance(entity, Entity) else entity,
            hops=hops,
            entities_max=entities_max,
            predicate=predicate,
            direction=direction,
            valid_at=valid_at,
            form=form,
        )
