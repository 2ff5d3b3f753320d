"""The relevance floor: unrelated questions get nothing, answerable questions their note.

``python -m benchmarks.relevance_bench`` (``--tiny`` in CI; needs the extra ``minilm``) puts 1,000
notes into a store with MiniLM and asks 50 questions that no note answers and 50 that a note answers
in other words (`benchmarks.relevance_notes`). It counts the unrelated questions that get any entry,
and the answerable questions that get none, with the default floor, without a floor, and with other
floors. ``--locomo FILE`` also asks the questions of a data set in LoCoMo's form.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cerata
from benchmarks.append_bench import machine
from benchmarks.relevance_notes import ANSWERABLE, UNRELATED, notes
from cerata.retrieval.ranking.relevance import MEASURED

CATEGORY_ADVERSARIAL = 5
"""Questions of LoCoMo without an answer in the conversation."""


class Outcome(NamedTuple):
    """How many unrelated questions got an entry, and how many answerable questions got none."""

    answered: int
    suppressed: int


def store_of(texts: Sequence[str]) -> cerata.Store:
    """Return a store in memory with the texts and their vectors."""
    store = cerata.open(":memory:", embedder="minilm")
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


def main(arguments: list[str] | None = None) -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--locomo", type=Path, help="a data set in LoCoMo's form")
    options = parser.parse_args(arguments)
    count = 200 if options.tiny else 1_000
    questions = [question for _, question in ANSWERABLE]
    print(f"{machine()}; cerata {cerata.__version__}; {count:,} notes")
    with store_of(notes(count)) as store:
        default = MEASURED["all-MiniLM-L6-v2"]
        floors: list[tuple[str, bool | cerata.Floor]] = [("default", True), ("none", False)]
        floors += [(f"{at:.2f}", cerata.Floor(at, default.words)) for at in (0.28, 0.32, 0.36, 0.4)]
        lines: list[str] = []
        for name, floor in floors:
            result = outcome(store, UNRELATED, questions, floor=floor)
            lines.append(
                f"floor {name}: {result.answered} of {len(UNRELATED)} unrelated questions answered,"
                f" {result.suppressed} of {len(questions)} answerable questions suppressed"
            )
            print(lines[-1])
        first = sum(
            store.search(question)[0].text == note and store.recall(question).relevant
            for note, question in ANSWERABLE
        )
        print(f"the note of the question is the first hit: {first} of {len(questions)}")
        started = time.perf_counter()
        for question in UNRELATED:
            store.recall(question)
        print(f"{(time.perf_counter() - started) / len(UNRELATED) * 1e3:.1f} ms a question")
    print(f"result {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:12]}")
    for turns, asked in conversations(options.locomo) if options.locomo else ():
        with store_of(turns) as store:
            result = outcome(store, UNRELATED, asked)
        print(
            f"{len(turns):,} turns: {result.answered} of {len(UNRELATED)} unrelated answered, "
            f"{result.suppressed} of {len(asked)} answerable suppressed"
        )


if __name__ == "__main__":
    main()
