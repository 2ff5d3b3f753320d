"""Explanations: the parts of a hit's score, as a value and as a few lines of text.

Owns the values and their printed forms. Leaves out their computation (`search.result`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from cerata.engine.plain_value import PlainValue, plain_fields

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue
    from cerata.projections.fulltext.bm25 import WordScore
    from cerata.retrieval.ranking.profile import Profile

    from .vector_trust import VectorTrust


@dataclass(frozen=True, slots=True)
class LeftOut(PlainValue):
    """The count of a lane's candidates, and how many it left out, each counted once.

    The counts leave out frames that are not within the scope.
    """

    candidates: int
    deleted: int
    superseded: int
    where: int
    expired: int = 0

    @property
    def is_any(self) -> bool:
        """True if the lane left out any frame."""
        return bool(self.deleted or self.superseded or self.where or self.expired)

    def __str__(self) -> str:
        reasons = {
            "deleted": self.deleted,
            "superseded": self.superseded,
            "expired": self.expired,
            "by the filter": self.where,
        }
        parts = [f"{count:,} {reason}" for reason, count in reasons.items() if count]
        return f"left out of {self.candidates:,} candidates: {', '.join(parts) or 'none'}"


@dataclass(frozen=True, slots=True)
class LaneShare(PlainValue):
    """The share of a lane that ran in a hit's score.

    - ``rank`` is the place among the lane's best, None if the hit is not among them.
    - ``score`` is in the unit of the lane (BM25, a cosine), None for a hit that the lane cannot
      find; ``share`` is from 0, about 1 for a hit that fits the whole question.
    - ``added`` is ``weight`` times ``share``.
    - ``found`` counts the lane's best; a lane stops at a depth, so it may have more candidates.
    """

    lane: str
    weight: float
    rank: int | None
    score: float | None
    share: float
    added: float
    found: int
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class TokenShare(PlainValue):
    """The share of a token of the question in a hit's score by tokens.

    - ``cosine`` is that of the token's best match, in the hit or in the turn with the id ``turn``
      beside it, whose evidence counts ``factor`` times.
    """

    token: str
    weight: float
    cosine: float
    turn: int | None
    factor: float
    added: float


@dataclass(frozen=True, slots=True)
class SignalShare(PlainValue):
    """The part of a signal in a hit's score: its weight in steps, its value from 0 to 1."""

    signal: str
    weight: float
    value: float
    added: float

    def __str__(self) -> str:
        return f"{self.signal} {self.added:+.3f} = {self.weight:g} steps x {self.value:.3f}"


@dataclass(frozen=True, slots=True)
class Reranked(PlainValue):
    """The reranking of a hit: ranks before and after, and the score that ordered it.

    ``by`` is "late" for the token vectors of the hit, "scores" for passed scores, else the identity
    of the reranker.
    """

    before: int
    after: int
    score: float
    by: str = "late"

    def __str__(self) -> str:
        source = {"late": "its tokens", "scores": "the passed scores"}.get(self.by, self.by)
        return f"rank {self.before:,} before, {self.after:,} by {source}: {self.score:.3f}"


@dataclass(frozen=True, slots=True)
class Boost(PlainValue):
    """The factor of a hit's score for the uses of its frame, and their count and last time."""

    factor: float
    used: int
    last_used: datetime

    def __str__(self) -> str:
        times = "once" if self.used == 1 else f"{self.used:,} times, last"
        return f"importance x {self.factor:.3f}: used {times} on {self.last_used.date()}"


@dataclass(frozen=True, slots=True)
class Explanation(PlainValue):
    """The parts of a hit's score: the share of each lane, and of each word in the text lane.

    - ``score`` is the sum of ``added`` over ``lanes`` and ``signals``, in their order, rounded to 9
      digits; with a ``boost``, times its factor and rounded again.
    - The score of the lane "text" is the same sum over ``words``.
    - ``trust`` is how far the vectors count, None if they were not compared or alone.
    - ``facts`` are the ids of facts about the question's entities that were read in the frame.
    - The score of the lane "late" is the same sum over ``tokens``, if these have weights or the
      evidence of neighbouring turns counts; a token of weight 0 is left out.
    - ``embedded`` is the text that the embedder read, if names of speakers were left out.
    - ``reranked`` has the ranks before and after reranking, which changes no score; None if no
      reranking ran, or it had no score for the frame.
    - ``beside`` are the turns beside the frame: the score of the lane "vectors" is the mean of the
      frame's score and theirs, weighted by distance.
    - ``signals`` are the signals that the frame has. ``ignored`` are the dates of the question that
      have two readings.
    """

    id: int
    score: float
    profile: Profile
    lanes: tuple[LaneShare, ...]
    words: tuple[WordScore, ...]
    facts: tuple[int, ...]
    reranked: Reranked | None = None
    boost: Boost | None = None
    tokens: tuple[TokenShare, ...] = ()
    embedded: str | None = None
    signals: tuple[SignalShare, ...] = ()
    ignored: tuple[str, ...] = ()
    trust: VectorTrust | None = None
    beside: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("id", "score")),
            "profile": plain_fields(self.profile, ("name", "version")),
            **plain_fields(self, ("lanes", "words", "facts", "reranked", "boost")),
            **plain_fields(self, ("tokens", "embedded")),
            **plain_fields(self, ("signals", "ignored", "trust", "beside")),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"#{self.id} scores {self._sum()}"
        yield f"  profile {self.profile.label}, 1 for a frame full of the question's words"
        if self.trust is not None and self.trust.trust < 1.0:
            yield f"  {self.trust}"
        if self.embedded is not None:
            yield f"  embedded without names of speakers: {self.embedded}"
        if self.boost is not None:
            yield f"  {self.boost}"
        if self.reranked is not None:
            yield f"  {self.reranked}"
        yield from (f"  signal {share}" for share in self.signals)
        for date in self.ignored:
            yield f"  ignored {date}: the order of day and month differs between countries"
        width = max(len(share.lane) for share in self.lanes)
        for share in self.lanes:
            yield f"  {share.lane:{width}}  {self._place(share)}"
            yield from (f"  {'':{width}}  {line}" for line in self._sources(share))

    def _sum(self) -> str:
        parts = [f"{share.lane} {share.added:.3f}" for share in self.lanes if share.added]
        formula = " + ".join(parts) or "0"
        if self.signals:
            formula += f" {math.fsum(share.added for share in self.signals):+.3f} of signals"
        if self.boost is not None:
            formula = f"({formula}) x {self.boost.factor:.3f}"
        return f"{self.score:.3f} = {formula}"

    def _place(self, share: LaneShare) -> str:
        if share.score is None and share.added:
            sum_ = f"{share.added:.3f} = weight {share.weight:.3g} x {share.share:.3f}"
            return f"{sum_}, as the last of its {share.found:,}: the frame has no vector"
        if share.score is None:
            return f"not among its {share.found:,}" if share.found else "found nothing"
        place = f"not among its {share.found:,}"
        if share.rank is not None:
            place = f"rank {share.rank:,} of {share.found:,}"
        sum_ = f"{share.added:.3f} = weight {share.weight:.3g} x {share.share:.3f}"
        return f"{sum_}, {place}, score {share.score:.3f}"

    def _sources(self, share: LaneShare) -> Iterator[str]:
        """Yield lines for the words or facts that matched, and for the frames left out."""
        if share.score is not None and share.lane == "vectors" and self.beside:
            turns = ", ".join(f"#{frame}" for frame in self.beside)
            yield f"mean of it and, by distance, the turns beside it: {turns}"
        if share.score is not None and share.lane == "text":
            yield from _word_lines(self.words)
        if share.score is not None and share.lane == "late":
            yield from _token_lines(self.tokens)
        if share.score is not None and share.lane == "facts":
            yield f"read in it: {', '.join(f'fact #{fact}' for fact in self.facts)}"
        if share.left_out.is_any:
            yield str(share.left_out)


def _token_lines(tokens: Sequence[TokenShare]) -> Iterator[str]:
    """Yield a line for each token with evidence, and a line that lists the tokens without."""
    matches = [token for token in tokens if token.added]
    width = max((len(token.token) for token in matches), default=0)
    for token in matches:
        place = "" if token.turn is None else f" in #{token.turn} beside it x {token.factor:.3f}"
        cosine = f"cosine {token.cosine:.3f}"
        weight = f"weight {token.weight:.3f}"
        yield f"{token.token:{width}}  {token.added:.3f} ({weight}, {cosine}{place})"
    if missing := [token.token for token in tokens if not token.added]:
        yield f"no match: {', '.join(missing)}"


def _word_lines(words: Sequence[WordScore]) -> Iterator[str]:
    """Yield a line for each word of the frame or near it, and a line for the missing words."""
    matches = [word for word in words if word.added]
    width = max((len(word.word) for word in matches), default=0)
    for word in matches:
        # A quoted phrase has no idf of its own.
        factor = f"idf {word.idf:.3f} x {word.added / word.idf:.3f}" if word.idf else "the phrase"
        near = f", {word.near:g} near" if word.near else ""
        yield f"{word.word:{width}}  {word.added:.3f} = {factor} (count {word.count}{near})"
    if missing := [word.word for word in words if not word.added]:
        yield f"not in it: {', '.join(missing)}"


# --- The change of a result of a question between two states: its ranks, its scores, and why ------


@dataclass(frozen=True, slots=True)
class ResultChange(PlainValue):
    """The change of a result of a question between two states.

    - A rank counts from 1; it and its score are None if the state's first results lack the frame.
    - ``why`` names the event that put or closed the frame, the changed scores, or the results that
      came or went above it.
    """

    _plain = ("kind", "id", "old_rank", "new_rank", "old_score", "new_score", "why")

    id: int
    old_rank: int | None
    new_rank: int | None
    old_score: float | None
    new_score: float | None
    why: str

    @property
    def kind(self) -> Literal["appeared", "vanished", "rose", "fell"]:
        """The kind of the change."""
        if self.old_rank is None:
            return "appeared"
        if self.new_rank is None:
            return "vanished"
        return "rose" if self.new_rank < self.old_rank else "fell"

    def __str__(self) -> str:
        ranks = f"{self.old_rank or '–'} → {self.new_rank or '–'}"
        return f"#{self.id} {self.kind}, rank {ranks}: {self.why}"
