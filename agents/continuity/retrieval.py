"""Retrieval of exchanges for a question: ranked, gated, and of the mode group alone.

Owns the boosts, the gate and the choice. Leaves out the search, which is that of the profile "chat"
(`cerata.memory.search`). An exchange scores as the better of its messages:

    score · (1 + .15 · exp(−days / 14)) · (1.8 in the same thread, unless that is "main")

Days count from the message to the last event. The gate recalls exchanges only if the best cosine
is at least .5, or .155 while the agent has fewer than 2,000 exchanges; or if a message has a proper
noun of the question; or if the question asks for memory. Without vectors the words found in the
best message must carry half of the question's weight. Unvalidated heuristics; that half is ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.memory.search.request import SearchRequest
from cerata.memory.search.result import SearchResult
from cerata.memory.search.search import run_search
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.analyzer import terms, words
from cerata.projections.messages.lexicon import SIGNS, english_lexicon
from cerata.projections.messages.line import CHAT_MODE, MAIN_THREAD, MODE_DIMENSION, Line
from cerata.projections.messages.projection import MESSAGE_KIND
from cerata.retrieval.proper_nouns import proper_nouns
from cerata.retrieval.ranking.profiles import profile_of

from .exchanges import ASSISTANT, Exchange, Talk

PROFILE: Final = "chat"
EXCHANGES: Final = 3
"""Exchanges that a recall shows, at most."""

_RECENCY: Final = 0.15
_RECENCY_DAYS: Final = 14.0
_SAME_THREAD: Final = 1.8
_COSINE: Final = 0.5
_COSINE_OF_FEW: Final = 0.155
_FEW_EXCHANGES: Final = 2_000
_WORDS: Final = 0.5
_HITS: Final = 64
_DAY_US: Final = 24 * 3_600_000_000
_MODES_OF_CHAT: Final = ("chat", "booth")


@dataclass(frozen=True, slots=True)
class RecalledExchange(PlainValue):
    """An exchange that answers a question, with its score."""

    exchange: Exchange
    score: float


@dataclass(frozen=True, slots=True)
class Recalled(PlainValue):
    """The exchanges that a question recalls, oldest first.

    ``reason`` is the rule that let them in, or kept all out.
    """

    exchanges: tuple[RecalledExchange, ...]
    reason: str


def recalled_for(
    snapshot: Snapshot,
    line: Line,
    question: str,
    *,
    shown: Collection[int] = (),
    of_user: bool = False,
) -> Recalled:
    """Return the exchanges of a mode group that answer a question.

    Args:
        snapshot: The state, within the line's base scope.
        line: The thread and mode group of the session.
        question: The question, in plain language.
        shown: Messages that the context shows already; their exchanges are not recalled.
        of_user: True to search the user's messages alone; default False.
    """
    if not words(question):
        return Recalled((), "the question has no word")
    snapshot = snapshot.log_only
    talk = Talk(snapshot, line.agent, group=line.group)
    if not len(talk):
        return Recalled((), "there are no messages")
    result = run_search(snapshot, _request(line, question, of_user=of_user))
    reason = _admitted_by(result, talk, question)
    if reason is None:
        return Recalled((), "nothing is close enough to the question")
    best = _best(result, talk, line, set(shown))
    return Recalled(tuple(best), reason)


def _request(line: Line, question: str, *, of_user: bool) -> SearchRequest:
    where = Filter(kind=MESSAGE_KIND, track=line.agent) & _of_group(line.group)
    if of_user:
        where &= ~Filter(role=ASSISTANT)
    return SearchRequest(
        query=question,
        k=_HITS,
        mode="hybrid",
        profile=profile_of(PROFILE),
        where=where,
        embedding=None,
        space=None,
        approximate=False,
        token_embedding=None,
        tokens_space=None,
        rerank=None,
    )


def _of_group(group: str) -> Filter:
    """Return the filter of the messages of a mode group; those without a mode are of chat."""
    if group != CHAT_MODE:
        return Filter(scope={MODE_DIMENSION: group})
    where = Filter(absent=[f"scope.{MODE_DIMENSION}"])
    for mode in _MODES_OF_CHAT:
        where |= Filter(scope={MODE_DIMENSION: mode})
    return where


def _admitted_by(result: SearchResult, talk: Talk, question: str) -> str | None:
    """Return the rule that lets the gate pass, or None."""
    asks = english_lexicon().counts(question, words(question), is_users=True)
    if asks.signs[SIGNS.index("recall")]:
        return "the question asks for memory"
    nouns = proper_nouns(question)
    if nouns and any(
        not set(nouns).isdisjoint(terms(talk.snapshot.frame_at(hit.id).text)) for hit in result.best
    ):
        return "a name of the question occurs"
    if result.cosines:
        exchanges = int(np.count_nonzero(talk.messages.columns.by_agent.view()[talk.rows] == 0))
        least = _COSINE_OF_FEW if exchanges < _FEW_EXCHANGES else _COSINE
        best = max(result.cosines.values())
        return f"a cosine of {best:.2f}" if best >= least else None
    by_words = [hit.id for hit in result.best if "text" in hit.lanes][:1]
    share = max((result.share_of_words(frame) for frame in by_words), default=0.0)
    return "the words of the question occur" if share >= _WORDS else None


def _best(result: SearchResult, talk: Talk, line: Line, shown: set[int]) -> list[RecalledExchange]:
    columns = talk.messages.columns
    seqs = columns.seq.view()
    here = set(talk.rows.tolist())
    basis_us = talk.snapshot.head.recorded
    scores: dict[int, float] = {}
    for hit in result.best:
        row = int(np.searchsorted(seqs, hit.id))
        # Again, besides the filter of the search: no other mode group, no closed message.
        if row in here:
            days = max(0, basis_us - columns.created.item(row)) / _DAY_US
            boost = 1 + _RECENCY * math.exp(-days / _RECENCY_DAYS)
            is_same = talk.messages.line(row).thread == line.thread != MAIN_THREAD
            scores[row] = hit.score * boost * (_SAME_THREAD if is_same else 1.0)
    best: list[tuple[float, Exchange]] = []
    known: set[int] = set()
    for row in sorted(scores, key=lambda row: (-scores[row], row)):
        if len(best) == EXCHANGES:
            break
        if row in known:
            continue
        places = columns.session.view()[talk.rows] == columns.session.item(row)
        session = talk.at(np.flatnonzero(places))
        pair = next(pair for pair in session.pairs() if row in pair.rows)
        known.update(pair.rows)
        exchange = session.exchange(pair)
        if shown.isdisjoint(message.id for message in exchange.messages):
            best.append((scores[row], exchange))
    best.sort(key=lambda item: item[1].id)
    return [RecalledExchange(exchange, score) for score, exchange in best]
