"""Rounds of `python -m benchmarks`: the systems take turns batch by batch and question by question.

Owns the order of work and the clocks; leaves out medians and exponents (`results`). A round
begins with new files: batches, close, reopening, questions, deletes, close, and the first answer
of a new process. Every time is that of the clock and that of the processor, user and system.
"""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from .documents import Answers, Documents, K, Question
from .systems import SYSTEMS, System

T = TypeVar("T")

OPERATIONS: Final = ("ingest", "text", "vector", "hybrid", "past", "delete", "cold")
"""Measured operations, in the order of the table."""

_DELETES_PART: Final = 10
"""At most one document in ten is deleted."""

_MATCHES_MAX: Final = 1_000

_CHILD: Final = "from benchmarks.beside.cold import main; main()"


class Cost(NamedTuple):
    """Seconds of the clock and of the processor."""

    wall: float
    cpu: float


_FREE: Final = Cost(0, 0)


@dataclass(slots=True)
class Round:
    """The costs of each operation of one system, the size of its files, and its right answers."""

    costs: dict[str, list[Cost]] = field(default_factory=dict[str, list[Cost]])
    ingest: Cost = _FREE
    size_bytes: int = 0
    recall: float = 0.0
    exact_words: float = 0.0

    def time(self, operation: str, work: Callable[[], T]) -> T:
        """Call once, keep the cost, and return the result."""
        started, begun = time.perf_counter(), time.process_time()
        result = work()
        cost = Cost(time.perf_counter() - started, time.process_time() - begun)
        self.costs.setdefault(operation, []).append(cost)
        return result


@dataclass(frozen=True, slots=True)
class Work:
    """The documents of a size, with questions and right answers."""

    documents: Documents
    questions: Sequence[Question]
    answers: Answers


def work_of(count: int, queries: int) -> Work:
    """Return a number of documents, and questions about them; the first question is not timed."""
    documents = Documents(count)
    questions = documents.questions(queries + 1)
    return Work(documents, questions, documents.answers(questions))


def one_round(
    work: Work, names: Sequence[str], turn: int, folder: str | None, step: Callable[[], None]
) -> dict[str, Round]:
    """Measure all systems in new files.

    Args:
        work: Documents and questions.
        names: The systems, keys of `SYSTEMS`.
        turn: Number of the round; another system goes first in each.
        folder: Place of the files; default the system's folder for temporary files.
        step: Called after each batch.
    """
    rounds = {name: Round() for name in names}
    with tempfile.TemporaryDirectory(prefix="cerata-bench-", dir=folder) as place:
        folders = {name: Path(place) / name for name in names}
        for path in folders.values():
            path.mkdir()
        gc.collect()
        _ingest(work, rounds, folders, turn, step)
        systems = {name: SYSTEMS[name].open(path) for name, path in folders.items()}
        try:
            _ask(work, rounds, systems, turn)
            _check(work, rounds, systems)
            _delete(work, rounds, systems, turn)
        finally:
            for system in systems.values():
                system.close()
        for name in _rotated(names, turn):
            rounds[name].costs["cold"] = [_first_answer(name, folders[name], work.questions[1])]
    return rounds


def _rotated(names: Sequence[str], turn: int) -> list[str]:
    first = turn % len(names)
    return [*names[first:], *names[:first]]


def _ingest(
    work: Work,
    rounds: dict[str, Round],
    folders: dict[str, Path],
    turn: int,
    step: Callable[[], None],
) -> None:
    systems = {name: SYSTEMS[name].open(path) for name, path in folders.items()}
    for place, batch in enumerate(work.documents.batches()):
        for name in _rotated(list(systems), turn + place):
            rounds[name].time("ingest", partial(systems[name].add, batch))
        step()
    for name, system in systems.items():
        result = rounds[name]
        # The end of the work counts, but is no batch.
        result.time("end", system.finish)
        result.time("end", system.close)
        costs = [*result.costs["ingest"], *result.costs.pop("end")]
        result.ingest = Cost(sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs))
        files = [path for path in folders[name].rglob("*") if path.is_file()]
        result.size_bytes = sum(path.stat().st_size for path in files)


def _ask(work: Work, rounds: dict[str, Round], systems: dict[str, System], turn: int) -> None:
    hits = dict.fromkeys(rounds, 0)
    for place, question in enumerate(work.questions):
        nearest = set(work.answers.nearest[place])
        for name in _rotated(list(systems), turn + place):
            system = systems[name]
            # A first question reads the file, which is measured as the cold answer.
            result = Round() if place == 0 else rounds[name]
            result.time("text", partial(system.text, question.text))
            numbers = result.time("vector", partial(system.vector, question.vector))
            hits[name] += len(nearest & set(numbers))
            result.time("hybrid", partial(system.hybrid, question))
            if result.time("past", partial(system.past, question)) is None:
                del result.costs["past"]
    for name, count in hits.items():
        rounds[name].recall = count / sum(len(row[:K]) for row in work.answers.nearest)


def _check(work: Work, rounds: dict[str, Round], systems: dict[str, System]) -> None:
    """Compare the documents of rare words; stemmers add other words, which do not count."""
    texts = _texts_of(work)
    for name, system in systems.items():
        right = 0
        for word, documents in work.answers.documents_of.items():
            numbers = system.text(word, _MATCHES_MAX)
            right += {number for number in numbers if word in texts(number)} == documents
        rounds[name].exact_words = right / max(1, len(work.answers.documents_of))


def _texts_of(work: Work) -> Callable[[int], frozenset[str]]:
    """Return a function that gives the rare words of a document."""
    words: dict[int, set[str]] = {}
    for word, documents in work.answers.documents_of.items():
        for number in documents:
            words.setdefault(number, set()).add(word)
    return lambda number: frozenset(words.get(number, ()))


def _delete(work: Work, rounds: dict[str, Round], systems: dict[str, System], turn: int) -> None:
    count = max(1, min(len(work.questions) - 1, work.documents.count // _DELETES_PART))
    for place in range(count):
        number = place * work.documents.count // count
        for name in _rotated(list(systems), turn + place):
            rounds[name].time("delete", partial(systems[name].delete, number))


def _first_answer(name: str, folder: Path, question: Question) -> Cost:
    """Return the cost of a first hybrid answer in a new process, from the opening on."""
    asked = {
        "system": name,
        "folder": str(folder),
        "text": question.text,
        "vector": question.vector.tolist(),
    }
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Cost(*json.loads(child.stdout.splitlines()[-1]))
