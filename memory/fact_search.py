"""Searching facts: those that a question names, then those that share its words.

Owns the facts lane: which facts a question brings, in which order, and the frames that they were
read in. Leaves out how words are ranked (`cerata.projections.fact_text`) and how lanes are joined
(`cerata.retrieval.fusion`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.projections.columns import Mask
from cerata.projections.entity_table import Entities
from cerata.projections.fact_spans import FactSpan
from cerata.projections.fact_text import FactTextView
from cerata.projections.fact_values import ObjectKind
from cerata.projections.query import check_size
from cerata.projections.text import words

from .fact_showing import shown
from .fact_values import Fact

if TYPE_CHECKING:
    from .view import View

_WORDS_MAX: Final = 64
"""Words of a question in which entities are looked for."""

_LANE_FACTS: Final = 50
"""Facts whose frames are a lane."""

_FRAMES_TOLD: Final = 3
"""Frames that a fact's source names."""

_NAMED_MAX: Final = 10_000
"""Facts of a named entity that are ranked: the newest."""


@dataclass(frozen=True, slots=True)
class FactHit:
    """A fact that a question found; ``named`` are the entities of it that the question names.

    ``score`` is BM25 over the facts that are known in the view, of the words of the fact as it was
    asserted; 0 where the question only names it otherwise, such as by an alias.
    """

    fact: Fact
    score: float
    named: tuple[str, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        return {"fact": self.fact.to_dict(), "score": self.score, "named": list(self.named)}


def search_facts(view: "View", query: str, k: int) -> list[FactHit]:
    """Return the best ``k`` facts for a question: of entities that it names, then by its words.

    Cost: a pass over the columns of facts, and the facts of the entities that are named.

    Raises:
        InvalidInput: the question is no string, or k is not positive.
    """
    if not isinstance(query, str):
        raise InvalidInput(
            f"A question must be a string, not {type(query).__name__}",
            remedy="Ask in plain language.",
        )
    check_size(query)
    if isinstance(k, bool) or not isinstance(k, int) or k <= 0:
        raise InvalidInput(f"k is {k!r}", remedy="Ask for 1 or more.")
    if not view.facts_at.row_count:
        return []
    lane = _Lane(view, query)
    found = lane.of_named(k)
    return found + lane.by_words(k - len(found)) if len(found) < k else found


def search_named(view: "View", query: str) -> list[FactHit]:
    """Return the best facts of the entities that a question names; none where it names none.

    Cost: a look-up for each run of its words; where one is a name, as `search_facts`.
    """
    return _Lane(view, query).of_named(_LANE_FACTS) if view.facts_at.row_count else []


def scored_frames(hits: Iterable[FactHit]) -> dict[int, float]:
    """Return the frames that facts were read in, those of the best first, and their scores.

    A frame's score is that of the best fact read in it: how many entities of the fact the question
    names, and b / (1 + b), below 1, of its BM25 b, by which those of as many are ordered.
    """
    found: dict[int, float] = {}
    for hit in hits:
        score = len(hit.named) + hit.score / (1.0 + hit.score)
        for place in hit.fact.evidence:
            found.setdefault(place.frame, score)
    return found


def source_of_fact(fact: Fact) -> str:
    """Return the line that names where a fact comes from: its id, and those of what says so."""
    frames = list(dict.fromkeys(place.frame for place in fact.evidence))[:_FRAMES_TOLD]
    return f"#{fact.id} · fact{''.join(f' · #{frame}' for frame in frames)}"


def told_fact(fact: Fact) -> str:
    """Return a fact as a context shows it: what is held true, and when."""
    start, end = fact.valid.start, fact.valid.end
    since = "" if start is None else f", since {start.date().isoformat()}"
    until = "" if end is None else f", until {end.date().isoformat()}"
    doubt = "" if fact.source == "observed" else f" ({fact.source}, {fact.confidence:.0%})"
    return f"{fact}{since}{until}{doubt}"


class _Lane:
    """One question to the facts of one view."""

    def __init__(self, view: "View", query: str) -> None:
        facts = view.facts_at
        self._view, self._facts, self._query = view, facts, query
        self._instant = view.valid_at_us
        folded = [word.decode() for word in words(query)[:_WORDS_MAX]]
        self._named: dict[int, list[str]] = {}
        self._older: list[int] = []
        for tenant, name in Entities(facts).named_in(folded):
            rows = {
                *facts.find(name, instant=self._instant),
                *facts.find(object_=(ObjectKind.ENTITY, name), instant=self._instant),
            }
            own = sorted(facts.of_tenant(rows, tenant))
            self._older += own[:-_NAMED_MAX]
            for row in own[-_NAMED_MAX:]:
                self._named.setdefault(row, []).append(name)

    @cached_property
    def _text(self) -> FactTextView:
        return self._view.fact_text.view(self._facts)

    def of_named(self, k: int) -> list[FactHit]:
        """Return facts of the entities that are named, by their words, then the newest first."""
        if not self._named:
            return []
        spans = self._true(self._named)
        among = np.zeros(self._facts.row_count, np.bool_)
        among[list(spans)] = True
        ranked = dict(self._ranked(len(spans), among))
        order = sorted(spans, key=lambda row: (-len(self._named[row]), -ranked.get(row, 0.0), -row))
        return [self._hit(spans[row], ranked.get(row, 0.0)) for row in order[:k]]

    def by_words(self, k: int) -> list[FactHit]:
        """Return facts that share words with the question and name nobody whom it names."""
        among = self._facts.shown_mask(self._instant)
        among[[*self._named, *self._older]] = False
        count = k
        while True:
            ranked = self._ranked(count, among)
            spans = self._true(row for row, _ in ranked)
            # What was said to be true then may have ended where another value began.
            if len(spans) >= k or len(ranked) < count:
                return [self._hit(spans[row], score) for row, score in ranked if row in spans][:k]
            count *= 4

    def _ranked(self, k: int, among: Mask) -> list[tuple[int, float]]:
        if not k:
            return []
        return self._text.ranked(self._query, k, among)

    def _true(self, rows: Iterable[int]) -> dict[int, FactSpan]:
        instant = self._instant
        spans: Sequence[FactSpan] = self._facts.spans(list(rows))
        return {span.row: span for span in spans if instant is None or span.valid.contains(instant)}

    def _hit(self, span: FactSpan, score: float) -> FactHit:
        named = tuple(self._named.get(span.row, ()))
        return FactHit(shown(self._facts, span, self._view.basis), round(score, 9), named)
