"""A frame is not closed through a narrower scope while a shared frame is below it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import DeleteFrame
from cerata.memory.batch.owner_rules import SharedRules
from cerata.memory.batch.rule import State

from ...clocks import StandingClock

TENANT = {"tenant": "acme"}
ANNA = {**TENANT, "user_id": "anna"}
BEN = {**TENANT, "user_id": "ben"}
DAY = 86_400_000_000


class Memory:
    """A private frame of Anna with a shared frame two levels below, beside a private frame."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with cerata.open(path, scope=ANNA) as store:
            self.parent = store.put_frame("plan", uri="plan", tags=["x"]).id
            self.middle = store.put_frame("part", options=cerata.PutOptions(parent=self.parent)).id
            self.alone = store.put_frame("alone", tags=["x"]).id
        with cerata.open(path, scope=TENANT) as store:
            self.shared = store.put_frame("rule", options=cerata.PutOptions(parent=self.middle)).id
            self.bens = store.put_frame(
                "ben", options=cerata.PutOptions(parent=self.alone, scope=BEN)
            ).id

    def anna(self) -> cerata.Store:
        return cerata.open(self.path, scope=ANNA, options=cerata.OpenOptions(shared=True))

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
    "replace": lambda store, _: store.put_frame(
        "new", uri="plan", options=cerata.PutOptions(replace=True)
    ),
    "remember": lambda store, _: store.remember("another plan", uri="plan"),
    "delete by a filter": lambda store, _: store.delete(where=cerata.Filter(tags=["x"])),
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


def test_a_frame_above_a_shared_frame_gets_no_new_version(memory: Memory) -> None:
    """The error named the scope of a draft that the caller had not written."""
    refusal = f"frame {memory.shared}, below .* has no user_id, so it is shared"
    with memory.anna() as store:
        head = store.head.seq
        with pytest.raises(cerata.ReadOnly, match=refusal):
            store.update(memory.parent, tags=["new"])
        with store.transaction(), pytest.raises(cerata.ReadOnly, match=refusal):
            store.update(memory.parent, tags=["new"])
        assert store.head.seq == head
        # A frame that Anna cannot read is no obstacle.
        assert store.update(memory.alone, tags=["new"]).added
    with memory.tenant() as store:
        store.delete(memory.shared)
    with memory.anna() as store:
        assert store.update(memory.parent, tags=["new"]).added


def test_a_frame_below_that_takes_over_keeps_the_shared_frame(memory: Memory) -> None:
    with memory.anna() as store:
        store.supersede(memory.parent, memory.middle)
        assert store.frame(memory.shared).active
        assert not store.frame(memory.parent).active


def test_a_repeated_call_is_not_checked_again(memory: Memory) -> None:
    with memory.anna() as store:
        first = store.append(DeleteFrame(frame=memory.alone), key="k")
        with memory.tenant() as other:
            other.put_frame("later", options=cerata.PutOptions(parent=memory.alone))
        again = store.append(DeleteFrame(frame=memory.alone), key="k")
        assert (again.seqs, again.added) == (first.seqs, False)


@pytest.fixture
def raced(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Put a shared frame below a new private frame below "alone" after the first check."""
    put: list[int] = []
    check = SharedRules.check

    def late(self: SharedRules, state: State) -> object:
        result = check(self, state)
        if not put and self._closings:
            with memory.tenant() as store:
                between = store.put_frame(
                    "between", options=cerata.PutOptions(parent=memory.alone, scope=ANNA)
                ).id
                put.extend(
                    (
                        between,
                        store.put_frame("raced", options=cerata.PutOptions(parent=between)).id,
                    )
                )
        return result

    monkeypatch.setattr(SharedRules, "check", late)
    return put


def test_a_shared_frame_put_after_the_check_is_not_closed(memory: Memory, raced: list[int]) -> None:
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


# --- conditions ----------------------------------------------------------------------------------


def test_a_filter_that_admits_shared_frames_deletes_none(memory: Memory) -> None:
    """Shared frames of the filter were passed over, and the receipt did not show it."""
    own = cerata.Filter(scope={"user_id": "anna"})
    with memory.tenant() as store:
        store.put_frame("rule 2", tags=["y"])
    with memory.anna() as store:
        store.put_frames([str(number) for number in range(1_200)], tags=["y"])
        head = store.head.seq
        for where in (cerata.Filter(tags=["y"]), cerata.Filter(kind="text"), own):
            with pytest.raises(cerata.ReadOnly, match="has no user_id") as refused:
                store.delete(where=where)
            assert "Filter with the store's scope" in str(refused.value.remedy)
        assert store.head.seq == head
        assert len(store.delete(where=cerata.Filter(tags=["y"]) & own).deleted) == 1_200


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(1_772_355_600_000_000)


@pytest.fixture
def expired(clock: StandingClock) -> Iterator[tuple[cerata.Store, cerata.Store]]:
    """Anna's store and that of her tenant, with expired frames 1 to 5; 2 is shared, below 1."""
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    with (
        cerata.open(
            "a.cera", environment=environment, scope=ANNA, options=cerata.OpenOptions(shared=True)
        ) as anna,
        cerata.open("a.cera", environment=environment, scope=TENANT) as tenant,
    ):
        above = anna.put_frame("above", options=cerata.PutOptions(expires="2026-03-02"))
        shared = tenant.put_frame(
            "shared", options=cerata.PutOptions(parent=above, expires="2026-03-02")
        )
        anna.put_frame("below", options=cerata.PutOptions(parent=shared, expires="2026-03-02"))
        anna.put_frame("alone", options=cerata.PutOptions(expires="2026-03-02"))
        tenant.put_frame("ben", options=cerata.PutOptions(scope=BEN, expires="2026-03-02"))
        clock.time_us += DAY
        yield anna, tenant


def test_a_sweep_leaves_shared_frames_and_those_above(
    expired: tuple[cerata.Store, cerata.Store],
) -> None:
    """A sweep closed a shared frame with the frame above."""
    anna, tenant = expired
    notices = ("not closed, since shared or above shared frames: 2 expired frames",)
    with anna.transaction() as block:
        swept = anna.upkeep.sweep()
        assert (swept.deleted, swept.notices) == ((3, 4), notices)
    assert block.receipt.notices == notices
    assert (anna.upkeep.sweep().added, anna.upkeep.sweep().notices) == (False, notices)
    whole = tenant.upkeep.sweep()
    assert (whole.deleted, whole.notices) == ((1, 5), ())


def test_a_sweep_looks_again_if_a_shared_frame_comes_between(
    expired: tuple[cerata.Store, cerata.Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, tenant = expired
    check, put = SharedRules.check, list[int]()

    def late(self: SharedRules, state: State) -> object:
        result = check(self, state)
        if not put and self._closings:
            put.append(0)
            put[0] = tenant.put_frame("raced", options=cerata.PutOptions(parent=4)).id
        return result

    monkeypatch.setattr(SharedRules, "check", late)
    assert anna.upkeep.sweep().deleted == (3,)
    assert anna.frame(put[0]).active
