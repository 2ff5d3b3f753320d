"""Anchors: the messages of a session in which users describe themselves, and the relation.

Owns both rules; the constants are those of the source. Unvalidated heuristics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.columns import I64

from ..turns.lexicon import SIGN
from .exchanges import Talk

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
