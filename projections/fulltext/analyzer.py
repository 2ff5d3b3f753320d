"""Tokenizer: from text to terms, the same on every machine.

Owns the rules that cut text. They use committed tables of a fixed Unicode version
(`unicode_tables`), never the tables of the running Python:

- A character is folded: compatibility form, no case, no accents (``Café`` counts as ``cafe``,
  ``Łódź`` as ``lodz``).
- Scripts of India have a single spelling of a nasal before a consonant: ``हिन्दी``, ``हिँदी`` and
  ``हिंदी`` are one word; so are ``किराये`` and ``किराए``.
- A word is a run of letters, marks and digits, of which 128 bytes count. ``put_frame`` is two
  words, ``3.11`` is two, ``don't`` is ``don`` and ``t``. An emoji or a sign of currency is a word.
- Thai, Lao, Khmer and Myanmar have no spaces: each three adjacent letters are a word; all of a
  shorter run are one.
- In Han, kana and Hangul each character and each pair of adjacent characters is a word.
- English stop words are left out; words are stemmed by their script (`english`).

Further terms stand beside the words (`beside`): ``useEffect`` also counts as ``use`` and
``effect``. They have no place in a phrase. `question_spans` has all terms of a question, also the
starts of words in languages without a stemmer (`word_starts`).

Leaves out stop words and stemmers (`english`).
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from cerata.engine.late import late

from . import unicode_tables as tables
from . import word_starts
from .english import WORD_SIZE_MAX, english

if TYPE_CHECKING:
    from . import beside
else:
    beside = late("cerata.projections.fulltext.beside")

_TERMS_KEPT_MAX: Final = 8192
"""Cached terms of words, for questions and highlights; about 1 MB."""

ASCII_FOLDS: Final = bytes(
    code
    if chr(code) in "0123456789abcdefghijklmnopqrstuvwxyz"
    else ord(chr(code).lower())
    if chr(code) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    else 0x20
    for code in range(128)
).ljust(256, b" ")
# After folding, every remaining character beyond ASCII belongs to a word.
FOLDED_WORDS: Final = ASCII_FOLDS[:128] + bytes(range(128, 256))
_ASCII_WORD: Final = re.compile("[0-9a-z]+")
_FOLDED_RUN: Final = re.compile("[0-9a-z\x80-\U0010ffff]+")
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]+")
_BELOW_THAI: Final = bytes(range(0xE0))
"""Bytes of characters before the first script without spaces."""
_BREVE: Final = "\u0306"
_SHORT_I: Final = {"и": "й", "И": "й"}
"""A letter of its own, also if written as a letter and a breve: Russian endings have it."""

_INDIC: Final = (0x900, 0x980, 0xA00, 0xA80, 0xB00, 0xC00, 0xC80, 0xD00)
"""The blocks of scripts of India with an anusvara. A letter has the same place in each."""


def _indic(*places: int) -> str:
    """Return the characters at some places of all blocks."""
    return "".join(chr(block + place) for block in _INDIC for place in places)


_VELAR_TO_DENTAL: Final = _indic(
    *range(0x15, 0x19), *range(0x1A, 0x1E), *range(0x1F, 0x23), *range(0x24, 0x28)
)
_VIRAMA: Final = _indic(0x4D)
_TWO_AS_ONE: Final = re.compile(
    "(?<=[\u0900-\u0d7f])(?:"
    f"[{_indic(0x19, 0x1E, 0x23, 0x28)}][{_VIRAMA}](?=[{_VELAR_TO_DENTAL}])"
    f"|[{_indic(0x2E)}][{_VIRAMA}](?=[{_indic(*range(0x2A, 0x2E))}])"
    "|(?<=[\u093e-\u094c])\u092f[\u0940\u0947])"
)
"""A nasal before a consonant of its place, also written as anusvara; in Devanagari ``ये`` and
``यी`` after a vowel, also written ``ए`` and ``ई``. None begins a word."""
_INDIC_LEAD: Final = b"\xe0"
"""The first byte of these scripts in UTF-8."""
_AS_ONE: Final = {
    "\u0940": "\u0908",
    "\u0947": "\u090f",
    **{chr(block + 0x4D): chr(block + 2) for block in _INDIC},
}
"""The character for two, by the second."""


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
        return text.encode().translate(ASCII_FOLDS).split()
    rules = unicode_rules()
    return rules.spaced(rules.plain(text)).encode().translate(FOLDED_WORDS).split()


def folded_name(name: str) -> str:
    """Return a name for comparison, without case, accents, punctuation and extra spaces."""
    return " ".join(word.decode() for word in words(name))


def folded(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """Return the words of many texts in a buffer, and the size of each text in the buffer.

    A space separates words and texts. About 1 us for 40 ASCII words.
    """
    joined = " ".join(texts)
    if joined.isascii():
        return joined.encode().translate(ASCII_FOLDS), list(map(len, texts))
    parts = [
        text.encode().translate(ASCII_FOLDS) if text.isascii() else b" ".join(words(text))
        for text in texts
    ]
    return b" ".join(parts), list(map(len, parts))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order: words without stop words, stemmed.

    >>> terms("The indexes we were running")
    ['index', 'run']
    """
    return [term.decode() for term in terms_of(words(text)) if term is not None]


def spans(text: str) -> list[Span]:
    """Return the terms of a text with their places, in the order of `terms`."""
    return _spans(word_places(text))


def beside_spans(text: str) -> list[Span]:
    """Return the terms beside the words of a text, each where the text has it.

    >>> [(span.term, span.start) for span in beside_spans("an ArrayBuffer")]
    [('array', 3), ('buffer', 8)]
    """
    if text.isascii():
        return _spans(beside.places(text, text, range(len(text))))
    return _spans(beside.places(text, *unicode_rules().plain_places(text)))


def word_spans(text: str) -> list[Span]:
    """Return `spans`, then `beside_spans`."""
    return [*spans(text), *beside_spans(text)]


def stop_spans(text: str) -> list[Span]:
    """Return the stop words of a text with their places, as terms of their own."""
    rules = english()
    return [
        Span(term, word, start, end)
        for word, start, end in word_places(text)
        if (term := rules.stop_term(word.encode())) is not None
    ]


def question_spans(text: str) -> list[Span]:
    """Return the terms of a question: of its words, beside them, and their starts; else stop words.

    >>> [span.term for span in question_spans("the useEffect")]
    ['useeffect', 'use', 'effect']
    >>> [span.word for span in question_spans("The Who")]
    ['the', 'who']
    """
    all_places = word_places(text)
    of_words = _spans(all_places)
    found = of_words + beside_spans(text)
    # "IT" may be a name, or no more than a stop word in capitals.
    is_stop_alone = True
    for span in found:
        is_stop_alone &= text[span.start : span.end].lower() + "capitals" == span.word
    if is_stop_alone:
        return found + stop_spans(text)
    places: list[tuple[str, str, int, int]] = []
    for span in of_words:
        places.append((span.term, span.word, span.start, span.end))
    spelled: list[str] = []
    for word, _, _ in all_places:
        spelled.append(word)
    for start in word_starts.starts(text, places, spelled):
        found.append(Span(*start))
    return found


def question_terms(text: str) -> list[str]:
    """Return the distinct terms of `question_spans`, in order."""
    terms: dict[str, None] = {}
    for span in question_spans(text):
        terms[span.term] = None
    return [*terms]


def word_places(text: str) -> list[tuple[str, int, int]]:
    """Return the folded words of a text, stop words too, with their characters [start, end).

    >>> word_places("Ada's mill")
    [('ada', 0, 3), ('s', 4, 5), ('mill', 6, 10)]
    """
    if not text.isascii():
        return [*unicode_rules().places(text)]
    places: list[tuple[str, int, int]] = []
    for match in _ASCII_WORD.finditer(text.lower()):
        start, end = match.span()
        places.append((match[0], start, end))
    return places


def term_of(word: bytes) -> bytes | None:
    """Return the term of a folded word, or None for a stop word."""
    return _cached_term_of(word) if len(word) <= WORD_SIZE_MAX else english().term(word)


def terms_of(words: Iterable[bytes]) -> list[bytes | None]:
    """Return `term_of` of each word."""
    terms: list[bytes | None] = []
    for word in words:
        short = len(word) <= WORD_SIZE_MAX
        # A cached term costs no call.
        terms.append(_cached_term_of(word) if short else english().term(word))
    return terms


@lru_cache(_TERMS_KEPT_MAX)
def _cached_term_of(word: bytes) -> bytes | None:
    return english().term(word)


def _spans(places: Iterable[tuple[str, int, int]]) -> list[Span]:
    spans: list[Span] = []
    for word, start, end in places:
        utf8 = word.encode()
        # As `term_of`: a cached term costs no call.
        short = len(utf8) <= WORD_SIZE_MAX
        term = _cached_term_of(utf8) if short else english().term(utf8)
        if term is not None:
            spans.append(Span(term.decode(), word, start, end))
    return spans


# --- all other scripts -------------------------------------------------------------------------


class _Folds(dict[int, str]):
    """The fold of each character, for `str.translate`.

    - Characters that a fold changes come from the table; a capital that becomes letters of ASCII
      stays capital, so that no word seems to change its case within. Any other character is added
      when first looked up: letters, marks and digits stay, and separators become a space.
    """

    def __init__(self) -> None:
        super().__init__()
        code = 0
        for item in tables.FOLDS.split():
            start, _, parts = item.rpartition(":")
            code = int(start, 16) if start else code + 1
            folded = "".join(chr(int(part, 16)) for part in parts.split(",") if part != "-")
            is_capital = folded.isascii() and chr(code).isupper()
            self[code] = folded.upper() if is_capital else folded
        self._word = _bounds(tables.WORD)
        self._unspaced = _bounds(tables.UNSPACED)
        self._signs = _bounds(tables.SIGNS)
        # The apostrophe and hyphens of printed text: a word may join what they part (`beside`).
        self.update({0x2019: "'", 0x2010: "-", 0x2011: "-"})

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if _is_within(self._signs, code):
            folded = f" {character} "
        elif code < 0x80 or _is_within(self._word, code) or _is_within(self._unspaced, code):
            folded = character
        else:
            folded = " "
        self[code] = folded
        return folded


class UnicodeRules:
    """Folds and cuts text that is not plain ASCII, from the committed tables."""

    def __init__(self) -> None:
        self._folds = _Folds()
        unspaced = _bounds(tables.UNSPACED)
        ranges = [*zip(unspaced[::2], unspaced[1::2], strict=True)]
        in_threes = _class(span for span in ranges if _is_within(_IN_THREES, span[0]))
        in_twos = _class(span for span in ranges if not _is_within(_IN_THREES, span[0]))
        self._unspaced = re.compile(f"[{in_threes}{in_twos}]")
        self._pieces = re.compile(f"([{in_threes}]+)|([{in_twos}]+)|[^{in_threes}{in_twos}]+")

    def plain(self, text: str) -> str:
        """Return a text whose characters beyond ASCII are folded; ASCII stays as it is."""
        if _BREVE in text:
            for letter, short in _SHORT_I.items():
                text = text.replace(letter + _BREVE, short)
        folds = self._folds
        plain = _BEYOND_ASCII.sub(lambda match: match[0].translate(folds), text)
        if _INDIC_LEAD in plain.encode():
            return _TWO_AS_ONE.sub(lambda match: _AS_ONE[match[0][1]], plain)
        return plain

    def plain_places(self, text: str) -> tuple[str, list[int]]:
        """Return `plain`, and for each of its characters the place of its origin in the text."""
        pieces = [
            self._folds[ord(character)] if character > "\x7f" else character for character in text
        ]
        start = text.find(_BREVE)
        while start > 0:
            if short := _SHORT_I.get(text[start - 1]):
                pieces[start - 1] = short
            start = text.find(_BREVE, start + 1)
        origin = [index for index, piece in enumerate(pieces) for _ in piece]
        plain = "".join(pieces)
        for match in reversed([*_TWO_AS_ONE.finditer(plain)]):
            # Where the second of the two is: a word may end with them, and none begins so.
            del origin[match.start()]
        return _TWO_AS_ONE.sub(lambda match: _AS_ONE[match[0][1]], plain), origin

    def spaced(self, plain: str) -> str:
        """Return a `plain` text with words where no spaces divide them."""
        # Most text returns here: all its scripts have spaces.
        if not plain.encode().translate(None, _BELOW_THAI) or not self._unspaced.search(plain):
            return plain
        runs = _FOLDED_RUN.findall(_lower(plain))
        return " ".join(word for run in runs for word, _, _ in self._cut(run))

    def places(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield (word, start, end) with places in the text before folding."""
        plain, origin = self.plain_places(text)
        for match in _FOLDED_RUN.finditer(_lower(plain)):
            for word, start, end in self._cut(match[0]):
                first = match.start() + start
                last = match.start() + end - 1
                yield word, origin[first], origin[last] + 1

    def _cut(self, run: str) -> Iterator[tuple[str, int, int]]:
        """Yield words of spaced scripts whole, other runs in threes, or as letters and pairs."""
        for piece in self._pieces.finditer(run):
            start, end = piece.span()
            match piece.lastindex:
                case 1:
                    for first in range(start, max(end - 2, start + 1)):
                        yield run[first : min(first + 3, end)], first, min(first + 3, end)
                case 2:
                    yield run[start], start, start + 1
                    for last in range(start + 1, end):
                        yield run[last - 1 : last + 1], last - 1, last + 1
                        yield run[last], last, last + 1
                case _:
                    yield piece[0], start, end


_IN_THREES: Final = [0xE00, 0xF00, 0x1000, 0x10A0, 0x1780, 0x1800, 0xA9E0, 0xAA00, 0xAA60, 0xAA80]
"""Starts and ends of Thai and Lao, Myanmar, Khmer, and two blocks of Myanmar: alphabets, whose
letters alone say nothing."""


@cache
def unicode_rules() -> UnicodeRules:
    """Return the rules for text beyond ASCII; the first call reads the tables (20 ms)."""
    return UnicodeRules()


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


def _class(spans: Iterable[tuple[int, int]]) -> str:
    """Return the characters [start, end) of spans, for a class of a regular expression."""
    return "".join(f"{chr(start)}-{chr(end - 1)}" for start, end in spans)
