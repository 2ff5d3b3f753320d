"""English words: stop words and stems, as the installed Whoosh has them.

Stop words and stemmer come from Whoosh: `whoosh.lang.porter2`, which agreed with Snowball 2.2.0's
English stemmer on each of 12,865 words. Its `whoosh.lang.porter` anchors a rule at the wrong end
(``running`` gives ``runn``) and was wrong for 481 of them. Whoosh is loaded when the first text
is cut, and only these two modules of it (10 ms).

The rules are Whoosh's own functions. `stemmer_of` calls each only for a word with an ending that
it knows, which takes a quarter of the time; a test compares it with Whoosh's `stem`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, Protocol, cast

from blake3 import blake3

from cerata.engine.errors import Unsupported

WORD_SIZE_MAX: Final = 128
"""Most bytes of one term; of a longer word its beginning counts, also when it is asked for."""

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

Stem = Callable[[str], str]


class Rules(Protocol):
    """What is used of `whoosh.lang.porter2`, which has no types."""

    exceptional_forms: Mapping[str, str]
    exceptional_early_exit_post_1a: frozenset[str]
    s1b_suffixes: Sequence[str]
    s2_triples: Sequence[tuple[str, str, Sequence[str]]]
    s3_triples: Sequence[tuple[str, str, bool]]
    s4_delete_list: Sequence[str]
    stem: Stem
    get_r1: Callable[[str], int]
    get_r2: Callable[[str], int]
    capitalize_consonant_ys: Stem
    step_1a: Stem
    step_1b: Callable[[str, int], str]
    step_1c: Stem
    step_2: Callable[[str, int], str]
    step_3: Callable[[str, int, int], str]
    step_4: Callable[[str, int], str]
    step_5: Callable[[str, int, int], str]


class English:
    """Stop words and stems."""

    __slots__ = ("_stem", "_stop")

    def __init__(self, stem: Stem, stop: frozenset[bytes]) -> None:
        self._stem = stem
        self._stop = stop

    def term(self, word: bytes) -> bytes | None:
        """Return the term of a folded word, or None for a stop word; about 4 us."""
        if word in self._stop:
            return None
        if len(word) > STEM_SIZE_MAX:
            return word if len(word) <= WORD_SIZE_MAX else _cut_short(word)
        # ASCII letters only: `isalpha` of bytes knows no others.
        return self._stem(word.decode()).encode() if word.isalpha() else word

    def fingerprint(self) -> str:
        """Return a hash of what the stop words are and of stems of sample words."""
        stems = (self._stem(word).encode() for word in _PROBE.split())
        return blake3(b" ".join([*sorted(self._stop), *stems])).hexdigest(8)


@cache
def english() -> English:
    """Return the English rules; the first call loads them.

    Raises:
        Unsupported: Whoosh is missing, or stems differently from the version this was built on,
            so that the same text would give other terms.
    """
    try:
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
        "The installed Whoosh cuts English words differently from the one this was made with",
        where=STEMMER,
        remedy="Install Whoosh-Reloaded 2.7.5.",
    )


def stemmer_of(rules: Rules) -> Stem:
    """Return Whoosh's stemmer, for words of letters a to z; each rule is asked where it can act."""
    ends_2 = tuple(suffix for suffix, _, _ in rules.s2_triples)
    ends_3 = tuple(suffix for suffix, _, _ in rules.s3_triples)
    ends_4 = (*rules.s4_delete_list, "sion", "tion")
    # Steps 3 to 5 make new endings only for each other.
    ends_last = (*ends_3, *ends_4, "l", "e")
    ends_1b = (*rules.s1b_suffixes, "eed", "eedly")
    exceptions, finished = rules.exceptional_forms, rules.exceptional_early_exit_post_1a

    def stem(word: str) -> str:
        known = exceptions.get(word)
        if known is not None or len(word) <= 2:
            return word if known is None else known
        whole = word = rules.capitalize_consonant_ys(word) if "y" in word else word
        r1 = rules.get_r1(whole)
        if word.endswith(("s", "ied")):
            word = rules.step_1a(word)
        if word in finished:
            return word
        if word.endswith(ends_1b):
            word = rules.step_1b(word, r1)
        if word.endswith(("y", "Y")):
            word = rules.step_1c(word)
        if word.endswith(ends_2):
            word = rules.step_2(word, r1)
        if word.endswith(ends_last):
            r2 = rules.get_r2(whole)
            if word.endswith(ends_3):
                word = rules.step_3(word, r1, r2)
            if word.endswith(ends_4):
                word = rules.step_4(word, r2)
            word = rules.step_5(word, r1, r2)
        return word.replace("Y", "y")

    return stem


def _cut_short(word: bytes) -> bytes:
    """Return the beginning of a long word, whole characters only."""
    return word[:WORD_SIZE_MAX].decode(errors="ignore").encode()
