"""Words: from text to terms, the same on every machine.

Owns the rules that cut text. They rest on committed tables of one Unicode version
(`unicode_tables`), never on what the running Python calls a letter or a capital:

- A character is folded: compatibility form, no case, no accents (``Café`` counts as ``cafe``).
- A word is a run of letters, marks and digits, of which 128 bytes count. ``put_frame`` is two
  words, ``3.11`` is two, ``don't`` is ``don`` and ``t``.
- Scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) and Hangul give each character
  and each pair of neighbours, so that a question of one character or of many finds its place.
- English stop words are left out, and English words are stemmed.

Stop words and stemmer come from Whoosh: `whoosh.lang.porter2`, which agreed with Snowball 2.2.0's
English stemmer on each of 12,865 words. Its `whoosh.lang.porter` anchors a rule at the wrong end
(``running`` gives ``runn``) and was wrong for 481 of them. Whoosh is loaded when the first text
is cut, and only these two modules of it (10 ms).
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, cast

from blake3 import blake3

from cerata.engine.errors import Unsupported

from . import unicode_tables as tables

WORD_SIZE_MAX: Final = 128
"""Most bytes of one term; of a longer word its beginning counts, also when it is asked for."""

_STEM_SIZE_MAX: Final = 40
"""Longer words are codes, not English."""

_UNSTEMMED_ENDS: Final = frozenset(b"abfhjkopquvwxz0123456789")
"""No rule of the stemmer takes a word with such an end; a test compares them."""

_STEMS_KEPT_MAX: Final = 8192
"""Stems that are remembered: a stem takes 10 us to find, and 1 MB holds these."""

STEMMER: Final = "whoosh.lang.porter2"
_PROBE: Final = (
    "running hopping hoped falling generously relational conditional caresses ponies sky happy "
    "university news flying dying skis cats replied crying decided decisions latency choosing "
    "added international organization early only proceed exceed innings rate rating controlled "
    "national feudalism activate effective adjustment adoption bowdlerize roll cease probate"
)
_PROBE_DIGEST: Final = "36980a014ae3c4d4"

Stem = Callable[[str], str]

_ASCII_FOLDS: Final = bytes(
    code
    if chr(code) in "0123456789abcdefghijklmnopqrstuvwxyz"
    else ord(chr(code).lower())
    if chr(code) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    else 0x20
    for code in range(128)
).ljust(256, b" ")
# After folding, every character beyond ASCII that is left belongs to a word.
_FOLDED_WORDS: Final = _ASCII_FOLDS[:128] + bytes(range(128, 256))
_ASCII_WORD: Final = re.compile("[0-9a-z]+")
_FOLDED_RUN: Final = re.compile("[0-9a-z\x80-\U0010ffff]+")
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class Span:
    """A term and the place of its word in the text: characters [start, end)."""

    term: str
    start: int
    end: int


def words(text: str) -> list[bytes]:
    """Return the folded words of a text in order, in UTF-8; about 2 us for 40 ASCII words."""
    # Bytes are cut by a table of 256 and a split: four times as fast as a regular expression.
    if text.isascii():
        return text.encode().translate(_ASCII_FOLDS).split()
    return _unicode().words(text)


def terms(text: str) -> list[str]:
    """Return the terms of a text in order: words without stop words, stemmed.

    >>> terms("The indexes we were running")
    ['index', 'run']
    """
    stems = english()
    found = (stems.term(word) for word in words(text))
    return [term.decode() for term in found if term is not None]


def spans(text: str) -> list[Span]:
    """Return the terms of a text with their places, in the order that `terms` gives them."""
    stems = english()
    places = _ascii_places(text) if text.isascii() else _unicode().places(text)
    found = ((stems.term(word.encode()), start, end) for word, start, end in places)
    return [Span(term.decode(), start, end) for term, start, end in found if term is not None]


def _ascii_places(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _ASCII_WORD.finditer(text.lower()):
        yield match[0], match.start(), match.end()


# --- English ---------------------------------------------------------------------------------


class English:
    """Stop words and stems, as the installed Whoosh has them."""

    __slots__ = ("_stem", "_stop")

    def __init__(self, stem: Stem, stop: frozenset[bytes]) -> None:
        self._stem = stem
        self._stop = stop

    def term(self, word: bytes) -> bytes | None:
        """Return the term of a folded word, or None for a stop word."""
        if word in self._stop:
            return None
        if len(word) > _STEM_SIZE_MAX or word[-1] in _UNSTEMMED_ENDS:
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
    # Whoosh has no types. Questions repeat words, so their stems are remembered.
    stem = cast("Stem", getattr(porter2, "stem"))  # noqa: B009
    stop = cast("Iterable[str]", stopwords.stoplists["en"])
    remembered = lru_cache(_STEMS_KEPT_MAX)(stem)
    rules = English(remembered, frozenset(word.encode() for word in stop))
    if rules.fingerprint() != _PROBE_DIGEST:
        raise Unsupported(
            "The installed Whoosh cuts English words differently from the one this was made with",
            where=STEMMER,
            remedy="Install Whoosh-Reloaded 2.7.5.",
        )
    return rules


# --- every other script ------------------------------------------------------------------------


class _Folds(dict[int, str]):
    """What each character counts as, for `str.translate`.

    - Characters that a fold changes come from the table; each other is looked up once: letters,
      marks and digits stay, and whatever separates words becomes a space.
    """

    def __init__(self) -> None:
        pairs = (item.split(":") for item in tables.FOLDS.split())
        super().__init__(
            (int(code, 16), "".join(chr(int(part, 16)) for part in parts.split(",") if part))
            for code, parts in pairs
        )
        self._word, self._unspaced = _bounds(tables.WORD), _bounds(tables.UNSPACED)
        self.unspaced: set[str] = set()
        for folded in set(self.values()):
            self._sort(folded)

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if code < 0x80 or self._sort(character) or _is_within(self._word, code):
            self[code] = character
            return character
        self[code] = " "
        return " "

    def _sort(self, folded: str) -> bool:
        """Remember which characters are of a script without spaces."""
        found = [part for part in folded if _is_within(self._unspaced, ord(part))]
        self.unspaced.update(found)
        return bool(found)


class _Unicode:
    """Folds and cuts text that is not plain ASCII, from the committed tables."""

    def __init__(self) -> None:
        self._folds = _Folds()

    def words(self, text: str) -> list[bytes]:
        folds = self._folds
        folded = _BEYOND_ASCII.sub(lambda match: match[0].translate(folds), text)
        # Most text stops here: all its scripts have spaces.
        if folds.unspaced.isdisjoint(folded):
            return folded.encode().translate(_FOLDED_WORDS).split()
        runs = _FOLDED_RUN.findall(_lower(folded))
        return [word.encode() for run in runs for word, _, _ in self._cut(run)]

    def places(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield (word, start, end) with places in the text before folding."""
        pieces = [_lower(self._folds[ord(character)]) for character in text]
        origin = [index for index, piece in enumerate(pieces) for _ in piece]
        for match in _FOLDED_RUN.finditer("".join(pieces)):
            for word, start, end in self._cut(match[0]):
                first, last = match.start() + start, match.start() + end - 1
                yield word, origin[first], origin[last] + 1

    def _cut(self, run: str) -> Iterator[tuple[str, int, int]]:
        """Yield words as they are, and what has no spaces as characters and pairs."""
        unspaced, start = self._folds.unspaced, 0
        for index, character in enumerate(run):
            if character not in unspaced:
                continue
            if start < index:
                yield run[start:index], start, index
            elif index and run[index - 1] in unspaced:
                yield run[index - 1 : index + 1], index - 1, index + 1
            yield character, index, index + 1
            start = index + 1
        if start < len(run):
            yield run[start:], start, len(run)


@cache
def _unicode() -> _Unicode:
    """Return the rules for text beyond ASCII; the first call reads the tables (20 ms)."""
    return _Unicode()


def _cut_short(word: bytes) -> bytes:
    """Return the beginning of a long word, whole characters only."""
    return word[:WORD_SIZE_MAX].decode(errors="ignore").encode()


def _lower(text: str) -> str:
    """Return text with A-Z in lower case and nothing else changed: as bytes, no table is asked."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _bounds(ranges: str) -> list[int]:
    """Return the ascending starts and ends (one past) of ranges in hex."""
    bounds: list[int] = []
    for item in ranges.split():
        first, last = item.split("-")
        bounds += (int(first, 16), int(last, 16) + 1)
    return bounds


def _is_within(bounds: list[int], code: int) -> bool:
    """Tell whether a code point lies in one of the ranges."""
    return bisect_right(bounds, code) % 2 == 1
