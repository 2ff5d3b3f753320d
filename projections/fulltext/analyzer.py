"""Tokenizer: from text to terms, the same on every machine.

Owns the rules that cut text. They use committed tables of a fixed Unicode version
(`unicode_tables`), never the tables of the running Python:

- A character is folded: compatibility form, no case, no accents (``Café`` counts as ``cafe``).
- A word is a run of letters, marks and digits, of which 128 bytes count. ``put_frame`` is two
  words, ``3.11`` is two, ``don't`` is ``don`` and ``t``.
- In scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) and in Hangul, each character and
  each pair of adjacent characters is a word, so that questions of any length match.
- English stop words are left out, and English words are stemmed.

Leaves out stop words and the stemmer (`english`).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

import msgspec

from . import unicode_tables as tables
from .english import WORD_SIZE_MAX, english

_TERMS_KEPT_MAX: Final = 8192
"""Cached terms of words, for questions and highlights; about 1 MB."""

_ASCII_FOLDS: Final = bytes(
    code
    if chr(code) in "0123456789abcdefghijklmnopqrstuvwxyz"
    else ord(chr(code).lower())
    if chr(code) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    else 0x20
    for code in range(128)
).ljust(256, b" ")
# After folding, every remaining character beyond ASCII belongs to a word.
_FOLDED_WORDS: Final = _ASCII_FOLDS[:128] + bytes(range(128, 256))
_ASCII_WORD: Final = re.compile("[0-9a-z]+")
_FOLDED_RUN: Final = re.compile("[0-9a-z\x80-\U0010ffff]+")
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]+")


class Span(msgspec.Struct, frozen=True):
    """A term, its folded word, and the word's place in the text: characters [start, end)."""

    term: str
    word: str
    start: int
    end: int


def words(text: str) -> list[bytes]:
    """Return the folded words of a text in order, in UTF-8; about 2 us for 40 ASCII words."""
    # Translating and splitting bytes is four times as fast as a regular expression.
    if text.isascii():
        return text.encode().translate(_ASCII_FOLDS).split()
    return _unicode().words(text)


def folded_name(name: str) -> str:
    """Return a name for comparison, without case, accents, punctuation and extra spaces."""
    return " ".join(word.decode() for word in words(name))


def folded(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """Return the words of many texts in a buffer, and the size of each text in the buffer.

    A space separates words and texts. About 1 us for 40 ASCII words.
    """
    joined = " ".join(texts)
    if joined.isascii():
        return joined.encode().translate(_ASCII_FOLDS), list(map(len, texts))
    parts = [
        text.encode().translate(_ASCII_FOLDS) if text.isascii() else b" ".join(words(text))
        for text in texts
    ]
    return b" ".join(parts), list(map(len, parts))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order: words without stop words, stemmed.

    >>> terms("The indexes we were running")
    ['index', 'run']
    """
    candidates = (term_of(word) for word in words(text))
    return [term.decode() for term in candidates if term is not None]


def spans(text: str) -> list[Span]:
    """Return the terms of a text with their places, in the order of `terms`."""
    candidates = (
        (word, term_of(word.encode()), start, end) for word, start, end in word_places(text)
    )
    return [
        Span(term.decode(), word, start, end)
        for word, term, start, end in candidates
        if term is not None
    ]


def word_places(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the folded words of a text, stop words too, with their characters [start, end).

    >>> [*word_places("Ada's mill")]
    [('ada', 0, 3), ('s', 4, 5), ('mill', 6, 10)]
    """
    return _ascii_places(text) if text.isascii() else _unicode().places(text)


def term_of(word: bytes) -> bytes | None:
    """Return the term of a folded word, or None for a stop word."""
    return _cached_term_of(word) if len(word) <= WORD_SIZE_MAX else english().term(word)


@lru_cache(_TERMS_KEPT_MAX)
def _cached_term_of(word: bytes) -> bytes | None:
    return english().term(word)


def _ascii_places(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _ASCII_WORD.finditer(text.lower()):
        yield match[0], match.start(), match.end()


# --- all other scripts -------------------------------------------------------------------------


class _Folds(dict[int, str]):
    """The fold of each character, for `str.translate`.

    - Characters that a fold changes come from the table. Any other character is added when first
      looked up: letters, marks and digits stay, and separators become a space.
    """

    def __init__(self) -> None:
        super().__init__()
        code = 0
        for item in tables.FOLDS.split():
            start, _, parts = item.rpartition(":")
            code = int(start, 16) if start else code + 1
            self[code] = "".join(chr(int(part, 16)) for part in parts.split(",") if part != "-")
        self._word = _bounds(tables.WORD)
        self._unspaced = _bounds(tables.UNSPACED)
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
        """Add the characters of a script without spaces to ``unspaced``; return whether any is."""
        unspaced = [part for part in folded if _is_within(self._unspaced, ord(part))]
        self.unspaced.update(unspaced)
        return bool(unspaced)


class _Unicode:
    """Folds and cuts text that is not plain ASCII, from the committed tables."""

    def __init__(self) -> None:
        self._folds = _Folds()

    def words(self, text: str) -> list[bytes]:
        folds = self._folds
        folded = _BEYOND_ASCII.sub(lambda match: match[0].translate(folds), text)
        # Most text returns here: all its scripts have spaces.
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
                first = match.start() + start
                last = match.start() + end - 1
                yield word, origin[first], origin[last] + 1

    def _cut(self, run: str) -> Iterator[tuple[str, int, int]]:
        """Yield words of spaced scripts whole, and other runs as characters and pairs."""
        unspaced = self._folds.unspaced
        start = 0
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


def _lower(text: str) -> str:
    """Return text with A-Z in lower case, unchanged otherwise: bytes use no Unicode table."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _bounds(ranges: str) -> list[int]:
    """Return the ascending starts and ends (one past) of ranges in hex."""
    bounds: list[int] = []
    for item in ranges.split():
        first, last = item.split("-")
        bounds += (int(first, 16), int(last, 16) + 1)
    return bounds


def _is_within(bounds: list[int], code: int) -> bool:
    return bisect_right(bounds, code) % 2 == 1
