"""Signals of a search: parts of the fused scores of its candidates, besides the lanes.

Owns the properties of candidates, read from the columns of a snapshot for all candidates at once,
and the shares of a single frame for an explanation. No text is read. Leaves out the values and
their sum (`cerata.retrieval.ranking.signals`), and the analysis of a question
(`cerata.retrieval.question_analysis`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from cerata.engine.late import late
from cerata.projections.columnar.names import NO_NAME as NO_ROLE
from cerata.projections.columnar.turn_order import NO_ROW, TurnOrder
from cerata.projections.fulltext.analyzer import terms
from cerata.projections.fulltext.marks import Mark
from cerata.retrieval.proper_nouns import proper_nouns
from cerata.retrieval.question_analysis import QuestionAnalysis, analysis_of
from cerata.retrieval.ranking.signals import SIGNALS, Candidates, signals_asked, sum_of, values_of

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64, I64, U32, Mask
    from cerata.retrieval import base_level_activation as activation
    from cerata.retrieval import source_files, speaker_names

    from ..snapshot.snapshot import Snapshot
    from ..values import explanation as explanations
    from ..values.explanation import SignalShare
    from .request import SearchRequest
else:
    explanations = late("cerata.memory.values.explanation")
    source_files = late("cerata.retrieval.source_files")
    speaker_names = late("cerata.retrieval.speaker_names")
    activation = late("cerata.retrieval.base_level_activation")


_OF_TURNS: Final = frozenset(
    {"speaker", "when", "count", "name", "why", "question", "follows", "short", "replies"}
)
"""Signals that only frames with a role have."""


_OF_DIALOGUE: Final = frozenset({"question", "follows", "short"})
"""Signals of the talk of people, which count less the longer turns are."""

OF_SHORT_TURNS: Final = 20.0
"""Mean terms of turns up to which the signals of talk count wholly."""

_NO_NUMBERS: Final = np.empty(0, np.int64)


class _Roles(NamedTuple):
    """The code of each row's role, `NO_ROLE` without one, and how to get the role of each code."""

    codes: U32 | I64
    texts: Callable[[], Mapping[int, str]]


class Signals(msgspec.Struct, frozen=True):
    """The signals that count for a question, with their weights in steps of a score."""

    snapshot: Snapshot
    text: str
    question: QuestionAnalysis
    weights: Mapping[str, float]

    @property
    def most(self) -> float:
        """The most steps that the signals add to a score."""
        asked = signals_asked(self.question).intersection(self.weights)
        return sum(max(self.weights[name], 0.0) for name in asked)

    def sums(self, ids: I64) -> F64:
        """Return the sums of the signals of frames, in steps of their scores, (frames,)."""
        if not len(ids):
            return np.zeros(0)
        return sum_of(self.weights, self.question, self._candidates(ids))

    def values(self, ids: I64) -> F64:
        """Return the value of each signal of `SIGNALS` for frames, (frames, signals)."""
        candidates = self._candidates(ids)
        return np.stack([values_of(name, self.question, candidates) for name in SIGNALS], axis=1)

    def shares(self, frame: int, step: float) -> tuple[SignalShare, ...]:
        """Return the signals that a frame has, with their parts of its score of such steps."""
        candidates = self._candidates(np.array([frame], np.int64))
        shares: list[SignalShare] = []
        for name in SIGNALS:
            weight = self.weights.get(name, 0.0)
            value = float(values_of(name, self.question, candidates)[0]) if weight else 0.0
            if value:
                shares.append(explanations.SignalShare(name, weight, value, step * weight * value))
        return tuple(shares)

    def name_speaker_of(self, frames: Sequence[int]) -> bool:
        """Return whether the question names the speaker of a frame, and that counts."""
        rows = self.snapshot.layers.rows_at(np.array(frames, np.int64))
        return self._has_any("speaker") and bool(self._are_named(self._roles(rows)).any())

    def _has_any(self, *names: str) -> bool:
        return any(map(self.weights.get, names))

    def _candidates(self, ids: I64) -> Candidates:
        layers = self.snapshot.layers
        rows = layers.rows_at(ids)
        roles = self._roles(rows)
        turns = layers.turns
        times, places = self._times(rows)
        follow = self._follow(rows, roles, turns)
        return Candidates(
            marks=layers.ranking.marks_at(rows),
            terms=layers.ranking.text_lengths_at(rows),
            have_role=roles.codes != NO_ROLE,
            are_named=self._are_named(roles),
            follow=follow,
            in_thread=self._in_thread(rows, turns),
            are_tests=self._are_tests(rows),
            noun_shares=self._noun_shares(rows),
            reply_shares=self._reply_shares(rows, follow, turns),
            ages=self._ages(ids),
            times=times,
            frames_of_times=places,
        )

    def _roles(self, rows: I64) -> _Roles:
        layers = self.snapshot.layers
        if not self._has_any(*_OF_TURNS):
            return _Roles(np.full(len(rows), NO_ROLE), dict)
        if len(layers.all) == 1:
            of_rows = layers.base.frames.role_codes(rows)
            return _Roles(of_rows, lambda: layers.base.frames.role_texts(of_rows))
        # Layers have codes of their own.
        codes = np.full(len(rows), NO_ROLE)
        numbers: dict[str, int] = {}
        for layer, places, of_layer in layers.by_layer(rows):
            of_rows = layer.frames.role_codes(of_layer)
            for code, role in layer.frames.role_texts(of_rows).items():
                codes[places[of_rows == code]] = numbers.setdefault(role, len(numbers) + 1)
        return _Roles(codes, lambda: {number: role for role, number in numbers.items()})

    def _are_named(self, roles: _Roles) -> Mask:
        are_named = np.zeros(len(roles.codes), np.bool_)
        if self._has_any("speaker"):
            texts = roles.texts()
            named = speaker_names.named_roles(self.text, texts.values())
            for code, role in texts.items() if named else ():
                if role in named:
                    are_named |= roles.codes == code
        return are_named

    def _follow(self, rows: I64, roles: _Roles, turns: TurnOrder | None) -> Mask:
        """Return which rows follow a question of another speaker in their conversation."""
        if turns is None or not self._has_any("follows", "replies"):
            return np.zeros(len(rows), np.bool_)
        before = _rows_before(rows, turns)
        # The row of a gap is -1, the last row.
        follow: Mask = self.snapshot.layers.ranking.marks_at(before) & int(Mark.QUESTION) > 0
        follow &= before != NO_ROW
        at = np.flatnonzero(follow)
        if len(self.snapshot.layers.all) == 1:
            codes = self.snapshot.layers.base.frames.role_codes
            follow[at] = roles.codes[at] != codes(before[at])
            return follow
        both = self._roles(np.concatenate([rows[at], before[at]])).codes
        follow[at] = both[: len(at)] != both[len(at) :]
        return follow

    def _in_thread(self, rows: I64, turns: TurnOrder | None) -> Mask:
        """Return which rows are of the conversation of the newest turn."""
        if turns is None or not self._has_any("thread"):
            return np.zeros(len(rows), np.bool_)
        newest = int(turns.places[turns.rows.max()])
        newest_of = turns.conversation_at(newest)
        places = turns.places[rows]
        are_in: Mask = (places >= newest_of.start) & (places < newest_of.stop)
        return are_in

    def _are_tests(self, rows: I64) -> Mask:
        """Return which rows are of files of tests, by their URIs."""
        are_tests = np.zeros(len(rows), np.bool_)
        if not self._has_any("test") or self.question.names_tests:
            return are_tests
        for layer, places, of_layer in self.snapshot.layers.by_layer(rows):
            codes, at = layer.frames.uri_codes(of_layer)
            # The chunks of a file share its URI.
            tests = [
                code
                for code in set(codes.tolist())
                if source_files.is_test_file(layer.frames.uri(code))
            ]
            for code in tests:
                are_tests[places[at[codes == code]]] = True
        return are_tests

    def _noun_shares(self, rows: I64) -> F64:
        """Return the share of the question's proper nouns that each row has, in any field."""
        layers = self.snapshot.layers
        nouns = proper_nouns(self.text) if self._has_any("noun") else ()
        counts = np.zeros(len(rows))
        for noun in nouns:
            counts += layers.ranking.have(noun, rows)
        return counts / max(len(nouns), 1)

    def _reply_shares(self, rows: I64, follow: Mask, turns: TurnOrder | None) -> F64:
        """Return the share of the question's words, by idf, in the question that a row follows."""
        shares = np.zeros(len(rows))
        if turns is None or not self._has_any("replies"):
            return shares
        words = [*dict.fromkeys(terms(self.text))]
        before = _rows_before(rows[follow], turns)
        shares[follow] = self.snapshot.layers.ranking.shares_of_words(words, before)
        return shares

    def _ages(self, ids: I64) -> F64:
        if not self._has_any("recency"):
            return np.zeros(len(ids))
        layers = self.snapshot.layers
        last = self.snapshot.last_us
        return np.array(
            [activation.days_between(layers.created(frame), last) for frame in ids.tolist()]
        )

    def _times(self, rows: I64) -> tuple[I64, I64]:
        if not (self.question.periods and self._has_any("period")):
            return _NO_NUMBERS, _NO_NUMBERS
        layers = self.snapshot.layers
        if len(layers.all) == 1:
            return layers.base.frames.times_at(rows)
        times = [_NO_NUMBERS]
        owners = [_NO_NUMBERS]
        for layer, places, of_layer in layers.by_layer(rows):
            of_times, at = layer.frames.times_at(of_layer)
            times.append(of_times)
            owners.append(places[at])
        return np.concatenate(times), np.concatenate(owners)


def _rows_before(rows: I64, turns: TurnOrder) -> I64:
    """Return the row before each in its conversation; that of a gap is `NO_ROW`."""
    # The place of a row that is no turn is -1; the place before is the last but one, a gap.
    return turns.rows[turns.places[rows] - 1]


def signals_of(snapshot: Snapshot, request: SearchRequest) -> Signals | None:
    """Return the signals of a profile for a question in plain language; None if none counts."""
    profile = request.profile
    if not request.text or request.mode == "vector" or not any(profile.signals.values()):
        return None
    weights = {name: weight for name, weight in profile.signals.items() if weight}
    mean = snapshot.layers.ranking.turn_mean
    if mean > OF_SHORT_TURNS:
        # A long turn with a question in it, or after one, says more than that.
        for name in _OF_DIALOGUE.intersection(weights):
            weights[name] *= OF_SHORT_TURNS / mean
    return Signals(snapshot, request.text, analysis_of(request.text, lambda: snapshot.now), weights)
