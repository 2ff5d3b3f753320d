"""Processor time of questions in the checkout that is first on the path; run by `question_bench`.

Owns the artificial conversations and the questions. Turns have the lengths and the frequencies of
words of the LoCoMo conversations: half of their median of 21 words are in the index, the most
frequent of these in every sixth turn, the hundredth in every fortieth. Imports nothing of the
benchmarks, so that it runs in another checkout.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import cerata
from cerata import Store

Matrix: TypeAlias = npt.NDArray[Any]
Tokens: TypeAlias = Sequence[Matrix]
Measured: TypeAlias = dict[str, float]

SEED: Final = 20_240_611
SESSION_TURNS: Final = 20
PEOPLE: Final = (
    *("Mina", "Olaf", "Caroline", "Melanie", "Joanna", "Nate", "Gina", "Jon", "Maria", "John"),
    *("Audrey", "Andrew", "Calvin", "Dave", "Deborah", "Jolene", "Evan", "Sam", "Tim", "James"),
)
STOP_WORDS: Final = ("the", "a", "and", "to", "of", "it", "is", "was", "in", "that", "for", "on")
VOCABULARY: Final = 20_000
FREQUENT: Final = 20
"""Very frequent words are drawn from so many."""
POOLED: Final = 384
TOKEN: Final = 128
SPACE: Final = "bench"
TOKENS_SPACE: Final = f"bench@1/{TOKEN}/maxsim/i1"
BATCH: Final = 500
KINDS: Final = ("typical", "frequent", "period", "speaker")


def vocabulary() -> list[str]:
    """Return words without meaning that no stemmer shortens, the most frequent first."""
    source = random.Random(SEED)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        parts = (source.choice("bdfgklmnprtv") + source.choice("aou") for _ in range(3))
        words["".join(parts) + source.choice("kmnp")] = None
    return [*words]


class Talk:
    """Turns and questions, the same in every process."""

    def __init__(self) -> None:
        self._source = random.Random(SEED)
        self._words = vocabulary()
        # A curve through the frequencies of the words of LoCoMo.
        self._weights = [*accumulate((rank + 37) ** -1.5 for rank in range(VOCABULARY))]

    def content(self, count: int) -> list[str]:
        return self._source.choices(self._words, cum_weights=self._weights, k=count)

    def turn(self) -> str:
        """Return a text: half of its words are stop words, every seventh text asks."""
        source = self._source
        size = min(max(round(source.lognormvariate(3.05, 0.5)), 3), 90)
        words = self.content(size - size // 2) + source.choices(STOP_WORDS, k=size // 2)
        source.shuffle(words)
        if source.random() < 0.06:
            words.append(source.choice(("yesterday", "last week", "two", "because")))
        return " ".join(words).capitalize() + ("?" if source.random() < 0.14 else ".")

    def question(self, kind: str) -> str:
        """Return a question of 5 to 8 words, or of ten very frequent words."""
        source = self._source
        if kind == "frequent":
            return " ".join(source.sample(self._words[:FREQUENT], 10))
        name = f" {source.choice(PEOPLE)}" if kind == "speaker" else ""
        start = source.choice(("When did the", "What was the", "Where is the", "Why did the"))
        words = " ".join(self.content(source.randint(3, 4)))
        return f"{start}{name} {words}{' in May 2023' if kind == 'period' else ''}?"


def write(store: Store, texts: Sequence[str], vectors: Matrix | None, tokens: Tokens) -> None:
    """Put the turns of two people a session, in batches, a session a day."""
    first = datetime(2023, 1, 1, tzinfo=UTC)
    for start in range(0, len(texts), BATCH):
        with store.transaction():
            for place in range(start, min(start + BATCH, len(texts))):
                session, turn = divmod(place, SESSION_TURNS)
                embedded = cerata.Vectors(
                    dense=None if vectors is None else vectors[place],
                    space=None if vectors is None else SPACE,
                    tokens=tokens[place] if tokens else None,
                    tokens_space=TOKENS_SPACE if tokens else None,
                )
                store.put_frame(
                    texts[place],
                    role=PEOPLE[(2 * session + turn % 2) % len(PEOPLE)],
                    metadata={"session": f"session {session}"},
                    vectors=embedded,
                    options=cerata.PutOptions(
                        created=first + timedelta(days=session % 700, minutes=turn)
                    ),
                )


class Directions:
    """Token vectors of texts: a direction for each word, with noise."""

    def __init__(self) -> None:
        self._source = np.random.default_rng(SEED)
        self._known: dict[str, Matrix] = {}

    def tokens(self, text: str) -> Matrix:
        words = text.lower().rstrip(".?").split()
        for word in words:
            if word not in self._known:
                self._known[word] = self._source.standard_normal(TOKEN)
        noise = self._source.standard_normal((len(words), TOKEN)) / 2
        return (np.stack([self._known[word] for word in words]) + noise).astype(np.float32)


def processor_ms(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return 1e3 * (time.process_time() - started)


def median_ms(calls: Sequence[Callable[[], object]]) -> float:
    """Return the median of the calls, each the least of three."""
    return statistics.median(min(processor_ms(call) for _ in range(3)) for call in calls)


def asked(store: Store, talk: Talk, count: int, mode: str) -> Measured:
    """Return the times of each kind of question, by words and with vectors."""
    source = np.random.default_rng(SEED + 1)
    directions = Directions()
    times: Measured = {}
    for kind in KINDS:
        questions = [talk.question(kind) for _ in range(count)]
        search = partial(store.search, k=10)
        extra = [
            cerata.Vectors(
                dense=None if mode == "words" else source.standard_normal(POOLED),
                tokens=directions.tokens(question) if mode == "tokens" else None,
            )
            for question in questions
        ]
        calls = [
            partial(search, question, vectors=vectors)
            for question, vectors in zip(questions, extra, strict=True)
        ]
        calls[0]()
        times[f"question, {kind}"] = median_ms(calls)
    return times


def first_ms(path: Path, question: str) -> float:
    """Return the processor time of opening a file and of a question."""

    def ask() -> None:
        with cerata.open(path, mode="r") as store:
            store.search(question, k=10)

    return min(processor_ms(ask) for _ in range(5))


def appended_ms(store: Store, talk: Talk, count: int) -> float:
    """Return the processor time of a question after each of some appended turns."""
    times: list[float] = []
    for place in range(count):
        role = PEOPLE[place % 2]
        store.put_frame(talk.turn(), role=role, metadata={"session": "new"})
        times.append(processor_ms(partial(store.search, talk.question("typical"), k=10)))
    return statistics.median(times[1:])


def measured(folder: Path, turns: int, questions: int, mode: str) -> Measured:
    """Return the times in milliseconds, and sizes in KiB, of a memory of so many turns.

    Args:
        folder: For the file.
        turns: Turns of the memory.
        questions: Questions of each kind.
        mode: "words", "vectors" or "tokens", which includes pooled vectors.
    """
    talk = Talk()
    texts = [talk.turn() for _ in range(turns)]
    vectors: Matrix | None = None
    tokens: list[Matrix] = []
    if mode != "words":
        numbers = np.random.default_rng(SEED).standard_normal((turns, POOLED))
        vectors = numbers.astype(np.float32)
    if mode == "tokens":
        directions = Directions()
        tokens = [directions.tokens(text) for text in texts]
    path = folder / "talk.cera"
    times: Measured = {}
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        times["put, a turn"] = processor_ms(partial(write, store, texts, vectors, tokens)) / turns
        times["fold, a turn"] = processor_ms(store.checkpoint) / turns
        times |= asked(store, talk, questions, mode)
    times["file, KiB"] = path.stat().st_size / 1024
    times["cold question"] = first_ms(path, talk.question("typical"))
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        store.search(talk.question("typical"), k=10)
        times["question after an append"] = appended_ms(store, talk, 20)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("turns", type=int)
    parser.add_argument("questions", type=int)
    parser.add_argument("mode", choices=("words", "vectors", "tokens"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = measured(Path(folder), options.turns, options.questions, options.mode)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
