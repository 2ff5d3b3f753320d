"""Links between facts by brute force: what docs/graph.md says, as loops over the events.

It shares no code with the fold: which facts stand is tried again and again until nothing changes,
and what supersedes what is found by walking every chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cerata.engine.events import DeleteFrame, LinkFacts, PutFrame, SupersedeFrame, UnlinkFacts

from ..facts.fact_model import FactModel, ModelEvent, ModelFact, is_seen

REQUIRING = ("assumes", "depends_on", "derived_from", "generated_from")


@dataclass
class ModelLink:
    """A link, from the events that make it and the one that ends it."""

    event: ModelEvent
    body: LinkFacts
    ids: list[int] = field(default_factory=list[int])
    ended: ModelEvent | None = None


def told_links(events: Sequence[ModelEvent]) -> list[ModelLink]:
    """Return the links that events make, each with the events that say it again."""
    links: list[ModelLink] = []
    for event in events:
        body = event.body
        if isinstance(body, LinkFacts):
            same = [
                link
                for link in links
                if link.ended is None
                and link.body == body
                and is_seen(link.event.scope, event.scope)
                and is_seen(event.scope, link.event.scope)
            ]
            if not same:
                same = [ModelLink(event, body)]
                links += same
            same[0].ids.append(event.seq)
        elif isinstance(body, UnlinkFacts):
            for link in links:
                if body.link in link.ids and link.ended is None:
                    link.ended = event
    return links


@dataclass
class LinkedModel(FactModel):
    """What a view of facts and links must answer."""

    @cached_property
    def _fact_of(self) -> dict[int, ModelFact]:
        return {number: fact for fact in self.facts_seen for number in fact.ids}

    @cached_property
    def _current(self) -> dict[int, bool]:
        """Whether each frame that is seen is current."""
        bodies = [event.body for event in self.events]
        closed = {body.frame for body in bodies if isinstance(body, DeleteFrame)}
        closed |= {body.old for body in bodies if isinstance(body, SupersedeFrame)}
        return {
            event.seq: event.seq not in closed
            for event in self.events
            if isinstance(event.body, PutFrame) and is_seen(event.scope, self.scope)
        }

    @cached_property
    def links_seen(self) -> list[tuple[ModelLink, int, int]]:
        """The links that mean something, ended or not: with the ids of their ends."""
        found: list[tuple[ModelLink, int, int]] = []
        for link in told_links(self.events):
            body, tenant = link.body, dict(link.event.scope)["tenant"]
            fact = self._fact_of.get(body.fact)
            if fact is None or fact.tenant != tenant or not is_seen(link.event.scope, self.scope):
                continue
            if body.frame is not None:
                if body.frame in self._current:
                    found.append((link, fact.id, body.frame))
                continue
            target = self._fact_of.get(body.target or 0)
            if target is not None and target.tenant == tenant and target is not fact:
                found.append((link, fact.id, target.id))
        return found

    def links(
        self, thing: int | None, kind: str | None, *, include_unlinked: bool
    ) -> list[tuple[ModelLink, int, int]] | None:
        """Return the links of a fact or frame, or all; None where there is no such thing."""
        if thing is not None:
            if thing in self._fact_of:
                thing = self._fact_of[thing].id
            elif thing not in self._current:
                return None
        return [
            (link, fact, target)
            for link, fact, target in self.links_seen
            if (include_unlinked or link.ended is None)
            and (kind is None or link.body.kind == kind)
            and (thing is None or thing in (fact, target))
        ]

    def _ends(self, *kinds: str) -> list[tuple[int, int]]:
        """Return the ends of the links that hold, of some kinds."""
        held = [one for one in self.links_seen if one[0].ended is None]
        return [(fact, target) for link, fact, target in held if link.body.kind in kinds]

    def contradictions(self) -> list[tuple[int, int, int]]:
        held = [one for one in self.links_seen if one[0].ended is None]
        return [
            (fact, target, link.event.seq)
            for link, fact, target in held
            if link.body.kind == "contradicts"
        ]

    def _above(self, fact: int) -> set[int]:
        """Return what supersedes a fact, directly or by a chain."""
        found = set[int]()
        while True:
            more = {
                one for one, other in self._ends("supersedes") if other == fact or other in found
            }
            if more <= found:
                return found
            found |= more

    def attackers(self, fact: int) -> set[int]:
        direct = {one for one, other in self._ends("invalidates", "supersedes") if other == fact}
        return direct | {one for one in self._above(fact) if fact not in self._above(one)}

    @cached_property
    def _standings(self) -> dict[int, str]:
        said: dict[int, str] = {}
        attackers = {fact.id: self.attackers(fact.id) for fact in self.facts_seen}
        needed: dict[int, list[int]] = {}
        for one, target in self._ends(*REQUIRING):
            needed.setdefault(one, []).append(target)
        for frame, is_current in self._current.items():
            said[frame] = "stands" if is_current else "invalid"
        changed = True
        while changed:
            changed = False
            for fact in self.facts_seen:
                if fact.id in said:
                    continue
                needs = [said.get(one) for one in needed.get(fact.id, ())]
                attacks = [said.get(one) for one in attackers[fact.id]]
                if fact.retracted or "invalid" in needs or "stands" in attacks:
                    said[fact.id], changed = "invalid", True
                elif set(needs) <= {"stands"} and set(attacks) <= {"invalid"}:
                    said[fact.id], changed = "stands", True
        return said

    def standing(self, fact: ModelFact) -> str:
        return self._standings.get(fact.id, "disputed")

    @cached_property
    def fallen(self) -> set[int]:
        return {
            fact.id
            for fact in self.facts_seen
            if fact.retracted is None and self.standing(fact) == "invalid"
        }
