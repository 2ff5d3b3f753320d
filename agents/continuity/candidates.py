"""Candidates: exchanges that are worth thinking about, and the passes over each.

Owns the choice of candidates, the inquiry of each and the times of its passes. Leaves out the
model's answers (`reflecting`). Unvalidated heuristics; the constants are those of the source.

- A candidate is an exchange with an entropy of .60 or more, or one that surprises Dynamics in a
  store with this projection, at least 30 minutes after the candidate before it in the mode group.
- Its inquiry is the first sentence with the sign "gap" or "question", else the user's first
  sentence. An exchange whose inquiry shares half of its stems with that of an open candidate is
  none.
- The passes clarify, connect and synthesise are due 0, 4 and 20 hours after the candidate, each
  after the one before it.

The process keeps the exchanges of high entropy of each line, and the choice among them, for each
fold of messages: a row of messages never changes, so equal rows in an equal order give equal
exchanges in any snapshot. A line with another message is computed again. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from cerata.engine.errors import NotFound
from cerata.engine.late import late
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import exactly, frame_place, readable
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar.columns import I64
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.analyzer import terms, words

from ..turns.columns import MessageColumns
from ..turns.dynamics import NAME
from ..turns.lexicon import SIGNS, english_lexicon
from ..turns.line import Line
from .entropy import Entropies
from .exchanges import USER, Exchange, Pair, Talk
from .models import sentences

if TYPE_CHECKING:
    from ..turns.dynamics import projection as dynamics_projection
else:
    dynamics_projection = late("cerata.agents.turns.dynamics.projection")


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

_CHOICES_MAX: Final = 16
"""Choices that the process keeps for a fold; each new line makes another."""

_ALIKE: Final = 0.5
_NO_FRAMES: Final[I64] = np.zeros(0, np.int64)
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


Passes = Mapping[int, Mapping[str, int]]
"""The frames of the passes over each candidate, by pass."""


class _Moved(NamedTuple):
    """An exchange of high entropy: its time, its rows, its line."""

    created: int
    rows: tuple[int, ...]
    pair: Pair
    origin: int
    """The frame of the first version of its first message."""
    line: Line


class _LineState(NamedTuple):
    """The messages of a line, by row and first version, and its exchanges of high entropy.

    ``surprising`` are the first versions of messages that begin a surprising exchange.
    """

    rows: I64
    firsts: I64
    surprising: I64
    moved: tuple[_Moved, ...]


class _Inquiry(NamedTuple):
    """The question that an exchange leaves, and its stems."""

    text: str
    stems: frozenset[str]


@dataclass(slots=True)
class _Choice:
    """The candidates among exchanges of high entropy, in order of time."""

    passes: Passes
    moved: list[_Moved] = field(default_factory=list[_Moved])
    candidates: list[Candidate] = field(default_factory=list[Candidate])
    stems: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    """The stems of each candidate's inquiry, by its id."""
    last: dict[tuple[object, str], int] = field(default_factory=dict[tuple[object, str], int])
    """The time of the last candidate of each mode group."""

    def before(self, moved: Sequence[_Moved], passes: Passes) -> _Choice:
        """Return a copy of this choice if the exchanges start with its own; else an empty one."""
        count = len(self.moved)
        if self.passes != passes or self.moved != moved[:count]:
            return _Choice(passes)
        return _Choice(passes, [*self.moved], [*self.candidates], {**self.stems}, {**self.last})

    def add(self, moved: _Moved, kept: _Kept, talk: Talk) -> None:
        """Add an exchange, which is a candidate or none."""
        self.moved.append(moved)
        line = moved.line
        group = (line.base, line.group)
        if group in self.last and moved.created - self.last[group] < APART_US:
            return
        inquiry = kept.inquiry(moved, talk)
        if inquiry is None:
            return
        opened = (each for each in reversed(self.candidates) if each.is_open_at(moved.origin))
        if any(_are_alike(inquiry.stems, self.stems[each.id]) for each in opened):
            return
        self.stems[moved.origin] = inquiry.stems
        self.last[group] = moved.created
        done = tuple(self.passes.get(moved.origin, {}).values())
        self.candidates.append(
            Candidate(moved.origin, moved.created, line.thread, line.group, inquiry.text, done)
        )


@dataclass(slots=True)
class _Kept:
    """The kept values of a fold of messages. Threads share them: values are replaced as a whole."""

    lines: dict[Line, _LineState] = field(default_factory=dict[Line, _LineState])
    inquiries: dict[Pair, _Inquiry] = field(default_factory=dict[Pair, _Inquiry])
    choices: dict[tuple[Line, ...], _Choice] = field(
        default_factory=dict[tuple[Line, ...], _Choice]
    )

    def moved(self, talk: Talk, lines: Sequence[Line], surprising: Sequence[int]) -> list[_Moved]:
        """Return the exchanges of high entropy, or surprising, of an agent's lines, by time."""
        columns = talk.messages.columns
        codes = columns.line.view()[talk.rows]
        moved: list[_Moved] = []
        for line in lines:
            places = np.flatnonzero(codes == (columns.lines.find(line.text) or 0))
            of_line = talk.at(places)
            here = of_line.firsts[np.isin(of_line.firsts, surprising)] if surprising else _NO_FRAMES
            state = self.lines.get(line)
            if (
                state is None
                or not np.array_equal(state.rows, of_line.rows)
                or not np.array_equal(state.firsts, of_line.firsts)
                or not np.array_equal(state.surprising, here)
            ):
                moved_here = _moved(of_line, line, here)
                state = _LineState(of_line.rows, of_line.firsts, here, moved_here)
                self.lines[line] = state
            moved += state.moved
        return sorted(moved, key=attrgetter("created", "rows"))

    def inquiry(self, moved: _Moved, talk: Talk) -> _Inquiry | None:
        """Return the inquiry of an exchange, or None if it is unreadable.

        Its texts are read the first time.
        """
        inquiry = self.inquiries.get(moved.pair)
        if inquiry is None:
            for exchange in talk.exchanges([moved.pair]):
                text = inquiry_of(exchange)
                inquiry = self.inquiries[moved.pair] = _Inquiry(text, frozenset(terms(text)))
        return inquiry


KEPT: Final[WeakKeyDictionary[MessageColumns, _Kept]] = WeakKeyDictionary()


def candidates_of(
    snapshot: Snapshot, agent: str, lines: Sequence[Line], *, every_pass: bool = False
) -> list[Candidate]:
    """Return the candidates of lines of talk, oldest first.

    With ``every_pass`` a pass that cannot be read is an error: it must not be made a second time.

    Cost: a comparison of the messages, and the computation of each line whose messages changed
    since the last call in this process.

    Raises:
        Corrupt: a pass cannot be read, with ``every_pass``.
    """
    talk = Talk(snapshot, agent)
    kept = KEPT.setdefault(talk.messages.columns, _Kept())
    with exactly() if every_pass else nullcontext():
        passes = _passes(snapshot, agent)
    surprising = sorted(surprising_exchanges(talk.snapshot, agent))
    moved = kept.moved(talk, lines, surprising)
    key = tuple(lines)
    choice = kept.choices.get(key, _Choice(passes)).before(moved, passes)
    for exchange in moved[len(choice.moved) :]:
        choice.add(exchange, kept, talk)
    if len(kept.choices) >= _CHOICES_MAX:
        kept.choices = {}
    kept.choices[key] = choice
    return [*choice.candidates]


def _moved(talk: Talk, line: Line, surprising: I64) -> tuple[_Moved, ...]:
    pairs = talk.pairs()
    if not pairs:
        return ()
    created = talk.messages.columns.created
    is_moved = Entropies(talk, pairs).values >= ENTROPY
    if len(surprising):
        is_moved |= np.isin([talk.origin(pair.rows[0]) for pair in pairs], surprising)
    places = np.flatnonzero(is_moved).tolist()
    return tuple(
        _Moved(created.item(rows[0]), rows, pair, talk.origin(rows[0]), line)
        for pair in (pairs[place] for place in places)
        for rows in (pair.rows,)
    )


def _passes(snapshot: Snapshot, agent: str) -> dict[int, dict[str, int]]:
    """Return the frames of the passes over each candidate, by pass, in their order."""
    [mask] = snapshot.log_only.layers.admitted(Filter(kind=REFLECTION_KIND, track=agent))
    by_candidate: dict[int, dict[str, int]] = {}
    frames = snapshot.base.ids(np.flatnonzero(mask)).tolist()
    for read in readable(frames, snapshot.frame_at, frame_place):
        frame, metadata = read.id, read.metadata
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


# --- Exchanges that surprise Dynamics; a store without the projection loads none of its modules


def surprising_exchanges(snapshot: Snapshot, agent: str) -> frozenset[int]:
    """Return the exchanges of an agent that surprise Dynamics, by their first frames.

    None in a store that was opened without this projection. Cost: its rows.
    """
    if not snapshot.has_state(NAME):
        return frozenset()
    try:
        rows = snapshot.state(dynamics_projection.Dynamics)
    except NotFound:
        # A projection of the user has its name.
        return frozenset()
    return frozenset(exchange for scope, exchange in rows.surprising(agent) if snapshot.sees(scope))
