"""Signals of a search: parts of the fused scores of its candidates, besides the lanes.

Owns the properties of candidates, read from the columns of a snapshot for all candidates at once,
and the shares of a single frame for an explanation. No text is read. Leaves out the values and
their sum (`cerata.retrieval.ranking.signals`), and the analysis of a question
(`cerata.retrieval.question_analysis`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from cerata.engine.events import once
from cerata.engine.late import late
from cerata.projections.columnar.names import NO_NAME as NO_ROLE
from cerata.projections.columnar.turn_order import NO_ROW, TurnOrder
from cerata.projections.fulltext.analyzer import terms
from cerata.projections.fulltext.marks import Mark
from cerata.retrieval.question_analysis import QuestionAnalysis, analysis_of
from cerata.retrieval.ranking.signals import SIGNALS, Candidates, signals_asked, sum_of, values_of
from cerata.retrieval.word_kinds import proper_nouns

if TYPE_CHECKING:
    from cerata.projections.columnar.columns import F64, I64, U32, Mask
    from cerata.retrieval import base_level_activation as activation
    from cerata.retrieval import speaker_names

    from ..snapshot.basis_columns import BasisColumns
    from ..snapshot.snapshot import Snapshot
    from ..values import explanation as explanations
    from ..values.explanation import SignalShare
    from .request import SearchRequest
else:
    explanations = late("cerata.memory.values.explanation")
    speaker_names = late("cerata.retrieval.speaker_names")
    activation = late("cerata.retrieval.base_level_activation")


_OF_DIALOGUE: Final = frozenset({"question", "follows", "short"})
"""Signals of the talk of people, which count less the longer turns are."""

OF_SHORT_TURNS: Final = 20.0
"""Mean terms of turns up to which the signals of talk count wholly."""

_NO_NUMBERS: Final = np.empty(0, np.int64)


class Signals(msgspec.Struct, frozen=True, dict=True):
    """The signals that count for a question, with their weights in steps of a score."""

    snapshot: Snapshot
    text: str
    question: QuestionAnalysis
    weights: Mapping[str, float]

    @property
    def most(self) -> float:
        """The most steps that the signals add to a score."""
        return sum(max(self.weights[name], 0.0) for name in self._asked)

    @once
    def _asked(self) -> set[str]:
        """The signals with a weight that the question asks for; each other adds nothing."""
        return signals_asked(self.question).intersection(self.weights)

    def sums(self, ids: I64, rows: I64) -> F64:
        """Return the sums of the signals of frames and their rows, in steps of their scores."""
        if not len(ids):
            return np.zeros(0)
        return sum_of(self.weights, self.question, self._candidates(ids, rows))

    def values(self, ids: I64) -> F64:
        """Return the value of each signal of `SIGNALS` for frames, (frames, signals)."""
        candidates = self._candidates(ids, self.snapshot.layers.columns.rows_of(ids))
        return np.stack([values_of(name, self.question, candidates) for name in SIGNALS], axis=1)

    def shares(self, frame: int, step: float) -> tuple[SignalShare, ...]:
        """Return the signals that a frame has, with their parts of its score of such steps."""
        ids = np.array([frame], np.int64)
        candidates = self._candidates(ids, self.snapshot.layers.columns.rows_of(ids))
        shares: list[SignalShare] = []
        for name in SIGNALS:
            weight = self.weights.get(name, 0.0)
            value = float(values_of(name, self.question, candidates)[0]) if weight else 0.0
            if value:
                shares.append(explanations.SignalShare(name, weight, value, step * weight * value))
        return tuple(shares)

    def name_speaker_of(self, frames: Sequence[int]) -> bool:
        """Return whether the question names the speaker of a frame, and that counts."""
        if "speaker" not in self._asked:
            return False
        columns = self.snapshot.layers.columns
        codes = columns.role_codes[columns.rows_of(np.array(frames, np.int64))]
        are_named = self._are_named(columns, codes)
        return are_named is not None and bool(are_named.any())

    def _candidates(self, ids: I64, rows: I64) -> Candidates:
        """Return the properties of frames, in order of their ids, that the signals need."""
        needed = self._asked
        columns = self.snapshot.layers.columns
        marks = columns.ranking.marks[rows]
        terms_of_rows = have_role = are_named = follow = in_thread = are_tests = None
        noun_shares = reply_shares = ages = times = places = None
        codes = columns.role_codes[rows]
        if codes.any():
            if "short" in needed:
                # Numbers with a sign: a signal subtracts them.
                terms_of_rows = columns.ranking.text_lengths[rows].astype(np.int64)
                have_role = codes != NO_ROLE
            if "speaker" in needed:
                are_named = self._are_named(columns, codes)
        turns = columns.turns
        if turns is not None:
            if "follows" in needed or "replies" in needed:
                follow = _follow(columns, rows, codes, turns)
            if "thread" in needed:
                in_thread = _in_thread(rows, turns)
            if follow is not None and "replies" in needed:
                reply_shares = self._reply_shares(columns, rows, follow, turns)
        if "test" in needed and columns.has_uris:
            are_tests = self._are_tests(rows)
        if "noun" in needed:
            noun_shares = self._noun_shares(columns, rows)
        if "recency" in needed:
            ages = self._ages(ids)
        if "period" in needed:
            times, places = self._times(rows)
        return Candidates(
            marks=marks,
            terms=terms_of_rows,
            have_role=have_role,
            are_named=are_named,
            follow=follow,
            in_thread=in_thread,
            are_tests=are_tests,
            noun_shares=noun_shares,
            reply_shares=reply_shares,
            ages=ages,
            times=times,
            frames_of_times=places,
        )

    def _are_named(self, columns: BasisColumns, codes: U32 | I64) -> Mask | None:
        """Return which rows are of speakers whom the question names; None without such a role."""
        texts = columns.roles_of(codes)
        named = speaker_names.named_roles(self.text, texts.values())
        if not named:
            return None
        are_named = np.zeros(len(codes), np.bool_)
        for code, role in texts.items():
            if role in named:
                are_named |= codes == code
        return are_named

    def _are_tests(self, rows: I64) -> Mask:
        """Return which rows are of files of tests, by their URIs."""
        are_tests = np.zeros(len(rows), np.bool_)
        for layer, places, of_layer in self.snapshot.layers.by_layer(rows):
            codes, at = layer.frames.uri_codes(of_layer)
            # The chunks of a file share its URI.
            for code in set(codes.tolist()):
                if is_test_file(layer.frames.uri(code)):
                    are_tests[places[at[codes == code]]] = True
        return are_tests

    def _noun_shares(self, columns: BasisColumns, rows: I64) -> F64:
        """Return the share of the question's proper nouns that each row has, in any field."""
        nouns = proper_nouns(self.text)
        counts = np.zeros(len(rows))
        for noun in nouns:
            counts += columns.ranking.have(noun, rows)
        return counts / max(len(nouns), 1)

    def _reply_shares(
        self, columns: BasisColumns, rows: I64, follow: Mask, turns: TurnOrder
    ) -> F64:
        """Return the share of the question's words, by idf, in the question that a row follows."""
        shares = np.zeros(len(rows))
        words = [*dict.fromkeys(terms(self.text))]
        before = _rows_before(rows[follow], turns)
        shares[follow] = columns.ranking.shares_of_words(words, before)
        return shares

    def _ages(self, ids: I64) -> F64:
        layers = self.snapshot.layers
        last = self.snapshot.last_us
        return np.array(
            [activation.days_between(layers.created(frame), last) for frame in ids.tolist()]
        )

    def _times(self, rows: I64) -> tuple[I64, I64]:
        times: list[I64] = [_NO_NUMBERS]
        owners: list[I64] = [_NO_NUMBERS]
        for layer, places, of_layer in self.snapshot.layers.by_layer(rows):
            of_times, at = layer.frames.times_at(of_layer)
            times.append(of_times)
            owners.append(places[at])
        return np.concatenate(times), np.concatenate(owners)


def _follow(columns: BasisColumns, rows: I64, codes: U32 | I64, turns: TurnOrder) -> Mask:
    """Return which rows follow a question of another speaker in their conversation."""
    before = _rows_before(rows, turns)
    # The row of a gap is -1, the last row.
    follow: Mask = columns.ranking.marks[before] & int(Mark.QUESTION) > 0
    follow &= before != NO_ROW
    at = np.flatnonzero(follow)
    follow[at] = codes[at] != columns.role_codes[before[at]]
    return follow


def _in_thread(rows: I64, turns: TurnOrder) -> Mask:
    """Return which rows are of the conversation of the newest turn."""
    newest = int(turns.places[turns.rows.max()])
    newest_of = turns.conversation_at(newest)
    places = turns.places[rows]
    are_in: Mask = (places >= newest_of.start) & (places < newest_of.stop)
    return are_in


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


# --- Files of source code by their names: which files hold tests ----------------------------------
#
# The names are those that test runners collect: pytest and unittest (Python), Go, JUnit, RSpec,
# Jest. Pure.


_TESTS: Final = re.compile(
    r"(?:^|[/\\:])(?:"
    r"(?:tests?|testing|__tests__|spec)[/\\]"
    r"|(?:test_[^/\\]*|conftest|[^/\\]+[._-](?:tests?|spec)|[^/\\]*[a-z0-9](?:Test|Tests|Spec))"
    r"\.\w+(?:$|[?#])"
    r")"
)


def is_test_file(uri: str) -> bool:
    """Return whether a URI or path is of a file of tests, by its folders and its name.

    >>> [is_test_file(path) for path in ("lib/test/test_heapq.py", "src/heapq.py", "a/latest/b.py")]
    [True, False, False]
    """
    return _TESTS.search(uri) is not None
