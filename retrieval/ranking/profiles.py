"""Profiles: which lanes a search runs, the weight of each, and the method that sums them.

Owns `Profile` and the built-in profiles. A profile has a name and a version, so that a result can
be reproduced: a change needs another version. Leaves out the lanes, and the sum of their ranks
(`fusion`).
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, get_args

from cerata.engine.arguments import expect_bool, expect_positive
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.plain_value import PlainValue, plain_fields

from ..query_classifier import KINDS, QuestionKind
from .fusion import Method

LANES: Final = ("text", "facts", "vectors", "late")
"""All lanes, in the order of their sum."""

WEIGHT_MAX: Final = 1e6
"""Largest weight of a lane: sums of larger weights are not exact to 9 digits."""

SWITCHES: Final = ("fact_words", "in_context", "token_weights", "token_window", "names_out")
"""The parts of a profile that are on or off, besides its lanes."""

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
        method: "rrf", "minmax" or "zscore"; see `cerata.retrieval.ranking.fusion`
        rerank: if True, token vectors order the best hits (`reranked` of that module)
        importance: 0 (off) to 1; multiplies the score of used frames by up to 1 + importance
        fact_words: if True, facts that share words with the question match, too
        in_context: if True, the words of neighbouring turns count for a turn
        token_weights: if True, tokens of the question weigh as much as their words
        token_window: if True, the token vectors of neighbouring turns count for a turn
        names_out: if True, the embedder reads the question without names of speakers

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

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("A profile needs a name", remedy="Pass a name, such as 'notes'.")
        where = f"profile {self.name!r}"
        expect_positive("version", self.version, where)
        if self.method not in get_args(Method):
            raise unknown("method", self.method, get_args(Method), where=self._place)
        for switch in ("rerank", *SWITCHES):
            expect_bool(switch, getattr(self, switch), where)
        if not (_is_weight(self.importance) and self.importance <= 1):
            raise self._wrong(
                f"importance must be a number from 0 to 1, not {self.importance!r:.60}",
                "Pass a number from 0 to 1.",
            )
        if not isinstance(self.weights, Mapping):
            raise self._wrong(
                f"weights must map lanes to weights, not {self.weights!r:.60}",
                "Pass a weight for each lane, such as {'text': 1}.",
            )
        for lane, weight in self.weights.items():
            if lane not in LANES:
                raise unknown("lane", lane, LANES, where=self._place)
            self._check_weight(lane, weight)
        for kind in KINDS:
            if not self.weights_for(kind):
                raise self._wrong(
                    f"No lane runs for {kind} questions", "Give a lane a weight above 0."
                )

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

    def weights_for(self, kind: QuestionKind) -> dict[str, float]:
        """Return the lanes that run for a kind of question, in their order, with their weights.

        Args:
            kind: "factual", "semantic", "temporal" or "exploratory"
        """
        weights: dict[str, float] = {}
        for lane in LANES:
            weight = self.weights.get(lane, 0.0)
            number = float(weight[kind] if isinstance(weight, Mapping) else weight)
            if number:
                weights[lane] = number
        return weights

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("name", "version", "method", "rerank", "importance")),
            **plain_fields(self, SWITCHES),
            "weights": {kind: {**self.weights_for(kind)} for kind in KINDS},
        }


def _is_weight(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= WEIGHT_MAX


def _by_kind(factual: float, semantic: float, temporal: float, exploratory: float) -> Weight:
    return {
        "factual": factual,
        "semantic": semantic,
        "temporal": temporal,
        "exploratory": exploratory,
    }


BALANCED: Final = Profile(
    "balanced",
    4,
    {
        "text": _by_kind(1.0, 0.7, 1.0, 1.0),
        "facts": _by_kind(1.0, 0.7, 1.0, 0.7),
        "vectors": _by_kind(0.7, 1.0, 0.7, 1.0),
        "late": 2.0,
    },
)
"""The default: ranks alone, words first for a thing, vectors first for a reason.

Its weights were set by hand. Token vectors count twice: they reflect equal words and equal
meanings."""

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        BALANCED,
        # Words alone: scores are BM25.
        Profile("words", 2, {"text": 1.0}),
        # For short turns of a dialogue: the margin between scores counts, and vectors come first.
        Profile(
            "chat", 4, {"text": 0.3, "facts": 0.3, "vectors": 0.7, "late": 0.7}, method="zscore"
        ),
        # Used frames move up: from rank r of a lane by at most 10 + r / 6 places.
        Profile("used", 3, BALANCED.weights, importance=0.2),
    )
}
"""The built-in profiles by name."""


def _earlier(name: str, version: int, *, fact_words: bool = True) -> Profile:
    """Return an earlier version of a built-in profile: turns by themselves, equal tokens."""
    return replace(
        PROFILES[name],
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


def profile_of(value: str | Profile | None) -> Profile:
    """Return a profile by its name or label, or itself; the default for None.

    A label, such as "balanced 2", is the name and version that a recorded recall has.

    Raises:
        InvalidInput: no profile has this name, or this version.
    """
    if value is None:
        return BALANCED
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
