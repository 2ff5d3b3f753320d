"""The built-in profiles: their weights, with the reason of each.

Leaves out the profile itself (`profile`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .profile import Profile, unknown

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
