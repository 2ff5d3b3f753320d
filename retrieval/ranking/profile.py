"""A profile: which lanes a search runs, the weight of each, and the method that sums them.

Owns `Profile`, its checks and its plain form. A profile has a name and a version, so that a result
can be reproduced: a change needs another version. Leaves out the built-in profiles (`profiles`),
the lanes, and the sum of their ranks (`fusion`).
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias, cast, get_args

from cerata.engine.arguments import expect_bool, expect_positive, is_integer, is_number
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import JsonValue
from cerata.engine.json_value import exact_fields
from cerata.engine.plain_value import PlainValue, plain_fields

from ..query_classifier import KINDS, QuestionKind
from .feedback import FEEDBACK_MAX
from .fusion import Method
from .signals import SIGNALS

LANES: Final = ("text", "facts", "vectors", "late", "graph")
"""All lanes, in the order of their sum."""

WEIGHT_MAX: Final = 1e6
"""Largest weight of a lane: sums of larger weights are not exact to 9 digits."""

SWITCHES: Final = (
    *("fact_words", "in_context", "token_weights", "token_window", "names_out"),
    "vector_window",
)
"""The parts of a profile that are on or off, besides its lanes."""

SIGNAL_WEIGHT_MAX: Final = 1_000.0
"""Largest weight of a signal, above and below 0: far more than any z-score."""

Weight: TypeAlias = float | Mapping[str, float]
"""The weight of a lane: one for all questions, or one for each kind."""


@dataclass(frozen=True, slots=True)
class Profile(PlainValue):
    """Which lanes run for a question, and the weight of each.

    - For each kind of question at least one lane runs.

    Args:
        name: the profile's name
        version: whole number from 1; other weights need another version
        weights: lanes that run, with a weight or weights by kind of question; 0 switches a lane off
        turn_weights: weights of these lanes for turns, 0 without one; default those of `weights`
        method: "rrf", "minmax" or "zscore"; see `cerata.retrieval.ranking.fusion`
        rerank: if True, token vectors order the best hits (`reranked` of that module)
        importance: 0 (off) to 1; multiplies the score of used frames by up to 1 + importance
        fact_words: if True, facts that share words with the question match, too
        in_context: if True, the words of neighbouring turns count for a turn
        token_weights: if True, tokens of the question weigh as much as their words
        token_window: if True, the token vectors of neighbouring turns count for a turn
        names_out: if True, the embedder reads the question without names of speakers
        vector_window: if True, the vectors of neighbouring turns count for a turn; default False
        feedback: best hits of a first fusion toward which the question's vector moves; 0 is off
        signals: weight of each signal (`SIGNALS`), in deviations of a lane's scores; default none
        gate: if True, `recall` has the gate of conversations in place of a relevance floor

    Raises:
        InvalidInput: a name, number or method is unknown or out of range.

    >>> Profile("notes", 1, {"text": 1, "vectors": {**dict.fromkeys(KINDS, 1), "factual": 0}}).label
    'notes 1'
    """

    name: str
    version: int
    weights: Mapping[str, Weight] = field(hash=False)
    method: Method = "rrf"
    rerank: bool = False
    importance: float = 0.0
    fact_words: bool = True
    in_context: bool = True
    token_weights: bool = True
    token_window: bool = True
    names_out: bool = True
    vector_window: bool = False
    feedback: int = 0
    signals: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    gate: bool = False
    turn_weights: Mapping[str, Weight] = field(default_factory=dict[str, Weight], hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("A profile needs a name", remedy="Pass a name, such as 'notes'.")
        where = f"profile {self.name!r}"
        exact_fields(self, "version", "importance", "feedback", "rerank", "gate", *SWITCHES)
        expect_positive("version", self.version, where)
        if self.method not in get_args(Method):
            raise unknown("method", self.method, get_args(Method), where=self._place)
        for switch in ("rerank", "gate", *SWITCHES):
            expect_bool(switch, getattr(self, switch), where)
        if not (_is_weight(self.importance) and self.importance <= 1):
            raise self._wrong(
                f"importance must be a number from 0 to 1, not {self.importance!r:.60}",
                "Pass a number from 0 to 1.",
            )
        if not is_integer(self.feedback) or not 0 <= self.feedback <= FEEDBACK_MAX:
            raise self._wrong(
                f"feedback must be a whole number from 0 to 100, not {self.feedback!r:.60}",
                "Pass 0 to 100; 3 is that of the profile documents.",
            )
        self._check_signals()
        self._check_weights("weights", LANES)
        self._check_weights("turn_weights", tuple(self.weights))
        for kind in KINDS:
            for weights in (self.weights_for(kind), self.turn_weights_for(kind)):
                if not any(weights.values()):
                    raise self._wrong(
                        f"No lane runs for {kind} questions", "Give a lane a weight above 0."
                    )

    def _check_signals(self) -> None:
        if not isinstance(self.signals, Mapping):
            raise self._wrong(
                f"signals must map names to weights, not {self.signals!r:.60}",
                "Pass a weight for each signal, such as {'period': 2.5}.",
            )
        for name, weight in self.signals.items():
            if name not in SIGNALS:
                raise unknown("signal", name, SIGNALS, where=self._place)
            if not is_number(weight) or abs(weight) > SIGNAL_WEIGHT_MAX:
                raise self._wrong(
                    f"The weight of signal {name!r} must be -1,000 to 1,000, not {weight!r:.60}",
                    "Pass -1,000 to 1,000.",
                )

    def _check_weights(self, name: str, lanes: Sequence[str]) -> None:
        weights: object = getattr(self, name)
        if not isinstance(weights, Mapping):
            raise self._wrong(
                f"{name} must map lanes to weights, not {weights!r:.60}",
                "Pass a weight for each lane, such as {'text': 1}.",
            )
        for lane, weight in cast("Mapping[str, Weight]", weights).items():
            if lane not in lanes:
                raise unknown("lane", lane, lanes, where=self._place)
            self._check_weight(lane, weight)

    def _check_weight(self, lane: str, weight: Weight) -> None:
        numbers: list[float] = [weight] if not isinstance(weight, Mapping) else [*weight.values()]
        if isinstance(weight, Mapping):
            for kind in weight:
                if kind not in KINDS:
                    raise unknown("kind of question", kind, KINDS, where=self._place)
            for kind in KINDS:
                if kind not in weight:
                    fault = f"Lane {lane!r} has no weight for {kind} questions"
                    raise self._wrong(fault, "Pass a weight for each kind; 0 switches a lane off.")
        for number in numbers:
            if not _is_weight(number):
                raise self._wrong(
                    f"The weight of lane {lane!r} must be 0 to 1,000,000, not {number!r:.60}",
                    "Pass 0 to 1,000,000.",
                )

    @property
    def _place(self) -> str:
        return f"profile {self.name!r}"

    def _wrong(self, fault: str, remedy: str) -> InvalidInput:
        return InvalidInput(fault, where=self._place, remedy=remedy)

    @property
    def label(self) -> str:
        """The name and the version as one text: ``balanced 1``."""
        return f"{self.name} {self.version}"

    @property
    def is_late(self) -> bool:
        """True if token vectors are needed for any kind of question."""
        return self.rerank or any("late" in self.weights_for(kind) for kind in KINDS)

    @property
    def is_by_kind(self) -> bool:
        """True if the weight of a lane depends on the kind of the question."""
        weights = (*self.weights.values(), *self.turn_weights.values())
        return any(isinstance(weight, Mapping) for weight in weights)

    def weights_for(self, kind: QuestionKind) -> dict[str, float]:
        """Return the lanes that run for a kind of question, in their order, with their weights.

        Args:
            kind: "factual", "semantic", "temporal" or "exploratory"
        """
        weights = {lane: _weight_for(kind, self.weights.get(lane, 0.0)) for lane in LANES}
        return {lane: weight for lane, weight in weights.items() if weight}

    def turn_weights_for(self, kind: QuestionKind) -> dict[str, float]:
        """Return the lanes that run for a kind of question, with their weights for turns.

        Args:
            kind: "factual", "semantic", "temporal" or "exploratory"
        """
        weights = self.weights_for(kind)
        if self.turn_weights:
            for lane in weights:
                weights[lane] = _weight_for(kind, self.turn_weights.get(lane, 0.0))
        return weights

    @classmethod
    def from_dict(cls, values: Mapping[str, JsonValue]) -> "Profile":
        """Return a profile from the form of `to_dict`, or from one weight for each lane.

        Args:
            values: The fields by name; all but name, version and weights have defaults.

        Raises:
            InvalidInput: a field, lane or signal is unknown, or a value is out of range.

        >>> Profile.from_dict({"name": "mine", "version": 1, "weights": {"text": 1}}).label
        'mine 1'
        """
        where = "a profile"
        if not isinstance(values, Mapping):
            raise InvalidInput(
                f"A profile must be an object, not {values!r:.60}",
                where=where,
                remedy="Pass the object that to_dict returned.",
            )
        names = [part.name for part in fields(cls)]
        for name in values:
            if name not in names:
                raise unknown("field of a profile", name, names, where=where)
        for name in ("name", "version", "weights"):
            if name not in values:
                raise InvalidInput(
                    f"The profile has no {name}", where=where, remedy=f"Add its {name}."
                )
        # The constructor checks each value.
        known: dict[str, Any] = {**values}
        for name in ("weights", "turn_weights"):
            if name in known:
                known[name] = _by_lane(known[name])
        return cls(**known)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("name", "version", "method", "rerank", "importance")),
            **plain_fields(self, (*SWITCHES, "feedback", "gate")),
            "signals": {name: self.signals[name] for name in SIGNALS if name in self.signals},
            "weights": {kind: {**self.weights_for(kind)} for kind in KINDS},
            "turn_weights": (
                {kind: {**self.turn_weights_for(kind)} for kind in KINDS}
                if self.turn_weights
                else {}
            ),
        }


def _weight_for(kind: QuestionKind, weight: Weight) -> float:
    return float(weight[kind] if isinstance(weight, Mapping) else weight)


def _by_lane(weights: JsonValue) -> object:
    """Return weights by lane from the form of `Profile.to_dict`; another form as it is."""
    if not isinstance(weights, Mapping) or {*weights} != {*KINDS}:
        return weights
    of_kinds = [lanes for lanes in weights.values() if isinstance(lanes, Mapping)]
    if len(of_kinds) < len(weights):
        return weights
    by_lane: dict[str, object] = {}
    for lane in dict.fromkeys(lane for lanes in of_kinds for lane in lanes):
        numbers = {kind: cast("Mapping[str, object]", weights[kind]).get(lane, 0) for kind in KINDS}
        first = numbers[KINDS[0]]
        is_equal = all(number == first for number in numbers.values())
        by_lane[lane] = first if is_equal else numbers
    return by_lane


def _is_weight(value: object) -> bool:
    return is_number(value) and 0 <= value <= WEIGHT_MAX


def unknown(
    noun: str, value: object, names: Iterable[str], *, where: str | None = None, remedy: str = ""
) -> InvalidInput:
    """Return the error for an unknown name; its remedy has the nearest name, and ``remedy``."""
    near = difflib.get_close_matches(value_text(value).strip("'"), list(names), n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    choice = f"{meant}Use one of {', '.join(names)}. {remedy}"
    return InvalidInput(
        f"There is no {noun} {value_text(value):.120}", where=where, remedy=choice.rstrip()
    )
