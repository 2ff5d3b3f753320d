"""Searching facts: facts about entities that a question names, then facts that share its words.

Owns the facts for a question, their order, and the frames in which they were read. Leaves out the
ranking by words (`cerata.projections.facts.text_projection`) and the fusion of lanes
(`cerata.retrieval.ranking.fusion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.arguments import expect_type, is_integer
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.json_value import exact
from cerata.engine.plain_value import PlainValue
from cerata.projections.facts.entities import Entities
from cerata.projections.facts.objects import ObjectKind
from cerata.projections.fulltext.analyzer import words
from cerata.projections.fulltext.query import check_size
from cerata.retrieval.word_kinds import content_words

from ..snapshot.fact_conversion import to_fact
from .filtering import passing_rows

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import Mask
    from cerata.projections.facts.text_projection import FactTextView
    from cerata.projections.facts.validity import FactSpan
    from cerata.projections.frames.filters import Filter

    from ..snapshot.snapshot import Snapshot
    from ..values.facts import Fact

_WORDS_MAX: Final = 64
"""Words at the start of a question that are searched for names of entities."""

_LANE_FACTS: Final = 50
"""Facts whose frames make up the lane."""

_SOURCE_FRAMES: Final = 3
"""Most frames in the source line of a fact."""

_NAMED_MAX: Final = 10_000
"""Facts of a named entity that are ranked, the newest first."""


@dataclass(frozen=True, slots=True)
class FactHit(PlainValue):
    """A fact for a question.

    - ``named`` are the entities of the fact that the question names.
    - ``score`` is BM25 over the facts known in the view, for the words of the fact as asserted; 0
      if the question names the fact only in another way, such as by an alias.
    """

    fact: Fact
    score: float
    named: tuple[str, ...]


def search_facts(snapshot: Snapshot, query: str, k: int) -> list[FactHit]:
    """Return the best ``k`` facts for a question: about its entities, then by its words.

    Cost: a pass over the columns of facts, and a look at the facts of the named entities.

    Raises:
        InvalidInput: query is not a string, or k is not positive.
    """
    query, k = exact(query), exact(k)
    expect_type("query", query, str, "a string", "Pass a question in plain language.")
    check_size(query)
    if not is_integer(k) or k <= 0:
        raise InvalidInput(
            f"k must be a positive whole number, not {value_text(k)}", remedy="Pass k=1 or more."
        )
    if not snapshot.facts_at.row_count:
        return []
    matches = _FactMatches(snapshot, query)
    hits = matches.of_named(k)
    return hits + matches.by_words(k - len(hits)) if len(hits) < k else hits


def relevant_facts(snapshot: Snapshot, query: str, *, where: Filter | None = None) -> list[FactHit]:
    """Return the facts that a search of frames and a context use, best first.

    These are the facts about the entities that a question names, and the facts that share enough of
    its words of content (`FactText.sharing`). ``where`` narrows both (`filtering`).

    Cost: a look-up for each run of words, and the postings of the words; if a fact matches, as
    `graph.search`.
    """
    if snapshot.facts_at.is_empty:
        return []
    matches = _FactMatches(snapshot, query, where)
    hits = matches.of_named(_LANE_FACTS)
    if len(hits) < _LANE_FACTS:
        hits += matches.sharing(_LANE_FACTS - len(hits))
    return hits


def functional_facts(snapshot: Snapshot, query: str, k: int) -> list[FactHit]:
    """Return the best ``k`` facts of functional predicates about entities that a question names.

    Cost: a look at the facts of the named entities.
    """
    if not snapshot.facts_at.row_count:
        return []
    matches = _FactMatches(snapshot, query, functional_only=True)
    return matches.of_named(k)


def scored_frames(hits: Iterable[FactHit]) -> dict[int, float]:
    """Return the frames in which facts were read, the best fact's first, and their scores.

    A frame has the score of the best fact read in it: the count of the fact's named entities, plus
    b / (1 + b) of its BM25 score b, which is below 1 and so orders facts with equal counts.
    """
    scores: dict[int, float] = {}
    for hit in hits:
        score = len(hit.named) + hit.score / (1.0 + hit.score)
        for place in hit.fact.evidence:
            scores.setdefault(place.frame, score)
    return scores


def source_of_fact(fact: Fact) -> str:
    """Return the source line of a fact: its id, and the ids of the frames in which it was read."""
    frames = list(dict.fromkeys(place.frame for place in fact.evidence))[:_SOURCE_FRAMES]
    return f"#{fact.id} · fact{''.join(f' · #{frame}' for frame in frames)}"


def fact_text(fact: Fact, contradicting: Sequence[int] = ()) -> str:
    """Return the text of a fact in a context: the statement, its period, and any doubt.

    ``contradicting`` are the facts that cannot be true beside it.
    """
    start, end = fact.valid.start, fact.valid.end
    since = "" if start is None else f", since {start.date().isoformat()}"
    until = "" if end is None else f", until {end.date().isoformat()}"
    ended = " (ended)" if fact.is_ended else ""
    doubt = "" if fact.source == "observed" else f" ({fact.source}, {fact.confidence:.0%})"
    rivals = ", ".join(f"#{number}" for number in contradicting)
    conflict = f" (contradicts {rivals})" if rivals else ""
    return f"{fact}{since}{until}{ended}{doubt}{conflict}"


class _FactMatches:
    """The facts for a question: those of the entities that it names, and those by its words."""

    def __init__(
        self,
        snapshot: Snapshot,
        query: str,
        where: Filter | None = None,
        *,
        functional_only: bool = False,
    ) -> None:
        """Match the known facts of a snapshot.

        ``where`` narrows the facts of `of_named` and `sharing`, ``functional_only`` those of
        `of_named`.
        """
        facts = snapshot.facts_at
        self._snapshot = snapshot
        self._facts = facts
        self._query = query
        self._instant = snapshot.valid_at_us
        self._passing = None if where is None else partial(passing_rows, snapshot, where=where)
        self._words = words(query)[:_WORDS_MAX]
        folded = [*map(bytes.decode, self._words)]
        self._named: dict[int, list[str]] = {}
        self._older: list[int] = []
        for tenant, name in Entities(facts).entities_in(folded):
            rows = {
                *facts.find(name, instant=self._instant),
                *facts.find(object_=(ObjectKind.ENTITY, name), instant=self._instant),
            }
            tenant_rows = sorted(facts.of_tenant(rows, tenant))
            if functional_only:
                tenant_rows = [row for row in tenant_rows if facts.is_functional(row)]
            if self._passing is not None:
                tenant_rows = self._passing(np.array(tenant_rows, np.int64)).tolist()
            self._older += tenant_rows[:-_NAMED_MAX]
            for row in tenant_rows[-_NAMED_MAX:]:
                self._named.setdefault(row, []).append(name)

    @cached_property
    def _last(self) -> int:
        """The instant by which a fact ends late in the order, into which no clock enters."""
        return min(self._snapshot.present_us, self._snapshot.last_us)

    @cached_property
    def _text(self) -> FactTextView:
        return self._snapshot.fact_text.view(self._facts)

    def of_named(self, k: int) -> list[FactHit]:
        """Return facts with the most named entities first; of these, facts that have ended last.

        Then by words, then the newest first.
        """
        if not self._named:
            return []
        spans = self._true(self._named)
        among = np.zeros(self._facts.row_count, np.bool_)
        among[list(spans)] = True
        ranked = dict(self._ranked(len(spans), among))

        def order_of(row: int) -> tuple[float, ...]:
            is_ended = spans[row].valid.end <= self._last
            return -len(self._named[row]), is_ended, -ranked.get(row, 0.0), -row

        order = sorted(spans, key=order_of)
        return [self._hit(spans[row], ranked.get(row, 0.0)) for row in order[:k]]

    def by_words(self, k: int) -> list[FactHit]:
        """Return facts that share words with the question and have no entity that it names."""
        return self._best(k, self._facts.shown_mask(self._instant))

    def sharing(self, k: int) -> list[FactHit]:
        """Return the facts of `by_words` that share the most of the question's words of content."""
        sought = content_words(self._words)
        text = self._snapshot.fact_text
        rows = text.sharing(self._facts, sought, self._instant, self._passing)
        if not len(rows):
            return []
        among = np.zeros(self._facts.row_count, np.bool_)
        among[rows] = True
        return self._best(k, among)

    def _best(self, k: int, among: Mask) -> list[FactHit]:
        """Return the best of the facts in a mask that have no entity that the question names."""
        among[[*self._named, *self._older]] = False
        count = k
        while True:
            ranked = self._ranked(count, among)
            spans = self._true(row for row, _ in ranked)
            # A fact stated as true at the instant may have ended when another value began.
            if len(spans) >= k or len(ranked) < count:
                hits = [(spans[row], score) for row, score in ranked if row in spans][:k]
                hits.sort(key=lambda hit: hit[0].valid.end <= self._last)
                return [self._hit(span, score) for span, score in hits]
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
        fact = to_fact(self._facts, span, self._snapshot.basis, self._snapshot.present_us)
        return FactHit(fact, round(score, 9), named)
