"""A captured call folds nothing while no other writer changes its run, and counts as the fold.

Two handles of one file act as two processes: they share no state in memory. Each random history
is written twice, with proofs and without, and both files must be equal.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

import cerata
from cerata import Agent, Closed, Run, Store, scratchpad
from cerata.agents.activities.open_run import NEAR, OpenRun
from cerata.agents.run_counts import Captured, RunCounts
from cerata.engine.disk.environment import Environment
from cerata.engine.log import Log
from cerata.memory.batch.session import WriteSession
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.replay.fold import Fold

from ..clocks import StandingClock

MEMORY = {
    "pad": scratchpad(max_size_mb=0.001),
    "side": scratchpad(auto_capture=False, max_size_mb=0.0002),
}
STEPS = 40


class World:
    """Two handles of a file, each with a run of the same name open."""

    def __init__(self, path: Path, seed: int) -> None:
        self.drawn = Random(seed)
        self.refs: list[str | None] = []
        self.others = 0
        self.path = path
        clock = StandingClock(1_700_000_000_000_000)
        self.environment = Environment(clock=clock, random_bytes=Random(seed).randbytes)
        self.stores = [self.opened(), self.opened()]
        self.runs = [self.run(store) for store in self.stores]

    def opened(self) -> Store:
        return cerata.open(self.path, environment=self.environment)

    def run(self, store: Store) -> Run:
        return Agent(store, "analyst", memory=MEMORY).run("r1")

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def act(self) -> None:
        """Do something drawn with one of the handles, the first most of the time."""
        at = 0 if self.drawn.random() < 0.8 else 1
        store, run = self.stores[at], self.runs[at]
        acts: list[tuple[int, Callable[[], object]]] = [
            (30, lambda: self.call(run)),
            (5, run.now),
            (4, lambda: run.put("note", self.value(), slot="side")),
            (3, lambda: self.fail(run)),
            (4, lambda: store.put_frame("a note")),
            (2, lambda: store.put_frames(["a note"] * (NEAR + 1))),
            (2, lambda: self.broken(store)),
            (2, lambda: self.other_run(store)),
            (2, lambda: self.forget(run, store)),
            (1, lambda: self.erase(store)),
            (1, lambda: self.lose(run)),
            (1, lambda: self.reopen(at)),
        ]
        [(_, chosen)] = self.drawn.choices(acts, [weight for weight, _ in acts])
        chosen()
        # A list that keeps frames is the list of a new reader.
        for store, run in zip(self.stores, self.runs, strict=True):
            assert run.refs() == Agent(store, "analyst", memory=MEMORY).refs("r1")

    def value(self) -> str:
        return "x" * self.drawn.randrange(80)

    def call(self, run: Run) -> None:
        value = self.value()
        result = run.call(self.drawn.choice(("fetch", "measure")), lambda: value)
        assert result.ref is not None
        assert run.get(result.ref) == value
        self.refs.append(result.ref)

    def fail(self, run: Run) -> None:
        def refuse() -> None:
            raise LookupError("no")

        with suppress(LookupError):
            run.call("refuse", refuse)

    def broken(self, store: Store) -> None:
        with suppress(LookupError), store.transaction():
            store.put_frame("lost")
            raise LookupError

    def other_run(self, store: Store) -> None:
        self.others += 1
        with Agent(store, "analyst", memory=MEMORY).run(f"o{self.others}") as run:
            self.call(run)

    def forget(self, run: Run, store: Store) -> None:
        """Delete a result, as a person may."""
        refs = run.refs()
        if refs:
            store.delete(self.drawn.choice(refs).id)

    def erase(self, store: Store) -> None:
        store.upkeep.compact(horizon=max(1, store.head.seq - self.drawn.randrange(3, 30)))

    def lose(self, run: Run) -> None:
        """Fail after the batch is in the log, as an interrupt does."""
        written = WriteSession.write

        def interrupted(session: WriteSession, drafts: Any, **named: Any) -> object:
            written(session, drafts, **named)
            raise KeyboardInterrupt

        with mock.patch.object(WriteSession, "write", interrupted), suppress(KeyboardInterrupt):
            self.call(run)

    def reopen(self, at: int) -> None:
        self.stores[at].close()
        self.stores[at] = self.opened()
        self.runs[at] = self.run(self.stores[at])


def _history(path: Path, seed: int) -> tuple[list[str | None], Sequence[object], int]:
    """Return the references of a history, its events, and the batches that a proof covered."""
    proofs = Counter[bool]()
    written = WriteSession.write

    def write(session: WriteSession, drafts: Any, **named: Any) -> Any:
        proofs[named.get("proof") is not None] += 1
        return written(session, drafts, **named)

    with mock.patch.object(WriteSession, "write", write):
        world = World(path, seed)
        try:
            for _ in range(STEPS):
                world.act()
            events = [(event.type, event.body, event.scope) for event in world.stores[0].log()]
            return world.refs, events, proofs[True]
        finally:
            world.close()


def _no_proof(counts: RunCounts, captured: Captured | None, size_max: int) -> None:
    counts._proof = None


@pytest.mark.parametrize("seed", range(8))
def test_a_history_with_proofs_is_the_history_without(tmp_path: Path, seed: int) -> None:
    refs, events, proven = _history(tmp_path / "a.cera", seed)
    with mock.patch.object(RunCounts, "proof", _no_proof):
        plain = _history(tmp_path / "b.cera", seed)
    assert (refs, events) == plain[:2]
    assert proven > 3
    assert not plain[2]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two handles of a file."""
    with cerata.open(tmp_path / "a.cera") as first, cerata.open(tmp_path / "a.cera") as second:
        yield first, second


def _opened(store: Store) -> Run:
    run = Agent(store, "analyst").run("r1")
    run.put("x", 0)
    run.put("y", 0)
    return run


def test_a_capture_folds_nothing(pair: tuple[Store, Store]) -> None:
    """Neither after a call of this process, nor after a note of another."""
    run = _opened(pair[0])
    for number in range(2, 20):
        with mock.patch.object(Fold, "using", side_effect=AssertionError("a fold")):
            assert run.put("x", number).ref == f"$ref:x.{number}"
            run.now()
        pair[number % 2].put_frame("a note of any process")


def test_a_capture_folds_after_many_events(pair: tuple[Store, Store]) -> None:
    run = _opened(pair[0])
    pair[1].put_frames(["a note"] * (NEAR + 1))
    with (
        mock.patch.object(Fold, "using", side_effect=AssertionError("a fold")),
        pytest.raises(AssertionError, match="a fold"),
    ):
        run.put("x", 2)


Between = Callable[[Store], object]


def _ended(store: Store) -> None:
    with Agent(store, "analyst").run("r1"):
        pass


def _captured(store: Store) -> None:
    run = Agent(store, "analyst").run("r1")
    run.put("x", "of another")
    run.put("y", "of another")


@pytest.fixture(params=["before", "at the append"])
def meanwhile(request: pytest.FixtureRequest) -> Iterator[Callable[[Between, Store], None]]:
    """Let another process act before a capture, or between its proof and its append."""
    looked = OpenRun.at_head
    waiting: list[tuple[Between, Store]] = []

    def at_head(proof: OpenRun, log: Any, replaced: int) -> OpenRun | None:
        now = looked(proof, log, replaced)
        for act, store in waiting:
            waiting.clear()
            act(store)
        return now

    def act(between: Between, store: Store) -> None:
        if request.param == "before":
            between(store)
        else:
            waiting.append((between, store))

    with mock.patch.object(OpenRun, "at_head", at_head):
        yield act


def test_another_process_ends_the_run(
    pair: tuple[Store, Store], meanwhile: Callable[[Between, Store], None]
) -> None:
    run = _opened(pair[0])
    meanwhile(_ended, pair[1])
    with pytest.raises(Closed, match="ended"):
        run.put("x", 1)
    assert [event.type for event in pair[1].log()][-2:] == ["endActivity", "deleteFrame"]
    assert [each.status for each in Agent(pair[1], "analyst").runs()] == ["done"]


def test_another_process_captures_a_result_of_the_name(
    pair: tuple[Store, Store], meanwhile: Callable[[Between, Store], None]
) -> None:
    run = _opened(pair[0])
    meanwhile(_captured, pair[1])
    result = run.put("x", "of this")
    assert result.ref == "$ref:x.3"
    assert [run.get(f"$ref:x.{number}") for number in (1, 2, 3)] == [0, "of another", "of this"]
    assert run.put("x", "again").ref == "$ref:x.4"
    assert run.put("y", "of this").ref == "$ref:y.3"


def test_a_transaction_that_fails_changes_no_number(pair: tuple[Store, Store]) -> None:
    store = pair[0]
    run = _opened(store)
    with suppress(LookupError), store.transaction():
        store.put_frame("lost")
        raise LookupError
    assert run.put("x", 1).ref == "$ref:x.2"
    with pytest.raises(cerata.InvalidInput, match="inside a transaction"), store.transaction():
        run.put("x", 2)
    assert run.put("x", 3).ref == "$ref:x.3"


def test_an_erasure_ends_the_proof(pair: tuple[Store, Store]) -> None:
    """The numbers are those of the fold of the file that a compaction leaves."""
    run = _opened(pair[0])
    pair[1].delete(run.refs()[0].id)
    pair[1].upkeep.compact(horizon="HEAD")
    with (
        mock.patch.object(Fold, "using", side_effect=AssertionError("a fold")),
        pytest.raises(AssertionError, match="a fold"),
    ):
        run.put("x", 1)
    result = run.put("x", 1)
    assert result.ref == run.refs()[-1].ref
    run.put("y", 1)
    # The file may reflect an erasure after the event that announces it.
    with mock.patch.object(Log, "erased", 1):
        for name in ("x", "y"):
            with (
                mock.patch.object(Fold, "using", side_effect=AssertionError("a fold")),
                pytest.raises(AssertionError, match="a fold"),
            ):
                run.put(name, 1)
            run.put("x", 1)


@pytest.mark.parametrize("is_before", [True, False])
def test_another_process_captures_around_a_folded_append(
    pair: tuple[Store, Store], *, is_before: bool
) -> None:
    """Neither the state that the append saw, nor the state after it, is that of this batch."""
    run = _opened(pair[0])
    written, waiting = WriteSession.write, [pair[1]]

    def write(session: WriteSession, drafts: Any, **named: Any) -> Any:
        other = waiting.pop() if waiting else None
        if other is not None and is_before:
            _captured(other)
        receipt = written(session, drafts, **named)
        if other is not None and not is_before:
            _captured(other)
        return receipt

    with mock.patch.object(WriteSession, "write", write):
        assert run.put("z", 1).ref == "$ref:z.1"
    assert run.put("y", 1).ref == "$ref:y.3"
    assert run.put("z", 2).ref == "$ref:z.2"


def test_another_process_ends_the_run_after_a_folded_append(pair: tuple[Store, Store]) -> None:
    run = _opened(pair[0])
    written, waiting = WriteSession.write, [pair[1]]

    def write(session: WriteSession, drafts: Any, **named: Any) -> Any:
        receipt = written(session, drafts, **named)
        if waiting:
            _ended(waiting.pop())
        return receipt

    with mock.patch.object(WriteSession, "write", write):
        assert run.put("z", 1).ref == "$ref:z.1"
    with pytest.raises(Closed, match="ended"):
        run.put("z", 2)


def test_a_list_reads_a_result_once_until_an_erasure(pair: tuple[Store, Store]) -> None:
    run = _opened(pair[0])
    listed = run.refs()
    with mock.patch.object(Snapshot, "bodies", side_effect=AssertionError("a read")):
        assert run.refs() == listed
        with mock.patch.object(Log, "erased", 1), pytest.raises(AssertionError, match="a read"):
            run.refs()
    added = run.put("x", 1)
    assert [each.id for each in run.refs()] == [*(each.id for each in listed), added.id]
