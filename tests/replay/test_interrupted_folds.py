"""An exception at any moment of a read leaves no half-folded state behind."""

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import cerata
from cerata import Entity
from cerata.engine.errors import Conflict, Corrupt
from cerata.engine.events import Event
from cerata.engine.segments.columnar_events import SealedPiece
from cerata.memory.batch.block import Block
from cerata.memory.batch.validation import BatchChecks
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store
from cerata.projections.columnar.names import Names
from cerata.projections.core.projection import Projection
from cerata.projections.core.seal import StateDamaged
from cerata.projections.facts.projection import FactsProjection
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.rows.row_fold import RowFold
from cerata.replay.fold import Fold

from ..inside import fold_of, log_of
from .spending import Spending, Spent

SPACE = "test/3"


def fill(path: Path, frames: int = 60) -> None:
    """Write a store of every kind: words, facts, links, vectors, tags and a user's rows."""
    with cerata.open(path, projections=[Spending]) as store:
        with store.transaction():
            for number in range(frames):
                vector = np.array([number, 1, frames - number], np.float32)
                store.put_frame(
                    f"note {number} about wax",
                    tags=["wax"],
                    vectors=cerata.Vectors(dense=vector, space=SPACE),
                )
        store.delete(3)
        first = store.assert_fact("alice", "lives in", Entity("paris"))
        second = store.assert_fact("alice", "lives in", Entity("rome"))
        store.graph.link(second, "supersedes", first)
        store.graph.name("alice smith")
        store.graph.merge("alice", "alice smith")
        store.history.tag("named")
        session_of(store).write([cerata.Draft(Spent(tag="a", cents=5))])


def answers(store: Store) -> list[object]:
    """Return what reads of every projection give."""
    found: list[object] = [
        [(hit.id, hit.score) for hit in store.search("wax", k=100)],
        [(hit.id, hit.score) for hit in store.search(np.array([1.0, 1.0, 0.0]), k=7)],
        [str(fact) for fact in store.facts("alice")],
        [str(link) for link in store.graph.links()],
        [str(found.fact) for found in store.graph.search("where does alice live")],
        list(store.stream.projection("spending").rows.items()),
        store.history.tags(),
        len(list(store.frames())),
    ]
    return found


class Interrupting:
    """Raises an exception at the n-th entry of a function of Cerata."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.at = at
        self.error = error
        self.count = 0

    def __enter__(self) -> None:
        sys.setprofile(self._enter)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _enter(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or "/cerata/" not in frame.f_code.co_filename:
            return
        if frame.f_code.co_name == "_enter":
            return
        self.count += 1
        if self.count == self.at:
            sys.setprofile(None)
            raise self.error


def entries(path: Path) -> int:
    """Return how many functions a cold run of the reads enters, in a process that is warm."""
    runs = [Interrupting(0, MemoryError) for _ in range(2)]
    for run in runs:
        with cerata.open(path, projections=[Spending]) as store, run:
            answers(store)
    return runs[1].count


def check_after_interrupts(path: Path, share: int) -> int:
    """Interrupt cold reads, and hold what follows against an undisturbed run.

    Return the interrupts that the caller got, or Python ignored since they struck a finalizer.
    """
    copy = path.with_name("copy.cera")
    shutil.copy(path, copy)
    count = entries(copy)
    with cerata.open(copy, projections=[Spending]) as store:
        expected, digests = answers(store), store.stream.digests(replay=True)
    tried = 0
    ignored: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", ignored.append)
        for number, at in enumerate(range(1, count + 1, max(count // share, 1))):
            error = (KeyboardInterrupt, MemoryError)[number % 2]
            shutil.copy(path, copy)
            with cerata.open(copy, projections=[Spending]) as store:
                try:
                    with Interrupting(at, error):
                        answers(store)
                except (KeyboardInterrupt, MemoryError):
                    tried += 1
                assert answers(store) == expected, f"other answers after {error} at entry {at}"
                assert store.stream.digests() == digests, (
                    f"other digests after {error} at entry {at}"
                )
                store.checkpoint()
            with cerata.open(copy, projections=[Spending]) as store:
                assert answers(store) == expected
                assert store.verify().ok
    return tried + len(ignored)


@pytest.mark.parametrize("is_saved", [False, True], ids=["folded", "restored"])
def test_a_read_after_an_interrupted_read_finds_everything(tmp_path: Path, is_saved: bool) -> None:
    """The first search after a Ctrl-C found 0 of 60 frames, and a checkpoint made it permanent."""
    path = tmp_path / "a.cera"
    fill(path)
    if is_saved:
        with cerata.open(path, projections=[Spending]) as store:
            store.checkpoint()
            store.put_frame("wax in the tail")
    assert check_after_interrupts(path, 40) >= 38


def test_a_fold_in_place_is_found_by_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check can fail: with a fold that stays visible while it changes, answers differ."""
    path = tmp_path / "a.cera"
    fill(path)

    def in_place(self: Fold, name: str) -> Projection:
        if name not in self._settled:
            self._settled[name] = self.registry.make(name)
        return self._settled[name]

    monkeypatch.setattr(Fold, "_take", in_place)
    with pytest.raises((AssertionError, Corrupt, StateDamaged, KeyError, IndexError, ValueError)):
        check_after_interrupts(path, 200)


def nothing(*_: object) -> None:
    """Return None, as a column that cannot be decoded in one pass."""


def interrupted(function: Callable[..., object], calls: int) -> Callable[..., object]:
    """Return a function that raises KeyboardInterrupt once, at its n-th call."""
    count = 0

    def replaced(*arguments: object, **named: object) -> object:
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt
        return function(*arguments, **named)

    return replaced


def test_an_interrupt_between_two_columns_leaves_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name was added and its frame was not: the columns of frames had other lengths."""
    path = tmp_path / "a.cera"
    fill(path)
    with cerata.open(path, projections=[Spending]) as store:
        expected = store.stream.digests(replay=True)
    with cerata.open(path, projections=[Spending]) as store:
        with monkeypatch.context() as patch:
            patch.setattr(Names, "code", interrupted(Names.code, 2))
            with pytest.raises(KeyboardInterrupt):
                store.search("wax")
        assert len(store.search("wax", k=100)) == 59
        assert store.stream.digests() == expected


def test_a_checkpoint_of_a_changed_item_is_refused_and_folded_again(tmp_path: Path) -> None:
    """A checkpoint saved whatever stood in memory, and every new process believed it."""
    path = tmp_path / "a.cera"
    fill(path)

    def change(projection: Projection) -> None:
        assert isinstance(projection, FramesProjection)
        projection._columns.created.buffer[7] = 1

    def shorten(projection: Projection) -> None:
        assert isinstance(projection, FactsProjection)
        projection._columns.subject.size -= 1

    def reword(projection: Projection) -> None:
        assert isinstance(projection, FulltextProjection)
        projection._stream.buffer[5] += 1

    def spend(projection: Projection) -> None:
        assert isinstance(projection, RowFold)
        projection._own.rows["a"] = 6

    with cerata.open(path, projections=[Spending]) as store:
        expected = store.stream.digests(replay=True)
        for name, damage in (
            ("frames", change),
            ("facts", shorten),
            ("fulltext", reword),
            ("spending", spend),
        ):
            store.put_frame(f"one more for {name}")
            expected = store.stream.digests(replay=True)
            fold_of(store).using(name, None, damage)
            store.checkpoint()
            assert store.stream.digests() == expected, name
    with cerata.open(path, projections=[Spending]) as store:
        assert store.stream.digests() == expected
        assert store.verify().ok


def test_a_checkpoint_of_a_complete_block_is_held_against_its_leaf(tmp_path: Path) -> None:
    """The leaf of a block was hashed when the fold passed it: a later change of it shows."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        fold_of(store)._try_from = 1 << 62
        for _ in range(9):
            store.put_frames([f"note {number}" for number in range(500)])
        expected = store.stream.digests(replay=True)
        frames = fold_of(store).frames()
        assert frames.seq == 4_500

        def change(projection: Projection) -> None:
            assert isinstance(projection, FramesProjection)
            projection.check()
            projection._columns.created.buffer[7] = 1
            projection.check()
            with pytest.raises(StateDamaged):
                projection.chunk(0, 4096)

        fold_of(store).using("frames", None, change)
        store.checkpoint()
        assert store.stream.digests() == expected
        assert store.verify().ok


def test_a_state_that_never_stays_as_it_was_folded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After folding again in vain a checkpoint says so, and publishes nothing."""
    path = tmp_path / "a.cera"
    fill(path)

    def broken(self: object) -> None:
        raise StateDamaged("an item that was folded is another one in memory")

    with cerata.open(path, projections=[Spending]) as store:
        before = dict(log_of(store).toc().projections)
        monkeypatch.setattr(FramesProjection, "check", broken)
        with pytest.raises(Corrupt, match="changed in memory after the fold"):
            store.checkpoint()
        monkeypatch.undo()
        assert dict(log_of(store).toc().projections) == before


def test_an_interrupted_read_in_a_transaction_sees_every_draft_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drafts were folded twice after an interrupt, or numbered terms that no word had."""
    with cerata.open(":memory:") as store:
        store.put_frame("wax in the log")

        def run(at: int) -> tuple[list[object], int]:
            with store.transaction():
                store.put_frame("wax in a draft of violets")
                store.put_frame("violets and wax again")
                interrupting = Interrupting(at, KeyboardInterrupt)
                with suppress(KeyboardInterrupt), interrupting:
                    store.search("violets wax")
                store.put_frame("a third draft on violets")
                found: list[object] = [
                    (hit.id, hit.score) for hit in store.search("violets wax", k=9)
                ]
                raise Rollback(found, interrupting.count)

        def rolled_back(at: int) -> tuple[list[object], int]:
            with pytest.raises(Rollback) as caught:
                run(at)
            return caught.value.found, caught.value.count

        expected, count = rolled_back(0)
        assert len(expected) == 4
        for at in range(1, count + 1, max(count // 40, 1)):
            assert rolled_back(at)[0] == expected, at


class Rollback(Exception):
    def __init__(self, found: list[object], count: int) -> None:
        super().__init__()
        self.found = found
        self.count = count


def test_a_block_whose_call_was_interrupted_while_it_was_kept_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A draft without its payload, or a check without its draft, was appended or refused later."""
    with cerata.open(":memory:") as store:

        def block() -> None:
            with store.transaction():
                store.put_frame("a")
                monkeypatch.setattr(BatchChecks, "keep", interrupted(BatchChecks.keep, 1))
                with suppress(KeyboardInterrupt):
                    store.put_frame("b")

        with pytest.raises(Conflict, match="was interrupted"):
            block()
        assert list(store.frames()) == []
        assert not session_of(store).in_transaction


def test_an_interrupt_right_after_a_transaction_begins_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The token of the block was not stored yet, so that the block stayed open for ever."""
    with cerata.open(":memory:") as store:
        monkeypatch.setattr(Block, "check_whole", interrupted(Block.check_whole, 1))
        with pytest.raises(KeyboardInterrupt), store.transaction():
            pass
        assert not session_of(store).in_transaction
        store.put_frame("it goes on")
        assert len(list(store.frames())) == 1


def test_a_payload_that_cannot_be_decoded_leaves_what_is_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that met it was half done, and its rows stayed."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        for number in range(10):
            store.put_frame(f"wax {number}", tags=[f"t{number}"])
    decode = vars(Event)["body"]

    def body(event: Event) -> object:
        if event.seq == 6:
            raise Corrupt("The payload of event 6 cannot be decoded")
        return decode.__get__(event)

    monkeypatch.setattr(Event, "body", property(body), raising=False)
    monkeypatch.setattr(SealedPiece, "_in_one_pass", nothing)
    with cerata.open(path) as store:
        for _ in range(2):
            with pytest.raises(Corrupt, match="damaged after event 5"):
                store.search("wax")
        assert len(store.at(5).search("wax", k=20)) == 5
