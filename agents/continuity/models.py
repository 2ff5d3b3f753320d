"""Models: the writers of summaries, warm starts, reflections and assessments.

Owns `Model`, `Task`, the instructions, the cut of long answers, and `Extractive`, the default:
pure, offline, and without a model. Leaves out which tasks are due (`reflecting`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from cerata.engine.plain_value import PlainValue
from cerata.projections.fulltext.analyzer import term_of, words
from cerata.retrieval.tokenizer import tokenizer

from ..turns.lexicon import LETTERS_MIN, SIGNS, english_lexicon
from .exchanges import USER
from .threads import word_in

TaskKind: TypeAlias = Literal["summarize", "warm_start", "reflect", "align", "assess"]

MAX_TOKENS: Final[dict[TaskKind, int]] = {
    "summarize": 500,
    "warm_start": 250,
    "reflect": 300,
    "align": 100,
    "assess": 300,
}
"""Tokens of an answer; all but the first are ours."""


@dataclass(frozen=True, slots=True)
class Source(PlainValue):
    """A text that a task is about: a message, a summary or a file, with the frame that holds it."""

    id: int
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Task(PlainValue):
    """A task of a model: an instruction about sources, for an answer of ``max_tokens``."""

    kind: TaskKind
    instructions: str
    sources: tuple[Source, ...]
    max_tokens: int


@runtime_checkable
class Model(Protocol):
    """A writer of answers. ``name`` and ``version`` are recorded with each answer."""

    @property
    def name(self) -> str:
        """The model's name, a part of the key of its answers."""
        ...

    @property
    def version(self) -> str:
        """The version; another version answers again."""
        ...

    def write(self, task: Task) -> str:
        """Return the answer to a task; an exception is reported, and the task stays due."""
        ...


SENTENCES: Final = 8
TOPICS: Final = 10
ANCHORS: Final = 3
_SENTENCE_CHARACTERS: Final = 15
_GOOD_WORDS: Final = range(9, 40)
_ALIGNED_STEMS: Final = 2
_ANCHOR_SIGNS: Final = ("identity", "contradiction", "tension", "principle")
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?]*")


class Extractive:
    """A model that quotes: it takes the best sentences of the sources. Pure and offline.

    It writes extracts for the tasks "summarize" and "reflect", and for "align" it names the line of
    SOUL that shares most stems with the proposal, if at least 2 (ours). It never proposes, and is
    not asked for the tasks "warm_start" and "assess".
    """

    name = "extractive"
    version = "1"

    def write(self, task: Task) -> str:
        """Return an extract of the sources."""
        return _aligned(task) if task.kind == "align" else extract_of(task.sources)


class _Sentence(NamedTuple):
    place: int
    text: str
    terms: frozenset[str]
    score: int
    is_anchor: bool


def extract_of(sources: Sequence[Source]) -> str:
    """Return the best 8 sentences of sources in their order, then 10 topics and 3 anchors.

    A sentence over 15 characters scores 2 for each topic, 1 for 9 to 39 words, and 2 for a
    decision; of equal sentences the earlier wins. A topic is a stem of 5 letters that the sources
    repeat.
    """
    counts: Counter[str] = Counter()
    cut: list[tuple[str, str, list[str]]] = []
    for source in sources:
        for sentence in sentences(source.text):
            terms = _terms(sentence)
            counts.update(terms)
            cut.append((source.role, sentence, terms))
    repeated = sorted((term for term in counts if counts[term] > 1), key=lambda t: -counts[t])
    topics = repeated[:TOPICS]
    scored = [
        _scored(place, role, text, frozenset(terms), topics)
        for place, (role, text, terms) in enumerate(cut)
        if len(text) > _SENTENCE_CHARACTERS
    ]
    first = {each.text: each for each in reversed(scored)}
    best = sorted(first.values(), key=lambda each: (-each.score, each.place))[:SENTENCES]
    parts = [each.text for each in sorted(best)]
    if topics:
        text = "\n".join(source.text for source in sources)
        parts.append(f"Topics: {', '.join(word_in(text, topic) or topic for topic in topics)}.")
    anchors = [each.text for each in scored if each.is_anchor][:ANCHORS]
    if anchors:
        parts.append(f"Anchors: {' '.join(anchors)}")
    return "\n".join(parts) or (sources[0].text if sources else "")


def _scored(
    place: int, role: str, text: str, terms: frozenset[str], topics: Sequence[str]
) -> _Sentence:
    folded = words(text)
    counts = english_lexicon().counts(text, folded, is_users=role == USER).signs
    signs = {name for name, count in zip(SIGNS, counts, strict=True) if count}
    score = 2 * len(terms.intersection(topics)) + (len(folded) in _GOOD_WORDS)
    score += 2 * ("decision" in signs)
    is_anchor = role == USER and not signs.isdisjoint(_ANCHOR_SIGNS)
    return _Sentence(place, text, terms, score, is_anchor)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without the space around them."""
    parts = (match[0].strip() for match in _SENTENCE.finditer(text))
    return [sentence for sentence in parts if sentence]


def _terms(text: str) -> list[str]:
    terms = (term_of(word) for word in words(text) if len(word) >= LETTERS_MIN)
    return [term.decode() for term in terms if term is not None and len(term) >= LETTERS_MIN]


def _stems(text: str) -> set[str]:
    return {term.decode() for word in words(text) if (term := term_of(word)) is not None}


def _aligned(task: Task) -> str:
    """Return the line of SOUL that shares most stems with the proposal, or "NO"."""
    soul, proposal = task.sources[0].text, task.sources[-1].text
    lines = [line for line in soul.splitlines() if line.strip()]
    stems = _stems(proposal)
    shared = [len(_stems(line) & stems) for line in lines]
    best = max(shared, default=0)
    if best < _ALIGNED_STEMS:
        return "NO\nNo line shares two stems with the proposal."
    return f"YES {shared.index(best) + 1}\nThe line shares {best} stems with the proposal."


def fitting(text: str, max_tokens: int) -> str:
    """Return an answer cut at its last sentence that fits."""
    counter = tokenizer()
    if counter.count(text) <= max_tokens:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(text[: ends[middle - 1]]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    if low:
        return text[: ends[low - 1]].strip()
    # Not even one sentence fits: as many of its words as do.
    return text[: counter.cut(text, max_tokens)].strip()
