"""The read that explains facts; `links.why` builds the explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerata.engine.late import late

from ..snapshot.reader import Reader

if TYPE_CHECKING:
    from ..values.facts import FactId
    from . import why as links_why
    from .why import Why
else:
    links_why = late("cerata.memory.links.why")


class WhyReads(Reader):
    """The read that explains facts."""

    def why(self, fact: FactId, *, depth: int = 16) -> Why:
        """Return why a fact is believed or not, and the same for the facts that it rests on.

        Cost: a look-up for each fact in the tree.

        Args:
            fact: The fact, its id, or its receipt.
            depth: Most levels of the tree, from 1 to 64.

        Raises:
            NotFound: no such fact exists.
            InvalidInput: depth is not from 1 to 64.
        """
        return links_why.why(self._snapshot(), fact, depth)
