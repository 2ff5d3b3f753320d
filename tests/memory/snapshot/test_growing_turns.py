"""The order of turns and their lengths after a change equal a fresh build, bit for bit.

Cost is counted, since times differ with the load of the machine.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Store
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.columnar import turn_order
from cerata.projections.fulltext.turns import turn_lengths

Act = tuple[str, int, int, str | None, bool]
acts_of = st.lists(
    st.tuples(
        st.sampled_from(("put", "put", "put", "put", "several", "update", "delete", "fact")),
        st.integers(0, 30),
        st.sampled_from((0, 3, 3, 3, 4)),
        st.sampled_from(("mina", "mina", "olaf", None)),
        st.booleans(),
    ),
    max_size=16,
)


def act(store: Store, name: str, number: int, session: int, role: str | None) -> None:
    frames = [frame.id for frame in store.frames()]
    # Some turns are long, so that the part of their conversation changes.
    text = " ".join(["harbour", "mill", "ferry"][: 1 + number % 3] * (40 if number % 4 == 0 else 1))
    if name == "delete" and frames:
        store.delete(frames[number % len(frames)])
    elif name == "update" and frames:
        store.update(frames[number % len(frames)], tags=["salt"])
    elif name == "fact":
        store.assert_fact("mina", "likes", f"tea {number}")
    else:
        for place in range(number % 9 + 2 if name == "several" else 1):
            talk = session + place // 3 * (number % 2)
            store.put_frame(text, role=role, metadata={"session": talk})


def arrays_of(snapshot: Snapshot) -> Iterator[npt.NDArray[np.generic] | float | int]:
    """Yield everything that depends on the order of turns."""
    order, scoring = snapshot.layers.turns, snapshot.layers.ranking._scoring
    norms, lengths = scoring.turn_norms, scoring.turn_lengths
    yield scoring.average_length
    yield from (norms.norms, norms.inverse, norms.of_pairs, norms.k1)
    yield np.ones(0) if norms.near is None else norms.near
    if order is not None and lengths is not None:
        yield from (order.places, order.rows, order.is_turn, order.turn_count)
        yield from (lengths.in_context, lengths.parts, lengths.of_rows)
        conversations = lengths.conversations
        yield from (conversations.starts, conversations.sizes, conversations.terms)


def fresh(snapshot: Snapshot) -> Snapshot:
    """Return the same state without the arrays of earlier states."""
    log, fold, reach = snapshot.source
    alone = Snapshot(log, fold, snapshot.basis, reach)
    pending = snapshot._pending
    return alone if pending is None else alone.with_pending(pending)


def check(store: Store, basis: int | None = None) -> None:
    snapshot = snapshot_of(store if basis is None else store.at(basis))
    for array, expected in zip(arrays_of(snapshot), arrays_of(fresh(snapshot)), strict=True):
        assert np.asarray(array).dtype == np.asarray(expected).dtype
        assert np.asarray(array).tobytes() == np.asarray(expected).tobytes()


@given(acts=acts_of)
def test_every_state_equals_one_of_a_new_store(acts: Sequence[Act]) -> None:
    """Also of a scope, of the past, and inside a transaction."""
    with cerata.open(":memory:") as store:
        anna = store.scoped({"user": "anna"})
        for name, number, session, role, is_anna in acts:
            act(anna if is_anna else store, name, number, session, role)
            if number % 3:
                check(store)
                check(anna)
            if number % 5 == 0:
                with store.transaction():
                    act(store, name, number + 1, session, role)
                    check(store)
        for basis in range(store.head.seq + 1):
            check(store, basis)
            check(anna, basis)


def test_a_compaction_changes_the_lengths_of_the_past(tmp_path: Path) -> None:
    """An erased turn has no words, so no later state extends the lengths that had them."""
    with cerata.open(tmp_path / "a.cera") as store:
        for _ in range(9):
            store.put_frame("harbour mill", role="mina", metadata={"session": 1})
        check(store)
        store.delete(5)
        check(store)
        assert store.upkeep.compact(horizon="HEAD").dropped == 1
        check(store)
        store.put_frame("harbour", role="mina", metadata={"session": 1})
        check(store)


@pytest.mark.parametrize("change", ["the last", "an earlier one", "a new one", "deletion"])
def test_a_change_keeps_the_order_before_it(
    store: Store, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question after a change built the whole order again, a third of its time."""
    for place in range(100):
        talk = ("the first", "an earlier one", "the last")[place // 34]
        store.put_frame("harbour mill", role="mina", metadata={"session": talk})
    assert store.search("mill")
    orders: list[object] = []
    first_places: list[object] = []

    def counted(first: list[object], function: Callable[..., object]) -> Callable[..., object]:
        def count(argument: object, *arguments: object) -> object:
            first.append(argument)
            return function(argument, *arguments)

        return count

    compute = turn_lengths._lengths_from
    monkeypatch.setattr(turn_order, "turn_order", counted(orders, turn_order.turn_order))
    monkeypatch.setattr(turn_lengths, "_lengths_from", counted(first_places, compute))
    for place in range(20):
        if change == "deletion":
            store.delete([*store.frames()][place - 40].id)
        else:
            store.put_frame("harbour", role="olaf", metadata={"session": change})
        assert store.search("mill")
    assert not orders
    assert len(first_places) == 20
    assert 0 not in first_places
