"""The relevance of the result of a search: how well it answers, and the hits that a context shows.

Owns the choice of the marks, and that of the hits. Leaves out the numbers of the marks
(`cerata.retrieval.ranking.relevance`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.unreadable import frame_place, readable
from cerata.projections.fulltext.analyzer import terms, words
from cerata.projections.fulltext.marks import asks
from cerata.projections.fulltext.query import exact_names, has_words
from cerata.retrieval.embedders.identity import parse_space
from cerata.retrieval.ranking import relevance
from cerata.retrieval.ranking.relevance import BY_WORDS, CLOSE, SHOWN, Confidence, Floor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cerata.retrieval.ranking.fusion import Fused
    from cerata.retrieval.ranking.relevance import MeaningMarks

    from .result import SearchResult


class Relevant(NamedTuple):
    """The hits that a context may show, best first, and how well they answer the question.

    The first ``close`` hits are close to the best. ``score`` is that of the best frame that is not
    the question itself, 0 without any. ``floor`` has the marks that it was compared with, if there
    are any.
    """

    hits: Sequence[Fused]
    confidence: Confidence
    score: float
    floor: Floor | None
    close: int | None = None


def _without_question(result: SearchResult) -> Sequence[Fused]:
    """Return the hits without the turns and questions whose words are the question's."""
    asked = words(result.request.text)
    layers = result.snapshot.layers
    rows = layers.rows_at(np.array([hit.id for hit in result.best], np.int64))
    are_as_long = layers.ranking.text_lengths[rows] == len(terms(result.request.text))
    alike = [result.best[place].id for place in np.flatnonzero(are_as_long).tolist()]
    others = {
        frame.id
        for frame in readable(alike, result.frame_at, frame_place)
        if not (frame.role or asks(frame.text)) or words(frame.text) != asked
    }
    # A frame that cannot be read answers nothing, either.
    same = {*alike} - others
    return [hit for hit in result.best if hit.id not in same] if same else result.best


def floor_for(result: SearchResult, *, floor: Floor | bool) -> Floor | None:
    """Return the marks of a question: the passed ones, or the measured ones; None for none.

    The marks of a model count as far as its vectors do.

    Raises:
        InvalidInput: floor is neither a `Floor` nor a bool.
    """
    if isinstance(floor, Floor):
        return floor
    if not isinstance(floor, bool):
        raise InvalidInput(
            f"floor must be a Floor, True or False, not {value_text(floor):.60}",
            remedy="Pass cerata.Floor(0.45, 0.2), or False for no floor.",
        )
    if not floor or result.request.mode == "vector":
        return None
    part = _part_of_meaning(result)
    if not part:
        return BY_WORDS
    by_meaning = _by_meaning(result)
    return None if by_meaning is None else BY_WORDS.toward(by_meaning.floor, part)


def _part_of_meaning(result: SearchResult) -> float:
    """Return how far the model's vectors count for the question, from 0 to 1."""
    weight = result.weights.get("vectors", 0.0)
    of_model = 1.0 if result.trust is None else result.trust.weight
    return min(weight / of_model, 1.0) if result.vectors is not None and weight else 0.0


def _by_meaning(result: SearchResult) -> MeaningMarks | None:
    """Return the marks of the model of the question's vector, if it was measured."""
    identity = None if result.vectors is None else parse_space(result.vectors.key[0])
    return None if identity is None else relevance.BY_MEANING.get(identity.name)


def relevant_hits(result: SearchResult, *, floor: Floor | bool) -> Relevant:
    """Return the hits that a context may show; ``floor`` is that of `floor_for`.

    - A frame that is the question itself, which an agent stored, does not answer it.
    - A question without a word, such as "?", has nothing to compare and passes.
    - Facts pass, and so do the hits of a query, which states what must occur.
    - Else the best score decides, and hits far below it are left out.
    - With the measured marks, a question with a code, a version or an address that no hit has is
      at most unclear, since another code is of another thing.
    - With the measured marks, frames near to the question by their own cosine, or with more than
      half of its words, are at least unclear. The turns beside a turn lower its score, and so do
      words that most frames have, as in a small memory of one subject.
    """
    request = result.request
    marks = floor_for(result, floor=floor)
    best = _without_question(result) if request.text else result.best
    most = max([hit.score for hit in best], default=0.0)
    if result.facts or (request.is_plain and not has_words(request.tree)):
        return Relevant(best, "clear", most, marks)
    if not best:
        return Relevant(best, "none", most, marks)
    if marks is None or not request.is_plain:
        return Relevant(best, "clear", most, marks)
    is_measured = not isinstance(floor, Floor)
    near = _near(result) if is_measured else frozenset[int]()
    hits = [hit for hit in best if hit.score >= SHOWN * most or hit.id in near]
    far = (n for n, hit in enumerate(hits) if hit.score < CLOSE * most and hit.id not in near)
    close = next(far, len(hits))
    confidence = marks.confidence_at(most)
    if confidence == "clear" and is_measured and not _has_names(result, hits):
        confidence = "unclear"
    if confidence == "none":
        is_close = is_measured and (
            any(hit.id in near for hit in hits) or _has_most_words(result, hits)
        )
        if not is_close:
            return Relevant((), "none", most, marks)
        confidence = "unclear"
    return Relevant(hits, confidence, most, marks, close)


def _near(result: SearchResult) -> frozenset[int]:
    """Return the hits that are near to the question by their own cosine."""
    by_meaning = _by_meaning(result)
    if by_meaning is None:
        return frozenset()
    part, least = _part_of_meaning(result), by_meaning.near
    return frozenset(hit for hit, cosine in result.cosines.items() if part * cosine >= least)


def _has_names(result: SearchResult, hits: Sequence[Fused]) -> bool:
    """Return whether a hit has each name of the question that has no other form, such as a code."""
    names = exact_names(result.request.text)
    if not names:
        return True
    layers = result.snapshot.layers
    rows = layers.rows_at(np.array([hit.id for hit in hits], np.int64))
    return all(layers.ranking.have_phrase(name, rows).any() for name in names)


def _has_most_words(result: SearchResult, hits: Sequence[Fused]) -> bool:
    """Return whether a hit has more than half of the words of the question."""
    layers = result.snapshot.layers
    rows = layers.rows_at(np.array([hit.id for hit in hits], np.int64))
    return bool((layers.ranking.coverages(result.request.text, rows) > _MOST_WORDS).any())


_MOST_WORDS: Final = 0.5
