"""Pending names: names in messages that fit several entities, and that no rule decides.

Owns the fit, the scores and the list. An unvalidated heuristic for English: names are capitalised
words (`cerata.retrieval.word_kinds`). The constants are those of the source; whole words, the
sightings and their times are ours. Nothing is written: `graph.name` with an alias, or
`graph.merge`, settles a name.

- A name fits the entities with this name or alias; without such an entity, those whose name begins
  with it, in whole words. A name that fits a single entity names that entity.
- A sighting of an entity is a known fact with it, or an exchange that names it.
- A candidate scores .5, and by its sightings before the exchange: .3 if the newest is at most 7
  days older, .1 if at most 30; .2 for at least 2 sightings together with an entity that the
  exchange names, .1 for a single sighting; .1 for over 10 sightings, .05 for over 3.
- The best candidate is taken if it scores .8 or more, and more than the next. Other names are
  pending for 30 days. Exchanges over 60 days old are no sightings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime, to_microseconds
from cerata.projections.facts.entities import Entities
from cerata.projections.facts.objects import ObjectKind
from cerata.projections.fulltext.analyzer import folded_name
from cerata.retrieval.word_kinds import proper_names

from ..continuity.exchanges import Talk

TAKEN: Final = 80
"""Hundredths from which the best candidate is taken."""

EVIDENCE: Final = 5
"""Newest exchanges that are shown for a name."""

_DAY_US: Final = 24 * 3_600_000_000
LISTED_US: Final = 30 * _DAY_US
_SEEN_US: Final = 60 * _DAY_US
_LEAST: Final = 50
_RECENT: Final = ((7 * _DAY_US, 30), (30 * _DAY_US, 10))
_TOGETHER: Final = ((2, 20), (1, 10))
_SIGHTINGS: Final = ((11, 10), (4, 5))


@dataclass(frozen=True, slots=True)
class NameCandidate(PlainValue):
    """An entity that a name fits, with the evidence of its score as of the newest exchange.

    ``last_seen`` is the time of its newest sighting before, or None; ``together`` counts its
    sightings with an entity that the exchange names, ``sightings`` all.
    """

    entity: str
    score: float
    last_seen: datetime | None
    together: int
    sightings: int


@dataclass(frozen=True, slots=True)
class PendingName(PlainValue):
    """A name that fits several entities.

    - ``name`` is as the newest exchange writes it, ``created`` the time of that exchange.
    - ``candidates`` are best first. ``exchanges`` are the newest 5 that leave the name open, by the
      frames of their first messages, newest first.
    """

    name: str
    created: datetime
    candidates: tuple[NameCandidate, ...]
    exchanges: tuple[int, ...]


class _Sighting(NamedTuple):
    """A time at which an entity was named, and the entities named with it."""

    time: int
    beside: frozenset[str]


class _Spoken(NamedTuple):
    """An exchange: its time, the frame of its first message, and the entities of each name."""

    time: int
    id: int
    fits: dict[str, tuple[str, ...]]


class _Open(NamedTuple):
    """A name that an exchange leaves open."""

    name: str
    time: int
    id: int
    candidates: tuple[NameCandidate, ...]


def pending_names_of(talk: Talk) -> list[PendingName]:
    """Return the names of the last 30 days that are pending, the newest first.

    Cost: a read of each message of the last 60 days, and a pass over the entities.

    Args:
        talk: All messages of the agent.
    """
    opened: dict[str, list[_Open]] = defaultdict(list)
    sightings = _Sightings(talk.snapshot)
    since = to_microseconds(talk.snapshot.now) - LISTED_US
    for spoken in _spoken(talk):
        named = {fits[0] for fits in spoken.fits.values() if len(fits) == 1}
        taken: set[str] = set()
        for name, fits in spoken.fits.items():
            if len(fits) < 2:
                continue
            candidates = sightings.candidates(fits, spoken.time, named)
            if _is_taken(candidates):
                taken.add(candidates[0].entity)
            elif spoken.time >= since:
                opened[folded_name(name)].append(_Open(name, spoken.time, spoken.id, candidates))
        sightings.add(spoken.time, named | taken)
    newest = sorted(opened.values(), key=lambda each: (-each[-1].time, -each[-1].id, each[-1].name))
    return [_pending(each) for each in newest]


def _pending(opened: Sequence[_Open]) -> PendingName:
    last = opened[-1]
    exchanges = tuple(each.id for each in reversed(opened[-EVIDENCE:]))
    return PendingName(last.name, to_datetime(last.time), last.candidates, exchanges)


def _is_taken(candidates: Sequence[NameCandidate]) -> bool:
    best, second = candidates[0], candidates[1]
    return best.score >= TAKEN / 100 and best.score > second.score


def _spoken(talk: Talk) -> list[_Spoken]:
    """Return the exchanges of the last 60 days that name an entity, in order of time."""
    columns = talk.messages.columns
    since = to_microseconds(talk.snapshot.now) - _SEEN_US
    talk = talk.at(np.flatnonzero(columns.created.view()[talk.rows] >= since))
    names = _Names(talk.snapshot)
    spoken: list[_Spoken] = []
    for exchange in talk.exchanges(talk.pairs()):
        written = [name for message in exchange.messages for name in proper_names(message.text)]
        fits = {name: entities for name in written if (entities := names.fits(name))}
        if fits:
            spoken.append(_Spoken(to_microseconds(exchange.created), exchange.id, fits))
    # Sorting is stable: exchanges of one time keep the order of the log.
    return sorted(spoken, key=lambda each: each.time)


class _Names:
    """The entities that a name fits."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._entities = Entities(snapshot.facts_at)
        self._fits: dict[str, tuple[str, ...]] = {}

    def fits(self, name: str) -> tuple[str, ...]:
        """Return the entities that have a name, or whose names begin with it."""
        folded = folded_name(name)
        if folded not in self._fits:
            exact = tuple(self._entities.resolve(name))
            self._fits[folded] = exact or self._beginning_with(folded)
        return self._fits[folded]

    def _beginning_with(self, folded: str) -> tuple[str, ...]:
        longer = self._by_first_word.get(folded.partition(" ")[0], ())
        return tuple(
            dict.fromkeys(entity for name, entity in longer if name.startswith(f"{folded} "))
        )

    @cached_property
    def _by_first_word(self) -> dict[str, list[tuple[str, str]]]:
        """The folded names and aliases of several words by their first, each with its entity."""
        names: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for entity in self._entities.all():
            for name in (*entity.names, *entity.aliases):
                first, space, _ = (folded := folded_name(name)).partition(" ")
                if space:
                    names[first].append((folded, entity.name))
        return names


class _Sightings:
    """The sightings of entities: in facts, and in exchanges that were added in order of time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._facts = snapshot.facts_at
        self._in_facts: dict[str, list[_Sighting]] = {}
        self._in_exchanges: dict[str, list[_Sighting]] = defaultdict(list)

    def add(self, time: int, named: Collection[str]) -> None:
        """Add an exchange that names entities."""
        for entity in named:
            self._in_exchanges[entity].append(_Sighting(time, frozenset(named)))

    def candidates(
        self, fits: Sequence[str], time: int, named: Collection[str]
    ) -> tuple[NameCandidate, ...]:
        """Return entities with their scores at a time, best first, ties to the earlier entity."""
        candidates = [self._candidate(entity, time, named) for entity in fits]
        return tuple(sorted(candidates, key=lambda each: -each.score))

    def _candidate(self, entity: str, time: int, named: Collection[str]) -> NameCandidate:
        sightings = [
            each
            for each in (*self._facts_of(entity), *self._in_exchanges[entity])
            if each.time <= time
        ]
        together = sum(not each.beside.isdisjoint({*named} - {entity}) for each in sightings)
        score = _LEAST
        score += next((add for least, add in _TOGETHER if together >= least), 0)
        score += next((add for least, add in _SIGHTINGS if len(sightings) >= least), 0)
        newest = max((each.time for each in sightings), default=None)
        if newest is not None:
            score += next((add for most, add in _RECENT if time - newest <= most), 0)
        last = None if newest is None else to_datetime(newest)
        return NameCandidate(entity, score / 100, last, together, len(sightings))

    def _facts_of(self, entity: str) -> list[_Sighting]:
        sightings = self._in_facts.get(entity)
        if sightings is None:
            facts = self._facts
            rows = {*facts.find(entity), *facts.find(object_=(ObjectKind.ENTITY, entity))}
            sightings = self._in_facts[entity] = []
            for row in sorted(rows):
                _, subject, _, kind, value, (recorded, *_), *_ = facts.contents(row)
                ends = {subject, str(value)} if kind == ObjectKind.ENTITY else {subject}
                sightings.append(_Sighting(recorded, frozenset(ends)))
        return sightings
