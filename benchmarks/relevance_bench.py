"""The relevance floor: unrelated questions get nothing, answerable questions their note.

``python -m benchmarks.relevance_bench`` (``--tiny`` in CI; needs the extra ``minilm``) puts 1,000
notes into a store with MiniLM and asks 50 questions that no note answers and 50 that a note answers
in other words. It counts the unrelated questions that get any entry, and the answerable questions
that get none, with the default floor, without a floor, and with other floors; then it lists the
questions that the default floor fails. The run repeats for each set of notes and questions.
``--designs`` counts with the `DESIGNS` of a second signal instead, which no version has.
``--locomo FILE`` also asks the questions of a data set in LoCoMo's form.
"""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import cerata
from benchmarks.append_bench import machine
from benchmarks.relevance_notes import SETS, QuestionSet, notes
from cerata.retrieval.ranking.relevance import MEASURED

CATEGORY_ADVERSARIAL = 5
"""Questions of LoCoMo without an answer in the conversation."""


class Outcome(NamedTuple):
    """How many unrelated questions got an entry, and how many answerable questions got none."""

    answered: int
    suppressed: int


class Evidence(NamedTuple):
    """The evidence of a hit: cosine, share of words, and score by tokens."""

    cosine: float
    words: float
    tokens: float


def _lifted(hits: Sequence[Evidence]) -> bool:
    """Words that a hit shares with the question lower the cosine that it needs."""
    return any(hit.cosine + 0.15 * hit.words >= 0.38 or hit.words >= 0.6 for hit in hits)


def _by_tokens(hits: Sequence[Evidence]) -> bool:
    """The evidence of the question's tokens (late interaction) adds to the cosine."""
    return any(hit.cosine + hit.tokens >= 0.46 for hit in hits)


def _apart(hits: Sequence[Evidence]) -> bool:
    """The best cosine must be far above the tenth."""
    cosines = sorted((hit.cosine for hit in hits), reverse=True)
    best, tenth = cosines[0], cosines[min(9, len(cosines) - 1)]
    return 1.5 * best - 0.5 * tenth >= 0.44 or any(hit.words >= 0.6 for hit in hits)


DESIGNS: Final[Mapping[str, Callable[[Sequence[Evidence]], bool]]] = {
    "cosine + 0.15 words >= 0.38, or words >= 0.6": _lifted,
    "cosine + tokens >= 0.46": _by_tokens,
    "cosine + 0.5 (cosine - tenth) >= 0.44, or words >= 0.6": _apart,
}
"""Rules with a second signal, fitted to the first set and to LoCoMo."""


def store_of(texts: Sequence[str], embedder: str = "minilm") -> cerata.Store:
    """Return a store in memory with the texts and their vectors."""
    store = cerata.open(":memory:", embedder=embedder)
    store.put_frames(list(texts))
    return store


def outcome(
    store: cerata.Store,
    unrelated: Sequence[str],
    answerable: Sequence[str],
    *,
    floor: cerata.Floor | bool = True,
) -> Outcome:
    """Ask all questions with a floor, and count."""
    answered = [bool(store.recall(question, floor=floor).items) for question in unrelated]
    shown = [bool(store.recall(question, floor=floor).items) for question in answerable]
    return Outcome(sum(answered), len(shown) - sum(shown))


def conversations(path: Path) -> list[tuple[list[str], list[str]]]:
    """Return the turns and the answerable questions of each conversation of a data set."""
    pairs: list[tuple[list[str], list[str]]] = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        sessions = [talk[name] for name in talk if isinstance(talk[name], list)]
        turns = [f"{turn['speaker']}: {turn['text']}" for turns in sessions for turn in turns]
        questions = [
            question["question"]
            for question in sample["qa"]
            if question.get("category") != CATEGORY_ADVERSARIAL
        ]
        pairs.append((turns, questions))
    return pairs


def print_counts(store: cerata.Store, questions: QuestionSet) -> None:
    """Print the counts with each floor, the first hits, the time and a hash of the counts."""
    asked = [question for _, question in questions.answerable]
    default = MEASURED["all-MiniLM-L6-v2"]
    floors: list[tuple[str, bool | cerata.Floor]] = [("default", True), ("none", False)]
    floors += [(f"{at:.2f}", cerata.Floor(at, default.words)) for at in (0.28, 0.32, 0.36, 0.4)]
    lines: list[str] = []
    for name, floor in floors:
        result = outcome(store, questions.unrelated, asked, floor=floor)
        lines.append(
            f"floor {name}: {result.answered} of {len(questions.unrelated)} unrelated questions"
            f" answered, {result.suppressed} of {len(asked)} answerable questions suppressed"
        )
        print(lines[-1])
    first = sum(
        store.search(question)[0].text == note and store.recall(question).relevant
        for note, question in questions.answerable
    )
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


def evidence_of(store: cerata.Store, question: str) -> list[Evidence]:
    """Return the evidence of each hit that a recall would read, best first."""
    hits: list[Evidence] = []
    for hit in store.search(question, k=100):
        explanation = store.explain(hit)
        total = math.fsum(word.idf for word in explanation.words)
        common = math.fsum(word.idf for word in explanation.words if word.count)
        [tokens] = [share.score or 0.0 for share in explanation.lanes if share.lane == "late"]
        hits.append(Evidence(hit.cosine or 0.0, common / total if total else 0.0, tokens))
    return hits


def print_designs(questions: QuestionSet, count: int) -> None:
    """Print the counts of each design of a second signal."""
    with store_of(notes(questions, count), "minilm-tokens") as store:
        unrelated = [evidence_of(store, question) for question in questions.unrelated]
        answerable = [evidence_of(store, question) for _, question in questions.answerable]
    for name, passes in DESIGNS.items():
        answered = sum(map(passes, unrelated))
        suppressed = len(answerable) - sum(map(passes, answerable))
        print(f"{name}: {answered} unrelated answered, {suppressed} answerable suppressed")


def print_failures(store: cerata.Store, questions: QuestionSet) -> None:
    """Print the questions that the default floor fails, each with its nearest note and cosine."""
    failures = [
        ("answered", question) for question in questions.unrelated if store.recall(question).items
    ] + [
        ("suppressed", question)
        for _, question in questions.answerable
        if not store.recall(question).items
    ]
    for failure, question in failures:
        nearest = store.search(question, mode="vector")[0]
        print(f"{failure}: {question} ({nearest.cosine:.3f}: {nearest.text})")


def main(arguments: list[str] | None = None) -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--locomo", type=Path, help="a data set in LoCoMo's form")
    parser.add_argument("--designs", action="store_true", help="count with designs of two signals")
    options = parser.parse_args(arguments)
    count = 200 if options.tiny else 1_000
    print(f"{machine()}; cerata {cerata.__version__}; {count:,} notes")
    for questions in SETS:
        print(f"set: {questions.name}")
        if options.designs:
            print_designs(questions, count)
            continue
        with store_of(notes(questions, count)) as store:
            print_counts(store, questions)
            print_failures(store, questions)
    unrelated = SETS[0].unrelated
    for turns, asked in conversations(options.locomo) if options.locomo else ():
        with store_of(turns) as store:
            result = outcome(store, unrelated, asked)
        print(
            f"{len(turns):,} turns: {result.answered} of {len(unrelated)} unrelated answered, "
            f"{result.suppressed} of {len(asked)} answerable suppressed"
        )


if __name__ == "__main__":
    main()
