"""Candidates: exchanges that are worth thinking about, and the passes over each.

Owns the choice of candidates, the inquiry of each and the times of its passes. Leaves out the
model's answers (`reflecting`). Unvalidated heuristics; the constants are those of the source.

- A candidate is an exchange with an entropy of .60 or more, at least 30 minutes after the candidate
  before it in the mode group.
- Its inquiry is the first sentence with the sign "gap" or "question", else the user's first
  sentence. An exchange whose inquiry shares half of its stems with that of an open candidate is
  none.
- The passes clarify, connect and synthesise are due 0, 4 and 20 hours after the candidate, each
  after the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.analyzer import terms, words
from cerata.projections.messages.lexicon import SIGNS, english_lexicon
from cerata.projections.messages.line import Line

from .entropy import Entropies
from .exchanges import USER, Exchange, Pair, Talk
from .models import sentences

ENTROPY: Final = 60
"""Hundredths of entropy from which an exchange is a candidate."""

_HOUR_US: Final = 3_600_000_000
APART_US: Final = 30 * 60_000_000
PASSES: Final = ("clarify", "connect", "synthesise")
PASS_HOURS: Final = (0, 4, 20)
REFLECTION_KIND: Final = "reflection"
"""The kind of the frames of reflections. On disk: never change it."""

TASK: Final = "task"
CANDIDATE: Final = "candidate"
"""Names in a reflection's metadata: its pass, and the seq of the candidate's first message."""

_ALIKE: Final = 0.5
_ASKING: Final = ("gap", "question")


@dataclass(frozen=True, slots=True)
class Candidate(PlainValue):
    """An exchange to think about.

    - ``id`` is the frame of the first version of its first message, ``created_us`` its time.
    - ``done`` are the frames of the passes so far.
    """

    id: int
    created_us: int
    thread: str
    mode_group: str
    inquiry: str
    done: tuple[int, ...]

    @property
    def is_open(self) -> bool:
        """True if a pass is left."""
        return len(self.done) < len(PASSES)

    def is_open_at(self, seq: int) -> bool:
        """Return whether a pass was left when an event was appended."""
        return self.is_open or self.done[-1] > seq

    def due_us(self, hours: Sequence[float]) -> int | None:
        """Return the time from which the next pass is due, or None if all are done."""
        return self.created_us + round(hours[len(self.done)] * _HOUR_US) if self.is_open else None


def candidates_of(snapshot: Snapshot, agent: str, lines: Sequence[Line]) -> list[Candidate]:
    """Return the candidates of lines of talk, oldest first."""
    passes = _passes(snapshot, agent)
    exchanges: list[tuple[int, Line, Talk, Pair]] = []
    for line in lines:
        talk = Talk(snapshot, agent, line=line)
        pairs = talk.pairs()
        columns = talk.messages.columns
        values = Entropies(talk, pairs).values if pairs else np.zeros(0, np.int64)
        for place in np.flatnonzero(values >= ENTROPY).tolist():
            pair = pairs[place]
            exchanges.append((columns.created.item(pair.rows[0]), line, talk, pair))
    last: dict[tuple[object, str], int] = {}
    candidates: list[Candidate] = []
    stems_of: dict[int, frozenset[str]] = {}
    for created, line, talk, pair in sorted(exchanges, key=_order):
        group = (line.base, line.group)
        if group in last and created - last[group] < APART_US:
            continue
        inquiry = inquiry_of(talk.exchange(pair))
        origin = talk.origin(pair.rows[0])
        stems = frozenset(terms(inquiry))
        opened = (each for each in reversed(candidates) if each.is_open_at(origin))
        if any(_are_alike(stems, stems_of[each.id]) for each in opened):
            continue
        stems_of[origin] = stems
        last[group] = created
        done = tuple(passes.get(origin, {}).values())
        candidates.append(Candidate(origin, created, line.thread, line.group, inquiry, done))
    return candidates


def _order(item: tuple[int, Line, Talk, Pair]) -> tuple[int, tuple[int, ...]]:
    return item[0], item[3].rows


def _passes(snapshot: Snapshot, agent: str) -> dict[int, dict[str, int]]:
    """Return the frames of the passes over each candidate, by pass, in their order."""
    [mask] = snapshot.log_only.layers.admitted(Filter(kind=REFLECTION_KIND, track=agent))
    by_candidate: dict[int, dict[str, int]] = {}
    for frame in snapshot.base.ids(np.flatnonzero(mask)).tolist():
        metadata = snapshot.frame_at(frame).metadata
        candidate, task = metadata.get(CANDIDATE), metadata.get(TASK)
        if isinstance(candidate, int) and task in PASSES:
            by_candidate.setdefault(candidate, {})[str(task)] = frame
    return {
        candidate: {name: made[name] for name in PASSES if name in made}
        for candidate, made in by_candidate.items()
    }


def inquiry_of(exchange: Exchange) -> str:
    """Return the question that an exchange leaves."""
    for message in exchange.messages:
        for sentence in sentences(message.text):
            counts = english_lexicon().counts(
                sentence, words(sentence), is_users=message.role == USER
            )
            if any(counts.signs[SIGNS.index(sign)] for sign in _ASKING):
                return sentence
    first = sentences(exchange.messages[0].text)
    return first[0] if first else exchange.messages[0].text


def _are_alike(stems: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether half of the stems of two sentences are shared (Jaccard)."""
    union = len(stems | others)
    return union > 0 and len(stems & others) / union >= _ALIKE
