"""Counts of exchanges: the signs, words and times of their two messages, as arrays.

Owns the sums over the rows of a message. Leaves out formulas over them (`entropy`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from cerata.projections.columnar.columns import I64
from cerata.projections.messages.lexicon import SIGNS

from .exchanges import Pair, Talk

SIGN: Final = {name: place for place, name in enumerate(SIGNS)}
"""The place of each sign in a row of counts."""

Counts = npt.NDArray[np.int64]


class Counted:
    """The counts of exchanges: (exchanges, signs) of each side, words and times."""

    def __init__(self, talk: Talk, pairs: list[Pair]) -> None:
        self.talk = talk
        self.pairs = pairs
        self.questions = self._signs([pair.question for pair in pairs])
        self.replies = self._signs([pair.reply for pair in pairs])
        columns = talk.messages.columns
        words = columns.words.view()
        self.question_words: list[int] = [
            int(words[list(pair.question)].sum()) if pair.question else 0 for pair in pairs
        ]
        self.times: list[int] = [columns.created.item(pair.rows[0]) for pair in pairs]
        """The time of each exchange's first message, in microseconds since 1970 UTC."""

    def _signs(self, messages: list[tuple[int, ...]]) -> Counts:
        rows: I64 = np.array([row for message in messages for row in message], np.int64)
        counts = np.zeros((len(messages), len(SIGNS)), np.int64)
        places = [place for place, message in enumerate(messages) for _ in message]
        if len(rows):
            np.add.at(counts, places, self.talk.messages.signs(rows).astype(np.int64))
        return counts

    def question(self, place: int, sign: str) -> int:
        """Return the count of a sign in a user's message."""
        return int(self.questions[place, SIGN[sign]])

    def reply(self, place: int, sign: str) -> int:
        """Return the count of a sign in a reply."""
        return int(self.replies[place, SIGN[sign]])

    def either(self, place: int, sign: str) -> int:
        """Return the count of a sign in both messages."""
        return self.question(place, sign) + self.reply(place, sign)
