"""A profile: the weights of a search's lanes and signals.

Owns `Profile`, its checks and its plain form. A profile has a name and a version, so that a result
can be reproduced: a change needs another version. Leaves out the lanes, and the sum of their shares
(`fusion`).
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, cast

from cerata.engine.arguments import expect_positive, is_number
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import JsonValue
from cerata.engine.json_value import exact_fields
from cerata.engine.plain_value import PlainValue, plain_fields

from .signals import SIGNALS

LANES: Final = ("text", "facts", "vectors", "late", "graph")
"""All lanes, in the order of their sum."""

WEIGHT_MAX: Final = 1e6
"""Largest weight of a lane: sums of larger weights are not exact to 9 digits."""

SIGNAL_WEIGHT_MAX: Final = 1_000.0
"""Largest weight of a signal, above and below 0: far more than all lanes together."""


@dataclass(frozen=True, slots=True)
class Profile(PlainValue):
    """The weights of a search: which lanes run for a question, and what each adds to a score.

    The lanes "text", "vectors" and "late" add their weight to a frame that fits the question
    wholly. The lanes "facts" and "graph", and the signals, add steps: a step is a twentieth of the
    most that the other lanes can add (`cerata.retrieval.ranking.fusion`).

    Args:
        name: the profile's name
        version: whole number from 1; other weights need another version
        weights: the weight of each lane that runs; 0 switches a lane off
        signals: the weight of each signal (`SIGNALS`), in steps; default none
        importance: 0 (off) to 1; multiplies the score of used frames by up to 1 + importance

    Raises:
        InvalidInput: a name or number is unknown or out of range.

    >>> Profile("notes", 1, {"text": 1, "vectors": 0.5}).label
    'notes 1'
    """

    name: str
    version: int
    weights: Mapping[str, float]
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    importance: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("A profile needs a name", remedy="Pass a name, such as 'notes'.")
        exact_fields(self, "version", "importance")
        expect_positive("version", self.version, self._place)
        if not (_is_weight(self.importance) and self.importance <= 1):
            raise self._wrong(
                f"importance must be a number from 0 to 1, not {self.importance!r:.60}",
                "Pass a number from 0 to 1.",
            )
        self._check_signals()
        self._check_weights()

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

    def _check_weights(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise self._wrong(
                f"weights must map lanes to weights, not {self.weights!r:.60}",
                "Pass a weight for each lane, such as {'text': 1}.",
            )
        for lane, weight in cast("Mapping[str, object]", self.weights).items():
            if lane not in LANES:
                raise unknown("lane", lane, LANES, where=self._place)
            if not _is_weight(weight):
                raise self._wrong(
                    f"The weight of lane {lane!r} must be 0 to 1,000,000, not {weight!r:.60}",
                    "Pass 0 to 1,000,000.",
                )
        if not any(self.weights.values()):
            raise self._wrong("No lane runs", "Give a lane a weight above 0.")

    @property
    def _place(self) -> str:
        return f"profile {self.name!r}"

    def _wrong(self, fault: str, remedy: str) -> InvalidInput:
        return InvalidInput(fault, where=self._place, remedy=remedy)

    @property
    def label(self) -> str:
        """The name and the version as one text: ``default 1``."""
        return f"{self.name} {self.version}"

    @property
    def running(self) -> dict[str, float]:
        """The lanes with a weight, in their order."""
        running: dict[str, float] = {}
        for lane in LANES:
            weight = self.weights.get(lane)
            if weight:
                running[lane] = float(weight)
        return running

    @classmethod
    def from_dict(cls, values: Mapping[str, JsonValue]) -> "Profile":
        """Return a profile from the form of `to_dict`.

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
        return cls(**known)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("name", "version")),
            "weights": {**self.running},
            "signals": {name: self.signals[name] for name in SIGNALS if name in self.signals},
            **plain_fields(self, ("importance",)),
        }


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


# --- The built-in profiles: their weights, with the reason of each --------------------------------


_OF_ANSWERS: Final = {
    # A question names its speaker, but often asks for a turn of another.
    "speaker": 0.6,
    # Few frames are of a named period.
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
_OF_FILES: Final = {
    # A test repeats the words of what it tests: the tested file comes first unless its test
    # matches far better.
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
    # As much as a named speaker, for the answer to a question with every word of the question.
    "replies": 0.6,
}
"""Weights of the signals that are off in `DEFAULT`, in steps, to add to a profile's."""

DEFAULT: Final = Profile(
    "default",
    1,
    # Words, vectors and token vectors count alike, and evidence for a fact as much as two signals:
    # the measurements of other weights are in docs/search.md.
    {"text": 1.0, "facts": 2.0, "vectors": 1.0, "late": 1.0},
    signals={**_OF_ANSWERS, **_OF_DIALOGUE, **_OF_FILES},
)
"""The profile of a search that names none."""

_BOOSTS: Final = {name: OPTIONAL_SIGNALS[name] for name in ("recency", "thread", "noun")}
"""The boosts of a conversation in progress."""

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        DEFAULT,
        Profile("words", 1, {"text": 1.0}),
        # Talk of an agent: turns that are new, of this conversation, or near a named entity.
        replace(
            DEFAULT,
            name="continuity",
            weights={**DEFAULT.weights, "graph": 1.0},
            signals={**DEFAULT.signals, **_BOOSTS},
        ),
        replace(DEFAULT, name="used", importance=0.2),
    )
}
"""The built-in profiles by name."""


def profile_of(value: str | Profile | None) -> Profile:
    """Return a profile by its name or label, or itself; the default for None.

    A label, such as "default 1", is the name and version that a recorded recall has.

    Raises:
        InvalidInput: no profile has this name, or this version.
    """
    if value is None:
        return DEFAULT
    if isinstance(value, Profile):
        return value
    if isinstance(value, str):
        for profile in PROFILES.values():
            if value in (profile.name, profile.label):
                return profile
    raise unknown("profile", value, PROFILES, remedy="Or pass a cerata.Profile.")
