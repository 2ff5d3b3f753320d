"""From words to terms: English stop words and stems of the installed Whoosh; other scripts.

Stop words and stemmer come from Whoosh: `whoosh.lang.porter2`, which agreed with Snowball 2.2.0's
English stemmer on each of 12,865 words. `whoosh.lang.porter` anchors a rule at the wrong end
(``running`` gives ``runn``) and was wrong for 481 of these words. The first text that is cut loads
Whoosh, and only two modules (10 ms).

The rules are Whoosh's. `stemmer_of` applies a rule only to words with an ending that the rule
handles, finds the endings of long tables by the last two letters, and has the rule for "ed" and
"ing" without expressions that try each place of a word. It takes a tenth of the time; tests compare
the stems with those of Whoosh's `stem`. Words of other scripts have stemmers of their own
(`script_stems`).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, Protocol, cast

from blake3 import blake3

from cerata.engine.errors import Unsupported
from cerata.engine.late import loading

from .script_stems import stem_of_script
from .term_weights import BESIDE

WORD_SIZE_MAX: Final = 128
"""Maximum bytes of a term; texts and queries alike cut a longer word to this size."""

STEM_SIZE_MAX: Final = 40
"""Longer words are codes, not English."""

STEMMER: Final = "whoosh.lang.porter2"
_PROBE: Final = (
    "running hopping hoped falling generously relational conditional caresses ponies sky happy "
    "university news flying dying skis cats replied crying decided decisions latency choosing "
    "added international organization early only proceed exceed innings rate rating controlled "
    "national feudalism activate effective adjustment adoption bowdlerize roll cease probate"
)
_PROBE_DIGEST: Final = "36980a014ae3c4d4"

_WITHOUT_APOSTROPHE: Final = (
    *("didnt", "doesnt", "dont", "isnt", "arent", "wasnt", "werent", "hasnt", "havent", "hadnt"),
    *("wouldnt", "couldnt", "shouldnt", "mustnt"),
)
"""Each counts as its word before the apostrophe: ``didnt`` finds ``didn't``, two words of which the
second is a stop word."""

Stem = Callable[[str], str]


class Rules(Protocol):
    """The used part of `whoosh.lang.porter2`, which has no type annotations."""

    exceptional_forms: Mapping[str, str]
    exceptional_early_exit_post_1a: frozenset[str]
    s2_triples: Sequence[tuple[str, str, Sequence[str]]]
    s3_triples: Sequence[tuple[str, str, bool]]
    s4_delete_list: Sequence[str]
    stem: Stem
    capitalize_consonant_ys: Stem
    step_1a: Stem
    step_1c: Stem
    step_5: Callable[[str, int, int], str]


class English:
    """Stop words and stems.

    - ``stop_words`` ascend; the place of a word is its number in an index.
    """

    __slots__ = ("_fixed", "_numbers", "_stem", "stop_words")

    def __init__(self, stem: Stem, stop: frozenset[bytes]) -> None:
        self._stem = stem
        self.stop_words = sorted(stop)
        self._numbers = {word: number for number, word in enumerate(self.stop_words)}
        self._fixed: dict[bytes, bytes | None] = dict.fromkeys(stop)
        for word in _WITHOUT_APOSTROPHE:
            first = word[:-1].encode()
            if first in stop:
                self._fixed[word.encode()] = None
                self._numbers[word.encode()] = self._numbers[first]
            else:
                self._fixed[word.encode()] = stem(first.decode()).encode()

    def term(self, word: bytes) -> bytes | None:
        """Return the term of a folded word, or None for a stop word; about 4 us."""
        if word in self._fixed:
            return self._fixed[word]
        if len(word) > STEM_SIZE_MAX:
            return word if len(word) <= WORD_SIZE_MAX else _cut_short(word)
        # `bytes.isalpha` is true for ASCII letters only.
        if word.isalpha():
            return self._stem(word.decode()).encode()
        return stem_of_script(word.decode()).encode() if word[0] >= 0x80 else word

    def terms(self, words: Sequence[bytes]) -> list[bytes | None]:
        """Return `term` of each word."""
        fixed, stem = self._fixed, self._stem
        return [
            stem(word.decode()).encode()
            if word not in fixed and len(word) <= STEM_SIZE_MAX and word.isalpha()
            else self.term(word)
            for word in words
        ]

    def stop_number(self, word: bytes) -> int | None:
        """Return the number of a stop word; None for any other word."""
        return self._numbers.get(word)

    def stop_term(self, word: bytes) -> str | None:
        """Return the term of a stop word, which counts if a question has no other word."""
        number = self._numbers.get(word)
        return None if number is None else BESIDE + self.stop_words[number].decode()

    def fingerprint(self) -> str:
        """Return a hash of the stop words and of the stems of sample words."""
        stems = (self._stem(word).encode() for word in _PROBE.split())
        return blake3(b" ".join([*self.stop_words, *stems])).hexdigest(8)


@cache
def english() -> English:
    """Return the English rules; the first call loads them.

    Raises:
        Unsupported: Whoosh is missing, or stems differently from the version that this module
            was built on, so that the same text would give different terms.
    """
    try:
        with loading("Whoosh's stemmer"):
            from whoosh.lang import porter2, stopwords
    except ImportError as error:
        raise Unsupported(
            "Full text needs Whoosh's stemmer", remedy="Install Whoosh-Reloaded."
        ) from error
    stop = cast("Iterable[str]", stopwords.stoplists["en"])
    try:
        stem = stemmer_of(cast("Rules", porter2))
    except AttributeError:
        fingerprint = None
    else:
        rules = English(stem, frozenset(word.encode() for word in stop))
        fingerprint = rules.fingerprint()
        if fingerprint == _PROBE_DIGEST:
            return rules
    raise Unsupported(
        "The installed Whoosh cuts English words differently from release 2.7.5",
        where=STEMMER,
        remedy="Install Whoosh-Reloaded 2.7.5.",
    )


class Ending(NamedTuple):
    """An ending and its replacement; acts within R1 or R2, after one of ``after`` if not empty."""

    ending: str
    replacement: str
    in_r2: bool = False
    after: tuple[str, ...] = ()


_R1: Final = re.compile("gener|arsen|commun|[^aeiouy]*[aeiouy]+[^aeiouy]")
_R2: Final = re.compile("[^aeiouy]*[aeiouy]+[^aeiouy]")
"""The text before region R1, with the stems that Porter2 excepts, and before R2 within R1."""
_VOWELS: Final = "aeiouy"
_VOWEL: Final = re.compile(f"[{_VOWELS}]")
_CONSONANT_Y: Final = re.compile(f"^y|[{_VOWELS}]y")
_ENDINGS_1B: Final = ("ed", "edly", "ing", "ingly")
_BEFORE_E: Final = frozenset({"at", "bl", "iz"})
_DOUBLES: Final = frozenset({"bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"})


def stemmer_of(rules: Rules) -> Stem:
    """Return Whoosh's stemmer for words of letters a to z, which skips rules that cannot act."""
    step_2 = [Ending(end, new, after=tuple(after)) for end, new, after in rules.s2_triples]
    step_3 = [Ending(end, new, in_r2) for end, new, in_r2 in rules.s3_triples]
    step_4 = [Ending(end, "", in_r2=True) for end in rules.s4_delete_list]
    step_4.append(Ending("ion", "", in_r2=True, after=("s", "t")))
    steps = _by_tail(step_2), _by_tail(step_3), _by_tail(step_4)
    # Steps 2 to 5 create new endings only for each other.
    tails = frozenset(tail for step in steps for tail in step)
    exceptions = rules.exceptional_forms
    finished = rules.exceptional_early_exit_post_1a

    def stem(word: str) -> str:
        exception = exceptions.get(word)
        if exception is not None or len(word) <= 2:
            return word if exception is None else exception
        if "y" in word and _CONSONANT_Y.search(word):
            word = rules.capitalize_consonant_ys(word)
        whole = word
        if word.endswith(("s", "ied")):
            word = rules.step_1a(word)
        if word in finished:
            return word
        if word.endswith(_ENDINGS_1B):
            word = _step_1b(word, whole)
        if word.endswith(("y", "Y")):
            word = rules.step_1c(word)
        if word[-2:] in tails or word.endswith(("e", "ll")):
            r1 = _end(_R1, whole, 0)
            r2 = _end(_R2, whole, r1)
            for step in steps:
                endings = step.get(word[-2:])
                if endings is not None:
                    word = _without(endings, word, r1, r2)
            if word.endswith(("e", "ll")):
                word = rules.step_5(word, r1, r2)
        return word.replace("Y", "y")

    return stem


def _step_1b(word: str, whole: str) -> str:
    """Return a word after step 1b, of which ``whole`` is the form before step 1a."""
    for ending, kept in (("eedly", 3), ("eed", 1)):
        if word.endswith(ending):
            is_within = len(word) - len(ending) >= _end(_R1, whole, 0)
            return word[:-kept] if is_within else word
    ending = next(filter(word.endswith, _ENDINGS_1B))
    start = word[: -len(ending)]
    if not _VOWEL.search(start):
        return word
    tail = start[-2:]
    if tail in _BEFORE_E:
        return start + "e"
    if tail in _DOUBLES:
        return start[:-1]
    return start + "e" if _is_short(start) else start


def _is_short(word: str) -> bool:
    """Return whether a word ends with a short syllable and has no region R1."""
    if len(word) == 2:
        is_short = word[0] in _VOWELS and word[1] not in _VOWELS
    else:
        is_short = (
            len(word) > 2
            and word[-1] not in "aeiouywxY"
            and word[-2] in _VOWELS
            and word[-3] not in _VOWELS
        )
    return is_short and _end(_R1, word, 0) == len(word)


def _by_tail(endings: Iterable[Ending]) -> dict[str, list[Ending]]:
    """Return endings by their last two letters; the first that a word has applies."""
    by_tail: dict[str, list[Ending]] = {}
    for ending in endings:
        by_tail.setdefault(ending.ending[-2:], []).append(ending)
    return by_tail


def _end(region: re.Pattern[str], word: str, start: int) -> int:
    """Return where a region starts: after the match of its prefix, else at the word's end."""
    before = region.match(word, start)
    return len(word) if before is None else before.end()


def _without(endings: Sequence[Ending], word: str, r1: int, r2: int) -> str:
    """Return a word after a step: with a replaced ending, or unchanged."""
    for ending, replacement, in_r2, after in endings:
        if word.endswith(ending):
            start = word[: -len(ending)]
            is_within = len(start) >= (r2 if in_r2 else r1)
            acts = is_within and (not after or start.endswith(after))
            return start + replacement if acts else word
    return word


def _cut_short(word: bytes) -> bytes:
    """Return the first bytes of a long word, whole characters only."""
    return word[:WORD_SIZE_MAX].decode(errors="ignore").encode()
