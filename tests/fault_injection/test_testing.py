"""What users' tests call: each passes on sound code, and names the fault of broken code."""

import gc
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

import cerata
from cerata.engine.errors import InvalidInput
from cerata.engine.events import PutFrame
from cerata.fault_injection.testing import (
    Workload,
    assert_crash_safe,
    assert_deterministic,
    assert_projection_pure,
    given,
    operation,
)
from cerata.projections.core.projection import FoldedEvent


@cerata.event("tests.moved")
class Moved(cerata.EventBody, frozen=True):
    """Cents that came to an account, or left it."""

    account: str
    cents: int


class Balances(cerata.RowProjection[str, int]):
    """Cents by account."""

    name = "balances"
    handles = (Moved,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            assert isinstance(event.body, Moved)
            self.fold(event.body)

    def fold(self, moved: Moved) -> None:
        self.rows[moved.account] = self.rows.get(moved.account, 0) + moved.cents


class Clocked(Balances):
    name = "clocked"

    def fold(self, moved: Moved) -> None:
        self.rows[moved.account] = time.time_ns()


class Dated(Balances):
    name = "dated"

    def fold(self, moved: Moved) -> None:
        self.rows[moved.account] = datetime.now(UTC).year


class Diced(Balances):
    name = "diced"

    def fold(self, moved: Moved) -> None:
        self.rows[moved.account] = random.randint(1, 6)


class Filed(Balances):
    name = "filed"

    def fold(self, moved: Moved) -> None:
        with open(__file__, encoding="utf-8") as file:
            self.rows[moved.account] = len(file.read(7))


class Named(Balances):
    name = "named"

    def fold(self, moved: Moved) -> None:
        self.rows[moved.account] = os.getpid()


class Cut(Balances):
    """Counts the lists that the events come in."""

    name = "cut"

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        self.rows["lists"] = self.rows.get("lists", 0) + 1


class Hidden(Balances):
    """Counts in an attribute, which is lost when the rows are saved."""

    name = "hidden"
    count = 0

    def fold(self, moved: Moved) -> None:
        self.count += 1
        self.rows["events"] = self.count


class Cyclic(Balances):
    """Makes garbage in cycles, which only the collector frees."""

    name = "cyclic"

    def fold(self, moved: Moved) -> None:
        for _ in range(200):
            cycle: list[object] = []
            cycle.append(cycle)
        super().fold(moved)


class Unordered(cerata.RowProjection[str, str]):
    """Takes the first of a set."""

    name = "unordered"
    handles = (Moved,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            assert isinstance(event.body, Moved)
            known = {event.body.account, *(f"account {number}" for number in range(40))}
            self.rows["first"] = next(iter(known))


EVENTS = [Moved(account=account, cents=cents) for cents, account in enumerate("abcabd")]


class TestGiven:
    """Events, then a state."""

    def test_rows_are_as_expected(self) -> None:
        """Alone, a batch, drafts: whatever a store takes."""
        story = given(EVENTS[0], EVENTS[1:3], cerata.Draft(EVENTS[3]))
        story.then(Balances, {"a": 3, "b": 1, "c": 2})

    def test_a_function_of_the_view_is_as_expected(self) -> None:
        """Search, frames, projections: all that a view has."""
        story = given(
            PutFrame(text="tea at four"), [PutFrame(text="coffee"), *EVENTS], projections=[Balances]
        )
        story.then(lambda view: [hit.text for hit in view.search("tea")], ["tea at four"])
        story.then(lambda view: view.stream.projection(Balances).rows["b"], 5)

    def test_what_differs_is_said(self) -> None:
        """Both, one below the other."""
        with pytest.raises(AssertionError) as said:
            given(EVENTS[1]).then(Balances, {"b": 2})
        assert str(said.value) == (
            "the rows of Balances, folded from the events, is\n    {'b': 1}\n"
            "and should be\n    {'b': 2}"
        )

    def test_it_is_read_in_three_ways(self) -> None:
        """What is right once is not right yet."""
        reads: list[int] = []

        def asked(view: cerata.View) -> int:
            reads.append(view.basis)
            return len(reads)

        with pytest.raises(AssertionError, match="asked, saved and loaded again, is\n    2\n"):
            given(*EVENTS).then(asked, 1)
        assert reads == [6, 6, 6]

    def test_no_event_is_refused(self) -> None:
        """With what it is instead."""
        with pytest.raises(InvalidInput, match="must be event bodies or drafts, not str"):
            given("tea")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"must be a RowProjection .* not int"):
            given(*EVENTS).then(int, 3)  # type: ignore[arg-type]


class TestPurity:
    """A fold is a function of its events."""

    def test_a_pure_fold_passes(self) -> None:
        """Also with one event, which cannot be cut."""
        assert_projection_pure(Balances, *EVENTS)
        assert_projection_pure(Balances, EVENTS[0])

    @pytest.mark.parametrize(
        ("broken", "said"),
        [
            (Clocked, r"must not call time.time_ns in fold, test_testing.py line \d+"),
            (Dated, r"must not call datetime.now in fold, test_testing.py"),
            (Diced, r"must not call random.getrandbits in fold, test_testing.py"),
            (Filed, r"must not call (io.)?open in fold, test_testing.py"),
            (Named, r"must not call os.getpid in fold, test_testing.py"),
            (Cut, r"other rows with the events one by one:\n    'lists': 6, not 1"),
            (Hidden, r"saved half-way and loaded again .*\n    'events': 3, not 6"),
        ],
    )
    def test_an_impure_one_is_told_by_its_fault(self, broken: type[Balances], said: str) -> None:
        """The call and its line, or the rows and the way they came about."""
        with pytest.raises(AssertionError, match=said):
            assert_projection_pure(broken, *EVENTS)

    def test_no_events_prove_nothing(self) -> None:
        """A check of nothing would pass."""
        with pytest.raises(InvalidInput, match="no events"):
            assert_projection_pure(Balances)

    def test_the_callbacks_of_the_collector_are_no_part_of_a_fold(self) -> None:
        """Hypothesis measures the collector with a clock, from whatever code was running."""
        calls: list[float] = []

        def measured(*_: object) -> None:
            calls.append(time.perf_counter())

        threshold = gc.get_threshold()
        gc.set_threshold(50)
        gc.callbacks.append(measured)
        try:
            assert_projection_pure(Cyclic, *EVENTS)
        finally:
            gc.callbacks.remove(measured)
            gc.set_threshold(*threshold)
        assert calls
        assert gc.isenabled()


class TestDeterminism:
    """Another interpreter, another hash seed."""

    def test_a_sound_fold_is_the_same_elsewhere(self) -> None:
        """Two processes fold it."""
        assert_deterministic(Balances, *EVENTS)

    def test_the_order_of_a_set_is_seen(self) -> None:
        """No check in one process could see it."""
        assert_projection_pure(Unordered, *EVENTS)
        with pytest.raises(AssertionError, match=r"PYTHONHASHSEED=\d\):\n    'first': 'account"):
            assert_deterministic(Unordered, *EVENTS)

    def test_a_class_that_nobody_else_finds_is_refused(self) -> None:
        """With what to do."""

        class Local(Balances):
            name = "local"

        with pytest.raises(InvalidInput, match=r"inside a function.*top of a module"):
            assert_deterministic(Local, *EVENTS)


def halves(store: cerata.Store) -> None:
    """Pay in two steps: a crash between them makes money."""
    store.append(Moved(account="ann", cents=-500))
    store.append(Moved(account="bob", cents=500))


def whole(store: cerata.Store) -> None:
    """Pay in one."""
    with store.transaction():
        halves(store)


def balanced(store: cerata.Store) -> bool:
    """No cent comes from nowhere."""
    return sum(store.stream.projection(Balances).rows.values()) == 0


class Bank(Workload):
    """Pays."""

    projections = (Balances,)

    @operation
    def pay(self, store: cerata.Store) -> None:
        whole(store)

    @operation
    def cheat(self, store: cerata.Store) -> None:
        halves(store)

    def check(self, store: cerata.Store) -> None:
        assert balanced(store), "cents came from nowhere"


class TestCrashes:
    """A workload at every point of its stories."""

    def test_what_belongs_together_survives_together(self) -> None:
        """In all states of the first stories, which are the same each time."""
        reports = [
            assert_crash_safe(whole, check=balanced, projections=[Balances], stories=12)
            for _ in range(2)
        ]
        assert reports[0].states == reports[1].states > 200
        assert reports[0].stories == 12

    def test_two_steps_are_caught_between_them(self) -> None:
        """The shortest story is told, and what crashed."""
        with pytest.raises(AssertionError) as said:
            assert_crash_safe(halves, check=balanced, projections=[Balances])
        text = str(said.value)
        assert re.search(r"halves does not survive a crash; of \d+ crash states:", text)
        assert "check: balanced is False" in text
        assert "in the story ['halves']" in text
        assert "in operation 1 (halves)" in text

    def test_one_story_can_be_named(self) -> None:
        """The sound operation passes, the other does not."""
        assert assert_crash_safe(Bank, story=["pay", "reopen", "pay"]).stories == 1
        with pytest.raises(AssertionError, match="cents came from nowhere"):
            assert_crash_safe(Bank, story=["pay", "cheat"])

    def test_an_impure_projection_is_caught_by_a_replay(self) -> None:
        """Without a check of one's own."""

        def act(store: cerata.Store) -> None:
            store.append(*EVENTS)
            store.stream.projection(Clocked)
            store.checkpoint()

        with pytest.raises(AssertionError, match="O10: clocked differs from a replay"):
            assert_crash_safe(act, projections=[Clocked])

    @pytest.mark.parametrize("wrong", [int, Balances])
    def test_no_workload_is_refused(self, wrong: Callable[..., object]) -> None:
        """A class of something else."""
        with pytest.raises(InvalidInput, match="must be a subclass of Workload"):
            assert_crash_safe(wrong)
