"""Threads: the conversations of an agent by thread and mode group, and their topics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.columns import I64, U32
from cerata.projections.columnar.times import to_datetime
from cerata.projections.fulltext.analyzer import term_of, word_places

from ..turns.lexicon import WINDOW
from .exchanges import Talk


@dataclass(frozen=True, slots=True)
class Thread(PlainValue):
    """A thread in a mode group, with its counts and the times of its first and last message."""

    name: str
    mode_group: str
    sessions: int
    messages: int
    first: datetime
    last: datetime


def threads_of(talk: Talk) -> list[Thread]:
    """Return the threads of an agent's messages, the one with the newest message first."""
    columns = talk.messages.columns
    names: dict[tuple[str, str], list[int]] = {}
    codes = columns.line.view()[talk.rows]
    for code in np.unique(codes).tolist():
        place = int(np.flatnonzero(codes == code)[0])
        line = talk.messages.line(int(talk.rows[place]))
        names.setdefault((line.thread, line.group), []).append(code)
    threads: list[Thread] = []
    for (thread, group), lines in names.items():
        rows = talk.rows[np.isin(codes, lines)]
        created = columns.created.view()[rows]
        threads.append(
            Thread(
                thread,
                group,
                len(np.unique(columns.session.view()[rows])),
                int(np.count_nonzero(columns.continues.view()[rows] == 0)),
                to_datetime(int(created.min())),
                to_datetime(int(created.max())),
            )
        )
    return sorted(threads, key=lambda each: (each.last, each.name), reverse=True)


# --- Topics of a thread in a mode group: the subjects that its newest messages repeat -------------
#
# An unvalidated heuristic; the constants are those of the source.


FIXATION: Final = 5
"""Mentions of a fixation, of the 12 newest messages."""

FRESH_MENTIONS: Final = 10
"""Mentions at which a topic is no longer fresh at all."""

BELOW_SHARE: Final = 0.6
"""A topic is below another that more than this share of its mentions has too."""

BELOW_MENTIONS: Final = 3
"""Mentions from which a topic may be below another."""


@dataclass(frozen=True, slots=True)
class Topic(PlainValue):
    """A topic of a thread in a mode group.

    - ``stem`` is the topic, ``word`` its word in the newest message that has it.
    - ``mentions`` counts the messages with the topic, of the 12 newest.
    - ``freshness`` is max(0, 1 − mentions / 10).
    - ``below`` is the stem of the wider topic with which the thread mostly mentions this one.
    """

    stem: str
    word: str
    mentions: int
    freshness: float
    below: str | None

    @property
    def is_fixation(self) -> bool:
        """True if 5 of the 12 newest messages have the topic."""
        return self.mentions >= FIXATION


def topics_of(talk: Talk, limit: int | None = None) -> list[Topic]:
    """Return the topics of the 12 newest messages of a thread, most mentioned first.

    Args:
        talk: The messages of a thread in a mode group.
        limit: The number of topics; default all.
    """
    window = talk.newest(WINDOW)
    by_row = talk.messages.topics(window.rows)
    # The newest first, so that equal counts keep that order.
    mentions = Counter(chain.from_iterable(reversed(by_row)))
    chosen = sorted(mentions, key=lambda stem: -mentions[stem])[:limit]
    above = _Hierarchy(talk)
    return [
        Topic(
            stem,
            _word_of(window, by_row, stem),
            mentions[stem],
            max(0.0, 1 - mentions[stem] / FRESH_MENTIONS),
            above.of(stem),
        )
        for stem in chosen
    ]


class _Hierarchy:
    """Which topics the messages of a thread, in all its history, have together."""

    def __init__(self, talk: Talk) -> None:
        columns = talk.messages.columns
        self._stems = columns.stems
        seqs: I64 = columns.topics.seq.view()
        is_here = np.isin(seqs, columns.seq.view()[talk.rows])
        self._seqs = seqs[is_here]
        self._codes: U32 = columns.topic.view()[: len(seqs)][is_here]
        self._mentions = np.bincount(self._codes, minlength=len(columns.stems) + 1)

    def of(self, stem: str) -> str | None:
        """Return the topic above a topic: that of the highest share, then the most mentioned."""
        code = self._stems.find(stem) or 0
        mentions = int(self._mentions[code])
        if mentions < BELOW_MENTIONS:
            return None
        together = self._codes[np.isin(self._seqs, self._seqs[self._codes == code])]
        counts = np.bincount(together, minlength=len(self._mentions))
        wider = np.flatnonzero(
            (counts > BELOW_SHARE * mentions) & (self._mentions > mentions)
        ).tolist()
        if not wider:
            return None
        best = max(wider, key=lambda other: (counts[other], self._mentions[other], -other))
        return self._stems.text(best)


def _word_of(window: Talk, by_row: list[list[str]], stem: str) -> str:
    """Return the word of a topic in the newest message that has it."""
    rows = zip(reversed(window.rows.tolist()), reversed(by_row), strict=True)
    for message in window.texts((row,) for row, stems in rows if stem in stems):
        return word_in(message.text, stem) or stem
    return stem


def word_in(text: str, stem: str) -> str | None:
    """Return the first word of a text that has a stem, in lower case, or None."""
    for word, start, end in word_places(text):
        if term_of(word.encode()) == stem.encode():
            return text[start:end].lower()
    return None
