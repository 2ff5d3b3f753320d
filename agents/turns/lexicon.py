"""The lexicon: signs and patterns of messages, and the count of their phrases in a text.

Owns `Lexicon` and its data file, english.toml, whose head describes the form of phrases. The signs
and patterns are unvalidated heuristics for English. Leaves out the scores that readings compute
from them (`cerata.agents.continuity`).
"""

import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Final, NamedTuple

import msgspec

from cerata.projections.fulltext.analyzer import term_of, words

LEXICON: Final = "english/1"
"""Name and version of the lexicon, a parameter of the projection."""

SIGNS: Final = (
    *("correction", "emotion", "paradox", "meta", "plan", "done", "conclusion", "intimacy", "calm"),
    *("claim", "identity", "tension", "contradiction", "principle", "commitment", "decision"),
    *("gap", "question", "recall", "denial", "self", "hedge", "thanks", "urgency"),
)
"""The signs, in the order of their counts. On disk: only append, with another version."""

SIGN: Final = {name: place for place, name in enumerate(SIGNS)}
"""The place of each sign."""

PATTERNS: Final = (
    *("names-feeling", "corrects-self", "admits-not-knowing", "avoids", "deflects-with-humour"),
    *("performs-insight", "names-fear", "tells-hard-story", "sees-own-pattern", "asks-for-help"),
    *("concrete", "sweeping-judgement", "owns-mistake", "honest-question", "treats-agent-as-tool"),
    *("empty-agreement", "kept-promise", "follows-through", "excuse", "stuck", "small-action"),
    "own-agency",
)
"""The patterns, in the order of their bits. On disk: only append, with another version."""

COUNT_MAX: Final = 255
"""A higher count of a sign is stored as this."""

_ANY: Final = b"*"
_MARK: Final = "?"
_ALTERNATIVE: Final = "|"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sign or a pattern in the data file."""

    phrases: list[str]
    has: str
    lacks: str
    of: str = "user"


class LexiconFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data file."""

    version: int
    signs: dict[str, Section]
    patterns: dict[str, Section]


class Counts(NamedTuple):
    """The counts of a message: a number for each sign, and a bit for each pattern."""

    signs: list[int]
    patterns: int


class _Node:
    """A word of phrases: the numbers of the phrases that end here, and the words that follow."""

    __slots__ = ("ends", "following")

    def __init__(self) -> None:
        self.ends: set[int] = set()
        self.following: dict[bytes, _Node] = {}


class Lexicon:
    """The phrases of signs and patterns, as a tree of words."""

    def __init__(self, signs: Mapping[str, Section], patterns: Mapping[str, Section]) -> None:
        """Create a lexicon; a sign or pattern that is missing counts nothing."""
        self._root = _Node()
        self._marks: list[int] = []
        self._of = [signs[name].of if name in signs else "" for name in SIGNS]
        sections = [signs.get(name) for name in SIGNS] + [patterns.get(name) for name in PATTERNS]
        for number, section in enumerate(sections):
            for phrase in () if section is None else section.phrases:
                if phrase == _MARK:
                    self._marks.append(number)
                else:
                    for choice in _choices(phrase):
                        self._add(choice, number)

    def _add(self, phrase: Sequence[bytes], number: int) -> None:
        node = self._root
        for word in phrase:
            node = node.following.setdefault(word, _Node())
        node.ends.add(number)

    def counts(self, text: str, folded: Sequence[bytes], *, is_users: bool) -> Counts:
        """Return the counts of a message.

        A sign counts each place at which one of its phrases starts. The patterns are those of a
        user's message only.

        Args:
            text: The text.
            folded: Its words, as `words` folds them.
            is_users: True for a user's message.
        """
        counts = [0] * (len(SIGNS) + len(PATTERNS))
        for number in self._marks:
            counts[number] += text.count(_MARK)
        get = self._root.following.get
        last = len(folded) - 1
        for place, word in enumerate(folded):
            node = get(word)
            if node is None:
                continue
            numbers = node.ends
            if place < last and node.following:
                numbers = _numbers(node, folded, place + 1)
            for number in numbers:
                counts[number] += 1
        speaker = "user" if is_users else "assistant"
        signs = [
            min(count, COUNT_MAX) if of in (speaker, "both") else 0
            for count, of in zip(counts, self._of, strict=False)
        ]
        bits = 0
        if is_users:
            for bit, count in enumerate(counts[len(SIGNS) :]):
                bits |= (count > 0) << bit
        return Counts(signs, bits)


def _numbers(node: _Node, folded: Sequence[bytes], place: int) -> set[int]:
    """Return the numbers of the phrases that end at a node, or go on from it at a place."""
    if place == len(folded):
        return node.ends
    following = node.following
    word, any_word = following.get(folded[place]), following.get(_ANY)
    numbers = node.ends
    for further in (word, any_word):
        if further is not None:
            numbers = numbers | _numbers(further, folded, place + 1)
    return numbers


def _choices(phrase: str) -> Iterator[Sequence[bytes]]:
    """Yield the runs of words that match a phrase."""
    return product(*(_alternatives(word) for word in phrase.split()))


def _alternatives(word: str) -> list[bytes]:
    if word == _ANY.decode():
        return [_ANY]
    folded = [words(choice) for choice in word.split(_ALTERNATIVE)]
    if any(len(choice) != 1 for choice in folded):
        raise ValueError(f"{word!r} is no single word; write an apostrophe as a space")
    return [choice[0] for choice in folded]


def lexicon_file() -> LexiconFile:
    """Return the data file of the lexicon, decoded."""
    data = (files("cerata.agents.turns") / "english.toml").read_bytes()
    return msgspec.convert(tomllib.loads(data.decode()), LexiconFile)


@cache
def english_lexicon() -> Lexicon:
    """Return the English lexicon; the first call reads its file, about 10 ms."""
    loaded = lexicon_file()
    return Lexicon(loaded.signs, loaded.patterns)


# --- Topics: the stems that a message speaks about, by repetition ---------------------------------
#
# A topic of a message is a stem of at least 5 letters, no stop word, that occurs twice in the
# message, or once if it is a topic of the 12 messages before it (6 exchanges) of the same thread
# and mode group. An unvalidated heuristic; the constants are those of the source.


WINDOW: Final = 12
"""Messages before a message whose topics count: 6 exchanges."""

TOPICS_MAX: Final = 8
"""Topics of a message: the most frequent, then the first."""

LETTERS_MIN: Final = 5


def topics_of(folded: Sequence[bytes], earlier: Collection[str]) -> list[str]:
    """Return the topics of a message, the most frequent first.

    Args:
        folded: The words of the message.
        earlier: The topics of the messages before it.
    """
    counts: dict[str, int] = {}
    for word, times in Counter(folded).items():
        term = term_of(word) if len(word) >= LETTERS_MIN else None
        if term is not None and len(term) >= LETTERS_MIN:
            stem = term.decode()
            counts[stem] = counts.get(stem, 0) + times
    topics = [
        stem
        for stem, count in counts.items()
        if (count > 1 or stem in earlier) and _is_of_letters(stem)
    ]
    # Sorting is stable: equal counts keep the order of the text.
    return sorted(topics, key=lambda stem: -counts[stem])[:TOPICS_MAX]


def _is_of_letters(stem: str) -> bool:
    return len(stem) >= LETTERS_MIN and not any("0" <= letter <= "9" for letter in stem)
