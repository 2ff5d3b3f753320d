"""Descriptions: the mode, the title and the project of a session, for handoffs and lists.

Owns the look-up as of a basis. A mode group holds the messages of several modes, so the mode is
that of the session's newest message.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cerata.engine.events import ScopeValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.frames.filters import Filter

from ..text.json_text import decoded
from ..text.names import VALUE_KIND
from ..turns.line import (
    CHAT_MODE,
    MODE_DIMENSION,
    SESSION_DIMENSION,
    Line,
)
from .exchanges import Talk
from .periods import day_of
from .summaries import Summaries

PROJECT: Final = "project"
"""The slot of a session that names its project. On disk: never change it."""

TITLE_WORDS: Final = 8
"""Words of a session's first message that are its title; ours."""


class Description(NamedTuple):
    """The mode, title and project of a session; ``sources`` are the frames that have them."""

    mode: str
    title: str | None
    project: str | None
    sources: tuple[int, ...]


def description_of(session: Talk) -> Description:
    """Return the description of a session by its messages; at least one."""
    columns = session.messages.columns
    row = session.grouped()[-1][0]
    newest, name = columns.seq.item(row), session.messages.name(columns.session.item(row))
    line = session.messages.line(int(session.rows[-1]))
    mode = dict(session.snapshot.layers.scope_of(newest) or ()).get(MODE_DIMENSION, CHAT_MODE)
    title, of_title = title_of(session, line)
    project = _project_of(session.snapshot, session.agent, name, line)
    sources = (newest, of_title) if project is None else (newest, of_title, project[1])
    return Description(str(mode), title, None if project is None else project[0], sources)


def title_of(session: Talk, line: Line) -> tuple[str, int]:
    """Return the title of a session with messages, and the frame that has it.

    It is that of the newest day summary with the session, else the first 8 words.
    """
    columns = session.messages.columns
    summaries = Summaries(session.snapshot, line.agent).made(line, 0)
    days = {day_of(columns.created.item(row)) for row in session.rows.tolist()}
    for period in sorted(days.intersection(summaries), reverse=True):
        for summary in readable(summaries[period][-1:], session.snapshot.frame_at, frame_place):
            if summary.title is not None:
                return summary.title, summary.id
    groups = session.grouped()
    seqs = columns.seq
    texts = readable(groups, session.message, lambda rows: frame_place(seqs.item(rows[0])))
    first = next(texts, None)
    if first is None:
        return "", seqs.item(groups[0][0])
    return " ".join(first.text.split()[:TITLE_WORDS]), first.id


def _project_of(snapshot: Snapshot, agent: str, session: str, line: Line) -> tuple[str, int] | None:
    """Return the newest value of a session's slot `project` within its scope, and the frame."""
    scope: dict[str, ScopeValue] = {**dict(line.base), SESSION_DIMENSION: session}
    where = Filter(track=f"{agent}/{PROJECT}", kind=VALUE_KIND, scope=scope)
    layers = snapshot.layers
    newest = layers.newest(layers.admitted(where))
    for frame, content in readable(newest, snapshot.frame_and_content_at, frame_place):
        value = decoded(content)
        if isinstance(value, str):
            return value, frame.id
    return None
