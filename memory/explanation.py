"""Explanations: why a hit has its score, as a value and as a few lines that say so.

Owns the values and how they read. Leaves out where their numbers come from (`lanes`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cerata.engine.events import JsonValue
from cerata.projections.ranking import WordScore
from cerata.retrieval.classifier import Classified
from cerata.retrieval.fusion import Method
from cerata.retrieval.profiles import Profile

_FORMULAS: Final[Mapping[Method, str]] = {
    "rrf": "ranks fused: weight / (60 + rank)",
    "minmax": "scores fused: weight x (score - least) / (best - least)",
    "zscore": "scores fused: weight x (score - least) / deviation",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many frames a lane could have found, and how many of them it left out, each once.

    What is not within the scope is in no count.
    """

    candidates: int
    deleted: int
    superseded: int
    where: int

    @property
    def is_any(self) -> bool:
        """Whether anything was left out."""
        return bool(self.deleted or self.superseded or self.where)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "candidates": self.candidates,
            "deleted": self.deleted,
            "superseded": self.superseded,
            "where": self.where,
        }

    def __str__(self) -> str:
        reasons = {
            "deleted": self.deleted,
            "superseded": self.superseded,
            "by the filter": self.where,
        }
        parts = [f"{count:,} {reason}" for reason, count in reasons.items() if count]
        return f"left out of {self.candidates:,} candidates: {', '.join(parts) or 'none'}"


@dataclass(frozen=True, slots=True)
class LaneShare:
    """What one lane that ran added to a hit: ``rank`` and ``score`` are None where it found it not.

    ``found`` are the hits of the lane, which may be fewer than were left in: it is cut at a depth.
    """

    lane: str
    weight: float
    rank: int | None
    score: float | None
    added: float
    found: int
    left_out: LeftOut

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "lane": self.lane,
            "weight": self.weight,
            "rank": self.rank,
            "score": self.score,
            "added": self.added,
            "found": self.found,
            "left_out": self.left_out.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Reranked:
    """How a hit's tokens moved it among the best: its ranks, and the score that they go by."""

    before: int
    after: int
    score: float

    def to_dict(self) -> dict[str, JsonValue]:
        return {"before": self.before, "after": self.after, "score": self.score}

    def __str__(self) -> str:
        return f"rank {self.before:,} before, {self.after:,} by its tokens: {self.score:.3f}"


@dataclass(frozen=True, slots=True)
class Boost:
    """What a hit's score was multiplied by, since it was used: how often, and when last."""

    factor: float
    used: int
    last_used: datetime

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "factor": self.factor,
            "used": self.used,
            "last_used": self.last_used.isoformat(),
        }

    def __str__(self) -> str:
        times = "once" if self.used == 1 else f"{self.used:,} times, last"
        return f"importance x {self.factor:.3f}: used {times} on {self.last_used.date()}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit has its score: what each lane added, and each word to the lane of the text.

    - ``score`` is the sum of what ``lanes`` added, in their order, rounded to 9 digits; where there
      is a ``boost``, times its factor, rounded again.
    - The score of the lane "text" is that of what ``words`` added, likewise.
    - ``method`` is None where one lane alone was asked or found anything: its scores are the hits'.
    - ``question`` is the kind of the question, and the words of it that say so.
    - ``facts`` are those that are read in the frame, of whom the question names: their ids.
    - ``reranked`` says how its tokens moved it; None where they were not asked for, or are not
      there. They change no score.
    """

    id: int
    score: float
    question: Classified
    profile: Profile
    method: Method | None
    lanes: tuple[LaneShare, ...]
    words: tuple[WordScore, ...]
    facts: tuple[int, ...]
    reranked: Reranked | None = None
    boost: Boost | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "score": self.score,
            "question": {"kind": self.question.kind, "cue": self.question.cue},
            "profile": {"name": self.profile.name, "version": self.profile.version},
            "method": self.method,
            "lanes": [lane.to_dict() for lane in self.lanes],
            "words": [word.to_dict() for word in self.words],
            "facts": list(self.facts),
            "reranked": None if self.reranked is None else self.reranked.to_dict(),
            "boost": None if self.boost is None else self.boost.to_dict(),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        cue = f" ({self.question.cue})" if self.question.cue else ""
        how = "" if self.method is None else f", {_FORMULAS[self.method]}"
        yield f"#{self.id} scores {self._sum()}"
        yield f"  {self.question.kind} question{cue}, profile {self.profile.label}{how}"
        if self.boost is not None:
            yield f"  {self.boost}"
        if self.reranked is not None:
            yield f"  {self.reranked}"
        width = max(len(one.lane) for one in self.lanes)
        for share in self.lanes:
            yield f"  {share.lane:{width}}  {self._place(share)}"
            yield from (f"  {'':{width}}  {line}" for line in self._sources(share))

    def _sum(self) -> str:
        """Write the score, and its parts where there are lanes to tell apart."""
        digits = 6 if self.method == "rrf" else 3
        parts = [f"{one.lane} {one.added:.{digits}f}" for one in self.lanes if one.rank is not None]
        found = " + ".join(parts)
        if self.boost is not None:
            found = f"({found}) x {self.boost.factor:.3f}"
        elif self.method is None:
            return f"{self.score:.{digits}f}"
        return f"{self.score:.{digits}f} = {found}"

    def _place(self, share: LaneShare) -> str:
        if share.rank is None or share.score is None:
            return f"not among its {share.found:,}" if share.found else "found nothing"
        weight = "" if self.method is None else f", weight {share.weight:g}"
        return f"rank {share.rank:,} of {share.found:,}, score {share.score:.3f}{weight}"

    def _sources(self, share: LaneShare) -> Iterator[str]:
        """Yield what a lane found the hit by, and what it left out."""
        if share.rank is not None and share.lane == "text":
            yield from _told(self.words)
        if share.rank is not None and share.lane == "facts":
            yield f"read in it: {', '.join(f'fact #{fact}' for fact in self.facts)}"
        if share.left_out.is_any:
            yield str(share.left_out)


def _told(words: Sequence[WordScore]) -> Iterator[str]:
    """Yield a line for each word that is there, and one for those that are not."""
    there = [word for word in words if word.count]
    width = max((len(word.word) for word in there), default=0)
    for word in there:
        factor = f"idf {word.idf:.3f} x {word.added / word.idf:.3f}"
        yield f"{word.word:{width}}  {word.added:.3f} = {factor} (count {word.count})"
    if missing := [word.word for word in words if not word.count]:
        yield f"not in it: {', '.join(missing)}"
