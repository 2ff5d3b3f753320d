"""Handoff: the state of a thread for an agent that comes back, as of a basis.

Owns `Handoff` and its text. Leaves out topics, anchors and the state of the relation, which have
their modules. Every text from memory is quoted on one line, so it cannot begin a line as ours do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ..text.summaries import quoted
from ..turns.lexicon import SIGN, WINDOW
from .descriptions import (
    RelationalState,
    anchors_of,
    description_of,
    newest_session,
    relational_state,
)
from .exchanges import Message, Talk
from .threads import topics_of

Age: TypeAlias = Literal["fresh", "recent", "stale", "orphaned"]

TOPICS: Final = 5
KEY_POINTS: Final = 5
MESSAGES: Final = 4
TEXT_MAX: Final = 200
"""Characters of a message that a handoff shows."""
TENSIONS: Final = 3
FIXATIONS: Final = 2
COMMITMENTS: Final = 5

_HOUR_US: Final = 3_600_000_000
_FRESH_US: Final = 2 * _HOUR_US
_RECENT_US: Final = 24 * _HOUR_US
_STALE_US: Final = 14 * _RECENT_US
"""The last of these limits is ours."""


@dataclass(frozen=True, slots=True)
class Handoff(PlainValue):
    """The newest messages of a thread and its open ends; `str()` renders it.

    - ``mode``, ``title`` and ``project`` are those of the last session.
    - ``threads`` are the words of the 5 most mentioned topics, ``key_points`` the 5 heaviest
      anchors.
    - ``messages`` are the last 4, cut at 200 characters.
    - ``tensions``, ``fixations`` and ``commitments`` are open; the first and last are of the
      last session.
    - ``age`` counts from the last message to the view's now: "fresh" under 2 hours, then "recent",
      "stale" from a day, "orphaned" from 14 days.
    - ``compactions`` counts the summaries of a running day since the last session started.
    - ``sources`` are the frames that have a part of the text, ascending.
    """

    thread: str
    mode_group: str
    session: str | None
    last: datetime | None
    age: Age | None
    state: RelationalState | None
    topics: tuple[str, ...]
    key_points: tuple[str, ...]
    messages: tuple[Message, ...]
    tensions: tuple[str, ...]
    fixations: tuple[str, ...]
    commitments: tuple[str, ...]
    compactions: int
    timezone: str
    sources: tuple[int, ...] = ()
    mode: str | None = None
    title: str | None = None
    project: str | None = None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def is_empty(self) -> bool:
        """True if the thread has no messages; the text is then empty."""
        return self.last is None

    def lines(self) -> list[str]:
        """Return the lines of the text; none for an empty handoff."""
        if self.last is None:
            return []
        time = self.last.astimezone(ZoneInfo(self.timezone))
        project = "" if self.project is None else f", project {quoted(self.project)}"
        place = f"Session {self.session}, thread {self.thread}, mode {self.mode}{project}."
        when = f"Last message {time:%Y-%m-%d %H:%M} ({self.timezone}), {self.age}."
        lines = [f"{place} {when} The conversation is {self.state}."]
        if self.title:
            lines.append(f"Title: {quoted(self.title)}.")
        if self.topics:
            lines.append(f"Topics: {', '.join(self.topics)}.")
        for title, texts in (
            ("Key points", self.key_points),
            ("Tensions", self.tensions),
            ("They keep coming back to", self.fixations),
            ("Open", self.commitments),
        ):
            if texts:
                lines.append(f"{title}: {'; '.join(map(quoted, texts))}.")
        lines += [f"{message.role}: {quoted(message.text)}" for message in self.messages]
        if self.compactions:
            lines.append(f"Compacted {self.compactions:,} times since the session started.")
        return lines


def handoff_of(talk: Talk, thread: str, group: str, timezone: str, compactions: int) -> Handoff:
    """Return the handoff of a thread in a mode group.

    Args:
        talk: The messages of the thread in the mode group.
        thread: The thread.
        group: The mode group.
        timezone: The IANA name of the zone in which times are shown.
        compactions: The summaries of a running day since the newest session started.
    """
    if not len(talk):
        return Handoff(thread, group, None, None, None, None, (), (), (), (), (), (), 0, timezone)
    session = newest_session(talk)
    newest = talk.newest(MESSAGES).grouped()[-MESSAGES:]
    messages = talk.texts(newest)
    columns = talk.messages.columns
    last = to_datetime(max(columns.created.item(rows[0]) for rows in newest))
    described = description_of(session)
    topics = topics_of(talk)
    anchors = anchors_of(session)
    tensions = _rows_with(session, "tension", TENSIONS)
    commitments = _rows_with(session, "commitment", COMMITMENTS)
    seqs = columns.seq
    rows = {*talk.newest(WINDOW).rows.tolist(), *chain(*newest), *tensions, *commitments}
    sources = {seqs.item(row) for row in rows} | {each.message for each in anchors}
    sources.update(described.sources)
    return Handoff(
        thread=thread,
        mode_group=group,
        session=talk.messages.name(columns.session.item(newest[-1][0])),
        last=last,
        age=_age(to_microseconds(talk.snapshot.now) - to_microseconds(last)),
        state=relational_state(session, len(session.pairs())),
        topics=tuple(topic.word for topic in topics[:TOPICS]),
        key_points=tuple(dict.fromkeys(each.text for each in anchors))[:KEY_POINTS],
        messages=tuple(replace(each, text=each.text[:TEXT_MAX]) for each in messages),
        tensions=_texts_of(session, tensions),
        fixations=tuple(topic.word for topic in topics if topic.is_fixation)[:FIXATIONS],
        commitments=_texts_of(session, commitments),
        compactions=compactions,
        timezone=timezone,
        sources=tuple(sorted(sources)),
        mode=described.mode,
        title=described.title,
        project=described.project,
    )


def _age(age_us: int) -> Age:
    if age_us < _FRESH_US:
        return "fresh"
    if age_us < _RECENT_US:
        return "recent"
    return "stale" if age_us < _STALE_US else "orphaned"


def _rows_with(session: Talk, sign: str, limit: int) -> list[int]:
    """Return the rows of the newest messages of a session with a sign, oldest first."""
    has = session.messages.signs(session.rows)[:, SIGN[sign]] > 0
    rows: list[int] = session.rows[has][-limit:].tolist()
    return rows


def _texts_of(session: Talk, rows: Sequence[int]) -> tuple[str, ...]:
    """Return the messages of rows, cut."""
    return tuple(message.text[:TEXT_MAX] for message in session.texts((row,) for row in rows))
