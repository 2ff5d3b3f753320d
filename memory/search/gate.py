"""The gate of recalled exchanges: the rules that admit hits of a result, or leave all out.

Owns the rules and their numbers, which the profile "continuity" has in place of a relevance floor.
Leaves out the ranking (`search`), and which exchange a hit belongs to. A question recalls

    all hits              if the best cosine is at least .5, or .155 among fewer than 2,000
                          exchanges; without vectors, if the words found in the best hit by
                          words, or in its exchange, carry half of the question's idf
    all hits              if the question asks for memory ("do you remember …")
    hits with the name    if a proper noun of the question occurs, and no other rule holds

The distances are those of the source (1.0 and 1.3 between vectors of length 1); the half is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from cerata.projections.fulltext.analyzer import words
from cerata.projections.messages.lexicon import SIGNS, english_lexicon
from cerata.retrieval.proper_nouns import proper_nouns
from cerata.retrieval.ranking.fusion import Fused
from cerata.retrieval.ranking.relevance import Floor

from .result import SearchResult
from .search import run_search

FEW_EXCHANGES: Final = 2_000
"""An agent with fewer exchanges recalls by the lower cosine."""

_OF_FEW: Final = Floor(0.155, 0.5)
_OF_MANY: Final = Floor(0.5, 0.5)


class Admitted(NamedTuple):
    """The hits that a question recalls, best first, and the rule that admits them."""

    hits: Sequence[Fused]
    rule: str


def alone(frame: int) -> Sequence[int]:
    """Return a frame alone."""
    return (frame,)


def floor_of_gate(exchanges: int) -> Floor:
    """Return the least cosine, or share of words, that admits all hits among some exchanges."""
    return _OF_FEW if exchanges < FEW_EXCHANGES else _OF_MANY


def admitted(
    result: SearchResult,
    floor: Floor,
    *,
    by_request: bool = True,
    exchange_of: Callable[[int], Sequence[int]] = alone,
) -> Admitted | None:
    """Return the hits of a result that the gate admits; None if it admits none.

    Args:
        result: The result of a question in plain language.
        floor: The least cosine, and without vectors the least share of words.
        by_request: True if a question that asks for memory admits all hits; default True.
        exchange_of: Returns the frames whose words count for a hit, that first; default it alone.
    """
    question = result.request.text
    rule = _rule_of(result, floor, exchange_of)
    if rule is None and by_request and asks_for_memory(question):
        rule = "the question asks for memory"
    if rule is not None:
        return Admitted(result.best, rule) if result.best else None
    hits = _with_names(result, proper_nouns(question))
    return Admitted(hits, "a name of the question occurs") if hits else None


def asks_for_memory(question: str) -> bool:
    """Return whether a question has the sign `recall`, such as "do you remember"."""
    counts = english_lexicon().counts(question, words(question), is_users=True)
    return bool(counts.signs[SIGNS.index("recall")])


def _rule_of(
    result: SearchResult, floor: Floor, exchange_of: Callable[[int], Sequence[int]]
) -> str | None:
    """Return the rule by which the best hit is near enough, or None."""
    if result.cosines:
        best = max(result.cosines.values())
        return f"a cosine of {best:.2f}" if best >= floor.cosine else None
    by_words = [hit.id for hit in result.best if "text" in hit.lanes][:1]
    share = max((result.share_of_words(*exchange_of(frame)) for frame in by_words), default=0.0)
    return "the words of the question occur" if share >= floor.words else None


def _with_names(result: SearchResult, nouns: Sequence[str]) -> list[Fused]:
    """Return the hits by words that have one of the nouns, best first."""
    if not nouns or "text" not in result.weights:
        return []
    if result.vectors is not None:
        # Vectors rank a turn with the name below the turns on the subject.
        request = replace(result.request, mode="text", min_cosine=None, rerank=None)
        result = run_search(result.snapshot, request)
    layers = result.snapshot.layers
    rows = layers.rows_at(np.array([hit.id for hit in result.best], np.int64))
    have = np.zeros(len(rows), np.bool_)
    for noun in nouns:
        have |= layers.ranking.have(noun, rows)
    return [hit for hit, has_noun in zip(result.best, have.tolist(), strict=True) if has_noun]
