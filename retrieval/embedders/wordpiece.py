"""WordPiece: from a text to the numbers of the pieces that BERT and its descendants read.

The normalisation and the greedy longest match are those of "BERT: Pre-training of Deep
Bidirectional Transformers" (Devlin et al., 2019), in its uncased form: accents and case do not
count, punctuation and Chinese characters are separate words. The vocabulary beside this file,
``bert_uncased.txt``, one piece a line, is that of BERT-Base Uncased (Google, Apache-2.0), with
which all-MiniLM-L6-v2 was trained; its SHA-256 is checked on reading.

A marker such as ``[SEP]`` in a text is three ordinary words and has no effect.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from cerata.engine.errors import Unsupported

VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""Of ``vocab.txt`` as published with BERT-Base Uncased."""

CLASS = "[CLS]"
SEPARATOR = "[SEP]"
UNKNOWN = "[UNK]"

WORD_CHARACTERS_MAX: Final = 100
"""A longer word is one unknown piece, as in the published tokenizer."""

_KNOWN_WORDS_MAX: Final = 100_000
"""Words whose pieces are cached: about 16 MB; a language has fewer common words. None of them is
longer than `WORD_CHARACTERS_MAX`."""

_BLANK: Final = " \t\n\r"
_WORD: Final = re.compile(r"\S+")

_CHINESE: Final = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
"""Ranges of characters that are separate words, as published."""


class WordPiece:
    """Cuts texts into pieces of a vocabulary: words, and parts of words outside of it."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._numbers = vocabulary
        self._first = vocabulary[CLASS]
        self._last = vocabulary[SEPARATOR]
        self._unknown = vocabulary[UNKNOWN]
        self._longest = max(map(len, vocabulary))
        self._folds = _Folds()
        self._known: dict[str, tuple[int, ...]] = {}

    def __contains__(self, word: object) -> bool:
        """Return whether the vocabulary has a word whole."""
        return word in self._numbers

    def number(self, piece: str) -> int:
        """Return the number of a piece of the vocabulary."""
        return self._numbers[piece]

    def encode(self, text: str, tokens_max: int) -> list[int]:
        """Return the numbers of a text's pieces between two markers, ``tokens_max`` at most.

        Cost: about 0.2 us for each cached word; only the beginning of a long text is read.
        """
        numbers = [self._first]
        room = tokens_max - 1
        # Enough for words of any readable length, and some blanks between them.
        part = text.lstrip(_BLANK)[: tokens_max * WORD_CHARACTERS_MAX]
        for word in part.translate(self._folds).split():
            numbers += self._pieces(word)
            if len(numbers) >= room:
                break
        return [*numbers[:room], self._last]

    def spans(self, text: str, tokens_max: int) -> list[tuple[int, int]]:
        """Return the characters [start, end) of each piece that `encode` returns, without markers.

        Cost: about 1 us for each character, for questions.
        """
        part = text.lstrip(_BLANK)[: tokens_max * WORD_CHARACTERS_MAX]
        first = len(text) - len(text.lstrip(_BLANK))
        folded = [self._folds[ord(character)] for character in part]
        # The place in the text of each folded character.
        origins = [first + place for place, fold in enumerate(folded) for _ in fold]
        spans: list[tuple[int, int]] = []
        for word in _WORD.finditer("".join(folded)):
            start = word.start()
            for end in self._ends(word[0]):
                spans.append((origins[start], origins[word.start() + end - 1] + 1))
                start = word.start() + end
        return spans[: tokens_max - 2]

    def _ends(self, word: str) -> list[int]:
        """Return the end of each piece of a word."""
        pieces = None if len(word) > WORD_CHARACTERS_MAX else self._cut(word)
        return [len(word)] if pieces is None else [end for _, end in pieces]

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_CHARACTERS_MAX:
            return (self._unknown,)
        pieces = self._known.get(word)
        if pieces is None:
            cut = self._cut(word)
            pieces = (self._unknown,) if cut is None else tuple(number for number, _ in cut)
            if len(self._known) < _KNOWN_WORDS_MAX:
                self._known[word] = pieces
        return pieces

    def _cut(self, word: str) -> list[tuple[int, int]] | None:
        """Return the longest piece that starts the word, then that of the rest, and so on.

        Each is a number and its end in the word; None if a part is outside of the vocabulary.
        """
        pieces: list[tuple[int, int]] = []
        start = 0
        while start < len(word):
            piece = self._longest_piece(word, start)
            if piece is None:
                return None
            pieces.append(piece)
            start = piece[1]
        return pieces

    def _longest_piece(self, word: str, start: int) -> tuple[int, int] | None:
        mark = "##" if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            number = self._numbers.get(mark + word[start:end])
            if number is not None:
                return number, end
        return None


class _Folds(dict[int, str]):
    """The folded form of each character, computed on first use; for `str.translate`."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = self[code] = _folded(character)
        return folded


def _folded(character: str) -> str:
    """Return a character without accent or case, between spaces if it is a separate word."""
    if character in "\t\n\r" or unicodedata.category(character).startswith("Z"):
        return " "
    if character == "\ufffd" or unicodedata.category(character).startswith("C"):
        return ""
    parts = [
        f" {lower} " if _is_punctuation(lower) else lower
        for part in unicodedata.normalize("NFD", character)
        if unicodedata.category(part) != "Mn"
        for lower in part.lower()
    ]
    folded = "".join(parts)
    is_chinese = any(first <= ord(character) <= last for first, last in _CHINESE)
    return f" {folded} " if is_chinese else folded


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        # Includes the symbols of Unicode, such as $ and ^.
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


@cache
def bert_uncased() -> WordPiece:
    """Return the tokenizer of BERT-Base Uncased; read once, in about 6 ms.

    Raises:
        Unsupported: the vocabulary beside this file differs from the published file.
    """
    data = (files(__package__ or "") / "bert_uncased.txt").read_bytes()
    if hashlib.sha256(data).hexdigest() != VOCABULARY_SHA256:
        raise Unsupported(
            "The vocabulary of the embedder is not the published file",
            where="bert_uncased.txt",
            remedy="Install Cerata again.",
        )
    words = data.decode().split("\n")[:-1]
    return WordPiece({word: number for number, word in enumerate(words)})
