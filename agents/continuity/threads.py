"""Threads: the conversations of an agent by thread and mode group.

Owns the list of threads. Leaves out the topics of a thread (`topics`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.times import to_datetime

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
