"""The sorted map: a dictionary in order of key, whose copies no change reaches."""

import random
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.errors import InvalidInput, ReadOnly
from cerata.projections.rows.row_projection import Rows
from cerata.projections.rows.sorted_map import NODE_SIZE_MAX, SortedMap, order_of

Item: TypeAlias = Any

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
integers = st.integers(-(1 << 63), (1 << 64) - 1)
atoms: st.SearchStrategy[Item] = st.one_of(integers, texts, st.binary(max_size=3))
keys: st.SearchStrategy[Item] = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5
)
few = st.sampled_from(
    [("a",), ("a", 1), ("a", 1, "x"), ("a\0",), ("b", 2), ("",), "a", 3, b"\0", ()]
)


def place(key: object) -> tuple[Item, ...]:
    """Return the documented order: integers, strings, bytes, tuples item by item."""
    if isinstance(key, tuple):
        return 3, tuple(place(part) for part in cast("tuple[object, ...]", key))
    return (int, str, bytes).index(type(key)), key


@given(st.lists(keys, max_size=20))
def test_orders_sort_as_keys_do(drawn: list[Item]) -> None:
    """The tree compares bytes; iteration promises the order of keys."""
    assert sorted(drawn, key=order_of) == sorted(drawn, key=place)
    assert len({order_of(key) for key in drawn}) == len(set(map(place, drawn)))


@given(st.lists(st.tuples(st.booleans(), few, st.integers(0, 9))), st.integers(0, 9))
def test_rows_are_a_dictionary_in_order(steps: list[tuple[bool, Item, int]], cut: int) -> None:
    """A copy keeps the rows of its moment through every later change."""
    rows: Rows[Item, int] = Rows()
    model: dict[Item, int] = {}
    copy: Rows[Item, int] = Rows()
    copied: dict[Item, int] = {}
    for number, (sets, key, value) in enumerate(steps):
        if number == cut:
            copy.copy_of(rows)
            copied = dict(model)
        if sets:
            rows[key] = model[key] = value
        else:
            assert rows.pop(key, None) == model.pop(key, None)
    for these, those in ((rows, model), (copy, copied)):
        assert list(these.items()) == sorted(those.items(), key=lambda item: place(item[0]))
        assert len(these) == len(those)
        for prefix in ((), ("a",), ("a", 1), ("c",)):
            expected = [key for key in these if place_begins(key, prefix)]
            assert [key for key, _ in these.range(prefix=prefix)] == expected
            part: Rows[Item, int] = Rows()
            part.copy_of(these)
            part.narrow(prefix)
            assert list(part) == expected
            assert len(part) == len(expected)
            assert [key for key in those if key in part] == [k for k in those if k in expected]
            with pytest.raises(ReadOnly):
                part["a"] = 1


def place_begins(key: Item, prefix: tuple[Item, ...]) -> bool:
    return isinstance(key, tuple) and key[: len(prefix)] == prefix


@pytest.mark.parametrize("spread", ["ascending", "descending", "shuffled"])
def test_large_maps_stay_balanced_and_copies_stay_whole(spread: str, seed: int) -> None:
    """Each order of insertion fills nodes; each order of removal leaves no empty node behind."""
    numbers = list(range(5_000))
    random.Random(seed).shuffle(numbers)
    if spread != "shuffled":
        numbers.sort(reverse=spread == "descending")
    rows: SortedMap[int] = SortedMap()
    for number in numbers:
        rows.set(order_of(number), number, number)
    whole = rows.share()
    spans = list(whole.spans())
    assert [key for leaf, start, end in spans for key in leaf.keys[start:end]] == list(range(5_000))
    assert len(spans) <= 4 * 5_000 / NODE_SIZE_MAX
    random.Random(seed + 1).shuffle(numbers)
    for number in numbers[:4_990]:
        rows.remove(order_of(number))
    left = [key for leaf, start, end in rows.spans() for key in leaf.keys[start:end]]
    assert left == sorted(numbers[4_990:])
    assert len(list(rows.spans())) <= 10
    for number in numbers[4_990:]:
        rows.remove(order_of(number))
    assert len(rows) == 0
    assert not list(rows.spans())
    assert [key for leaf, start, end in whole.spans() for key in leaf.keys[start:end]] == list(
        range(5_000)
    )


def test_a_range_has_bounds_or_a_prefix() -> None:
    """Low is in the range and high is not; both ways round."""
    rows: Rows[Item, int] = Rows()
    for number in range(1_000):
        rows[number] = number
    expected = list(range(100, 300))
    assert [key for key, _ in rows.range(100, 300)] == expected
    assert [key for key, _ in rows.range(100, 300, reverse=True)] == expected[::-1]
    assert next(rows.range(reverse=True)) == (999, 999)
    refused: list[dict[str, Any]] = [
        {"prefix": ("a",), "low": 1},
        {"prefix": ("a",), "high": 1},
        {"prefix": "a"},
        {"prefix": (1.5,)},
        {"low": 1.5},
        {"high": None, "low": True},
    ]
    for bounds in refused:
        with pytest.raises(InvalidInput):
            rows.range(**bounds)


def test_rows_may_change_under_an_iteration() -> None:
    """An iteration reads the rows of its moment, as it did when it copied the keys."""
    rows: Rows[Item, int] = Rows()
    for number in range(200):
        rows[number] = number
    seen = 0
    for key in rows:
        rows[key + 1_000] = 1
        del rows[key]
        seen += 1
    assert seen == 200
    assert min(rows) == 1_000
