"""Checks: what a transaction gathers is looked at call by call, before any of it is appended.

Owns what has to be remembered from one call to the next. What is checked is the business of
`references`, `tagging` and `spaces`, which look at the whole batch again when it is appended:
others may have written meanwhile.
"""

from collections import ChainMap
from collections.abc import Sequence

from cerata.engine.codec import encode_payloads
from cerata.engine.events import Draft, Scope
from cerata.engine.log import Log
from cerata.projections.tags import Tags
from cerata.replay.fold import Fold

from .fact_rules import Ended, FactRules
from .link_rules import LinkRules
from .references import Closing, References
from .spaces import Shape, Spaces
from .tagging import Tagging, TagKey


class Checks:
    """The checks of one transaction; a call that is refused leaves no trace in them.

    - ``_closing``, ``_tags``, ``_shapes`` and ``_ended`` are those of the drafts that were taken.
    """

    def __init__(self, log: Log, fold: Fold, scope: Scope | None) -> None:
        self._log = log
        self._fold = fold
        self.scope = scope
        self._closing: dict[int, Closing] = {}
        self._tags = set[TagKey]()
        self._shapes: dict[str, Shape] = {}
        self._ended = Ended()

    def take(self, drafts: Sequence[Draft], first: int, n: int | None) -> list[bytes]:
        """Return the payloads of the drafts from place ``first`` on, once they can be appended.

        As if the log ended at event ``n``; by default it ends where it does. Cost: encoding them;
        a look at each frame that they name.

        Raises:
            InvalidInput, NotFound, Conflict: as `Store.append` does; nothing was taken.
        """
        new = drafts[first - 1 :]
        payloads = encode_payloads(new, first=first)
        references, tagging = References(drafts, first), Tagging(new)
        closing, shapes = ChainMap({}, self._closing), ChainMap({}, self._shapes)
        spaces, rules = Spaces(new, shapes), FactRules(drafts, first)
        links = LinkRules(drafts, first)
        if not (references or references.causes or tagging or spaces or rules):
            return payloads
        head = self._log.refresh().seq if n is None else n
        references.check_causes(self._log, self.scope, head)
        if references:
            named = self._fold.facts(head) if references.names_facts else None
            references.check_exist(self._log, self.scope, head, named)
        if references.names_frames:
            references.check_still_open(self._fold.frames(head), head, closing)
        if links:
            links.check(self._fold.facts(head), self._fold.frames(head))
        if tagging:
            tagging.check(self._log, head)
            tagging.check_free({*self._fold.own(Tags.name, head).rows, *self._tags}, ())
        if spaces:
            spaces.check(self._log, self._fold.frames(head), head)
        if rules:
            ended = self._ended.copy()
            rules.check(self._fold.facts(head), head, ended)
            self._ended = ended
        self._closing.update(closing.maps[0])
        self._tags |= tagging.keys
        self._shapes.update(shapes.maps[0])
        return payloads
