"""Descriptions: the mode, the title and the project of a session, for handoffs and lists.

Owns the look-up as of a basis. A mode group holds the messages of several modes, so the mode is
that of the session's newest message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.engine.events import ScopeValue
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.columns import I64
from cerata.projections.frames.filters import Filter

from ..text.names import VALUE_KIND
from ..text.summaries import decoded
from ..turns.lexicon import SIGN
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


# --- Anchors: the messages of a session in which users describe themselves, and the relation ------
#
# Unvalidated heuristics.


AnchorKind: TypeAlias = Literal["identity", "contradiction", "tension", "principle"]
RelationalState: TypeAlias = Literal[
    "deep", "friction", "exploring", "steady", "building", "opening"
]

WEIGHTS: Final[dict[AnchorKind, float]] = {
    "identity": 1.0,
    "contradiction": 1.0,
    "tension": 0.7,
    "principle": 0.7,
}
ANCHORS_MAX: Final = 15
TEXT_MAX: Final = 200
"""Characters of an anchor's text."""

_WINDOW_US: Final = 2 * 3_600_000_000
"""The time before a session's last message from which anchors are taken."""

_STEADY: Final = 10
_BUILDING: Final = 3


@dataclass(frozen=True, slots=True)
class Anchor(PlainValue):
    """A user's message of a kind, of which ``text`` is the start."""

    message: int
    kind: AnchorKind
    text: str
    weight: float


def _anchored(session: Talk) -> list[tuple[int, AnchorKind]]:
    """Return the rows of a session's anchors with their kinds, newest first."""
    columns = session.messages.columns
    rows: I64 = session.rows
    if not len(rows):
        return []
    created = columns.created.view()[rows]
    rows = rows[(created >= created[-1] - _WINDOW_US) & (columns.by_agent.view()[rows] == 0)]
    signs = session.messages.signs(rows)
    kinds: tuple[AnchorKind, ...] = tuple(WEIGHTS)
    return [
        (int(rows[place]), kind)
        for place in reversed(range(len(rows)))
        for kind in kinds
        if signs[place, SIGN[kind]]
    ]


def anchors_of(session: Talk, limit: int = ANCHORS_MAX) -> list[Anchor]:
    """Return the anchors of a session, the heaviest first, then the newest.

    They are of the 2 hours before the session's last message, one for each kind and message.
    """
    anchored = sorted(_anchored(session)[:ANCHORS_MAX], key=lambda pair: -WEIGHTS[pair[1]])[:limit]
    seqs = session.messages.columns.seq
    texts = {each.id: each.text for each in session.texts({(row,): None for row, _ in anchored})}
    return [
        Anchor(message, kind, texts[message][:TEXT_MAX], WEIGHTS[kind])
        for row, kind in anchored
        if (message := seqs.item(row)) in texts
    ]


def relational_state(session: Talk, exchanges: int) -> RelationalState:
    """Return the state of a session: by its anchors, else by its exchanges."""
    kinds = [kind for _, kind in _anchored(session)[:ANCHORS_MAX]]
    identity, tension = kinds.count("identity"), kinds.count("tension")
    if identity >= 2:
        return "deep"
    if tension >= 2:
        return "friction"
    if identity and tension:
        return "exploring"
    if exchanges > _STEADY:
        return "steady"
    return "building" if exchanges > _BUILDING else "opening"


def newest_session(talk: Talk) -> Talk:
    """Return the messages of the session of a thread's newest message."""
    if not len(talk):
        return talk
    sessions = talk.messages.columns.session.view()[talk.rows]
    return talk.at(np.flatnonzero(sessions == sessions[-1]))
