"""Small sets of each shape of data, by a seeded generator: chats, files, scripts, code, quotes.

Their words are made of random syllables or letters, so that no embedder and no list of words knows
them, and each question has words of the passage that answers it. They guard that a ranking holds
on a shape at all; absolute figures mean nothing.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from benchmarks.retrieval.judged_set import CorpusBuilder, Document, JudgedSet, Question

SEED: Final = 20_241_128
COMMON: Final = 120
"""Words that occur in many passages, the first ones most often."""

PASSAGES: Final = 60
RARE: Final = 4
"""Words that one passage has."""

_LATIN: Final = (
    *("ba", "bel", "cor", "dan", "dro", "fen", "gal", "hir", "jun", "kam", "lor", "mab", "nur"),
    *("pol", "quem", "rit", "sud", "tov", "vak", "wem", "yor", "zul", "tri", "ost", "ark", "ulm"),
)
_THAI: Final = "กขคงจชซดตทนบปผพฟมยรลวสหอ"
_THAI_VOWELS: Final = "าิีุูะเแโไ"
_HAN: Final = "山水火木金土日月星雨風雪花草林河海田石竹米糸羊馬鳥魚虫犬車門口目耳手足心力刀弓矢"
_ARABIC: Final = "ثجحخدذرزشصضطظعغق"
"""Letters of no prefix or suffix."""
_RUSSIAN: Final = "бвгджзклмнпрстфх"
_RUSSIAN_VOWELS: Final = "аеиоу"
_VIETNAMESE: Final = ("a", "á", "à", "ả", "ã", "ạ")

Words = Callable[[random.Random], str]


def _syllables(source: random.Random) -> str:
    return "".join(source.choices(_LATIN, k=source.choice((2, 2, 3))))


def _thai(source: random.Random) -> str:
    return "".join(
        source.choice(_THAI) + source.choice(_THAI_VOWELS) for _ in range(source.choice((2, 3)))
    )


def _han(source: random.Random) -> str:
    return "".join(source.choices(_HAN, k=source.choice((1, 2, 2, 3))))


def _arabic(source: random.Random) -> str:
    return "".join(source.choices(_ARABIC, k=source.choice((4, 5))))


def _russian(source: random.Random) -> str:
    pairs = [source.choice(_RUSSIAN) + source.choice(_RUSSIAN_VOWELS) for _ in range(3)]
    return "".join(pairs) + source.choice(_RUSSIAN)


def _vietnamese(source: random.Random) -> str:
    """Return a word of one or two syllables, which others have with other accents."""
    return "".join(
        source.choice("bcdghklmnrstvx") + source.choice(_VIETNAMESE) + source.choice("cmnpt")
        for _ in range(source.choice((1, 2, 2)))
    )


class _Vocabulary:
    """Common words by frequency, and rare words, each returned once."""

    def __init__(self, source: random.Random, word: Words, common: int = COMMON) -> None:
        self._source = source
        self._word = word
        self._used: set[str] = set()
        self.common = [self.rare() for _ in range(common)]
        self._weights = [1 / (place + 2) for place in range(common)]

    def rare(self) -> str:
        while (word := self._word(self._source)) in self._used:
            pass
        self._used.add(word)
        return word

    def filler(self, count: int) -> list[str]:
        return self._source.choices(self.common, self._weights, k=count)


def _shuffled(source: random.Random, words: Sequence[str]) -> list[str]:
    return source.sample(words, len(words))


def chat() -> JudgedSet:
    """Return a chat of a user and an assistant with long turns, which often come back to a subject.

    A question names the rare words of an answer. Elsewhere two turns have half of these words each,
    several times, and the turn between has none: no neighbour may make that turn the answer.
    """
    source = random.Random(SEED)
    words = _Vocabulary(source, _syllables, 300)
    builder = CorpusBuilder("chat")
    start = datetime(2024, 3, 4, 9, tzinfo=UTC)

    def put(name: str, role: str, count: int, subject: Sequence[str]) -> None:
        text = " ".join(_shuffled(source, [*words.filler(count), *subject]))
        time = start + timedelta(minutes=len(turns))
        turns.append(name)
        builder.add_document(Document(name, text, role, time=time, parent="chat"), name)

    turns: list[str] = []
    for number in range(25):
        subject = [words.rare() for _ in range(RARE)]
        put(f"{number} asks", "user", 40, subject[:1])
        put(f"{number} answers", "assistant", 240, subject)
        put(f"{number} thanks", "user", 30, [])
        put(f"{number} first half", "assistant", 200, subject[:2] * 2)
        put(f"{number} between", "user", 30, [])
        put(f"{number} second half", "assistant", 200, subject[2:] * 2)
        asked = " ".join([*words.filler(3), *subject])
        text = f"what did the assistant say of {asked}?"
        builder.add_question(Question(str(number), text, {f"{number} answers": 1.0}), str(number))
    return JudgedSet("chat", (builder.built(),))


def files() -> JudgedSet:
    """Return notes and the lines of a log; a question is a rare word, alone or among others."""
    source = random.Random(SEED)
    words = _Vocabulary(source, _syllables)
    builder = CorpusBuilder("files")
    for number in range(PASSAGES):
        rare = [words.rare() for _ in range(2)]
        content = [*words.filler(source.choice((6, 20, 60))), *rare]
        name = f"note {number}"
        builder.add_document(Document(name, " ".join(_shuffled(source, content))), name)
        builder.add_question(Question(f"{name} word", rare[0], {name: 1.0}), name)
        text = " ".join([*words.filler(2), rare[1]])
        builder.add_question(Question(f"{name} asked", text, {name: 1.0}), name)
    for number in range(PASSAGES):
        lines = [f"12:{number:02}:{line:02} INFO {' '.join(words.filler(6))}" for line in range(8)]
        builder.add_document(Document(f"log {number}", "\n".join(lines)), f"log {number}")
    return JudgedSet("files", (builder.built(),))


def _script(
    name: str, word: Words, *, between: str = " ", inflect: Callable[[str, int], str] | None = None
) -> JudgedSet:
    """Return passages of a script, and questions with two rare words, in another inflection."""
    source = random.Random(SEED)
    words = _Vocabulary(source, word)
    builder = CorpusBuilder(name)
    rare: list[str] = []

    def written(content: Sequence[str], form: int) -> str:
        forms = (
            content
            if inflect is None
            else [inflect(each, form if each in rare else source.randrange(4)) for each in content]
        )
        return between.join(_shuffled(source, forms))

    for number in range(PASSAGES):
        rare = [words.rare() for _ in range(2)]
        builder.add_document(Document(str(number), written([*words.filler(50), *rare], number)), "")
        text = written([*words.filler(6), *rare], number + 1)
        builder.add_question(Question(str(number), text, {str(number): 1.0}), str(number))
    return JudgedSet(name, (builder.built(),))


def _of_arabic(word: str, form: int) -> str:
    return ("{}", "ال{}", "وال{}", "بال{}")[form % 4].format(word)


def _of_russian(word: str, form: int) -> str:
    return word + ("ами", "ов", "ого", "ах")[form % 4]  # noqa: RUF001


_CODE_FORMS: Final = (
    "function {camel}(value) {{ return {filler}(value); }}",
    "class {pascal}Factory:\n    def {snake}(self):\n        return {filler}",
    "{pascal} {camel} = new {pascal}({filler});",
)


def code() -> JudgedSet:
    """Return lines of code; a question has the parts of an identifier, or the whole."""
    source = random.Random(SEED)
    words = _Vocabulary(source, _syllables)
    builder = CorpusBuilder("code")
    for number in range(PASSAGES):
        parts = [words.rare(), words.rare(), words.rare()]
        pascal = "".join(part.capitalize() for part in parts)
        forms = {
            "pascal": pascal,
            "camel": pascal[0].lower() + pascal[1:],
            "snake": "_".join(words.filler(2)),
            "filler": "_".join(words.filler(2)),
        }
        text = source.choice(_CODE_FORMS).format(**forms)
        builder.add_document(Document(str(number), text), str(number))
        asked = " ".join([*parts, *words.filler(2)]) if number % 3 else forms["camel"]
        builder.add_question(Question(str(number), asked, {str(number): 1.0}), str(number))
    return JudgedSet("code", (builder.built(),))


def quotes() -> JudgedSet:
    """Return passages with the words of a phrase; questions quote it, or an absent phrase.

    Several passages have the words of the phrase apart, and more often; one has the phrase.
    """
    source = random.Random(SEED)
    words = _Vocabulary(source, _syllables)
    builder = CorpusBuilder("quotes")
    for number in range(30):
        first, second, lone = words.rare(), words.rare(), words.rare()
        name = f"phrase {number}"
        content = [*words.filler(20), f"{first} {second}", *words.filler(20)]
        builder.add_document(Document(name, " ".join(content)), name)
        builder.add_question(
            Question(name, f'who wrote "{first} {second}" {words.common[0]}?', {name: 1.0}), name
        )
        for copy in range(2):
            apart = _shuffled(source, [*words.filler(12), first, first])
            text = " ".join([second, *apart, second])
            builder.add_document(Document(f"{name} {copy}", text), name)
        name = f"no phrase {number}"
        builder.add_document(Document(name, " ".join([*words.filler(20), lone])), name)
        text = f'which "{words.common[1]} {lone} {words.common[2]}" is it?'
        builder.add_question(Question(name, text, {name: 1.0}), name)
    return JudgedSet("quotes", (builder.built(),))


def shapes() -> Iterator[JudgedSet]:
    """Yield a set of each shape."""
    yield chat()
    yield files()
    yield _script("thai", _thai, between="")
    yield _script("han", _han, between="")
    yield _script("arabic", _arabic, inflect=_of_arabic)
    yield _script("russian", _russian, inflect=_of_russian)
    yield _script("vietnamese", _vietnamese)
    yield code()
    yield quotes()
