"""Profiles: which lanes a search runs, the weight of each, and the method that sums them.

Owns `Profile` and the built-in profiles. A profile has a name and a version, so that a result can
be reproduced: a change needs another version. Leaves out the lanes, and the sum of their ranks
(`fusion`).
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeAlias, TypeGuard, cast, get_args

from cerata.engine.arguments import expect_bool, expect_positive, is_integer
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
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
            if not _is_number(weight) or abs(weight) > SIGNAL_WEIGHT_MAX:
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
                    f"The weight of lane {lane!r} must be 0 to 1,000,000, not {number!r}",
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
    return _is_number(value) and 0 <= value <= WEIGHT_MAX


def _is_number(value: object) -> TypeGuard[int | float]:
    # A comparison, because a large int is no float; NaN fails it.
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -math.inf < value < math.inf
    )


def _by_kind(factual: float, semantic: float, temporal: float, exploratory: float) -> Weight:
    return {
        "factual": factual,
        "semantic": semantic,
        "temporal": temporal,
        "exploratory": exploratory,
    }


BALANCED: Final = Profile(
    "balanced",
    5,
    {
        "text": _by_kind(1.0, 0.7, 1.0, 1.0),
        "facts": _by_kind(1.0, 0.7, 1.0, 0.7),
        "vectors": _by_kind(0.7, 1.0, 0.7, 1.0),
        "late": 0.5,
    },
    vector_window=True,
    turn_weights={"text": 1.0, "facts": 1.0, "vectors": 0.25, "late": 0.25},
)
"""Ranks alone, words first for a thing, vectors first for a reason.

Its weights were set by hand. Token vectors count half, because each token of a question has a near
match in any long passage. A rank does not tell how near the vector of a turn is, so the ranks of
vectors count a fourth in a conversation: with half, an embedder lowers the order of meetings."""

_BY_CONTENT: Final = {"text": 0.4, "facts": 1.0, "vectors": 0.25, "late": 0.4}
"""Weights of a profile with signals: the lanes that find any frame share 1, so a text alone has 1.

Words and token vectors count alike: both show the words of a question in a turn or beside it. The
vector of a short turn is a coarse summary, so it counts less. Evidence for a fact counts one
deviation more, as much as all words together if few frames match."""

_BY_TOPIC: Final = {"text": 0.3, "facts": 1.0, "vectors": 0.6, "late": 0.1}
"""Weights for parts of documents: the same lanes, vectors with twice the words.

A vector of a passage reflects its topic, which a question for a document shares. Each token of a
question has a near match in any long passage, so token vectors count a tenth."""

_OF_TURNS: Final = {"text": 0.6, "facts": 1.0, "vectors": 0.25, "late": 0.15}
"""Weights for turns among documents: words more than both kinds of vectors together.

The vector of a short turn reflects little of its topic."""

_OF_ANSWERS: Final = {
    # Half a deviation: a question names its speaker, but often asks for a turn of another.
    "speaker": 0.6,
    # More than the best lane is above its fifth hit: few frames are of a named period.
    "period": 2.5,
    # A question for a time is rarely answered without one; the other answers are less certain.
    "when": 1.2,
    "count": 0.6,
    "name": 0.6,
    "why": 0.6,
}
_OF_DIALOGUE: Final = {
    # Questions repeat the words of a question and rarely answer it.
    "question": -0.6,
    "follows": 0.3,
    # "Thanks, Mina!" has few words, so each weighs much.
    "short": -0.6,
}
_OF_DOCUMENTS: Final = {
    "period": 2.5,
    # A test repeats the words of what it tests: a deviation less, so that the tested file comes
    # first unless its test matches far better.
    "test": -1.0,
}

OPTIONAL_SIGNALS: Final[Mapping[str, float]] = {
    # A fourth of a named speaker, for a frame of this moment.
    "recency": 0.15,
    # The largest round weight that costs a question about another conversation less than a point
    # of recall and of nDCG, on each set of conversations, with and without token vectors.
    "thread": 0.5,
    # Half of a named speaker: a frame with the name may be about anything else.
    "noun": 0.3,
}
"""Weights of the signals that no built-in profile has, in deviations, to add to a profile's."""

_CHAT: Final = Profile(
    "chat",
    4,
    _BY_CONTENT,
    method="zscore",
    vector_window=True,
    signals={**_OF_ANSWERS, **_OF_DIALOGUE},
)

AUTO: Final = replace(_CHAT, name="auto", version=1)
"""The default: stands for the profile of the memory's shape (`profile_for`), which runs instead."""

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        BALANCED,
        # Words alone: scores are BM25.
        Profile("words", 2, {"text": 1.0}),
        _CHAT,
        Profile("notes", 1, _BY_CONTENT, method="zscore", signals=_OF_ANSWERS, vector_window=True),
        Profile(
            "documents",
            3,
            _BY_TOPIC,
            method="zscore",
            vector_window=True,
            feedback=3,
            signals=_OF_DOCUMENTS,
            turn_weights=_OF_TURNS,
        ),
        AUTO,
        # Talk of an agent: the boosts of a conversation in progress, and vectors first for
        # knowledge. Of its turns, ranks by vectors first lose 7 of R@10 to words alone.
        Profile(
            "continuity",
            2,
            {"text": 0.15, "facts": 0.15, "vectors": 0.8, "graph": 0.15},
            vector_window=True,
            signals=OPTIONAL_SIGNALS,
            gate=True,
            turn_weights={"text": 0.8, "facts": 0.15, "vectors": 0.2, "graph": 0.15},
        ),
        # Used frames move up: from rank r of a lane by at most 10 + r / 6 places.
        replace(BALANCED, name="used", version=4, importance=0.2),
    )
}
"""The built-in profiles by name."""

_CHAT_ALONE: Final = Profile(
    "chat",
    3,
    {"text": 0.3, "facts": 0.3, "vectors": 0.7, "late": 0.7},
    method="zscore",
    in_context=False,
)


def _alike(name: str, version: int) -> Profile:
    """Return an earlier version of a built-in profile, in which turns weigh like other frames."""
    weights = {**PROFILES[name].weights}
    if name in ("balanced", "used"):
        # Token vectors counted twice.
        weights["late"] = 2.0
    return replace(
        PROFILES[name], version=version, weights=weights, vector_window=False, turn_weights={}
    )


def _earlier(name: str, version: int, *, fact_words: bool = True) -> Profile:
    """Return an earlier version of a built-in profile: turns by themselves, equal tokens."""
    return replace(
        _CHAT_ALONE if name == "chat" else _alike(name, version),
        version=version,
        fact_words=fact_words,
        in_context=False,
        token_weights=False,
        token_window=False,
        names_out=False,
    )


EARLIER: Final[Mapping[str, Profile]] = {
    profile.label: profile
    for profile in (
        _alike("balanced", 4),
        _alike("used", 3),
        _alike("continuity", 1),
        # Turns weigh like passages.
        replace(PROFILES["documents"], version=2, turn_weights={}),
        # Without the signal of tests.
        replace(PROFILES["documents"], version=1, signals={"period": 2.5}, turn_weights={}),
        _earlier("balanced", 3),
        _earlier("words", 1),
        _earlier("chat", 3),
        _earlier("used", 2),
        # Facts of named entities alone.
        _earlier("balanced", 2, fact_words=False),
        _earlier("chat", 2, fact_words=False),
        _earlier("used", 1, fact_words=False),
    )
}
"""Earlier versions of the built-in profiles by label, so that recorded recalls stay repeatable."""


def profile_for(turns: int, chunks: int, frames: int) -> Profile:
    """Return the profile of a memory's shape: chat, documents or notes.

    Args:
        turns: current frames that are turns of a conversation
        chunks: current frames that are parts of documents, and no turns
        frames: all current frames that a search may return

    >>> profile_for(turns=6, chunks=0, frames=10).name
    'chat'
    """
    if 2 * turns >= frames > 0:
        return PROFILES["chat"]
    return PROFILES["documents" if 2 * chunks >= frames > 0 else "notes"]


def profile_of(value: str | Profile | None) -> Profile:
    """Return a profile by its name or label, or itself; the default for None.

    A label, such as "balanced 2", is the name and version that a recorded recall has.

    Raises:
        InvalidInput: no profile has this name, or this version.
    """
    if value is None:
        return AUTO
    if isinstance(value, Profile):
        return value
    if isinstance(value, str):
        by_label = {profile.label: profile for profile in PROFILES.values()}
        profile = PROFILES.get(value) or by_label.get(value) or EARLIER.get(value)
        if profile is not None:
            return profile
    raise unknown("profile", value, PROFILES, remedy="Or pass a cerata.Profile.")


def unknown(
    noun: str, value: object, names: Iterable[str], *, where: str | None = None, remedy: str = ""
) -> InvalidInput:
    """Return the error for an unknown name; its remedy has the nearest name, and ``remedy``."""
    near = difflib.get_close_matches(str(value), list(names), n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    choice = f"{meant}Use one of {', '.join(names)}. {remedy}"
    return InvalidInput(f"There is no {noun} {value!r}", where=where, remedy=choice.rstrip())
