"""Entropy of exchanges: how far a conversation leaves its course. An unvalidated heuristic.

Owns the sum of its parts, in whole hundredths, the calm answer and the levels. Leaves out the other
parts (`cerata.agents.turns.measures`). An exchange over .60 calms a later answer by
its other parts alone, so that the entropy of an exchange depends on 6 hours before it, and not on
all of the thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.columns import I64, U8, Mask

from ..turns.lexicon import SIGN, SIGNS
from ..turns.measures import CALM, CALM_US, CALMED, META_EXCHANGES, entropy_parts
from .exchanges import Pair, Talk

Level: TypeAlias = Literal["calm", "active", "elevated", "critical"]

ACTIVE: Final = 40
ELEVATED: Final = 80
CRITICAL: Final = 100

_SUSTAINED_US: Final = 45 * 60_000_000
_LOOKED_AT: Final = 64
"""Exchanges of which the newest entropy is computed, at least."""


@dataclass(frozen=True, slots=True)
class Entropy(PlainValue):
    """The entropy of an exchange.

    - ``value`` is the sum of ``parts``, in hundredths; ``level`` names it.
    - ``is_sustained``: this exchange and those right before it, over .40, span 45 minutes.
    """

    exchange: int
    value: float
    level: Level
    parts: dict[str, float]
    is_sustained: bool


class Entropies:
    """The entropies of exchanges that follow each other in a thread.

    ``values`` are in whole hundredths, one for each exchange. The first exchanges look at none
    before them.
    """

    def __init__(self, talk: Talk, pairs: Sequence[Pair]) -> None:
        """Compute the entropies.

        Args:
            talk: The messages of the thread and mode group.
            pairs: Exchanges of it, in order.
        """
        self._counted = counted = Counted(talk, pairs)
        self._parts = _parts(counted, _new_topics(talk, counted))
        bare: I64 = np.stack([*self._parts.values()]).sum(axis=0)
        self._parts["calm"] = _calm(counted, bare)
        self.values: I64 = bare + self._parts["calm"]

    def of(self, place: int) -> Entropy:
        """Return the entropy of an exchange."""
        value = int(self.values[place])
        parts = {name: int(part[place]) / 100 for name, part in self._parts.items() if part[place]}
        return Entropy(
            exchange=self._counted.seqs[place],
            value=value / 100,
            level=_level(value),
            parts=parts,
            is_sustained=self._is_sustained(place),
        )

    def _is_sustained(self, place: int) -> bool:
        """Return whether this exchange and those right before it, over .40, span 45 minutes."""
        calm = np.flatnonzero(self.values[: place + 1] <= ACTIVE)
        first = int(calm[-1]) + 1 if len(calm) else 0
        times = self._counted.times
        return first <= place and int(times[place] - times[first]) >= _SUSTAINED_US


def newest_entropy(talk: Talk) -> Entropy | None:
    """Return the entropy of a thread's newest exchange, or None without an exchange."""
    count = 2 * _LOOKED_AT
    while True:
        pairs = talk.newest(count).pairs()
        columns = talk.messages.columns
        is_whole = count >= len(talk)
        times = [columns.created.item(pair.rows[0]) for pair in pairs]
        if is_whole or (len(pairs) > META_EXCHANGES and times[-1] - times[0] > CALM_US):
            return Entropies(talk, pairs).of(len(pairs) - 1) if pairs else None
        count *= 4


def _parts(counted: Counted, new_topics: I64) -> dict[str, I64]:
    """Return the parts of entropies but the calm answer, in hundredths; (exchanges,) each."""
    metas = np.convolve(counted.reply("meta"), np.ones(META_EXCHANGES, np.int64))[: len(counted)]
    return entropy_parts(
        counted.question,
        counted.reply,
        counted.question_words,
        counted.has_question,
        metas,
        new_topics,
    )


def _calm(counted: Counted, bare: I64) -> I64:
    """Return the part of calm answers within 6 hours after an exchange over .60."""
    parts = np.zeros(len(counted), np.int64)
    over = np.flatnonzero(bare > CALMED)
    for place in np.flatnonzero(counted.reply("calm") > 0).tolist():
        ages = counted.times[place] - counted.times[over[: np.searchsorted(over, place)]]
        if bool(((ages >= 0) & (ages <= CALM_US)).any()):
            parts[place] = CALM
    return parts


def _new_topics(talk: Talk, counted: Counted) -> I64:
    """Return how many topics of each exchange no earlier message of the thread has."""
    columns = talk.messages.columns
    seqs = np.sort(columns.seq.view()[talk.rows])
    of_topics = columns.topics.seq.view()
    starts = np.searchsorted(of_topics, seqs)
    counts = np.searchsorted(of_topics, seqs, side="right") - starts
    before = np.cumsum(counts) - counts
    at: I64 = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    # The topics are in order of seq, so the first of each code is its first mention.
    _, places = np.unique(columns.topic.view()[at], return_index=True)
    return counted.by_exchange(np.repeat(seqs, counts)[places])


def _level(value: int) -> Level:
    if value > CRITICAL:
        return "critical"
    if value > ELEVATED:
        return "elevated"
    return "active" if value > ACTIVE else "calm"


# --- Counts of exchanges: the signs, words and times of their two messages, as arrays -------------


class Counted:
    """The counts of exchanges: signs of each side, words of questions, times."""

    def __init__(self, talk: Talk, pairs: Sequence[Pair]) -> None:
        """Count exchanges, in their order."""
        columns = talk.messages.columns
        self._size = len(pairs)
        firsts: I64 = np.array([pair.rows[0] for pair in pairs], np.int64)
        self.times: I64 = columns.created.view()[firsts]
        """The time of each exchange's first message, in microseconds since 1970 UTC."""
        self.seqs: list[int] = columns.seq.view()[firsts].tolist()
        """The frame of each exchange's first message."""
        question_rows, self._of_question = _flat([pair.question for pair in pairs])
        reply_rows, self._of_reply = _flat([pair.reply for pair in pairs])
        self._question_seqs = columns.seq.view()[question_rows]
        self._reply_seqs = columns.seq.view()[reply_rows]
        signs = talk.messages.signs
        self._questions = self._summed(signs(question_rows), self._of_question)
        self._replies = self._summed(signs(reply_rows), self._of_reply)
        self.has_question: Mask = np.zeros(self._size, np.bool_)
        self.has_question[self._of_question] = True
        self.question_words: I64 = np.zeros(self._size, np.int64)
        np.add.at(self.question_words, self._of_question, columns.words.view()[question_rows])

    def __len__(self) -> int:
        return self._size

    def question(self, sign: str) -> I64:
        """Return the counts of a sign in the users' messages; (exchanges,)."""
        return self._questions[:, SIGN[sign]]

    def reply(self, sign: str) -> I64:
        """Return the counts of a sign in the replies; (exchanges,)."""
        return self._replies[:, SIGN[sign]]

    def by_exchange(self, messages: I64) -> I64:
        """Return how many of some messages, by their frames, each exchange has; (exchanges,)."""
        counts = np.zeros(self._size, np.int64)
        for seqs, places in (
            (self._question_seqs, self._of_question),
            (self._reply_seqs, self._of_reply),
        ):
            order = np.argsort(seqs, kind="stable")
            ranked = seqs[order]
            at = np.searchsorted(ranked, messages)
            inside = at < len(ranked)
            at, wanted = at[inside], messages[inside]
            np.add.at(counts, places[order[at[ranked[at] == wanted]]], 1)
        return counts

    def _summed(self, signs: U8, places: I64) -> I64:
        counts = np.zeros((self._size, len(SIGNS)), np.int64)
        np.add.at(counts, places, signs.astype(np.int64))
        return counts


def _flat(messages: Sequence[tuple[int, ...]]) -> tuple[I64, I64]:
    """Return the rows of messages end to end, and the place of each row's message."""
    rows = np.array([row for message in messages for row in message], np.int64)
    places = np.array([place for place, message in enumerate(messages) for _ in message], np.int64)
    return rows, places
