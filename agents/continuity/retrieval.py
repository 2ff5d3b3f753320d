"""Retrieval for a question: exchanges of the mode group, and entries of knowledge.

Owns the factors, the choice of exchanges and of knowledge, and what a mode group may read. Leaves
out the search and its floor, which are those of every recall (`cerata.memory.search`). An exchange
scores as the better of its messages, an entry of knowledge by itself:

    exchange     score · (1 + .15 · exp(−days / 14)) · (1.8 in the same thread, unless "main")
    knowledge    score · (1 + .1 · exp(−days / 14))

Days count from the frame to the last event. Unvalidated heuristics.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.search.question_vectors import (
    QuestionVectors,
    Stored,
    vectors_of_question,
    with_vectors,
)
from cerata.memory.search.relevance import Relevant, relevant_hits
from cerata.memory.search.request import SearchRequest
from cerata.memory.search.search import run_search
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.arguments import SOURCE_HASH
from cerata.memory.values.frames import Frame
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.analyzer import words
from cerata.retrieval.ranking.profile import profile_of

from ..turns.line import (
    CHAT_MODE,
    MAIN_THREAD,
    MODE_DIMENSION,
    THREAD_DIMENSION,
    Line,
    group_of,
)
from ..turns.projection import MESSAGE_KIND
from .exchanges import ASSISTANT, Exchange, Pair, Talk

PROFILE: Final = "default"
EXCHANGES: Final = 3
"""Exchanges that a recall shows, at most; one if none clearly answers."""

KNOWLEDGE: Final = 3
"""Entries of knowledge that a recall shows, at most; one if none clearly answers."""

ENTRY_MAX: Final = 600
"""Characters of an entry of knowledge."""

KNOWLEDGE_KIND: Final = "knowledge"

_RECENCY: Final = 0.15
_RECENCY_OF_KNOWLEDGE: Final = 0.1
_RECENCY_DAYS: Final = 14.0
_SAME_THREAD: Final = 1.8
_HITS: Final = 64
_DAY_US: Final = 24 * 3_600_000_000
_MODES_OF_CHAT: Final = ("chat", "booth")


@dataclass(frozen=True, slots=True)
class RecalledExchange(PlainValue):
    """An exchange that answers a question, with its score."""

    exchange: Exchange
    score: float


@dataclass(frozen=True, slots=True)
class RecalledKnowledge(PlainValue):
    """An entry of knowledge that answers a question, with its score.

    - ``id`` is its frame, a chunk of a long document; ``text`` its first 600 characters.
    - ``uri`` and ``title`` are those of the entry or of its document; ``source_hash`` is the hash
      of its source file if that was not text, else the hash of its content, in hexadecimal.
    - ``reason`` is the rule that let the entry in.
    """

    id: int
    uri: str | None
    title: str | None
    source_hash: str
    text: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Recalled(PlainValue):
    """The exchanges that a question recalls, oldest first, and entries of knowledge, best first.

    ``reason`` is the rule that let the exchanges in, or kept all out.
    """

    exchanges: tuple[RecalledExchange, ...]
    reason: str
    knowledge: tuple[RecalledKnowledge, ...] = ()


def recalled_for(
    snapshot: Snapshot,
    line: Line,
    question: str,
    *,
    shown: Collection[int] = (),
    of_user: bool = False,
    profile: str = PROFILE,
    floor: bool = True,
    vectors: Stored | None = None,
) -> Recalled:
    """Return the exchanges of a mode group, and the knowledge, that answer a question.

    Args:
        snapshot: The state, within the line's base scope.
        line: The thread and mode group of the session.
        question: The question, in plain language.
        shown: Messages that the context shows already; their exchanges are not recalled.
        of_user: True to search the user's messages alone; default False.
        profile: The name of the profile that ranks; default "default".
        floor: False to recall the best hits of any question; default True.
        vectors: The vectors of the question; default those of the store's embedder.
    """
    if not words(question):
        return Recalled((), "the question has no word")
    snapshot = snapshot.log_only
    talk = Talk(snapshot, line.agent, group=line.group)
    recall = _Recall(snapshot, line, talk, question, profile, floor, vectors)
    exchanges, reason = recall.exchanges(set(shown), of_user=of_user)
    return Recalled(tuple(exchanges), reason, tuple(recall.knowledge()))


@dataclass(frozen=True, slots=True)
class _Recall:
    """A question to the messages and the knowledge of a line."""

    snapshot: Snapshot
    line: Line
    talk: Talk
    question: str
    profile: str
    floor: bool
    vectors: Stored | None

    def exchanges(self, shown: set[int], *, of_user: bool) -> tuple[list[RecalledExchange], str]:
        """Return the recalled exchanges, oldest first, and the rule."""
        if not len(self.talk):
            return [], "there are no messages"
        where = Filter(kind=MESSAGE_KIND, track=self.line.agent) & _of_group(self.line.group)
        if of_user:
            where &= ~Filter(role=ASSISTANT)
        relevant = self._relevant(where)
        if relevant.confidence == "none":
            return [], "nothing is close enough to the question"
        scores = {hit.id: hit.score for hit in relevant.hits}
        count = 1 if relevant.confidence == "unclear" else EXCHANGES
        return self._best(scores, shown, count), _reason(relevant)

    def knowledge(self) -> list[RecalledKnowledge]:
        """Return the recalled entries of knowledge, best first."""
        # Most memories have no knowledge, so the look at kinds alone saves a search.
        of_kind = Filter(kind=KNOWLEDGE_KIND)
        masks = self.snapshot.layers.admitted(of_kind, include_superseded=False)
        if not any(mask.any() for mask in masks):
            return []
        relevant = self._relevant(_knowledge_of(self.line))
        scored: list[tuple[float, Frame]] = []
        scores = {hit.id: hit.score for hit in relevant.hits}
        for frame in readable(scores, self.snapshot.frame_at, frame_place):
            # Again, besides the filter of the search: no other mode group, thread or kind.
            if frame.kind == KNOWLEDGE_KIND and _is_of_line(frame.scope, self.line):
                created = to_microseconds(frame.created)
                scored.append(
                    (scores[frame.id] * self._recency(created, _RECENCY_OF_KNOWLEDGE), frame)
                )
        scored.sort(key=lambda item: (-item[0], item[1].id))
        count = 1 if relevant.confidence == "unclear" else KNOWLEDGE
        reason = _reason(relevant)
        return [self._entry(frame, score, reason) for score, frame in scored[:count]]

    def _relevant(self, where: Filter) -> Relevant:
        request = _request(self.question, self.profile, where)
        if self.vectors is not None:
            request = with_vectors(self.snapshot, request, self.vectors)
        result = run_search(self.snapshot, request)
        return relevant_hits(result, floor=self.floor)

    def _pair_of(self, row: int) -> tuple[Talk, Pair]:
        """Return the session of a message's row, and its exchange."""
        sessions = self.talk.messages.columns.session
        places = sessions.view()[self.talk.rows] == sessions.item(row)
        session = self.talk.at(np.flatnonzero(places))
        return session, next(pair for pair in session.pairs() if row in pair.rows)

    def _recency(self, created_us: int, weight: float) -> float:
        days = max(0, self.snapshot.head.recorded - created_us) / _DAY_US
        return 1 + weight * math.exp(-days / _RECENCY_DAYS)

    def _entry(self, frame: Frame, score: float, rule: str) -> RecalledKnowledge:
        document = frame
        if frame.parent is not None and frame.chunk_index is not None:
            # Without the document the entry has no more than its own fields.
            document = next(readable([frame.parent], self.snapshot.frame_at, frame_place), frame)
        # A file that was read as text has the hash of its content alone.
        of_content = "" if document.content_hash is None else document.content_hash.hex()
        return RecalledKnowledge(
            id=frame.id,
            uri=frame.uri or document.uri,
            title=frame.title or document.title,
            source_hash=str(document.metadata.get(SOURCE_HASH, of_content)),
            text=frame.text[:ENTRY_MAX],
            score=score,
            reason=rule,
        )

    def _best(
        self, hits: Mapping[int, float], shown: set[int], count: int
    ) -> list[RecalledExchange]:
        talk, line = self.talk, self.line
        columns = talk.messages.columns
        seqs = columns.seq.view()
        here = set(talk.rows.tolist())
        scores: dict[int, float] = {}
        for frame, score in hits.items():
            row = int(np.searchsorted(seqs, frame))
            # Again, besides the filter of the search: no other mode group, no closed message.
            if row in here:
                is_same = talk.messages.line(row).thread == line.thread != MAIN_THREAD
                factor = self._recency(columns.created.item(row), _RECENCY)
                scores[row] = score * factor * (_SAME_THREAD if is_same else 1.0)
        best: list[tuple[float, Exchange]] = []
        known: set[int] = set()
        for row in sorted(scores, key=lambda row: (-scores[row], row)):
            if len(best) == count:
                break
            if row in known:
                continue
            session, pair = self._pair_of(row)
            known.update(pair.rows)
            best += [
                (scores[row], exchange)
                for exchange in session.exchanges([pair])
                if shown.isdisjoint(message.id for message in exchange.messages)
            ]
        best.sort(key=lambda item: item[1].id)
        return [RecalledExchange(exchange, score) for score, exchange in best]


def _reason(relevant: Relevant) -> str:
    """Return the rule that let hits in."""
    note = ", which is no clear answer" if relevant.confidence == "unclear" else ""
    return f"a score of {relevant.score:.2f}{note}"


def vectors_for(snapshot: Snapshot, question: str) -> QuestionVectors:
    """Return the vectors of a question to messages and knowledge.

    Raises:
        EmbedderFailed: the embedder could not embed the question.
    """
    if not words(question):
        return QuestionVectors()
    request = _request(question, PROFILE, Filter(kind=MESSAGE_KIND))
    return vectors_of_question(snapshot.log_only, request)


def _request(question: str, profile: str, where: Filter) -> SearchRequest:
    return SearchRequest(
        query=question,
        k=_HITS,
        mode="hybrid",
        profile=profile_of(profile),
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


def _knowledge_of(line: Line) -> Filter:
    """Return the filter of the knowledge of a line: without mode or thread it is of each."""
    of_mode = Filter(absent=[f"scope.{MODE_DIMENSION}"]) | _of_group(line.group)
    of_thread = Filter(absent=[f"scope.{THREAD_DIMENSION}"])
    of_thread |= Filter(scope={THREAD_DIMENSION: line.thread})
    return Filter(kind=KNOWLEDGE_KIND) & of_mode & of_thread


def _is_of_line(scope: Mapping[str, object], line: Line) -> bool:
    """Return whether knowledge with a scope is of a line."""
    mode, thread = scope.get(MODE_DIMENSION), scope.get(THREAD_DIMENSION)
    return (mode is None or group_of(str(mode)) == line.group) and thread in (None, line.thread)
