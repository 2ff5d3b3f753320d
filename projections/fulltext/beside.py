"""Terms beside words: other ways in which a text is asked for.

    NoFizzStrategy    fizz strategy     the parts of an identifier
    C++ C# A+         cpp csharp aplus  a name with signs
    U.S.A. AT&T       usa att           letters between signs, joined
    re-entry AX-200   reentry ax200     words between hyphens, joined
    O'Brien 1,250,000 obrien 1250000    so are names and numbers
    +1 (555) 010-9999 15550109999 5550109999
    9fceb02d0ae5...   9fceb02           the start of a hash
    $5                dollarsign
    IT WHO            itcapitals ...    a stop word in capitals, which is a name

A Latin word with accents also counts with them, and an Arabic word as each three of its letters,
since prefixes and suffixes are joined to it.

Owns these rules. The words beside those of a row follow its fields, without a place: so they
lengthen no text and part no phrase. Those with the mark `BESIDE` count a third
(`fields`). Leaves out the cut of words (`analyzer`).

Text of ASCII is examined a batch at a time: a table of three adjacent characters finds the few
places of a rule, so that most text costs a pass over its bytes.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from string import ascii_uppercase
from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import I64, U8, Mask
from .english import english
from .term_weights import BESIDE

_Place = tuple[bytes, int, int]
"""A word, and its bytes [start, end)."""

HASH_START: Final = 7
"""Digits by which a hash is named, as in git."""

_JOINED_MAX: Final = 40
"""Bytes of a joined word; longer runs are data, not names."""

_PARTS_MAX: Final = 8
"""Parts of an identifier or of a joined word; runs with more are data."""

_CHUNKS_KEPT_MAX: Final = 8192
_CHUNK_KEPT_SIZE_MAX: Final = 64

# --- classes of bytes ----------------------------------------------------------------------------

_OTHER, _LOW, _HEX, _CAPITAL, _DIGIT, _FOREIGN = range(6)
_CLASSES: Final = {
    _LOW: "ghijklmnopqrstuvwxyz",
    _HEX: "abcdef",
    _CAPITAL: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    _DIGIT: "0123456789",
    6: "-",
    7: "/",
    8: ",",
    9: ".",
    10: "'",
    11: "&",
    12: "+",
    13: "#",
    14: "$",
    15: "(",
}
_CLASS_OF: Final = {sign: number for number, signs in _CLASSES.items() for sign in signs}
_CLASS_TABLE: Final = bytes(
    _FOREIGN if code >= 0x80 else _CLASS_OF.get(chr(code), _OTHER) for code in range(256)
)
_SMALL: Final = {_LOW, _HEX}
_LETTERS: Final = {*_SMALL, _CAPITAL}
_ALNUM: Final = {*_LETTERS, _DIGIT}
_NO_WORD: Final = {*range(16)} - _ALNUM - {_FOREIGN}
_ANY: Final = {*range(16)}
_CHUNK: Final = 1
_CAPITALS: Final = 2
_PHONE: Final = 4


def _of(signs: str) -> set[int]:
    return {_CLASS_OF[sign] for sign in signs}


_WINDOWS: Final = (
    # Identifiers: aB, ABc.
    (1, _ANY, _SMALL, {_CAPITAL}),
    (0, {_CAPITAL}, {_CAPITAL}, _SMALL),
    # Joined words, names and numbers.
    (0, _ALNUM, _of("-"), _ALNUM),
    (0, {_DIGIT}, _of(","), {_DIGIT}),
    (0, _LETTERS, _of("'"), {_CAPITAL}),
    (0, {_DIGIT}, _of("'"), {_DIGIT}),
    (0, _LETTERS, _of("&"), _LETTERS),
    # Letters between signs: " U.", ".D.".
    (1, _NO_WORD, _LETTERS, _of(".")),
    (0, _of("."), {_CAPITAL}, _NO_WORD),
    # Names with signs, and sums of money.
    (1, _NO_WORD, _LETTERS, _of("+#")),
    (1, _ANY, _of("$"), {_DIGIT}),
    (0, {_OTHER}, _of("$"), {_OTHER}),
    # Hashes.
    (0, {_DIGIT}, {_HEX}, {_HEX, _DIGIT}),
    (0, {_HEX}, {_DIGIT}, {_HEX}),
)
"""Three adjacent classes, the place of a rule in the middle, after the place of the rare pair."""


@cache
def _tables() -> tuple[bytes, U8, Mask]:
    """Return the rare pairs of classes, the rules of three, and the last letters of stop words."""
    pairs = bytearray(1 << 8)
    threes = np.zeros(1 << 12, np.uint8)

    def add(kind: int, rare: int, *windows: Collection[int]) -> None:
        for window in product(*windows):
            threes[window[0] << 8 | window[1] << 4 | window[2]] |= kind
            pairs[window[rare] << 4 | window[rare + 1]] = 1

    for rare, *windows in _WINDOWS:
        add(_CHUNK, rare, *windows)
    add(_CAPITALS, 0, {_CAPITAL}, {_CAPITAL}, _NO_WORD)
    add(_PHONE, 1, _ANY, _of("+("), {_DIGIT})
    ends = np.zeros(1 << 16, np.bool_)
    for word in english().stop_words:
        if len(word) > 1:
            ends[int.from_bytes(word[-2:].upper(), "big")] = True
    return bytes(pairs), threes, ends


class _Found(NamedTuple):
    """The places of a buffer that a rule may apply to."""

    starts: list[int]
    """Of chunks: runs of letters, digits and the signs above but "("."""
    ends: list[int]
    phones: list[int]


def _found(data: bytes) -> _Found:
    """Return the places of rules in a buffer. Cost: about 2 ns a byte."""
    pairs, threes, stop_ends = _tables()
    # Counted from the space before the data.
    classes = np.frombuffer(b"".join((b" ", data, b"  ")).translate(_CLASS_TABLE), np.uint8)
    by_pair = (classes[:-1] << np.uint8(4)) | classes[1:]
    is_rare = np.frombuffer(by_pair.tobytes().translate(pairs), np.bool_)
    middle = np.flatnonzero(is_rare[1:] | is_rare[:-1]) + 1
    if not len(middle):
        return _Found([], [], [])
    kinds = threes[(classes[middle - 1].astype(np.uint16) << np.uint16(8)) | by_pair[middle]]
    capitals = middle[(kinds & _CAPITALS) > 0]
    buffer = np.frombuffer(data, np.uint8)
    last_two = (buffer[capitals - 2].astype(np.uint16) << np.uint16(8)) | buffer[capitals - 1]
    chunks = np.concatenate([middle[(kinds & _CHUNK) > 0], capitals[stop_ends[last_two]]])
    phones: I64 = middle[(kinds & _PHONE) > 0] - 1
    breaks = np.flatnonzero((classes == _OTHER) | (classes == _CLASS_OF["("]))
    after = np.unique(breaks.searchsorted(chunks))
    starts: I64 = breaks[after - 1]
    return _Found(starts.tolist(), (breaks[after] - 1).tolist(), phones.tolist())


# --- rules of a chunk ----------------------------------------------------------------------------

_RUN: Final = re.compile(rb"(?<![\x80-\xff])[A-Za-z0-9]+(?![\x80-\xff])")
_CASE_CHANGE: Final = re.compile(rb"[a-z][A-Z]|[A-Z]{2}[a-z]")
_IDENTIFIER_PART: Final = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLURAL: Final = re.compile(rb"[A-Z]+s\Z")
_HASH: Final = re.compile(rb"[0-9a-f]{8,64}\Z")
_HASH_TURN: Final = re.compile(rb"[0-9][a-f][0-9a-f]|[a-f][0-9][a-f]")
_COMPOUND: Final = re.compile(rb"(?<![\x80-\xff])[A-Za-z0-9]+(?:[-/][A-Za-z0-9]+)+(?![\x80-\xff])")
_DATE: Final = re.compile(rb"\d{4}-\d\d?-\d\d?|\d\d?-\d\d?-\d{4}|\d{4}-\d{4}")
_PAIR: Final = re.compile(rb"(?<![A-Za-z0-9])([A-Za-z]+)-(?=([0-9][A-Za-z0-9]*))")
_JOINED: Final = re.compile(
    # U.S.A, Ph.D. and e.g.
    rb"(?<![A-Za-z0-9.\x80-\xff])[A-Z][a-z]{0,2}(?:\.[A-Z][a-z]{0,2})+(?![A-Za-z0-9\x80-\xff])"
    rb"|(?<![A-Za-z0-9.\x80-\xff])[A-Za-z]\.(?:[A-Za-z]\.)+[A-Za-z]?(?![A-Za-z0-9\x80-\xff])"
    # AT&T.
    rb"|(?<![A-Za-z0-9&\x80-\xff])[A-Za-z]{1,3}(?:&[A-Za-z]{1,3})+(?![A-Za-z0-9&\x80-\xff])"
    # O'Brien.
    rb"|(?<![A-Za-z\x80-\xff])[A-Za-z]{1,3}'[A-Z][A-Za-z]+(?![\x80-\xff])"
    # 1,250,000 and 1'250'000.
    rb"|(?<![0-9.,])[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:'[0-9]{3})+)(?![0-9])"
)
_SIGNED: Final = re.compile(
    rb"(?<![A-Za-z0-9\x80-\xff])([A-Za-z])(\+\+(?!\+)|#(?![A-Za-z])|\+(?![A-Za-z0-9+\x80-\xff]))"
)
_SIGNS: Final = {b"++": b"pp", b"#": b"sharp", b"+": b"plus"}
_MONEY: Final = re.compile(rb"\$(?=[0-9])|\A\$\Z")
_IN_CAPITALS: Final = re.compile(rb"(?<![A-Za-z0-9&\x80-\xff])[A-Z]{2,10}(?![A-Za-z0-9&\x80-\xff])")
_SEPARATORS: Final = re.compile(rb"[^A-Za-z0-9]")


def _chunk_places(chunk: bytes) -> Iterator[_Place]:
    """Yield the words of a chunk by all rules but that for telephone numbers."""
    for run in _RUN.finditer(chunk):
        yield from _run_places(run[0], run.start())
    if b"-" in chunk or b"/" in chunk:
        for compound in _COMPOUND.finditer(chunk):
            yield from _compound_places(compound[0], compound.start())
    for joined in _JOINED.finditer(chunk):
        yield _SEPARATORS.sub(b"", joined[0]).lower(), *joined.span()
    for signed in _SIGNED.finditer(chunk):
        yield signed[1].lower() + _SIGNS[signed[2]], *signed.span()
    for capitals in _IN_CAPITALS.finditer(chunk):
        word = capitals[0].lower()
        if english().stop_number(word) is not None:
            yield word + b"capitals", *capitals.span()
    for money in _MONEY.finditer(chunk):
        yield b"dollarsign", *money.span()


def _run_places(run: bytes, start: int) -> Iterator[_Place]:
    """Yield the parts of an identifier, or the start of a hash."""
    if _CASE_CHANGE.search(run) and not _PLURAL.match(run):
        parts = [*_IDENTIFIER_PART.finditer(run)]
        # Runs such as Base64 change their case at every other letter.
        if len(parts) <= _PARTS_MAX and len(run) >= 2 * len(parts):
            for part in parts:
                if len(part[0]) > 1 or part[0].isdigit():
                    yield part[0].lower(), start + part.start(), start + part.end()
    elif _HASH.match(run) and _HASH_TURN.search(run):
        yield run[:HASH_START], start, start + len(run)


def _compound_places(compound: bytes, start: int) -> Iterator[_Place]:
    """Yield `re-entry` and `978-3-16-148410-0` joined, and `AX-200/7B` with its `AX-200`."""
    if len(compound) > _JOINED_MAX + _PARTS_MAX:
        return
    at = start
    for unit in compound.split(b"/"):
        parts = unit.split(b"-")
        joined = b"".join(parts)
        is_number = joined.isdigit()
        if is_number:
            is_name = len(parts) > 1 and len(joined) >= 7 and not _DATE.fullmatch(unit)
        else:
            is_name = len(parts) == 2 or (len(parts) > 2 and not joined.isalpha())
        if is_name and len(parts) <= _PARTS_MAX:
            yield joined.lower(), at, at + len(unit)
            if len(parts) > 2:
                for pair in _PAIR.finditer(unit):
                    yield (pair[1] + pair[2]).lower(), at + pair.start(), at + pair.end(2)
        at += len(unit) + 1
    if b"/" in compound:
        joined = _SEPARATORS.sub(b"", compound)
        numbered = all(any(48 <= c < 58 for c in unit) for unit in compound.split(b"/"))
        if numbered and not joined.isdigit():
            yield joined.lower(), start, start + len(compound)


_PHONE_NUMBER: Final = re.compile(
    rb"(?:\+([0-9]{1,3})[ .-]?)?(?:\([0-9]{1,5}\)[ .-]?)?"
    rb"[0-9]{2,8}(?:[ .-][0-9]{2,8}){1,4}(?![0-9])"
)


def _phone_places(data: bytes, start: int, end: int) -> Iterator[_Place]:
    """Yield the digits of a telephone number with "+" or "(", and those without its country."""
    match = _PHONE_NUMBER.match(data, start, end)
    if match is None:
        return
    digits = _SEPARATORS.sub(b"", match[0])
    if not 7 <= len(digits) <= 15:
        return
    yield digits, *match.span()
    if match[1]:
        yield digits[len(match[1]) :], match.end(1), match.end()


@lru_cache(_CHUNKS_KEPT_MAX)
def _kept_words(chunk: bytes) -> tuple[bytes, ...]:
    return tuple(word for word, _, _ in _chunk_places(chunk))


def ascii_words(data: bytes, sizes: Sequence[int], count: int) -> dict[int, list[bytes]]:
    """Return the words of the rules for ASCII, by row, each once.

    Args:
        data: The texts of rows, folded beyond ASCII, with a space between two.
        sizes: The bytes of each text.
        count: The texts of a row.
    """
    found = _found(data)
    if not found.starts and not found.phones:
        return {}
    added: dict[int, dict[bytes, None]] = {}
    ends = np.cumsum(np.array(sizes, np.int64) + 1)
    rows = (ends.searchsorted(found.starts, side="right") // count).tolist()
    for row, start, end in zip(rows, found.starts, found.ends, strict=True):
        chunk = data[start:end]
        if len(chunk) <= _CHUNK_KEPT_SIZE_MAX:
            words: Sequence[bytes] = _kept_words(chunk)
        else:
            words = [word for word, _, _ in _chunk_places(chunk)]
        if words:
            added.setdefault(row, {}).update(dict.fromkeys(words))
    of_phones = ends.searchsorted(found.phones, side="right").tolist()
    for part, start in zip(of_phones, found.phones, strict=True):
        for word, _, _ in _phone_places(data, start, int(ends[part]) - 1):
            added.setdefault(part // count, {})[word] = None
    return {row: [*words] for row, words in added.items()}


def _ascii_places(data: bytes) -> list[_Place]:
    """Return the words of `ascii_words` of a single text, each with its bytes."""
    found = _found(data)
    places: list[_Place] = []
    for start, end in zip(found.starts, found.ends, strict=True):
        for word, first, last in _chunk_places(data[start:end]):
            places.append((word, start + first, start + last))
    for start in found.phones:
        places += _phone_places(data, start, len(data))
    return places


# --- rules of other text -------------------------------------------------------------------------

_LATIN: Final = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_MARKS: Final = "\u0300-\u036f"
_ACCENTED: Final = re.compile(f"[{_LATIN}{_MARKS}][A-Za-z{_LATIN}{_MARKS}]*")
"""An accented word from its first accent on: a search for its beginning would try each word."""
_NO_LATIN_LEADS: Final = bytes({*range(256)} - {*range(0xC3, 0xCB), 0xCC, 0xCD, 0xE1})
"""Bytes that start none of these characters; a text without other bytes has no accents."""
_MARK_RUN: Final = re.compile(f"[{_MARKS}]+")
_ARABIC: Final = re.compile("[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff]{4,}")


@cache
def _accents() -> dict[int, str]:
    """Return small letters and their accents, apart, for each Latin letter.

    These tables of Python never change: Unicode promises so for assigned letters, as these are.
    """
    spans = ((0xC0, 0x250), (0x1E00, 0x1F00))
    table = {
        code: unicodedata.normalize("NFD", chr(code).lower())
        for start, end in spans
        for code in range(start, end)
    }
    table.update({ord(letter): letter.lower() for letter in ascii_uppercase})
    # İ is the capital of the letter i, which has no accent.
    table[0x130] = "i"
    return table


def _with_accents(word: str) -> str:
    """Return an accented word in small letters, each followed by its accents."""
    apart = word.translate(_accents())
    return _MARK_RUN.sub(lambda match: "".join(sorted(match[0])), apart)


def other_words(text: str, plain: str) -> list[bytes]:
    """Return the words of the other rules of a text, `plain` if folded.

    One with accents occurs as often as its word, any other once.
    """
    accented = [word for word, _, _ in _accented_places(text)]
    threes = dict.fromkeys(word for word, _, _ in _arabic_places(plain))
    return [word.encode() for word in (*accented, *threes)]


def _accented_places(text: str) -> Iterator[tuple[str, int, int]]:
    if not text.encode("utf-8", "replace").translate(None, _NO_LATIN_LEADS):
        return
    for match in _ACCENTED.finditer(text):
        start, end = match.span()
        while start and text[start - 1].isascii() and text[start - 1].isalpha():
            start -= 1
        word = _with_accents(text[start:end])
        if not word.isascii() and not _MARK_RUN.match(word):
            yield BESIDE + word, start, end


def _arabic_places(plain: str) -> Iterator[tuple[str, int, int]]:
    for match in _ARABIC.finditer(plain):
        run, start = match[0], match.start()
        for first in range(len(run) - 2):
            yield BESIDE + run[first : first + 3], start + first, start + first + 3


def places(text: str, plain: str, origin: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Yield the words beside those of a text, with their characters [start, end).

    Args:
        text: The text.
        plain: The text with all beyond ASCII folded.
        origin: The place in the text of each character of ``plain``.
    """
    data = plain.encode()
    if plain.isascii():
        character_of: Sequence[int] = range(len(data))
    else:
        starts = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        character_of = (np.cumsum(starts) - 1).tolist()
    for word, first, last in _ascii_places(data):
        yield word.decode(), origin[character_of[first]], origin[character_of[last - 1]] + 1
    if text.isascii():
        return
    yield from _accented_places(text)
    for name, first, last in _arabic_places(plain):
        yield name, origin[first], origin[last - 1] + 1
