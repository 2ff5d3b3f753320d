"""Stems of words in scripts that one stemmer serves: Arabic, Cyrillic, Devanagari, Greek.

The stemmers are those of Snowball (package ``snowballstemmer``), for Arabic, Russian, Hindi and
Greek. The first word of a script loads its stemmer (3 ms and less), and compares its stems of
sample words with those of the release that the index was made with. Words of the Latin script have
the English stemmer (`english`): a short question does not show its language.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Final, NamedTuple, Protocol, cast

from blake3 import blake3

from cerata.engine.errors import Unsupported
from cerata.engine.late import loading

Stem = Callable[[str], str]


class Script(NamedTuple):
    """The letters of a script, [start, end), and its stemmer, with a probe of folded words."""

    start: int
    end: int
    name: str
    probe: str
    digest: str


SCRIPTS: Final = (
    Script(
        0x370,
        0x400,
        "Greek",
        "ανθρωποσ ανθρωποι ανθρωπων σπιτι σπιτια σπιτιων μεγαλη μεγαλοσ "
        "μεγαλυτεροσ γραφω εγραψα γραφοντασ ελλαδα ελληνικη ελληνικων πολη "
        "πολεισ πολεων παιδι παιδια καλησπερα τρεχει τρεχουν αποφαση αποφασεισ",
        "4dad42fd14570a38",
    ),
    Script(
        0x400,
        0x530,
        "Russian",
        "решение решения решений книга книгами читать читает прочитанный "
        "красивый красивейшая красивого город городами школе школу бежали "
        "бегущий синий синяя переименовывающимися возможность возможностью "
        "новый новейший й",
        "2e3fe1a2ef4ccba0",
    ),
    Script(
        0x600,
        0x780,
        "Arabic",
        "المدرسة مدرسة والمدرسة مدارس كتاب الكتاب كتابه وكتبهم يكتبون المكتبة "
        "مكتبات السيارة سياراتهم فالولد الولدان معلمون المعلمين سيكتب بالقلم "
        "للبيت",
        "c4772d2d0075b2da",
    ),
    Script(
        0x900,
        0x980,
        "Hindi",
        "लडका लडके लडकों लडकियां किताब किताबें किताबों जाना जाता जाएगा "
        "पढना पढता नया नयी शहर शहरों कानून कानूनों भाषा भाषाएं बच्चा बच्चों हिंदी किराया किराए",
        "ac74668c3eee201e",
    ),
)

FINGERPRINT: Final = " ".join(f"{script.name.lower()}:{script.digest}" for script in SCRIPTS)
"""The stemmers of an index, and what they do to sample words."""


class _Snowball(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802


def stem_of_script(word: str) -> str:
    """Return the stem of a folded word in a script of `SCRIPTS`; any other word as it is.

    Raises:
        Unsupported: Snowball is missing, or stems differently from release 3.1.1.
    """
    code = ord(word[0])
    for script in SCRIPTS:
        if script.start <= code < script.end:
            return _stemmer(script)(word) or word
    return word


@cache
def _stemmer(script: Script) -> Stem:
    name = script.name
    try:
        with loading("Snowball's stemmers"):
            module = import_module(f"snowballstemmer.{name.lower()}_stemmer")
    except ImportError as error:
        raise Unsupported(
            f"Text in {name} script needs Snowball's stemmer", remedy="Install snowballstemmer."
        ) from error
    snowball = cast("_Snowball", getattr(module, f"{name}Stemmer")())
    # A stemmer keeps the word at work.
    lock = Lock()

    def stem(word: str) -> str:
        with lock:
            return snowball.stemWord(word)

    if fingerprint(script, stem) != script.digest:
        raise Unsupported(
            f"The installed snowballstemmer cuts {name} words differently from release 3.1.1",
            where=module.__name__,
            remedy="Install snowballstemmer 3.1.1.",
        )
    return stem


def fingerprint(script: Script, stem: Stem) -> str:
    """Return a hash of the stems of a script's sample words."""
    return blake3(" ".join(map(stem, script.probe.split())).encode()).hexdigest(8)
