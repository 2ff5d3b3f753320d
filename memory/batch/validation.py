"""Checks: a transaction checks each call when it is gathered, before the batch is appended.

Owns the state that the checks of later calls need. Leaves out the rules (`references`, `tag_rules`,
`spaces`, `fact_rules`), which check the whole batch again at the append, since other writers may
have appended events by then.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from cerata.engine.codec import encode_payloads, salts_of
from cerata.engine.events import Draft, Scope
from cerata.engine.log import Log
from cerata.projections.rows.tags import Tags
from cerata.replay.fold import Fold

from .fact_rules import Ended, FactRules
from .link_rules import LinkRules
from .references import Closing, References
from .space_rules import Shape, SpaceName, Spaces
from .tag_rules import Tagging, TagKey


@dataclass(frozen=True, slots=True)
class Checked:
    """Drafts that passed the checks: their payloads, and the state for later checks."""

    payloads: list[bytes]
    closing: Mapping[int, Closing]
    tags: frozenset[TagKey]
    shapes: Mapping[SpaceName, Shape]
    ended: Ended | None


class Checks:
    """The checks of one transaction.

    - ``_closing``, ``_tags``, ``_shapes`` and ``_ended`` cover the drafts given to `keep`.
    - Only `keep` changes them.
    """

    def __init__(self, log: Log, fold: Fold, scope: Scope | None) -> None:
        self._log = log
        self._fold = fold
        self.scope = scope
        self._closing: dict[int, Closing] = {}
        self._tags = set[TagKey]()
        self._shapes: dict[SpaceName, Shape] = {}
        self._ended = Ended()

    def salted(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return drafts with the salts that their events will have."""
        salts = salts_of(drafts, self._log.environment.random_bytes)
        return [
            msgspec.structs.replace(draft, salt=salt)
            for draft, salt in zip(drafts, salts, strict=True)
        ]

    def take(self, drafts: Sequence[Draft], first: int, n: int | None) -> Checked:
        """Check the drafts from place ``first`` on, as if the log ended at event ``n``.

        By default ``n`` is the log's end. Cost: encodes the drafts and looks up each frame that
        they name.

        Raises:
            InvalidInput, NotFound, Conflict: as `Store.append` does.
        """
        new = drafts[first - 1 :]
        payloads = encode_payloads(new, first=first)
        references, tagging = References(drafts, first), Tagging(new, self.scope)
        closing, shapes = ChainMap({}, self._closing), ChainMap({}, self._shapes)
        spaces, rules = Spaces(new, self.scope, shapes), FactRules(drafts, first, within=self.scope)
        links = LinkRules(drafts, first)
        if not (references or references.causes or tagging or spaces or rules):
            return Checked(payloads, {}, frozenset(), {}, None)
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
            tagging.check_free(self._fold.own(Tags.name, head).rows, (), before=self._tags)
        if spaces:
            spaces.check(self._log, self._fold.frames(head), head)
        ended = None
        if rules:
            ended = self._ended.copy()
            rules.check(self._fold.facts(head), head, ended)
        keys = frozenset(tagging.keys)
        return Checked(payloads, closing.maps[0], keys, shapes.maps[0], ended)

    def keep(self, checked: Checked) -> None:
        """Add drafts that were gathered to the state for later checks."""
        if checked.ended is not None:
            self._ended = checked.ended
        self._closing.update(checked.closing)
        self._tags |= checked.tags
        self._shapes.update(checked.shapes)
