"""Starts of words: a question finds the other written forms of its words by their first letters.

    kitap nerede?               kitap* nered*       kitaplar, neredeyse
    Wo hielt die Straßenbahn?   hielt* stras*       Straßenbahnhaltestelle
    orzech                      orzec*              orzechy, if no text has orzech
    Where is the book?                              the stemmer serves English

Owns which words of a question have a start, and its length. A question shows its language by
accents, the script, or function words; without, a word has a start if no text has the word. Five
letters are known as a good stem of Turkish (F. Can et al., *Information retrieval on Turkish
texts*, JASIST 59(3), 2008).

An index has no terms for starts: the state of the question looks them up in its vocabulary. Leaves
out the words that have a start (`vocabulary`).
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from .script_stems import SCRIPTS

START: Final = "^"
"""The first character of a term that stands for each word with a start. No word has it."""

_LETTERS: Final = 5
_LETTERS_MIN: Final = 4
"""Shorter words begin too many."""

_INDIC: Final = range(0x980, 0xD80)
"""The scripts of India without a stemmer here. They write most vowels as marks of a letter."""
_INDIC_LETTERS: Final = 4
_INDIC_LETTERS_MIN: Final = 3
_VOWEL_SIGNS: Final = "".join(
    chr(block + place)
    for block in range(_INDIC.start, _INDIC.stop, 0x80)
    for place in (*range(1, 4), *range(0x3E, 0x4E))
)
"""Vowels, nasal marks and virama: the first letter of an ending takes their place."""

_ENGLISH: Final = frozenset(
    (
        *("the", "and", "what", "when", "where", "which", "who", "whom", "whose", "why", "how"),
        *("does", "did", "doing", "had", "been", "being", "could", "would", "should", "with"),
        *("from", "about", "this", "that", "these", "those", "there", "then", "than", "because"),
        *("you", "your", "our", "their", "them", "they", "she", "his", "him", "it", "its"),
    )
)
"""Words that hold an English question together, and that no other language has often: so without
``are`` (Romanian), ``for`` (Danish), ``has`` (Spanish), ``of`` (Dutch) and ``was`` (German)."""

_FOREIGN: Final = frozenset(
    (
        *("der", "das", "und", "ist", "nicht", "ich", "wir", "eine", "einen", "wer", "wie", "wo"),
        *("wann", "mein", "meine", "het", "een", "ik", "mijn", "niet", "welke", "hoe", "wat"),
        *("wanneer", "waar", "och", "og", "hvor", "hvad", "vad", "jag", "jeg", "inte", "ikke"),
        *("que", "cuando", "donde", "como", "por", "una", "quien", "esta", "les", "une", "est"),
        *("quand", "qui", "pour", "dans", "avec", "quando", "dove", "che", "chi", "della", "sono"),
        *("quem", "onde", "uma", "nao", "unde", "cand", "este", "cum", "sunt", "kto", "gdzie"),
        *("kiedy", "jest", "nie", "jak", "czy", "kde", "kdy", "nerede", "zaman", "nasil", "bir"),
        *("icin", "hangi", "kim", "hol", "mikor", "hogy", "nem", "egy", "missa", "milloin", "kuka"),
        *("yang", "apa", "kapan"),
    )
)
"""Folded words that hold a question in another language of the Latin script together."""

_ACCENTED: Final = re.compile("[\u00c0-\u024f]")
_VIETNAMESE: Final = re.compile("[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")
"""Letters of Vietnamese alone, whose words have no endings."""


def starts(
    text: str, places: Sequence[tuple[str, str, int, int]], words: Collection[str]
) -> list[tuple[str, str, int, int]]:
    """Return the starts that a question asks for: (term, start, first character, end).

    >>> starts("kitap nerede", [("kitap", "kitap", 0, 5)], ["kitap", "nerede"])
    [('^kitap', 'kitap*', 0, 5)]

    Args:
        text: The question.
        places: Its words but stop words: (term, folded word, first character, end).
        words: Its folded words, stop words too.
    """
    if _VIETNAMESE.search(text) or not _ENGLISH.isdisjoint(words):
        after: str | None = None
    elif _ACCENTED.search(text) or not _FOREIGN.isdisjoint(words):
        after = ""
    else:
        after = START
    found: list[tuple[str, str, int, int]] = []
    for term, word, first, end in places:
        is_latin = word.isascii()
        if is_latin and after is None:
            continue
        start = _start_of(word)
        if start:
            known = START + term if is_latin and after else ""
            found.append((START + start + known, start + "*", first, end))
    return found


def split(term: str) -> tuple[str, str]:
    """Return the start of a term, and the term of its word if a text with it excludes the start.

    >>> split("^kitap"), split("^decis^decis")
    (('kitap', ''), ('decis', 'decis'))
    """
    start, _, known = term.removeprefix(START).partition(START)
    return start, known


def _start_of(word: str) -> str:
    """Return the start of a word, empty for a word without."""
    code = ord(word[0])
    if code in _INDIC:
        start = word[:_INDIC_LETTERS].rstrip(_VOWEL_SIGNS)
        return start if len(word) >= _INDIC_LETTERS_MIN and len(start) > 1 else ""
    if len(word) < _LETTERS_MIN:
        return ""
    for script in SCRIPTS:
        if script.start <= code < script.end:
            return ""
    return word[:_LETTERS] if word.isalpha() else ""
