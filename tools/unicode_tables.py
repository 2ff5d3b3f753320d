"""Writes `unicode_tables.py`: the characters of words and their folds, of a fixed Unicode version.

A tokenizer that uses the Unicode tables of the running Python returns other terms after an upgrade
of Python, which changes digests. So the tables are generated once, by a Python whose `unicodedata`
has the version below, and committed. Run::

    python -m tools.unicode_tables > projections/fulltext/unicode_tables.py

Sources: UnicodeData.txt, CaseFolding.txt and DerivedNormalizationProps.txt, as contained in
Python's `unicodedata` module and `str.casefold`.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator

UNICODE_VERSION = "14.0.0"

_LINE_WIDTH = 96

# Scripts written without spaces between words, and Hangul, whose words carry long endings.
# `unicodedata` has no script property; the standard never changes a character's name.
_UNSPACED_NAMES = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "BOPOMOFO",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)

# Marks that are dropped, since people omit them when typing. Marks of other scripts (such as the
# vowel signs of India) are part of the spelling and stay.
_DROPPED_MARKS = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x0300, 0x036F),  # combining diacritical marks
    (0x0483, 0x0487),  # Cyrillic
    (0x093C, 0x093C),  # nukta of Devanagari
    (0x0591, 0x05C7),  # Hebrew points
    (0x0610, 0x061A),  # Arabic signs
    (0x0640, 0x0640),  # Arabic tatweel
    (0x064B, 0x065F),  # Arabic vowel marks
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x200B, 0x200D),  # zero-width space, non-joiner and joiner
    (0x2060, 0x2060),  # word joiner
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFE20, 0xFE2F),
    (0xFEFF, 0xFEFF),  # byte order mark
    (0x1F3FB, 0x1F3FF),  # tones of skin
    (0xE0100, 0xE01EF),
)


# Letters without a decomposition that people type as these.
_PLAIN_LETTERS = {
    "\u00e6": "ae",
    "\u00f0": "d",
    "\u00f8": "o",
    "\u00fe": "th",
    "\u0111": "d",
    "\u0127": "h",
    "\u0131": "i",
    "\u0142": "l",
    "\u014b": "n",
    "\u0153": "oe",
    "\u0167": "t",
    "\u0181": "b",
    "\u0253": "b",
    "\u0254": "o",
    "\u0256": "d",
    "\u0257": "d",
    "\u0259": "e",
    "\u025b": "e",
    "\u0199": "k",
    "\u01b4": "y",
}

# Candrabindu, also written as anusvara; and the tippi of Gurmukhi, an anusvara after some vowels.
_NASAL_MARKS = {
    "\u0901": "\u0902",
    "\u0a01": "\u0a02",
    "\u0a70": "\u0a02",
    "\u0a81": "\u0a82",
    "\u0b01": "\u0b02",
    "\u0c01": "\u0c02",
}

_FOLDED = {**_PLAIN_LETTERS, **_NASAL_MARKS}

_SHORT_I = "\u0439"
"""A letter of its own, not an accented one: Russian endings have it."""

# Categories and ranges of the symbols that are words: emoji and other pictures, not arrows, boxes
# and bullets.
_PICTURES = (
    (0x231A, 0x231B),
    (0x23E9, 0x23FA),
    (0x2600, 0x27BF),
    (0x2B50, 0x2B55),
    (0x1F000, 0x1FAFF),
)


def is_sign(character: str) -> bool:
    """Return whether a character is a word by itself: a picture or a sign of currency."""
    category = unicodedata.category(character)
    if category == "Sc":
        return character > "\x7f"
    return category == "So" and any(a <= ord(character) <= b for a, b in _PICTURES)


def is_word(character: str) -> bool:
    """Return whether a character belongs to a word: a letter, a mark or a number."""
    return unicodedata.category(character)[0] in "LMN" and not is_unspaced(character)


def is_unspaced(character: str) -> bool:
    """Return whether a character is of a script that is cut into overlapping pairs."""
    if unicodedata.category(character)[0] not in "LMN":
        return False
    return unicodedata.name(character, "").startswith(_UNSPACED_NAMES)


def is_dropped(character: str) -> bool:
    """Return whether a character is removed before words are cut."""
    code = ord(character)
    if not any(first <= code <= last for first, last in _DROPPED_MARKS):
        return False
    return unicodedata.category(character)[0] in "MC" or code == 0x0640 or code >= 0x1F3FB


def fold(character: str) -> str:
    """Return the fold of a character: compatibility form, no case, no dropped marks."""
    text = character
    while True:
        parts = unicodedata.normalize("NFKD", text).casefold()
        parts = unicodedata.normalize("NFKD", parts)
        parts = parts.replace("\u0438\u0306", _SHORT_I)
        parts = "".join(_FOLDED.get(part, part) for part in parts)
        folded = unicodedata.normalize("NFC", "".join(p for p in parts if not is_dropped(p)))
        if folded == text:
            return folded
        text = folded


def _apart(character: str) -> str:
    if is_sign(character):
        return f" {character} "
    return character if is_word(character) or is_unspaced(character) else " "


def folds() -> Iterator[tuple[int, str]]:
    """Yield (code point, replacement) for every character that a fold changes."""
    for code in _code_points():
        character = chr(code)
        if is_dropped(character):
            yield code, ""
            continue
        folded = fold(character)
        # A separator becomes a space: "½" is "1 2", and "⒜" is " a ".
        folded = "".join(_apart(c) for c in folded)
        # A fold without letters (such as a spacing accent) already separates words, and so does a
        # sign that is a word.
        if folded.strip() not in ("", character):
            yield code, folded


def _code_points() -> Iterator[int]:
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co"):
            yield code


def _items() -> Iterator[str]:
    """Yield a replacement for each change, with its code point unless that is the next one."""
    last = -2
    for code, replacement in folds():
        parts = ",".join(f"{ord(character):X}" for character in replacement) or "-"
        yield parts if code == last + 1 else f"{code:X}:{parts}"
        last = code


def _ranges(test: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for code in _code_points():
        if not test(chr(code)):
            continue
        if code == last + 1:
            last = code
            continue
        if last >= 0:
            yield first, last
        first = last = code
    if last >= 0:
        yield first, last


def _literal(name: str, doc: str, items: Iterable[str]) -> str:
    lines = [""]
    for item in items:
        # Each line ends in a space, which separates items across adjacent literals.
        if len(lines[-1]) + len(item) > _LINE_WIDTH - 8:
            lines.append("")
        lines[-1] += item + " "
    body = "\n".join(f'    "{line}"' for line in lines)
    return f'{name}: Final = (\n{body}\n)\n"""{doc}"""\n'


def tables() -> str:
    """Return the source of `unicode_tables.py`.

    Raises:
        SystemExit: this Python has another Unicode version.
    """
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise SystemExit(
            f"this Python has Unicode {unicodedata.unidata_version}, expected {UNICODE_VERSION}; "
            "run Python 3.11"
        )
    spans = {
        "WORD": ("Ranges of letters, marks and numbers of scripts with spaces, in hex.", is_word),
        "SIGNS": ("Ranges of pictures and signs of currency, each a word by itself.", is_sign),
        "UNSPACED": (
            "Ranges of scripts without spaces, and of Hangul: cut into parts of words.",
            is_unspaced,
        ),
    }
    parts = [
        '"""Made by `tools.unicode_tables`; do not edit. The tables of one Unicode version."""\n',
        "from typing import Final\n",
        f'UNICODE_VERSION: Final = "{UNICODE_VERSION}"\n',
    ]
    for name, (doc, test) in spans.items():
        parts.append(_literal(name, doc, (f"{a:X}-{b:X}" for a, b in _ranges(test))))
    doc = "Folds in hex, `-` for none: of the code point before a colon, else of the next."
    parts.append(_literal("FOLDS", doc, _items()))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(tables())
