"""Archive: the messages of an agent by UTC day, each day as the bytes of a file.

Owns the content of a day. Leaves out the files (`cerata.cli.exchange`). The bytes depend on nothing
but the messages: their order is that of their times, and of the log between equal times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from cerata.engine.events import JsonValue
from cerata.engine.unreadable import frame_place, readable
from cerata.projections.columnar.times import to_datetime

from .exchanges import Talk


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
