"""Counts of exchanges: the signs, words and times of their two messages, as arrays.

Owns the sums over the rows of a message. Leaves out formulas over them (`entropy`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cerata.projections.columnar.columns import I64, U8, Mask

from ..turns.lexicon import SIGN, SIGNS
from .exchanges import Pair, Talk


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
