"""Trust: how far an embedder knows the words of a question, and so how far its vectors count.

Example: MiniLM reads English. Of "thành phố nào là thủ đô" its vocabulary has 1 of 6 words, so its
vectors do not count for this question, and words decide.

Owns the words of a question for an embedder, and the trust. Leaves out the weight of its vectors
(`built_in`), and the sum of the score (`cerata.memory.search`).
"""

import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from cerata.engine.arguments import is_number
from cerata.engine.errors import value_text
from cerata.engine.json_value import exact

from .embedder import Embedder

SHARE_NONE: Final = 0.4
"""At this share of known words, and below, vectors do not count."""

ALONE_UNREAD: Final = 0.5
"""The trust if no word of the question occurs in the memory, and none is in Latin letters. With a
whole trust, any text in a script that the model cannot read was a clear answer."""

SHARE_FULL: Final = 0.7
"""From this share of known words on, vectors count in full: 99 of 100 English questions."""

_DIGITS: Final = 9
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Trust:
    """The trust in an embedder's vectors for a question.

    - ``share`` is the part of the question's words that the embedder knows, from 0 to 1;
      ``words_known`` of ``words`` is that part in whole words.
    - ``trust`` is the factor of the vectors' weight, from 0 to 1.
    - ``alone`` is the trust if no word of the question occurs in the memory, so that meaning is all
      there is.
    - ``fault`` says how `knows` failed; the trust is then 1.
    """

    share: float
    words_known: int
    words: int
    trust: float
    alone: float = 1.0
    fault: str | None = None

    @property
    def notice(self) -> str | None:
        """A line for the caller if `knows` failed, or if words decide; None otherwise."""
        if self.fault is not None:
            return self.fault
        return None if self.trust >= 0.5 else f"{self._known}, so words decide"

    @property
    def notice_without_words(self) -> str:
        """A line for the caller if few words of the question occur in the memory, either."""
        return self.fault or f"{self._known}, and few of them occur in the memory"

    @property
    def _known(self) -> str:
        noun = "word" if self.words == 1 else "words"
        return f"The model knows {self.words_known:,} of {self.words:,} {noun} of the question"


def trust_of(embedder: Embedder | None, text: str) -> Trust:
    """Return the trust in an embedder's vectors for a question; never raises for a fault of it.

    The trust is 1 without an embedder, without its method `knows`, for a question without a word,
    and if `knows` raises or returns no number from 0 to 1.

    Args:
        embedder: the embedder of the question, None if the caller passed the vector
        text: the question
    """
    of_question = words_of(text)
    words = len(of_question)
    try:
        method = getattr(embedder, "knows", None)
        if method is None or not words:
            return Trust(1.0, words, words, 1.0)
        answer = exact(method(text))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - code of users may raise anything
        return _failed(embedder, words, f"raised {type(error).__name__}: {error}")
    if not is_number(answer) or not 0 <= answer <= 1:
        return _failed(embedder, words, f"returned {value_text(answer):.60}, no number from 0 to 1")
    share = float(answer)
    part = (share - SHARE_NONE) / (SHARE_FULL - SHARE_NONE)
    trust = min(1.0, max(0.0, round(part, _DIGITS)))
    alone = 1.0 if any(map(str.isascii, of_question)) else ALONE_UNREAD
    return Trust(share, round(share * words), words, trust, max(trust, alone))


def words_of(text: str) -> list[str]:
    """Return the words of a question: runs of letters and digits, lower case, without accents.

    Args:
        text: the question

    >>> words_of("Où est l'Hôtel n° 7?")
    ['ou', 'est', 'l', 'hotel', 'n', '7']
    """
    parts = unicodedata.normalize("NFD", text.lower())
    return _WORD.findall("".join(part for part in parts if unicodedata.category(part) != "Mn"))


def share_known(text: str, vocabulary: Container[str]) -> float:
    """Return the share of a question's words that a vocabulary has whole; 1 without a word.

    Args:
        text: the question
        vocabulary: words in lower case, without accents
    """
    words = words_of(text)
    return sum(word in vocabulary for word in words) / len(words) if words else 1.0


def _failed(embedder: Embedder | None, words: int, fault: str) -> Trust:
    space = "" if embedder is None else embedder.identity.space
    line = (
        f"knows() of the embedder of {space!r} {fault:.200}, so its vectors count in full; "
        "correct the method, or remove it"
    )
    return Trust(1.0, words, words, 1.0, fault=line)
