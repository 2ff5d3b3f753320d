"""The protocol of rerankers, and the check of their answers.

A reranker reads a question and a text together, as a cross-encoder does, and so compares them
better than two vectors can; it is too slow for more than the best hits of a search (R. Nogueira
and K. Cho, *Passage Re-ranking with BERT*, 2019). Leaves out the choice and the texts of the hits
(`cerata.memory.search.reranking`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

import numpy as np

from cerata.engine.arguments import is_integer, is_number
from cerata.engine.errors import InvalidInput, RerankerFailed, Unsupported, value_text
from cerata.engine.limits import NAME_SIZE_MAX
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS

HITS_DEFAULT: Final = 50
"""Hits that a reranker reads: more hardly improve recall (docs/search.md)."""

HITS_MAX: Final = 128
"""Most hits that a reranker reads: so many have one order, for any page of a search."""


class Reranker(Protocol):
    """A model that scores texts for a question; only the order of the scores counts.

    The attribute ``hits``, which may be left out, is the number of the best hits of a search that
    the model reads: 1 to 128, default 50.
    """

    @property
    def identity(self) -> str:
        """The model's name and revision, as in "ms-marco-MiniLM-L6@1"; recalls record it."""
        ...

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text, (len(texts),), higher if it answers the question better.

        Args:
            question: the question, unchanged
            texts: the texts of the best hits, best first; that of a turn as "speaker: text"
        """
        ...


def check_rerank(rerank: object) -> None:
    """Raise `InvalidInput` unless ``rerank`` is a flag or None, a reranker, or scores of frames.

    The model does not run.
    """
    if rerank is None or isinstance(rerank, bool):
        return
    if isinstance(rerank, Mapping):
        for frame, score in cast("Mapping[object, object]", rerank).items():
            _check_score(frame, score)
        return
    if not callable(getattr(rerank, "scores", None)):
        raise InvalidInput(
            f"rerank must be a Reranker, scores by frame id, True, False or None, not "
            f"{value_text(rerank):.60}",
            remedy="Pass an object with identity and scores(), such as docs/search.md has.",
        )
    _check_identity(getattr(rerank, "identity", None))
    hits = getattr(rerank, "hits", HITS_DEFAULT)
    if not is_integer(hits) or not 1 <= hits <= HITS_MAX:
        raise InvalidInput(
            f"hits of a reranker must be a whole number from 1 to {HITS_MAX}, not {hits!r:.60}",
            remedy=f"Set hits = {HITS_DEFAULT}, or leave it out.",
        )


def _check_score(frame: object, score: object) -> None:
    if not is_integer(frame) or not is_number(score):
        raise InvalidInput(
            f"rerank must have a finite score for each frame id, not {value_text(score):.60} for "
            f"{value_text(frame):.60}",
            remedy="Pass scores such as rerank={7: 0.25, 9: 1.5}.",
        )


def _check_identity(identity: object) -> None:
    parts = identity.partition("@") if isinstance(identity, str) else ("", "", "")
    is_whole = all(part and part == part.strip() and part.isprintable() for part in parts)
    # Printable text has UTF-8: lone surrogates are not printable.
    if not is_whole or len("".join(parts).encode()) > NAME_SIZE_MAX:
        raise InvalidInput(
            f"identity of a reranker must be 'name@revision' of printable characters, at most "
            f"{NAME_SIZE_MAX} bytes, not {identity!r:.60}",
            remedy="Set an identity such as 'ms-marco-MiniLM-L6@1'.",
        )


def hits_of(reranker: Reranker) -> int:
    """Return the number of hits that a checked reranker reads."""
    hits: int = getattr(reranker, "hits", HITS_DEFAULT)
    return hits


def scores_of_texts(reranker: Reranker, question: str, texts: Sequence[str]) -> list[float]:
    """Return the score of each text, rounded to 9 digits; without texts the model does not run.

    Raises:
        RerankerFailed: the reranker raised, or returned no finite score for each text.
    """
    if not texts:
        return []
    identity = reranker.identity
    try:
        # A copy: a reranker that changes the list must not change which text a score is of.
        answer: Any = reranker.scores(question, list(texts))
        numbers = np.asarray(answer)
    except (RerankerFailed, Unsupported, MemoryError):
        # Unsupported: a part of the reranker is not installed; the remedy names it.
        raise
    except Exception as error:
        raise _failed(identity, f"raised {type(error).__name__}: {error}") from error
    if numbers.shape != (len(texts),):
        raise _failed(
            identity, f"returned scores of the shape {numbers.shape}, not {(len(texts),)}"
        )
    if numbers.dtype.kind not in "fiu":
        raise _failed(identity, f"returned {numbers.dtype}, not numbers")
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise _failed(identity, "returned a score that is not finite")
    return [round(score, SCORE_DECIMALS) for score in numbers.tolist()]


def _failed(identity: str, fault: str) -> RerankerFailed:
    return RerankerFailed(
        f"The reranker {identity!r} {fault}",
        remedy="Fix the reranker and call again, or leave out rerank=.",
        reranker=identity,
    )
