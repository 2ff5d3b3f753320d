"""Profiles: which lanes a search runs, what each weighs, and how they become one score.

Owns `Profile` and those that come with Cerata. A profile is named and has a version, so that what
was shown can be shown again: one that changes gets another version. Leaves out the lanes
themselves, and how their ranks become a score (`fusion`).
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, get_args

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from .classifier import KINDS, QuestionKind
from .fusion import Method

LANES: Final = ("text", "facts", "vectors", "late")
"""The lanes there are, in the order in which they are summed."""

WEIGHT_MAX: Final = 1e6
"""Most that a lane weighs: sums of what weighs more are no longer exact to 9 digits."""

Weight: TypeAlias = float | Mapping[str, float]
"""What a lane weighs: for every question alike, or for each kind."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Which lanes run for a question, and what each weighs.

    ``weights`` names the lanes that run; a lane of weight 0 does not run for such questions. Every
    kind of question has a lane that runs. ``method`` is "rrf", "minmax" or "zscore"; see
    `cerata.retrieval.fusion`. With ``rerank`` the best are put in order by their tokens, where
    there are token vectors; see `cerata.retrieval.reranking`. ``importance`` multiplies the score
    of what was used by up to 1 + importance; see `cerata.retrieval.strength`. 0 is off.

    Raises:
        InvalidInput: a name, number or method is none that there is.

    >>> Profile("notes", 1, {"text": 1, "vectors": {**dict.fromkeys(KINDS, 1), "factual": 0}})
    Profile(name='notes', version=1, weights=..., method='rrf', rerank=False, importance=0.0)
    """

    name: str
    version: int
    weights: Mapping[str, Weight] = field(hash=False)
    method: Method = "rrf"
    rerank: bool = False
    importance: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("A profile has no name", remedy="Give it one, such as 'notes'.")
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise self._wrong(f"Its version is {self.version!r}", "Count from 1.")
        if self.method not in get_args(Method):
            raise self._wrong(*unknown("method", self.method, get_args(Method)))
        if not isinstance(self.rerank, bool):
            raise self._wrong(f"Its rerank is {self.rerank!r:.60}", "Give True or False.")
        if not (_is_weight(self.importance) and self.importance <= 1):
            raise self._wrong(f"Its importance is {self.importance!r:.60}", "Give 0 to 1.")
        if not isinstance(self.weights, Mapping):
            raise self._wrong(f"Its weights are {self.weights!r:.60}", "Give one for each lane.")
        for lane, weight in self.weights.items():
            if lane not in LANES:
                raise self._wrong(*unknown("lane", lane, LANES))
            self._check_weight(lane, weight)
        for kind in KINDS:
            if not self.weights_for(kind):
                raise self._wrong(f"No lane runs for {kind} questions", "Give one a weight.")

    def _check_weight(self, lane: str, weight: Weight) -> None:
        numbers: list[float] = [weight] if not isinstance(weight, Mapping) else [*weight.values()]
        if isinstance(weight, Mapping):
            for kind in weight:
                if kind not in KINDS:
                    raise self._wrong(*unknown("kind of question", kind, KINDS))
            for kind in KINDS:
                if kind not in weight:
                    what = f"Lane {lane!r} has no weight for {kind} questions"
                    raise self._wrong(what, "Give one for each kind; 0 is off.")
        for one in numbers:
            if not _is_weight(one):
                raise self._wrong(f"The weight of lane {lane!r} is {one!r}", "Give 0 to 1,000,000.")

    def _wrong(self, what: str, remedy: str) -> InvalidInput:
        return InvalidInput(what, where=f"profile {self.name!r}", remedy=remedy)

    @property
    def label(self) -> str:
        """The name and the version in one: ``balanced 1``."""
        return f"{self.name} {self.version}"

    @property
    def is_late(self) -> bool:
        """Whether token vectors are asked for, for any kind of question."""
        return self.rerank or any("late" in self.weights_for(kind) for kind in KINDS)

    def weights_for(self, kind: QuestionKind) -> dict[str, float]:
        """Return the lanes that run for a kind of question, in their order, and their weights."""
        found: dict[str, float] = {}
        for lane in LANES:
            weight = self.weights.get(lane, 0.0)
            number = float(weight[kind] if isinstance(weight, Mapping) else weight)
            if number:
                found[lane] = number
        return found

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "version": self.version,
            "method": self.method,
            "rerank": self.rerank,
            "importance": self.importance,
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
    2,
    {
        "text": _by_kind(1.0, 0.7, 1.0, 1.0),
        "facts": _by_kind(1.0, 0.7, 1.0, 0.7),
        "vectors": _by_kind(0.7, 1.0, 0.7, 1.0),
        "late": 2.0,
    },
)
"""The default: ranks alone, words first where a thing is asked for, vectors where a reason is.

Its weights were set by hand. Tokens, where there are any, count twice: both a word and a meaning
that are alike show in them."""

PROFILES: Final[Mapping[str, Profile]] = {
    one.name: one
    for one in (
        BALANCED,
        # Words alone: scores are BM25.
        Profile("words", 1, {"text": 1.0}),
        # For short turns of a dialogue: by how much one is better counts, and vectors come first.
        Profile(
            "chat", 2, {"text": 0.3, "facts": 0.3, "vectors": 0.7, "late": 0.7}, method="zscore"
        ),
        # What was used moves up: from rank r of a lane by at most 10 + r / 6 places.
        Profile("used", 1, BALANCED.weights, importance=0.2),
    )
}
"""The profiles that come with Cerata, by name."""


def profile_of(value: str | Profile | None) -> Profile:
    """Return a profile by its name, or itself; the default for None.

    Raises:
        InvalidInput: there is none of this name.
    """
    if value is None:
        return BALANCED
    if isinstance(value, Profile):
        return value
    if not isinstance(value, str) or value not in PROFILES:
        what, remedy = unknown("profile", value, PROFILES)
        raise InvalidInput(what, remedy=f"{remedy} Or give a cerata.Profile.")
    return PROFILES[value]


def unknown(what: str, given: object, known: Iterable[str]) -> tuple[str, str]:
    """Return what is wrong with a name that is not known, and the nearest that are."""
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return f"There is no {what} {given!r}", f"{meant}Known are {', '.join(names)}."
