"""The relevance of the result of a search: evidence that the memory answers the question.

Owns the evidence of hits for a floor, and the choice of the floor. Leaves out the numbers of the
floors (`cerata.retrieval.ranking.relevance`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.late import late
from cerata.projections.fulltext.query import has_words
from cerata.retrieval.embedders.identity import parse_space
from cerata.retrieval.ranking import relevance
from cerata.retrieval.ranking.relevance import Floor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cerata.retrieval.ranking.fusion import Fused

    from . import gate
    from .result import SearchResult
else:
    gate = late("cerata.memory.search.gate")

_EXAMINED: Final = 10
"""Hits by words whose words are examined: one with most of the question's words ranks high."""


def floor_for(result: SearchResult, *, floor: Floor | bool) -> Floor | None:
    """Return the floor of a question: the passed one, or that of the space; None for none.

    Raises:
        InvalidInput: floor is neither a `Floor` nor a bool.
    """
    if isinstance(floor, Floor):
        return floor
    if not isinstance(floor, bool):
        raise InvalidInput(
            f"floor must be a Floor, True or False, not {value_text(floor):.60}",
            remedy="Pass cerata.Floor(0.36, 0.6), or False for no floor.",
        )
    if not floor:
        return None
    if result.request.profile.gate:
        # A view knows no agent: two turns are an exchange.
        return gate.floor_of_gate(result.snapshot.layers.shape[0] // 2)
    if result.vectors is None or "vectors" not in result.weights:
        return None
    identity = parse_space(result.vectors.key[0])
    return None if identity is None else relevance.MEASURED.get(identity.name)


def relevant_hits(result: SearchResult, floor: Floor | None) -> Sequence[Fused] | None:
    """Return the hits that a context may show; None without evidence that the memory answers.

    - A question without a word, such as "what is it?", has nothing to compare and passes.
    - Facts pass, and so do the hits of a query or of quoted words, which state what must occur.
    - Without a floor every hit passes.
    - The gate of a profile may admit a part of the hits (`gate`).
    - A hit without a vector passes if words found it.
    - A turn passes if the question names its speaker, and the profile counts that: the name is not
      in the question's vector, and one name is a small share of its words.
    """
    request = result.request
    if not has_words(request.tree) or result.facts:
        return result.best
    if floor is None or not request.is_plain:
        return result.best or None
    if request.profile.gate:
        admitted = gate.admitted(result, floor)
        return None if admitted is None else admitted.hits
    return result.best if _reaches(result, floor) else None


def _reaches(result: SearchResult, floor: Floor) -> bool:
    """Return whether a hit reaches a floor."""
    by_words = [hit.id for hit in result.best if "text" in hit.lanes][:_EXAMINED]
    cosines = result.cosines
    if any(cosine >= floor.cosine for cosine in cosines.values()):
        return True
    if result.signals is not None and result.signals.name_speaker_of(by_words):
        return True
    return any(
        frame not in cosines or floor.admits(cosines[frame], result.share_of_words(frame))
        for frame in by_words
    )
