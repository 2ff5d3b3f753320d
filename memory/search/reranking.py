"""Reranking: another order of the best hits, by token vectors, a model, or passed scores.

Owns which of the three reorders the hits of a request, and their scores. Leaves out the models
(`cerata.retrieval.reranker`) and the new order (`cerata.retrieval.ranking.fusion`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.late import late
from cerata.engine.unreadable import frame_place, readable
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS
from cerata.retrieval.ranking.fusion import RERANK_HITS
from cerata.retrieval.reranker import HITS_MAX

if TYPE_CHECKING:
    from cerata.retrieval import reranker as rerankers
    from cerata.retrieval.reranker import Reranker

    from ..snapshot.snapshot import Snapshot
    from ..values.frames import Frame
    from .late_lane import LateLane
    from .request import SearchRequest
else:
    rerankers = late("cerata.retrieval.reranker")


BY_TOKENS: Final = "late"
"""The name of the order by token vectors."""

BY_SCORES: Final = "scores"
"""The name of the order by scores that the caller passed."""


class Reranking(Protocol):
    """Another order of the best hits of a search."""

    @property
    def name(self) -> str:
        """The name in results: "late", "scores", or the identity of the model."""
        ...

    @property
    def hits(self) -> int:
        """The number of the best hits that are reordered."""
        ...

    def scores_of(self, frames: Sequence[int]) -> Mapping[int, float]:
        """Return the scores of the frames that have one."""
        ...


class ByTokens(msgspec.Struct, frozen=True):
    """The order by token vectors."""

    late: LateLane
    name: str = BY_TOKENS
    hits: int = RERANK_HITS

    def scores_of(self, frames: Sequence[int]) -> Mapping[int, float]:
        """Return the scores of the frames that have token vectors. Raises `Corrupt`."""
        return self.late.scores_of(frames)


class ByScores(msgspec.Struct, frozen=True):
    """The order by known scores: those of the caller, or those of an earlier page."""

    scores: Mapping[int, float]
    name: str = BY_SCORES
    hits: int = HITS_MAX

    def scores_of(self, frames: Sequence[int]) -> Mapping[int, float]:
        """Return the known scores, rounded to 9 digits."""
        known = (frame for frame in frames if frame in self.scores)
        return {frame: round(float(self.scores[frame]), SCORE_DECIMALS) for frame in known}


class ByModel(msgspec.Struct, frozen=True):
    """The order by a model that reads the question with each text."""

    snapshot: Snapshot
    question: str
    reranker: Reranker

    @property
    def name(self) -> str:
        """The model's identity."""
        return self.reranker.identity

    @property
    def hits(self) -> int:
        """The number of hits that the model reads."""
        return rerankers.hits_of(self.reranker)

    def scores_of(self, frames: Sequence[int]) -> Mapping[int, float]:
        """Return the scores of the frames that have a text. Raises `RerankerFailed`."""
        read = readable(frames, self.snapshot.frame_at, frame_place)
        texts = {frame.id: text for frame in read if (text := read_text(frame))}
        scores = rerankers.scores_of_texts(self.reranker, self.question, [*texts.values()])
        return dict(zip(texts, scores, strict=True))


def read_text(frame: Frame) -> str:
    """Return the text of a frame that a reranker reads, with the speaker of a turn; "" without."""
    text = frame.text if frame.text.strip() else frame.search_text or ""
    if not text.strip():
        return ""
    return f"{frame.role}: {text}" if frame.role else text


def reranking_of(
    snapshot: Snapshot, request: SearchRequest, late: LateLane | None
) -> Reranking | None:
    """Return what reorders the best hits of a request; None if nothing does.

    Raises:
        InvalidInput: a model should read a question that is not in plain language.
    """
    rerank = request.rerank
    if isinstance(rerank, Mapping):
        return ByScores(rerank)
    if rerank is None or isinstance(rerank, bool):
        return ByTokens(late) if late is not None and rerank else None
    if not request.text:
        raise InvalidInput(
            "A reranker reads a question in plain language, and the query is none",
            remedy="Pass the question as text, or leave out rerank=.",
        )
    if request.scores_before is not None:
        return ByScores(request.scores_before, rerank.identity, rerankers.hits_of(rerank))
    return ByModel(snapshot, request.text, rerank)
