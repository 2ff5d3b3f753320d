"""What recovery reads of a crash image decides what comes out: equal readings are judged once.

Owns `Reading`, which notes what a recovery reads of the disk it was given, and `Readings`, which
remembers for each course of reading what came out. Recovery is a function of what it learns of
the image: its size, and the sectors that it reads, in an order that is itself decided by what it
read before. Two images that agree in all of that have the same outcome, whatever stands in the
sectors that were never looked at. (The idea is that of Vinter, USENIX ATC 2022, which leaves out
crash states that differ in nothing that recovery reads.)

A read counts as a question for all the sectors that it covers, even where recovery looks at a few
bytes of them: so agreement is asked for too often, never too seldom. What recovery wrote itself
is known and not asked again. Leaves out locks, names, clock and randomness, which are the same
for every image of an epoch: whoever makes the world sees to that.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Final, NamedTuple, TypeAlias

from .epochs import Epoch, sector_digests
from .operations import SECTOR
from .oracle import Outcome
from .states import CrashState

Ranges = tuple[tuple[int, int], ...]
"""Ranges of sectors, each from the first to before the second number."""


class Question(NamedTuple):
    """What one read, or one search, asks of the disk.

    ``words`` is None for a read of all that stands in the sectors; for a search it is what the
    first word of a sector is looked for to lie in, from the first number to the second.
    """

    sectors: Ranges
    words: tuple[int, int] | None = None


AUDIT_EVERY: Final = 64
"""One in so many outcomes that are known by their readings is recovered all the same."""


class NotAFunction(AssertionError):
    """Recovery read the same and did something else: it depends on what the readings do not see."""


class Reading:
    """What one process reads of one file, as questions about what stood there before it began."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self._known: set[int] = set()
        """Sectors that were asked for, or that the process wrote itself."""

    def read(self, offset: int, size: int) -> None:
        """Note a read: a question about the sectors that are not known yet."""
        known = self._known
        wanted = range(offset // SECTOR, -(-(offset + size) // SECTOR))
        fresh = [number for number in wanted if number not in known]
        if fresh:
            known.update(fresh)
            self.questions.append(Question(_ranges(fresh)))

    def covers(self, sectors: Collection[int]) -> bool:
        """Tell whether any of some sectors was asked for."""
        return any(
            start <= number < stop
            for question in self.questions
            for start, stop in question.sectors
            for number in sectors
        )

    def searched(self, offset: int, stop: int, low: int, high: int) -> None:
        """Note a search for sectors that begin with a number: all else in them stays unknown."""
        wanted = range(offset // SECTOR, -(-stop // SECTOR))
        fresh = [number for number in wanted if number not in self._known]
        if fresh:
            self.questions.append(Question(_ranges(fresh), (low, high)))

    def wrote(self, offset: int, size: int) -> None:
        """Note a write: sectors that it covers wholly hold what the process gave them."""
        self._known.update(range(-(-offset // SECTOR), (offset + size) // SECTOR))

    def resized(self, old: int, size: int) -> None:
        """Note a cut or growth: what was cut off comes back as zeros, if at all."""
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
    """A question, and what each answer led to: the next question, or an outcome."""

    __slots__ = ("answers", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answers: _Branch = {}


_Branch: TypeAlias = "dict[Hashable, _Node | Outcome]"


class EpochAnswers:
    """Answers questions about the images of one epoch, without building one.

    The answer to a read is the XOR of the digests of the sectors in question, as `sector_digest`
    has them; that to a search has a bit for each sector.
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
        """Return the answer of what the epoch left alone, and the sectors that may change it.

        To a read, the base answers with all its sectors, since changes are against it.
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
    """The outcomes of all recoveries so far, by what they read: a tree of questions and answers."""

    def __init__(self) -> None:
        self._roots: _Branch = {}

    def find(self, state: CrashState, answers: EpochAnswers) -> Outcome | None:
        """Return what an image with the same readings was recovered to; None where none was."""
        found = self._roots.get(_root(state))
        changes = state.changes()
        while isinstance(found, _Node):
            found = found.answers.get(answers.answer(found.question, state, changes))
        return found

    def remember(
        self, state: CrashState, answers: EpochAnswers, reading: Reading, outcome: Outcome
    ) -> None:
        """Remember what a state was recovered to, and by which reading.

        Raises:
            NotAFunction: the same reading went on, or ended, in another way before.
        """
        branch = self._roots
        answer: Hashable = _root(state)
        changes = state.changes()
        for question in reading.questions:
            node = branch.setdefault(answer, _Node(question))
            if not isinstance(node, _Node) or node.question != question:
                raise NotAFunction(f"it went on to ask for {question}, and did not before")
            branch, answer = node.answers, answers.answer(question, state, changes)
        known = branch.setdefault(answer, outcome)
        if known != outcome:
            raise NotAFunction(f"it came to {outcome}, and had come to {known} before")


def _root(state: CrashState) -> Hashable:
    """What recovery learns of an image without reading it."""
    return state.naming.own, state.naming.others, state.size
