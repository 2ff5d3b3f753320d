"""The built-in profiles: their weights, with the reason of each, and their earlier versions.

Leaves out the profile itself (`profile`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .profile import Profile, Weight, unknown


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
    # As much as a named speaker, for the answer to a question with every word of the question.
    "replies": 0.6,
}
"""Weights of the signals that are off in `chat`, in deviations, to add to a profile's."""

_BOOSTS: Final = {name: OPTIONAL_SIGNALS[name] for name in ("recency", "thread", "noun")}
"""The boosts of a conversation in progress."""

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
            signals=_BOOSTS,
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
