"""Recovery depends only on the bytes that it reads: equal readings are recovered once.

Owns `Reading`, which records the reads of one recovery, and `Readings`, which stores the outcome of
each course of reading. Recovery is a function of its knowledge of the image: the size, and the
sectors that it reads, in an order that the earlier sectors decide. Two images that agree in these
have the same outcome; the unread sectors may differ. (The idea is that of Vinter, USENIX ATC 2022,
which leaves out crash states that differ only in bytes that recovery never reads.)

A read counts as a question about all the sectors that it covers, even if recovery uses a few bytes
of them: so the test of agreement may be too strict, never too lax. Sectors that recovery wrote
itself are known already. Leaves out locks, names, clock and randomness, which the caller must keep
the same for every image of an epoch.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Final, NamedTuple, TypeAlias

from .epochs import Epoch, sector_digests
from .operations import SECTOR
from .states import CrashState


class Outcome(NamedTuple):
    """The result of a recovery. The model's chain hash at ``seq`` binds every event.

    If the image was refused, ``seq`` is −1, and ``chain`` names the error.
    """

    seq: int
    chain: bytes


Ranges = tuple[tuple[int, int], ...]
"""Ranges of sectors, each from the first to before the second number."""


class Question(NamedTuple):
    """One read, or one search, of the disk.

    ``words`` is the interval in which the first word of a sector must lie, for a search; a read of
    whole sectors has None.
    """

    sectors: Ranges
    words: tuple[int, int] | None = None


AUDIT_EVERY: Final = 64
"""One in this many outcomes that are known by their readings is recovered all the same."""


class NotAFunction(AssertionError):
    """Recovery read the same and acted otherwise: it depends on more than the readings show."""


class Reading:
    """The reads of one process in one file, as questions about its content before the process."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self._known: set[int] = set()
        """Sectors that an earlier question covered, or that the process wrote itself."""

    def read(self, offset: int, size: int) -> None:
        """Record a read: a question about the sectors that are not known yet."""
        sectors_known = self._known
        sectors = range(offset // SECTOR, -(-(offset + size) // SECTOR))
        fresh = [number for number in sectors if number not in sectors_known]
        if fresh:
            sectors_known.update(fresh)
            self.questions.append(Question(_ranges(fresh)))

    def covers(self, sectors: Collection[int]) -> bool:
        """Return whether any of these sectors was read."""
        return any(
            start <= number < stop
            for question in self.questions
            for start, stop in question.sectors
            for number in sectors
        )

    def searched(self, offset: int, stop: int, low: int, high: int) -> None:
        """Record a search for sectors that begin with a number: the rest of them stays unknown."""
        sectors = range(offset // SECTOR, -(-stop // SECTOR))
        fresh = [number for number in sectors if number not in self._known]
        if fresh:
            self.questions.append(Question(_ranges(fresh), (low, high)))

    def wrote(self, offset: int, size: int) -> None:
        """Record a write: the process knows the sectors that it covers wholly."""
        self._known.update(range(-(-offset // SECTOR), (offset + size) // SECTOR))

    def resized(self, old: int, size: int) -> None:
        """Record a cut or growth: bytes that were cut off come back as zeros, if at all."""
        self._known.update(range(-(-min(old, size) // SECTOR), -(-max(old, size) // SECTOR)))


def _ranges(numbers: Sequence[int]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    start = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            ranges.append((start, previous + 1))
            start = number
        previous = number
    return (*ranges, (start, previous + 1))


class _Node:
    """A question, and for each answer the next question, or an outcome."""

    __slots__ = ("answers", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answers: _Branch = {}


_Branch: TypeAlias = "dict[Hashable, _Node | Outcome]"


class EpochAnswers:
    """Answers questions about the images of one epoch, without building an image.

    The answer to a read is the XOR of the digests of its sectors (`sector_digest`); the answer to a
    search has a bit for each matching sector.
    """

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._digests: list[int] | None = None
        self._prepared: dict[Question, tuple[int, list[int]]] = {}

    def answer(self, question: Question, state: CrashState, changes: Sequence[int]) -> int:
        """Return the answer for a state whose sectors differ from the base by ``changes``."""
        prepared = self._prepared.get(question)
        if prepared is None:
            prepared = self._prepared[question] = self._prepare(question)
        answer, places = prepared
        if question.words is None:
            for place in places:
                answer ^= changes[place]
            return answer
        low, high = question.words
        for place in places:
            word = state.word(place)
            if low <= word <= high:
                answer |= 1 << self._epoch.sectors[place].number
        return answer

    def _prepare(self, question: Question) -> tuple[int, list[int]]:
        """Return the answer for untouched sectors, and the places of sectors that may change it.

        For a read, the answer covers all sectors of the base, since changes are relative to the
        base.
        """
        base = self._epoch.base
        places = [
            place
            for place, history in enumerate(self._epoch.sectors)
            if any(start <= history.number < stop for start, stop in question.sectors)
        ]
        answer = 0
        if question.words is None:
            if self._digests is None:
                self._digests = sector_digests(base)
            for start, stop in question.sectors:
                for digest in self._digests[start:stop]:
                    answer ^= digest
            return answer, places
        touched = {self._epoch.sectors[place].number for place in places}
        low, high = question.words
        for start, stop in question.sectors:
            for number in range(start, min(stop, len(base) // SECTOR)):
                word = int.from_bytes(base[number * SECTOR : number * SECTOR + 8], "little")
                if low <= word <= high and number not in touched:
                    answer |= 1 << number
        return answer, places


class Readings:
    """The outcomes of all recoveries so far, by their reads: a tree of questions and answers."""

    def __init__(self) -> None:
        self._roots: _Branch = {}

    def find(self, state: CrashState, answers: EpochAnswers) -> Outcome | None:
        """Return the outcome of an earlier image with the same readings, or None."""
        node = self._roots.get(_root(state))
        changes = state.changes()
        while isinstance(node, _Node):
            node = node.answers.get(answers.answer(node.question, state, changes))
        return node

    def remember(
        self, state: CrashState, answers: EpochAnswers, reading: Reading, outcome: Outcome
    ) -> None:
        """Store the outcome of a state, under its reading.

        Raises:
            NotAFunction: the same reading led to another question, or outcome, before.
        """
        branch = self._roots
        answer: Hashable = _root(state)
        changes = state.changes()
        for question in reading.questions:
            node = branch.setdefault(answer, _Node(question))
            if not isinstance(node, _Node) or node.question != question:
                raise NotAFunction(
                    f"recovery asked {question}, unlike an earlier run with equal readings"
                )
            branch = node.answers
            answer = answers.answer(question, state, changes)
        earlier = branch.setdefault(answer, outcome)
        if earlier != outcome:
            raise NotAFunction(
                f"recovery returned {outcome}, but {earlier} in an earlier run with equal readings"
            )


def _root(state: CrashState) -> Hashable:
    """Return the part of an image that recovery knows without reading it."""
    return state.naming.own, state.naming.others, state.size
