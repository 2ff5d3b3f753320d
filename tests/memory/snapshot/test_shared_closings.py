"""A frame is not closed through a narrower scope while a shared frame is below it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cerata
from cerata.engine.events import DeleteFrame
from cerata.memory.batch.shared_rules import SharedRules

TENANT = {"tenant": "acme"}
ANNA = {**TENANT, "user_id": "anna"}
BEN = {**TENANT, "user_id": "ben"}


class Memory:
    """A private frame of Anna with a shared frame two levels below, beside a private frame."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with cerata.open(path, scope=ANNA) as store:
            self.parent = store.put_frame("plan", uri="plan", tags=["x"]).id
            self.middle = store.put_frame("part", parent=self.parent).id
            self.alone = store.put_frame("alone", tags=["x"]).id
        with cerata.open(path, scope=TENANT) as store:
            self.shared = store.put_frame("rule", parent=self.middle).id
            self.bens = store.put_frame("ben", parent=self.alone, scope=BEN).id

    def anna(self) -> cerata.Store:
        return cerata.open(self.path, scope=ANNA, shared=True)

    def tenant(self) -> cerata.Store:
        return cerata.open(self.path, scope=TENANT)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory.cera")


Close = Callable[[cerata.Store, Memory], object]

CLOSINGS: dict[str, Close] = {
    "delete": lambda store, its: store.delete(its.parent),
    "delete the frame between": lambda store, its: store.delete(its.middle),
    "supersede by a text": lambda store, its: store.supersede(its.parent, "new"),
    "supersede by a frame": lambda store, its: store.supersede(its.parent, its.alone),
    "replace": lambda store, its: store.put_frame("new", uri="plan", replace=True),
    "remember": lambda store, its: store.remember("another plan", uri="plan"),
    "delete by a filter": lambda store, its: store.delete(where=cerata.Filter(tags=["x"])),
    "append": lambda store, its: store.append(DeleteFrame(frame=its.parent)),
}


@pytest.mark.parametrize("name", CLOSINGS)
def test_a_frame_above_a_shared_frame_is_not_closed(memory: Memory, name: str) -> None:
    """The shared frame closed with its private parent, for every user of the tenant."""
    close = CLOSINGS[name]
    refusal = f"frame {memory.shared}, below frame .* has no user_id, so it is shared"
    with memory.anna() as store:
        head = store.head.seq
        with pytest.raises(cerata.ReadOnly, match=refusal):
            close(store, memory)
        with store.transaction():
            with pytest.raises(cerata.ReadOnly, match=refusal):
                close(store, memory)
            store.put_frame("kept")
        assert store.head.seq == head + 1
        assert store.frame(memory.shared).active
        assert store.verify().ok
    with memory.tenant() as store:
        store.delete(memory.shared)
    with memory.anna() as store:
        # The closed frame below is no obstacle, and neither is a frame that Anna cannot read.
        close(store, memory)


def test_a_frame_below_that_takes_over_keeps_the_shared_frame(memory: Memory) -> None:
    with memory.anna() as store:
        store.supersede(memory.parent, memory.middle)
        assert store.frame(memory.shared).active
        assert not store.frame(memory.parent).active


def test_a_repeated_call_is_not_checked_again(memory: Memory) -> None:
    with memory.anna() as store:
        first = store.append(DeleteFrame(frame=memory.alone), key="k")
        with memory.tenant() as other:
            other.put_frame("later", parent=memory.alone)
        again = store.append(DeleteFrame(frame=memory.alone), key="k")
        assert (again.seqs, again.added) == (first.seqs, False)


@pytest.fixture
def raced(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Put a shared frame below a new private frame below "alone" after the first check."""
    put: list[int] = []
    check = SharedRules.check

    def late(self: SharedRules, state: object) -> object:
        result = check(self, state)  # type: ignore[arg-type]
        if not put and self._closings:
            with memory.tenant() as store:
                between = store.put_frame("between", parent=memory.alone, scope=ANNA).id
                put.extend((between, store.put_frame("raced", parent=between).id))
        return result

    monkeypatch.setattr(SharedRules, "check", late)
    yield put


def test_a_shared_frame_put_after_the_check_is_not_closed(
    memory: Memory, raced: list[int]
) -> None:
    with memory.anna() as store:
        with pytest.raises(cerata.Conflict, match="put a shared frame below"):
            store.delete(memory.alone)
        with pytest.raises(cerata.ReadOnly, match=f"frame {raced[1]}, below"):
            store.delete(memory.alone)
        assert store.frame(raced[1]).active


def test_a_shared_frame_put_before_the_end_of_a_block_is_not_closed(
    memory: Memory, raced: list[int]
) -> None:
    with memory.anna() as store:
        with pytest.raises(cerata.ReadOnly, match="below"), store.transaction():
            store.delete(memory.alone)
        assert store.frame(raced[1]).active
        assert store.frame(memory.alone).active
