"""Bisection: the first event after which a test of the memory fails.

Owns the search over points of the log, its verdicts, and its result. A test that holds at one point
and fails at a later point changed at some event between them; halving the range finds the event in
log2(events) tests, as git bisect finds a commit. The later end is tested first, the earlier end
only if no point between was good. Leaves out the meaning of a basis (`points_in_time`), and tests
by a question or a command (`cerata.cli.points`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from cerata.engine.arguments import expect_type, is_integer
from cerata.engine.errors import BisectFailed, CerataError, InvalidInput, NotFound, value_text
from cerata.engine.events import Event
from cerata.engine.json_value import JsonValue, exact
from cerata.engine.plain_value import PlainValue, plain_fields

from .view import View

Verdict: TypeAlias = Literal["good", "bad", "skip"]
Unit: TypeAlias = Literal["event", "batch"]
Test: TypeAlias = Callable[[View], bool | None]

SKIPS_MAX: Final = 64
"""Tests without an answer in a row after which the search ends: half of a small range."""

_LINE: Final = re.compile(r"\s*(good|bad|skip)\s+#?(\d[\d,]*)\b")


@dataclass(frozen=True, slots=True)
class Probe(PlainValue):
    """The verdict of a test at a point of the log.

    - ``left`` is about the number of points that may still be the first bad one.
    """

    basis: int
    verdict: Verdict
    left: int = 0

    def __str__(self) -> str:
        return f"{self.verdict:<4} #{self.basis:,}"


@dataclass(frozen=True, slots=True)
class Bisection(PlainValue):
    """The first event after which a test fails, found by `Store.history.bisect`.

    - The test is true at ``good`` and false at ``seq``; of events, ``good`` is ``seq`` − 1.
    - ``first`` and ``last`` are the seqs of the batch of the event.
    - ``event`` is the event; None if the scope hides it.
    - ``probes`` are the verdicts in their order, those of an earlier search first.
    """

    seq: int
    good: int
    first: int
    last: int
    event: Event | None
    probes: tuple[Probe, ...]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.probes), f"first bad event #{self.seq:,}"])

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            **plain_fields(self, ("seq", "good", "first", "last")),
            "event": None if self.event is None else self.event.to_dict(),
            **plain_fields(self, ("probes",)),
        }


def verdicts_in(text: str) -> dict[int, Verdict]:
    r"""Return the verdicts in a printed log, by seq; other lines count for nothing.

    Args:
        text: The lines of a bisection, such as "good #12".

    >>> verdicts_in("good #12\nbad  #1,200 (30 left)\nfirst bad event #13")
    {12: 'good', 1200: 'bad'}
    """
    verdicts: dict[int, Verdict] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            word = next(name for name in get_args(Verdict) if name == match[1])
            verdicts[int(match[2].replace(",", ""))] = word
    return verdicts


class Bisector:
    """A search for the first point at which a test is false.

    - ``good`` is the last point known to be good, ``bad`` the first known to be bad.
    - A verdict of ``known`` is taken over, and its point not tested again.
    """

    def __init__(
        self,
        view_at: Callable[[int], View],
        batch_at: Callable[[int], tuple[int, int]],
        test: Test,
        *,
        unit: Unit,
        known: Mapping[int, Verdict],
        progress: Callable[[Probe], None] | None,
    ) -> None:
        self._view_at = view_at
        self._batch_at = batch_at
        self._test = test
        self._unit = unit
        self._known = dict(known)
        self._progress = progress
        self._probes: list[Probe] = []

    def run(self, good: int, bad: int, checks: int) -> Bisection:
        """Return the first point of (good, bad] at which the test is false.

        Raises:
            InvalidInput: the test has one answer at both ends, or the reverse ones.
            BisectFailed: see `Store.history.bisect`.
        """
        low, high = good, bad
        for basis in sorted(self._known):
            if low <= basis <= high:
                self._add(Probe(basis, self._known[basis]))
        if self._verdict(bad, bad - good) != "bad":
            raise self._wrong_ends(good, bad)
        low, high = self._narrowed(low, high)
        while (middle := self._middle(low, high)) is not None:
            if self._verdict(middle, high - low) == "good":
                low = middle
            else:
                high = middle
        if low == good and self._verdict(good, 0) != "good":
            raise self._wrong_ends(good, bad)
        for point in self._spread(good, low, high, bad, checks):
            verdict = self._verdict(point, 0)
            if verdict == ("bad" if point <= low else "good"):
                raise self._not_monotonic(point, verdict, low, high)
        first, last = self._batch_at(high)
        event = next(self._view_at(high).log(high, high), None)
        return Bisection(high, low, first, last, event, tuple(self._probes))

    def _wrong_ends(self, good: int, bad: int) -> CerataError:
        """Return the error of ends between which the test does not change from true to false."""
        at_good, at_bad = self._verdict(good, bad - good), self._verdict(bad, bad - good)
        ends = f"at {good:,} and at {bad:,}"
        if "skip" in (at_good, at_bad):
            return BisectFailed(
                f"The test has no answer {ends}, the ends of the search",
                remedy="Pass good= and bad= at which the test has an answer.",
                probes=self._probes,
            )
        if at_good == at_bad:
            return InvalidInput(
                f"The test is {'true' if at_good == 'good' else 'false'} {ends}, so no event "
                "between them changed the answer",
                remedy="Pass a good= at which the test is true, and a later bad= at which it is "
                "false.",
            )
        return InvalidInput(
            f"The test is false at {good:,} and true at {bad:,}: the reverse of good and bad",
            remedy="Negate the test to find the event that made the test true.",
        )

    def _narrowed(self, low: int, high: int) -> tuple[int, int]:
        """Return the range that the known verdicts leave."""
        inside = {seq: word for seq, word in self._known.items() if low < seq < high}
        for seq in sorted(inside):
            if inside[seq] == "good":
                low = seq
        for seq in sorted(inside, reverse=True):
            if inside[seq] == "bad":
                high = seq
        if low >= high:
            raise self._not_monotonic(low, "good", high, low)
        return low, high

    def _middle(self, low: int, high: int) -> int | None:
        """Return the point to test next, which has a verdict; None if the search is over."""
        candidates = self._candidates(low, high)
        skipped = 0
        for point in candidates:
            if self._verdict(point, high - low) != "skip":
                return point
            skipped += 1
            if skipped == SKIPS_MAX:
                break
        if skipped:
            raise BisectFailed(
                f"Skipped tests hide the answer: the first bad event is one of {low + 1:,} to "
                f"{high:,}",
                remedy="Make the test answer at one of these points.",
                probes=self._probes,
            )
        return None

    def _candidates(self, low: int, high: int) -> Iterator[int]:
        """Yield the points between two points, those nearest to the middle first, each once."""
        middle = self._point((low + high) // 2, low, high)
        if middle is None:
            return
        yield middle
        above = below = middle
        while True:
            up = self._above(above, high)
            down = self._below(below, low)
            if up is None and down is None:
                return
            if up is not None:
                above = up
                yield up
            if down is not None:
                below = down
                yield down

    def _point(self, seq: int, low: int, high: int) -> int | None:
        """Return the point nearest to a seq strictly between two points; None if there is none."""
        if self._unit == "event":
            return seq if low < seq < high else None
        if seq <= low:
            return self._above(low, high)
        first, last = self._batch_at(seq)
        ends = [end for end in (last, first - 1) if low < end < high]
        return min(ends, key=lambda end: abs(end - seq), default=None)

    def _above(self, point: int, high: int) -> int | None:
        after = point + 1
        if after >= high:
            return None
        after = after if self._unit == "event" else self._batch_at(after)[1]
        return after if after < high else None

    def _below(self, point: int, low: int) -> int | None:
        before = point - 1 if self._unit == "event" else self._batch_at(point)[0] - 1
        return before if before > low else None

    def _spread(self, good: int, low: int, high: int, bad: int, checks: int) -> Iterator[int]:
        """Yield further points on both sides of the answer, evenly spaced."""
        for start, end in ((good, low), (high, bad)):
            for place in range(1, checks + 1):
                point = self._point(start + (end - start) * place // (checks + 1), start, end)
                if point is not None:
                    yield point

    def _verdict(self, basis: int, width: int) -> Verdict:
        if basis not in self._known:
            self._known[basis] = verdict = self._answer(basis)
            self._add(Probe(basis, verdict, width // 2))
        return self._known[basis]

    def _add(self, probe: Probe) -> None:
        self._probes.append(probe)
        if self._progress is not None:
            self._progress(probe)

    def _answer(self, basis: int) -> Verdict:
        view = self._view_at(basis)
        try:
            answer = exact(self._test(view))
        except Exception as error:
            # A thing that a point lacks is of the test; other errors are of the memory or a call.
            if isinstance(error, CerataError) and not isinstance(error, NotFound):
                raise
            raise BisectFailed(
                f"The test raised {type(error).__name__}: {error}",
                where=f"at event {basis:,}",
                remedy="Return None from the test at a point that it cannot judge.",
                probes=self._probes,
            ) from error
        if answer is None:
            return "skip"
        if not isinstance(answer, bool):
            raise BisectFailed(
                f"The test returned {value_text(answer):.60}, neither True, False nor None",
                where=f"at event {basis:,}",
                remedy="Return True if the memory is good, False if it is bad, None to skip.",
                probes=self._probes,
            )
        return "good" if answer else "bad"

    def _not_monotonic(self, point: int, verdict: Verdict, low: int, high: int) -> BisectFailed:
        return BisectFailed(
            f"The answers change more than once: {verdict} at {point:,}, although the test is good "
            f"at {low:,} and bad at {high:,}",
            remedy="Bisect a range in which the answer changes once, with good= and bad=.",
            probes=self._probes,
        )


def known_verdicts(known: Iterable[Probe] | str) -> dict[int, Verdict]:
    """Return the verdicts of an earlier search, from its probes or its printed log.

    Raises:
        InvalidInput: an item is no probe.
    """
    if isinstance(known, str):
        return verdicts_in(known)
    verdicts: dict[int, Verdict] = {}
    for probe in known:
        expect_type("known", probe, Probe, "probes", "Pass the probes of a bisection, or its log.")
        verdicts[probe.basis] = probe.verdict
    return verdicts


def check_search(test: object, unit: object, checks: object) -> None:
    """Check the arguments of a search.

    Raises:
        InvalidInput: one has no such value.
    """
    if not callable(test):
        raise InvalidInput(
            f"test must be a function of a view, not {value_text(test):.60}",
            remedy="Pass a function that returns True, False, or None to skip.",
        )
    if unit not in get_args(Unit):
        raise InvalidInput(
            f"by must be 'event' or 'batch', not {unit!r:.60}", remedy="Pass 'event' or 'batch'."
        )
    if not is_integer(checks) or checks < 0:
        raise InvalidInput(
            f"checks must be a whole number from 0, not {checks!r:.60}",
            remedy="Pass the number of further tests on each side.",
        )
