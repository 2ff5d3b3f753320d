"""Readings of an agent's conversations, as of the head or a basis.

Owns `Readings`, a part of `Agent`. Leaves out the rules of each reading, which have their modules.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from cerata.engine.events import JsonValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.times import to_datetime

from ..text.names import check_label
from ..turns.line import CHAT_MODE, MAIN_THREAD, group_of
from .candidates import Candidate, candidates_of
from .entropy import Entropy, newest_entropy
from .exchanges import Talk
from .handoff import Handoff, handoff_of
from .periods import LEVELS
from .reflecting import newest_assessment
from .standing import Score, Wellbeing, standing_of, wellbeing_of
from .summaries import Summaries, Summary
from .threads import Thread, Topic, threads_of, topics_of


class Readings(ABC):
    """The readings of an agent's conversations; each is computed from the log, and never stored."""

    _name: str
    _timezone: str

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """Return the state that is read."""

    def _talk(self, thread: str | None = None, mode: str | None = None) -> Talk:
        for field, label in (("thread", thread), ("mode", mode)):
            if label is not None:
                check_label(field, label)
        group = None if mode is None else group_of(mode)
        return Talk(self._snapshot(), self._name, thread=thread, group=group)

    def threads(self) -> list[Thread]:
        """Return the threads, a line for each mode group, the most recent first."""
        return threads_of(self._talk())

    def topics(self, thread: str = MAIN_THREAD, mode: str = CHAT_MODE) -> list[Topic]:
        """Return the topics of a thread's 12 newest messages, the most mentioned first.

        Args:
            thread: The thread; default "main".
            mode: A mode, of whose group the messages are; default "chat".
        """
        return topics_of(self._talk(thread, mode))

    def entropy(self, thread: str = MAIN_THREAD, mode: str = CHAT_MODE) -> Entropy | None:
        """Return the entropy of a thread's newest exchange; None without one.

        Args:
            thread: The thread; default "main".
            mode: A mode, of whose group the messages are; default "chat".
        """
        return newest_entropy(self._talk(thread, mode))

    def standing(self) -> list[Score]:
        """Return four scores of how the user talks, with the patterns that changed them."""
        talk = self._talk()
        return standing_of(talk, newest_assessment(talk.snapshot, self._name))

    def wellbeing(self) -> Wellbeing | None:
        """Return how long the user has talked without a pause; None without messages."""
        return wellbeing_of(self._talk())

    def handoff(self, thread: str = MAIN_THREAD, mode: str = CHAT_MODE) -> Handoff:
        """Return the state of a thread for an agent that comes back; `str()` renders it.

        Args:
            thread: The thread; default "main".
            mode: A mode, of whose group the messages are; default "chat".
        """
        talk = self._talk(thread, mode)
        count = 0
        if len(talk):
            line = talk.messages.line(int(talk.rows[-1]))
            count = Summaries(talk.snapshot, self._name).compactions(line)
        return handoff_of(talk, thread, group_of(mode), self._timezone, count)

    def summaries(self, thread: str = MAIN_THREAD, mode: str = CHAT_MODE) -> list[Summary]:
        """Return the current summaries of a thread, by level and period.

        Args:
            thread: The thread; default "main".
            mode: A mode, of whose group the summaries are; default "chat".
        """
        self._talk(thread, mode)
        summaries = Summaries(self._snapshot(), self._name)
        of_thread = (
            (line, period, frame)
            for line in summaries.lines
            if (line.thread, line.group) == (thread, group_of(mode))
            for level in range(len(LEVELS))
            for period, frames in summaries.made(line, level).items()
            for frame in frames
        )
        return [
            *readable(
                of_thread, lambda each: summaries.value(*each), lambda each: frame_place(each[2])
            )
        ]

    def candidates(self) -> list[Candidate]:
        """Return the exchanges that the agent thinks about, oldest first."""
        snapshot = self._snapshot()
        lines = Summaries(snapshot, self._name).lines
        return candidates_of(snapshot, self._name, lines)


# --- Archive: the messages of an agent by UTC day, each day as the bytes of a file ----------------
#
# The bytes depend on nothing but the messages: their order is that of their times, and of the log
# between equal times.


@dataclass(frozen=True, slots=True)
class ArchivedDay:
    """A UTC day, such as "2026-01-07", with the number of its messages and its JSON.

    ``unreadable`` counts the messages that were left out.
    """

    date: str
    count: int
    data: bytes
    unreadable: int


def archived_days(talk: Talk) -> Iterator[ArchivedDay]:
    """Yield each UTC day with messages, in order. Cost: a read for each message."""
    created = talk.messages.columns.created

    def time_of(rows: tuple[int, ...]) -> int:
        return created.item(rows[0])

    def day_of(rows: tuple[int, ...]) -> str:
        return to_datetime(time_of(rows)).date().isoformat()

    def place(rows: tuple[int, ...]) -> str:
        return frame_place(talk.messages.columns.seq.item(rows[0]))

    # The sort keeps the order of the log between equal times.
    for date, messages in groupby(sorted(talk.grouped(), key=time_of), day_of):
        of_day = [*messages]
        yield _archived(date, [*readable(of_day, partial(_plain, talk), place)], len(of_day))


def _archived(date: str, messages: list[JsonValue], total: int) -> ArchivedDay:
    count = len(messages)
    day: dict[str, JsonValue] = {"date": date, "count": count, "messages": messages}
    text = json.dumps(day, ensure_ascii=False, indent=2) + "\n"
    return ArchivedDay(date, count, text.encode(), total - count)


def _plain(talk: Talk, rows: tuple[int, ...]) -> JsonValue:
    message = talk.message(rows)
    messages = talk.messages
    return {
        "role": message.role,
        "text": message.text,
        "created": message.created.isoformat(),
        "session": message.session,
        "thread": messages.line(rows[0]).thread,
        "mode": messages.name(messages.columns.mode.item(rows[0])),
    }
